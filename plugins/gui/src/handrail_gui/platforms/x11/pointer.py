"""The mouse of an X display by XTEST, and the failsafe. Jobs for `X11Connection.run`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from Xlib import X
from Xlib.ext import xtest

from handrail import Failsafe, PersonAtWork
from handrail_gui.platforms.geometry import corner_pixels
from handrail_gui.platforms.x11.connection import X11Client
from handrail_gui.platforms.x11.user_activity import UserActivity
from handrail_gui.platforms.x11.windows import screen_bounds

MouseButton = Literal["left", "middle", "right"]
ScrollDirection = Literal["up", "down", "left", "right"]

BUTTON_NUMBERS: dict[str, int] = {"left": 1, "middle": 2, "right": 3}
WHEEL_BUTTONS: dict[str, int] = {"up": 4, "down": 5, "left": 6, "right": 7}


@dataclass(slots=True)
class XTestPointer:
    """The pointer as we left it, and the buttons that we hold down.

    On a `private` desktop the pointer may initially be anywhere: only programs can have put it there. Elsewhere a
    `person` has a mouse, too. Input `by_hand` is the user's own, and nothing stops it.
    """

    private: bool = False
    person: UserActivity | None = None
    by_hand: bool = False
    # What else is done about a person in a corner.
    alarm: Callable[[], None] = lambda: None
    held: set[str] = field(default_factory=set[str])
    _left_at: tuple[int, int] | None = None

    def position(self, client: X11Client) -> tuple[int, int]:
        """Return the position of the pointer in screen pixels."""
        found = client.root.query_pointer()
        return found.root_x, found.root_y

    def check(self, client: X11Client) -> None:
        """Raise `Failsafe` if the user has moved the pointer into a screen corner, `PersonAtWork` for other user input.

        `Failsafe` is raised with all buttons released. A corner to which we moved the pointer ourselves does not count.
        """
        if self.by_hand:
            return
        at = self.position(client)
        if self.private and self._left_at is None:
            self._left_at = at
        if at != self._left_at and at in corner_pixels(screen_bounds(client)):
            self.release_all(client)
            self.alarm()
            raise Failsafe(
                f"somebody moved the pointer into the corner {at} of the screen: input has stopped",
                hint="a person goes on by moving the pointer out of it, and by `handrail resume`",
            )
        if self.person is not None:
            try:
                self.person.check(client)
            except PersonAtWork:
                self.release_all(client)
                raise

    def move(self, client: X11Client, x: int, y: int) -> None:
        """Put the pointer at a pixel of the screen."""
        self.check(client)
        xtest.fake_input(client.display, X.MotionNotify, x=x, y=y)
        client.display.sync()
        self._left_at = self.position(client)

    def press(self, client: X11Client, button: str) -> None:
        """Hold a button down until `release` or `release_all`."""
        self.check(client)
        self.held.add(button)
        xtest.fake_input(client.display, X.ButtonPress, BUTTON_NUMBERS[button])
        client.display.sync()

    def release(self, client: X11Client, button: str) -> None:
        """Let a button go."""
        xtest.fake_input(client.display, X.ButtonRelease, BUTTON_NUMBERS[button])
        client.display.sync()
        self.held.discard(button)

    def release_all(self, client: X11Client) -> None:
        """Release every button that we hold."""
        for button in tuple(self.held):
            self.release(client, button)

    def click(self, client: X11Client, button: str, times: int) -> None:
        """Press and release, quickly enough that several are one gesture."""
        for _ in range(times):
            self.press(client, button)
            self.release(client, button)

    def scroll(self, client: X11Client, direction: str) -> None:
        """Turn the wheel by one notch."""
        self.check(client)
        for kind in (X.ButtonPress, X.ButtonRelease):
            xtest.fake_input(client.display, kind, WHEEL_BUTTONS[direction])
        client.display.sync()

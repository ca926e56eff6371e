"""Focus and pointer of the user's desktop: borrowed for an action and restored after it.

The capability `lent` (scope session).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from time import monotonic

import anyio

from handrail import Downstream, PersonAtWork, Screen, ServiceContext, Window
from handrail_gui.observe import outline
from handrail_gui.platforms.config import GuiConfig
from handrail_gui.platforms.input_driver import InputDriver

# Seconds that a window manager is given to make the window active that was clicked, and between two looks.
ACTIVATION_TIMEOUT_S = 1.0
FOCUS_POLL_S = 0.02

ScreenPoint = tuple[int, int]


@dataclass(frozen=True, slots=True)
class SavedFocus:
    """State of the user's desktop before the agent acted: the active window and the pointer position.

    `pointer` is None if the agent had left it there. `windows` and `menus` are the ids of those that were open.
    """

    window: str | None
    pointer: ScreenPoint | None
    windows: frozenset[str]
    menus: frozenset[str]


@dataclass(frozen=True, slots=True)
class CompletedAction:
    """Record of a completed action.

    `at`: where it left the pointer, None if it did not move it. `clicked`: it pressed a button there. `keeps`: the
    pointer position was the purpose of the action, or its effect was not waited for.
    """

    at: ScreenPoint | None = None
    clicked: bool = False
    keeps: bool = False


class FocusRestorer:
    """Focus and pointer that one session has to restore for the user of its desktop; does nothing unless `on`."""

    def __init__(self, hands: InputDriver, screen: Screen, *, on: bool) -> None:
        self._hands = hands
        self._screen = screen
        self._on = on
        self._owed: SavedFocus | None = None
        # Whether a menu or window that an earlier action opened has put off the giving back.
        self._put_off = False
        # Where the agent works, and the window that the focus went back to.
        self._works_in: str | None = None
        self._returned_to: str | None = None
        # Where the agent left the pointer, as long as that is not given back.
        self._left_at: ScreenPoint | None = None

    async def window(self) -> str | None:
        """Return the inactive window that keys without a target are meant for, or None.

        It is the window the agent works in, while the user's own window has the focus back.
        """
        if self._returned_to is None:
            return None
        windows = await self._screen.windows()
        there = any(window.id == self._works_in for window in windows)
        return self._works_in if there and _find_active_id(windows) == self._returned_to else None

    def forget(self) -> None:
        """Leave the focus to the agent where it is now: nothing is restored."""
        self._owed, self._put_off = None, False
        self._works_in = self._returned_to = None

    async def take(self, *, keys: bool) -> None:
        """Before an action: note what the person has. The window that `keys` are for becomes the active one."""
        if not self._on:
            return
        at, windows = await self._hands.pointer(), await self._screen.windows()
        if self._owed is None or at != self._left_at:
            known = frozenset(window.id for window in windows)
            pointer = None if at == self._left_at else at
            self._owed, self._put_off = SavedFocus(_find_active_id(windows), pointer, known, await self._menus()), False
        self._left_at = at
        window = await self.window() if keys else None
        if window is not None and not await self._hands.activate(window):
            named = next(outline.format_window_title(found) for found in windows if found.id == window)
            raise Downstream(
                f"the window {named!r}, which the keys are for, does not get them; nothing was pressed",
                hint="call window_focus first",
            )

    async def give_back(self, done: CompletedAction) -> dict[str, bool]:
        """Restore focus and pointer after an action; return what was restored and whether that was verified.

        If the action opened a menu or window, that keeps the focus and the pointer for the next action. What the user
        has changed meanwhile stays.
        """
        owed, self._owed = self._owed, None
        if owed is None:
            return {}
        expected, self._left_at = done.at or self._left_at, await self._hands.pointer()
        if self._left_at != expected:
            # Where it is now is the person's own place for it.
            self._left_at = None
            return {}
        active = await self._settled(owed, done)
        opened = active is not None and active.id not in owed.windows
        if done.keeps or opened or await self._menus() - owed.menus:
            self._owed, self._put_off = owed, self._put_off or not done.keeps
            self._works_in, self._returned_to = active.id if active else None, None
            return {}
        taken = active is not None and (
            self._put_off
            or active.id == self._works_in
            or (done.clicked and done.at is not None and active.rect.contains(*done.at))
        )
        if active is not None and (taken or done.clicked):
            self._works_in, self._returned_to = active.id, None
        try:
            return await self._pay(owed, active.id if active is not None and taken else None)
        # They are at it again, and have it as they like.
        except PersonAtWork:
            return {}

    async def _settled(self, owed: SavedFocus, done: CompletedAction) -> Window | None:
        """Return the active window after giving a clicked window time to become active."""
        deadline = monotonic() + (ACTIVATION_TIMEOUT_S if done.clicked else 0)
        while True:
            windows = await self._screen.windows()
            active = next((window for window in windows if window.active), None)
            clicked = next(
                (w for w in windows if done.at and w.state != "minimized" and w.rect.contains(*done.at)), None
            )
            # Between two windows a window manager may tell of none.
            yet = None if active is None else active.id
            waits = clicked is not None and clicked.id != owed.window and yet in (None, owed.window)
            if not waits or monotonic() > deadline:
                return active
            await anyio.sleep(FOCUS_POLL_S)

    async def _pay(self, owed: SavedFocus, taken: str | None) -> dict[str, bool]:
        """Move the pointer back, and return the focus if an action moved it to the window `taken`."""
        paid: dict[str, bool] = {}
        if owed.pointer is not None and owed.pointer != self._left_at:
            await self._hands.move(*owed.pointer)
            paid["pointer"] = await self._hands.pointer() == owed.pointer
        if paid.get("pointer", owed.pointer is not None):
            self._left_at = None
        if taken not in (None, owed.window) and await self._is_shown(owed.window):
            paid["focus"] = await self._activated(str(owed.window))
            self._returned_to = owed.window if paid["focus"] else None
        return paid

    async def _activated(self, window: str) -> bool:
        try:
            return await self._hands.activate(window)
        # Something took the keyboard meanwhile.
        except Downstream:
            return False

    async def _is_shown(self, window: str | None) -> bool:
        return any(found.id == window and found.state != "minimized" for found in await self._screen.windows())

    async def _menus(self) -> frozenset[str]:
        return frozenset(surface.id for surface in await self._hands.surfaces() if surface.state == "popup")

    async def close(self) -> None:
        """Do nothing; there is nothing to release."""


def _find_active_id(windows: Sequence[Window]) -> str | None:
    return next((window.id for window in windows if window.active), None)


async def open_focus_restorer(context: ServiceContext) -> FocusRestorer:
    """Create the service for one session.

    It is active only on Linux desktops that are not private, if `give_back` is configured: only an X server reports
    open menus, which restoring the focus must not close.
    """
    hands: InputDriver = await context.service("hands")
    wanted = context.config.give_back if isinstance(context.config, GuiConfig) else GuiConfig().give_back
    return FocusRestorer(
        hands, await context.service("screen"), on=wanted and not hands.private and sys.platform == "linux"
    )

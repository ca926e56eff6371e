"""Interface to a platform's own API for operating a desktop. All methods are called in one thread, in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from handrail import Rect, Window
from handrail.desktop.key_chords import KeyChord
from handrail_gui.platforms.terminals import TerminalWindow

WindowState = Literal["normal", "minimized", "maximized", "fullscreen"]


@dataclass(frozen=True, slots=True)
class NativeMonitor:
    """A monitor: its rectangle and the part of it that panels leave free, in screen pixels.

    `scale` is how much larger than usual its programs draw. On macOS screen pixels are points, of which a Retina monitor makes four dots.
    """

    rect: Rect
    free: Rect
    scale: float = 1.0
    name: str = ""


class NativeWindows(Protocol):
    """Monitors and windows. A change is asked for here, and read back by `managing`."""

    def monitors(self) -> Sequence[NativeMonitor]:
        """Return the monitors, the main one first."""
        ...

    def windows(self) -> list[Window]:
        """Return the windows of the task list, topmost first."""
        ...

    def surfaces(self) -> list[Window]:
        """Everything that covers a part of the screen and takes clicks, topmost first."""
        ...

    def terminals(self) -> list[TerminalWindow]:
        """Return the terminal windows, topmost first."""
        ...

    def ask_active(self, window: str) -> None:
        """Ask for a window to be raised and to get the keyboard, also a minimized one."""
        ...

    def has_keyboard(self, window: str) -> bool:
        """Return True if the window receives typed keys.

        Raises `Downstream` if an open menu takes them, whatever window is active.
        """
        ...

    def ask_state(self, window: str, state: WindowState) -> None:
        """Ask for it to be normal, minimized or maximized. Normal undoes the last of the others."""
        ...

    def ask_place(self, window: str, own: Rect) -> None:
        """Ask for its own area, without decoration, to be there."""
        ...

    def ask_to_close(self, window: str) -> None:
        """Ask its program to close it."""
        ...


class NativeInput(Protocol):
    """Mouse and keyboard. Nothing here checks if the user is at work; `NativeInputDriver` does."""

    def pointer(self) -> tuple[int, int]:
        """Return the position of the pointer."""
        ...

    def move(self, x: int, y: int) -> None:
        """Put the pointer there; with a button down, that is a drag."""
        ...

    def button(self, button: str, *, down: bool, nth: int = 1) -> None:
        """Press a button or let it go; `nth` click of one gesture."""
        ...

    def wheel(self, direction: str) -> None:
        """Turn the wheel by one notch: up, down, left, right."""
        ...

    def chord(self, chord: KeyChord) -> None:
        """Press keys together and release them, even on errors."""
        ...

    def type_text(self, text: str) -> None:
        """Type a short text of any script."""
        ...

    def release_keys(self) -> None:
        """Release every held key."""
        ...

    def check_open(self) -> None:
        """`Downstream` when a lock screen or a question of the system itself takes all input."""
        ...

    def person(self) -> float | None:
        """Return the seconds since the user's own input; None without any since we began. Our input does not count."""
        ...

    def idle(self) -> float | None:
        """Return the seconds since the last input by anyone."""
        ...

    def worked_through(self) -> bool:
        """Wait until the active program has read all input so far; False when it does not say."""
        ...


class NativeClipboard(Protocol):
    """The clipboard."""

    def text(self) -> str | None:
        """Return the text, or None without any."""
        ...

    def formats(self) -> list[str]:
        """Return the available formats, as the platform names them."""
        ...

    def write(self, text: str) -> None:
        """Replace all of it by a text."""
        ...

    def lend(self, text: str, paste: Callable[[], None]) -> bool:
        """Offer the text while `paste` runs and until a program has taken it, then restore all formats.

        Returns False if no program took it, or if not all formats can be restored, in which case nothing was tried.
        """
        ...

    def saved(self) -> Any:
        """Return the whole content, for `put_back`; None if some of it cannot be retrieved."""
        ...

    def put_back(self, saved: Any) -> None:
        """Replace all of it by what was saved."""
        ...


class NativeSystem(Protocol):
    """A platform."""

    @property
    def windowing(self) -> NativeWindows: ...

    @property
    def pointing(self) -> NativeInput: ...

    @property
    def clipping(self) -> NativeClipboard: ...

    def grab(self, area: Rect) -> Any:
        """Capture the pixels of a part of the screen: height x width x 3, BGR, one for each screen pixel."""
        ...

    def end(self) -> None:
        """Give back what the thread has taken."""
        ...

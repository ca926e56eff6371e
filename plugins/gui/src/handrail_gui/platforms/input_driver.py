"""Platform-independent interface for acting on a desktop: the capability `hands` (scope desktop)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Literal, Protocol

from handrail import Window
from handrail.desktop.key_chords import KeyChord
from handrail_gui.platforms.terminals import TerminalWindow

# "primary" is what was selected last, on X11 and Wayland.
ClipboardSelection = Literal["clipboard", "primary"]

# Looks at the surfaces, topmost first, right before a button goes down; what it raises keeps the button up.
SurfaceCheck = Callable[[Sequence[Window]], None]


@dataclass(frozen=True, slots=True)
class WindowPlacement:
    """Requested window geometry: the content area in screen pixels, without decoration; None keeps a value as it is."""

    x: int | None = None
    y: int | None = None
    width: int | None = None
    height: int | None = None


@dataclass(frozen=True, slots=True)
class PlacementResult:
    """A window after it was moved (None when it is gone), and whether it is where it was to be, as exactly as its program's steps allow."""

    window: Window | None
    done: bool


class ClipboardDriver(Protocol):
    """The capability `clipboard` (scope desktop)."""

    async def clipboard_text(self, selection: ClipboardSelection = "clipboard") -> str | None:
        """Return the text, or None without any. Raises `Downstream` if there is text that cannot be retrieved."""
        ...

    async def clipboard_formats(self, selection: ClipboardSelection = "clipboard") -> list[str]:
        """Return the available formats, as the platform names them."""
        ...

    async def write_clipboard(self, text: str, selection: ClipboardSelection = "clipboard") -> None:
        """Put a text on the clipboard, where it stays until replaced."""
        ...


class InputDriver(ClipboardDriver, Protocol):
    """Pointer, keyboard, windows and clipboard of a desktop. Points are screen pixels.

    Each input method is one step that is done completely or not at all. Before the step it raises `Failsafe` if the
    user has moved the pointer into a corner of the screen, and `PersonAtWork` if the user has used the mouse or
    keyboard since `check`; everything held down is released first.
    """

    @property
    def private(self) -> bool:
        """True if the desktop is private, so that no one else types there."""
        ...

    def by_hand(self) -> InputDriver:
        """Return the same desktop for manual control, where neither screen corners nor other user input stop it."""
        ...

    async def pointer(self) -> tuple[int, int]:
        """Return the position of the pointer."""
        ...

    async def check(self) -> None:
        """Wait while the user uses the mouse or keyboard; raise `Failsafe` if they moved the pointer into a corner."""
        ...

    async def move(self, x: int, y: int) -> None:
        """Move the pointer there."""
        ...

    async def press(self, button: str, sure: SurfaceCheck | None = None) -> None:
        """Hold a mouse button (left, middle, right) down, in one step with what makes sure."""
        ...

    async def release(self, button: str) -> None:
        """Let a mouse button go."""
        ...

    async def click(self, button: str, times: int, sure: SurfaceCheck | None = None) -> None:
        """Click where the pointer is, in one step with what makes sure."""
        ...

    async def scroll(self, direction: str) -> None:
        """Turn the wheel by one notch: up, down, left, right."""
        ...

    async def drag_over(self, x: int, y: int) -> None:
        """Move in small steps, as a drag does."""
        ...

    async def chord(self, chord: KeyChord) -> None:
        """Press keys together and release them."""
        ...

    async def release_all(self) -> None:
        """Release every held button and key, and the keys remapped for characters of other scripts."""
        ...

    async def pieces(self, text: str) -> list[str]:
        """Split the text into pieces that `type_piece` can type."""
        ...

    async def type_piece(self, piece: str) -> None:
        """Type with keys."""
        ...

    def borrowed(self) -> AbstractAsyncContextManager[None]:
        """Put all formats of the clipboard back at its end. `Downstream` at once where they cannot all be had."""
        ...

    async def paste(self, text: str, chord: KeyChord) -> bool:
        """Paste with `chord` and restore the clipboard in all its formats.

        Returns False if no program took the text, or if the formats could not be restored, in which case nothing was
        tried.
        """
        ...

    async def worked_through(self) -> bool:
        """Wait until the active program has read all input so far; False when it does not say."""
        ...

    async def surfaces(self) -> list[Window]:
        """Everything that covers a part of the screen and takes clicks, topmost first, with its decoration."""
        ...

    async def terminals(self) -> list[TerminalWindow]:
        """Return the windows whose programs run others on a terminal, where typed text is a command; topmost first."""
        ...

    async def idle(self) -> float | None:
        """Return the seconds since the last input by anyone, including our own; None if the platform does not count."""
        ...

    async def gets_keys(self, window: str) -> bool:
        """Return True if typed keys go to the window with that id or to one inside it.

        A window manager may be late to report which window is active.
        """
        ...

    async def activate(self, window: str) -> bool:
        """Raise a window by its id, also a minimized one, and give it the keyboard; False when it does not get it."""
        ...

    async def ask_to_close(self, window: str) -> bool:
        """Ask a window's program to close it; False when it is still there after a moment, as while the program asks something first."""
        ...

    async def maximize(self, window: str) -> bool:
        """Let a window fill its monitor; False when it does not."""
        ...

    async def minimize(self, window: str) -> bool:
        """Put a window away; False when it stays."""
        ...

    async def restore(self, window: str) -> bool:
        """Undo the last of minimized, fullscreen and maximized; False if nothing changes.

        A window in none of these states stays as it is.
        """
        ...

    async def place(self, window: str, where: WindowPlacement) -> PlacementResult:
        """Move and resize a window, which is neither minimized nor maximized then."""
        ...

    async def place_in(self, window: str, layout: str) -> PlacementResult:
        """Fit a window with its decoration into a half of its monitor (left_half, right_half, top_half, bottom_half)."""
        ...

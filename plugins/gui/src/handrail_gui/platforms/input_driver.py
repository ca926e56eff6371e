"""What tools need to act on a desktop, whatever the platform: the capability `hands` (scope desktop)."""

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
    """Where to put a window: its own area in screen pixels, without decoration; None leaves a value as it is."""

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
        """Its text, None when it has none; `Downstream` when it has one that cannot be had."""
        ...

    async def clipboard_formats(self, selection: ClipboardSelection = "clipboard") -> list[str]:
        """Its formats, as the platform names them."""
        ...

    async def write_clipboard(self, text: str, selection: ClipboardSelection = "clipboard") -> None:
        """Put a text into it, for as long as nobody puts something else there."""
        ...


class InputDriver(ClipboardDriver, Protocol):
    """Pointer, keyboard, windows and clipboard. Points are screen pixels.

    Each input method is one step that is done whole or not at all, and raises `Failsafe` before it when a person has moved the pointer into a
    corner of the screen, `PersonAtWork` when one uses mouse or keyboard since `check`; everything that was held is released then.
    """

    @property
    def private(self) -> bool:
        """Whether the desktop is a private one, where nobody else types."""
        ...

    def by_hand(self) -> InputDriver:
        """The same desktop for a person's own use: no corner and no other hand stops it."""
        ...

    async def pointer(self) -> tuple[int, int]:
        """Where the pointer is."""
        ...

    async def check(self) -> None:
        """Wait while a person uses mouse or keyboard; raise `Failsafe` when they have moved the pointer into a corner."""
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
        """One notch of the wheel: up, down, left, right."""
        ...

    async def drag_over(self, x: int, y: int) -> None:
        """Move in small steps, as a drag does."""
        ...

    async def chord(self, chord: KeyChord) -> None:
        """Press keys together and release them."""
        ...

    async def release_all(self) -> None:
        """Let go of every button and key that is held, and of keys that were lent to letters of other scripts."""
        ...

    async def pieces(self, text: str) -> list[str]:
        """The text in pieces that `type_piece` can type."""
        ...

    async def type_piece(self, piece: str) -> None:
        """Type with keys."""
        ...

    def borrowed(self) -> AbstractAsyncContextManager[None]:
        """Put all formats of the clipboard back at its end. `Downstream` at once where they cannot all be had."""
        ...

    async def paste(self, text: str, chord: KeyChord) -> bool:
        """Paste by `chord` and put the clipboard back in all its formats.

        False when no program took the text, or when the formats could not be put back, so that nothing was tried.
        """
        ...

    async def worked_through(self) -> bool:
        """Wait until the active program has read all input so far; False when it does not say."""
        ...

    async def surfaces(self) -> list[Window]:
        """Everything that covers a part of the screen and takes clicks, topmost first, with its decoration."""
        ...

    async def terminals(self) -> list[TerminalWindow]:
        """The windows whose programs run others on a terminal of their own, so that typed text is a command; topmost first."""
        ...

    async def idle(self) -> float | None:
        """Seconds since the last input of anybody, ours too; None where the platform does not count them."""
        ...

    async def gets_keys(self, window: str) -> bool:
        """Whether what is typed goes to a window, by its id, or to one inside it: a window manager may come late to say which is active."""
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
        """Undo the last of minimized, fullscreen and maximized; False when nothing changes. A window that is none of them stays as it is."""
        ...

    async def place(self, window: str, where: WindowPlacement) -> PlacementResult:
        """Move and resize a window, which is neither minimized nor maximized then."""
        ...

    async def place_in(self, window: str, layout: str) -> PlacementResult:
        """Fit a window with its decoration into a half of its monitor (left_half, right_half, top_half, bottom_half)."""
        ...

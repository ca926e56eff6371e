"""The capability `hands` by a platform's own calls: each method is one job of the desktop's thread."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio

from handrail import Downstream, Failsafe, InvalidArguments, PersonAtWork, ServiceContext, Window
from handrail.desktop.key_chords import KeyChord
from handrail.desktop.thread_worker import ThreadWorker
from handrail_gui.platforms.config import GuiConfig
from handrail_gui.platforms.geometry import bounding_rect, corner_pixels, drag_points
from handrail_gui.platforms.input_driver import (
    ClipboardSelection,
    InputDriver,
    PlacementResult,
    SurfaceCheck,
    WindowPlacement,
)
from handrail_gui.platforms.native import window_control
from handrail_gui.platforms.protocol import NativeSystem
from handrail_gui.platforms.terminals import TerminalWindow

# Seconds for what takes several turns of another program.
WINDOW_TIMEOUT_S = 12.0
PASTE_TIMEOUT_S = 30.0
# Seconds that a program is given between two points of a drag.
DRAG_STEP_S = 0.01

# Characters typed in one step.
TYPED_PIECE_CHARS = 40


@dataclass(slots=True)
class InputGuard:
    """Guard that stops input when the user moves the pointer into a screen corner or is at work.

    `held` are the mouse buttons we hold down. `pause` is the number of seconds for which the user's own input blocks
    the agent; 0: it does not. Nothing stops input made `by_hand`.
    """

    pause: float = 0.0
    by_hand: bool = False
    alarm: Callable[[], None] = lambda: None
    held: set[str] = field(default_factory=set[str])
    _left_at: tuple[int, int] | None = None
    # Since when a person has been seen at work, as seconds since their last input; None: nobody was there at the last look.
    _quiet: bool = False

    def left(self, system: NativeSystem) -> float:
        """Return the seconds until the user has been idle for long enough; at 0 they are expected to stay away."""
        since = system.pointing.person() if self.pause and not self.by_hand else None
        left = 0.0 if since is None else max(0.0, self.pause - since)
        self._quiet = left == 0
        return left

    def check(self, system: NativeSystem) -> None:
        """Raise `Failsafe` or `PersonAtWork`, with everything released, or `Downstream` when the system itself takes all input."""
        if self.by_hand:
            return
        system.pointing.check_open()
        at = system.pointing.pointer()
        if at != self._left_at and at in corner_pixels(bounding_rect([m.rect for m in system.windowing.monitors()])):
            self.release_all(system)
            self.alarm()
            raise Failsafe(
                f"somebody moved the pointer into the corner {at} of the screen: input has stopped",
                hint="a person goes on by moving the pointer out of it, and by `handrail resume`",
            )
        since = system.pointing.person() if self.pause and self._quiet else None
        if since is not None and since < self.pause:
            self.release_all(system)
            raise PersonAtWork(
                "a person is using mouse or keyboard: input has stopped where it was",
                hint="see what has become of it; the next call waits until they are done",
            )

    def move(self, system: NativeSystem, x: int, y: int) -> None:
        """Put the pointer there, and remember that we did."""
        self.check(system)
        system.pointing.move(x, y)
        self._left_at = system.pointing.pointer()

    def press(self, system: NativeSystem, button: str, *, nth: int = 1) -> None:
        """Hold a button down."""
        self.check(system)
        self.held.add(button)
        system.pointing.button(button, down=True, nth=nth)

    def release(self, system: NativeSystem, button: str, *, nth: int = 1) -> None:
        """Let a button go."""
        system.pointing.button(button, down=False, nth=nth)
        self.held.discard(button)

    def click(self, system: NativeSystem, button: str, times: int) -> None:
        """Press and release, quickly enough that several are one gesture."""
        for nth in range(1, times + 1):
            self.press(system, button, nth=nth)
            self.release(system, button, nth=nth)

    def release_all(self, system: NativeSystem) -> None:
        """Release every button and key that we hold."""
        for button in tuple(self.held):
            self.release(system, button)
        system.pointing.release_keys()


class NativeInputDriver:
    """Pointer, keyboard, windows and clipboard of the person's own desktop."""

    def __init__(self, worker: ThreadWorker[NativeSystem], guard: InputGuard) -> None:
        self._worker = worker
        self._guard = guard

    @property
    def private(self) -> bool:
        """Always False: private desktops exist only on Linux."""
        return False

    def by_hand(self) -> InputDriver:
        """Return the same desktop for manual control by the user."""
        return NativeInputDriver(self._worker, InputGuard(by_hand=True))

    # Pointer

    async def pointer(self) -> tuple[int, int]:
        """Return the position of the pointer."""
        return await self._worker.run(lambda system: system.pointing.pointer())

    async def check(self) -> None:
        """Wait while the user uses the mouse or keyboard; raise `Failsafe` if they moved the pointer into a corner."""
        while (left := await self._worker.run(self._guard.left)) > 0:
            await anyio.sleep(left)
        await self._worker.run(self._guard.check)

    async def move(self, x: int, y: int) -> None:
        """Move the pointer there."""
        await self._worker.run(lambda system: self._guard.move(system, x, y))

    async def press(self, button: str, sure: SurfaceCheck | None = None) -> None:
        """Hold a mouse button down."""

        def job(system: NativeSystem) -> None:
            _check_surfaces(system, sure)
            self._guard.press(system, button)

        await self._worker.run(job)

    async def release(self, button: str) -> None:
        """Let a mouse button go."""
        await self._worker.run(lambda system: self._guard.release(system, button))

    async def click(self, button: str, times: int, sure: SurfaceCheck | None = None) -> None:
        """Click where the pointer is."""

        def job(system: NativeSystem) -> None:
            _check_surfaces(system, sure)
            self._guard.click(system, button, times)

        await self._worker.run(job)

    async def scroll(self, direction: str) -> None:
        """Turn the wheel by one notch."""
        await self._checked(lambda system: system.pointing.wheel(direction))

    async def drag_over(self, x: int, y: int) -> None:
        """Move in small steps, as a drag does."""
        for point in drag_points(await self.pointer(), (x, y)):
            await self.move(*point)
            await anyio.sleep(DRAG_STEP_S)

    # Keyboard

    async def chord(self, chord: KeyChord) -> None:
        """Press keys together and release them."""
        await self._checked(lambda system: system.pointing.chord(chord))

    async def release_all(self) -> None:
        """Release every held button and key."""
        await self._worker.run(self._guard.release_all)

    async def pieces(self, text: str) -> list[str]:
        """Split the text into pieces that `type_piece` can type."""
        return [text[start : start + TYPED_PIECE_CHARS] for start in range(0, len(text), TYPED_PIECE_CHARS)]

    async def type_piece(self, piece: str) -> None:
        """Type with keys."""
        await self._checked(lambda system: system.pointing.type_text(piece))

    async def worked_through(self) -> bool:
        """Wait until the active program has read all input so far; False when it does not say."""
        return await self._worker.run(lambda system: system.pointing.worked_through())

    # Clipboard

    async def paste(self, text: str, chord: KeyChord) -> bool:
        """Paste by `chord` and put the clipboard back in all its formats."""

        def job(system: NativeSystem) -> bool:
            self._guard.check(system)
            return system.clipping.lend(text, lambda: system.pointing.chord(chord))

        return await self._worker.run(job, timeout=PASTE_TIMEOUT_S)

    @asynccontextmanager
    async def borrowed(self) -> AsyncGenerator[None]:
        """Restore all formats of the clipboard at exit, whatever has been put into it meanwhile.

        Raises `Downstream` at entry if some of them could not be restored.
        """
        before = await self._worker.run(lambda system: system.clipping.saved(), timeout=PASTE_TIMEOUT_S)
        if before is None:
            raise Downstream("what is in the clipboard could not all be put back")
        try:
            yield
        finally:
            # Also when the call is stopped meanwhile.
            with anyio.CancelScope(shield=True):
                await self._worker.run(lambda system: system.clipping.put_back(before))

    async def clipboard_text(self, selection: ClipboardSelection = "clipboard") -> str | None:
        """Return the clipboard's text, or None without any."""
        _ensure_clipboard_selection(selection)
        return await self._worker.run(lambda system: system.clipping.text())

    async def clipboard_formats(self, selection: ClipboardSelection = "clipboard") -> list[str]:
        """Return the available formats, as the platform names them."""
        _ensure_clipboard_selection(selection)
        return await self._worker.run(lambda system: system.clipping.formats())

    async def write_clipboard(self, text: str, selection: ClipboardSelection = "clipboard") -> None:
        """Put a text into it."""
        _ensure_clipboard_selection(selection)
        await self._worker.run(lambda system: system.clipping.write(text))

    # Windows

    async def surfaces(self) -> list[Window]:
        """Everything that covers a part of the screen and takes clicks, topmost first, with its decoration."""
        return await self._worker.run(lambda system: system.windowing.surfaces())

    async def terminals(self) -> list[TerminalWindow]:
        """Return the terminal windows, topmost first."""
        return await self._worker.run(lambda system: system.windowing.terminals())

    async def idle(self) -> float | None:
        """Return the seconds since the last input by anyone."""
        return await self._worker.run(lambda system: system.pointing.idle())

    async def gets_keys(self, window: str) -> bool:
        """Return True if typed keys go to the window."""
        return await self._worker.run(lambda system: system.windowing.has_keyboard(window))

    async def activate(self, window: str) -> bool:
        """Raise a window by its id and give it the keyboard."""
        return await self._worker.run(lambda system: window_control.focus_window(system.windowing, window))

    async def ask_to_close(self, window: str) -> bool:
        """Ask a window's program to close it."""
        return await self._managed(lambda system: window_control.ask_to_close(system.windowing, window))

    async def maximize(self, window: str) -> bool:
        """Let a window fill its monitor."""
        return await self._managed(lambda system: window_control.maximize_window(system.windowing, window))

    async def minimize(self, window: str) -> bool:
        """Put a window away."""
        return await self._managed(lambda system: window_control.minimize_window(system.windowing, window))

    async def restore(self, window: str) -> bool:
        """Undo the last of minimized, fullscreen and maximized."""
        return await self._managed(lambda system: window_control.restore_window(system.windowing, window))

    async def place(self, window: str, where: WindowPlacement) -> PlacementResult:
        """Move and resize a window."""
        return await self._worker.run(
            lambda system: window_control.place_window(system.windowing, window, where), timeout=WINDOW_TIMEOUT_S
        )

    async def place_in(self, window: str, layout: str) -> PlacementResult:
        """Fit a window with its decoration into a half of its monitor."""
        return await self._worker.run(
            lambda system: window_control.place_in_layout(system.windowing, window, layout), timeout=WINDOW_TIMEOUT_S
        )

    async def let_go(self) -> None:
        """Release everything that is held."""
        await self.release_all()

    async def close(self) -> None:
        """Release everything that is held; the thread is closed by its own service."""
        await self.release_all()

    async def _checked(self, act: Callable[[NativeSystem], None]) -> None:
        def job(system: NativeSystem) -> None:
            self._guard.check(system)
            act(system)

        await self._worker.run(job)

    async def _managed(self, act: Callable[[NativeSystem], bool]) -> bool:
        return await self._worker.run(act, timeout=WINDOW_TIMEOUT_S)


def _check_surfaces(system: NativeSystem, sure: SurfaceCheck | None) -> None:
    # Other programs go on between this look and the press: here nobody can hold them.
    if sure is not None:
        sure(system.windowing.surfaces())


def _ensure_clipboard_selection(selection: ClipboardSelection) -> None:
    if selection != "clipboard":
        raise InvalidArguments(
            f"this platform has no {selection!r} selection", hint='use selection="clipboard", the only one there is'
        )


async def open_input_driver(context: ServiceContext) -> NativeInputDriver:
    """Create the service for the context's desktop."""
    pause = context.config.pause if isinstance(context.config, GuiConfig) else GuiConfig().pause
    return NativeInputDriver(await context.service("system"), InputGuard(pause, alarm=context.stop_desktop))

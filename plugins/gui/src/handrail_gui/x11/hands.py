"""The capability `hands` on X11: each method is one job of the display's connection."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from time import monotonic

from Xlib.ext import screensaver

from handrail import Downstream, Rect, ServiceContext, Window
from handrail_gui.chords import Chord
from handrail_gui.hands import Place
from handrail_gui.terminals import Terminal, terminal_of
from handrail_gui.x11 import windows
from handrail_gui.x11.clipboard import Clipboard
from handrail_gui.x11.connection import Client, Connection
from handrail_gui.x11.keyboard import Keyboard
from handrail_gui.x11.pointer import Mouse, way

# Seconds that a window manager is given to do what it was asked.
MANAGED_S = 1.5
# A window that has not changed for so long stays as it is.
STEADY_S = 0.08
PASTE_S = 30.0


class X11Hands:
    """Pointer, keyboard, windows and clipboard of one display."""

    def __init__(self, connection: Connection, *, private: bool) -> None:
        self._connection = connection
        self.private = private
        self._mouse = Mouse(private)
        self._keyboard = Keyboard()
        self._clipboard = Clipboard()

    # Pointer

    async def pointer(self) -> tuple[int, int]:
        return await self._connection.run(self._mouse.position)

    async def check(self) -> None:
        await self._connection.run(self._check)

    async def move(self, x: int, y: int) -> None:
        await self._connection.run(lambda client: self._mouse.move(client, x, y))

    async def press(self, button: str) -> None:
        await self._connection.run(lambda client: self._mouse.press(client, button))

    async def release(self, button: str) -> None:
        await self._connection.run(lambda client: self._mouse.release(client, button))

    async def click(self, button: str, times: int) -> None:
        await self._connection.run(lambda client: self._mouse.click(client, button, times))

    async def scroll(self, direction: str) -> None:
        await self._connection.run(lambda client: self._mouse.scroll(client, direction))

    async def drag_over(self, x: int, y: int) -> None:
        start = await self.pointer()
        for point in way(start, (x, y)):
            await self.move(*point)
            await self.worked_through()

    # Keyboard

    async def chord(self, chord: Chord) -> None:
        await self._connection.run(lambda client: self._press_chord(client, chord))

    async def pieces(self, text: str) -> list[str]:
        return await self._connection.run(lambda client: self._keyboard.pieces(client, text))

    async def type_piece(self, piece: str) -> None:
        def job(client: Client) -> None:
            self._check(client)
            self._keyboard.type_text(client, piece)

        await self._connection.run(job)

    async def worked_through(self) -> bool:
        return await self._connection.run(self._keyboard.worked_through)

    async def release_all(self) -> None:
        await self._connection.run(self._release_all)

    # Clipboard

    async def paste(self, text: str, chord: Chord) -> bool:
        def job(client: Client) -> bool:
            self._check(client)
            self._keyboard.give_back(client)
            return self._clipboard.lend(client, text, lambda: self._keyboard.press_chord(client, chord))

        return await self._connection.run(job, timeout=PASTE_S)

    async def clipboard_text(self) -> str | None:
        return await self._connection.run(self._clipboard.text, timeout=PASTE_S)

    async def clipboard_formats(self) -> list[str]:
        return await self._connection.run(self._clipboard.formats)

    async def write_clipboard(self, text: str) -> None:
        await self._connection.run(lambda client: self._clipboard.write_text(client, text))

    # Windows

    async def surfaces(self) -> list[Window]:
        return await self._connection.run(windows.surfaces)

    async def terminals(self) -> list[Terminal]:
        return await self._connection.run(_terminals)

    async def idle(self) -> float | None:
        return await self._connection.run(_idle)

    async def activate(self, window: str) -> bool:
        number = int(window, 16)

        def job(client: Client) -> bool:
            windows.activate(client, number)
            return _until(client, lambda: windows.active_id(client) == number)

        return await self._connection.run(job)

    async def maximize(self, window: str, *, on: bool = True) -> bool:
        def job(client: Client) -> bool:
            windows.set_maximized(client, int(window, 16), on)
            return _until(
                client, lambda: (found := _find(client, window)) is not None and (found.state == "maximized") is on
            )

        return await self._connection.run(job)

    async def place(self, window: str, where: Place) -> Window | None:
        return await self._connection.run(lambda client: _place(client, window, where))

    async def place_in(self, window: str, layout: str) -> Window | None:
        def job(client: Client) -> Window | None:
            found = _find(client, window)
            if found is None:
                return None
            room = _half(windows.work_area(client, windows.monitors(client)[found.monitor]), layout)
            left, right, top, bottom = windows.frame_extents(client, int(window, 16))
            inner = Place(room.x + left, room.y + top, room.width - left - right, room.height - top - bottom)
            return _place(client, window, inner)

        return await self._connection.run(job)

    async def close(self) -> None:
        """Let go of everything that is held; the connection has an owner of its own."""
        # A screen that is gone holds nothing.
        with contextlib.suppress(Downstream):
            await self.release_all()

    def _check(self, client: Client) -> None:
        try:
            self._mouse.check(client)
        except BaseException:
            self._keyboard.release_all(client)
            raise

    def _press_chord(self, client: Client, chord: Chord) -> None:
        self._check(client)
        self._keyboard.press_chord(client, chord)

    def _release_all(self, client: Client) -> None:
        self._keyboard.release_all(client)
        self._keyboard.give_back(client)
        self._mouse.release_all(client)


def _until(client: Client, condition: Callable[[], bool], *, timeout: float = MANAGED_S) -> bool:
    """Whether a condition comes true in time; events go on being answered meanwhile."""
    deadline = monotonic() + timeout
    while not condition():
        if monotonic() > deadline:
            return False
        client.pump(lambda: False, timeout=0.01)
    return True


def _find(client: Client, window: str) -> Window | None:
    return next((found for found in windows.windows(client) if found.id == window), None)


def _place(client: Client, window: str, where: Place) -> Window | None:
    """Ask for the place and wait until the window has stopped changing."""
    windows.place(client, int(window, 16), where)
    wanted = (where.x, where.y, where.width, where.height)
    deadline, since, last = monotonic() + MANAGED_S, monotonic(), _find(client, window)

    while monotonic() < deadline and last is not None:
        have = (last.rect.x, last.rect.y, last.rect.width, last.rect.height)
        there = all(want is None or want == is_ for want, is_ in zip(wanted, have, strict=True))
        # A program that takes other sizes than the one asked for has stopped at one of its own.
        if monotonic() - since > (STEADY_S if there else 4 * STEADY_S):
            break
        client.pump(lambda: False, timeout=0.01)
        now = _find(client, window)
        if now != last:
            since, last = monotonic(), now
    return last


def _half(room: Rect, layout: str) -> Rect:
    width, height = room.width // 2, room.height // 2
    return {
        "left_half": Rect(room.x, room.y, width, room.height),
        "right_half": Rect(room.x + width, room.y, room.width - width, room.height),
        "top_half": Rect(room.x, room.y, room.width, height),
        "bottom_half": Rect(room.x, room.y + height, room.width, room.height - height),
    }[layout]


def _terminals(client: Client) -> list[Terminal]:
    found = [
        terminal_of(window.id, window.pid, _classes(client, window), active=window.active)
        for window in windows.windows(client)
        if window.state != "minimized"
    ]
    return sorted((terminal for terminal in found if terminal is not None), key=lambda terminal: not terminal.active)


def _classes(client: Client, window: Window) -> tuple[str, ...]:
    try:
        return client.window(int(window.id, 16)).get_wm_class() or ()
    except windows.GONE:
        return ()


def _idle(client: Client) -> float | None:
    if not client.display.has_extension(screensaver.extname):
        return None
    return screensaver.query_info(client.root).idle / 1000


async def open_hands(context: ServiceContext) -> X11Hands:
    """The service for the context's desktop."""
    return X11Hands(await context.service("x11"), private=context.desktop.private)

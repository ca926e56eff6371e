"""The capability `hands` on X11: each method is one job of the display's connection."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Callable

import anyio
from Xlib.ext import screensaver

from handrail import Downstream, ServiceContext, Window
from handrail.desktop.key_chords import KeyChord
from handrail_gui.platforms.config import GuiConfig
from handrail_gui.platforms.geometry import drag_points
from handrail_gui.platforms.input_driver import ClipboardSelection, PlacementResult, SurfaceCheck, WindowPlacement
from handrail_gui.platforms.terminals import TerminalWindow, identify_terminal
from handrail_gui.platforms.x11 import window_control, windows
from handrail_gui.platforms.x11.clipboard import X11Selection
from handrail_gui.platforms.x11.clipboard_keeper import ClipboardKeeper
from handrail_gui.platforms.x11.connection import X11Client, X11Connection, grab_x_server
from handrail_gui.platforms.x11.keyboard import XTestKeyboard
from handrail_gui.platforms.x11.pointer import XTestPointer
from handrail_gui.platforms.x11.user_activity import UserActivity

# Seconds for what takes several turns of another program.
WINDOW_TIMEOUT_S = 10.0
PASTE_TIMEOUT_S = 30.0


class X11InputDriver:
    """Pointer, keyboard, windows and clipboard of one display."""

    def __init__(
        self,
        connection: X11Connection,
        *,
        mouse: XTestPointer,
        person: UserActivity | None = None,
        heirs: ClipboardKeeper | None = None,
    ) -> None:
        self._connection = connection
        self._heirs = heirs
        self._mouse = mouse
        self._person = person
        self._keyboard = XTestKeyboard()
        self._selections: dict[ClipboardSelection, X11Selection] = {
            "clipboard": X11Selection("CLIPBOARD"),
            "primary": X11Selection("PRIMARY"),
        }

    @property
    def private(self) -> bool:
        return self._mouse.private

    def by_hand(self) -> X11InputDriver:
        return X11InputDriver(self._connection, mouse=XTestPointer(self.private, by_hand=True))

    # Pointer

    async def pointer(self) -> tuple[int, int]:
        return await self._connection.run(self._mouse.position)

    async def check(self) -> None:
        if (person := self._person) is not None:
            while (left := await self._connection.run(person.left)) > 0:
                await anyio.sleep(left)
        await self._connection.run(self._mouse.check)

    async def move(self, x: int, y: int) -> None:
        await self._connection.run(lambda client: self._mouse.move(client, x, y))

    async def press(self, button: str, sure: SurfaceCheck | None = None) -> None:
        await self._connection.run(lambda client: self._surely(client, sure, lambda: self._mouse.press(client, button)))

    async def release(self, button: str) -> None:
        await self._connection.run(lambda client: self._mouse.release(client, button))

    async def click(self, button: str, times: int, sure: SurfaceCheck | None = None) -> None:
        def job(client: X11Client) -> None:
            self._surely(client, sure, lambda: self._mouse.click(client, button, times))

        await self._connection.run(job)

    async def scroll(self, direction: str) -> None:
        await self._connection.run(lambda client: self._mouse.scroll(client, direction))

    async def drag_over(self, x: int, y: int) -> None:
        start = await self.pointer()
        for point in drag_points(start, (x, y)):
            await self.move(*point)
            await self.worked_through()

    # Keyboard

    async def chord(self, chord: KeyChord) -> None:
        await self._connection.run(lambda client: self._press_chord(client, chord))

    async def pieces(self, text: str) -> list[str]:
        return await self._connection.run(lambda client: self._keyboard.pieces(client, text))

    async def type_piece(self, piece: str) -> None:
        def job(client: X11Client) -> None:
            self._mouse.check(client)
            self._keyboard.type_text(client, piece)

        await self._connection.run(job)

    async def worked_through(self) -> bool:
        return await self._connection.run(self._keyboard.worked_through)

    async def release_all(self) -> None:
        await self._connection.run(self._release_all)

    # Clipboard

    async def paste(self, text: str, chord: KeyChord) -> bool:
        def job(client: X11Client) -> bool:
            self._mouse.check(client)
            return self._selections["clipboard"].lend(
                client,
                text,
                lambda: self._keyboard.press_chord(client, chord),
                busy=lambda: self._keyboard.falls_behind(client),
            )

        return await self._connection.run(job, timeout=PASTE_TIMEOUT_S)

    @contextlib.asynccontextmanager
    async def borrowed(self) -> AsyncGenerator[None]:
        clipboard = self._selections["clipboard"]
        before = await self._connection.run(clipboard.saved, timeout=PASTE_TIMEOUT_S)
        try:
            yield
        finally:
            # Also when the call is stopped meanwhile.
            with anyio.CancelScope(shield=True):
                await self._connection.run(lambda client: clipboard.put_back(client, before))

    async def clipboard_text(self, selection: ClipboardSelection = "clipboard") -> str | None:
        return await self._connection.run(self._selections[selection].text, timeout=PASTE_TIMEOUT_S)

    async def clipboard_formats(self, selection: ClipboardSelection = "clipboard") -> list[str]:
        return await self._connection.run(self._selections[selection].formats)

    async def write_clipboard(self, text: str, selection: ClipboardSelection = "clipboard") -> None:
        await self._connection.run(lambda client: self._selections[selection].write_text(client, text))

    # Windows

    async def surfaces(self) -> list[Window]:
        return await self._connection.run(windows.list_surfaces)

    async def terminals(self) -> list[TerminalWindow]:
        return await self._connection.run(_list_terminals)

    async def idle(self) -> float | None:
        return await self._connection.run(_idle_seconds)

    async def gets_keys(self, window: str) -> bool:
        return await self._connection.run(lambda client: windows.has_focus(client, int(window, 16)))

    async def activate(self, window: str) -> bool:
        return await self._connection.run(lambda client: window_control.focus_window(client, window))

    async def maximize(self, window: str) -> bool:
        return await self._connection.run(lambda client: window_control.maximize_window(client, window))

    async def minimize(self, window: str) -> bool:
        return await self._connection.run(lambda client: window_control.minimize_window(client, window))

    async def restore(self, window: str) -> bool:
        return await self._connection.run(lambda client: window_control.restore_window(client, window))

    async def ask_to_close(self, window: str) -> bool:
        return await self._connection.run(lambda client: window_control.ask_to_close(client, window))

    async def place(self, window: str, where: WindowPlacement) -> PlacementResult:
        return await self._connection.run(
            lambda client: window_control.place_window(client, window, where), timeout=WINDOW_TIMEOUT_S
        )

    async def place_in(self, window: str, layout: str) -> PlacementResult:
        return await self._connection.run(
            lambda client: window_control.place_in_layout(client, window, layout), timeout=WINDOW_TIMEOUT_S
        )

    async def let_go(self) -> None:
        """Release everything that is held."""
        await self.release_all()

    async def close(self) -> None:
        """Release everything that is held and keep the clipboard's content available.

        The connection is closed by its own service.
        """
        # A screen that is gone holds nothing.
        with contextlib.suppress(Downstream):
            await self.release_all()
            if self._heirs is not None:
                heirs = self._heirs
                await self._connection.run(
                    lambda client: heirs.hand_over(client, self._selections.values()), timeout=PASTE_TIMEOUT_S
                )

    def _surely(self, client: X11Client, sure: SurfaceCheck | None, act: Callable[[], None]) -> None:
        """Look and act with no other program in between, which could put a window there."""
        if sure is None:
            act()
            return
        with grab_x_server(client):
            sure(windows.list_surfaces(client))
            act()

    def _press_chord(self, client: X11Client, chord: KeyChord) -> None:
        self._mouse.check(client)
        self._keyboard.press_chord(client, chord)

    def _release_all(self, client: X11Client) -> None:
        self._keyboard.release_all(client)
        self._keyboard.give_back(client)
        self._mouse.release_all(client)


def _list_terminals(client: X11Client) -> list[TerminalWindow]:
    found = [
        identify_terminal(window.id, window.pid, _window_classes(client, window), active=window.active)
        for window in windows.list_windows(client)
        if window.state != "minimized"
    ]
    return [terminal for terminal in found if terminal is not None]


def _window_classes(client: X11Client, window: Window) -> tuple[str, ...]:
    try:
        return client.window(int(window.id, 16)).get_wm_class() or ()
    except windows.WINDOW_GONE_ERRORS:
        return ()


def _idle_seconds(client: X11Client) -> float | None:
    if not client.display.has_extension(screensaver.extname):
        return None
    return screensaver.query_info(client.root).idle / 1000


async def open_input_driver(context: ServiceContext) -> X11InputDriver:
    """Create the service for the context's desktop."""
    desktop, connection = context.desktop, await context.service("x11")
    # With a desktop that ends now nobody pastes any more.
    heirs = (
        None
        if desktop.temporary
        else ClipboardKeeper(str(desktop.display), {**context.environment, **desktop.environment})
    )
    person = None if desktop.private else await _watch_user(connection, context)
    mouse = XTestPointer(desktop.private, person, alarm=context.stop_desktop)
    return X11InputDriver(connection, mouse=mouse, person=person, heirs=heirs)


async def _watch_user(connection: X11Connection, context: ServiceContext) -> UserActivity | None:
    pause = context.config.pause if isinstance(context.config, GuiConfig) else GuiConfig().pause
    if pause == 0:
        return None
    person = UserActivity(pause)
    await connection.run(person.watch)
    return person

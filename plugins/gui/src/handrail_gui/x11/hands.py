"""The capability `hands` on X11: each method is one job of the display's connection."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Callable

import anyio
from Xlib.ext import screensaver

from handrail import Downstream, ServiceContext, Window
from handrail.desktops.chords import Chord
from handrail_gui.config import GuiConfig
from handrail_gui.geometry import way
from handrail_gui.hands import Place, Placed, Selection, Sure
from handrail_gui.terminals import Terminal, terminal_of
from handrail_gui.x11 import managing, windows
from handrail_gui.x11.clipboard import Clipboard
from handrail_gui.x11.connection import Client, Connection, held_still
from handrail_gui.x11.heirs import Heirs
from handrail_gui.x11.keyboard import Keyboard
from handrail_gui.x11.person import Person
from handrail_gui.x11.pointer import Mouse

# Seconds for what takes several turns of another program.
WINDOW_S = 10.0
PASTE_S = 30.0


class X11Hands:
    """Pointer, keyboard, windows and clipboard of one display."""

    def __init__(
        self, connection: Connection, *, mouse: Mouse, person: Person | None = None, heirs: Heirs | None = None
    ) -> None:
        self._connection = connection
        self._heirs = heirs
        self._mouse = mouse
        self._person = person
        self._keyboard = Keyboard()
        self._selections: dict[Selection, Clipboard] = {
            "clipboard": Clipboard("CLIPBOARD"),
            "primary": Clipboard("PRIMARY"),
        }

    @property
    def private(self) -> bool:
        return self._mouse.private

    def by_hand(self) -> X11Hands:
        return X11Hands(self._connection, mouse=Mouse(self.private, by_hand=True))

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

    async def press(self, button: str, sure: Sure | None = None) -> None:
        await self._connection.run(lambda client: self._surely(client, sure, lambda: self._mouse.press(client, button)))

    async def release(self, button: str) -> None:
        await self._connection.run(lambda client: self._mouse.release(client, button))

    async def click(self, button: str, times: int, sure: Sure | None = None) -> None:
        def job(client: Client) -> None:
            self._surely(client, sure, lambda: self._mouse.click(client, button, times))

        await self._connection.run(job)

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
            self._mouse.check(client)
            self._keyboard.type_text(client, piece)

        await self._connection.run(job)

    async def worked_through(self) -> bool:
        return await self._connection.run(self._keyboard.worked_through)

    async def release_all(self) -> None:
        await self._connection.run(self._release_all)

    # Clipboard

    async def paste(self, text: str, chord: Chord) -> bool:
        def job(client: Client) -> bool:
            self._mouse.check(client)
            return self._selections["clipboard"].lend(
                client,
                text,
                lambda: self._keyboard.press_chord(client, chord),
                busy=lambda: self._keyboard.falls_behind(client),
            )

        return await self._connection.run(job, timeout=PASTE_S)

    @contextlib.asynccontextmanager
    async def borrowed(self) -> AsyncGenerator[None]:
        clipboard = self._selections["clipboard"]
        before = await self._connection.run(clipboard.saved, timeout=PASTE_S)
        try:
            yield
        finally:
            # Also when the call is stopped meanwhile.
            with anyio.CancelScope(shield=True):
                await self._connection.run(lambda client: clipboard.put_back(client, before))

    async def clipboard_text(self, selection: Selection = "clipboard") -> str | None:
        return await self._connection.run(self._selections[selection].text, timeout=PASTE_S)

    async def clipboard_formats(self, selection: Selection = "clipboard") -> list[str]:
        return await self._connection.run(self._selections[selection].formats)

    async def write_clipboard(self, text: str, selection: Selection = "clipboard") -> None:
        await self._connection.run(lambda client: self._selections[selection].write_text(client, text))

    # Windows

    async def surfaces(self) -> list[Window]:
        return await self._connection.run(windows.surfaces)

    async def terminals(self) -> list[Terminal]:
        return await self._connection.run(_terminals)

    async def idle(self) -> float | None:
        return await self._connection.run(_idle)

    async def gets_keys(self, window: str) -> bool:
        return await self._connection.run(lambda client: windows.has_focus(client, int(window, 16)))

    async def activate(self, window: str) -> bool:
        return await self._connection.run(lambda client: managing.focus(client, window))

    async def maximize(self, window: str) -> bool:
        return await self._connection.run(lambda client: managing.maximize(client, window))

    async def minimize(self, window: str) -> bool:
        return await self._connection.run(lambda client: managing.minimize(client, window))

    async def restore(self, window: str) -> bool:
        return await self._connection.run(lambda client: managing.restore(client, window))

    async def ask_to_close(self, window: str) -> bool:
        return await self._connection.run(lambda client: managing.ask_to_close(client, window))

    async def place(self, window: str, where: Place) -> Placed:
        return await self._connection.run(lambda client: managing.place(client, window, where), timeout=WINDOW_S)

    async def place_in(self, window: str, layout: str) -> Placed:
        return await self._connection.run(lambda client: managing.place_in(client, window, layout), timeout=WINDOW_S)

    async def let_go(self) -> None:
        """Release everything that is held."""
        await self.release_all()

    async def close(self) -> None:
        """Let go of everything that is held, and leave what the clipboard has; the connection has an owner of its own."""
        # A screen that is gone holds nothing.
        with contextlib.suppress(Downstream):
            await self.release_all()
            if self._heirs is not None:
                heirs = self._heirs
                await self._connection.run(
                    lambda client: heirs.hand_over(client, self._selections.values()), timeout=PASTE_S
                )

    def _surely(self, client: Client, sure: Sure | None, act: Callable[[], None]) -> None:
        """Look and act with no other program in between, which could put a window there."""
        if sure is None:
            act()
            return
        with held_still(client):
            sure(windows.surfaces(client))
            act()

    def _press_chord(self, client: Client, chord: Chord) -> None:
        self._mouse.check(client)
        self._keyboard.press_chord(client, chord)

    def _release_all(self, client: Client) -> None:
        self._keyboard.release_all(client)
        self._keyboard.give_back(client)
        self._mouse.release_all(client)


def _terminals(client: Client) -> list[Terminal]:
    found = [
        terminal_of(window.id, window.pid, _classes(client, window), active=window.active)
        for window in windows.windows(client)
        if window.state != "minimized"
    ]
    return [terminal for terminal in found if terminal is not None]


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
    desktop, connection = context.desktop, await context.service("x11")
    # With a desktop that ends now nobody pastes any more.
    heirs = None if desktop.temporary else Heirs(str(desktop.display), {**context.environment, **desktop.environment})
    person = None if desktop.private else await _person(connection, context)
    mouse = Mouse(desktop.private, person, alarm=context.stop_desktop)
    return X11Hands(connection, mouse=mouse, person=person, heirs=heirs)


async def _person(connection: Connection, context: ServiceContext) -> Person | None:
    pause = context.config.pause if isinstance(context.config, GuiConfig) else GuiConfig().pause
    if pause == 0:
        return None
    person = Person(pause)
    await connection.run(person.watch)
    return person

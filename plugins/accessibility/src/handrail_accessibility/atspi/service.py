"""The service `accessibility` on Linux."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import anyio

from handrail import Desktop, Downstream, Element, Glance, StaleElement, ToolUnavailable, Tree
from handrail.desktops.patience import patience
from handrail_accessibility.atspi import actions, texts
from handrail_accessibility.atspi.bus import REGISTRY, Bus, BusLost, CallFailed, NoAnswer, maybe
from handrail_accessibility.atspi.choosing import choose, note_about, silent_one_is_active, unpublished
from handrail_accessibility.atspi.elements import Line, element_of
from handrail_accessibility.atspi.forest import as_shown
from handrail_accessibility.atspi.hidden import closed_items
from handrail_accessibility.atspi.nodes import Handle, Node, fetch_cell, fetch_node, number_of
from handrail_accessibility.atspi.places import Places
from handrail_accessibility.atspi.reading import Reading, Wanted
from handrail_accessibility.atspi.roles import State
from handrail_accessibility.atspi.tables import cell_called, fits
from handrail_accessibility.atspi.windows import PATIENCE_S, Roll, TopLevel, Windows
from handrail_accessibility.control import Scene
from handrail_accessibility.looks import focus_of, glance_of, ref_of

SCENE_DEADLINE_S = 1.5
GLANCE_DEADLINE_S = 3.0
# A program that was silent for a moment is asked again for what has the focus: keys that nobody can verify are worse than late ones.
FOCUS_DEADLINE_S = 12.0
SILENT_PATIENCE_S = 3.0
# A program begins to keep its cache some 0.4 s after the first listener has come.
CACHE_AFTER_S = 1.0

Services = Callable[[str], Awaitable[Any]]


class AtSpi:
    """One desktop's accessibility tree: connects on first use, and again after the bus has ended."""

    def __init__(self, desktop: Desktop, services: Services) -> None:
        self._desktop = desktop
        self._services = services
        self._opening = asyncio.Lock()
        self._bus: Bus | None = None
        self._roll: Roll | None = None
        self._listening_since = 0.0

    async def close(self) -> None:
        """Give the connection back."""
        if self._bus is not None:
            await self._bus.close()
        self._bus = self._roll = None

    # Reading

    async def tree(
        self,
        *,
        window: str | None = None,
        max_depth: int | None = None,
        query: str | None = None,
        full: bool = False,
        budget: int = 500,
        deadline: float = 3.0,
    ) -> Tree:
        """What the window shows now; see `handrail.Accessibility`."""
        wanted = Wanted(full, max_depth, query, budget)
        tree, _ = await self._look(window, wanted, deadline)
        return tree

    async def _look(
        self, window: str | None, wanted: Wanted, deadline: float, *, answer: float = PATIENCE_S
    ) -> tuple[Tree, bool]:
        """What the window shows, and whether its program was too slow to tell all of it. `answer`: see `Roll.call`."""
        reading: Reading | None = None
        async with self._reaching() as bus:
            windows = Windows(())
            chosen: TopLevel | None = None
            with anyio.move_on_after(patience(deadline)) as clock:
                windows = await self._windows(bus, answer)
                chosen = await choose(windows, window, self._places(bus))
                if chosen is not None:
                    reading = Reading(bus, chosen, windows.popups_of(chosen.node.app), wanted, self._places(bus))
                    await reading.run()
        late = clock.cancelled_caught or (chosen is None and await silent_one_is_active(windows, self._services))
        note = note_about(windows, chosen, late=clock.cancelled_caught)
        if chosen is None and window is None:
            note = "; ".join(part for part in (note, await unpublished(self._services)) if part)
        if chosen is None or reading is None:
            return Tree((), note=note, truncated=clock.cancelled_caught), late
        elements = reading.elements
        tree = Tree(
            elements[: wanted.budget],
            window=chosen.title,
            focused=focus_of(elements),
            truncated=reading.truncated or len(elements) > wanted.budget or clock.cancelled_caught,
            note=note,
        )
        return tree, late

    async def focused(self) -> Element | None:
        """The element with the keyboard focus in the active window, however many there are; None also when it is not told in time."""
        clock = asyncio.get_running_loop()
        end, answer = clock.time() + FOCUS_DEADLINE_S, PATIENCE_S
        while True:
            tree, late = await self._look(None, Wanted(full=True, focused=True), GLANCE_DEADLINE_S, answer=answer)
            if tree.focused is not None or not late or clock.time() >= end:
                return tree.focused
            answer = SILENT_PATIENCE_S

    async def glance(self) -> Glance:
        """All that shows in the active window, in short; `Downstream` when it cannot be read in time: a part is no measure of a change."""
        tree, late = await self._look(None, Wanted(full=True), GLANCE_DEADLINE_S)
        if late:
            raise Downstream("the active window was not read in time", hint="wait for its program")
        return glance_of(tree)

    async def titles(self) -> tuple[str, ...]:
        """The titles of all windows."""
        async with self._reaching() as bus:
            return (await self._windows(bus)).titles

    async def closed_items(self, *, window: str | None = None) -> tuple[Element, ...]:
        """The items of menus that are not open, and what else the window hides, as far as its application's cache knows them."""
        async with self._reaching() as bus:
            chosen = await choose(await self._windows(bus), window, self._places(bus))
            patience = self._listening_since + CACHE_AFTER_S - asyncio.get_running_loop().time()
            return await closed_items(bus, chosen, patience=patience) if chosen is not None else ()

    async def cell(self, name: str, *, window: str | None = None) -> Element | None:
        """The cell of that name in one of the window's tables, in view or not."""
        async with self._reaching() as bus:
            chosen = await choose(await self._windows(bus), window, self._places(bus))
            if chosen is None:
                return None
            for table in (await self.tree(window=window, query="table")).elements:
                node = await _fetch(bus, table)
                address = None if node is None else await cell_called(bus, node, name)
                cell = None if address is None else await maybe(fetch_cell, bus, ref_of(table, Handle).app, address)
                if cell is not None and fits(cell, name):
                    return await element_of(bus, await self._line(bus, cell, table))
        return None

    async def scene(self, element: Element) -> Scene:
        """The element's window as it is now."""
        handle = ref_of(element, Handle)
        async with self._reaching() as bus:
            windows = await self._windows(bus)
            if any(window.node.app == handle.app for window in windows.unanswered):
                raise NoAnswer(f"{element.window!r} belongs to {' or '.join(windows.silent)}")
            top = next((w for w in windows.windows if w.node.ref == (handle.app, handle.window)), None)
            if top is None or not top.shown:
                return Scene(windows.named, (), open=False)
            reading = Reading(bus, top, windows.popups_of(handle.app), Wanted(full=True), self._places(bus))
            with anyio.move_on_after(patience(SCENE_DEADLINE_S)):
                await reading.run()
            return Scene(windows.named, reading.elements)

    async def refresh(self, element: Element) -> Element | None:
        """The same element as it is now, or None when it is gone or something else is in its place."""
        current = await self.now(element)
        return current if current is not None and current.fingerprint == element.fingerprint else None

    async def now(self, element: Element) -> Element | None:
        """What is at the element's place now."""
        async with self._reaching() as bus:
            node = await _fetch(bus, element)
            if node is None:
                return None
            current = await element_of(bus, await self._line(bus, node, element))
            # What labels it was found by looking around it.
            return replace(current, id=element.id, text=current.text or ("" if node.kind.named else element.text))

    async def read_text(self, element: Element) -> str | None:
        """The whole text; None for what keeps none, and for passwords."""
        async with self._at(element) as (bus, node):
            return await texts.whole_text(bus, node)

    async def text_length(self, element: Element) -> int | None:
        """How many characters it holds."""
        async with self._at(element) as (bus, node):
            return await texts.text_length(bus, node)

    async def number(self, element: Element) -> float | None:
        """The number it stands at."""
        async with self._at(element) as (bus, node):
            return await maybe(number_of, bus, node) if node.offers("Value") else None

    async def options(self, element: Element) -> tuple[Element, ...]:
        """The choices of a combo box or list."""
        async with self._at(element) as (bus, node):
            found = await actions.options_of(bus, node)
            own = await self._line(bus, node, element)
            lines = [replace(own, node=option, depth=element.depth + 1) for option in found]
            return tuple([await element_of(bus, line) for line in lines])

    # Acting

    async def insert_text(self, element: Element, text: str) -> bool:
        """Insert at the caret by value, replacing the selection."""
        async with self._at(element) as (bus, node):
            return await texts.insert(bus, node, text)

    async def press(self, element: Element) -> str | None:
        """Do its main action."""
        async with self._at(element) as (bus, node):
            return await actions.press(bus, node)

    async def set_text(self, element: Element, text: str) -> bool:
        """Replace its text."""
        async with self._at(element) as (bus, node):
            return await texts.set_text(bus, node, text)

    async def set_number(self, element: Element, number: float) -> bool:
        """Set its number."""
        async with self._at(element) as (bus, node):
            return await actions.set_number(bus, node, number)

    async def focus(self, element: Element) -> bool:
        """Give it the keyboard focus."""
        async with self._at(element) as (bus, node):
            return await actions.focus(bus, node)

    async def select(self, element: Element) -> bool:
        """Select it in what holds it."""
        async with self._at(element) as (bus, node):
            return await actions.select(bus, node)

    async def expand(self, element: Element, *, wanted: bool) -> bool:
        """Ask it to open or close."""
        async with self._at(element) as (bus, node):
            return await actions.act(bus, node, actions.EXPAND if wanted else actions.COLLAPSE) is not None

    async def scroll_to(self, element: Element) -> bool:
        """Bring it into view."""
        async with self._at(element) as (bus, node):
            return await actions.scroll_to(bus, node)

    def _places(self, bus: Bus) -> Places:
        return Places(bus, self._services)

    async def _line(self, bus: Bus, node: Node, element: Element) -> Line:
        """The line of something that is at an element's place."""
        handle = ref_of(element, Handle)
        line = Line(node, element.depth, element.window, handle.window, element.window_id, pane=handle.pane)
        if not handle.placed:
            return line
        return replace(line, placing=await self._places(bus).of_one(handle.app, line.spot))

    # The connection

    @asynccontextmanager
    async def _at(self, element: Element) -> AsyncGenerator[tuple[Bus, Node]]:
        async with self._reaching() as bus:
            node = await _fetch(bus, element)
            if node is None or node.fingerprint(bus.guid) != element.fingerprint:
                raise StaleElement(f"{element.role} {element.text!r} is gone", hint="observe again")
            yield bus, node

    @asynccontextmanager
    async def _reaching(self) -> AsyncGenerator[Bus]:
        """A live connection; what goes wrong on it becomes an error that says so."""
        try:
            yield await self._connected()
        except BusLost as exc:
            await self.close()
            raise Downstream(
                f"desktop {self._desktop.name!r}: {exc}",
                hint="the next call connects again; if it fails too, start the desktop's accessibility bus (package at-spi2-core)",
            ) from exc
        except (NoAnswer, CallFailed) as exc:
            raise Downstream(f"the program does not answer: {exc}", hint="wait for it, or end it") from exc

    async def _connected(self) -> Bus:
        async with self._opening:
            if self._bus is None or not self._bus.alive:
                await self.close()
                self._bus = await self._connect()
                self._roll = Roll(self._bus)
            return self._bus

    async def _connect(self) -> Bus:
        address = self._desktop.environment.get("DBUS_SESSION_BUS_ADDRESS")
        if not address:
            raise ToolUnavailable(
                f"desktop {self._desktop.name!r} has no session bus, so programs publish no accessibility tree",
                hint="work on a private desktop, or log in to a desktop session",
            )
        bus = await Bus.connect(address, enable=self._desktop.private)
        # Programs keep the cache that is read in one call only while somebody listens.
        registered = ("object:children-changed",)
        await maybe(bus.call, REGISTRY, "/org/a11y/atspi/registry", REGISTRY, "RegisterEvent", "s", registered)
        self._listening_since = asyncio.get_running_loop().time()
        return bus

    async def _windows(self, bus: Bus, answer: float = PATIENCE_S) -> Windows:
        if self._roll is None or self._roll.bus is not bus:
            self._roll = Roll(bus)
        return await self._roll.call(answer)


async def _fetch(bus: Bus, element: Element) -> Node | None:
    """The object at the element's place; None when it is gone, or was on an earlier bus."""
    handle = ref_of(element, Handle)
    if handle.guid != bus.guid:
        return None
    try:
        if handle.address is not None:
            node = await fetch_cell(bus, handle.app, handle.address)
        else:
            node = await fetch_node(bus, handle.app, handle.path)
        node = await as_shown(bus, node)
    except CallFailed:
        return None
    return None if node.has(State.DEFUNCT) else node

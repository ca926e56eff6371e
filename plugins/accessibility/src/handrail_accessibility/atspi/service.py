"""The service `accessibility` on Linux."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import anyio

from handrail import Desktop, Downstream, Element, Glance, StaleElement, ToolUnavailable, Tree
from handrail.desktop.load_timeouts import scale_timeout
from handrail_accessibility.atspi import actions, text_interface
from handrail_accessibility.atspi.bus import (
    REGISTRY_NAME,
    AccessibilityBus,
    BusLost,
    CallFailed,
    NoAnswer,
    call_or_none,
)
from handrail_accessibility.atspi.elements import ListedNode, fetch_element
from handrail_accessibility.atspi.hidden_elements import find_hidden_elements
from handrail_accessibility.atspi.nodes import AtSpiNode, NodeHandle, fetch_cell, fetch_node, fetch_number
from handrail_accessibility.atspi.roles import AtSpiState
from handrail_accessibility.atspi.tables import find_cell_address, is_named_cell
from handrail_accessibility.atspi.transform_resolver import TransformResolver
from handrail_accessibility.atspi.tree_cache import infer_showing_state
from handrail_accessibility.atspi.window_finder import (
    build_read_note,
    describe_unpublished_window,
    find_window,
    is_active_window_silent,
)
from handrail_accessibility.atspi.window_reader import ReadOptions, WindowReader
from handrail_accessibility.atspi.windows import ANSWER_TIMEOUT_S, ScannedWindows, TopLevelWindow, WindowScan
from handrail_accessibility.tree.glance import build_glance, find_focused, require_ref
from handrail_accessibility.tree.protocol import WindowSnapshot

SCENE_DEADLINE_S = 1.5
GLANCE_DEADLINE_S = 3.0
# A program that was silent for a moment is asked again for what has the focus: keys that nobody can verify are worse than late ones.
FOCUS_DEADLINE_S = 12.0
SILENT_RETRY_TIMEOUT_S = 3.0
# A program begins to keep its cache some 0.4 s after the first listener has come.
CACHE_AFTER_S = 1.0

ServiceLookup = Callable[[str], Awaitable[Any]]


class AtSpiService:
    """One desktop's accessibility tree: connects on first use, and again after the bus has ended."""

    def __init__(self, desktop: Desktop, services: ServiceLookup) -> None:
        self._desktop = desktop
        self._services = services
        self._opening = asyncio.Lock()
        self._bus: AccessibilityBus | None = None
        self._roll: WindowScan | None = None
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
        """Return the current content of the window; see `handrail.Accessibility`."""
        wanted = ReadOptions(full, max_depth, query, budget)
        tree, _ = await self._look(window, wanted, deadline)
        return tree

    async def _look(
        self, window: str | None, wanted: ReadOptions, deadline: float, *, answer: float = ANSWER_TIMEOUT_S
    ) -> tuple[Tree, bool]:
        """Return the content of the window, and True if its program was too slow to report all of it.

        `answer`: see `WindowScan.call`.
        """
        reading: WindowReader | None = None
        async with self._reaching() as bus:
            windows = ScannedWindows(())
            chosen: TopLevelWindow | None = None
            with anyio.move_on_after(scale_timeout(deadline)) as clock:
                windows = await self._windows(bus, answer)
                chosen = await find_window(windows, window, self._places(bus))
                if chosen is not None:
                    reading = WindowReader(bus, chosen, windows.popups_of(chosen.node.app), wanted, self._places(bus))
                    await reading.run()
        late = clock.cancelled_caught or (chosen is None and await is_active_window_silent(windows, self._services))
        note = build_read_note(windows, chosen, late=clock.cancelled_caught)
        if chosen is None and window is None:
            note = "; ".join(part for part in (note, await describe_unpublished_window(self._services)) if part)
        if chosen is None or reading is None:
            return Tree((), note=note, truncated=clock.cancelled_caught), late
        elements = reading.elements
        tree = Tree(
            elements[: wanted.budget],
            window=chosen.title,
            focused=find_focused(elements),
            truncated=reading.truncated or len(elements) > wanted.budget or clock.cancelled_caught,
            note=note,
        )
        return tree, late

    async def focused(self) -> Element | None:
        """Return the element with the keyboard focus in the active window, whatever its number of elements.

        None also if it is not reported in time.
        """
        clock = asyncio.get_running_loop()
        end, answer = clock.time() + FOCUS_DEADLINE_S, ANSWER_TIMEOUT_S
        while True:
            tree, late = await self._look(None, ReadOptions(full=True, focused=True), GLANCE_DEADLINE_S, answer=answer)
            if tree.focused is not None or not late or clock.time() >= end:
                return tree.focused
            answer = SILENT_RETRY_TIMEOUT_S

    async def glance(self) -> Glance:
        """Return a summary of everything shown in the active window; raise `Downstream` if it cannot be read in time.

        A partial reading cannot be used to detect a change.
        """
        tree, late = await self._look(None, ReadOptions(full=True), GLANCE_DEADLINE_S)
        if late:
            raise Downstream("the active window was not read in time", hint="wait for its program")
        return build_glance(tree)

    async def titles(self) -> tuple[str, ...]:
        """Return the titles of all windows."""
        async with self._reaching() as bus:
            return (await self._windows(bus)).titles

    async def closed_items(self, *, window: str | None = None) -> tuple[Element, ...]:
        """Return the items of closed menus and the window's other hidden elements.

        Only those in its application's cache are known.
        """
        async with self._reaching() as bus:
            chosen = await find_window(await self._windows(bus), window, self._places(bus))
            patience = self._listening_since + CACHE_AFTER_S - asyncio.get_running_loop().time()
            return await find_hidden_elements(bus, chosen, patience=patience) if chosen is not None else ()

    async def cell(self, name: str, *, window: str | None = None) -> Element | None:
        """Return the cell of that name in one of the window's tables, in view or not; or None."""
        async with self._reaching() as bus:
            chosen = await find_window(await self._windows(bus), window, self._places(bus))
            if chosen is None:
                return None
            for table in (await self.tree(window=window, query="table")).elements:
                node = await _fetch_element_node(bus, table)
                address = None if node is None else await find_cell_address(bus, node, name)
                cell = (
                    None
                    if address is None
                    else await call_or_none(fetch_cell, bus, require_ref(table, NodeHandle).app, address)
                )
                if cell is not None and is_named_cell(cell, name):
                    return await fetch_element(bus, await self._line(bus, cell, table))
        return None

    async def scene(self, element: Element) -> WindowSnapshot:
        """Return the current state of the element's window."""
        handle = require_ref(element, NodeHandle)
        async with self._reaching() as bus:
            windows = await self._windows(bus)
            if any(window.node.app == handle.app for window in windows.unanswered):
                raise NoAnswer(f"{element.window!r} belongs to {' or '.join(windows.silent)}")
            top = next((w for w in windows.windows if w.node.ref == (handle.app, handle.window)), None)
            if top is None or not top.shown:
                return WindowSnapshot(windows.named, (), open=False)
            reading = WindowReader(bus, top, windows.popups_of(handle.app), ReadOptions(full=True), self._places(bus))
            with anyio.move_on_after(scale_timeout(SCENE_DEADLINE_S)):
                await reading.run()
            return WindowSnapshot(windows.named, reading.elements)

    async def refresh(self, element: Element) -> Element | None:
        """Return the same element in its current state; None if it is gone or something else is in its place."""
        current = await self.now(element)
        return current if current is not None and current.fingerprint == element.fingerprint else None

    async def now(self, element: Element) -> Element | None:
        """Return the element now at the element's place, or None."""
        async with self._reaching() as bus:
            node = await _fetch_element_node(bus, element)
            if node is None:
                return None
            current = await fetch_element(bus, await self._line(bus, node, element))
            # What labels it was found by looking around it.
            return replace(current, id=element.id, text=current.text or ("" if node.kind.named else element.text))

    async def read_text(self, element: Element) -> str | None:
        """Return the whole text; None if there is none to read, and for passwords."""
        async with self._at(element) as (bus, node):
            return await text_interface.fetch_whole_text(bus, node)

    async def text_length(self, element: Element) -> int | None:
        """Return the number of characters; None if unknown."""
        async with self._at(element) as (bus, node):
            return await text_interface.fetch_text_length(bus, node)

    async def number(self, element: Element) -> float | None:
        """Return the element's current number; None without one."""
        async with self._at(element) as (bus, node):
            return await call_or_none(fetch_number, bus, node) if node.offers("Value") else None

    async def options(self, element: Element) -> tuple[Element, ...]:
        """Return the choices of a combo box or list."""
        async with self._at(element) as (bus, node):
            found = await actions.fetch_options(bus, node)
            own = await self._line(bus, node, element)
            lines = [replace(own, node=option, depth=element.depth + 1) for option in found]
            return tuple([await fetch_element(bus, line) for line in lines])

    # Acting

    async def insert_text(self, element: Element, text: str) -> bool:
        """Insert at the caret by value, replacing the selection."""
        async with self._at(element) as (bus, node):
            return await text_interface.insert_text(bus, node, text)

    async def press(self, element: Element) -> str | None:
        """Do its main action."""
        async with self._at(element) as (bus, node):
            return await actions.press_node(bus, node)

    async def set_text(self, element: Element, text: str) -> bool:
        """Replace its text."""
        async with self._at(element) as (bus, node):
            return await text_interface.set_text(bus, node, text)

    async def set_number(self, element: Element, number: float) -> bool:
        """Set its number."""
        async with self._at(element) as (bus, node):
            return await actions.set_number(bus, node, number)

    async def focus(self, element: Element) -> bool:
        """Give it the keyboard focus."""
        async with self._at(element) as (bus, node):
            return await actions.focus_node(bus, node)

    async def select(self, element: Element) -> bool:
        """Select it in what holds it."""
        async with self._at(element) as (bus, node):
            return await actions.select_node(bus, node)

    async def expand(self, element: Element, *, wanted: bool) -> bool:
        """Ask it to open or close."""
        async with self._at(element) as (bus, node):
            return (
                await actions.do_first_action(bus, node, actions.EXPAND_ACTIONS if wanted else actions.COLLAPSE_ACTIONS)
                is not None
            )

    async def scroll_to(self, element: Element) -> bool:
        """Bring it into view."""
        async with self._at(element) as (bus, node):
            return await actions.scroll_to_node(bus, node)

    def _places(self, bus: AccessibilityBus) -> TransformResolver:
        return TransformResolver(bus, self._services)

    async def _line(self, bus: AccessibilityBus, node: AtSpiNode, element: Element) -> ListedNode:
        """Build the list entry for an object at an element's place."""
        handle = require_ref(element, NodeHandle)
        line = ListedNode(node, element.depth, element.window, handle.window, element.window_id, pane=handle.pane)
        if not handle.placed:
            return line
        return replace(line, placing=await self._places(bus).of_one(handle.app, line.spot))

    # The connection

    @asynccontextmanager
    async def _at(self, element: Element) -> AsyncGenerator[tuple[AccessibilityBus, AtSpiNode]]:
        async with self._reaching() as bus:
            node = await _fetch_element_node(bus, element)
            if node is None or node.fingerprint(bus.guid) != element.fingerprint:
                raise StaleElement(f"{element.role} {element.text!r} is gone", hint="observe again")
            yield bus, node

    @asynccontextmanager
    async def _reaching(self) -> AsyncGenerator[AccessibilityBus]:
        """Yield a live connection; convert its failures to `Downstream` errors."""
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

    async def _connected(self) -> AccessibilityBus:
        async with self._opening:
            if self._bus is None or not self._bus.alive:
                await self.close()
                self._bus = await self._connect()
                self._roll = WindowScan(self._bus)
            return self._bus

    async def _connect(self) -> AccessibilityBus:
        address = self._desktop.environment.get("DBUS_SESSION_BUS_ADDRESS")
        if not address:
            raise ToolUnavailable(
                f"desktop {self._desktop.name!r} has no session bus, so programs publish no accessibility tree",
                hint="work on a private desktop, or log in to a desktop session",
            )
        bus = await AccessibilityBus.connect(address, enable=self._desktop.private)
        # Programs keep the cache that is read in one call only while somebody listens.
        registered = ("object:children-changed",)
        await call_or_none(
            bus.call, REGISTRY_NAME, "/org/a11y/atspi/registry", REGISTRY_NAME, "RegisterEvent", "s", registered
        )
        self._listening_since = asyncio.get_running_loop().time()
        return bus

    async def _windows(self, bus: AccessibilityBus, answer: float = ANSWER_TIMEOUT_S) -> ScannedWindows:
        if self._roll is None or self._roll.bus is not bus:
            self._roll = WindowScan(bus)
        return await self._roll.call(answer)


async def _fetch_element_node(bus: AccessibilityBus, element: Element) -> AtSpiNode | None:
    """Return the object at the element's place; None if it is gone, or belonged to an earlier bus."""
    handle = require_ref(element, NodeHandle)
    if handle.guid != bus.guid:
        return None
    try:
        if handle.address is not None:
            node = await fetch_cell(bus, handle.app, handle.address)
        else:
            node = await fetch_node(bus, handle.app, handle.path)
        node = await infer_showing_state(bus, node)
    except CallFailed:
        return None
    return None if node.has(AtSpiState.DEFUNCT) else node

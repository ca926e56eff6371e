"""The service `accessibility` by a platform's own calls."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, TypeVar

from handrail import AmbiguousElement, Element, Glance, NotFound, StaleElement, Tree, Window
from handrail.desktop.thread_worker import ThreadWorker
from handrail.text import fold_text
from handrail_accessibility.native.tree import (
    ActionVerb,
    NativeHandle,
    NativeNode,
    TreeProvider,
    WindowTree,
    build_element,
    compute_fingerprint,
    is_worth_listing,
    walk_nodes,
)
from handrail_accessibility.tree.glance import build_glance, find_focused, require_ref
from handrail_accessibility.tree.protocol import WindowSnapshot
from handrail_accessibility.tree.wording import format_title

# Objects that a window is asked for at most; a list is asked for what fits and more, as most of a tree is boxes.
MAX_OBJECTS = 5000
NODES_PER_LINE = 8
SCENE_DEADLINE_S = 1.5
# Seconds beyond its own deadline for a read to come back before its thread is given up.
READ_GRACE_S = 2.0

T = TypeVar("T")
ServiceLookup = Callable[[str], Awaitable[Any]]


class NativeTreeService:
    """The accessibility tree of the person's own desktop. Windows are those that the service `screen` knows."""

    def __init__(self, worker: ThreadWorker[TreeProvider], services: ServiceLookup) -> None:
        self._worker = worker
        self._services = services

    async def close(self) -> None:
        """End the thread."""
        await self._worker.close()

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
        windows = await self._windows()
        chosen = find_window(windows, window)
        if chosen is None:
            listed = ", ".join(repr(format_title(each.title)) for each in windows) or "there is none"
            return Tree((), note=f"no window is active; windows: {listed}")
        read = await self._read(chosen, limit=min(MAX_OBJECTS, budget * NODES_PER_LINE), deadline=deadline)
        if read is None:
            return Tree((), window=chosen.title, note=f"{chosen.process or 'the program'} publishes no tree")
        lines = [
            build_element(node, chosen, depth)
            for node, depth in walk_nodes(read.root)
            if (full or is_worth_listing(node))
            and (max_depth is None or depth <= max_depth)
            and _is_query_match(node, query)
        ]
        shown = tuple(lines[:budget])
        return Tree(
            shown,
            window=chosen.title,
            focused=find_focused(lines),
            truncated=read.truncated or len(lines) > budget,
        )

    async def focused(self) -> Element | None:
        """Return the element with the keyboard focus in the active window."""
        return (await self.tree(full=True)).focused

    async def glance(self) -> Glance:
        """Return a summary of everything shown in the active window."""
        return build_glance(await self.tree(full=True))

    async def titles(self) -> tuple[str, ...]:
        """Return the titles of all windows."""
        return tuple(window.title for window in await self._windows())

    async def closed_items(self, *, window: str | None = None) -> tuple[Element, ...]:
        """Return an empty tuple: programs on these platforms publish a menu's items only once it is open."""
        return ()

    async def cell(self, name: str, *, window: str | None = None) -> Element | None:
        """Return the cell of that name among those in view."""
        tree = await self.tree(window=window, full=True, budget=MAX_OBJECTS)
        return next((e for e in tree.elements if e.role == "cell" and name in (e.text, e.automation_id)), None)

    async def scene(self, element: Element) -> WindowSnapshot:
        """Return the current state of the element's window."""
        windows = await self._windows()
        titles = {window.id: window.title for window in windows}
        top = next((window for window in windows if window.id == require_ref(element, NativeHandle).window), None)
        if top is None or top.state == "minimized":
            return WindowSnapshot(titles, (), open=False)
        read = await self._read(top, limit=MAX_OBJECTS, deadline=SCENE_DEADLINE_S)
        found = () if read is None else tuple(build_element(node, top, depth) for node, depth in walk_nodes(read.root))
        return WindowSnapshot(titles, found)

    async def refresh(self, element: Element) -> Element | None:
        """Return the same element in its current state; None if it is gone or something else is in its place."""
        current = await self.now(element)
        return current if current is not None and current.fingerprint == element.fingerprint else None

    async def now(self, element: Element) -> Element | None:
        """Return the element now at the element's place, or None."""
        window = await self._window_of(element)
        node = None if window is None else await self._again(element)
        return (
            None
            if node is None or window is None
            else replace(build_element(node, window, element.depth), id=element.id)
        )

    async def options(self, element: Element) -> tuple[Element, ...]:
        """Return the choices of a combo box or list, as far as it publishes them."""
        window, node = await self._window_of(element), await self._again(element)
        if window is None or node is None:
            return ()
        choices = (child for child, _ in walk_nodes(node) if child.role.word in ("list item", "menu item", "tree item"))
        return tuple(build_element(child, window, element.depth + 1) for child in choices)

    async def read_text(self, element: Element) -> str | None:
        """Return the whole text; None if there is none to read, and for passwords."""
        if "password" in element.states or element.role == "password":
            return None
        return await self._at(element, lambda provider, native: provider.text(native))

    async def text_length(self, element: Element) -> int | None:
        """Return the number of characters; None without text."""
        text = await self._at(element, lambda provider, native: provider.text(native))
        return None if text is None else len(text)

    async def number(self, element: Element) -> float | None:
        """Return the element's current number, or None."""
        return await self._at(element, lambda provider, native: provider.number(native))

    # Acting

    async def insert_text(self, element: Element, text: str) -> bool:
        """Return False: neither platform can insert text at the caret by value; it is typed or pasted instead."""
        return False

    async def press(self, element: Element) -> str | None:
        """Do its main action."""
        return await self._do(element, "press")

    async def set_text(self, element: Element, text: str) -> bool:
        """Replace its text."""
        return await self._at(element, lambda provider, native: provider.set_text(native, text))

    async def set_number(self, element: Element, number: float) -> bool:
        """Set its number."""
        return await self._at(element, lambda provider, native: provider.set_number(native, number))

    async def focus(self, element: Element) -> bool:
        """Give it the keyboard focus."""
        return await self._do(element, "focus") is not None

    async def select(self, element: Element) -> bool:
        """Select it in what holds it."""
        return await self._do(element, "select") is not None

    async def expand(self, element: Element, *, wanted: bool) -> bool:
        """Ask it to open or close."""
        return await self._do(element, "expand" if wanted else "collapse") is not None

    async def scroll_to(self, element: Element) -> bool:
        """Bring it into view."""
        return await self._do(element, "scroll") is not None

    async def _do(self, element: Element, verb: ActionVerb) -> str | None:
        return await self._at(element, lambda provider, native: provider.do(native, verb))

    async def _at(self, element: Element, job: Callable[[TreeProvider, Any], T]) -> T:
        """Run a job on the element's object; raise `StaleElement` if it is no longer the one that was seen."""
        handle, window = require_ref(element, NativeHandle), await self._window_of(element)

        def checked(provider: TreeProvider) -> T:
            node = provider.again(handle.native)
            if window is None or node is None or compute_fingerprint(node, window) != element.fingerprint:
                raise StaleElement(f"{element.role} {element.text!r} is gone", hint="observe again")
            return job(provider, handle.native)

        return await self._worker.run(checked)

    async def _again(self, element: Element) -> NativeNode | None:
        native = require_ref(element, NativeHandle).native
        return await self._worker.run(lambda provider: provider.again(native))

    async def _read(self, window: Window, *, limit: int, deadline: float) -> WindowTree | None:
        def job(provider: TreeProvider) -> WindowTree | None:
            return provider.read(window, limit=limit, deadline=deadline)

        return await self._worker.run(job, timeout=deadline + READ_GRACE_S)

    async def _windows(self) -> list[Window]:
        screen = await self._services("screen")
        return await screen.windows()

    async def _window_of(self, element: Element) -> Window | None:
        return next(
            (window for window in await self._windows() if window.id == require_ref(element, NativeHandle).window), None
        )


def find_window(windows: list[Window], title: str | None) -> Window | None:
    """Return the window with that title or id, or the active one; None if no title is given and none is active."""
    if title is None:
        return next((window for window in windows if window.active), None)
    exact = [window for window in windows if title in (window.title, window.id)]
    fitting = exact or [window for window in windows if fold_text(title) in fold_text(window.title)]
    if len(fitting) > 1:
        fitting = [window for window in fitting if window.active] or fitting
    if len(fitting) == 1:
        return fitting[0]
    titles = [format_title(window.title) for window in fitting or windows]
    details = {"candidates": [{"window": each} for each in titles]}
    listed = ", ".join(repr(each) for each in titles) or "none"
    if fitting:
        raise AmbiguousElement(f"{len(fitting)} windows fit {title!r}: {listed}", hint="give more", details=details)
    raise NotFound(f"no window fits {title!r}; windows: {listed}", hint="give a part of a title", details=details)


def _is_query_match(node: NativeNode, query: str | None) -> bool:
    if not query:
        return True
    sought = fold_text(query)
    return any(sought in fold_text(part) for part in (node.name, node.role.word, node.value or ""))

"""A browser behind PinchTab: tabs, addresses, and what is on their pages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Any, Literal, cast

from handrail import Downstream, Element, InvalidArguments, NotFound, StaleElement, TimedOut
from handrail.json_types import is_list, is_object
from handrail.redaction import redact_text
from handrail_browser.chromium.proxy import RefusedConnection
from handrail_browser.driver import (
    ActionOutcome,
    AmbiguousNode,
    BrowserTab,
    DownloadedFile,
    LoadState,
    PageInterrupted,
    PageNode,
    PageSnapshot,
    PageText,
    StaleNode,
)
from handrail_browser.pinchtab.address_guard import ERROR_PAGE_PREFIX, AddressGuard, find_refusal
from handrail_browser.pinchtab.client import build_tab_path
from handrail_browser.pinchtab.input_actions import PinchTabActions, build_dialog_outcome, unsupported_action
from handrail_browser.pinchtab.nodes import NodeHandle, build_nodes, is_usable
from handrail_browser.pinchtab.tabs import PinchTabPage, PinchTabPages

PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"


class PinchTabDriver(PinchTabActions):
    """One session's browser behind PinchTab. `end` ends what is ours of it."""

    name = "pinchtab"
    lacks = frozenset({"chords", "element_pictures", "other_buttons", "downloads", "logins"})

    def __init__(
        self,
        pages: PinchTabPages,
        rail: AddressGuard,
        *,
        end: Callable[[], Awaitable[None]],
        uploads: Path | None = None,
    ) -> None:
        super().__init__(pages, uploads)
        self._rail = rail
        self._end = end
        self._refused: list[RefusedConnection] = []

    # Tabs

    async def tabs(self) -> Sequence[BrowserTab]:
        return [page.seen(self._pages.active) for page in await self._pages.refresh()]

    async def tab(self, id: str | None) -> BrowserTab:
        return (await self._pages.page(id)).seen(self._pages.active)

    async def open_tab(self, url: str | None) -> BrowserTab:
        if url is not None:
            await self._rail.check(url)
        page = self._pages.take(await self._pages.place.open())
        self._pages.active = page.id
        if url is not None:
            await self.navigate(page.seen(page.id), url, until="load", seconds=20)
        return await self.tab(page.id)

    async def close_tab(self, tab: BrowserTab) -> ActionOutcome:
        page = await self._pages.page(tab.id)
        await self._pages.place.shut(page.there)
        if page in await self._pages.refresh():
            return ActionOutcome("unverified", (f"{tab.id} is still open",))
        return ActionOutcome("confirmed", (f"{tab.id} is closed",))

    # Going somewhere

    async def navigate(
        self, tab: BrowserTab, url: str, *, until: LoadState, seconds: float, login: tuple[str, str] | None = None
    ) -> ActionOutcome:
        if login is not None:
            raise unsupported_action("give a name and a password to a server that asks for them")
        await self._rail.check(url)
        page = await self._pages.page(tab.id)
        was, ends = page.url, monotonic() + seconds
        self._refused += self._rail.taken()
        self._rail.trouble(url)
        body = {"url": url, "timeout": seconds, "waitFor": "none"}
        try:
            await self._asked(page, "navigate", body, seconds + 5)
            still, found = await self._come(page, was, url, ends)
            reached = await self._pages.unless_asked(page, self._reached(page, until, ends))
        except PageInterrupted:
            return build_dialog_outcome(page)
        except Downstream as exc:
            raise await self._failed(page, url, exc) from exc
        shows = page.shows
        await self._hold(page)
        # The proxy's own page, and the browser's, stand for one that could not be had.
        failed = shows.startswith(ERROR_PAGE_PREFIX) or any(node.name.startswith("Handrail: ") for node in found[:3])
        if (why := self._rail.trouble(url)) is not None and failed:
            raise Downstream(f"{redact_text(url)[:300]!r} could not be opened: {why}")
        if shows.startswith(ERROR_PAGE_PREFIX):
            raise Downstream(f"{redact_text(url)[:300]!r} could not be opened: it gives no page")
        return ActionOutcome("confirmed", (f"now at {page.url[:300]}",), still and reached)

    async def _come(self, page: PinchTabPage, was: str, url: str, ends: float) -> tuple[bool, Sequence[PageNode]]:
        """Wait for the page. PinchTab may respond while the old page is still shown."""
        while True:
            still, found = await self._still(page)
            if page.shows != was or _is_same_document(was, url):
                return still, found
            if monotonic() > ends:
                raise TimedOut(
                    f"{redact_text(url)[:300]!r} gave no page in time; what gives a file is for download_file"
                )

    async def _asked(self, page: PinchTabPage, what: str, body: dict[str, Any], seconds: float) -> None:
        await self._pages.unless_asked(page, self._client.post(build_tab_path(page.there, what), body, seconds=seconds))

    async def _failed(self, page: PinchTabPage, url: str, exc: Downstream) -> Exception:
        """Return the error for a page that did not load.

        It is a refusal of ours, a file in place of a page, or an address that cannot be reached; else the given error.
        """
        refusals = self._rail.taken()
        self._refused += refusals
        with suppress(NotFound):
            page = await self._pages.page(page.id)
        if (denied := find_refusal(page.url, refusals) or find_refusal(url, refusals)) is not None:
            return denied
        if "ERR_ABORTED" in str(exc):
            return Downstream("the address gives a file, not a page", hint="use download_file")
        if "ERR_CERT" in str(exc) or "ERR_SSL" in str(exc):
            told = "its certificate is not valid here; nothing was sent to it"
            return Downstream(f"{redact_text(url)[:300]!r} cannot prove who it is", hint=told)
        if (why := self._rail.trouble(url)) is not None:
            return Downstream(f"{redact_text(url)[:300]!r} could not be opened: {why}")
        return exc

    async def travel(
        self, tab: BrowserTab, where: Literal["back", "forward", "reload"], *, seconds: float
    ) -> ActionOutcome:
        page = await self._pages.page(tab.id)
        was = page.url
        try:
            await self._asked(page, where, {}, seconds)
            still, _ = await self._still(page)
        except PageInterrupted:
            return build_dialog_outcome(page)
        await self._hold(page)
        if where != "reload" and page.url == was:
            return ActionOutcome("none", (f"there is no page to go {where} to",), True)
        return ActionOutcome("confirmed", (f"now at {page.url[:300]}",), still)

    async def _hold(self, page: PinchTabPage) -> None:
        """After going somewhere: is the tab where it may be?"""
        await self._pages.refresh()
        refusals = self._rail.taken()
        self._refused += refusals
        if (denied := find_refusal(page.url, refusals)) is not None:
            raise denied
        await self._kept(page)

    async def _kept(self, page: PinchTabPage) -> None:
        self._refused += self._rail.taken()
        for each in await self._pages.refresh():
            if (reason := await self._rail.leads_astray(each.url)) is not None:
                await self._pages.place.shut(each.there)
                await self._rail.check(each.url)
                raise Downstream(f"the tab {each.id} was closed: {reason.text}")

    # Looking

    async def _look(self, page: PinchTabPage, selector: str | None = None) -> Sequence[PageNode]:
        query = {"filter": "all"} | ({"selector": f"css:{selector}"} if selector else {})
        told = await self._pages.unless_asked(page, self._client.get(build_tab_path(page.there, "snapshot"), query))
        if not is_list(rows := told.get("nodes")):
            raise Downstream("PinchTab's snapshot is not of its protocol")
        page.shows = str(told.get("url") or "")
        page.url = page.shows or page.url
        found = [each for each in rows if is_object(each)]
        if selector and found and found[0].get("role") == "RootWebArea":
            # It gives the whole page when what the selector names is not in its tree.
            raise NotFound(f"what the selector {selector!r} names is not among what PinchTab sees")
        return build_nodes(page.id, page.url, found)

    async def _part(self, page: PinchTabPage, selector: str) -> Sequence[PageNode]:
        try:
            return await self._look(page, selector)
        except InvalidArguments as exc:
            raise NotFound(f"nothing fits the selector {selector!r}", hint="take a snapshot") from exc

    async def snapshot(
        self, tab: BrowserTab, *, everything: bool, selector: str | None, most: int, skip: int
    ) -> PageSnapshot:
        page = await self._pages.page(tab.id)
        found = await self._part(page, selector) if selector else await self._look(page)
        shown = [node for node in found if everything or is_usable(node)]
        return PageSnapshot(tuple(shown[skip : skip + most]), len(shown))

    async def locate(self, element: Element) -> PageNode:
        handle = element.ref
        if not isinstance(handle, NodeHandle):
            raise InvalidArguments(
                f"{element.id} was seen by {element.source}, not on this page", hint="use an id of a snapshot"
            )
        page = await self._pages.page(handle.page)
        found = await self._look(page)
        # The same number on another page is another thing.
        there = page.url.partition("#")[0].partition("?")[0] == handle.place
        same = next(
            (n for n in found if there and isinstance(n.handle, NodeHandle) and n.handle.number == handle.number), None
        )
        if same is not None and (same.role, same.name) == (element.role, element.text):
            return same
        alike = [n for n in found if n.handle is not None and (n.role, n.name) == (element.role, element.text)]
        if there and same is None and len(alike) == handle.of:
            return alike[handle.nth]
        if same is not None:
            became = f"is now {same.called}"
            raise StaleNode(f"{element.id} ({element.role} {element.text!r}) {became}; nothing was done", [same])
        if not there and not alike:
            raise StaleElement(
                f"{element.id} ({element.role} {element.text!r}) is gone with the page it was on",
                hint="take a new snapshot",
            )
        raise StaleNode(f"{element.id} ({element.role} {element.text!r}) is gone; nothing was done", alike)

    async def pick(
        self, tab: BrowserTab, *, selector: str | None, text: str | None, role: str | None = None
    ) -> PageNode:
        page = await self._pages.page(tab.id)
        if selector is not None:
            part = await self._part(page, selector)
            node = next((each for each in part if isinstance(each.handle, NodeHandle)), None)
            if node is None:
                raise NotFound(f"nothing that can be used fits the selector {selector!r}")
            # What it is called is found in the whole page.
            return replace(node, handle=replace(cast("NodeHandle", node.handle), selector=selector))
        wanted = " ".join((text or "").split()).casefold()
        found = [
            n
            for n in await self._look(page)
            if n.handle is not None and is_usable(n) and (role is None or n.role == role)
        ]
        exact = [n for n in found if n.name.casefold() == wanted]
        alike = exact or [n for n in found if wanted and wanted in n.name.casefold()]
        if not alike:
            raise NotFound(f"nothing on the page fits the text {text!r}", hint="take a snapshot to see what there is")
        if len(alike) > 1:
            raise AmbiguousNode(f"{len(alike)} things on the page fit the text {text!r}; nothing was done", alike[:8])
        return alike[0]

    # Reading

    async def read(self, tab: BrowserTab, selector: str | None) -> PageText:
        page = await self._pages.page(tab.id)
        if selector is None:
            return PageText(text=await self._text(page))
        part = await self._part(page, selector)
        return PageText(text="\n".join(dict.fromkeys(node.name for node in part if node.name)))

    async def screenshot(self, tab: BrowserTab, node: PageNode | None, *, full: bool) -> bytes:
        if node is not None or full:
            raise unsupported_action("take a picture of an element or a whole page, only of the window")
        page = await self._pages.page(tab.id)
        asked = self._client.data(build_tab_path(page.there, "screenshot"), {"format": "png", "raw": "true"})
        data = await self._pages.unless_asked(page, asked)
        if not data.startswith(PNG_SIGNATURE):
            raise Downstream("PinchTab gave something else than a picture")
        return data

    async def download(
        self, tab: BrowserTab, node: PageNode | None, url: str | None, *, seconds: float
    ) -> DownloadedFile:
        raise Downstream(
            "PinchTab does not save files under Handrail's rules", hint="use download_file with the address"
        )

    def lost(self) -> bool:
        """Return True if the PinchTab has stopped responding."""
        return self._client.lost

    def refused(self) -> Sequence[str]:
        found = [*self._refused, *self._rail.taken()]
        self._refused.clear()
        return list(dict.fromkeys(f"{each.place}: {each.reason.text}" for each in found))

    async def close(self) -> None:
        with suppress(Downstream, TimedOut):
            await self._pages.place.leave()
        await self._end()


def _is_same_document(one: str, other: str) -> bool:
    """Return True if going from one address to the other may keep the document."""
    return one.partition("#")[0].rstrip("/") == other.partition("#")[0].rstrip("/")

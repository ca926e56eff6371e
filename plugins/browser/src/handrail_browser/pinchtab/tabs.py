"""The tabs of a PinchTab as a session knows them, and what they ask."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar, cast

from handrail import Downstream, NotFound, TimedOut
from handrail_browser.driver import BrowserTab, PageInterrupted
from handrail_browser.pinchtab.client import PinchTabClient, UnknownEndpoint, build_tab_path

if TYPE_CHECKING:
    from handrail_browser.pinchtab.tab_hosts import TabHost

T = TypeVar("T")

# After so long without an answer it is looked whether the page asks something, and so long its answer to that may take.
NOTICE_S = 1.0
PROBE_S = 1.5
BLANK_URLS = ("", "about:blank")


@dataclass(slots=True)
class PinchTabPage:
    """One tab: its id here and there, and the dialog that it waits with. `shows` is what its document says its address is."""

    id: str
    there: str
    url: str = ""
    title: str = ""
    shows: str = ""
    dialog: dict[str, Any] | None = None

    def seen(self, active: str | None) -> BrowserTab:
        """Return the tab as a `BrowserTab`."""
        state = "dialog" if self.dialog is not None else "open"
        return BrowserTab(self.id, self.url, self.title, active=self.id == active, state=state, asks=self.dialog or {})


@dataclass(slots=True)
class PinchTabPages:
    """All tabs, in the order they were first seen. `spare` are those that were there before us in a browser of our own."""

    client: PinchTabClient
    place: TabHost
    spare: set[str] = field(default_factory=set[str])
    active: str | None = None
    _known: dict[str, PinchTabPage] = field(default_factory=dict[str, PinchTabPage])
    _count: int = 0
    _tells_state: bool = True

    async def refresh(self) -> Sequence[PinchTabPage]:
        """Return the current tabs."""
        rows = {str(row["id"]): row for row in await self.place.tabs() if row.get("type", "page") == "page"}
        for there, row in rows.items():
            url, title = str(row.get("url") or ""), str(row.get("title") or "")
            if there in self.spare and url in BLANK_URLS:
                continue
            page = self._known.get(there) or self.take(there)
            page.url, page.title = url, title
        for there in set(self._known) - set(rows):
            del self._known[there]
        found = list(self._known.values())
        if self.active not in {page.id for page in found}:
            self.active = found[-1].id if found else None
        return found

    def take(self, there: str) -> PinchTabPage:
        """Add a tab that was opened, or is seen for the first time."""
        self._count += 1
        page = self._known[there] = PinchTabPage(f"t{self._count}", there)
        self.active = self.active or page.id
        return page

    async def page(self, id: str | None) -> PinchTabPage:
        """Return the tab with that id, or the active one, and make it the active one.

        Raises `NotFound`, which lists the tabs.
        """
        found = await self.refresh()
        wanted = id or self.active
        page = next((each for each in found if each.id == wanted), None)
        if page is None:
            there = ", ".join(each.id for each in found) or "none"
            raise NotFound(
                f"there is no tab {id!r}" if id else "no tab is open",
                hint=f"there are: {there}; open one by open_tab or navigate",
            )
        self.active = page.id
        return page

    async def unless_asked(self, page: PinchTabPage, doing: Coroutine[Any, Any, T]) -> T:
        """Return the result of an operation. Raises `PageInterrupted` as soon as the page opens a dialog."""
        if page.dialog is not None:
            doing.close()
            raise PageInterrupted
        task = asyncio.ensure_future(doing)
        try:
            await asyncio.wait([task], timeout=NOTICE_S)
            if not task.done() and await self._asks(page):
                raise PageInterrupted
            return await task
        except PageInterrupted:
            page.dialog = page.dialog or {"kind": "dialog", "message": ""}
            raise
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _asks(self, page: PinchTabPage) -> bool:
        """Return True if the page waits for the answer to a dialog.

        Older versions do not report dialogs: there, a page that does not respond at all is assumed to have one open.
        """
        if self._tells_state:
            try:
                told = await self.client.get(build_tab_path(page.there, "state"), seconds=PROBE_S)
            except UnknownEndpoint:
                self._tells_state = False
            else:
                if told.get("dialogPresent") is not True:
                    return False
                asked = cast("dict[str, Any]", told.get("dialog") or {})
                page.dialog = {"kind": asked.get("type", "dialog"), "message": str(asked.get("message", ""))}
                return True
        try:
            await self.client.get(build_tab_path(page.there, "text"), {"mode": "raw", "maxChars": "1"}, seconds=PROBE_S)
        except TimedOut:
            page.dialog = {"kind": "dialog", "message": ""}
            return True
        except Downstream:
            return False
        return False

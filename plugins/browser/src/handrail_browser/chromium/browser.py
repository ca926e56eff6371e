"""One browser and its tabs: those that were asked for, and those that pages open."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import anyio

from handrail import Denied, Downstream, NotFound, TimedOut
from handrail_browser.chromium.cdp import CdpConnection, TargetGone
from handrail_browser.chromium.tabs import ChromiumPage
from handrail_browser.driver import DownloadedFile

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from handrail_browser.chromium.proxy import JudgingProxy, RefusedConnection

PAGE_ATTACH_OPTIONS = {
    "autoAttach": True,
    "waitForDebuggerOnStart": True,
    "flatten": True,
    "filter": [{"type": "page"}],
}
MAX_TABS = 30
TUNNEL_FAILED = "ERR_TUNNEL_CONNECTION_FAILED"
ERROR_TEXTS = {
    "ERR_NAME_NOT_RESOLVED": "the name is not known",
    TUNNEL_FAILED: "the server cannot be reached",
    "ERR_CONNECTION_REFUSED": "nothing listens there",
    "ERR_EMPTY_RESPONSE": "the server closed without an answer",
    "ERR_TOO_MANY_REDIRECTS": "it leads on without end",
}


@dataclass(slots=True)
class PendingDownload:
    """A download that is waited for: the first that a tab begins."""

    browser: ChromiumBrowser
    page: ChromiumPage
    guid: str | None = None
    name: str = ""
    url: str = ""
    state: str = "none"
    got: int = 0
    turn: asyncio.Event = field(default_factory=asyncio.Event)

    def told(self, method: str, params: Mapping[str, Any]) -> None:
        """Process an event of the browser about downloads."""
        if method == "Browser.downloadWillBegin" and self.guid is None and params["frameId"] in self.page.frames:
            self.guid, self.name, self.url, self.state = (
                params["guid"],
                params.get("suggestedFilename", ""),
                params["url"],
                "begun",
            )
        elif method == "Browser.downloadProgress" and params["guid"] == self.guid:
            self.state, self.got = params["state"], int(params.get("receivedBytes", 0))
        self.turn.set()

    async def taken(self, seconds: float) -> DownloadedFile:
        """Wait up to `seconds` for the download, and return the complete file.

        Raises `Downstream` if no download begins, if it is canceled or if the file is too large, and `TimedOut` if it
        takes too long.
        """
        ends = monotonic() + seconds
        begins = monotonic() + min(10.0, seconds)
        while self.state not in ("completed", "canceled"):
            left = (begins if self.state == "none" else ends) - monotonic()
            if left <= 0 or self.browser.connection.closed.is_set():
                break
            self.turn.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(min(left, 1.0)):
                    await self.turn.wait()
            if self.got > self.browser.most_bytes:
                self._cancel()
                raise Downstream(
                    f"the file is larger than {self.browser.most_bytes:,} bytes",
                    hint="plugins.browser.download_max_bytes is the limit",
                )
        if self.state == "completed" and self.guid is not None:
            path = self.browser.downloads / self.guid
            return DownloadedFile(path, self.name, self.url, path.stat().st_size)
        if self.state == "none":
            raise self._nothing()
        self._cancel()
        if self.state == "canceled":
            raise Downstream("the download broke off", hint="try again")
        raise TimedOut(f"the download took longer than {seconds:g} s")

    def _nothing(self) -> Downstream | Denied:
        if refused := self.browser.refused():
            return Denied(
                refused[-1].reason.text,
                details={"reason": refused[-1].reason.code, "rule": f"browser:{refused[-1].reason.code}"},
            )
        return Downstream("no download began", hint="what was named shows a page: use navigate or click")

    def _cancel(self) -> None:
        if self.guid is not None:
            self.browser.connection.tell("Browser.cancelDownload", {"guid": self.guid})

    def over(self) -> None:
        """Stop waiting for the download."""
        self.browser.waited(self)

    __hash__ = object.__hash__


class ChromiumBrowser:
    """Tabs of one browser. `active` is the tab to use if none is named."""

    def __init__(
        self,
        connection: CdpConnection,
        *,
        proxy: JudgingProxy | None,
        most_bytes: int,
        end: Callable[[], Awaitable[None]],
        folder: Path | None = None,
    ) -> None:
        self.connection = connection
        self.proxy = proxy
        self.pages: dict[str, ChromiumPage] = {}
        self.active: str | None = None
        self.most_bytes = most_bytes
        # In the profile where that is ours: then it is removed with it, whatever ends us.
        self.downloads = Path(tempfile.mkdtemp(prefix="handrail-downloads-", dir=folder))
        self.waiting: set[PendingDownload] = set()
        self._end = end
        self._count = 0
        self._by_session: dict[str, ChromiumPage] = {}
        self._preparing: set[asyncio.Task[None]] = set()
        self._turn = asyncio.Event()
        connection.listen(None, self._told)

    async def start(self) -> None:
        """Attach to the existing tabs, and to every tab that is opened later."""
        if self.ours:
            self._take_downloads()
        await self.connection.send("Target.setAutoAttach", PAGE_ATTACH_OPTIONS)
        await asyncio.gather(*self._preparing)

    @property
    def ours(self) -> bool:
        """True if Handrail started the browser. Downloads in the user's own browser are left to the user."""
        return self.proxy is not None

    def _take_downloads(self) -> None:
        to = {"behavior": "allowAndName", "downloadPath": str(self.downloads), "eventsEnabled": True}
        self.connection.tell("Browser.setDownloadBehavior", to)

    def page(self, id: str | None) -> ChromiumPage:
        """Return the tab with that id, or the active one, and make it the active one.

        Raises `NotFound`, which lists the tabs, or `TargetGone` if the browser has ended.
        """
        if self.connection.closed.is_set():
            raise TargetGone("the browser has ended", hint="call again: a new one is started")
        found = self.pages.get(id or self.active or "")
        if found is None:
            there = ", ".join(self.pages) or "none"
            raise NotFound(
                f"there is no tab {id!r}" if id else "no tab is open",
                hint=f"there are: {there}; open one by open_tab or navigate",
            )
        self.active = found.id
        return found

    async def new_page(self) -> ChromiumPage:
        """Open an empty tab, and make it the active one."""
        if len(self.pages) >= MAX_TABS:
            raise Downstream(f"{MAX_TABS} tabs are open", hint="close some by close_tab")
        target = (await self.connection.send("Target.createTarget", {"url": "about:blank"}))["targetId"]
        ends = monotonic() + 10
        while (page := next((each for each in self.pages.values() if each.target == target), None)) is None:
            if monotonic() > ends:
                raise Downstream("the browser opened no tab")
            self._turn.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(1):
                    await self._turn.wait()
        if self._preparing:
            await asyncio.gather(*self._preparing)
        self.active = page.id
        return page

    async def close_page(self, page: ChromiumPage) -> None:
        """Close a tab. The browser closes it even if its page hangs."""
        # Closing as such asks nothing of the page.
        await self.connection.send("Target.closeTarget", {"targetId": page.target}, seconds=10)
        ends = monotonic() + 5
        while page.id in self.pages and monotonic() < ends:
            self._turn.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(0.5):
                    await self._turn.wait()
        self._drop(page)

    def coming(self, page: ChromiumPage) -> PendingDownload:
        """Wait for a download of a tab; to be said before what begins it."""
        coming = PendingDownload(self, page)
        if not self.ours:
            self._take_downloads()
        self.waiting.add(coming)
        return coming

    def waited(self, coming: PendingDownload) -> None:
        """Stop waiting for a download."""
        self.waiting.discard(coming)
        if not self.ours and not self.waiting:
            self.connection.tell("Browser.setDownloadBehavior", {"behavior": "default"})

    def refused(self) -> list[RefusedConnection]:
        """Return the connections that pages were refused since the last call."""
        return [] if self.proxy is None else self.proxy.taken()

    def trouble(self, url: str, error: str) -> str:
        """Describe why an address could not be opened."""
        told = self.proxy.errors.pop(urlsplit(url).hostname or "", None) if self.proxy is not None else None
        name = error.removeprefix("net::")
        return told or ERROR_TEXTS.get(name, name)

    async def close(self) -> None:
        """End the browser if it is ours; else close nothing but the connection."""
        for task in self._preparing:
            task.cancel()
        with anyio.CancelScope(shield=True):
            await self._end()
            await asyncio.to_thread(shutil.rmtree, self.downloads, ignore_errors=True)

    def _told(self, method: str, params: dict[str, Any]) -> None:
        if method == "Target.attachedToTarget":
            self._attached(params)
        elif method == "Target.detachedFromTarget":
            page = self._by_session.pop(params["sessionId"], None)
            self.connection.forget(params["sessionId"])
            if page is not None:
                self._drop(page)
        elif method.startswith("Browser.download"):
            for coming in list(self.waiting):
                coming.told(method, params)
            if method == "Browser.downloadWillBegin" and all(each.guid != params["guid"] for each in self.waiting):
                self._unasked(params)
        self._turn.set()

    def _unasked(self, params: Mapping[str, Any]) -> None:
        """Report a download that no call waits for.

        In a browser of our own it is canceled, to keep it from filling the disk.
        """
        page = next((each for each in self.pages.values() if params["frameId"] in each.frames), None)
        if page is not None:
            page.files.append(params.get("suggestedFilename", ""))
            page.turned()
        if self.ours:
            self.connection.tell("Browser.cancelDownload", {"guid": params["guid"]})

    def _attached(self, params: dict[str, Any]) -> None:
        info, session = params["targetInfo"], params["sessionId"]
        if info["type"] != "page":
            return
        self._count += 1
        page = ChromiumPage(self.connection, id=f"t{self._count}", target=info["targetId"], session=session)
        page.url, page.title = info["url"], info["title"]
        self.pages[page.id] = self._by_session[session] = page
        self.active = self.active or page.id
        task = asyncio.create_task(self._prepared(page))
        self._preparing.add(task)
        task.add_done_callback(self._preparing.discard)

    async def _prepared(self, page: ChromiumPage) -> None:
        try:
            await page.prepare()
        # It may be gone again.
        except (Downstream, TimedOut):
            return

    def _drop(self, page: ChromiumPage) -> None:
        self.pages.pop(page.id, None)
        # Whoever waits for it waits no more.
        page.crashed = True
        page.turned()
        if self.active == page.id:
            self.active = next(reversed(self.pages), None)

"""`ChromiumDriver`: what `execute_browser` asks, done over the DevTools protocol."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Literal
from urllib.parse import urlsplit

from handrail import Denied, Downstream, Element, InvalidArguments, NotFound, Reason, StaleElement, TimedOut
from handrail.net import addresses
from handrail_browser.chromium import closed_shadow_roots, frames, wait_settled
from handrail_browser.chromium.browser import TUNNEL_FAILED
from handrail_browser.chromium.cdp import COMMAND_S, TargetGone
from handrail_browser.chromium.frames import PageFrame
from handrail_browser.chromium.input_actions import ChromiumActions
from handrail_browser.chromium.nodes import NodeHandle, build_node, find_frame_numbers, get_host_and_port, redact_url
from handrail_browser.chromium.proxy import REFUSAL_REASON_PHRASE
from handrail_browser.chromium.tabs import ChromiumPage
from handrail_browser.driver import (
    ActionOutcome,
    AmbiguousNode,
    BrowserTab,
    LoadState,
    PageInterrupted,
    PageNode,
    PageSnapshot,
    PageText,
    StaleNode,
)

SNAPSHOT_MS = 4_000
# A page on a busy machine is not said to hang sooner.
MIN_TIMEOUT_S = 1.0
FRAMES = 20
MAX_MARKUP = 4_000_000
MAX_HEIGHT = 16_384
NO_CONTENT_STATUSES = (204, 205)


def _build_denial(why: Reason) -> Denied:
    return Denied(
        why.text,
        hint=addresses.find_address_hint(why.code),
        details={"reason": why.code, "rule": f"browser:{why.code}"},
    )


class ChromiumDriver(ChromiumActions):
    """A Chromium, of our own or connected to."""

    name = "chromium"

    def be_patient(self, seconds: float) -> None:
        self._browser.connection.patience = min(max(seconds, MIN_TIMEOUT_S), COMMAND_S)

    # Tabs

    async def tabs(self) -> Sequence[BrowserTab]:
        await asyncio.gather(
            *(wait_settled.update_title(page) for page in self._browser.pages.values() if not page.interrupted)
        )
        return [self._seen(page) for page in self._browser.pages.values()]

    async def tab(self, id: str | None) -> BrowserTab:
        page = self._browser.page(id)
        if not page.interrupted:
            await wait_settled.update_title(page)
        return self._seen(page)

    async def follow(self) -> None:
        active = self._browser.page(None)
        if await wait_settled.is_tab_visible(active):
            return
        for page in reversed(list(self._browser.pages.values())):
            if page is not active and await wait_settled.is_tab_visible(page):
                self._browser.active = page.id
                return

    def _seen(self, page: ChromiumPage) -> BrowserTab:
        return replace(page.seen, active=page.id == self._browser.active)

    async def open_tab(self, url: str | None) -> BrowserTab:
        page = await self._browser.new_page()
        if url is not None:
            await self.navigate(self._seen(page), url, until="load", seconds=20)
        return await self.tab(page.id)

    async def close_tab(self, tab: BrowserTab) -> ActionOutcome:
        await self._browser.close_page(self._browser.page(tab.id))
        return ActionOutcome("confirmed", (f"{tab.id} is closed",))

    # Going somewhere

    async def navigate(
        self, tab: BrowserTab, url: str, *, until: LoadState, seconds: float, login: tuple[str, str] | None = None
    ) -> ActionOutcome:
        page = self._browser.page(tab.id)
        if login is not None:
            await self._log_in(page, url, login)
        self._browser.refused()
        page.begin()
        done = await self._go(page, "Page.navigate", {"url": url}, seconds)
        if error := (done or {}).get("errorText"):
            if error != "net::ERR_ABORTED":
                raise self._failed(url, error)
            if (status := (page.status or {}).get("status")) in NO_CONTENT_STATUSES:
                return ActionOutcome("none", (f"the server answered that there is nothing to show ({status})",), True)
            # Nothing was shown in its place: it is a file that the browser would save.
            return ActionOutcome(
                "none",
                ("the address gives a file, not a page",),
                True,
                {"note": "use the action download; of a PDF, web_fetch gives the text"},
            )
        if done is not None and "loaderId" not in done:
            return ActionOutcome("confirmed", (f"now at {url}",), True)
        whole = await wait_settled.wait_for_load(page, until, seconds)
        if page.failure is not None and not page.reached & {"load", "DOMContentLoaded"}:
            raise self._failed(url, page.failure)
        if not whole and not page.arrived:
            raise TimedOut(
                f"{redact_url(url)!r} did not come within {seconds:g} s", hint="give a longer timeout, or close the tab"
            )
        return self._arrived(page, url, whole)

    async def _go(
        self, page: ChromiumPage, method: str, params: dict[str, Any], seconds: float
    ) -> dict[str, Any] | None:
        """Return the browser's answer, or None if the page opens a dialog first, such as whether to leave it."""
        try:
            return await page.unless_asked(page.connection.send(method, params, session=page.session, seconds=seconds))
        except PageInterrupted:
            return None
        except TargetGone:
            if not page.crashed:
                raise
            # What has crashed is shown anew by going somewhere.
            page.crashed = False
            return await page.connection.send(method, params, session=page.session, seconds=seconds)

    def _arrived(self, page: ChromiumPage, url: str, whole: bool) -> ActionOutcome:
        evidence, more = [f"now at {page.url[:300]}"], dict[str, Any]()
        if page.dialog is not None:
            more["dialog"] = dict(page.dialog)
            evidence = [wait_settled.describe_dialog(page.dialog)]
            if page.dialog["kind"] == "beforeunload":
                return ActionOutcome("none", tuple(evidence), whole, more)
        status = (page.status or {}).get("status")
        if status is not None and status >= 400:
            more["http_status"] = status
            refused = [each for each in self._browser.refused() if each.place == get_host_and_port(page.url)]
            if status == 403 and refused:
                raise _build_denial(refused[-1].reason)
            if (page.status or {})["by"] == REFUSAL_REASON_PHRASE:
                # What is shown is our own word, and no page of that server.
                raise self._failed(url, TUNNEL_FAILED)
        if not whole:
            more["note"] = "The page had not come to its end in time; what there is can be used."
        return ActionOutcome("confirmed", tuple(evidence), whole, more)

    def _failed(self, url: str, error: str) -> Downstream:
        name = error.removeprefix("net::")
        refused = self._browser.refused()
        if refused and name in (TUNNEL_FAILED, "ERR_BLOCKED_BY_RESPONSE", "ERR_FAILED"):
            raise _build_denial(refused[-1].reason)
        if name == "ERR_INVALID_AUTH_CREDENTIALS":
            return Downstream(
                f"{redact_url(url)!r} asks for a name and a password",
                hint="give params.username and params.password (secret:NAME)",
                details={"http_status": 401},
            )
        if "CERT" in name or "SSL" in name:
            return Downstream(
                f"{redact_url(url)!r} cannot prove who it is ({name})",
                hint="its certificate is not valid here; nothing was sent to it",
            )
        told = self._browser.trouble(url, error)
        return Downstream(f"{redact_url(url)!r} could not be opened: {told}", details={"net_error": name})

    async def _log_in(self, page: ChromiumPage, url: str, login: tuple[str, str]) -> None:
        parts = urlsplit(url)
        page.login, page.login_origin = login, f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
        await page.connection.send("Fetch.enable", {"handleAuthRequests": True}, session=page.session)

    async def travel(
        self, tab: BrowserTab, where: Literal["back", "forward", "reload"], *, seconds: float
    ) -> ActionOutcome:
        page = self._browser.page(tab.id)
        if where == "reload":
            page.begin()
            if await self._go(page, "Page.reload", {}, seconds) is None:
                return self._arrived(page, page.url, True)
            return self._arrived(page, page.url, await wait_settled.wait_for_load(page, "load", seconds))
        history = await page.connection.send("Page.getNavigationHistory", session=page.session)
        place = history["currentIndex"] + (1 if where == "forward" else -1)
        entries = history["entries"]
        if not 0 <= place < len(entries) or entries[place]["url"] == "about:blank":
            return ActionOutcome("none", (f"there is no page to go {where} to",), True)
        before = page.navigations
        page.begin()
        if await self._go(page, "Page.navigateToHistoryEntry", {"entryId": entries[place]["id"]}, seconds) is not None:
            await page.until(lambda: page.interrupted or page.navigations > before, seconds)
            # A document that was kept is shown again without being loaded.
            await page.until(lambda: page.interrupted or not page.loading, seconds)
        return self._arrived(page, page.url, not page.loading)

    # Looking

    async def snapshot(
        self, tab: BrowserTab, *, everything: bool, selector: str | None, most: int, skip: int
    ) -> PageSnapshot:
        page = self._browser.page(tab.id)
        await wait_settled.wait_for_document(page)
        args = {"all": everything, "selector": selector, "most": most, "skip": skip, "ms": SNAPSHOT_MS}
        told = await closed_shadow_roots.call_with_shadow_roots(page, "snapshot", args)
        if told.get("missing"):
            raise NotFound(f"nothing fits the selector {selector!r}")
        nodes: list[PageNode] = []
        whole, total = told["whole"], told["total"]
        await self._add(page, page.document, told["lines"], nodes, args, depth=0)
        _, y, _, height, tall = told["scroll"]
        position = {"scroll_y": y, "height": tall, "view": height} if tall > height + 1 else {}
        # What is in frames comes on top of what the page itself counts.
        return PageSnapshot(tuple(nodes), total + len(nodes) - len(told["lines"]), whole, position)

    async def _add(
        self,
        page: ChromiumPage,
        frame: PageFrame,
        lines: Sequence[Mapping[str, Any]],
        nodes: list[PageNode],
        args: dict[str, Any],
        *,
        depth: int,
    ) -> None:
        """Append the lines of a frame as nodes, with those of nested frames at their positions."""
        for line in lines:
            node = build_node(page, frame, line, depth)
            nodes.append(node)
            if not line.get("frame") or depth >= 3 or len(nodes) >= args["most"] + FRAMES:
                continue
            with suppress(Downstream, TimedOut):
                inner = await self._within(page, frame, line["n"])
                if inner is not None:
                    inside = {**args, "selector": None, "skip": 0}
                    told = await closed_shadow_roots.call_with_shadow_roots(
                        page, "snapshot", inside, frame=inner, seconds=3
                    )
                    await self._add(page, inner, told.get("lines", ()), nodes, args, depth=depth + 1)

    async def _within(self, page: ChromiumPage, frame: PageFrame, number: int) -> PageFrame | None:
        """Return the frame that an element contains, or None."""
        handle = await page.ask("elementAt", {"n": number}, frame=frame)
        if handle is None:
            return None
        told = await page.connection.send("DOM.describeNode", {"objectId": handle}, session=frame.session)
        return page.frames.get(told["node"].get("frameId", ""))

    async def locate(self, element: Element) -> PageNode:
        handle = element.ref
        if not isinstance(handle, NodeHandle):
            raise InvalidArguments(
                f"{element.id} was seen by {element.source}, not on this page", hint="use an id of a snapshot"
            )
        page = self._browser.page(handle.page)
        frame = page.frames.get(handle.frame)
        if frame is None:
            raise StaleElement(
                f"{element.id} ({element.role} {element.text!r}) is gone with the page it was on",
                hint="take a new snapshot",
            )
        told = await page.ask(
            "resolve",
            {
                "n": handle.number,
                "print": handle.print,
                "role": element.role,
                "name": element.text,
                "nth": handle.nth,
                "of": handle.of,
            },
            frame=frame,
        )
        if (number := told.get("n")) is not None:
            return PageNode(
                element.role,
                element.text,
                handle=replace(handle, number=number),
                fingerprint=element.fingerprint,
                origin=told["origin"],
            )
        changed = told.get("changed")
        found = [build_node(page, frame, line, 0) for line in ([changed] if changed else told.get("candidates", ()))]
        became = f"is now {changed['role']} {changed['name']!r}" if changed else "is gone"
        raise StaleNode(f"{element.id} ({element.role} {element.text!r}) {became}; nothing was done", found)

    async def pick(
        self, tab: BrowserTab, *, selector: str | None, text: str | None, role: str | None = None
    ) -> PageNode:
        page = self._browser.page(tab.id)
        found: list[PageNode] = []
        count = 0
        args = {"selector": selector, "text": text, "role": role}
        for frame in [page.document, *(each for each in page.frames.values() if each.id != page.main)]:
            try:
                told = await closed_shadow_roots.call_with_shadow_roots(page, "pick", args, frame=frame)
            except Downstream:
                if frame.id == page.main:
                    raise
                # A frame that does not answer has nothing to give.
                continue
            if told.get("invalid"):
                raise InvalidArguments(f"{selector!r} is no CSS selector")
            count += told["count"]
            found += [replace(build_node(page, frame, line, 0), origin=told["origin"]) for line in told["found"]]
        what = f"the selector {selector!r}" if selector else f"the text {text!r}"
        if not count:
            raise NotFound(f"nothing on the page fits {what}", hint="take a snapshot to see what there is")
        if count > 1:
            raise AmbiguousNode(f"{count} things on the page fit {what}; nothing was done", found)
        return found[0]

    # Reading

    async def read(self, tab: BrowserTab, selector: str | None) -> PageText:
        page = self._browser.page(tab.id)
        await wait_settled.wait_for_document(page)
        here = await page.ask("here")
        told = await closed_shadow_roots.call_with_shadow_roots(
            page, "markup", {"selector": selector, "most": MAX_MARKUP, "ms": SNAPSHOT_MS}
        )
        if told.get("missing"):
            raise NotFound(f"nothing fits the selector {selector!r}")
        html, hidden = told["html"], told["unseen"]
        for number in find_frame_numbers(html)[:FRAMES]:
            with suppress(Downstream, TimedOut):
                inner = await self._within(page, page.document, number)
                if inner is not None:
                    more = await closed_shadow_roots.call_with_shadow_roots(
                        page, "markup", {"selector": None, "most": MAX_MARKUP // 4, "ms": 2_000}, frame=inner, seconds=4
                    )
                    mark = f'<section data-frame="{number}">'
                    html = html.replace(mark, mark + more.get("html", ""), 1)
                    hidden += more.get("unseen", 0)
        title = here["title"].replace("&", "&amp;").replace("<", "&lt;")
        return PageText(html=f"<title>{title}</title>{html}", content_type=here["type"], hidden=hidden, cut=told["cut"])

    async def screenshot(self, tab: BrowserTab, node: PageNode | None, *, full: bool) -> bytes:
        page = self._browser.page(tab.id)
        await wait_settled.wait_for_document(page)
        args: dict[str, Any] = {"format": "png", "optimizeForSpeed": True}
        if node is not None:
            _, handle = self._of(tab, node)
            frame = self._frame(page, handle)
            await page.ask("reveal", {"n": handle.number}, frame=frame)
            told = await page.ask("look", {"n": handle.number}, frame=frame)
            x, y, width, height = told["box"]
            left, top, _ = await frames.map_to_window(page.connection, page.frames, frame, x, y)
            right, bottom, _ = await frames.map_to_window(page.connection, page.frames, frame, x + width, y + height)
            # A part is named by its place on the page, not in the window.
            across, down = await page.ask("scrolledTo")
            size = {"width": max(right - left, 1), "height": max(bottom - top, 1), "scale": 1}
            args["clip"] = {"x": left + across, "y": top + down, **size}
        elif full:
            size = (await page.connection.send("Page.getLayoutMetrics", session=page.session))["cssContentSize"]
            args |= {"captureBeyondViewport": True}
            args["clip"] = {
                "x": 0,
                "y": 0,
                "width": size["width"],
                "height": min(size["height"], MAX_HEIGHT),
                "scale": 1,
            }
        shot = await page.unless_asked(
            page.connection.send("Page.captureScreenshot", args, session=page.session, seconds=30)
        )
        return base64.b64decode(shot["data"])

    def refused(self) -> Sequence[str]:
        return list(dict.fromkeys(f"{each.place}: {each.reason.text}" for each in self._browser.refused()))

    async def close(self) -> None:
        await self._browser.close()

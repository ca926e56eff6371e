"""Clicks, text, keys, choices, files and dialogs by PinchTab: the part of `PinchTabDriver` that changes pages.

Results are not based on what PinchTab reports (`clicked`, `filled`): the page is inspected after each action.
"""

from __future__ import annotations

import base64
import shutil
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Any

import anyio
import anyio.to_thread

from handrail import Downstream, InvalidArguments, NotFound, TimedOut
from handrail.json_types import is_object
from handrail_browser.driver import (
    ActionOutcome,
    BrowserDriver,
    BrowserTab,
    LoadState,
    PageInterrupted,
    PageNode,
    WaitConditions,
    require_handle,
)
from handrail_browser.pinchtab.client import PinchTabClient, build_tab_path
from handrail_browser.pinchtab.nodes import (
    FIELD_ROLES,
    LIST_ROLES,
    NodeHandle,
    describe_changes,
    find_focused_node,
    page_signature,
)
from handrail_browser.pinchtab.tabs import PinchTabPage, PinchTabPages

UNSUPPORTED_HINT = 'PinchTab cannot do this: a person can set plugins.browser.driver = "chromium"'
# The page is looked at so often until it is twice the same, and for so long at most.
LOOK_INTERVAL_S = 0.15
STILL_S = 4.0
VIEW_HEIGHT = 800
MAX_UPLOAD_BYTES = 5_000_000
RETURN = "\r"
# What PinchTab calls what is waited for. Releases as 0.8 know one word alone, and mean by it that the page is loaded.
WAIT_STATES: Mapping[LoadState, str] = {"load": "ready-state", "dom": "content-loaded", "network": "network-idle"}
LOADED = "networkidle"
LONGEST_WAIT_S = 30.0


def unsupported_action(what: str) -> Downstream:
    """Return the error for an action that PinchTab's interface does not support."""
    return Downstream(f"PinchTab cannot {what}", hint=UNSUPPORTED_HINT)


class PinchTabActions(BrowserDriver):
    """Actions on pages. `uploads` is the folder from which a PinchTab of our own uploads files, else None."""

    def __init__(self, pages: PinchTabPages, uploads: Path | None) -> None:
        self._pages = pages
        self._uploads = uploads
        self._knows_states = True

    @property
    def _client(self) -> PinchTabClient:
        return self._pages.client

    async def click(self, tab: BrowserTab, node: PageNode, *, button: str, count: int, seconds: float) -> ActionOutcome:
        if button != "left" or count > 2:
            raise unsupported_action("click with another button, or three times")
        page, handle = await self._of(tab, node)
        self._able(node)
        kind = "dblclick" if count == 2 else "click"

        async def clicked() -> None:
            # It aims before it scrolls.
            at = await self._act(page, "scrollintoview", seconds, nodeId=handle.number)
            try:
                await self._act(page, kind, seconds, nodeId=handle.number)
            except Downstream as exc:
                # Older versions give it the focus first; where that cannot be, they have done nothing, and click a point all the same.
                if "not focusable" not in str(exc) or (point := _find_center(at)) is None:
                    raise
                await self._act(page, kind, seconds, x=point[0], y=point[1], hasXY=True)

        return await self._doing(page, clicked)

    async def hover(self, tab: BrowserTab, node: PageNode, *, seconds: float) -> ActionOutcome:
        page, handle = await self._of(tab, node)
        return await self._doing(page, lambda: self._act(page, "hover", seconds, nodeId=handle.number))

    async def fill(self, tab: BrowserTab, node: PageNode, text: str, *, submit: bool, seconds: float) -> ActionOutcome:
        page, handle = await self._of(tab, node)
        self._able(node)

        async def filled() -> None:
            await self._act(page, "fill", seconds, nodeId=handle.number, text="" if text and typed else text)
            if text and typed:
                await self._act(page, "focus", seconds, nodeId=handle.number)
                await self._act(page, "keyboard-inserttext", seconds, text=text)

        # As keys it is heard by scripts of every kind; fields of a form of their own (dates, colours) take a value only.
        typed = node.role in FIELD_ROLES
        done = await self._doing(page, filled)
        if page.dialog is not None:
            return done
        done = self._filled(done, text, await self._again(page, handle))
        if not submit:
            return done
        sent = await self._pressed(page, None, "Enter", seconds)
        return replace(sent, evidence=(*done.evidence[:1], *sent.evidence), more={**done.more, **sent.more})

    def _filled(self, done: ActionOutcome, text: str, now: PageNode | None) -> ActionOutcome:
        if now is None:
            return replace(done, effect="unverified", evidence=("the field could not be read again", *done.evidence))
        held = now.value or ""
        wanted = " ".join(text.split())
        if held == text or " ".join(held.split()) == wanted:
            return replace(done, effect="confirmed", evidence=("it holds the text", *done.evidence))
        if held and set(held) == {"•"}:
            same = len(held) == len(text)
            told = f"it holds {len(held)} characters"
            return replace(done, effect="confirmed" if same else "unverified", evidence=(told, *done.evidence))
        note = "The field did not take the text as it was given: it may have a form or a length of its own."
        return replace(
            done, effect="unverified", evidence=(f"it holds {held[:200]!r}",), more={**done.more, "note": note}
        )

    async def press(self, tab: BrowserTab, node: PageNode | None, key: str, *, seconds: float) -> ActionOutcome:
        if "+" in key[:-1]:
            raise unsupported_action("press keys together")
        page = await self._pages.page(tab.id)
        handle = (await self._of(tab, node))[1] if node is not None else None
        return await self._pressed(page, handle, key, seconds)

    async def _pressed(self, page: PinchTabPage, handle: NodeHandle | None, key: str, seconds: float) -> ActionOutcome:
        async def pressed() -> None:
            if handle is not None:
                await self._act(page, "focus", seconds, nodeId=handle.number)
            await self._act(page, "press", seconds, key=key)

        async def typed() -> None:
            await self._act(page, "keyboard-type", seconds, text=RETURN)

        was = find_focused_node(await self._look(page))
        done = await self._doing(page, pressed)
        if key == "Enter" and not done.evidence and page.dialog is None and await self._idle(page):
            # Older versions tell scripts of the key, and do not send a form by it; as a letter it does. While something is on its way, it may
            # be the form, and is not sent twice.
            done = await self._doing(page, typed)
        if done.evidence or page.dialog is not None:
            return done
        now = find_focused_node(await self._look(page))
        if now is None or (was is not None and was.handle == now.handle):
            return done
        return replace(done, effect="confirmed", evidence=(f"focus on {now.called}",))

    async def select(self, tab: BrowserTab, node: PageNode, values: Sequence[str], *, seconds: float) -> ActionOutcome:
        if len(values) != 1:
            raise unsupported_action("choose several at once")
        page, handle = await self._of(tab, node)
        self._able(node)
        before = await self._again(page, handle)
        if before is None or before.role not in LIST_ROLES:
            raise InvalidArguments(
                f"{node.called} is no list of choices", hint="open it by click, and click the choice"
            )
        wanted, labels = values[0], _collect_option_labels(await self._look(page))

        async def typed() -> None:
            await self._act(page, "focus", seconds, nodeId=handle.number)
            await self._act(page, "keyboard-type", seconds, text=wanted)

        async def chosen() -> None:
            await self._act(page, "select", seconds, nodeId=handle.number, value=wanted)

        done = ActionOutcome("none")
        # A list that has the focus takes the letters of a label; older versions choose by value only, and empty it for another one.
        for way in (typed, chosen) if wanted in labels else (chosen,):
            done = await self._doing(page, way)
            now = await self._again(page, handle)
            if now is not None and (now.value == wanted or (wanted not in labels and now.value in labels)):
                return self._select_done(done, before, now)
        held = (await self._again(page, handle) or before).value
        raise NotFound(
            f"{node.called} did not take {wanted!r}; it holds {held!r}", details={"choices": sorted(labels)[:20]}
        )

    def _select_done(self, done: ActionOutcome, before: PageNode, now: PageNode | None) -> ActionOutcome:
        shown = now.value if now is not None else None
        effect = "none" if shown == before.value else "confirmed"
        return replace(done, effect=effect, evidence=(f"chosen: {shown!r}", *done.evidence))

    async def upload(
        self, tab: BrowserTab, node: PageNode | None, paths: Sequence[Path], *, seconds: float
    ) -> ActionOutcome:
        if node is None:
            raise InvalidArguments("no file chooser is open", hint="name the file field by params.selector")
        page, handle = await self._of(tab, node)
        if handle.selector is None:
            raise InvalidArguments(
                "PinchTab gives files to what a selector names, to nothing else", hint="name it by params.selector"
            )
        body = {"selector": handle.selector, **await anyio.to_thread.run_sync(self._given, paths)}

        async def given() -> None:
            await self._client.post(build_tab_path(page.there, "upload"), body, seconds=max(seconds, 30))

        done = await self._doing(page, given)
        now = await self._again(page, handle)
        told = f"{now.name} {now.value or ''}" if now is not None else ""
        count = f"{len(paths)} file{'s' if len(paths) > 1 else ''} given"
        shown = all(path.name in told for path in paths) or (len(paths) > 1 and f"{len(paths)} files" in told)
        return replace(done, effect="confirmed" if shown else "unverified", evidence=(count, *done.evidence))

    def _given(self, paths: Sequence[Path]) -> Mapping[str, list[str]]:
        """Return the files by name if the PinchTab is our own, else by content; a page then sees other names."""
        if sum(path.stat().st_size for path in paths) > MAX_UPLOAD_BYTES:
            raise unsupported_action(f"give more than {MAX_UPLOAD_BYTES:,} bytes of files")
        if self._uploads is None:
            return {"files": [f"base64:{base64.b64encode(path.read_bytes()).decode()}" for path in paths]}
        if len({path.name for path in paths}) < len(paths):
            raise unsupported_action("give several files of one name")
        for path in paths:
            shutil.copyfile(path, self._uploads / path.name)
        return {"paths": [path.name for path in paths]}

    async def scroll(self, tab: BrowserTab, node: PageNode | None, direction: str, amount: float) -> ActionOutcome:
        page = await self._pages.page(tab.id)
        if node is not None:
            if direction != "into":
                raise unsupported_action("scroll a box in a page")
            _, handle = await self._of(tab, node)
            return await self._doing(page, lambda: self._act(page, "scrollintoview", 15, nodeId=handle.number))
        if direction in ("top", "bottom"):
            key = "Home" if direction == "top" else "End"
            return await self._doing(page, lambda: self._act(page, "press", 15, key=key))
        step = round(VIEW_HEIGHT * amount)
        x, y = {"up": (0, -step), "down": (0, step), "left": (-step, 0), "right": (step, 0)}.get(direction, (0, step))
        return await self._doing(page, lambda: self._act(page, "scroll", 15, scrollX=x, scrollY=y))

    async def dialog(self, tab: BrowserTab, *, accept: bool, text: str | None, seconds: float) -> ActionOutcome:
        page = await self._pages.page(tab.id)
        body = {"action": "accept" if accept else "dismiss"} | ({"text": text} if text is not None else {})
        try:
            told = await self._client.post(build_tab_path(page.there, "dialog"), body, seconds=seconds)
        except InvalidArguments as exc:
            page.dialog = None
            raise NotFound("the page asks nothing", hint="take a snapshot") from exc
        page.dialog = None
        said = f"{told.get('type', 'dialog')}: {str(told.get('message', ''))[:200]!r}"
        was = page.url
        await self._still(page)
        await self._pages.refresh()
        moved = (f"now at {page.url[:300]}",) if page.url != was else ()
        return ActionOutcome("confirmed", ("accepted" if accept else "dismissed", said, *moved), True)

    async def wait(self, tab: BrowserTab, awaited: WaitConditions, *, seconds: float) -> bool:
        page = await self._pages.page(tab.id)
        ends = monotonic() + seconds
        if awaited.until is not None and not await self._reached(page, awaited.until, ends):
            return False
        if awaited.selector is not None:
            state = "hidden" if awaited.gone else "visible"
            if not await self._waited(page, ends, {"selector": f"css:{awaited.selector}", "state": state}):
                return False
        text, url = awaited.text, awaited.url
        while url is not None or text is not None:
            there = text is not None and text in await self._text(page)
            await self._pages.refresh()
            if (url is None or url in page.url) and (text is None or there is not awaited.gone):
                break
            if monotonic() > ends:
                return False
            await anyio.sleep(LOOK_INTERVAL_S)
        return True

    async def _idle(self, page: PinchTabPage) -> bool:
        """Return True once no requests of the page are pending; False if they take longer than the limit."""
        return await self._reached(page, "network", monotonic() + STILL_S)

    async def _reached(self, page: PinchTabPage, until: LoadState, ends: float) -> bool:
        """Return True if the document reaches the state `until` in time."""
        if self._knows_states:
            try:
                return await self._waited(page, ends, {"load": WAIT_STATES[until]})
            except InvalidArguments:
                self._knows_states = False
        return await self._waited(page, ends, {"load": LOADED})

    async def _waited(self, page: PinchTabPage, ends: float, what: Mapping[str, Any]) -> bool:
        while True:
            left = min(max(ends - monotonic(), 0.1), LONGEST_WAIT_S)
            body = {**what, "timeout": int(left * 1000)}
            told = await self._client.post(build_tab_path(page.there, "wait"), body, seconds=left + 5)
            if told.get("waited") is True or monotonic() >= ends or "timeout" not in str(told.get("error")):
                return told.get("waited") is True

    async def _text(self, page: PinchTabPage) -> str:
        told = await self._pages.unless_asked(
            page, self._client.get(build_tab_path(page.there, "text"), {"mode": "raw"})
        )
        return str(told.get("text") or "")

    # What all actions have in common

    async def _of(self, tab: BrowserTab, node: PageNode) -> tuple[PinchTabPage, NodeHandle]:
        handle = require_handle(tab, node, NodeHandle)
        return await self._pages.page(tab.id), handle

    def _able(self, node: PageNode) -> None:
        if "disabled" in node.states:
            raise Downstream(f"{node.called} cannot be used: it is disabled", hint="wait until it can be used")

    async def _act(self, page: PinchTabPage, kind: str, seconds: float, **body: Any) -> Mapping[str, Any]:
        """Perform an action, and return what PinchTab reports about it."""
        told = await self._client.post(
            build_tab_path(page.there, "action"), {"kind": kind, **body}, seconds=max(seconds, 1)
        )
        check_action_result(kind, told)
        return found if is_object(found := told.get("result")) else {}

    async def _doing(self, page: PinchTabPage, action: Callable[[], Awaitable[Any]]) -> ActionOutcome:
        """Do it, wait until the page is still, and say what is different then."""
        was, before = page.url, await self._look(page)
        tabs = {each.id for each in await self._pages.refresh()}

        async def acted() -> None:
            await action()

        try:
            await self._pages.unless_asked(page, acted())
            still, now = await self._still(page)
        except PageInterrupted:
            return build_dialog_outcome(page)
        found = await self._pages.refresh()
        evidence = [f"now at {page.url[:300]}"] if page.url != was else []
        evidence += describe_changes(before, now)
        more: dict[str, Any] = {}
        if opened := [each.id for each in found if each.id not in tabs]:
            more["opened_tabs"] = opened
            evidence.append(f"opened {', '.join(opened)}")
        await self._kept(page)
        return ActionOutcome("confirmed" if evidence else "unverified", tuple(evidence), still, more)

    async def _still(self, page: PinchTabPage) -> tuple[bool, Sequence[PageNode]]:
        """Return the page once two inspections agree, with True; after the time limit, the last one with False."""
        ends = monotonic() + STILL_S
        seen: Sequence[PageNode] | None = None
        while True:
            try:
                now = await self._look(page)
            except (Downstream, TimedOut):
                # Between two pages there is nothing to look at.
                if monotonic() > ends:
                    raise
                now = None
            if now is not None and seen is not None and page_signature(now) == page_signature(seen):
                return True, now
            if now is not None and monotonic() > ends:
                return False, now
            seen = now
            await anyio.sleep(LOOK_INTERVAL_S)

    async def _again(self, page: PinchTabPage, handle: NodeHandle) -> PageNode | None:
        """Return the element as it is now, or None if it is gone or a dialog is open."""
        if page.dialog is not None:
            return None
        found = await self._look(page)
        return next((n for n in found if isinstance(n.handle, NodeHandle) and n.handle.number == handle.number), None)

    @abstractmethod
    async def _look(self, page: PinchTabPage, selector: str | None = None) -> Sequence[PageNode]:
        """Return the content of the page."""

    @abstractmethod
    async def _kept(self, page: PinchTabPage) -> None:
        """Enforce the address rules for the tab, regardless of what has changed its address."""


def _collect_option_labels(nodes: Sequence[PageNode]) -> frozenset[str]:
    """Return the labels of the options in the page's lists."""
    return frozenset(label for node in nodes for label in ((node.name,) if node.role == "option" else node.options))


def build_dialog_outcome(page: PinchTabPage) -> ActionOutcome:
    """Return the outcome of an action that made the page open a dialog."""
    message = str((page.dialog or {}).get("message", ""))
    told = (
        f"the page asks: {message!r}" if message else "the page asks something; PinchTab tells what once it is answered"
    )
    return ActionOutcome("confirmed", (told,), True, {"dialog": dict(page.dialog or {})})


def check_action_result(kind: str, told: Mapping[str, Any]) -> None:
    """Check that PinchTab performed the action on the named element.

    It may choose a similar element instead, and report success. Raises `Downstream` in either case of failure.
    """
    if told.get("success") is not True:
        raise Downstream(f"PinchTab did not do {kind!r}: {str(told.get('error'))[:200]}")
    if "recovery" in told:
        raise Downstream(
            "PinchTab did not find the element, and did it to another one that is like it",
            hint="take a new snapshot to see what came of it",
        )


def _find_center(told: Mapping[str, Any]) -> tuple[float, float] | None:
    """Return the center of the box that PinchTab reports for an element in view; None if it reports none."""
    box = told.get("box", told)
    try:
        return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    except (KeyError, TypeError):
        return None

"""Mouse, keys, fields, files and dialogs of a Chromium: the half of `ChromiumDriver` that changes pages."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any

from handrail import Downstream, InvalidArguments, NotFound, StaleElement, TimedOut
from handrail_browser.chromium import frames, key_chords, wait_settled
from handrail_browser.chromium.browser import TUNNEL_FAILED, ChromiumBrowser
from handrail_browser.chromium.cdp import TargetGone
from handrail_browser.chromium.frames import PageFrame
from handrail_browser.chromium.nodes import NodeHandle, redact_url
from handrail_browser.chromium.proxy import REFUSAL_REASON_PHRASE
from handrail_browser.chromium.tabs import ChromiumPage
from handrail_browser.driver import (
    ActionOutcome,
    BrowserDriver,
    BrowserTab,
    DownloadedFile,
    PageInterrupted,
    PageNode,
    WaitConditions,
    require_handle,
)

# What a new tab is waited for.
NEW_TAB_S = 3.0
LATE_S = 0.3
# Frames may come while something is waited for.
WAIT_TURN_S = 1.0
FRAMES = 20
BUTTONS = {"left": 1, "right": 2, "middle": 4}


class ChromiumActions(BrowserDriver):
    """Actions on pages by means of input such as a user's."""

    def __init__(self, browser: ChromiumBrowser) -> None:
        self._browser = browser

    async def click(self, tab: BrowserTab, node: PageNode, *, button: str, count: int, seconds: float) -> ActionOutcome:
        page, handle = self._of(tab, node)
        x, y = await self._ready(page, handle, node, seconds, enabled=True)
        clicked = self._clicked(page, x, y, button, count, seconds)
        return await self._doing(page, clicked, self._frame(page, handle), target=handle.number, pressing=True)

    async def _clicked(self, page: ChromiumPage, x: float, y: float, button: str, count: int, seconds: float) -> None:
        mouse = {"x": x, "y": y, "button": button, "modifiers": 0}
        send = partial(self._browser.connection.send, session=page.session, seconds=seconds)
        steps = [send("Input.dispatchMouseEvent", {**mouse, "type": "mouseMoved", "button": "none"})]
        for nth in range(1, count + 1):
            steps.append(
                send(
                    "Input.dispatchMouseEvent",
                    {**mouse, "type": "mousePressed", "clickCount": nth, "buttons": BUTTONS[button]},
                )
            )
            steps.append(
                send(
                    "Input.dispatchMouseEvent",
                    {**mouse, "type": "mouseReleased", "clickCount": nth, "buttons": 0},
                )
            )
        # They go out one behind the other, and are answered in that order.
        await asyncio.gather(*steps)

    async def hover(self, tab: BrowserTab, node: PageNode, *, seconds: float) -> ActionOutcome:
        page, handle = self._of(tab, node)
        x, y = await self._ready(page, handle, node, seconds, enabled=False)
        moved = self._browser.connection.send(
            "Input.dispatchMouseEvent", {"type": "mouseMoved", "x": x, "y": y}, session=page.session
        )
        return await self._doing(page, moved, self._frame(page, handle))

    async def fill(self, tab: BrowserTab, node: PageNode, text: str, *, submit: bool, seconds: float) -> ActionOutcome:
        page, handle = self._of(tab, node)
        frame = self._frame(page, handle)
        await self._ready(page, handle, node, seconds, enabled=True, editable=True)
        cleared = await page.ask("clear", {"n": handle.number}, frame=frame)
        if "wrong" in cleared:
            raise InvalidArguments(
                f"{node.called} takes no text",
                hint="use select for lists, click for boxes and buttons, upload for files",
            )
        if cleared.get("set"):
            putting = page.ask("set", {"n": handle.number, "value": text}, frame=frame)
        else:
            putting = self._typed(page, frame, handle, node, text)
        done = await self._doing(page, putting, frame, target=handle.number, filling=True)
        read = await self._kept(page, frame, "filled", {"n": handle.number, "value": text})
        if read is not None and not read["same"]:
            evidence = (
                f"it holds {read['shown']!r}" if read["shown"] != "•••" else f"it holds {read['length']} characters",
            )
            note = "The field did not take the text as it was given: it may have a form or a length of its own."
            done = replace(
                done,
                effect="unverified",
                evidence=(*evidence, *done.evidence),
                more={**done.more, "value": read["shown"], "note": note},
            )
        elif read is not None:
            done = replace(
                done,
                effect="confirmed",
                evidence=("it holds the text", *(e for e in done.evidence if "focus on" not in e)),
            )
        if not submit or page.interrupted:
            return done
        if read is not None and not (read["same"] or read["formed"]):
            # What would be sent is not what was given.
            return replace(done, more={**done.more, "note": f"{done.more['note']} Nothing was submitted."})
        sent = await self._doing(page, self._pressed(page, key_chords.parse_chord("Enter")), frame)
        return replace(sent, evidence=(*done.evidence[:1], *sent.evidence), more={**done.more, **sent.more})

    async def _typed(self, page: ChromiumPage, frame: PageFrame, handle: NodeHandle, node: PageNode, text: str) -> None:
        """Type over the selected text of a field; Delete is pressed only while that field is proved to have the focus."""
        if text:
            await self._browser.connection.send("Input.insertText", {"text": text}, session=page.session)
        elif await page.ask("focused", {"n": handle.number}, frame=frame):
            await self._pressed(page, key_chords.parse_chord("Delete"))
        else:
            raise Downstream(
                f"the focus is not in {node.called} as a text field, so its text was not deleted",
                hint="click it first; where the page puts another field in its place, fill that one",
            )

    async def _kept(
        self, page: ChromiumPage, frame: PageFrame, question: str, args: dict[str, Any]
    ) -> dict[str, Any] | None:
        """Return what a field contains once the page has settled; None if that cannot be read."""
        if page.interrupted:
            return None
        with suppress(Downstream, PageInterrupted):
            read = await page.ask(question, args, frame=frame)
            return None if read.get("gone") else read
        return None

    async def press(self, tab: BrowserTab, node: PageNode | None, key: str, *, seconds: float) -> ActionOutcome:
        chord = key_chords.parse_chord(key)
        page = self._browser.page(tab.id)
        if node is not None:
            _, handle = self._of(tab, node)
            if not await page.ask("focus", {"n": handle.number}, frame=self._frame(page, handle)):
                raise Downstream(f"{node.called} does not take the focus")
        return await self._doing(page, self._pressed(page, chord))

    async def _pressed(self, page: ChromiumPage, chord: key_chords.KeyChord) -> None:
        send = self._browser.connection.send
        await asyncio.gather(*(send("Input.dispatchKeyEvent", event, session=page.session) for event in chord.events()))

    async def select(self, tab: BrowserTab, node: PageNode, values: Sequence[str], *, seconds: float) -> ActionOutcome:
        page, handle = self._of(tab, node)
        frame, wanted = self._frame(page, handle), {"n": handle.number, "values": list(values)}
        told: dict[str, Any] = {}

        async def choose() -> None:
            told.update(await page.ask("choose", wanted, frame=frame))

        done = await self._doing(page, choose(), frame, target=handle.number, filling=True)
        if "wrong" in told:
            raise InvalidArguments(
                f"{node.called} is no list of choices", hint="open it by click, and click the choice"
            )
        if "missing" in told:
            raise NotFound(f"{node.called} has no choice {told['missing'][0]!r}", details={"choices": told["options"]})
        if told.get("disabled") or told.get("single"):
            why = f"{told['disabled']} is disabled" if told.get("disabled") else "only one can be chosen"
            raise Downstream(f"{node.called}: {why}")
        kept = await self._kept(page, frame, "chosen", wanted)
        if kept is not None and not kept["same"]:
            note = "The page did not keep the choice."
            evidence = (f"it holds {kept['shown']!r}", *done.evidence)
            return replace(done, effect="unverified", evidence=evidence, more={**done.more, "note": note})
        effect = "confirmed" if told.get("changed") else "none"
        return replace(done, effect=effect, evidence=(f"chosen: {told.get('shown')!r}", *done.evidence))

    async def upload(
        self, tab: BrowserTab, node: PageNode | None, paths: Sequence[Path], *, seconds: float
    ) -> ActionOutcome:
        page = self._browser.page(tab.id)
        chooser, page.chooser = page.chooser, None
        try:
            frame, number = await self._file_field(page, chooser, tab, node)
            field = await page.ask("fileField", {"n": number}, frame=frame)
            self._check_field(field, "the file field" if node is None else node.called, len(paths))
        except BaseException:
            # It goes on asking.
            page.chooser = chooser
            raise
        args = {"n": field["n"]}
        where = {"files": [str(path) for path in paths], "objectId": await page.ask("elementAt", args, frame=frame)}
        given = page.connection.send("DOM.setFileInputFiles", where, session=frame.session)
        done = await self._doing(page, given, frame, target=field["n"], filling=True)
        kept = await self._kept(page, frame, "fileField", args)
        if kept is not None and kept["files"] != [path.name for path in paths]:
            note = "The field does not hold what was given: the page may have taken it, or refused it."
            evidence = (f"the field holds {', '.join(kept['files']) or 'no file'}", *done.evidence)
            return replace(done, effect="unverified", evidence=evidence, more={**done.more, "note": note})
        count = f"{len(paths)} file{'s' if len(paths) > 1 else ''} given"
        return replace(done, effect="confirmed", evidence=(count, *done.evidence))

    async def _file_field(
        self, page: ChromiumPage, chooser: dict[str, Any] | None, tab: BrowserTab, node: PageNode | None
    ) -> tuple[PageFrame, int]:
        """Return the frame and number of the field for files: that of the open file chooser, or the element named."""
        if chooser is not None:
            frame = page.frames.get(chooser["frameId"], page.document)
            return frame, await frames.get_element_number(page.connection, frame, chooser["backendNodeId"])
        if node is None:
            raise InvalidArguments(
                "no file chooser is open", hint="name the file field by params.ref or params.selector"
            )
        _, handle = self._of(tab, node)
        return self._frame(page, handle), handle.number

    def _check_field(self, field: dict[str, Any], what: str, count: int) -> None:
        """Raise an error if a user could not select that many files in the field."""
        if field.get("gone"):
            raise StaleElement(f"{what} is gone", hint="take a new snapshot")
        if "wrong" in field:
            raise InvalidArguments(
                f"{what} takes no files", hint="click it: where a file chooser opens, upload into that"
            )
        if field["disabled"]:
            raise Downstream(f"{what} cannot be used: it is disabled")
        if count > 1 and not field["multiple"]:
            raise InvalidArguments(f"{what} takes one file, and {count} were given")

    async def scroll(self, tab: BrowserTab, node: PageNode | None, direction: str, amount: float) -> ActionOutcome:
        page = self._browser.page(tab.id)
        x, y = {"up": (0, -amount), "down": (0, amount), "left": (-amount, 0), "right": (amount, 0)}.get(
            direction, (0, 0)
        )
        handle = node.handle if node is not None else None
        told: dict[str, Any] = {}

        async def move() -> None:
            args = {"n": handle.number if handle else None, "x": x, "y": y, "to": direction}
            told.update(await page.ask("scroll", args, frame=self._frame(page, handle) if handle else None))

        done = await self._doing(page, move(), filling=True)
        if not told.get("moved"):
            return replace(done, effect="none", evidence=("it is at its end already", *done.evidence))
        more = {**done.more, **{k: told[k] for k in ("at", "height", "view") if k in told}}
        return replace(done, effect="confirmed", evidence=done.evidence or ("it was scrolled",), more=more)

    async def dialog(self, tab: BrowserTab, *, accept: bool, text: str | None, seconds: float) -> ActionOutcome:
        page = self._browser.page(tab.id)
        if page.chooser is not None and page.dialog is None:
            page.chooser = None
            return ActionOutcome("confirmed", ("no file was given",), True)
        if page.dialog is None:
            raise NotFound("the page asks nothing")
        was = wait_settled.capture_baseline(page, frozenset(self._browser.pages))
        kind = page.dialog["kind"]
        answer: dict[str, Any] = {"accept": accept}
        if text is not None:
            answer["promptText"] = text
        page.dialog = None
        await page.connection.send("Page.handleJavaScriptDialog", answer, session=page.session)
        if kind == "beforeunload" and accept:
            await wait_settled.wait_for_load(page, "load", seconds)
        rest, _ = await wait_settled.wait_until_settled(page, was)
        more: dict[str, Any] = {"dialog": dict(page.dialog)} if page.dialog is not None else {}
        evidence = ("accepted" if accept else "dismissed", *((f"now at {page.url}",) if page.url != was.url else ()))
        if page.dialog is not None:
            evidence += (wait_settled.describe_dialog(page.dialog),)
        return ActionOutcome("confirmed", evidence, rest, more)

    async def wait(self, tab: BrowserTab, awaited: WaitConditions, *, seconds: float) -> bool:
        page = self._browser.page(tab.id)
        ends = monotonic() + seconds
        url, until = awaited.url, awaited.until
        if url is not None and not await page.until(lambda: page.interrupted or url in page.url, seconds):
            return False
        if until is not None and not await wait_settled.wait_for_state(page, until, ends - monotonic()):
            return False
        if awaited.text is None and awaited.selector is None:
            return True
        wanted = {"text": awaited.text, "gone": awaited.gone, "selector": awaited.selector}
        while (left := ends - monotonic()) > 0:
            if await self._waited(page, {**wanted, "ms": min(left, WAIT_TURN_S) * 1000}):
                return True
        return False

    async def _waited(self, page: ChromiumPage, args: dict[str, Any]) -> bool:
        """Return True if the condition holds in any frame in time; for `gone`, if it holds in all of them at once."""
        frames = [page.document, *(each for each in page.frames.values() if each.id != page.main)][:FRAMES]
        asked = [asyncio.ensure_future(self._waited_in(page, frame, args)) for frame in frames]
        try:
            if args["gone"]:
                met = all(await asyncio.gather(*asked))
                # They came to be so one after the other: now they have to be all at once.
                return met and (
                    len(frames) == 1 or all([await self._waited_in(page, each, {**args, "ms": 0}) for each in frames])
                )
            for each in asyncio.as_completed(asked):
                if await each:
                    return True
            return False
        finally:
            for each in asked:
                each.cancel()
            await asyncio.gather(*asked, return_exceptions=True)

    async def _waited_in(self, page: ChromiumPage, frame: PageFrame, args: dict[str, Any]) -> bool:
        try:
            met = await page.ask("waited", args, frame=frame, seconds=args["ms"] / 1000 + 2)
        except TargetGone:
            if page.crashed:
                raise
            # The page itself is asked again; a frame that is gone shows nothing.
            return bool(args["gone"]) and frame.id != page.main
        except (Downstream, TimedOut):
            if frame.id == page.main:
                raise
            return bool(args["gone"])
        if isinstance(met, dict):
            raise InvalidArguments(f"{args['selector']!r} is no CSS selector")
        return met is True

    async def download(
        self, tab: BrowserTab, node: PageNode | None, url: str | None, *, seconds: float
    ) -> DownloadedFile:
        page = self._browser.page(tab.id)
        coming = self._browser.coming(page)
        try:
            if node is not None:
                _, handle = self._of(tab, node)
                x, y = await self._ready(page, handle, node, 5.0, enabled=True)
                await page.unless_asked(self._clicked(page, x, y, "left", 1, seconds))
            else:
                with suppress(Downstream):
                    await page.unless_asked(
                        page.connection.send("Page.navigate", {"url": url}, session=page.session, seconds=seconds)
                    )
            return await coming.taken(seconds)
        finally:
            coming.over()

    def _of(self, tab: BrowserTab, node: PageNode) -> tuple[ChromiumPage, NodeHandle]:
        return self._browser.page(tab.id), require_handle(tab, node, NodeHandle)

    def _frame(self, page: ChromiumPage, handle: NodeHandle) -> PageFrame:
        frame = page.frames.get(handle.frame)
        if frame is None:
            raise StaleElement("the frame that it was in is gone", hint="take a new snapshot")
        return frame

    async def _ready(
        self,
        page: ChromiumPage,
        handle: NodeHandle,
        node: PageNode,
        seconds: float,
        *,
        enabled: bool,
        editable: bool = False,
    ) -> tuple[float, float]:
        """Wait until an element can be clicked, and return the point in pixels of its tab's window."""
        frame, ends, again = self._frame(page, handle), monotonic() + seconds, 0
        while True:
            left = max(ends - monotonic(), 0.0)
            args = {"n": handle.number, "ms": left * 1000, "enabled": enabled, "editable": editable, "again": again}
            told = await page.ask("ready", args, frame=frame, seconds=left + 5)
            if told.get("gone"):
                raise StaleElement(f"{node.called} is gone", hint="take a new snapshot")
            why = told.get("why")
            if why is None:
                x, y, why = await frames.map_to_window(page.connection, page.frames, frame, told["x"], told["y"])
                if why is None:
                    return x, y
                again += 1
            if monotonic() >= ends:
                raise Downstream(
                    f"{node.called} cannot be used: {why}",
                    hint="wait, scroll, or close what is in the way; then try again",
                )

    def _led_to(self, page: ChromiumPage, was: wait_settled.TabBaseline, done: ActionOutcome) -> ActionOutcome:
        """Add to the outcome what there is to report about a page or a file that the action opened."""
        more = dict(done.more)
        if page.files:
            done = replace(done, effect="confirmed", evidence=(f"a download began: {page.files[0]!r}", *done.evidence))
        if page.files and self._browser.ours:
            more["note"] = "What began to download was not kept: the action download, of the same element, saves it."
        if page.documents == was.documents or page.dialog is not None:
            return replace(done, more=more)
        status = page.status or {}
        if (error := page.failure) is None and status.get("status", 0) >= 400:
            more["http_status"] = status["status"]
            if status["by"] == REFUSAL_REASON_PHRASE:
                error = "it may not be gone to" if status["status"] == 403 else TUNNEL_FAILED
        if error is not None:
            told = f"{redact_url(page.url)!r} could not be opened: {self._browser.trouble(page.url, error)}"
            return replace(done, effect="unverified", evidence=(told,), more=more)
        return replace(done, more=more)

    async def _doing(
        self,
        page: ChromiumPage,
        action: Coroutine[Any, Any, Any],
        frame: PageFrame | None = None,
        *,
        target: int | None = None,
        filling: bool = False,
        pressing: bool = False,
    ) -> ActionOutcome:
        """Do it, and tell what came of it.

        `target` is the number of what it is done to; `filling` says that the caller reads that back, `pressing` that it is clicked.
        """
        was = wait_settled.capture_baseline(page, frozenset(self._browser.pages))
        try:
            await page.ask("watch", {"n": target, "filling": filling, "pressing": pressing}, frame=frame)
            done = await wait_settled.perform_action(page, action, was, lambda: list(self._browser.pages), frame)
        except TargetGone:
            if page.id in self._browser.pages:
                raise
            done = ActionOutcome("unverified")
        if done.effect == "unverified" and not filling:
            # Files and closed tabs are told of by the browser, not by the page, and a little later.
            await page.until(lambda: bool(page.files) or page.interrupted, LATE_S)
        if page.id not in self._browser.pages:
            return replace(done, effect="confirmed", evidence=("the tab was closed",), settled=True)
        done = self._led_to(page, was, done)
        opened = [self._browser.pages[id] for id in done.more.get("opened_tabs", ()) if id in self._browser.pages]
        for each in opened:
            await each.until(
                lambda each=each: each.interrupted or ("load" in each.reached and not each.fresh), NEW_TAB_S
            )
        return done

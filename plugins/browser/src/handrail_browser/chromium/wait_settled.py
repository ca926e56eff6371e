"""Detection of when an action's effects are over: navigation, requests and page changes, by events with a timeout."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from handrail import Downstream, TimedOut
from handrail_browser.chromium.cdp import CommandRefused, TargetGone
from handrail_browser.chromium.frames import PageFrame
from handrail_browser.chromium.tabs import ChromiumPage
from handrail_browser.driver import ActionOutcome, LoadState, PageInterrupted

# Seconds without a change that count as quiet, and how long is waited at most for pages, for requests and for changes.
STILL_S = 0.03
LOOK_TIMEOUT_S = 2.0
LOAD_S = 10.0
REQUESTS_S = 3.0
CHANGES_S = 1.0
MAX_TEXTS = 4


@dataclass(slots=True)
class TabBaseline:
    """A tab before an action, to be compared with what it is afterwards."""

    url: str
    title: str
    navigations: int
    documents: int
    tabs: frozenset[str]
    began: float = field(default_factory=monotonic)


def capture_baseline(page: ChromiumPage, tabs: frozenset[str]) -> TabBaseline:
    """Record the current state of the tab."""
    page.files.clear()
    return TabBaseline(page.url, page.title, page.navigations, page.documents, tabs)


async def wait_until_settled(
    page: ChromiumPage, was: TabBaseline, frame: PageFrame | None = None
) -> tuple[bool, dict[str, Any]]:
    """Return whether the page settled, and what our observer in the page saw.

    A page that waits for an answer counts as settled.
    """
    told: dict[str, Any] = {}
    ends = monotonic() + LOAD_S
    requests_end = monotonic() + REQUESTS_S
    try:
        while monotonic() < ends:
            if page.loading and not await page.until(lambda: page.interrupted or not page.loading, ends - monotonic()):
                return False, told
            if page.interrupted:
                return True, told
            if page.busy(was.began) and not await page.until(
                lambda: page.interrupted or page.loading or not page.busy(was.began), requests_end - monotonic()
            ):
                return False, told
            if page.loading:
                continue
            found = await page.ask("quiet", {"still": STILL_S * 1000, "ms": CHANGES_S * 1000}, frame=frame)
            told = found or told
            if not page.loading and not page.busy(was.began):
                return bool(found is None or found["settled"]), told
            if monotonic() >= requests_end and not page.loading:
                return False, told
    except PageInterrupted:
        return True, told
    except (TargetGone, CommandRefused):
        # The document that was watched has made room for another one.
        return await page.until(lambda: page.interrupted or not page.loading, LOAD_S), told
    return False, told


async def perform_action(
    page: ChromiumPage,
    action: Coroutine[Any, Any, Any],
    was: TabBaseline,
    tabs: Callable[[], Sequence[str]],
    frame: PageFrame | None = None,
) -> ActionOutcome:
    """Do it in a frame that is watched, and see what comes of it: where the page went, what it asks, what opened and what changed."""
    try:
        await page.unless_asked(action)
        rest, told = await wait_until_settled(page, was, frame)
    except PageInterrupted:
        rest, told = True, {}
    if came := told.get("missed"):
        raise Downstream(
            f"it was not clicked: {came['role']} {came['name'][:60]!r} came in between once the pointer was there",
            hint="take a new snapshot: the page changes under the pointer",
        )
    more: dict[str, Any] = {}
    evidence: list[str] = []
    if page.dialog is not None:
        more["dialog"] = dict(page.dialog)
        evidence.append(describe_dialog(page.dialog))
    if page.chooser is not None:
        more["file_chooser"] = page.seen.asks
        evidence.append("the page asks for a file")
    if page.url != was.url:
        evidence.append(f"now at {page.url[:300]}")
    elif page.navigations > was.navigations:
        evidence.append("the page was loaded anew")
    opened = [tab for tab in tabs() if tab not in was.tabs]
    if opened:
        more["opened_tabs"] = opened
        evidence.append(f"opened {len(opened)} tab{'s' if len(opened) > 1 else ''}")
    evidence += _describe_changes(told)
    return ActionOutcome(
        "confirmed" if evidence else "unverified", (*evidence, *_describe_unrelated_changes(told)), rest, more
    )


def describe_dialog(dialog: dict[str, Any]) -> str:
    """Describe the question of a dialog. A dialog that a page opens before it is left has no text of its own."""
    if dialog["kind"] == "beforeunload":
        return "the page asks whether to leave it"
    return f"the page asks: {dialog['message'][:200]!r}"


def _describe_changes(told: dict[str, Any]) -> list[str]:
    """Describe what changed in the page."""
    found: list[str] = []
    if texts := [text for text in dict.fromkeys(told.get("texts", ())) if text]:
        found.append("new on the page: " + "; ".join(repr(text) for text in texts[:MAX_TEXTS]))
    elif told.get("count"):
        found.append(f"{told['count']} changes in the page")
    found += [f"{each['role']} {each['name']!r} {_describe_field_value(each)}" for each in told.get("fields", ())]
    if told.get("focus") and not told["own"]:
        found.append(_describe_focus(told))
    if told.get("scrolled"):
        found.append("the page was scrolled")
    return found


def _describe_unrelated_changes(told: dict[str, Any]) -> list[str]:
    """Describe changes that would also have been seen if the action had done nothing."""
    found: list[str] = []
    if told.get("focus") and told["own"]:
        found.append(_describe_focus(told))
    if texts := list(dict.fromkeys(told.get("itself", ()))):
        found.append("the page changes by itself: " + "; ".join(repr(text) for text in texts[:MAX_TEXTS]))
    return found


def _describe_focus(told: dict[str, Any]) -> str:
    return f"focus on {told['focus']['role']} {told['focus']['name']!r}"


def _describe_field_value(field: dict[str, Any]) -> str:
    if field["ticked"] is not None:
        return "is checked" if field["ticked"] else "is not checked any more"
    return f"holds {field.get('value', '')!r}"


async def wait_for_load(page: ChromiumPage, until: LoadState, seconds: float) -> bool:
    """Return True if a new document reached the state `until` in time, failed to load or was interrupted."""
    wanted = {"dom": "DOMContentLoaded", "load": "load", "network": "load"}[until]
    ends = monotonic() + seconds
    done = await page.until(lambda: page.interrupted or page.failure is not None or wanted in page.reached, seconds)
    if done and until == "network" and not page.interrupted and page.failure is None:
        return await wait_for_network_idle(page, ends - monotonic())
    return done


async def wait_for_document(page: ChromiumPage) -> None:
    """Wait, with a timeout, for the document that a tab is loading, so as not to inspect the one before."""
    if not await wait_for_state(page, "dom", LOAD_S):
        # What did not come in that time is not waited for again.
        page.loading = False


async def wait_for_state(page: ChromiumPage, until: LoadState, seconds: float) -> bool:
    """Return True if the document, present or loading, reached the state `until` in time or was interrupted."""
    if until == "network":
        return await wait_for_network_idle(page, seconds)
    there = {"DOMContentLoaded"} if until == "dom" else set[str]()
    return await page.until(lambda: page.interrupted or not page.loading or bool(there & page.reached), seconds)


async def wait_for_network_idle(page: ChromiumPage, seconds: float, still: float = 0.5) -> bool:
    """Return True once no request has been pending for `still` seconds, or the page was interrupted.

    False if neither happens in time.
    """
    ends = monotonic() + seconds
    since = monotonic()
    while monotonic() < ends:
        if page.interrupted:
            return True
        if page.busy():
            if not await page.until(lambda: page.interrupted or not page.busy(), ends - monotonic()):
                return False
            since = monotonic()
        elif monotonic() - since >= still:
            return True
        else:
            await page.until(
                lambda: page.interrupted or bool(page.busy()), min(still - (monotonic() - since), ends - monotonic())
            )
    return False


async def is_tab_visible(page: ChromiumPage) -> bool:
    """Return True if the tab is visible to the user; False also if it does not respond."""
    try:
        return not page.interrupted and bool((await page.ask("here", seconds=LOOK_TIMEOUT_S))["shown"])
    # It asks something, or there is no document to be asked.
    except (PageInterrupted, Downstream, TimedOut):
        return False


async def update_title(page: ChromiumPage) -> None:
    """Learn how the document calls itself."""
    try:
        here = await page.ask("here", seconds=min(LOOK_TIMEOUT_S, page.connection.patience))
        page.title, page.url = here["title"], here["url"] if not here["url"].startswith("chrome-error:") else page.url
    # It asks something, or there is no document to be asked: then it has no title.
    except (PageInterrupted, Downstream, TimedOut):
        return

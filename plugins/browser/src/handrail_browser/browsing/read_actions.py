"""The actions of `execute_browser` that only look, each as the keys of its result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from handrail import Media
from handrail_browser.browsing import action_params as p
from handrail_browser.browsing.action_call import ActionCall, require_idle_tab
from handrail_browser.config import BrowserConfig
from handrail_browser.driver import WaitConditions

if TYPE_CHECKING:
    from handrail_browser.web.page_reader import PageReader


async def list_tabs(call: ActionCall) -> Mapping[str, Any]:
    """Return the open tabs."""
    from handrail_browser.browsing import snapshot_text

    found = await call.driver.tabs()
    active = next((tab.id for tab in found if tab.active), None)
    return {
        "content": snapshot_text.format_tabs(found) or "No tab is open.",
        "effect": "none",
        "tab_id": active,
        "tabs": len(found),
    }


async def wait_for_condition(call: ActionCall) -> Mapping[str, Any]:
    """Wait until something is so."""
    given: p.WaitParams = call.given
    tab = require_idle_tab(await call.tab())
    awaited = WaitConditions(given.text, given.selector, given.gone, given.url_part, given.until)
    met = await call.driver.wait(tab, awaited, seconds=given.timeout)
    if not met:
        return {"content": f"It did not come to be so within {given.timeout:g} s.", "effect": "none", "met": False}
    return {"content": "It is so.", "effect": "none", "met": True}


async def take_snapshot(call: ActionCall) -> Mapping[str, Any]:
    """Return what is on the page, or what has changed since the last snapshot."""
    from handrail_browser.browsing import snapshot_text

    given: p.SnapshotParams = call.given
    tab = require_idle_tab(await call.tab())
    found = await call.driver.snapshot(
        tab, everything=given.filter == "all", selector=given.selector, most=given.limit, skip=given.offset
    )
    lines = [
        snapshot_text.format_node(node, element)
        for node, element in snapshot_text.number_nodes(found.nodes, call.context.observations)
    ]
    before = call.browsers.snapshots.get(tab.id)
    call.browsers.snapshots[tab.id] = lines
    content = "\n".join(lines) or "There is nothing to use on this page."
    told: dict[str, Any] = {"effect": "none"} | snapshot_text.describe_counts(found, given.offset, given.limit)
    if given.diff and before is not None:
        content = snapshot_text.diff_lines(before, lines)
        told["diff"] = True
    return {"content": content, **told}


async def extract_text(call: ActionCall) -> Mapping[str, Any]:
    """Return the page's main text as Markdown: its beginning, with the complete text as an artifact if it is longer."""
    from handrail.sanitize.instructions import mark_instructions
    from handrail_browser.web.content_types import ContentFormat
    from handrail_browser.web.tool import instruction_notes, truncate_text

    tab = require_idle_tab(await call.tab())
    reading = await call.driver.read(tab, call.given.selector)
    notes: list[str] = []
    if reading.content_type == "application/pdf":
        return {
            "content": "",
            "effect": "none",
            "note": "This is a PDF: web_fetch gives its text; where that takes a login, save it by the action download, then read_pdf reads it.",
        }
    kind, text = "markdown", reading.text
    if reading.html:
        reader: PageReader = await call.context.service("page_reader")
        told, text = await reader.read(
            reading.html.encode("utf-8", "replace"), ContentFormat("html", "text/html", "utf-8"), tab.url
        )
        kind = told["kind"]
    text, speaking = mark_instructions(text)
    shown = cast("BrowserConfig", call.context.config).fetch_shown
    result: dict[str, Any] = {"content": text, "effect": "none", "characters": len(text)}
    if len(text) > shown:
        result |= {
            "content": truncate_text(text, shown),
            "truncated": True,
            "artifact": call.context.artifacts.keep(text, kind),
        }
    if reading.hidden:
        result["hidden"] = reading.hidden
        notes.append(f"{reading.hidden} characters were left out that a reader of the page would not see.")
    if speaking:
        result["instructions"] = speaking
        notes += instruction_notes(speaking)
    if reading.cut:
        notes.append("The page is so large that only its beginning was read: name a part by selector.")
    return {**result, "note": " ".join(notes)} if notes else result


async def take_screenshot(call: ActionCall) -> Mapping[str, Any]:
    """Return a screenshot as an artifact, and inline if the host renders images."""
    tab = require_idle_tab(await call.tab())
    node = await call.node(tab)
    data = await call.driver.screenshot(tab, node, full=call.given.full)
    kept = call.context.artifacts.keep(data, "binary")
    width, height = int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")
    words = f"A picture of {tab.title or tab.url}, {width} x {height}"
    media = [Media("image", "image/png", data=data, text=words)]
    return {"content": words, "effect": "none", "width": width, "height": height, "artifact": kept, "media": media}

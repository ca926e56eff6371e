"""The actions of `execute_browser` that go somewhere or do something, each as the keys of its result."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from handrail import Downstream, NotFound, ToolContext
from handrail.fs import safe_open
from handrail.redaction import redact_text
from handrail_browser.browsing import action_params as p
from handrail_browser.browsing.action_call import ActionCall, format_outcome, require_idle_tab

if TYPE_CHECKING:
    from handrail_browser.driver import BrowserTab

CHUNK_BYTES = 1_048_576


async def navigate_tab(call: ActionCall) -> Mapping[str, Any]:
    """Go to an address, in a new tab if none is open."""
    given: p.NavigateParams = call.given
    url = call.params.url or ""
    call.check_secrets(url)
    tab = await _get_or_open_tab(call)
    if tab.state == "dialog":
        require_idle_tab(tab)
    login = (given.username, given.password or "") if given.username is not None else None
    done = await call.driver.navigate(tab, url, until=given.until, seconds=given.timeout, login=login)
    call.browsers.snapshots.pop(tab.id, None)
    return format_outcome(done)


async def _get_or_open_tab(call: ActionCall) -> BrowserTab:
    named = call.given.tab_id
    if named is None and not await call.driver.tabs():
        return await call.driver.open_tab(None)
    return await call.driver.tab(named)


async def open_tab(call: ActionCall) -> Mapping[str, Any]:
    """Open a tab."""
    call.check_secrets(call.params.url or "")
    tab = await call.driver.open_tab(call.params.url)
    where = {"tab_id": tab.id, "url": redact_text(tab.url), "title": tab.title}
    return {"content": f"{tab.id} is open", "effect": "confirmed", **where}


async def close_tab(call: ActionCall) -> Mapping[str, Any]:
    """Close a tab."""
    tab = await call.tab()
    done = await call.driver.close_tab(tab)
    left = await call.driver.tabs()
    call.browsers.snapshots.pop(tab.id, None)
    return {**format_outcome(done), "tab_id": tab.id, "tabs": len(left)}


async def click_element(call: ActionCall) -> Mapping[str, Any]:
    """Click an element."""
    given: p.ClickParams = call.given
    tab, node = await call.target()
    return format_outcome(
        await call.driver.click(tab, node, button=given.button, count=given.clicks, seconds=given.timeout)
    )


async def hover_element(call: ActionCall) -> Mapping[str, Any]:
    """Put the pointer over an element."""
    tab, node = await call.target()
    return format_outcome(await call.driver.hover(tab, node, seconds=call.given.timeout))


async def fill_field(call: ActionCall) -> Mapping[str, Any]:
    """Replace a field's text."""
    given: p.FillParams = call.given
    tab, node = await call.target()
    return format_outcome(await call.driver.fill(tab, node, given.text, submit=given.submit, seconds=given.timeout))


async def press_key(call: ActionCall) -> Mapping[str, Any]:
    """Press a key."""
    given: p.PressParams = call.given
    tab = require_idle_tab(await call.tab())
    return format_outcome(await call.driver.press(tab, await call.node(tab), given.key, seconds=given.timeout))


async def select_options(call: ActionCall) -> Mapping[str, Any]:
    """Choose from a list."""
    given: p.SelectParams = call.given
    tab, node = await call.target()
    return format_outcome(await call.driver.select(tab, node, given.values, seconds=given.timeout))


async def scroll_page(call: ActionCall) -> Mapping[str, Any]:
    """Scroll the page or a box."""
    given: p.ScrollParams = call.given
    tab = require_idle_tab(await call.tab())
    return format_outcome(await call.driver.scroll(tab, await call.node(tab), given.direction, given.amount))


async def answer_dialog(call: ActionCall) -> Mapping[str, Any]:
    """Answer a dialog."""
    given: p.DialogParams = call.given
    tab = await call.tab()
    call.check_secrets(str(tab.asks.get("from") or tab.url))
    return format_outcome(await call.driver.dialog(tab, accept=given.accept, text=given.text, seconds=given.timeout))


async def travel_history(call: ActionCall) -> Mapping[str, Any]:
    """Go through the history."""
    tab = require_idle_tab(await call.tab()) if call.params.action != "reload" else await call.tab()
    return format_outcome(await call.driver.travel(tab, cast("Any", call.params.action), seconds=call.given.timeout))


async def upload_files(call: ActionCall) -> Mapping[str, Any]:
    """Give files to the page."""
    given: p.UploadParams = call.given
    tab = await call.tab()
    if tab.state != "file_chooser":
        require_idle_tab(tab)
    node = await call.node(tab) if tab.state != "file_chooser" else None
    paths = [_require_file(call.context, text) for text in given.paths]
    return format_outcome(await call.driver.upload(tab, node, paths, seconds=given.timeout))


def _require_file(context: ToolContext, text: str) -> Path:
    path = context.judged_path(text, "read")
    if not path.is_file():
        raise NotFound(f"there is no file {text!r}")
    return path


async def download_target(call: ActionCall) -> Mapping[str, Any]:
    """Save a file, completely or not at all."""
    given: p.DownloadParams = call.given
    tab = require_idle_tab(await _get_or_open_tab(call))
    target = call.context.judged_path(given.path, "write")
    if target.is_dir():
        raise Downstream(f"{given.path!r} is a folder", hint="give the file a name in it")
    safe_open.check_new_file_allowed(target)
    gotten = await call.driver.download(tab, await call.node(tab), call.params.url, seconds=max(given.timeout, 60))
    size, digest = await _move_into_place(gotten.path, target)
    gotten_as = {
        "path": str(target),
        "size_bytes": size,
        "sha256": digest,
        "file_name": gotten.name,
        "from": redact_text(gotten.url),
    }
    return {"content": f"{size:,} bytes are in {str(target)!r}", "effect": "confirmed", **gotten_as}


async def _move_into_place(source: Path, target: Path) -> tuple[int, str]:
    """Move the complete file to its place, and return its size in bytes and SHA-256."""
    import hashlib

    import anyio.to_thread

    def move() -> tuple[int, str]:
        digest, size = hashlib.sha256(), 0
        with source.open("rb") as file, safe_open.open_new_file(target) as arriving:
            while data := file.read(CHUNK_BYTES):
                digest.update(data)
                arriving.write(data)
                size += len(data)
        source.unlink(missing_ok=True)
        return size, digest.hexdigest()

    return await anyio.to_thread.run_sync(move)


async def describe_connection(call: ActionCall) -> Mapping[str, Any]:
    """Say what there is in the browser that was connected to."""
    found = await call.driver.tabs()
    note = "This browser is a person's own: only the addresses that you name are checked, not what its pages load."
    return {"content": f"Connected: {len(found)} tabs.", "effect": "confirmed", "note": note}

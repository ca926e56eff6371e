"""The actions of `execute_browser` that go somewhere or do something, each as the keys of its result."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from handrail import Downstream, NotFound, ToolContext
from handrail.files import opened
from handrail.records.redaction import redact_text
from handrail_browser.browsing import params as p
from handrail_browser.browsing.calls import Call, free, told

if TYPE_CHECKING:
    from handrail_browser.driver import Tab

CHUNK = 1_048_576


async def navigate(call: Call) -> Mapping[str, Any]:
    """Go to an address, in a new tab where there is none."""
    given: p.Navigate = call.given
    url = call.params.url or ""
    call.check_secrets(url)
    tab = await _some_tab(call)
    if tab.state == "dialog":
        free(tab)
    login = (given.username, given.password or "") if given.username is not None else None
    done = await call.driver.navigate(tab, url, until=given.until, seconds=given.timeout, login=login)
    call.browsers.snapshots.pop(tab.id, None)
    return told(done)


async def _some_tab(call: Call) -> Tab:
    named = call.given.tab_id
    if named is None and not await call.driver.tabs():
        return await call.driver.open_tab(None)
    return await call.driver.tab(named)


async def open_tab(call: Call) -> Mapping[str, Any]:
    """Open a tab."""
    call.check_secrets(call.params.url or "")
    tab = await call.driver.open_tab(call.params.url)
    where = {"tab_id": tab.id, "url": redact_text(tab.url), "title": tab.title}
    return {"content": f"{tab.id} is open", "effect": "confirmed", **where}


async def close_tab(call: Call) -> Mapping[str, Any]:
    """Close a tab."""
    tab = await call.tab()
    done = await call.driver.close_tab(tab)
    left = await call.driver.tabs()
    call.browsers.snapshots.pop(tab.id, None)
    return {**told(done), "tab_id": tab.id, "tabs": len(left)}


async def click(call: Call) -> Mapping[str, Any]:
    """Click an element."""
    given: p.Click = call.given
    tab, node = await call.target()
    return told(await call.driver.click(tab, node, button=given.button, count=given.clicks, seconds=given.timeout))


async def hover(call: Call) -> Mapping[str, Any]:
    """Put the pointer over an element."""
    tab, node = await call.target()
    return told(await call.driver.hover(tab, node, seconds=call.given.timeout))


async def fill(call: Call) -> Mapping[str, Any]:
    """Replace a field's text."""
    given: p.Fill = call.given
    tab, node = await call.target()
    return told(await call.driver.fill(tab, node, given.text, submit=given.submit, seconds=given.timeout))


async def press(call: Call) -> Mapping[str, Any]:
    """Press a key."""
    given: p.Press = call.given
    tab = free(await call.tab())
    return told(await call.driver.press(tab, await call.node(tab), given.key, seconds=given.timeout))


async def select(call: Call) -> Mapping[str, Any]:
    """Choose from a list."""
    given: p.Select = call.given
    tab, node = await call.target()
    return told(await call.driver.select(tab, node, given.values, seconds=given.timeout))


async def scroll(call: Call) -> Mapping[str, Any]:
    """Scroll the page or a box."""
    given: p.Scroll = call.given
    tab = free(await call.tab())
    return told(await call.driver.scroll(tab, await call.node(tab), given.direction, given.amount))


async def dialog(call: Call) -> Mapping[str, Any]:
    """Answer a dialog."""
    given: p.Dialog = call.given
    tab = await call.tab()
    call.check_secrets(str(tab.asks.get("from") or tab.url))
    return told(await call.driver.dialog(tab, accept=given.accept, text=given.text, seconds=given.timeout))


async def travel(call: Call) -> Mapping[str, Any]:
    """Go through the history."""
    tab = free(await call.tab()) if call.params.action != "reload" else await call.tab()
    return told(await call.driver.travel(tab, cast("Any", call.params.action), seconds=call.given.timeout))


async def upload(call: Call) -> Mapping[str, Any]:
    """Give files to the page."""
    given: p.Upload = call.given
    tab = await call.tab()
    if tab.state != "file_chooser":
        free(tab)
    node = await call.node(tab) if tab.state != "file_chooser" else None
    paths = [_readable(call.context, text) for text in given.paths]
    return told(await call.driver.upload(tab, node, paths, seconds=given.timeout))


def _readable(context: ToolContext, text: str) -> Path:
    path = context.judged_path(text, "read")
    if not path.is_file():
        raise NotFound(f"there is no file {text!r}")
    return path


async def download(call: Call) -> Mapping[str, Any]:
    """Save a file, as a whole or not at all."""
    given: p.Download = call.given
    tab = free(await _some_tab(call))
    target = call.context.judged_path(given.path, "write")
    if target.is_dir():
        raise Downstream(f"{given.path!r} is a folder", hint="give the file a name in it")
    opened.check_arrival(target)
    gotten = await call.driver.download(tab, await call.node(tab), call.params.url, seconds=max(given.timeout, 60))
    size, digest = await _placed(gotten.path, target)
    gotten_as = {
        "path": str(target),
        "size_bytes": size,
        "sha256": digest,
        "file_name": gotten.name,
        "from": redact_text(gotten.url),
    }
    return {"content": f"{size:,} bytes are in {str(target)!r}", "effect": "confirmed", **gotten_as}


async def _placed(source: Path, target: Path) -> tuple[int, str]:
    """Move the file to its place, as a whole; its size and checksum."""
    import hashlib

    import anyio.to_thread

    def move() -> tuple[int, str]:
        digest, size = hashlib.sha256(), 0
        with source.open("rb") as file, opened.arriving(target) as arriving:
            while data := file.read(CHUNK):
                digest.update(data)
                arriving.write(data)
                size += len(data)
        source.unlink(missing_ok=True)
        return size, digest.hexdigest()

    return await anyio.to_thread.run_sync(move)


async def connect(call: Call) -> Mapping[str, Any]:
    """Say what there is in the browser that was connected to."""
    found = await call.driver.tabs()
    note = "This browser is a person's own: only the addresses that you name are checked, not what its pages load."
    return {"content": f"Connected: {len(found)} tabs.", "effect": "confirmed", "note": note}

"""Sessions with a real browser, which may reach servers on this machine."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.plugins.browser.site import Site

from handrail import Session, ToolResult
from handrail.api.approval import Confirmer, yes
from handrail.testing import open_test_session
from handrail_browser import hooks

OWN = {"network": {"allow_private": ["127.0.0.1"]}}


class Hands:
    """A session's `execute_browser`, in few words."""

    def __init__(self, session: Session) -> None:
        self.session = session

    async def call(self, action: str, url: str | None = None, **params: Any) -> ToolResult:
        args = {"action": action, "params": params} | ({"url": url} if url else {})
        return await self.session.call("execute_browser", args)

    async def done(self, action: str, url: str | None = None, **params: Any) -> ToolResult:
        """An action that has to succeed."""
        result = await self.call(action, url, **params)
        assert result["status"] == "success", result
        return result

    async def refused(
        self, action: str, told: str, url: str | None = None, *, code: str | None = None, **params: Any
    ) -> ToolResult:
        """An action that has to fail, and say so."""
        result = await self.call(action, url, **params)
        assert result["status"] != "success", result
        assert told in result["error"]["message"], result
        assert code is None or result["error"]["code"] == code, result
        return result

    async def lines(self, **params: Any) -> str:
        """A snapshot's text."""
        return (await self.done("snapshot", **params))["content"]

    async def ref(self, line: str) -> str:
        """The id in the one line of a snapshot that begins so."""
        found = [each for each in (await self.lines()).splitlines() if each.strip().startswith(line)]
        assert len(found) == 1, found
        return found[0].partition("[")[2].partition("]")[0]


@asynccontextmanager
async def browsing(
    folder: Path | None = None,
    *,
    network: dict[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
    confirm: Confirmer | None = yes,
    sites: Mapping[str, list[str]] | None = None,
    **config: Any,
) -> AsyncGenerator[Hands, None]:
    settings = {
        "network": network or OWN["network"],
        "plugins": {"browser": config},
        "secrets": {"sites": sites or {}},
    }
    async with open_test_session(
        plugins={"browser": hooks}, folder=folder, settings=settings, environment=environment, confirm=confirm
    ) as session:
        yield Hands(session)


def browsers_of(pid: int) -> list[int]:
    """Processes that came from this one and are, or keep, a browser."""
    parents: dict[int, tuple[int, str]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                stat = Path(f"/proc/{name}/stat").read_text(errors="replace")
            except OSError:
                continue
            head, _, tail = stat.rpartition(")")
            if tail.split()[0] != "Z":
                parents[int(name)] = int(tail.split()[1]), head.partition("(")[2]
    found = {pid}
    while more := {each for each, (parent, _) in parents.items() if parent in found} - found:
        found |= more
    return [each for each in found - {pid} if "chrom" in parents[each][1] or "reaper.py" in command(each)]


def command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


async def shown(hands: Hands, site: Site, html: str, path: str = "/") -> None:
    """Have a page of this HTML and go there."""
    site.pages[path] = f"<!doctype html><title>A page</title>{html}"
    await hands.done("navigate", site.url(path))

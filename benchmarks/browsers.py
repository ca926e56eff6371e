"""Browsers at work: a page opened, looked at and clicked, by us, by plain commands of the DevTools protocol, and by `@playwright/mcp`.

All drive the Chromium of this machine, without a window, on a page of this process: the list of an administration with 100 rows.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import tempfile
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from time import perf_counter
from typing import Any, ClassVar

from benchmarks import webpages
from benchmarks.measure import Absent, Contender, Effort, Timing, take_turns
from benchmarks.peers import node
from benchmarks.report import Row, compare
from benchmarks.serving import Server
from benchmarks.sessions import environment, session_with, succeed
from benchmarks.start import beside_python
from handrail import Session
from handrail_browser.chromium.cdp import CdpConnection, PipeChannel

PLAYWRIGHT = "Playwright MCP"
RAW = "plain CDP"
CLICKS = 5


class Worker(ABC):
    """A browser and who works it. Each job raises `Absent` where it was not done."""

    name: ClassVar[str]

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @abstractmethod
    async def open(self) -> None:
        """Make it ready for the first page, which may start the browser."""

    @abstractmethod
    async def navigate(self, url: str) -> None:
        """Show a page, until it has loaded."""

    @abstractmethod
    async def snapshot(self) -> str:
        """Return a description of the page for a model."""

    @abstractmethod
    async def find(self) -> None:
        """Learn what the button is called by, before it is clicked."""

    @abstractmethod
    async def click(self) -> str:
        """Click the button, which counts in the page's title: that is given back by whoever learns it."""

    @abstractmethod
    async def close(self) -> None:
        """End it."""


class Plain(Worker):
    """Commands of the DevTools protocol, one after another, and no more of them than the job takes."""

    name = RAW

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._place: Mapping[str, Any] = {}
        self._loaded = asyncio.Event()

    async def open(self) -> None:
        self._process, answers, ours = _launched(self._folder)
        self._connection = CdpConnection(await PipeChannel.over(answers, ours))
        send = self._connection.send
        targets = (await send("Target.getTargets"))["targetInfos"]
        page = next(each["targetId"] for each in targets if each["type"] == "page")
        attached = await send("Target.attachToTarget", {"targetId": page, "flatten": True})
        self._session = attached["sessionId"]
        self._connection.listen(self._session, self._told)
        await self._ask("Page.enable")

    def _told(self, method: str, params: dict[str, Any]) -> None:
        if method == "Page.loadEventFired":
            self._loaded.set()

    async def _ask(self, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        return await self._connection.send(method, params, session=self._session)

    async def navigate(self, url: str) -> None:
        self._loaded.clear()
        await self._ask("Page.navigate", {"url": url})
        await asyncio.wait_for(self._loaded.wait(), 10)

    async def snapshot(self) -> str:
        return str(await self._ask("Accessibility.getFullAXTree"))

    async def find(self) -> None:
        told = await self._ask("Runtime.evaluate", {"expression": webpages.PLACE_OF_BUTTON, "returnByValue": True})
        self._place = told["result"]["value"]

    async def click(self) -> str:
        mouse = {**self._place, "button": "left", "clickCount": 1}
        await self._ask("Input.dispatchMouseEvent", {**mouse, "type": "mouseMoved"})
        await self._ask("Input.dispatchMouseEvent", {**mouse, "type": "mousePressed"})
        await self._ask("Input.dispatchMouseEvent", {**mouse, "type": "mouseReleased"})
        return ""

    async def close(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, 9)
        await self._connection.close()
        self._process.wait()


class Ours(Worker):
    """A session in this process."""

    name = "handrail"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._stack = AsyncExitStack()
        self._ref = ""

    async def open(self) -> None:
        opening = session_with("browser", cwd=self._folder, mode="permissive", config=_allowing(self._folder))
        self._session: Session = await self._stack.enter_async_context(opening)

    async def do(self, action: str, url: str | None = None, **params: Any) -> Mapping[str, Any]:
        args = {"action": action, "params": params} | ({"url": url} if url else {})
        return await succeed(self._session, "execute_browser", args)

    async def navigate(self, url: str) -> None:
        await self.do("navigate", url)

    async def snapshot(self) -> str:
        return (await self.do("snapshot"))["content"]

    async def find(self) -> None:
        self._ref = _after(rf'"{webpages.BUTTON}" \[(e\d+)\]', await self.snapshot())

    async def click(self) -> str:
        return (await self.do("click", ref=self._ref))["title"]

    async def close(self) -> None:
        await self._stack.aclose()


class OverStdio(Worker):
    """An MCP server, asked by lines of JSON."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._ref = ""

    @abstractmethod
    def command(self) -> Sequence[str]:
        """Return the command that starts it."""

    def variables(self) -> Mapping[str, str]:
        return {"PATH": os.defpath, "HOME": str(self._folder)}

    async def open(self) -> None:
        self._server = Server(self.command(), self.variables(), cwd=self._folder)
        await asyncio.to_thread(self._server.open)

    async def _call(self, tool: str, **arguments: Any) -> str:
        # This process serves the pages: it goes on while it waits.
        return await asyncio.to_thread(lambda: self._server.call(tool, **arguments))

    async def close(self) -> None:
        await asyncio.to_thread(self._server.close)


class Playwright(OverStdio):
    """`@playwright/mcp`, without what it keeps of a profile."""

    name = PLAYWRIGHT

    def command(self) -> Sequence[str]:
        switches = ("--headless", "--no-sandbox", "--isolated", "--viewport-size", "1280,900")
        return node("@playwright/mcp/cli.js", *switches, "--executable-path", _chromium())

    async def navigate(self, url: str) -> None:
        await self._call("browser_navigate", url=url)

    async def snapshot(self) -> str:
        return await self._call("browser_snapshot")

    async def find(self) -> None:
        self._ref = _after(rf'"{webpages.BUTTON}" \[ref=(\w+)\]', await self.snapshot())

    async def click(self) -> str:
        return _after(r"Page Title: (.*)", await self._call("browser_click", target=self._ref))


class Serve(OverStdio):
    """Ours over the same protocol."""

    name = "handrail serve"

    def command(self) -> Sequence[str]:
        return [beside_python("handrail"), "serve", "--mode", "permissive", "--config", str(_allowing(self._folder))]

    def variables(self) -> Mapping[str, str]:
        with environment(HANDRAIL_PLUGINS="browser,mcp") as around:
            return {**around, "HANDRAIL_HOME": str(self._folder / "handrail")}

    async def _do(self, action: str, url: str | None = None, **params: Any) -> str:
        given = {"action": action, "params": params} | ({"url": url} if url else {})
        return await self._call("execute_browser", **given)

    async def navigate(self, url: str) -> None:
        await self._do("navigate", url)

    async def snapshot(self) -> str:
        return await self._do("snapshot")

    async def find(self) -> None:
        self._ref = _after(rf"{webpages.BUTTON}\W+ \[(e\d+)\]", await self.snapshot())

    async def click(self) -> str:
        return _after(r'"title":\s*"(\d+)', await self._do("click", ref=self._ref))


WORKERS: Sequence[type[Worker]] = (Plain, Ours, Serve, Playwright)


async def start(effort: Effort) -> Row:
    """Measure the time from nothing to the first page: server process, browser, page."""

    def turn(kind: type[Worker], url: str) -> Contender:
        async def contender() -> float:
            with tempfile.TemporaryDirectory(prefix="handrail-bench-", ignore_cleanup_errors=True) as folder:
                worker = kind(Path(folder))
                began = perf_counter()
                try:
                    await worker.open()
                    await worker.navigate(url)
                    return perf_counter() - began
                finally:
                    await worker.close()

        return contender

    with webpages.serving() as url:
        turns = {kind.name: turn(kind, url) for kind in WORKERS}
        timings = await take_turns(turns, rounds=effort.rounds(9))
    return compare("browser: start to the first page", timings, limit=PLAYWRIGHT, goal=1, ours=Serve.name)


async def navigate(effort: Effort) -> Row:
    """Measure navigating to a page until it has loaded."""
    timings = await _turns(effort.rounds(30), "navigate")
    return compare("browser: navigate", timings, limit=PLAYWRIGHT, goal=1)


async def snapshot(effort: Effort) -> Row:
    """Measure a snapshot of a page of 100 rows; for plain CDP, the whole accessibility tree."""
    timings = await _turns(effort.rounds(30), "snapshot")
    return compare("browser: snapshot", timings, limit=PLAYWRIGHT, goal=1)


async def click(effort: Effort) -> Row:
    """Measure a click on a button that changes the page, until the page is at rest.

    For plain CDP, the three mouse events.
    """
    timings = await _turns(effort.rounds(15), "click")
    return compare("browser: click", timings, limit=RAW, goal=15)


async def click_beside(effort: Effort) -> Row:
    """Measure the same click with the peer as the limit."""
    timings = await _turns(effort.rounds(15), "click")
    return compare("browser: click, beside a peer", timings, limit=PLAYWRIGHT, goal=0.2)


async def _turns(rounds: int, job: str) -> dict[str, Timing]:
    with webpages.serving() as url:
        async with _working(url) as workers:
            contenders = {worker.name: _contender(worker, job, url) for worker in workers}
            return await take_turns(contenders, rounds=rounds, warm_up=2)


def _contender(worker: Worker, job: str, url: str) -> Contender:
    clicked = 0

    async def contender() -> float:
        nonlocal clicked
        began = perf_counter()
        if job == "navigate":
            await worker.navigate(url)
        elif job == "snapshot":
            await worker.snapshot()
        else:
            told = ""
            for _ in range(CLICKS):
                told = await worker.click()
            clicked += CLICKS
            taken = (perf_counter() - began) / CLICKS
            if told not in ("", str(clicked)):
                raise Absent(f"{worker.name} clicked {clicked} times, and the page counted {told}")
            return taken
        return perf_counter() - began

    return contender


@asynccontextmanager
async def _working(url: str) -> AsyncGenerator[Sequence[Worker], None]:
    """Start all workers, each with the page open."""
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="handrail-bench-", ignore_cleanup_errors=True))
        workers: list[Worker] = []
        for kind in WORKERS:
            own = Path(folder, kind.name)
            own.mkdir()
            workers.append(kind(own))
            await workers[-1].open()
            stack.push_async_callback(workers[-1].close)
            await workers[-1].navigate(url)
            await workers[-1].find()
        yield workers


def _launched(folder: Path) -> tuple[subprocess.Popen[bytes], int, int]:
    """Start a Chromium; return it with the descriptors to read from it and write to it."""
    to_browser, ours = os.pipe()
    answers, from_browser = os.pipe()
    argv = [_chromium(), "--remote-debugging-pipe", "--headless=new", "--no-first-run", "--no-sandbox"]
    argv += ["--disable-dev-shm-usage", f"--user-data-dir={folder}", "--window-size=1280,900", "about:blank"]
    process = subprocess.Popen(
        ["bash", "-c", f'exec "$@" 3<&{to_browser} 4>&{from_browser}', "bash", *argv],
        pass_fds=(to_browser, from_browser),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    os.close(to_browser)
    os.close(from_browser)
    return process, answers, ours


def _allowing(folder: Path) -> Path:
    """Write a configuration that permits opening pages of this machine."""
    file = folder / "handrail.toml"
    file.write_text('[network]\nallow_private = ["127.0.0.1"]\n')
    return file


def _chromium() -> str:
    found = shutil.which("chromium")
    if found is None:
        raise Absent("there is no chromium on this machine")
    return found


def _after(pattern: str, told: str) -> str:
    found = re.search(pattern, told)
    if found is None:
        raise Absent(f"{pattern} is not in an answer that begins {told[:300]!r}")
    return found[1]


ROWS = {
    "browser-start": start,
    "browser-navigate": navigate,
    "browser-snapshot": snapshot,
    "browser-click": click,
    "browser-click-peer": click_beside,
}

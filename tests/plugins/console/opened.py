"""A console, sessions that it shows, and a browser that shows it: each a real program."""

from __future__ import annotations

import base64
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Generator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from queue import Queue
from threading import Thread
from time import monotonic
from typing import Any

import anyio

from handrail.workers.host_programs import find_own_programs
from handrail_browser.chromium.launcher import find_chromium, launch_chromium

HANDRAIL = Path(sys.executable).with_name("handrail")
DEADLINE_S = 60.0


@dataclass
class Console:
    """A running console."""

    url: str
    token: str
    environment: Mapping[str, str]

    @property
    def link(self) -> str:
        return f"{self.url}/#{self.token}"

    @property
    def address(self) -> tuple[str, int]:
        host, _, port = self.url.removeprefix("http://").rpartition(":")
        return host, int(port)


@contextmanager
def console(home: Path, *args: str, port: str = "0") -> Generator[Console]:
    """`handrail console`, with state folders of its own in `home`."""
    environment = {**os.environ, "HANDRAIL_HOME": str(home)}
    with (home / "console.log").open("wb") as errors:
        process = subprocess.Popen(
            [HANDRAIL, "console", "--port", port, *args],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, env=environment, cwd=home,
        )  # fmt: skip
        try:
            assert process.stdout is not None
            url, _, token = process.stdout.readline().decode().strip().partition("/#")
            assert token, (home / "console.log").read_text()
            yield Console(url, token, environment)
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(DEADLINE_S)
            assert process.stdout is not None
            process.stdout.close()


@dataclass
class Agent:
    """A session in a process of its own, spoken with in JSON lines. `lines` are those that it wrote."""

    process: subprocess.Popen[bytes]
    folder: Path
    lines: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    _queue: Queue[dict[str, Any]] = field(default_factory=Queue)
    _calls: list[str] = field(default_factory=list[str])
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def call(self, tool: str, **args: Any) -> str:
        """Start a call; its id, which no other call has had."""
        id = f"call-{next(self._numbers)}"
        self._calls.append(id)
        self.write({"id": id, "tool": tool, "args": args})
        return id

    def write(self, line: Mapping[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(line).encode() + b"\n")
        self.process.stdin.flush()

    def read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._queue.put(json.loads(line))

    async def line(self, fits: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The first line that fits, when it is there."""

        def found() -> dict[str, Any] | None:
            while not self._queue.empty():
                self.lines.append(self._queue.get())
            return next((line for line in self.lines if fits(line)), None)

        return await until(found, what="a line of the session")

    async def asked(self, id: str) -> dict[str, Any]:
        """The first question about a call."""
        return await self.line(lambda line: line.get("id") == id and "approval" in line)

    async def clean(self) -> None:
        """As it was before its first call: nothing runs, waits or lies in its folder."""
        for id in self._calls:
            self.write({"control": "cancel", "id": id})
        for id in self._calls:
            await self.result(id)
        self._calls.clear()
        for each in self.folder.iterdir():
            shutil.rmtree(each) if each.is_dir() else each.unlink()

    async def result(self, id: str) -> dict[str, Any]:
        """The result of a call."""
        return (await self.line(lambda line: line.get("id") == id and "result" in line))["result"]


@contextmanager
def agent(console: Console, folder: Path, *args: str, asks: bool = True) -> Generator[Agent]:
    """`handrail session --jsonl` in a folder."""
    folder.mkdir(exist_ok=True)
    # With undo a change of a file is not asked about, and it is the change that is simple to see.
    environment = {**console.environment, **({"HANDRAIL_UNDO_ENABLED": "false"} if asks else {})}
    process = subprocess.Popen(
        [HANDRAIL, "session", "--jsonl", *(["--ask"] if asks else []), *args],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment, cwd=folder,
    )  # fmt: skip
    made = Agent(process, folder)
    reader = Thread(target=made.read, daemon=True)
    reader.start()
    try:
        yield made
    finally:
        assert process.stdin is not None
        process.stdin.close()
        process.terminate()
        process.wait(DEADLINE_S)
        reader.join(DEADLINE_S)
        assert process.stdout is not None
        process.stdout.close()


async def until(condition: Callable[[], Any], *, what: str) -> Any:
    """The first true value of a condition."""
    deadline = monotonic() + DEADLINE_S
    while not (found := condition()):
        assert monotonic() < deadline, f"waited {DEADLINE_S:g} s in vain for {what}"
        await anyio.sleep(0.05)
    return found


class Page:
    """One tab of a browser."""

    def __init__(self, connection: Any, session: str) -> None:
        self._connection = connection
        self._session = session
        self.said: list[str] = []
        connection.listen(session, self._heard)

    def _heard(self, method: str, params: Mapping[str, Any]) -> None:
        if method == "Runtime.exceptionThrown":
            self.said.append(str(params["exceptionDetails"]))
        elif method == "Log.entryAdded":
            self.said.append(str(params["entry"].get("text")))

    async def send(self, method: str, **params: Any) -> dict[str, Any]:
        return await self._connection.send(method, params, session=self._session, seconds=DEADLINE_S)

    async def size(self, width: int, height: int, *, dark: bool = False) -> None:
        """The window, and whether the person likes it dark."""
        mobile = width < 500
        await self.send(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=mobile
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        await self.send("Emulation.setEmulatedMedia", features=[scheme])

    async def goto(self, url: str) -> None:
        await self.send("Page.navigate", url="about:blank")
        await self.send("Page.navigate", url=url)

    async def js(self, expression: str) -> Any:
        told = await self.send("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in told, told
        return told["result"].get("value")

    async def wait(self, expression: str) -> Any:
        """The first true value of an expression; one that fails is not true yet."""
        deadline = monotonic() + DEADLINE_S
        while True:
            told = await self.send("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
            if "exceptionDetails" not in told and (found := told["result"].get("value")):
                return found
            assert monotonic() < deadline, (expression, await self.js("document.body.innerText"), self.said)
            await anyio.sleep(0.05)

    async def press(self, selector: str, within: str = "document") -> None:
        """Press the first element that fits as soon as it can be pressed, wherever it is by then."""
        found = f"({within})?.querySelector({json.dumps(selector)})"
        await self.wait(
            f"(() => {{ const e = {found}; if (!e || e.disabled) return false; e.click(); return true; }})()"
        )

    async def click(self, selector: str) -> None:
        """Click the middle of the first element that fits, as a mouse does, once it stays where it is and nothing is over it."""
        box = await self.wait(
            f"""(async () => {{
              const e = document.querySelector({json.dumps(selector)});
              const middle = () => {{ const b = e.getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]; }};
              e.scrollIntoView({{ block: "center", behavior: "instant" }});
              const before = middle();
              for (let frame = 0; frame < 10; frame++) await new Promise(requestAnimationFrame);
              const settled = String(middle()) === String(before) && document.elementFromPoint(...before) === e;
              return settled && !e.disabled ? before : null;
            }})()"""
        )
        await self.click_at(*box)

    async def click_at(self, x: float, y: float) -> None:
        for kind in ("mousePressed", "mouseReleased"):
            await self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    async def key(self, name: str) -> None:
        """Press a key where the focus is."""
        text = {"text": "\r"} if name == "Enter" else {}
        code = {"Enter": 13, "Escape": 27}[name]
        await self.send(
            "Input.dispatchKeyEvent", type="keyDown", key=name, code=name, windowsVirtualKeyCode=code, **text
        )
        await self.send("Input.dispatchKeyEvent", type="keyUp", key=name, code=name, windowsVirtualKeyCode=code)

    async def write(self, selector: str, text: str) -> None:
        """Put a text into a field, in place of what it holds."""
        await self.js(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)}); e.focus(); e.select(); }})()"
        )
        await self.send("Input.insertText", text=text)

    async def picture(self, file: Path) -> None:
        told = await self.send("Page.captureScreenshot", format="png")
        file.write_bytes(base64.b64decode(told["data"]))


@asynccontextmanager
async def browser() -> AsyncGenerator[Callable[[], Any]]:
    """A headless Chromium; what is given opens a page in it."""
    executable = find_chromium(None, find_own_programs())
    assert executable is not None, "there is no Chromium"
    running = await launch_chromium(
        executable, proxy="direct://", environment=os.environ, profile=None, headless=True, window=(1280, 900)
    )

    async def page() -> Page:
        target = await running.connection.send("Target.createTarget", {"url": "about:blank"})
        attached = await running.connection.send(
            "Target.attachToTarget", {"targetId": target["targetId"], "flatten": True}
        )
        made = Page(running.connection, attached["sessionId"])
        for domain in ("Page", "Runtime", "Log"):
            await made.send(f"{domain}.enable")
        await made.size(1280, 900)
        return made

    try:
        yield page
    finally:
        await running.end()

"""MCP over stdio: from the start of a server's process to its first list of tools, and one call.

The client is a few lines of our own, the same for every server, so that no client's time is counted.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.measure import Absent, Contender, Effort, take_turns
from benchmarks.report import Row, compare
from benchmarks.sessions import ROOT, environment
from benchmarks.start import beside_python

LIMIT = "the SDK's smallest server"
PATIENCE_S = 30.0
CALLS = 40
PROTOCOL = "2025-11-25"


class Server:
    """A server's process and the talk with it, one request at a time."""

    def __init__(self, argv: Sequence[str], variables: Mapping[str, str], *, cwd: Path | None = None) -> None:
        self._process = subprocess.Popen(
            argv,
            cwd=cwd,
            env=dict(variables),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        # A server that says nothing is ended, and reading from it comes to an end with it.
        self._patience = threading.Timer(PATIENCE_S, self._process.kill)
        self._patience.start()
        self._last = 0

    def open(self) -> Sequence[str]:
        """Shake hands, and ask for the list: the names of the tools."""
        client = {"name": "benchmark", "version": "0"}
        self.ask("initialize", {"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": client})
        self._send({"method": "notifications/initialized"})
        names = [tool["name"] for tool in self.ask("tools/list", {})["tools"]]
        self._patience.cancel()
        return names

    def add(self, a: int, b: int) -> None:
        """Call the tool once and check its answer."""
        if str(a + b) not in (answer := self.call("add", a=a, b=b)):
            raise Absent(f"add({a}, {b}) gave {answer}")

    def call(self, tool: str, **arguments: Any) -> str:
        """Return the text of a call's result; raise `Absent` if it fails."""
        result = self.ask("tools/call", {"name": tool, "arguments": arguments})
        text = "\n".join(part.get("text", "") for part in result["content"])
        if result.get("isError"):
            raise Absent(f"{tool} failed: {text[:200]}")
        return text

    def ask(self, method: str, params: Mapping[str, Any]) -> Any:
        self._last += 1
        self._send({"id": self._last, "method": method, "params": params})
        assert self._process.stdout is not None
        for line in self._process.stdout:
            answer = json.loads(line)
            if answer.get("id") == self._last and "method" not in answer:
                if "error" in answer:
                    raise Absent(f"{method}: {answer['error']['message']}")
                return answer["result"]
        raise Absent(f"the server ended before it answered {method}")

    def close(self) -> None:
        self._patience.cancel()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    def _send(self, message: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise Absent("the server ended at once") from None


async def first_list(effort: Effort) -> Row:
    """Start of the process to the first list."""
    with _servers() as (servers, variables, absent):
        contenders = {name: _start(argv, variables) for name, argv in servers.items()}
        timings = await take_turns(contenders, rounds=effort.rounds(9))
    return compare("MCP: start to first list", timings, limit=LIMIT, goal=1.3, absent=absent)


async def one_call(effort: Effort) -> Row:
    """Measure one call of an adding tool on a running server; ours with the audit on, as by default."""
    with _servers() as (servers, variables, absent), ExitStack() as stack:
        contenders: dict[str, Contender] = {}
        for name, argv in servers.items():
            server = Server(argv, variables)
            stack.callback(server.close)
            if "add" not in (names := server.open()):
                raise Absent(f"{name} does not list the tool add, but {', '.join(names)}")
            contenders[name] = _calls(server)
        timings = await take_turns(contenders, rounds=effort.rounds(25), warm_up=2)
    return compare("MCP: one call", timings, limit=LIMIT, goal=1.3, absent=absent)


def _start(argv: Sequence[str], variables: Mapping[str, str]) -> Contender:
    async def contender() -> float:
        began = perf_counter()
        server = Server(argv, variables)
        try:
            server.open()
            return perf_counter() - began
        finally:
            server.close()

    return contender


def _calls(server: Server) -> Contender:
    async def contender() -> float:
        operands = [(random.getrandbits(40), random.getrandbits(40)) for _ in range(CALLS)]
        began = perf_counter()
        for a, b in operands:
            server.add(a, b)
        return (perf_counter() - began) / CALLS

    return contender


@contextmanager
def _servers() -> Iterator[tuple[Mapping[str, Sequence[str]], Mapping[str, str], Mapping[str, str]]]:
    """Yield the servers' commands by name, the variables to run them with, and those that are absent."""
    servers: dict[str, Sequence[str]] = {
        LIMIT: [sys.executable, "-m", "benchmarks.smallest_server"],
        "handrail": [beside_python("handrail"), "serve"],
    }
    absent: dict[str, str] = {}
    if find_spec("fastmcp"):
        servers["fastmcp server"] = [sys.executable, "-m", "benchmarks.fastmcp_server"]
    else:
        absent["fastmcp server"] = "absent: not installed"
    with tempfile.TemporaryDirectory(prefix="handrail-bench-") as installed:
        _install_trivial(Path(installed))
        with environment(PYTHONPATH=f"{installed}:{ROOT}") as variables:
            yield servers, variables, absent


def _install_trivial(folder: Path) -> None:
    """Make the trivial plugin installed for any process with `folder` on its path."""
    info = folder / "handrail_benchmarks-0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: handrail-benchmarks\nVersion: 0\n")
    (info / "entry_points.txt").write_text("[handrail]\ntrivial = benchmarks.trivial\n")


ROWS = {"mcp-list": first_list, "mcp-call": one_call}

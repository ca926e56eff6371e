"""A person of the tests, and the program at a terminal."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.terminals import Terminal

import handrail_session.hooks
from handrail import Inquiry, Reply
from handrail.testing import ScriptedConfirmer

PLUGINS = {"session": handrail_session.hooks}
HANDRAIL = Path(sys.executable).with_name("handrail")


class Person(ScriptedConfirmer):
    """Says these answers to questions in words, beside what they say to calls."""

    def __init__(self, *answers: Any, replies: Sequence[Reply] | Exception = ()) -> None:
        super().__init__(*answers)
        self.inquiries: list[Inquiry] = []
        self._replies = replies

    async def ask(self, inquiry: Inquiry) -> Sequence[Reply]:
        self.inquiries.append(inquiry)
        if isinstance(self._replies, Exception):
            raise self._replies
        return self._replies


def environment(folder: Path, plugins: str = "session") -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "HANDRAIL_PLUGINS": plugins,
        "HANDRAIL_HOME": str(folder / "home"),
    }


def run(folder: Path, *words: str, input: str = "", **more: str) -> subprocess.CompletedProcess[str]:
    """The program, to its end."""
    around = {**environment(folder), **more}
    return subprocess.run(
        [HANDRAIL, *words], cwd=folder, env=around, input=input, capture_output=True, text=True, timeout=60
    )


class AtTerminal(Terminal):
    """The program at a terminal of its own; what it prints goes elsewhere."""

    def __init__(self, folder: Path, *words: str) -> None:
        super().__init__([HANDRAIL, *words], folder, environment(folder), stdout=subprocess.PIPE)

    def result(self) -> Any:
        """What the program prints at its end."""
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.read())


class Host:
    """A host that talks with `handrail session --jsonl`."""

    def __init__(self, folder: Path, *words: str, plugins: str = "session") -> None:
        self.process = subprocess.Popen(
            [HANDRAIL, "session", "--jsonl", *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment(folder, plugins),
            cwd=folder,
            text=True,
        )

    def say(self, **line: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(line) + "\n")
        self.process.stdin.flush()

    def hear(self) -> Any:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def close(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        with self.process.stdout:
            assert self.process.wait(30) == 0

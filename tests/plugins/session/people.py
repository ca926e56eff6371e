"""A person of the tests, and the program at a terminal."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

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


class Terminal:
    """The program at a terminal of its own."""

    def __init__(self, folder: Path, *words: str) -> None:
        self.ours, theirs = pty.openpty()
        self.process = subprocess.Popen(
            [HANDRAIL, *words],
            stdin=theirs,
            stdout=subprocess.PIPE,
            stderr=theirs,
            env=environment(folder),
            cwd=folder,
            # A terminal is a session leader's: only then can the program open /dev/tty.
            preexec_fn=lambda: (os.setsid(), os.close(os.open(os.ttyname(0), os.O_RDWR))),
        )
        os.close(theirs)
        self.shown = ""

    def wait_for(self, text: str) -> None:
        """Read until the text shows; what comes after it is still to be read."""
        deadline = time.monotonic() + 30
        while text not in self.shown:
            ready, _, _ = select.select([self.ours], [], [], max(0, deadline - time.monotonic()))
            assert ready, self.shown
            self.shown += os.read(self.ours, 10_000).decode()
        self.shown = self.shown.partition(text)[2]

    def answer(self, prompt: str, typed: str) -> None:
        """Type a line when the prompt shows."""
        self.wait_for(prompt)
        os.write(self.ours, f"{typed}\n".encode())

    def result(self) -> Any:
        """What the program prints at its end."""
        assert self.process.stdout is not None
        with self.process.stdout:
            printed = self.process.stdout.read()
        self.process.wait(30)
        os.close(self.ours)
        return json.loads(printed)


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

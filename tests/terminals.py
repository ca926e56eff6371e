"""Programs at a terminal of their own, as a person has them."""

from __future__ import annotations

import codecs
import os
import pty
import select
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

PATIENCE_S = 60
# Which kind of terminal it is: the question that every terminal answers.
KIND = "\x1b[c"


class Terminal:
    """A program there. It answers a question for its kind with `kind`, as a real one does.

    `stdout`: a descriptor, or `subprocess.PIPE`, where what the program prints is not to be seen at the terminal.
    """

    def __init__(
        self,
        command: Sequence[str | Path],
        folder: Path,
        environment: Mapping[str, str],
        *,
        stdout: int | None = None,
        kind: bytes = b"\x1b[?62;22c",
    ) -> None:
        self._kind = kind
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._shown = ""
        self._ours, theirs = pty.openpty()
        self.process = subprocess.Popen(
            command,
            stdin=theirs,
            stdout=theirs if stdout is None else stdout,
            stderr=theirs,
            env=environment,
            cwd=folder,
            # A terminal is a session leader's: only then can the program open /dev/tty.
            preexec_fn=lambda: (os.setsid(), os.close(os.open(os.ttyname(0), os.O_RDWR))),
        )
        os.close(theirs)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self.process:
            self.process.kill()
        os.close(self._ours)

    def wait_for(self, text: str) -> str:
        """Read until the text shows; what has come until then. What comes after it is still to be read."""
        deadline = time.monotonic() + PATIENCE_S
        while text not in self._shown:
            ready, _, _ = select.select([self._ours], [], [], max(0, deadline - time.monotonic()))
            assert ready, self._shown
            assert self._read(), self._shown
        before, _, self._shown = self._shown.partition(text)
        return before

    def type(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def answer(self, prompt: str, typed: str) -> None:
        """Type a line when the prompt shows."""
        self.wait_for(prompt)
        self.type(f"{typed}\n")

    def end(self) -> tuple[int, str]:
        """What the program exits with, and what it had still to say."""
        while self._read():
            pass
        return self.process.wait(PATIENCE_S), self._shown

    def _read(self) -> bool:
        try:
            some = os.read(self._ours, 10_000)
        # The program has ended.
        except OSError:
            return False
        text = self._decoder.decode(some)
        if KIND in text:
            os.write(self._ours, self._kind)
        self._shown += text
        return bool(some)

"""`handrail run` at a terminal of its own."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

HANDRAIL = Path(sys.executable).with_name("handrail")
# Which kind of terminal it is: the question that every terminal answers.
KIND = "\x1b[c"


class Terminal:
    """The program there. It answers a question for its kind with `kind`, as a real one does."""

    def __init__(
        self,
        folder: Path,
        steps: Any,
        *words: str,
        kind: bytes = b"\x1b[?62;22c",
        stdout: int | None = None,
        **more: str,
    ) -> None:
        script = folder / "script.yaml"
        script.write_text(json.dumps(steps))
        self._kind = kind
        self.shown = ""
        self.ours, theirs = pty.openpty()
        self.process = subprocess.Popen(
            [HANDRAIL, "run", "do it", "--model", f"script:{script}", *words],
            stdin=theirs,
            stdout=theirs if stdout is None else stdout,
            stderr=theirs,
            env={**os.environ, "HANDRAIL_PLUGINS": "adk,files", "TERM": "xterm-256color", "COLUMNS": "150", **more},
            cwd=folder,
            # A terminal is a session leader's: only then can the program open /dev/tty.
            preexec_fn=lambda: (os.setsid(), os.close(os.open(os.ttyname(0), os.O_RDWR))),
        )
        os.close(theirs)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait(60)
        os.close(self.ours)

    def wait_for(self, text: str) -> str:
        """Read until the text shows; what has come until then. What comes after it is still to be read."""
        deadline = time.monotonic() + 60
        while text not in self.shown:
            ready, _, _ = select.select([self.ours], [], [], max(0, deadline - time.monotonic()))
            assert ready, self.shown
            assert self._read(), self.shown
        before, _, self.shown = self.shown.partition(text)
        return before

    def type(self, text: str) -> None:
        os.write(self.ours, text.encode())

    def end(self) -> tuple[int, str]:
        """What the program exits with, and what it had still to say."""
        while self._read():
            pass
        return self.process.wait(60), self.shown

    def _read(self) -> bool:
        try:
            some = os.read(self.ours, 10_000).decode(errors="replace")
        # The program has ended.
        except OSError:
            return False
        if KIND in some:
            os.write(self.ours, self._kind)
        self.shown += some
        return bool(some)

"""Follows a page of the documentation word by word: what it shows is saved, run and compared, from top to bottom.

A block below a line that is only a file's name (`ten.py`:) is saved under that name. A block of `sh` is run where the one before it
ended, with what that exported. A block of `text` below it is what it prints; `…` in it stands for anything, alone on a line for any
number of lines.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

BLOCK = re.compile(r"(?:^`(?P<file>[^`\n]+)`:\n\n)?^ *```(?P<kind>\w*)\n(?P<text>.*?)^ *```$", re.DOTALL | re.MULTILINE)
PATIENCE_S = 400
# What a block leaves for the next one: variables and the folder it ends in.
LEAVE = 'trap \'code=$?; declare -px > "$WALKED/variables"; pwd > "$WALKED/folder"; exit $code\' EXIT\n'


@dataclass(frozen=True)
class Block:
    """A block of code: what it is written in, its text, and the file it is to be saved as."""

    kind: str
    text: str
    file: str | None = None


def blocks(page: Path) -> list[Block]:
    """The blocks of a page, in order."""
    found = BLOCK.finditer(page.read_text(encoding="utf-8"))
    return [Block(each["kind"], each["text"], each["file"]) for each in found]


@dataclass
class Walk:
    """One who follows pages: with a home, in a folder, with variables; `notes` is where a shell leaves them for the next one."""

    notes: Path
    folder: Path
    variables: Mapping[str, str]
    printed: str = ""
    done: list[str] = field(default_factory=list[str])

    def follow(self, page: Path, *, leave_out: tuple[str, ...] = ()) -> None:
        """Do what the page says, but for the commands that something else tries, and those that a page before has had done."""
        for block in blocks(page):
            if block.file is not None:
                self._save(block.file, block.text)
            elif block.kind == "sh" and block.text not in (*leave_out, *self.done):
                self.printed = self._run(block.text)
                self.done.append(block.text)
            elif block.kind == "text":
                assert re.fullmatch(pattern(block.text), self.printed), (
                    f"{page.name} shows\n{block.text}\n{self.printed}"
                )

    def _save(self, name: str, text: str) -> None:
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def _run(self, commands: str) -> str:
        before = self.notes / "variables"
        script = (f'. "{before}"\n' if before.exists() else "") + LEAVE + commands
        done = subprocess.run(
            ["bash", "-eu", "-o", "pipefail", "-c", script],
            cwd=self.folder,
            env={**self.variables, "WALKED": str(self.notes)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )
        assert done.returncode == 0, f"{commands}\n{done.stdout}\n{done.stderr}"
        self.folder = Path((self.notes / "folder").read_text().strip())
        return done.stdout


def pattern(shown: str) -> str:
    """A regular expression for what is shown."""
    return "".join(_lines(shown))


def _lines(shown: str) -> Iterator[str]:
    for line in shown.splitlines():
        anything = ".*".join(re.escape(part) for part in line.split("…"))
        yield r"(?:.*\n)*?" if line == "…" else f"{anything}\n"

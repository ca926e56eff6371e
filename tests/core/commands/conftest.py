"""The `handrail` program as a person or a script runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(sys.executable).with_name("handrail")
PATIENCE_S = 60


class Program:
    """Runs `handrail` in a folder and a home of its own, with the fixture plugins that are named and no others."""

    path = PROGRAM

    def __init__(self, folder: Path, home: Path, site: Path) -> None:
        self.folder = folder
        self.home = home
        self._site = site

    def environment(self, plugins: str, **more: str) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder.parent),
            "HANDRAIL_HOME": str(self.home),
            "HANDRAIL_PLUGINS": plugins,
            "PYTHONPATH": str(self._site),
            "HANDRAIL_UNDO_ENABLED": "false",
            **more,
        }

    def __call__(
        self, *words: str | Path, plugins: str = "", input: str | bytes = b"", **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """Run it to its end."""
        done = subprocess.run(
            [PROGRAM, *words],
            input=input.encode() if isinstance(input, str) else input,
            capture_output=True,
            cwd=self.folder,
            env=self.environment(plugins, **environment),
            timeout=PATIENCE_S,
        )
        return subprocess.CompletedProcess(words, done.returncode, done.stdout.decode(), done.stderr.decode())

    def json(self, *words: str | Path, plugins: str = "", code: int = 0, **environment: str) -> Any:
        """What it prints as JSON; it must end with `code`."""
        done = self(*words, "--json", plugins=plugins, **environment)
        assert done.returncode == code, done.stderr
        return json.loads(done.stdout)

    def start(self, *words: str, plugins: str = "", **environment: str) -> subprocess.Popen[bytes]:
        """Start it with pipes."""
        return subprocess.Popen(
            [PROGRAM, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=self.folder,
            env=self.environment(plugins, **environment),
            bufsize=0,
        )


@pytest.fixture
def handrail(tmp_path: Path, plugin_site: Path) -> Program:
    """The program in an empty project folder."""
    folder = tmp_path / "home" / "project"
    folder.mkdir(parents=True)
    return Program(folder, tmp_path / "state", plugin_site)


class Talk:
    """A `handrail session` to talk with, line by line."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process

    def say(self, *values: Any) -> None:
        assert self.process.stdin is not None
        for value in values:
            line = value if isinstance(value, bytes) else json.dumps(value).encode()
            self.process.stdin.write(line + b"\n")

    def hear(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.process.stderr.read().decode() if self.process.stderr else ""
        return json.loads(line)

    def hear_until(self, wanted: Callable[[Any], bool]) -> Any:
        while not wanted(line := self.hear()):
            pass
        return line

    def hang_up(self) -> list[Any]:
        """End the input; gives the lines that still come."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        assert self.process.stdout is not None
        rest = [json.loads(line) for line in self.process.stdout]
        assert self.process.wait(PATIENCE_S) == 0
        return rest


@pytest.fixture
def talk(handrail: Program) -> Iterator[Callable[..., Talk]]:
    """Starts a session with the plugin `stage` and talks with it."""
    started: list[subprocess.Popen[bytes]] = []

    def start(*words: str, plugins: str = "stage") -> Talk:
        process = handrail.start("session", "--jsonl", *words, plugins=plugins)
        started.append(process)
        return Talk(process)

    yield start
    for process in started:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()

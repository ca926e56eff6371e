"""A place where things go wrong for real, and what the program says there."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

PROGRAM = Path(sys.executable).with_name("handrail")
PATIENCE_S = 120
# What click says before an error of the command line.
USAGE = re.compile(r"(?:Usage: .*\n)?(Try '.*' for help\.)?\n*")
# Said of what takes long, which depends on the machine; and the name of a session.
SLOW = re.compile(r"^(?:\w+ is running; Ctrl-C stops it|\w+: \w+ is looking \(\d+ s\))\n", re.MULTILINE)
STAMP = re.compile(r"\d{8}-\d{6}-[0-9a-f]{6}")


# A plugin that has a hook and nothing else.
WORKS = "from handrail import hookimpl\n\n\n@hookimpl\ndef handrail_register_tools():\n    return []\n"


@dataclass(frozen=True)
class Met:
    """What a user typed and what came of it, with paths as in anybody's home. `before` is what was so: a file, a variable."""

    typed: str
    code: int
    said: str
    printed: str
    before: str = ""

    @property
    def lines(self) -> list[str]:
        """What was said, without the reminder of how the command is used."""
        return USAGE.sub("", self.said, count=1).splitlines()

    @property
    def usage(self) -> str:
        """The reminder, where the command line is what is wrong."""
        found = USAGE.match(self.said)
        return (found and found[1]) or ""

    @property
    def cure(self) -> str:
        """What to do about it; empty when that is not said."""
        hint = next((line for line in self.lines if line.startswith("Hint: ")), "")
        said = next((line for line in self.lines if line.startswith(("Error: ", "Note: ", "WARNING "))), "")
        return hint.removeprefix("Hint: ") or said.partition("; ")[2] or self.usage


def _told(variables: Mapping[str, str]) -> list[str]:
    """The variables that a user has set; where programs and packages are found is no matter of theirs."""
    return [f"{name}={shlex.quote(value)}" for name, value in variables.items() if name not in ("PATH", "PYTHONPATH")]


class Place:
    """A project in a home of its own; nothing of whoever runs the tests is in it."""

    def __init__(self, root: Path) -> None:
        self.home = root / "home"
        self.project = self.home / "project"
        self.state = self.home / "state"
        self.project.mkdir(parents=True)
        self.state.mkdir()
        # What a reader is shown instead of what is so on this machine.
        self.shown = {
            str(self.project): "~/project",
            str(self.state): "~/.handrail",
            str(self.home): "~",
            sysconfig.get_path("purelib"): "~/handrail/site-packages",
            sys.prefix: "~/handrail",
        }

    def file(self, name: str, text: str) -> Path:
        """A file of the project."""
        path = self.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def distribution(self, name: str, version: str, *, requires: str = "", plugin: str = "") -> str:
        """A folder of packages that has one more installed, as pip leaves it."""
        site = self.home / "site"
        info = site / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir(parents=True)
        needs = f"Requires-Dist: {requires}\n" if requires else ""
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}")
        if plugin:
            (info / "entry_points.txt").write_text(f"[handrail]\n{plugin} = {name.replace('-', '_')}\n")
        return str(site)

    def plugin(self, plugin: str, name: str, version: str, *, requires: str = "", code: str = WORKS) -> str:
        """The same with a plugin, whose module this is."""
        site = self.distribution(name, version, requires=requires, plugin=plugin)
        Path(site, f"{name.replace('-', '_')}.py").write_text(code)
        return site

    def programs(self, *names: str) -> str:
        """A folder for PATH that has these programs and no others."""
        folder = self.home / "bin"
        folder.mkdir()
        for name in names:
            (folder / name).symlink_to(subprocess.check_output(["which", name], text=True).strip())
        return str(folder)

    def handrail(
        self,
        *words: str,
        plugins: str | None = "",
        config: str = "",
        inside: Sequence[str] = (),
        **variables: str,
    ) -> Met:
        """Run the program to its end. `config` is a file that is trusted, `inside` a command that runs it, as bwrap does."""
        given = (*words, "--config", str(self.file("my.toml", config))) if config else words
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "HANDRAIL_HOME": str(self.state),
            **({} if plugins is None else {"HANDRAIL_PLUGINS": plugins}),
            **variables,
        }
        done = subprocess.run(
            [*inside, PROGRAM, *given],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            cwd=self.project,
            env=environment,
            timeout=PATIENCE_S,
        )
        return Met(
            self._as_shown(" ".join([*_told(variables), shlex.join(["handrail", *words])])),
            done.returncode,
            self._as_shown(done.stderr.decode()),
            self._as_shown(done.stdout.decode()),
            self._as_shown(f"```toml\n{config}```\n") if config else "",
        )

    def _as_shown(self, text: str) -> str:
        text = STAMP.sub("20260101-120000-a1b2c3", SLOW.sub("", text))
        for what, instead in sorted(self.shown.items(), key=lambda each: -len(each[0])):
            text = text.replace(what, instead)
        return text

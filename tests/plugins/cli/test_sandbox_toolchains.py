"""Toolchains on PATH: their programs work in the sandbox, and nothing else beside them is read unasked."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path

import pytest

import handrail
from handrail import Session
from handrail.api.approval import no

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap is Linux's")

CANARY = "CANARY"
# What is not to be read unasked, below the home.
CLOSED = (
    *("go/src/example.org/other/main.go", "go/src/example.org/other/.env", "go/src/example.org/other/.git/config"),
    *("projects/tools/.git/config", "projects/tools/lib/own.py", ".rye/credentials", ".rye/self/deep/credentials.toml"),
    *(".npm-global/etc/npmrc", ".npm-global/lib/deep/.npmrc", ".cargo/config.toml", ".cargo/credentials.toml"),
    *(".pyenv/.git/config", ".pyenv/versions/1.0/etc/pip.conf"),
)
ON_PATH = ("go/bin", "projects/tools/bin", ".rye/shims", ".npm-global/bin", ".cargo/bin", ".pyenv/shims", "venv/bin")
# Programs, each with a file of its own that it needs.
PROGRAMS = {
    "projects/tools/bin/own-tool": "echo own",
    "go/bin/go-tool": 'cat "$(dirname "$0")/../pkg/mod/cache/data"',
    "go/pkg/mod/cache/data": "data of go",
    ".npm-global/lib/node_modules/tool/cli.sh": "echo cli of npm",
    ".pyenv/shims/shim": 'exec "$(dirname "$0")/../libexec/pyenv" exec shim',
    ".pyenv/libexec/pyenv": 'root="$(dirname "$0")/.."; exec "$root/versions/$(cat "$root/version")/bin/$2"',
    ".pyenv/versions/1.0/bin/shim": "echo version of pyenv",
    ".rye/shims/rye-tool": 'cat "$(dirname "$0")/../self/data"',
    ".rye/self/data": "data of rye",
    ".cargo/.crates.toml": "",
    ".cargo/bin/cargo-tool": "echo cargo",
}


@pytest.fixture
def home() -> Iterator[Path]:
    """A home outside the folders for temporary files, of which sandboxed commands see their own."""
    with tempfile.TemporaryDirectory(prefix="handrail-test-", dir=Path.home()) as folder:
        home = Path(folder).resolve()
        (home / "work").mkdir()
        for name in CLOSED:
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            (home / name).write_text(f"token = {CANARY}\n")
        for name, text in PROGRAMS.items():
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            (home / name).write_text(f"#!/bin/bash\n{text}\n" if "data" not in Path(name).name else f"{text}\n")
            (home / name).chmod(0o755)
        (home / ".pyenv/version").write_text("1.0\n")
        (home / ".rye/py").mkdir()
        (home / ".npm-global/bin").mkdir()
        (home / ".npm-global/bin/npm-tool").symlink_to("../lib/node_modules/tool/cli.sh")
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(home / "venv")], check=True)
        (home / "venv/bin/venv-tool").write_text(f"#!{home}/venv/bin/python\nimport ssl; print('tool of venv')\n")
        (home / "venv/bin/venv-tool").chmod(0o755)
        yield home


@pytest.fixture
async def session(home: Path) -> AsyncGenerator[Session, None]:
    path = ":".join((*(str(home / folder) for folder in ON_PATH), "/usr/bin", "/bin"))
    async with handrail.open(
        cwd=home / "work", confirm=no, environment={"PATH": path, "HOME": str(home), "VIRTUAL_ENV": str(home / "venv")}
    ) as opened:
        yield opened


@pytest.mark.parametrize(
    "command",
    [
        "cat ~/{0}",
        "grep -r token ~/{1}",
        "python3 -c \"import os; print(open(os.path.expanduser('~/{0}')).read())\"",
        "python3 -c \"import subprocess; print(subprocess.run(['bash', '-c', 'cat ~/{1}/* ~/{1}/.*'], capture_output=True).stdout)\"",
    ],
)
async def test_nothing_else_beside_programs_is_read(session: Session, command: str) -> None:
    for name in CLOSED:
        result = await session.call("execute_cli", {"command": command.format(name, Path(name).parent)})
        assert CANARY not in str(result), (name, result)


async def test_folders_that_are_opened_are_read_without_their_credentials(session: Session) -> None:
    result = await session.call(
        "execute_cli", {"command": "grep -rs o ~/go/pkg ~/.npm-global/lib ~/.rye/self ~/.pyenv/versions"}
    )
    assert "data of go" in str(result), result
    assert CANARY not in str(result)


async def test_file_tools_ask_for_what_lies_beside_programs(session: Session, home: Path) -> None:
    for name in CLOSED:
        result = await session.call("read_file", {"path": str(home / name)})
        assert CANARY not in str(result), name


@pytest.mark.parametrize(
    ("program", "printed"),
    [
        ("own-tool", "own"),
        ("go-tool", "data of go"),
        ("npm-tool", "cli of npm"),
        ("shim", "version of pyenv"),
        ("rye-tool", "data of rye"),
        ("cargo-tool", "cargo"),
        ("venv-tool", "tool of venv"),
    ],
)
async def test_programs_of_toolchains_work(session: Session, program: str, printed: str) -> None:
    (session.cwd / "Makefile").write_text(f"all:\n\t@{program}\n")
    result = await session.call("execute_cli", {"command": "make"})
    assert result.ok, result
    assert result["stdout"].strip() == printed, result


async def test_credentials_that_come_to_be_at_the_top_are_closed_at_once(session: Session, home: Path) -> None:
    command = {"command": "grep -r token ~/.cargo/bin ~/.cargo"}
    await session.call("execute_cli", command)
    (home / ".cargo/bin/credentials.toml").write_text(f"token = {CANARY}\n")
    result = await session.call("execute_cli", {"command": "grep -r token ~/.cargo/bin"})
    assert CANARY not in str(result), result


async def test_git_settings_inside_hold_no_credentials(home: Path) -> None:
    (home / ".gitconfig").write_text(
        f"[alias]\n\tst = status\n\tdep = !curl -H 'Authorization: {CANARY}'\n[my]\n\tapikey = {CANARY}\n"
    )
    async with handrail.open(
        cwd=home / "work", confirm=no, environment={"PATH": "/usr/bin:/bin", "HOME": str(home)}
    ) as session:
        (home / "work/Makefile").write_text("all:\n\t@git config --list; cat $(HOME)/.gitconfig\n")
        result = await session.call("execute_cli", {"command": "make"})
    assert "alias.st=status" in result["stdout"], result
    assert CANARY not in str(result)

"""`handrail mcp install`, `uninstall` and `clients`, as a person types them."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from tests.plugins.mcp.place import HANDRAIL

from .kept import JSON, SETTINGS


class Person:
    """Somebody with a home folder and a project."""

    def __init__(self, folder: Path) -> None:
        self.home, self.project = folder / "home", folder / "project"
        self.home.mkdir()
        self.project.mkdir()

    def mcp(self, *args: str, **variables: str) -> subprocess.CompletedProcess[str]:
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "HANDRAIL_PLUGINS": "mcp",
            "HANDRAIL_HOME": str(self.home / "handrail"),
        }
        return subprocess.run(
            [str(HANDRAIL), "mcp", *args],
            env=environment | variables,
            cwd=self.project,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def clients(self) -> dict[tuple[str, str], dict[str, Any]]:
        return {(row["client"], row["scope"]): row for row in json.loads(self.mcp("clients", "--json").stdout)}

    @property
    def backups(self) -> list[Path]:
        return sorted((self.home / "handrail" / "state" / "clients").glob("*"))


@pytest.fixture
def person(tmp_path: Path) -> Person:
    return Person(tmp_path)


def test_install_writes_the_program_that_runs_and_clients_lists_it(person: Person):
    done = person.mcp("install", "gemini", "--desktop", "private", "--profile", "shell", "--workspace", ".")
    file = person.home / ".gemini" / "settings.json"
    assert (done.returncode, done.stdout) == (0, f"Gemini CLI: added 'handrail' in {file}\n")
    assert "`gemini mcp list`" in done.stderr
    entry = json.loads(file.read_text())["mcpServers"]["handrail"]
    assert entry == {
        "command": str(HANDRAIL),
        "args": ["serve", "--desktop", "private", "--profile", "shell", "--workspace", str(person.project)],
    }
    person.mcp("install", "codex", "--scope", "project", "--name", "hands")
    listed = person.clients()
    assert listed["gemini", "user"]["state"] == "installed"
    assert listed["codex", "project"] | {"args": None} == {
        "client": "codex",
        "scope": "project",
        "file": str(person.project / ".codex" / "config.toml"),
        "state": "installed",
        "name": "hands",
        "command": str(HANDRAIL),
        "args": None,
    }
    assert listed["codex", "user"]["state"] == "no file"


def test_a_link_stays_a_link_the_mode_stays_and_a_private_copy_is_kept(person: Person):
    kept = person.home / "dotfiles" / "claude.json"
    kept.parent.mkdir()
    kept.write_text(JSON)
    kept.chmod(0o640)
    (person.home / ".claude.json").symlink_to(kept)
    done = person.mcp("install", "claude")
    assert (person.home / ".claude.json").is_symlink()
    assert "handrail" in json.loads(kept.read_text())["mcpServers"]
    assert stat.S_IMODE(kept.stat().st_mode) == 0o640
    [copy] = person.backups
    assert (copy.read_text(), stat.S_IMODE(copy.stat().st_mode)) == (JSON, 0o600)
    assert str(copy) in done.stderr
    assert [each.name for each in kept.parent.iterdir()] == ["claude.json"]
    assert person.mcp("install", "claude").stdout.startswith("Claude Code has it already")
    assert person.mcp("uninstall", "claude").returncode == 0
    assert kept.read_text() == JSON
    assert len(person.backups) == 2


def test_a_shell_completes_the_clients_names(person: Person):
    words = {"_HANDRAIL_COMPLETE": "bash_complete", "COMP_WORDS": "handrail mcp install cl", "COMP_CWORD": "3"}
    assert person.mcp(**words).stdout.split() == ["plain,claude", "plain,claude-desktop"]


def test_a_dry_run_shows_the_difference_and_changes_nothing(person: Person):
    file = person.home / ".config" / "zed" / "settings.json"
    file.parent.mkdir(parents=True)
    file.write_text(SETTINGS)
    done = person.mcp("install", "zed", "--dry-run")
    assert done.stderr == f"Zed: nothing was changed; without --dry-run: added 'handrail' in {file}\n"
    shown = done.stdout
    assert shown.startswith(f"--- {file}\n+++ {file}\n")
    changed = [line for line in shown.splitlines()[2:] if line[0] in "+-"]
    assert changed[0] == '+    "handrail": {'
    assert all(line.startswith("+") for line in changed)
    assert file.read_text() == SETTINGS
    assert not person.backups


def test_print_prints_the_clients_own_form_and_touches_no_file(person: Person):
    done = person.mcp("install", "codex", "--print", "--env", "LANG=C")
    assert done.stdout == f'[mcp_servers.handrail]\ncommand = "{HANDRAIL}"\nargs = ["serve"]\nenv = {{LANG = "C"}}\n'
    assert str(person.home / ".codex" / "config.toml") in done.stderr
    assert json.loads(person.mcp("install", "--print").stdout) == {
        "mcpServers": {"handrail": {"command": str(HANDRAIL), "args": ["serve"]}}
    }
    assert not (person.home / ".codex").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere no variable leads to the screen")
@pytest.mark.parametrize(("desktop", "passed"), [("current", ["DISPLAY", "XAUTHORITY"]), ("private", None)])
def test_codex_is_told_to_pass_on_what_leads_to_the_screen(desktop: str, passed: list[str] | None, person: Person):
    args = ("install", "codex", "--print", "--desktop", desktop)
    printed = tomllib.loads(person.mcp(*args, DISPLAY=":9", XAUTHORITY="/x").stdout)
    assert printed["mcp_servers"]["handrail"].get("env_vars") == passed


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (["install"], 2, "name a client"),
        (["install", "vscod"], 2, "did you mean 'vscode'?"),
        (["install", "goose", "--scope", "project"], 2, "leave --scope out"),
        (["install", "zed", "--name", "a b"], 2, "no name for a server"),
        (["install", "zed", "--profile", "nope"], 1, "--profile: tools.profile is 'nope'"),
        (["uninstall", "zed"], 0, ""),
    ],
)
def test_a_mistake_is_told_with_the_cure(args: list[str], code: int, said: str, person: Person):
    done = person.mcp(*args)
    assert done.returncode == code
    assert said in done.stderr
    assert not (person.home / ".config").exists()


def test_a_broken_file_is_refused_listed_and_untouched(person: Person):
    (person.home / ".cursor").mkdir()
    file = person.home / ".cursor" / "mcp.json"
    file.write_text('{"mcpServers": {,}}')
    done = person.mcp("install", "cursor")
    assert done.returncode == 1
    assert done.stderr.startswith(f"Error: {file}:1: ")
    assert "Hint: nothing was changed; mend it" in done.stderr
    assert file.read_text() == '{"mcpServers": {,}}'
    assert person.clients()["cursor", "user"]["state"] == "broken"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        pytest.param(["--backend", "ocrr"], "there is no vision backend 'ocrr'", id="backend"),
        pytest.param(["--desktop", "wrk"], "'wrk'", id="desktop"),
        pytest.param(["--workspace", "nowhere"], "there is no folder", id="workspace"),
    ],
)
def test_what_the_server_would_refuse_is_refused_before_it_is_written(person: Person, options: list[str], told: str):
    done = person.mcp("install", "gemini", *options, HANDRAIL_PLUGINS="mcp,gui")
    assert (done.returncode, done.stdout) == (1, "")
    assert told in done.stderr
    assert "Hint: " in done.stderr
    assert not (person.home / ".gemini").exists()


def test_a_secret_in_a_new_file_is_told_and_only_its_owner_reads_it(person: Person):
    done = person.mcp("install", "cursor", "--env", "API_KEY=sk-3f9a8b7c6d5e4f3a")
    file = person.home / ".cursor" / "mcp.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert f"the value of API_KEY stands in {file} as it is; to keep it out, leave --env out" in done.stderr
    assert "sk-3f9a" not in done.stdout + done.stderr


def test_a_variable_that_is_no_secret_is_written_without_a_word(person: Person):
    done = person.mcp("install", "cursor", "--env", "LANG=C.UTF-8")
    assert "stands in" not in done.stderr


def test_the_entries_of_clients_are_told_with_what_removes_them(person: Person):
    person.mcp("install", "codex", "--scope", "project", "--name", "hands")
    environment = {"PATH": os.environ["PATH"], "HOME": str(person.home), "HANDRAIL_HOME": str(person.home / "handrail")}
    done = subprocess.run(
        [str(HANDRAIL), "uninstall", "--dry-run"],
        env=environment,
        cwd=person.project,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert "remove: handrail mcp uninstall codex --scope project --name hands\n" in done.stdout, done.stderr

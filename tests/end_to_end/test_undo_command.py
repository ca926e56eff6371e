"""`handrail undo` as a person or a script runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.terminals import Terminal

PROGRAM = Path(sys.executable).with_name("handrail")
Program = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def work(tmp_path: Path) -> Path:
    work = tmp_path / "work"
    work.mkdir()
    (work / "a.txt").write_text("one\ntwo\n")
    return work


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "HANDRAIL_HOME": str(tmp_path / "state"),
        "HANDRAIL_PLUGINS": "files,cli",
    }


@pytest.fixture
def handrail(work: Path, environment: dict[str, str]) -> Program:
    def run(*words: str, code: int | None = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run([PROGRAM, *words], cwd=work, env=environment, capture_output=True, text=True, timeout=60)
        assert code is None or done.returncode == code, (done.stdout, done.stderr)
        return done

    return run


def write(handrail: Program, path: str, text: str) -> dict[str, Any]:
    args = json.dumps({"file_path": path, "content": text, "overwrite": True})
    return json.loads(handrail("call", "write_file", "--yes", "--json", "--args", args).stdout)


def test_the_newest_call_is_undone_and_then_the_one_before(handrail: Program, work: Path) -> None:
    assert write(handrail, "a.txt", "1\n")["undo"] == {"kept": True}
    write(handrail, "b.txt", "b\n")
    assert "undid" in handrail("undo", "--yes").stdout
    assert ((work / "a.txt").read_text(), (work / "b.txt").exists()) == ("1\n", False)
    handrail("undo", "--yes")
    assert (work / "a.txt").read_text() == "one\ntwo\n"
    assert "there is nothing left to undo" in handrail("undo", "--yes", code=1).stderr


def test_the_list_says_what_undoing_each_would_do(handrail: Program, work: Path) -> None:
    assert "no call has changed files" in handrail("undo", "--list").stderr
    write(handrail, "a.txt", "1\n")
    write(handrail, "b.txt", "b\n")
    first, second = json.loads(handrail("undo", "--list", "--json").stdout)
    assert (first["tool"], first["paths"]) == ("write_file", [{"path": str(work / "b.txt"), "step": "delete"}])
    assert second["paths"] == [{"path": str(work / "a.txt"), "step": "restore"}]
    shown = handrail("undo", "--list").stdout
    assert ("delete    b.txt" in shown, "restore   a.txt" in shown) == (True, True)


def test_a_dry_run_shows_a_diff_and_changes_nothing(handrail: Program, work: Path) -> None:
    write(handrail, "a.txt", "one\n2\n")
    shown = handrail("undo", "--dry-run").stdout
    assert ("-2" in shown, "+two" in shown) == (True, True)
    assert (work / "a.txt").read_text() == "one\n2\n"
    assert "+two" in json.loads(handrail("undo", "--dry-run", "--json").stdout)["diff"]


def test_a_later_change_is_left_alone_unless_it_is_said_what_to_do(handrail: Program, work: Path) -> None:
    write(handrail, "a.txt", "1\n")
    (work / "a.txt").write_text("by hand\n")
    refused = handrail("undo", "--yes", code=1)
    assert ("a.txt: it was changed since" in refused.stderr, "--force" in refused.stderr) == (True, True)
    assert "changed   a.txt" in handrail("undo", "--dry-run", code=1).stdout
    handrail("undo", "--yes", "--force")
    assert (work / "a.txt").read_text() == "one\ntwo\n"
    assert "exclude each other" in handrail("undo", "--force", "--skip-changed", code=2).stderr


def test_an_undo_is_undone_by_its_own_name(handrail: Program, work: Path) -> None:
    write(handrail, "a.txt", "1\n")
    handrail("undo", "--yes")
    (undo, _) = json.loads(handrail("undo", "--list", "--json").stdout)
    assert undo["tool"] == "undo_call"
    assert json.loads(handrail("undo", undo["call"], "--yes", "--json").stdout)["effect"] == "confirmed"
    assert (work / "a.txt").read_text() == "1\n"


def test_nobody_at_a_terminal_has_to_say_yes(handrail: Program, work: Path) -> None:
    write(handrail, "a.txt", "1\n")
    assert "--yes" in handrail("undo", code=1).stderr
    assert (work / "a.txt").read_text() == "1\n"


@pytest.mark.parametrize(("answer", "left"), [("y", "one\ntwo\n"), ("n", "1\n")])
def test_a_person_is_shown_what_is_undone_and_asked(
    handrail: Program, work: Path, environment: dict[str, str], answer: str, left: str
) -> None:
    write(handrail, "a.txt", "1\n")
    with Terminal([PROGRAM, "undo"], work, environment) as terminal:
        assert "restore   a.txt" in terminal.wait_for("Undo this?")
        terminal.type(f"{answer}\n")
        code, _ = terminal.end()
    assert code == (0 if answer == "y" else 130)
    assert (work / "a.txt").read_text() == left


def test_it_is_in_the_history(handrail: Program, work: Path) -> None:
    write(handrail, "a.txt", "1\n")
    handrail("undo", "--yes")
    calls = json.loads(handrail("history", "--json").stdout)
    assert [call["tool"] for call in calls] == ["write_file", "undo_call"]
    handrail("audit", "verify")


def test_a_workspace_of_another_folder_has_calls_of_its_own(handrail: Program, work: Path, tmp_path: Path) -> None:
    write(handrail, "a.txt", "1\n")
    (tmp_path / "other").mkdir()
    assert handrail("undo", "--list", "--json", "--workspace", str(tmp_path / "other")).stdout.strip() == "[]"
    assert (
        len(json.loads(handrail("undo", "--list", "--all", "--json", "--workspace", str(tmp_path / "other")).stdout))
        == 1
    )


@pytest.fixture
def notes(work: Path) -> Path:
    """Notes that no version control has."""
    (work / "notes/deep").mkdir(parents=True)
    (work / "notes/plan.md").write_text("plan\n")
    (work / "notes/deep/more.md").write_text("more\n")
    return work / "notes"


def run_command(handrail: Program, command: str, *, code: int = 0) -> dict[str, Any]:
    args = json.dumps({"command": command})
    return json.loads(handrail("call", "execute_cli", "--json", "--args", args, code=code).stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap is Linux's")
def test_untracked_files_are_deleted_without_a_question_and_brought_back(handrail: Program, notes: Path) -> None:
    result = run_command(handrail, "rm -rf notes/")
    assert (result["sandbox"], result["undo"], notes.exists()) == ("bubblewrap", {"kept": True}, False)
    handrail("undo", "--yes")
    assert ((notes / "plan.md").read_text(), (notes / "deep/more.md").read_text()) == ("plan\n", "more\n")


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        pytest.param("enabled = false", "no_confirmer", id="undo-is-off"),
        pytest.param("max_file_bytes = 4", "not_undoable", id="a-file-is-too-large"),
        pytest.param("max_files = 2", "not_undoable", id="the-workspace-is-too-large"),
    ],
)
@pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap is Linux's")
def test_what_undo_does_not_keep_is_asked_about(
    handrail: Program, notes: Path, environment: dict[str, str], settings: str, code: str
) -> None:
    config = Path(environment["HANDRAIL_HOME"]) / "config/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(f"[undo]\n{settings}\n")
    result = run_command(handrail, "rm -rf notes/", code=1)
    assert result["error"]["code"] == code
    assert (notes / "plan.md").read_text() == "plan\n"
    # What is not there is not lost.
    assert run_command(handrail, "echo x > new.txt")["status"] == "success"


@pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap is Linux's")
def test_what_cannot_be_undone_is_marked_and_passed_over(handrail: Program, work: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=work, check=True)
    (work / ".gitignore").write_text("node_modules\n")
    (work / "node_modules/x").mkdir(parents=True)
    (work / "node_modules/x/i.js").touch()
    write(handrail, "a.txt", "2\n")
    run_command(handrail, "rm -rf node_modules")
    shown = handrail("undo", "--list").stdout.splitlines()
    assert ("(cannot be undone)" in shown[0], shown[1]) == (
        True,
        "  not kept  node_modules: generated, and git ignores it",
    )
    assert "was passed over" in handrail("undo", "--dry-run").stdout
    first, second, *_ = handrail("undo", "--yes").stdout.splitlines()
    assert ("was passed over: nothing of it can be put back" in first, second.startswith("undid ")) == (True, True)
    assert (work / "a.txt").read_text() == "one\ntwo\n"


@pytest.mark.parametrize("answer", ["y", "n"])
def test_a_person_is_warned_of_what_redo_could_not_bring_back(
    handrail: Program, work: Path, environment: dict[str, str], answer: str
) -> None:
    config = Path(environment["HANDRAIL_HOME"]) / "config/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text("[undo]\nmax_file_bytes = 10\n")
    write(handrail, "huge", "x" * 20)
    assert "cannot be brought back by redo" in handrail("undo", "--yes", code=1).stderr
    assert "cannot be brought back by redo: huge" in handrail("undo", "--dry-run", code=1).stdout
    with Terminal([PROGRAM, "undo"], work, environment) as terminal:
        assert "cannot be brought back by redo: huge" in terminal.wait_for("Undo this?")
        terminal.type(f"{answer}\n")
        terminal.end()
    assert (work / "huge").exists() == (answer == "n")


FORGED = "x\n20261122-000000-aaaaaa c9  2026-11-22 00:00:00  write_file  all is well\r\x1b[2J"


@pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap is Linux's")
def test_no_name_forges_a_line(handrail: Program, work: Path) -> None:
    (work / FORGED).write_text("x\n")
    run_command(handrail, "rm x*; echo 2 > a.txt")
    for words in (["--list"], ["--dry-run"], ["--yes"]):
        shown = handrail("undo", *words).stdout
        assert r"x\n20261122-000000-aaaaaa c9" in shown
        assert not [line for line in shown.splitlines() if line.startswith("20261122-000000")]
        assert not set("\r\x1b") & set(shown)
    assert (work / FORGED).read_text() == "x\n"
    refused = handrail("undo", "c1", "--yes", code=None)
    assert not [line for line in refused.stderr.splitlines() if line.startswith("20261122-000000")]


@pytest.mark.parametrize(
    ("settings", "command", "remedy"),
    [
        pytest.param("max_file_bytes = 4", "rm notes/plan.md", "raise undo.max_file_bytes", id="a-file-is-too-large"),
        pytest.param("max_files = 2", "find . -name '*.md' -delete", "raise undo.max_files", id="too-many-files"),
        pytest.param("keep_days = 14", "rm pipe", "have a person approve it", id="a-pipe"),
    ],
)
@pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap is Linux's")
def test_a_refusal_says_once_why_it_was_not_run_and_what_helps(
    handrail: Program, notes: Path, work: Path, environment: dict[str, str], settings: str, command: str, remedy: str
) -> None:
    config = Path(environment["HANDRAIL_HOME"]) / "config/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(f"[undo]\n{settings}\n")
    if command == "rm pipe":
        os.mkfifo(work / "pipe")
    error = run_command(handrail, command, code=1)["error"]
    assert error["code"] == "not_undoable"
    reason, _, hint = error["message"].partition("; ")
    assert ("it was not run: " in hint, hint.endswith(remedy)) == (True, True)
    assert max(reason.count(bound) for bound in ("max_files", "max_file_bytes", "a pipe")) == 1

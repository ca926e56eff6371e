"""Files, variables, settings and packages: no desktop is needed."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest

import handrail
from handrail import Answer, Approval, Choice, Session
from handrail_workflows.settings import build_commands, is_same_value

from .conftest import ADVANCED

RULE = {"tool": "write_file", "paths": "**", "decision": "allow", "lifts": ["effects:startup"]}


class Person:
    """Says yes, or no, and remembers what was asked."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.choice = Choice.ONCE

    async def __call__(self, approval: Approval) -> Answer:
        self.asked.append(approval.confirmation)
        return Answer(self.choice)


@pytest.fixture
def person() -> Person:
    return Person()


@pytest.fixture
async def session(tmp_path: Path, person: Person) -> AsyncIterator[Session]:
    async with handrail.open(confirm=person, cwd=tmp_path, mode="default") as found:
        await found.load_tools(ADVANCED, source="tests")
        yield found


async def test_replacing_shows_first_and_writes_only_when_that_is_said(session: Session, tmp_path: Path) -> None:
    text = tmp_path / "a.txt"
    text.write_bytes("\ufeffrot und rot\r\nblau\nrot\n".encode("utf-16-le"))
    before = text.read_bytes()
    (tmp_path / "b.txt").write_bytes(b"rot\0\1\2")
    (tmp_path / "c.md").write_text("rot")
    args = {"pattern": "*.txt", "find": "rot", "replace": "grün"}
    shown = await session.call("find_and_replace_in_files", args)
    assert shown.ok, shown
    assert text.read_bytes() == before
    done = await session.call("find_and_replace_in_files", {**args, "dry_run": False})
    assert done.ok, done
    assert done["total_replacements"] == shown["total_replacements"]
    assert (tmp_path / "c.md").read_text() == "rot"
    assert (tmp_path / "b.txt").read_bytes() == b"rot\0\1\2"


async def test_replacing_keeps_line_ends_links_and_permissions(session: Session, tmp_path: Path) -> None:
    script = tmp_path / "run.sh"
    script.write_bytes(b"a = 1\r\nb = 2\r\nc = 3\n")
    script.chmod(0o750)
    (tmp_path / "link.sh").symlink_to("run.sh")
    (tmp_path / ".gitignore").write_text("out/\n")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "x.sh").write_text("b = 2\n")
    args = {"pattern": "run.sh", "find": r"(\w) = (\d)", "replace": r"\2 = \1", "regex": True, "dry_run": False}
    done = await session.call("find_and_replace_in_files", args)
    assert done.ok, done
    assert done["total_replacements"] == 3
    assert script.read_bytes() == b"1 = a\r\n2 = b\r\n3 = c\n"
    assert script.stat().st_mode & 0o777 == 0o750
    assert (tmp_path / "link.sh").is_symlink()
    assert (tmp_path / "out" / "x.sh").read_text() == "b = 2\n"


async def test_a_name_without_a_wildcard_is_the_whole_name(session: Session, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    for name in ("e.txt", "huge.txt", "sub/e.txt", "e.txt.old"):
        (tmp_path / name).write_text("foo\n")
    args = {"pattern": "./e.txt", "find": "foo", "replace": "bar", "dry_run": False}
    done = await session.call("find_and_replace_in_files", args)
    assert sorted(change["path"] for change in done["changes"]) == ["e.txt", str(Path("sub/e.txt"))]
    assert (tmp_path / "huge.txt").read_text() == "foo\n"
    assert (tmp_path / "e.txt.old").read_text() == "foo\n"


async def test_a_file_with_the_text_in_thousands_of_lines_is_changed_and_shown_line_by_line(
    session: Session, tmp_path: Path
) -> None:
    (tmp_path / "many.txt").write_text("foo\n" * 1500 + "bar\n" * 3000 + "foo\n")
    args = {"pattern": "many.txt", "find": "foo", "replace": "qux", "dry_run": False}
    assert (await session.call("find_and_replace_in_files", args))["total_replacements"] == 1501
    assert "foo" not in (tmp_path / "many.txt").read_text()
    (tmp_path / "far.txt").write_text("foo\n" + "bar\n" * 5000 + "foo\n")
    (change,) = (await session.call("find_and_replace_in_files", {**args, "pattern": "far.txt"}))["changes"]
    assert change["diff"].splitlines()[3:5] == ["-foo", "+qux"]
    assert change["diff"].splitlines()[-2:] == ["-foo", "+qux"]
    assert len(change["diff"]) < 200


async def test_ends_of_lines_that_are_written_out_are_found_as_they_are(session: Session, tmp_path: Path) -> None:
    text = tmp_path / "a.txt"
    text.write_bytes(b"a\r\nb\r\n")
    args = {"pattern": "a.txt", "find": "a\r\nb", "replace": "c\r\nd", "dry_run": False}
    assert (await session.call("find_and_replace_in_files", args))["total_replacements"] == 1
    assert text.read_bytes() == b"c\r\nd\r\n"
    await session.call("find_and_replace_in_files", {**args, "find": "c", "replace": "e\r\nf"})
    assert text.read_bytes() == b"e\r\nf\r\nd\r\n"


async def test_a_pattern_that_is_none_and_a_group_that_it_does_not_have_are_errors(session: Session) -> None:
    args = {"pattern": "*.txt", "find": "(", "replace": "", "regex": True}
    assert (await session.call("find_and_replace_in_files", args)).error_code == "invalid_arguments"
    args = {"pattern": "*.txt", "find": "(a)", "replace": r"\2", "regex": True}
    assert (await session.call("find_and_replace_in_files", args)).error_code == "invalid_arguments"


@pytest.mark.parametrize(
    "value", ["plain", "two words", "$(touch x) `id` $HOME", 'it\'s "quoted" \\', "-n", "two\nlines"]
)
async def test_a_variable_is_for_the_commands_that_follow_letter_by_letter(session: Session, value: str) -> None:
    done = await session.call("set_env_var", {"name": "SAID", "value": value})
    assert done.ok, done
    assert (await session.call("execute_cli", {"command": 'printf %s "$SAID"'}))["stdout"] == value


async def test_a_profile_is_not_written_unless_a_rule_of_a_person_says_so(tmp_path: Path, person: Person) -> None:
    home = tmp_path / "home"
    home.mkdir()
    environment = {**os.environ, "HOME": str(home), "SHELL": "/bin/bash"}
    async with handrail.open(confirm=person, cwd=tmp_path, environment=environment) as session:
        await session.load_tools(ADVANCED, source="tests")
        refused = await session.call("set_env_var", {"name": "SAID", "value": "x", "scope": "user"})
    assert refused.status == "denied"
    assert list(home.iterdir()) == []


async def test_a_refusal_tells_nothing_of_what_is_in_a_profile(tmp_path: Path, person: Person) -> None:
    """If this fails, an agent reads a profile, or finds out by guesses what is in it."""
    (tmp_path / ".profile").write_text("export PIN=4711\n")
    environment = {**os.environ, "HOME": str(tmp_path), "SHELL": "/bin/bash"}
    async with handrail.open(confirm=person, cwd=tmp_path, environment=environment) as session:
        await session.load_tools(ADVANCED, source="tests")
        args = [{"name": "PIN", "value": value, "scope": "user"} for value in ("0815", "4711")]
        wrong, right = [await session.call("set_env_var", each) for each in args]
    assert wrong.status == right.status == "denied"
    assert wrong["error"] == right["error"]
    assert "4711" not in str(dict(wrong))


@pytest.mark.parametrize(("shell", "file"), [("bash", ".profile"), ("zsh", ".zshenv")])
async def test_a_line_of_a_profile_is_quoted_replaced_and_written_once(
    tmp_path: Path, person: Person, shell: str, file: str
) -> None:
    profile = tmp_path / file
    profile.write_text("umask 22\nexport SAID=old\n")
    environment = {**os.environ, "HOME": str(tmp_path), "SHELL": f"/bin/{shell}"}
    value = '$(touch x) it\'s `id` \\ "é"'
    async with handrail.open(
        cwd=tmp_path, environment=environment, confirm=person, policy={"rules": [RULE]}
    ) as session:
        await session.load_tools(ADVANCED, source="tests")
        args = {"name": "SAID", "value": value, "scope": "user"}
        done = await session.call("set_env_var", args)
        assert done.ok, done
        assert (await session.call("set_env_var", args))["changed"] is False
    text = profile.read_text()
    assert text.count("SAID") == 1
    assert text.startswith("umask 22\n")
    said = ["bash", "-c", f'. ./{file}; printf %s "$SAID"']
    assert (await anyio.run_process(said, cwd=tmp_path)).stdout.decode() == value
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    "before",
    [
        pytest.param("export SAID='a\nb'\n", id="of-several-lines"),
        pytest.param("export SAID=1 OTHER=2\n", id="of-several-variables"),
        pytest.param("export SAID=1; umask 22\n", id="with-another-command"),
        pytest.param("export SAID=1\nSAID=2\n", id="set-again-below"),
    ],
)
async def test_a_line_of_a_profile_that_says_more_stays_and_the_new_one_counts(
    tmp_path: Path, person: Person, before: str
) -> None:
    profile = tmp_path / ".profile"
    profile.write_text(before)
    environment = {**os.environ, "HOME": str(tmp_path), "SHELL": "/bin/bash"}
    async with handrail.open(
        cwd=tmp_path, environment=environment, confirm=person, policy={"rules": [RULE]}
    ) as session:
        await session.load_tools(ADVANCED, source="tests")
        args = {"name": "SAID", "value": "new", "scope": "user"}
        done = await session.call("set_env_var", args)
        assert done.ok, done
        assert (await session.call("set_env_var", args))["changed"] is False
    assert profile.read_text() == f"{before}export SAID=new\n"
    said = ["bash", "-ec", '. ./.profile; printf %s "$SAID"']
    assert (await anyio.run_process(said, cwd=tmp_path)).stdout.decode() == "new"


async def test_a_setting_is_changed_and_read_back(session: Session, tmp_path: Path) -> None:
    keep = f"export GSETTINGS_BACKEND=keyfile XDG_CONFIG_HOME={tmp_path}"
    assert (await session.call("execute_cli", {"command": keep})).ok
    args = {"setting": "org.gnome.desktop.interface clock-format", "value": "12h"}
    done = await session.call("change_setting", args)
    assert done.ok, done
    assert (done["before"], done["after"]) == ("'24h'", "'12h'")
    wrong = await session.call("change_setting", {**args, "value": "36h"})
    assert wrong.status == "error"
    nowhere = await session.call("change_setting", {**args, "setting": "org.gnome.nowhere clock-format"})
    assert "No such schema" in nowhere["error"]["message"]
    await session.call("execute_cli", {"command": "export GSETTINGS_BACKEND=memory"})
    lost = await session.call(
        "change_setting",
        {**args, "value": "24h"} | {"setting": "org.gnome.desktop.interface cursor-size", "value": "30"},
    )
    assert "reads back" in lost["error"]["message"]


@pytest.mark.parametrize(
    ("after", "value"),
    [
        ("'two words'", "two words"),
        (r"'a\\b'", r"a\b"),
        ('"it\'s"', "it's"),
        ("'true'", "true"),
        ("true", "true"),
        ("'5'", "5"),
        ("2.0", "2"),
        ("uint32 10", "10"),
        ("@as []", "[]"),
        ("['a', 'b']", "['a','b']"),
    ],
)
def test_a_setting_reads_back_as_it_is_meant(after: str, value: str) -> None:
    assert is_same_value(after, value)
    assert not is_same_value(after, "other")


def test_nothing_in_a_setting_is_read_by_the_shell() -> None:
    assert (
        build_commands("darwin", "com.apple.dock $(id)", "a b").change == "defaults write com.apple.dock '$(id)' 'a b'"
    )
    registry = build_commands("win32", "HKCU\\Control Panel\\Desktop\\Wallpaper", "C:\\a b.png")
    assert registry.change == "reg add 'HKCU\\Control Panel\\Desktop' //v Wallpaper //d 'C:\\a b.png' //f"


async def test_installing_shows_the_exact_command_and_asks_about_it(session: Session, person: Person) -> None:
    shown = await session.call("install_app", {"app_name": "sl", "method": "apt", "preview": True})
    assert shown["command"].endswith("apt-get install -y sl")
    assert person.asked == []
    person.choice = Choice.DENY
    refused = await session.call("install_app", {"app_name": "sl", "method": "apt"})
    assert refused.error_code == "denied_by_policy" or refused.status == "denied"
    assert [confirmation.command for confirmation in person.asked] == [shown["command"]]
    assert shutil.which("sl") is None
    odd = await session.call("install_app", {"app_name": "sl; rm -rf ~", "method": "apt"})
    assert odd.error_code == "invalid_arguments"


async def test_plan_mode_takes_no_workflow(tmp_path: Path, person: Person) -> None:
    async with handrail.open(confirm=person, cwd=tmp_path, mode="plan") as session:
        await session.load_tools(ADVANCED, source="tests")
        assert (await session.call("set_env_var", {"name": "A", "value": "b"})).error_code == "tool_unavailable"
        assert (await session.call("save_dialog", {"filename": "x"})).error_code == "tool_unavailable"

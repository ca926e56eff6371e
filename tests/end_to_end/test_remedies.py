"""A denied call names the shortest thing that allows it, and that thing does allow it."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

import handrail
from handrail import Session
from handrail.api.approval import Answer, Approval, Choice

WITHOUT_UNDO: dict[str, Any] = {"undo.enabled": False}
PASTE = "adding this to their own config.toml:\n"


async def refusal(session: Session, tool: str, args: dict[str, Any]) -> str:
    result = await session.call(tool, args)
    assert result.status == "denied", result
    return result["error"]["message"]


def pasted(message: str) -> dict[str, Any]:
    """Return the rules of a refusal as settings, as they would be read from a configuration file."""
    assert PASTE in message, message
    rules = tomllib.loads(message.partition(PASTE)[2])["policy"]["rules"]
    return {"policy.rules": rules}


CALLS = [
    pytest.param("execute_cli", {"command": "git push"}, id="network"),
    pytest.param("execute_cli", {"command": "frobnicate x && kubectl get ns > out.txt"}, id="three-parts"),
    pytest.param("execute_cli", {"command": "python3 -c 'import os; os.remove(1)'"}, id="floor"),
    pytest.param("read_file", {"file_path": "../a.txt"}, id="file-outside"),
    pytest.param("write_file", {"file_path": "../new.txt", "content": ""}, id="write-outside"),
    pytest.param("write_file", {"file_path": ".envrc", "content": ""}, id="autorun"),
    pytest.param("execute_cli", {"command": "cd / && rmdir handrail-there-is-none"}, id="another-folder"),
    pytest.param("read_many_files", {"paths": ["../a.txt"]}, id="files-by-a-pattern-of-none"),
]


@pytest.mark.parametrize(("tool", "args"), CALLS)
@pytest.mark.parametrize("mode", ["default", "headless"])
async def test_the_rule_that_a_refusal_names_allows_the_call(
    tmp_path: Path, tool: str, args: dict[str, Any], mode: str
) -> None:
    workspace = tmp_path / "work"
    workspace.mkdir()
    (workspace / "one.txt").touch()
    (tmp_path / "a.txt").touch()
    async with handrail.open(cwd=workspace, mode=mode) as session:
        settings = pasted(await refusal(session, tool, args))
    for rule in settings["policy.rules"]:
        assert rule["tool"] == tool
        assert rule.keys() & {"argv", "paths", "hosts"}, "a rule for every call of a tool"
    async with handrail.open(cwd=workspace, mode=mode, **settings) as session:
        result = await session.call(tool, args)
    assert result.status != "denied", result


@pytest.mark.parametrize("command", ["rm -rf ./*", "cat * && frobnicate", "for i in *; do frobnicate $i; done"])
async def test_no_rule_is_named_that_would_allow_more_than_the_call(tmp_path: Path, command: str) -> None:
    """If this fails, a rule with a pattern, or with the first words of the command, lets longer commands pass."""
    (tmp_path / "one.txt").touch()
    async with handrail.open(cwd=tmp_path) as session:
        message = await refusal(session, "execute_cli", {"command": command})
    assert "[[policy.rules]]" not in message
    assert "handrail policy explain" in message


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        pytest.param("list_directory", {"path": ".."}, id="a-folder-outside"),
        pytest.param("read_many_files", {"paths": ["../*.md"]}, id="some-files-of-a-folder"),
        pytest.param("execute_cli", {"command": "cd sub && git push"}, id="words-that-mean-another-project"),
        pytest.param("execute_cli", {"command": "git push", "cwd": "sub"}, id="such-words-by-an-argument"),
    ],
)
async def test_no_rule_is_named_that_is_for_other_files_or_folders_too(
    tmp_path: Path, tool: str, args: dict[str, Any]
) -> None:
    (tmp_path / "work/sub").mkdir(parents=True)
    (tmp_path / "a.md").touch()
    async with handrail.open(cwd=tmp_path / "work", mode="headless") as session:
        assert "[[policy.rules]]" not in await refusal(session, tool, args)


async def test_the_rule_for_a_command_is_for_the_files_it_touched(tmp_path: Path) -> None:
    """If this fails, what is allowed in one folder is allowed by the same words in every other."""
    command = {"command": "cd / && rmdir handrail-there-is-none"}
    elsewhere = {"command": "cd /usr && rmdir handrail-there-is-none"}
    async with handrail.open(cwd=tmp_path, mode="headless") as session:
        settings = pasted(await refusal(session, "execute_cli", command))
    async with handrail.open(cwd=tmp_path, mode="headless", **settings) as session:
        assert (await session.call("execute_cli", command)).status == "error"
        await refusal(session, "execute_cli", elsewhere)


@pytest.mark.parametrize("command", ["rm -rf .", "find . -type f -delete", "ls | xargs rm"])
async def test_deleting_all_of_a_workspace_without_files_of_handrail_is_asked_about(
    tmp_path: Path, command: str
) -> None:
    (tmp_path / "one.txt").touch()
    async with handrail.open(cwd=tmp_path) as session:
        result = await session.call("execute_cli", {"command": command})
        assert result["error"]["code"] == "no_confirmer", result
    (tmp_path / "handrail.toml").touch()
    async with handrail.open(cwd=tmp_path) as session:
        result = await session.call("execute_cli", {"command": command})
        assert "by which Handrail judges" in result["error"]["message"]
    assert (tmp_path / "one.txt").exists()


async def test_an_edit_is_allowed_by_a_mode_where_undo_is_off(tmp_path: Path) -> None:
    args = {"file_path": "a.txt", "content": "x"}
    async with handrail.open(cwd=tmp_path, **WITHOUT_UNDO) as session:
        assert "--mode accept_edits" in await refusal(session, "write_file", args)
    async with handrail.open(cwd=tmp_path, mode="accept_edits", **WITHOUT_UNDO) as session:
        assert (await session.call("write_file", args)).ok


@pytest.mark.parametrize("command", ["rm -rf ~", "rm -rf /"])
async def test_what_is_catastrophic_has_no_remedy(tmp_path: Path, command: str) -> None:
    async with handrail.open(cwd=tmp_path) as session:
        message = await refusal(session, "execute_cli", {"command": command})
    assert "config.toml" not in message
    assert "--mode" not in message


async def test_after_a_person_said_no_nothing_is_said_of_how_to_get_around_it(tmp_path: Path) -> None:
    async def deny(approval: Approval) -> Answer:
        return Answer(Choice.DENY)

    async with handrail.open(cwd=tmp_path) as session:
        session.confirmer = deny
        message = await refusal(session, "execute_cli", {"command": "git push"})
    assert "config.toml" not in message


async def test_the_value_of_a_secret_variable_is_not_in_a_rule(tmp_path: Path) -> None:
    async with handrail.open(cwd=tmp_path) as session:
        session.keep(environment={"API_TOKEN": "s3cr3t-value-of-a-token"})
        message = await refusal(session, "execute_cli", {"command": 'frobnicate --key "$API_TOKEN"'})
    assert "s3cr3t" not in message

"""A question about a command says in which folder it runs, where that is not the workspace itself."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.plugins.cli.test_sandbox_network import run, working

from handrail.api.approval import Answer, Approval, Choice
from handrail.approval.rendering import question

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap is Linux's")


class Refusing:
    """A person who refuses everything, and keeps the questions as they are put."""

    def __init__(self) -> None:
        self.asked: list[Approval] = []

    async def __call__(self, approval: Approval) -> Answer:
        self.asked.append(approval)
        return Answer(Choice.DENY)


@pytest.mark.parametrize(
    ("before", "args", "shown"),
    [
        pytest.param(None, {}, None, id="the-workspace"),
        pytest.param("cd deep", {}, "{work}/deep", id="below-it"),
        pytest.param("cd /usr/share", {}, "/usr/share", id="outside"),
        pytest.param("cd link", {}, "{work}/deep", id="behind-a-link"),
        pytest.param(None, {"cwd": "deep/.."}, "deep/..", id="the-workspace-by-its-argument"),
        pytest.param(None, {"cwd": "link"}, "{work}/deep", id="elsewhere-by-its-argument"),
    ],
)
async def test_a_question_shows_the_folder_that_a_command_runs_in(
    tmp_path: Path, before: str | None, args: Mapping[str, str], shown: str | None
) -> None:
    """If this fails, an unprompted `cd` decides which project an approved `git clean` deletes files of."""
    person = Refusing()
    async with working(tmp_path, person) as session:
        work = session.cwd
        (work / "deep").mkdir()
        (work / "link").symlink_to("deep")
        if before is not None:
            assert (await run(session, before)).ok
        await run(session, "sudo true", **args)
    expected = shown.format(work=work) if shown is not None else None
    assert person.asked[-1].confirmation.cwd == expected  # pyright: ignore[reportAttributeAccessIssue]
    lines = question(person.asked[-1], width=500).splitlines()
    assert lines.count("cwd:") == (shown is not None)
    assert shown is None or f"    | {expected}" in lines

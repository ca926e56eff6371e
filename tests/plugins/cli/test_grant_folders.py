"""A yes for commands holds in the directories that they were to run in: elsewhere the same words mean another project."""

from __future__ import annotations

import sys
from pathlib import Path

import anyio
import pytest
from tests.plugins.cli.test_sandbox_network import run, working

from handrail.asking.confirm import Answer, Approval, Choice

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap is Linux's")


class Granting:
    """A person who grants the commands of the first question by their beginning for the session, and refuses what is asked later."""

    def __init__(self) -> None:
        self.asked: list[Approval] = []

    async def __call__(self, approval: Approval) -> Answer:
        self.asked.append(approval)
        if len(self.asked) > 1:
            return Answer(Choice.DENY)
        return Answer(Choice.SESSION, grant=approval.grants[-1])


@pytest.mark.parametrize(
    ("command", "cwd", "asks"),
    [
        pytest.param("git push origin main", None, False, id="the-same"),
        pytest.param("git push origin main -v", None, False, id="begins-like-it"),
        pytest.param("cd other && git push origin main", None, True, id="behind-cd"),
        pytest.param("cd other; git push origin main", None, True, id="perhaps-there"),
        pytest.param("(cd other && git push origin main)", None, True, id="in-a-subshell"),
        pytest.param("git push origin main", "other", True, id="by-its-argument"),
        pytest.param("cd link && git push origin main", None, True, id="behind-a-link"),
    ],
)
async def test_a_grant_for_a_push_is_for_the_project_that_was_shown(
    tmp_path: Path, command: str, cwd: str | None, *, asks: bool
) -> None:
    person = Granting()
    async with working(tmp_path, person) as session:
        for repository in (session.cwd, session.cwd / "other"):
            await anyio.run_process(("git", "init", "-q", str(repository)))
        (session.cwd / "link").symlink_to("other")
        await run(session, "git push origin main")
        label = f"commands that start with git push origin main in {session.cwd}"
        result = await run(session, command, **({"cwd": cwd} if cwd else {}))
    assert person.asked[0].grants[-1].label == label
    assert (len(person.asked) == 2, result.status == "denied") == (asks, asks)

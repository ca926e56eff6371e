"""Sandboxed commands change only their own variables of a session, and a person is shown the values that a command uses."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.plugins.cli.test_question_folders import Refusing
from tests.plugins.cli.test_sandbox_network import Person, run, working

from handrail.api.approval import Choice
from handrail.approval.rendering import question

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap is Linux's")

FORGE = """\
import os, sys
text = 'declare -x FORGED="1"\\n' + ("\\0" + os.getcwd() + "\\n" if "whole" in sys.argv else "")
for fd in range(3, 256):
    try:
        os.write(fd, text.encode())
    except OSError:
        pass
"""


@pytest.mark.parametrize(
    ("script", "name"),
    [
        pytest.param("export PLACE=/evil", "PLACE", id="changed"),
        pytest.param("unset LANG", "LANG", id="taken-away"),
    ],
)
async def test_a_users_own_variable_changes_in_the_sandbox_only(tmp_path: Path, script: str, name: str) -> None:
    """If this fails, an unprompted script decides what an approved `rm -r $PLACE` deletes."""
    person = Person(Choice.ONCE)
    async with working(tmp_path, person, {"PLACE": "/own"}) as session:
        (session.cwd / "env.sh").write_text(f"{script}\nexport VERSION=2\n")
        inside = await run(session, ". ./env.sh")
        left = dict(session.environment)
        later = await run(session, 'printf "%s\\n" "$PLACE $LANG $VERSION"; nosuchprogram')
    assert inside.ok, inside
    assert inside["note"].startswith(f"{name} holds for this command only")
    assert left == {"VERSION": "2"}
    assert later["stdout"] == "/own C.UTF-8 2\n"
    assert len(person.asked) == 1


@pytest.mark.parametrize(
    "command",
    [
        pytest.param("python3 forge.py", id="a-child"),
        pytest.param("python3 forge.py whole; exit 0", id="before-the-shell-ends"),
        pytest.param("exec python3 forge.py whole", id="in-the-place-of-the-shell"),
        pytest.param("(exec python3 forge.py whole) & wait", id="in-the-background"),
    ],
)
async def test_programs_are_not_given_what_the_shell_leaves(tmp_path: Path, command: str) -> None:
    async with working(tmp_path, None) as session:
        (session.cwd / "forge.py").write_text(FORGE)
        await run(session, command)
        assert "FORGED" not in session.environment


@pytest.mark.parametrize("ending", ["", "exit 3", "set -e; false"])
async def test_what_a_shell_leaves_is_kept_however_it_ends(tmp_path: Path, ending: str) -> None:
    async with working(tmp_path, None) as session:
        (session.cwd / "deep").mkdir()
        await run(session, f"cat /dev/null; export LEFT=1; cd deep; {ending}")
        assert session.environment["LEFT"] == "1"
        assert session.cwd.name == "deep"


async def test_a_question_shows_the_values_that_a_command_takes_from_the_session(tmp_path: Path) -> None:
    person = Refusing()
    async with working(tmp_path, person, {"OWN": "mine"}) as session:
        (session.cwd / "env.sh").write_text("export PLACE=/evil API_TOKEN=x UNUSED=1\n")
        assert (await run(session, ". ./env.sh")).ok
        await run(session, "sudo rm -r $PLACE ${API_TOKEN:-} $OWN")
    (asked,) = person.asked
    variables = {"API_TOKEN": "[a secret, which the command is not given]", "PLACE": "/evil"}
    assert asked.confirmation.variables == variables  # pyright: ignore[reportAttributeAccessIssue]
    assert (
        '    | {"API_TOKEN": "[a secret, which the command is not given]", "PLACE": "/evil"}'
        in question(asked, width=200).splitlines()
    )

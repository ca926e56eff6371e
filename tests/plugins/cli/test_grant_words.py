"""A lasting yes to a command on the host is for words that the command itself says, and for what these words run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Literal

import anyio
import pytest
from tests.plugins.cli.test_grant_folders import Granting
from tests.plugins.cli.test_sandbox_network import run, working

from handrail import Decision, EvaluationContext, Invocation, Route, Verdict
from handrail.api.approval import Approval
from handrail.policy.grants import build_grant_options
from handrail_cli.shell.windows import judge_windows_command
from handrail_cli.tools.execute import execute_cli

linux = pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap is Linux's")


async def asked(folder: Path, command: str) -> Approval:
    """The question about a command, in a workspace with a few files and a repository."""
    person = Granting()
    async with working(folder, person, {"URL": "https://one.example", "PLACE": "origin"}) as session:
        await anyio.run_process(("git", "init", "-q", str(session.cwd)))
        (session.cwd / "url.txt").write_text("https://one.example\n")
        (session.cwd / "a.cfg").write_text("")
        await run(session, command)
    return person.asked[0]


@linux
@pytest.mark.parametrize(
    "command",
    [
        pytest.param("curl -sS $URL", id="a-variable"),
        pytest.param('git push "$PLACE" main', id="a-quoted-variable"),
        pytest.param("gh pr view $(cat url.txt)", id="a-substitution"),
        pytest.param("curl -sS *.cfg", id="a-pattern"),
        pytest.param("xargs curl -sS < url.txt", id="input"),
        pytest.param("cat url.txt | xargs curl -sS", id="a-pipe"),
        pytest.param("ls | xargs gh pr view", id="names-of-files"),
        pytest.param("while read u; do curl -sS $u; done < url.txt", id="a-loop-over-input"),
        pytest.param("read u < url.txt; curl -sS $u", id="a-variable-that-is-read"),
        pytest.param('mapfile -t u < url.txt; curl -sS "${u[@]}"', id="a-list-that-is-read"),
        pytest.param("gh pr list > $PLACE", id="where-it-writes"),
        pytest.param("GH_REPO=$(cat url.txt) gh pr list", id="a-variable-for-one-command"),
    ],
)
async def test_words_that_may_change_take_no_lasting_yes_on_the_host(tmp_path: Path, command: str) -> None:
    """If this fails, an unprompted command that writes the variable or the file decides what the granted one sends."""
    approval = await asked(tmp_path, command)
    assert approval.verdict.route is Route.HOST
    assert not approval.grants


@linux
@pytest.mark.parametrize(
    "command",
    [
        pytest.param("gh pr list", id="plain-words"),
        pytest.param("TO=origin; git push $TO main", id="a-variable-of-the-line"),
        pytest.param('echo "$URL" && gh pr list', id="a-builtin-beside"),
        pytest.param("printf '%s\\n' 1 2 | xargs gh pr view", id="words-that-are-printed"),
    ],
)
async def test_words_that_the_command_says_take_one(tmp_path: Path, command: str) -> None:
    assert "exactly this call" in [grant.label for grant in (await asked(tmp_path, command)).grants]


@pytest.mark.parametrize(
    ("shell", "command", "expected"),
    [
        ("cmd", "foo.exe one", True),
        ("cmd", "foo.exe %X%", False),
        ("powershell", "foo.exe one", True),
        ("powershell", "foo.exe $x", False),
        ("powershell", "Get-Thing $x", False),
    ],
)
def test_the_shells_of_windows_know_what_may_change(
    shell: Literal["cmd", "powershell"], command: str, *, expected: bool
) -> None:
    here = EvaluationContext(Path("C:/w"), Path("C:/Users/a"), "a", {}, (Path("C:/w"),), "win32")
    opinion = judge_windows_command(command, here, shell=shell, cwd=here.cwd)
    args = {"command": command}
    call = Invocation(execute_cli, args, execute_cli.validate(args), "1")
    assert bool(build_grant_options(call, Verdict(Decision.CONFIRM, parts=opinion.parts))) is expected


@linux
@pytest.mark.parametrize(
    "command", ["behave", "snakemake all", "deployer up", "cdk diff", "sls info", "docker image build ."]
)
async def test_what_may_run_files_of_the_workspace_takes_no_lasting_yes(tmp_path: Path, command: str) -> None:
    assert not (await asked(tmp_path, command)).grants


@linux
@pytest.mark.parametrize(
    "command",
    [
        pytest.param("gh issue create -t x -F body.txt", id="a-file-that-is-sent"),
        pytest.param("gh issue create -t x -F - < body.txt", id="a-file-as-input"),
        pytest.param("cat body.txt | gh issue create -t x -F -", id="a-file-through-a-pipe"),
        pytest.param("split /opt/notes.md", id="pieces-under-names-that-are-not-given"),
        pytest.param("pdftotext /opt/letter.pdf", id="an-output-beside-the-input"),
    ],
)
async def test_what_sends_files_or_writes_unnamed_ones_takes_no_lasting_yes(tmp_path: Path, command: str) -> None:
    """If this fails, an unprompted command changes the file, or puts a link in the place of the output, and the granted one uses it."""
    assert not (await asked(tmp_path, command)).grants


@linux
@pytest.mark.parametrize(
    ("granted", "later"),
    [
        pytest.param("gh run list", "gh run list -R one.example/a/b", id="a-host-in-an-option"),
        pytest.param("gh repo clone a/b", "gh repo clone a/b ../c", id="a-folder-in-an-operand"),
        pytest.param("psql -c 'select 1'", "psql -c 'select 1' 'host=one.example'", id="a-host-in-a-connection-string"),
        pytest.param("gcloud projects list", "gcloud projects list --format=json", id="a-cloud"),
        pytest.param("docker run alpine", "docker run alpine id", id="a-container"),
        pytest.param("dig one.example", "dig one.example two.example", id="another-protocol"),
        pytest.param("git push origin main", "git push origin main -v", id="a-remote-that-is-not-known"),
        pytest.param("printf x | gh issue create -F -", "ps aux | gh issue create -F -", id="other-input"),
    ],
)
async def test_a_command_whose_hosts_are_not_known_is_granted_word_for_word(
    tmp_path: Path, granted: str, later: str
) -> None:
    """If this fails, words behind the granted ones name another host, or another place of this machine."""
    person = Granting()
    async with working(tmp_path, person) as session:
        await anyio.run_process(("git", "init", "-q", str(session.cwd)))
        await run(session, granted)
        same = await run(session, granted)
        other = await run(session, later)
    assert [grant.label for grant in person.asked[0].grants] == ["exactly this call"]
    assert (same.status == "denied", other.status) == (False, "denied")


@linux
@pytest.mark.parametrize(
    "command",
    [
        pytest.param("TOOL=./tool.sh gh pr list", id="for-one-command"),
        pytest.param("env TOOL=./tool.sh gh pr list", id="by-env"),
        pytest.param("export TOOL=./tool.sh; gh pr list", id="for-all"),
        pytest.param("TOOL=./tool.sh; export TOOL; gh pr list", id="exported-later"),
        pytest.param("PLACE=./tool.sh; gh pr list", id="one-that-is-exported"),
        pytest.param("read PLACE <<< ./tool.sh; gh pr list", id="one-that-is-read"),
    ],
)
async def test_a_variable_that_programs_may_obey_is_asked_about_each_time(tmp_path: Path, command: str) -> None:
    """If this fails, an unprompted command exchanges the program that the variable names."""
    approval = await asked(tmp_path, command)
    assert not approval.grants
    assert "variable" in [reason.code for reason in approval.verdict.reasons]


@linux
@pytest.mark.parametrize("mode", ["default", "permissive"])
@pytest.mark.parametrize(
    ("command", "asks"),
    [
        pytest.param("gh run list", False, id="the-command-alone"),
        pytest.param("LC_ALL=C gh run list", False, id="how-things-look"),
        pytest.param("GH_BROWSER=./tool.sh gh run list", True, id="for-one-command"),
        pytest.param("export GH_BROWSER=./tool.sh; gh run list", True, id="for-all"),
    ],
)
async def test_neither_a_rule_for_a_command_nor_a_mode_covers_a_variable_before_it(
    tmp_path: Path, command: str, mode: str, *, asks: bool
) -> None:
    person = Granting()
    rule = {"tool": "execute_cli", "command": ["gh", "run", "list"], "decision": "allow"}
    async with working(tmp_path, person, mode=mode, policy={"rules": [rule]}) as session:
        await run(session, command)
    assert bool(person.asked) is asks


@linux
async def test_a_rule_may_name_the_variable(tmp_path: Path) -> None:
    person = Granting()
    rule = {"tool": "execute_cli", "decision": "allow"}
    rules = [{**rule, "command": ["GH_REPO=a/b"]}, {**rule, "command": ["gh", "run", "list"]}]
    async with working(tmp_path, person, policy={"rules": rules}) as session:
        await run(session, "GH_REPO=a/b gh run list")
    assert not person.asked

"""A yes for commands holds in the directories that they were to run in: elsewhere the same words mean another project."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from tests.plugins.cli.test_sandbox_network import run, working

from handrail import Session
from handrail.api.approval import Answer, Approval, Choice

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap is Linux's")


class Granting:
    """A person who grants the commands of the first question by their beginning for the session, and refuses what is asked later."""

    def __init__(self) -> None:
        self.asked: list[Approval] = []

    async def __call__(self, approval: Approval) -> Answer:
        self.asked.append(approval)
        if len(self.asked) > 1:
            return Answer(Choice.DENY)
        return Answer(Choice.SESSION, grant=approval.grants[-1]) if approval.grants else Answer(Choice.DENY)


@pytest.mark.parametrize(
    ("command", "cwd", "asks"),
    [
        pytest.param("git pull origin main", None, False, id="the-same"),
        pytest.param("git pull origin main -v", None, False, id="begins-like-it"),
        pytest.param("cd other && git pull origin main", None, True, id="behind-cd"),
        pytest.param("cd other; git pull origin main", None, True, id="perhaps-there"),
        pytest.param("(cd other && git pull origin main)", None, True, id="in-a-subshell"),
        pytest.param("git pull origin main", "other", True, id="by-its-argument"),
        pytest.param("cd link && git pull origin main", None, True, id="behind-a-link"),
    ],
)
async def test_a_grant_for_a_pull_is_for_the_project_that_was_shown(
    tmp_path: Path, outside: Path, command: str, cwd: str | None, *, asks: bool
) -> None:
    person = Granting()
    async with working(tmp_path, person) as session:
        for repository in (session.cwd, session.cwd / "other"):
            await anyio.run_process(("git", "init", "-q", str(repository)))
            await anyio.run_process(("git", "-C", str(repository), "remote", "add", "origin", str(outside / "r.git")))
        (session.cwd / "link").symlink_to("other")
        await run(session, "git pull origin main")
        label = f"commands that start with git pull origin main in {session.cwd}"
        result = await run(session, command, **({"cwd": cwd} if cwd else {}))
    assert person.asked[0].grants[-1].label == label
    assert (len(person.asked) == 2, result.status == "denied") == (asks, asks)


@pytest.mark.parametrize(
    ("granted", "later"),
    [
        pytest.param("git fetch origin", "git fetch origin --upload-pack=./x.sh", id="an-option-that-runs-a-program"),
        pytest.param("npm view left-pad", "npm view left-pad --frobnicate=./x.sh", id="an-unknown-option"),
        pytest.param("curl https://one.example/a", "curl https://one.example/a https://two.example", id="another-host"),
        pytest.param("kubectl get pods", "kubectl get pods --profile-output=/srv/out", id="a-file-elsewhere"),
    ],
)
async def test_a_grant_by_a_beginning_covers_no_more_than_was_shown(tmp_path: Path, granted: str, later: str) -> None:
    person = Granting()
    async with working(tmp_path, person) as session:
        await anyio.run_process(("git", "init", "-q", str(session.cwd)))
        await run(session, granted)
        result = await run(session, later)
    assert len(person.asked) == 2
    assert result.status == "denied"


@pytest.fixture
def outside() -> Iterator[Path]:
    """A folder outside the workspace and the folders for temporary files, with a file, an archive and a repository."""
    with tempfile.TemporaryDirectory(prefix="handrail-test-", dir=Path.home()) as folder:
        place = Path(folder).resolve()
        (place / "n.txt").write_text("b\na\n")
        subprocess.run(["tar", "cf", "x.tar", "n.txt"], cwd=place, check=True)
        subprocess.run(["git", "init", "-q", "--bare", "r.git"], cwd=place, check=True)
        yield place


@pytest.mark.parametrize(
    ("granted", "later"),
    [
        pytest.param("tar tf {}/x.tar", "tar xf {}/x.tar", id="a-list-that-unpacks"),
        pytest.param("sort {}/n.txt", "sort {}/n.txt -o mine", id="a-reader-that-writes"),
        pytest.param("cat {}/n.txt", "cat {}/n.txt mine", id="another-file"),
        pytest.param("cat {}/n.txt", "TOOL=./x cat {}/n.txt", id="a-variable"),
        pytest.param("cp {}/n.txt copy", "cp {}/n.txt mine", id="another-file-that-is-written"),
        pytest.param("iconv -f UTF-8 {}/n.txt", "iconv -f UTF-8 {}/n.txt -o mine", id="a-converter-that-writes"),
        pytest.param("git remote show origin", "git remote show ssh://one.example/x", id="another-host"),
    ],
)
async def test_a_grant_by_a_beginning_is_for_the_touches_that_were_shown(
    tmp_path: Path, outside: Path, granted: str, later: str
) -> None:
    person = Granting()
    async with working(tmp_path, person) as session:
        await anyio.run_process(("git", "init", "-q", str(session.cwd)))
        await anyio.run_process(("git", "-C", str(session.cwd), "remote", "add", "origin", str(outside / "r.git")))
        (session.cwd / "mine").write_text("mine\n")
        await run(session, granted.format(outside))
        result = await run(session, later.format(outside))
        assert (session.cwd / "mine").read_text() == "mine\n"
    assert person.asked[0].grants[-1].label.startswith("commands that start with")
    assert (len(person.asked), result.status) == (2, "denied")


@pytest.mark.parametrize("mode", ["default", "permissive"])
async def test_a_grant_takes_no_command_to_the_host_that_runs_in_the_sandbox(
    tmp_path: Path, outside: Path, mode: str
) -> None:
    """If this fails, a yes to a search outside shows the secrets of the workspace."""
    person = Granting()
    async with working(tmp_path, person, mode=mode) as session:
        (session.cwd / "conf").mkdir()
        (session.cwd / "conf/.env").write_text("KEY=hidden\n")
        await run(session, f"grep -r a {outside}/n.txt")
        result = await run(session, "grep -rh KEY .")
    assert "hidden" not in str(result)
    assert result["sandbox"] == "bubblewrap"


@pytest.mark.parametrize("hooked", [True, False])
async def test_what_runs_files_of_the_workspace_on_the_host_is_asked_about_each_time(
    tmp_path: Path, *, hooked: bool
) -> None:
    person = Granting()
    async with working(tmp_path, person) as session:
        await anyio.run_process(("git", "init", "-q", str(session.cwd)))
        if hooked:
            hook = session.cwd / ".git/hooks/pre-push"
            hook.parent.mkdir(exist_ok=True)
            hook.write_text("#!/bin/sh\nexec scripts/check.sh\n")
            hook.chmod(0o755)
        approval = await _asked(person, session, "git push origin main")
    assert bool(approval.grants) is not hooked


@pytest.mark.parametrize("hooks", [".hooks", "~/hooks"])
async def test_hooks_that_the_users_settings_name_take_no_grant(tmp_path: Path, hooks: str) -> None:
    person = Granting()
    async with working(tmp_path, person) as session:
        folder = hooks.replace("~", str(tmp_path / "home"))
        (tmp_path / "home/.gitconfig").write_text(f"[core]\nhooksPath = {folder}\n")
        await anyio.run_process(("git", "init", "-q", str(session.cwd)))
        (session.cwd / folder).mkdir()
        approval = await _asked(person, session, "git push origin main")
    assert not approval.grants


async def test_modules_of_the_workspace_take_no_grant(tmp_path: Path) -> None:
    person = Granting()
    async with working(tmp_path, person) as session:
        approval = await _asked(person, session, "python3 -m pip list --outdated")
    assert not approval.grants


async def _asked(person: Granting, session: Session, command: str) -> Approval:
    await run(session, command)
    return person.asked[0]

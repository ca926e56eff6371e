"""Sandboxed commands of one session beside another session in the same workspace."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from tests.plugins.cli.test_host_runs import Person, there

import handrail
from handrail import NoSandbox, Session, ToolResult
from handrail.api.approval import Choice
from handrail.sandbox.shared_runs import SharedRun, SharedRuns

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap is Linux's")

# A word that git does not know: it is asked about, and runs on the host.
ON_HOST = "git status --no-such-option; git status"
# A repository among packages that names a program, which git on the host would run.
NESTED = """
mkdir -p node_modules/x && cd node_modules/x && git init -q . && git commit -q --allow-empty -m x
printf '[core]\\n\\tfsmonitor = touch %s; false\\n' >> .git/config
"""
KILLED = """
import asyncio, os, signal, handrail
async def main():
    async with handrail.open() as session:
        await session.call("execute_cli", {"command": "python3 plant.py", "background": True})
        while not os.path.exists("planted"):
            await asyncio.sleep(0.02)
        os.kill(os.getpid(), signal.SIGKILL)
asyncio.run(main())
"""


@pytest.fixture
def work(tmp_path: Path) -> Path:
    work = tmp_path / "home/project"
    work.mkdir(parents=True)
    (work.parent / ".gitconfig").write_text("[user]\n\tname = a\n\temail = a@b\n")
    subprocess.run(["git", "init", "-q"], cwd=work, check=True)
    return work


@pytest.fixture
def environment(work: Path) -> dict[str, str]:
    return {**os.environ, "HOME": str(work.parent)}


@asynccontextmanager
async def opened(work: Path, environment: dict[str, str], answer: Choice = Choice.ONCE) -> AsyncGenerator[Session]:
    person = Person()
    person.answer = answer
    async with handrail.open(cwd=work, confirm=person, environment=environment) as session:
        yield session


@pytest.fixture
async def one(work: Path, environment: dict[str, str]) -> AsyncGenerator[Session]:
    async with opened(work, environment) as session:
        yield session


@pytest.fixture
async def other(work: Path, environment: dict[str, str]) -> AsyncGenerator[Session]:
    async with opened(work, environment) as session:
        yield session


async def run(session: Session, command: str, **more: object) -> ToolResult:
    return await session.call("execute_cli", {"command": command, **more})


async def test_commands_of_another_session_are_paused_while_one_runs_on_the_host(
    one: Session, other: Session, work: Path
) -> None:
    (work / "loop.sh").write_text("while :; do echo export A=1 > .envrc; sleep 0.01; done\n")
    await run(other, "sh loop.sh", background=True)
    await there(work / ".envrc")
    result = await run(one, f"{ON_HOST}; sleep 0.2; ls -a")
    assert ".envrc\n" not in result["stdout"]
    assert str(work / ".envrc") in result["put_aside"]
    assert "were paused until this had run" in result["note"]


async def test_a_command_that_starts_while_another_session_runs_one_on_the_host_waits(
    one: Session, other: Session, work: Path
) -> None:
    begun = asyncio.create_task(run(one, f"{ON_HOST}; touch started; sleep 1; test ! -e written && echo waited"))
    await there(work / "started")
    await run(other, "touch written")
    assert "waited" in (await begun)["stdout"]
    assert (work / "written").exists()


async def test_a_folder_that_a_running_command_made_is_not_bound_for_another_session(
    one: Session, other: Session, work: Path
) -> None:
    """If this fails, it is exchanged for a link to the home, which the next command can then write to."""
    script = "mkdir d; echo > d/.env; touch made; sleep 1; rm -r d; ln -s .. d; sleep 30"
    (work / "exchange.sh").write_text(script)
    (work.parent / "letter").write_text("dear")
    await run(other, "sh exchange.sh", background=True)
    await there(work / "made")
    begun = asyncio.create_task(run(one, "sleep 2; touch x; cat d/letter"))
    assert "dear" not in str(await begun)
    assert "dear" not in str(await run(one, "touch x; cat d/letter"))


FEIGNED = """
import os, time
root = next(line.split()[3] for line in open("/proc/self/mountinfo") if line.split()[4] == "/tmp")
os.makedirs("/tmp/r")
with open("/tmp/r/config", "w") as file:
    file.write(f"[core]\\n\\tworktree = {os.getcwd()}/sub\\n")
os.makedirs("sub")
with open("sub/.env", "w") as file:
    file.write("A=1")
with open("sub/.git", "w") as file:
    file.write(f"gitdir: {root}/r\\n")
with open("root", "w") as file:
    file.write(root)
time.sleep(60)
"""


async def test_a_submodule_that_a_running_command_feigns_opens_no_folder(
    work: Path, environment: dict[str, str]
) -> None:
    """If this fails, the command exchanges the folder for a link to the home at the moment when bwrap binds it."""
    (work / "feigned.py").write_text(FEIGNED)
    (work / "probe.sh").write_text("cat $(cat root)/r/config")
    async with opened(work, environment, Choice.DENY) as session:
        await run(session, "python3 feigned.py", background=True)
        await there(work / "root")
        result = await run(session, "sh probe.sh")
    assert "No such file" in result["stderr"]


EXCHANGING = """
import ctypes, os
libc = ctypes.CDLL(None)
os.makedirs("sub")
for name in (".env", "id_rsa"):
    open(f"sub/{name}", "w").close()
os.symlink("/oldroot/%s", "lnk")
open("ready", "w").close()
while True:
    libc.renameat2(-100, b"sub", -100, b"lnk", 2)
"""


async def test_a_folder_that_is_exchanged_for_a_link_all_the_time_makes_no_file_outside(
    work: Path, environment: dict[str, str]
) -> None:
    """If this fails, bwrap makes places to bind to where the link leads."""
    (work.parent / "letters").mkdir()
    (work / "exchanging.py").write_text(EXCHANGING % (work.parent / "letters"))
    async with opened(work, environment, Choice.DENY) as session:
        await run(session, "python3 exchanging.py", background=True)
        await there(work / "ready")
        ran = [(await run(session, "touch x; ls")).ok for _ in range(10)]
    assert os.listdir(work.parent / "letters") == []
    assert any(ran)


async def test_secrets_that_another_session_did_not_know_are_closed_beside_its_commands(
    work: Path, environment: dict[str, str]
) -> None:
    below = work / "node_modules/project"
    below.mkdir(parents=True)
    (below / ".env").write_text("KEY=hunter2")
    await anyio.run_process(["git", "init", "-q"], cwd=below)
    (below / "tidy.py").write_text("import shutil; shutil.rmtree('.git', ignore_errors=True)")
    async with opened(work, environment, Choice.DENY) as above, opened(below, environment, Choice.DENY) as session:
        await run(above, "touch began; sleep 60", background=True)
        await there(work / "began")
        assert "hunter2" not in str(await run(session, "grep -r KEY ."))
        await run(session, "python3 tidy.py")
    assert (below / ".git/HEAD").exists()


async def test_what_a_session_left_among_packages_is_put_aside_when_it_ends(
    work: Path, environment: dict[str, str]
) -> None:
    (work / "plant.sh").write_text(NESTED % (work.parent / "ran"))
    async with opened(work, environment) as session:
        assert (await run(session, "sh plant.sh"))["exit_code"] == 0
        assert (work / "node_modules/x/.git").exists()
    assert not (work / "node_modules/x/.git").exists()


async def test_what_a_killed_session_left_is_put_aside_before_another_runs_on_the_host(
    work: Path, environment: dict[str, str]
) -> None:
    (work / "mine").mkdir()
    (work / "mine/.envrc").write_text("mine")
    (work / "plant.py").write_text("import time; open('.envrc', 'w'); open('planted', 'w'); time.sleep(60)")
    ended = await anyio.run_process([sys.executable, "-c", KILLED], cwd=work, env=environment, check=False)
    assert ended.returncode == -signal.SIGKILL
    async with opened(work, environment) as session:
        result = await run(session, ON_HOST)
        assert result["put_aside"] == [str(work / ".envrc")]
        assert "put_aside" not in await run(session, ON_HOST)
    assert (work / "mine/.envrc").read_text() == "mine"


async def test_nothing_runs_that_other_sessions_cannot_be_told_of(one: Session, work: Path) -> None:
    await run(one, "touch first")
    folder = one.runtime.places.state / "sandboxed"
    shutil.rmtree(folder)
    folder.write_text("not a directory")
    result = await run(one, "touch second")
    assert result.error_code == "no_sandbox"
    assert "cannot be written down" in result["error"]["message"]
    assert not (work / "second").exists()
    folder.unlink()
    assert (await run(one, "touch second")).ok


def test_commands_run_on_the_host_where_no_session_can_write_anything_down(work: Path) -> None:
    shared = SharedRuns(Path("/proc/nowhere"), (work,))
    assert shared.begin_host_run("call") == []
    shared.end_host_run("call")
    with pytest.raises(NoSandbox, match="cannot be written down"):
        shared.begin_command("call", os.getpid(), SharedRun())


@pytest.mark.parametrize("command", ["ls", "touch made"])
async def test_git_of_one_session_and_commands_of_another_do_not_wait_for_each_other_for_ever(
    one: Session, other: Session, work: Path, command: str
) -> None:
    await anyio.run_process(["git", "config", "user.name", "a"], cwd=work)
    await anyio.run_process(["git", "config", "user.email", "a@b"], cwd=work)

    async def repeat(session: Session, text: str) -> list[str]:
        return [(await run(session, text, timeout=10))["status"] for _ in range(15)]

    found = await asyncio.gather(repeat(one, command), repeat(other, "git commit -q --allow-empty -m x"))
    assert found == [["success"] * 15] * 2

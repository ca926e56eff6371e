"""What a command sees that runs without approval: its view, tried with real bubblewrap and canaries."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import time
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import anyio
import pytest

import handrail
from handrail import PreparedSandbox, Session, ToolResult
from handrail.api.approval import Answer, Approval, Choice

CANARY = "canary-7c1d"


class Switch:
    """A confirmer that denies until it is told to approve."""

    def __init__(self) -> None:
        self.approves = False
        self.asked: list[Approval] = []

    async def __call__(self, approval: Approval) -> Answer:
        self.asked.append(approval)
        return Answer(Choice.ONCE if self.approves else Choice.DENY)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh/id_rsa").write_text(CANARY)
    (home / ".netrc").write_text(CANARY)
    return home


@pytest.fixture
def work(home: Path) -> Path:
    work = home / "project"
    work.mkdir()
    (work / "notes.txt").write_text("plain\n")
    (work / ".env").write_text(f"KEY={CANARY}\n")
    return work


@pytest.fixture
def switch() -> Switch:
    return Switch()


@pytest.fixture
async def session(work: Path, home: Path, switch: Switch) -> AsyncGenerator[Session, None]:
    environment = {**os.environ, "HOME": str(home), "MY_API_TOKEN": CANARY}
    async with handrail.open(cwd=work, confirm=switch, environment=environment) as opened:
        yield opened


async def run(session: Session, command: str, **args: Any) -> ToolResult:
    return await session.call("execute_cli", {"command": command, **args})


def prepared(session: Session) -> list[PreparedSandbox]:
    """Return the sandboxes that the session keeps ready, which no result names."""
    confines = session._confines
    assert confines is not None
    return [one.sandbox for one in confines._pool._prepared]


async def warmed(session: Session) -> None:
    """Run reads until one was run by the prepared sandbox."""
    for _ in range(100):
        await run(session, "ls")
        if any(one.ready for one in prepared(session)):
            return
        await asyncio.sleep(0.02)
    raise AssertionError("no prepared sandbox became ready")


@pytest.mark.parametrize("warm", [False, True], ids=["first", "prepared"])
async def test_links_globs_and_lists_lead_a_read_to_nothing(
    session: Session, work: Path, home: Path, *, warm: bool
) -> None:
    (work / "README.md").symlink_to(home / ".netrc")
    (work / "all").symlink_to(home)
    (work / "list").write_bytes(f"{home}/.netrc\0".encode())
    if warm:
        await warmed(session)
    commands = ["cat *.md", "grep -R canary .", "find -L . -name id_rsa", "sort --files0-from=list", "cat notes.txt"]
    for command in (*commands, "ls | xargs cat", "grep -r KEY ."):
        result = await run(session, command)
        assert CANARY not in str(result), command
    assert result["sandbox"] == "bubblewrap"


@pytest.mark.parametrize("warm", [False, True], ids=["first", "prepared"])
async def test_a_read_obeys_no_file_of_the_workspace_on_the_host(session: Session, work: Path, *, warm: bool) -> None:
    marker = work.parent / "ran"
    (work / "calendar.py").write_text(f"open({str(marker)!r}, 'w').close()\nprint('imported')\n")
    if warm:
        await warmed(session)
    result = await run(session, 'python3 -c "import calendar"')
    assert (result["stdout"], marker.exists()) == ("imported\n", False)


async def test_a_read_cannot_change_the_workspace(session: Session, work: Path) -> None:
    (work / "json.py").write_text("open('made', 'w')")
    result = await run(session, "python3 -m json.tool notes.txt")
    assert "Read-only file system" in result["stderr"]
    assert not (work / "made").exists()


async def test_a_read_connects_to_no_socket_and_sees_no_secret_variable(session: Session, work: Path) -> None:
    code = "import os,socket\nprint(sorted(os.environ))\nsocket.socket(socket.AF_UNIX)"
    (work / "json.py").write_text(code)
    result = await run(session, "python3 -m json.tool")
    assert "MY_API_TOKEN" not in result["stdout"]
    assert "Address family not supported" in result["stderr"]


@pytest.mark.parametrize("use", ["bubblewrap", "none"], ids=["with-a-sandbox", "without"])
async def test_builtins_see_the_variables_that_a_sandboxed_command_sees(
    work: Path, home: Path, switch: Switch, use: str
) -> None:
    """If this fails, `echo "$VALUE"` shows unasked what no table of names knows for a credential."""
    environment = {
        **os.environ,
        "HOME": str(home),
        "SOMETHING_OWN": CANARY,
        "MAVEN_OPTS": CANARY,
        "CARGO_HOME": "/cargo",
    }
    async with handrail.open(cwd=work, confirm=switch, environment=environment, sandbox={"use": [use]}) as session:
        assert (await run(session, "export VERSION=2")).ok
        result = await run(session, 'echo "$SOMETHING_OWN,$MAVEN_OPTS,$CARGO_HOME,$VERSION"')
    assert (result["stdout"], result.get("sandbox"), switch.asked) == (",,/cargo,2\n", None, [])


async def test_an_approved_line_of_builtins_is_given_the_persons_variables(
    work: Path, home: Path, switch: Switch
) -> None:
    environment = {**os.environ, "HOME": str(home), "SOMETHING_OWN": "mine"}
    switch.approves = True
    async with handrail.open(cwd=work, confirm=switch, environment=environment) as session:
        result = await run(session, 'echo "$SOMETHING_OWN"; shopt -s extglob nosuchoption')
    assert (result["stdout"], len(switch.asked)) == ("mine\n", 1)


async def test_a_search_that_passes_a_secret_succeeds_and_says_so(session: Session, work: Path, switch: Switch) -> None:
    result = await run(session, "grep -r plain .")
    assert (result["status"], result["exit_code"], switch.asked) == ("success", 2, [])
    assert "The sandbox hides .env" in result["note"]


@pytest.mark.parametrize(("command", "place"), [("ls /", "/"), ("find / -maxdepth 1", "/"), ("ls /usr", "")])
async def test_a_folder_that_is_shown_in_part_is_named(session: Session, command: str, place: str) -> None:
    """If this fails, an empty list passes for what is on the machine."""
    note = f"The sandbox shows little or nothing of {place};"
    result = await session.call("execute_cli", {"command": command})
    assert result.ok
    assert (note in result.get("note", "")) == bool(place)


async def test_a_secret_that_takes_the_place_of_another_stays_hidden(session: Session, work: Path) -> None:
    await warmed(session)
    for number in range(20):
        # As editors save: a new file is renamed over the old one, which the mask of a running sandbox was on.
        (work / "new").write_text(f"KEY={CANARY}{number}\n")
        os.replace(work / "new", work / ".env")
        result = await run(session, "grep -rh KEY . ; cat .e*")
        assert CANARY not in str(result)


async def test_what_a_read_leaves_is_not_there_for_the_next(session: Session, work: Path) -> None:
    script = "import os,resource\nopen(os.path.expanduser('~/left'),'w')\nopen('/dev/shm/left','w')\nos.nice(5)\n"
    (work / "json.py").write_text(f"{script}resource.prlimit(1, resource.RLIMIT_FSIZE, (0, 0))\n")
    await warmed(session)
    await run(session, "python3 -m json.tool")
    look = "import os,resource\nprint(os.listdir(os.path.expanduser('~')), os.listdir('/dev/shm'), os.nice(0))\n"
    (work / "json.py").write_text(f"{look}print(resource.getrlimit(resource.RLIMIT_FSIZE)[0] > 0)\n")
    for _ in range(3):
        result = await run(session, "python3 -m json.tool")
        assert result["stdout"].endswith("[] 0\nTrue\n"), result["stdout"]
        assert "left" not in result["stdout"]
        await asyncio.sleep(0.05)


async def test_a_read_cannot_end_or_stop_the_sandbox_it_runs_in(session: Session, work: Path) -> None:
    (work / "json.py").write_text(
        "import os,signal\nfor n in (signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM): os.kill(1, n)\n"
        "print(os.access('/proc/1/mem', os.W_OK) and open('/proc/1/mem', 'r+b'))\n"
    )
    await warmed(session)
    await run(session, "python3 -m json.tool")
    assert (await run(session, "cat notes.txt"))["stdout"] == "plain\n"


async def test_a_read_that_takes_too_long_ends_with_all_that_it_started(session: Session) -> None:
    await warmed(session)
    began = time.monotonic()
    result = await run(session, "sleep 71 & tail -f notes.txt", timeout=0.5)
    assert (result["status"], result["stdout"]) == ("timeout", "plain\n")
    assert time.monotonic() - began < 10
    left = await anyio.run_process(["pgrep", "-f", "sleep 71"], check=False)
    assert left.stdout == b""
    assert (await run(session, "cat notes.txt"))["stdout"] == "plain\n"


async def test_reads_run_at_the_same_time_and_lose_no_output(session: Session) -> None:
    await warmed(session)

    async def one(number: int) -> None:
        result = await run(session, f"seq {number} {number + 2000} | sort -n; printf %s {number} >&2")
        assert result["stdout"].split() == [str(n) for n in range(number, number + 2001)]
        assert result["stderr"] == str(number)

    for start in range(0, 60, 6):
        await asyncio.gather(*(one(start + more) for more in range(6)))


async def test_many_reads_keep_descriptors_and_processes_flat(session: Session) -> None:
    await warmed(session)
    await run(session, "ls")
    before = len(os.listdir("/proc/self/fd"))
    for number in range(150):
        assert (await run(session, f"ls notes.txt; echo {number}; true"))["stdout"] == f"notes.txt\n{number}\n"
    assert len(os.listdir("/proc/self/fd")) <= before + 1


async def test_cd_in_a_read_lasts_and_leads_nowhere_outside(session: Session, work: Path) -> None:
    (work / "src").mkdir()
    await warmed(session)
    assert (await run(session, "cd src && ls"))["cwd"] == str(work / "src")
    assert (await run(session, "pwd"))["stdout"] == f"{work}/src\n"


async def test_a_read_still_runs_when_its_prepared_sandbox_was_killed(session: Session) -> None:
    await warmed(session)
    for one in prepared(session):
        os.kill(one.pid, signal.SIGKILL)
        while one.ready:
            await asyncio.sleep(0.01)
    for _ in range(3):
        assert (await run(session, "cat notes.txt"))["stdout"] == "plain\n"


async def test_what_starts_in_the_sandbox_while_a_command_runs_on_the_host_waits(
    session: Session, work: Path, switch: Switch
) -> None:
    (work / "made.sh").write_text("date +%s.%N > inside\n")
    switch.approves = True
    on_host = asyncio.create_task(run(session, "git status --no-such-option; sleep 0.7; date +%s.%N"))
    await asyncio.sleep(0.3)
    inside = asyncio.create_task(run(session, "sh made.sh"))
    ended = float((await on_host)["stdout"].split()[-1])
    assert (await inside)["status"] == "success"
    assert float((work / "inside").read_text()) > ended


async def test_a_session_ends_its_prepared_sandboxes(work: Path, home: Path) -> None:
    environment = {**os.environ, "HOME": str(home)}
    async with handrail.open(cwd=work, environment=environment) as session:
        await warmed(session)
        pids = [one.pid for one in prepared(session)]
    assert pids
    assert not any(os.path.exists(f"/proc/{pid}") for pid in pids)


PLANTED = """mkdir -p node_modules/x && cd node_modules/x && git init -q .
git -c user.email=a@b -c user.name=b commit -q --allow-empty -m x
printf '[core]\\n\\tfsmonitor = touch %s; false\\n' >> .git/config
"""


async def test_what_a_sandboxed_command_left_is_put_aside_before_git_runs_on_the_host(
    session: Session, work: Path, switch: Switch
) -> None:
    marker = work.parent / "ran"
    await anyio.run_process(["git", "init", "-q", str(work)])
    (work / "plant.sh").write_text(PLANTED % marker)
    (work / "loop.sh").write_text("while :; do echo export A=1 > .envrc; sleep 0.01; done\n")
    assert (await run(session, "sh plant.sh"))["status"] == "success"
    await anyio.run_process(["git", "-c", "advice.addEmbeddedRepo=false", "add", "-f", "node_modules/x"], cwd=work)
    assert (await run(session, "sh loop.sh", background=True))["sandbox"] == "bubblewrap"
    while not (work / ".envrc").exists():
        await asyncio.sleep(0.02)
    switch.approves = True
    # A word that is not known: it is asked about, and runs on the host.
    result = await run(session, "git status --no-such-option; git status; sleep 0.2; git status")
    assert "sandbox" not in result
    assert result["stdout"].count("On branch") == 2
    assert not marker.exists()
    assert {os.path.relpath(place, work) for place in result["put_aside"]} >= {".envrc", "node_modules/x/.git"}
    assert "were paused until this had run" in result["note"]
    running = await session.call("list_processes", {})
    assert [process["running"] for process in running["processes"]] == [True]


def start_repository(work: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=work, check=True)
    subprocess.run(["git", "add", "notes.txt"], cwd=work, check=True)


@pytest.mark.parametrize(
    "command",
    [
        "rm -rf .[f-h]*",
        "find . -type f -newer notes.txt -delete",
        "find . -name '[0-9a-f]*' -type f -delete",
        "find . -path './.g*' -type f -delete",
    ],
)
async def test_only_what_works_on_version_history_can_change_its_data(
    session: Session, work: Path, command: str
) -> None:
    """If this fails, a pattern that nobody reads as `.git` deletes commits, which undo does not keep."""
    start_repository(work)
    data = sorted(path for path in (work / ".git/objects").rglob("*") if path.is_file())
    os.utime(work / "notes.txt", (0, 0))
    await session.call("execute_cli", {"command": command})
    assert sorted(path for path in (work / ".git/objects").rglob("*") if path.is_file()) == data
    (work / "b").write_text("b")
    changed = await session.call("execute_cli", {"command": "git add b"})
    assert changed.ok, changed

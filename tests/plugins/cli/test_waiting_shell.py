"""Short commands on the host are run by a bash that has started before they came; a command cannot tell."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Awaitable, Callable, Generator
from pathlib import Path

import psutil
import pytest

import handrail
from handrail import Session, ToolResult
from handrail.api.approval import yes

Run = Callable[..., Awaitable[ToolResult]]
# What differs between any two shells.
OWN = re.compile(r"(BASHPID|BASH_EXECUTION_STRING|EPOCH\w+|SECONDS|S?RANDOM|HANDRAIL_\w*|_)\b")
LOOKS = """builtin declare -p; builtin declare -F; builtin shopt -p; builtin set -o; builtin trap -p; builtin umask; builtin ulimit -a; builtin pwd
builtin echo "$0 $# $LINENO $SHLVL $PPID $- ${PIPESTATUS[*]} $SECONDS"
true"""


def waiting_shells() -> list[psutil.Process]:
    """The shells below this process that wait for a command."""
    return [child for child in psutil.Process().children() if any("-u 251" in word for word in child.cmdline())]


@pytest.fixture
def no_shell_stays() -> Generator[None]:
    yield
    assert waiting_shells() == []


@pytest.fixture
async def warm(no_shell_stays: None, session: Session, run: Run) -> Run:
    """Runs commands in a session that has a waiting shell."""
    assert waiting_shells() == []
    for _ in range(2):
        await run("echo")
    assert len(waiting_shells()) == 1
    return run


def shown(result: ToolResult) -> list[str]:
    text: str = result["stdout"]
    return [line for line in text.splitlines() if OWN.search(line) is None]


async def test_a_command_sees_the_same_in_a_shell_that_waited(warm: Run) -> None:
    for _ in range(2):
        await warm(LOOKS)
    (waiting,) = waiting_shells()
    there = await warm(f"builtin echo $$; {LOOKS}")
    # With an input, a shell is started for it.
    started = await warm(f"builtin echo $$; {LOOKS}", stdin="")
    assert there["stdout"].splitlines()[0] == str(waiting.pid)
    assert shown(there)[1:] == shown(started)[1:]


async def test_the_descriptor_of_commands_is_not_the_commands(warm: Run) -> None:
    result = await warm("echo x >&251")
    assert "251" in result["stderr"]
    assert result["exit_code"] == 1


async def test_its_clock_starts_with_the_command(warm: Run) -> None:
    await asyncio.sleep(1.1)
    assert (await warm("echo $SECONDS"))["stdout"] == "0\n"


@pytest.mark.parametrize(
    "text",
    [
        "two\nlines",
        "end of a line\n",
        "trailing spaces  \t ",
        "漢字 é 😀 \u202e",
        "back\\slashes \\\\ \\n",
        "'quotes' \"double\" $(not run) `neither` $HOME * ? !x",
        "\x01\x7f\x1b[31m",
        "x" * 4000,
        "x" * 5000,
        "x" * 90_000,
    ],
)
async def test_any_text_arrives_as_it_is(warm: Run, text: str) -> None:
    quoted = "'" + text.replace("'", "'\\''") + "'"
    result = await warm(f"printf %s {quoted}")
    assert result["stdout"] == (await warm(f"printf %s {quoted}", stdin=""))["stdout"]
    assert result["exit_code"] == 0


async def test_bytes_that_are_no_text_arrive_as_they_are(warm: Run) -> None:
    # As names of files that are no text come back from a folder.
    result = await warm("printf %s 'a\udcff\udcc3b' | od -An -tx1")
    assert result["stdout"].split() == ["61", "ff", "c3", "62"]


@pytest.mark.parametrize("arguments", [{"command": "echo \ud800"}, {"command": "cat", "stdin": "\ud800"}])
async def test_half_a_surrogate_pair_is_refused(folder: Path, arguments: dict[str, str]) -> None:
    async with handrail.open(cwd=folder, confirm=yes, sandbox={"use": ["none"]}) as session:
        result = await session.call("execute_cli", arguments)
    assert result.error_code == "invalid_arguments"
    assert "half of a surrogate pair" in result["error"]["message"]


async def test_it_obeys_what_the_session_has_changed(warm: Run, folder: Path) -> None:
    (folder / "sub").mkdir()
    await warm("export SEEN=1; cd sub")
    for _ in range(3):
        assert (await warm('echo "$SEEN ${PWD##*/}"'))["stdout"] == "1 sub\n"
    await warm("unset PLAIN; cd ..")
    for _ in range(3):
        assert (await warm('echo "${PLAIN-unset} ${PWD##*/}"'))["stdout"] == "unset work\n"


async def test_functions_that_are_exported_take_no_part_in_the_start(no_shell_stays: None, folder: Path) -> None:
    function = {"BASH_FUNC_exec%%": "() { builtin echo taken; }"}
    async with handrail.open(
        cwd=folder, confirm=yes, sandbox={"use": ["none"]}, environment={**os.environ, **function}
    ) as session:
        for _ in range(3):
            assert (await session.call("execute_cli", {"command": "echo ran"}))["stdout"] == "ran\n"


async def test_exit_codes_and_errors_are_the_commands(warm: Run) -> None:
    for _ in range(2):
        assert (await warm("exit 7"))["exit_code"] == 7
        result = await warm("echo x\necho 'open")
        assert result["exit_code"] != 0
        assert "line 2" in result["stderr"]
        assert (await warm("kill -TERM $$"))["exit_code"] == -15


async def test_a_folder_that_is_gone_is_told(warm: Run, folder: Path) -> None:
    (folder / "sub").mkdir()
    result = await warm("echo ran", cwd=str(folder / "sub"))
    assert result["stdout"] == "ran\n"
    (folder / "sub").rmdir()
    assert (await warm("echo ran", cwd=str(folder / "sub")))["status"] == "error"


async def test_a_waiting_shell_that_was_killed_is_not_missed(warm: Run) -> None:
    for _ in range(3):
        (waiting,) = waiting_shells()
        waiting.kill()
        while waiting.status() != psutil.STATUS_ZOMBIE:
            await asyncio.sleep(0.01)
        result = await warm("echo here")
        assert (result["status"], result["stdout"]) == ("success", "here\n")
        assert not waiting.is_running()


async def test_a_command_in_it_is_ended_at_its_time_limit(warm: Run) -> None:
    began = time.monotonic()
    result = await warm("echo begun; while :; do :; done", timeout=1)
    assert (result["status"], result["stdout"]) == ("timeout", "begun\n")
    assert time.monotonic() - began < 5


async def test_commands_at_once_have_shells_of_their_own(warm: Run) -> None:
    results = await asyncio.gather(*(warm(f"echo $$ {n}") for n in range(10)))
    pids, numbers = zip(*(result["stdout"].split() for result in results), strict=True)
    assert len(set(pids)) == 10
    assert list(numbers) == [str(n) for n in range(10)]


async def test_descriptors_stay_as_many(warm: Run) -> None:
    counts: list[int] = []
    for _ in range(3):
        for n in range(30):
            await warm(f"export N={n}" if n % 3 else f"echo {n}", stdin="" if n % 5 == 0 else None)
        await warm("echo")
        await warm("echo")
        counts.append(len(os.listdir("/dev/fd")))
    assert counts[0] == counts[-1]


async def test_a_single_command_leaves_no_shell_waiting(no_shell_stays: None, folder: Path) -> None:
    async with handrail.open(cwd=folder, confirm=yes, sandbox={"use": ["none"]}) as session:
        await session.call("execute_cli", {"command": "echo"})
        assert waiting_shells() == []

"""The runner for Windows: its threads and handles on real programs, with a group of processes in the place of a job object."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import time
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pytest

from handrail import Downstream, InvalidArguments, ToolUnavailable
from handrail.workers.host_programs import HostPrograms
from handrail.workers.registry import ProcessRegistry
from handrail_cli.process.bash_protocol import create_windows_script, parse_cmd_state, parse_git_bash_state
from handrail_cli.process.command_process import CommandProcess, LaunchRequest
from handrail_cli.process.config import HostLimits
from handrail_cli.process.process_tree import find_process_tree
from handrail_cli.process.windows_process import WindowsStarter, create_job_limits
from handrail_cli.process.windows_start import ProcessStart, create_cmd_state_script
from handrail_cli.tools.session_processes import SessionProcesses

ROOT, TEMPORARY = r"C:\Program Files\Git", r"C:\Users\ada\AppData\Local\Temp"
# What Git's bash wrote for `cd /d/work; export A=1 PATH=$PATH:/d/bin:/mingw64/bin; unset OLD`.
LEFT_BY_BASH = (
    b'declare -x HOME="/c/Users/ada"\ndeclare -x OLD="o"\ndeclare -x PATH="/c/Windows:/usr/bin"\n\0'
    b'declare -x A="1"\ndeclare -x HOME="/c/Users/ada"\ndeclare -x PATH="/c/Windows:/usr/bin:/d/bin:/mingw64/bin"\n'
    b'declare -x TMPDIR="/tmp/x"\n\0D:/work\n'
)


@dataclass(frozen=True, slots=True)
class Group:
    process: subprocess.Popen[bytes]

    def active(self) -> int:
        return len(find_process_tree(self.process.pid))

    def end(self) -> None:
        if self.active():
            os.killpg(self.process.pid, signal.SIGKILL)

    def close(self) -> None:
        self.end()


def contain(start: ProcessStart, cwd: Path, stdin: int | IO[bytes], limits: Mapping[str, int | None]) -> Group:
    return Group(
        subprocess.Popen(
            start.words,
            cwd=cwd,
            env=dict(start.environment),
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
    )


@pytest.fixture
async def processes(tmp_path: Path) -> AsyncGenerator[SessionProcesses, None]:
    opened = SessionProcesses(WindowsStarter(contain), ProcessRegistry(tmp_path))
    yield opened
    await opened.close()


async def says(process: CommandProcess, text: str) -> None:
    deadline = time.monotonic() + 20
    while text.encode() not in process.stdout.ending() and time.monotonic() < deadline:
        assert not await process.settle(0.02)


async def gone(process: CommandProcess) -> bool:
    """Whether nothing is left of it; the system needs a moment to end what was killed."""
    deadline = time.monotonic() + 20
    while find_process_tree(process.pid) and time.monotonic() < deadline:
        await asyncio.sleep(0.01)
    return not find_process_tree(process.pid)


def launch(command: str, folder: Path, **more: Any) -> LaunchRequest:
    return LaunchRequest("/bin/bash", command, folder, {"PATH": os.defpath}, **more)


async def test_a_command_gives_all_that_it_wrote_and_its_exit_code(processes: SessionProcesses, tmp_path: Path) -> None:
    process = processes.start(launch("seq 100000; echo err >&2; pwd; exit 3", tmp_path))
    assert await process.settle(20)
    assert (process.exit_code, process.left, process.stderr.take().text) == (3, False, "err\n")
    assert process.stdout.take().text.endswith(f"99999\n100000\n{tmp_path}\n")
    processes.finished(process)


async def test_standard_input_is_empty_or_what_is_given(processes: SessionProcesses, tmp_path: Path) -> None:
    for stdin, read in ((None, ""), (b"x" * 300_000, "300000")):
        process = processes.start(launch("wc -c | grep -v '^0$'", tmp_path, stdin=stdin))
        assert await process.settle(20)
        assert process.stdout.take().text.strip() == read
        processes.finished(process)


async def test_a_background_command_is_written_to_and_read(processes: SessionProcesses, tmp_path: Path) -> None:
    process = processes.start(launch("while read line; do echo got $line; done; echo end", tmp_path, fed=True))
    processes.keep(process)
    assert process.write(b"one\n") == 4
    await says(process, "got one\n")
    assert (process.running, process.stdout.take().text) == (True, "got one\n")
    process.end_input()
    assert await process.settle(20)
    assert (process.stdout.take().text, process.running, process.fed) == ("end\n", False, False)
    with pytest.raises(Downstream, match="has ended and reads nothing any more"):
        process.write(b"more")


async def test_what_does_not_read_takes_only_so_much(processes: SessionProcesses, tmp_path: Path) -> None:
    process = processes.start(launch("sleep 60", tmp_path, fed=True))
    written = sum(process.write(b"x" * 50_000) for _ in range(50))
    assert written < 2_000_000
    await processes.stop(process)


async def test_stopping_ends_all_that_it_started(processes: SessionProcesses, tmp_path: Path) -> None:
    process = processes.start(launch("sleep 60 & trap '' TERM; echo ready; sleep 60", tmp_path))
    await says(process, "ready\n")
    await processes.stop(process)
    assert not process.running
    assert await gone(process)


async def test_programs_that_stay_are_told_and_end_with_the_session(
    processes: SessionProcesses, tmp_path: Path
) -> None:
    process = processes.start(launch("sleep 60 >/dev/null 2>&1 & echo started", tmp_path))
    assert await process.settle(20)
    assert (process.exit_code, process.left, process.running) == (0, True, True)
    processes.keep(process)
    await processes.close()
    assert await gone(process)


async def test_output_that_something_holds_open_makes_nobody_wait(processes: SessionProcesses, tmp_path: Path) -> None:
    process = processes.start(launch("sleep 60 & echo started", tmp_path))
    assert await process.settle(20)
    assert (process.held, process.left) == (True, True)
    await processes.stop(process)


def test_a_program_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(Downstream, match="could not be started"):
        WindowsStarter(contain).start(LaunchRequest("/no/bash", "echo", tmp_path, {}), "m")


def test_there_is_no_terminal_and_no_limit_that_a_job_has_not(tmp_path: Path) -> None:
    with pytest.raises(ToolUnavailable, match="no terminal"):
        WindowsStarter(contain).start(launch("echo", tmp_path, terminal=(80, 24)), "m")
    with pytest.raises(ToolUnavailable, match="file_size"):
        create_job_limits(HostLimits(file_size=1))
    assert create_job_limits(HostLimits(memory=2, processes=3)) == {
        "memory": 2 * 2**20,
        "cpu_seconds": None,
        "processes": 3,
    }


def test_without_gits_bash_it_is_cmd_and_one_line(tmp_path: Path) -> None:
    starter = WindowsStarter(contain, lambda _: False)
    assert starter.shell(HostPrograms({"PATH": r"C:\Windows\System32"})) == ""
    with pytest.raises(InvalidArguments, match="one line"):
        starter.start(LaunchRequest("", "echo a\necho b", tmp_path, {}), "m")


def test_what_gits_bash_leaves_is_what_it_changed_with_paths_as_other_programs_know_them() -> None:
    left = parse_git_bash_state(LEFT_BY_BASH, root=ROOT, temporary=TEMPORARY)
    assert left is not None
    assert (str(left.cwd), left.unset) == ("D:/work", {"OLD"})
    assert left.changed == {
        "A": "1",
        "PATH": rf"C:\Windows;{ROOT}\usr\bin;D:\bin;{ROOT}\mingw64\bin",
        "TMPDIR": rf"{TEMPORARY}\x",
    }


@pytest.mark.parametrize("cut", [1, 40, 120, len(LEFT_BY_BASH) - 1])
def test_what_is_not_whole_is_not_kept(cut: int) -> None:
    assert parse_git_bash_state(LEFT_BY_BASH[:cut], root=ROOT, temporary=TEMPORARY) is None


def test_the_words_for_gits_bash_are_bash(tmp_path: Path) -> None:
    # Its `pwd -W`, which this bash has not, is left out.
    script = create_windows_script(str(tmp_path / "it's")).replace("pwd -W", "pwd")
    command = ["bash", "-c", script, "bash", "export A=2; cd /", str(tmp_path)]
    subprocess.run(command, check=True, env={"A": "1", "PATH": os.defpath})
    left = parse_git_bash_state((tmp_path / "it's").read_bytes(), root=ROOT, temporary=TEMPORARY)
    assert left is not None
    assert (left.changed, str(left.cwd)) == ({"A": "2"}, "/")


def test_what_cmd_leaves_is_what_it_changed() -> None:
    # As `set` and `cd` write with /u.
    written = "\r\n".join((r"A=2", r"Path=C:\Windows", "PROMPT=$P$G", "__handrail_code=0", r"D:\work", "")).encode(
        "utf-16-le"
    )
    left = parse_cmd_state(written, given={"PATH": r"C:\Windows", "OLD": "o", "a": "1"})
    assert left is not None
    assert (str(left.cwd), left.changed, left.unset) == (r"D:\work", {"A": "2"}, {"OLD"})
    assert parse_cmd_state(b"", given={}) is None
    assert "exit /b %__handrail_code%" in create_cmd_state_script(r"C:\x\state")

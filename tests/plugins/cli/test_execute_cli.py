"""Commands run by `execute_cli`: what comes back, what is kept, what is ended."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import handrail
import handrail_cli.hooks
from handrail import Session, ToolContext, ToolResult, tool
from handrail.api.approval import yes
from handrail.api.events import Event, Output
from handrail.testing import open_test_session

Run = Callable[..., Awaitable[ToolResult]]
SHOWN = 51_200


def alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and waits to be asked after does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def ends(pid: int, seconds: float = 20.0) -> bool:
    deadline = time.monotonic() + seconds
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not alive(pid)


async def test_a_command_gives_its_output_and_its_exit_code(run: Run, folder: Path) -> None:
    result = await run("echo out; echo err >&2")
    assert result.ok
    assert (result["stdout"], result["stderr"], result["exit_code"]) == ("out\n", "err\n", 0)
    assert result["cwd"] == str(folder)


async def test_a_failure_is_an_error_with_what_was_written(run: Run) -> None:
    result = await run("echo so far; exit 3")
    assert (result.status, result.error_code) == ("error", "downstream_error")
    assert (result["stdout"], result["exit_code"]) == ("so far\n", 3)


async def test_a_command_that_no_system_would_start_is_refused_with_its_cure(run: Run) -> None:
    longest = await run(f"echo {'a' * 131_066} | wc -c")
    assert (longest.status, longest.error_code) == ("error", "invalid_arguments")
    assert "131,079 bytes" in longest["error"]["message"]
    assert "write it to a file" in longest["error"]["message"]
    assert (await run(f"echo {'a' * 131_050} | wc -c"))["stdout"] == "131051\n"


async def test_a_signal_is_a_failure_too(run: Run) -> None:
    result = await run("kill -KILL $$")
    assert (result.status, result["exit_code"]) == ("error", -signal.SIGKILL)


@pytest.mark.parametrize("command", ["grep nothing /dev/null", "diff <(echo a) <(echo b)", "true && test 1 = 2"])
async def test_exit_code_1_of_a_search_is_no_failure(run: Run, command: str) -> None:
    result = await run(command)
    assert (result.status, result["exit_code"]) == ("success", 1)
    assert "nothing was found" in result["note"]


async def test_exit_code_2_of_a_search_is_one(run: Run) -> None:
    assert (await run("grep x /no/such/file")).status == "error"


async def test_the_folder_and_exported_variables_are_kept(run: Run, folder: Path) -> None:
    value = "two\nlines 'and' \"quotes\" $HOME `x` \\ ü\x01"
    await run(f"mkdir 'a b'; cd 'a b'; export KEPT={_quoted(value)}; LOCAL=1; unset PLAIN")
    result = await run('pwd; printf "%s|%s|%s" "$KEPT" "${LOCAL-none}" "${PLAIN-gone}"')
    assert result["stdout"] == f"{folder}/a b\n{value}|none|gone".replace("\x01", "")
    assert (await run('printf %s "${KEPT: -1}" | od -An -tx1'))["stdout"].strip() == "01"
    assert result["cwd"] == str(folder / "a b")


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("cd sub; exit 3", 3),
        ("cd sub; set -e; false; cd ..", 1),
        ("cd sub; set -u; set -x; echo $nothing; cd ..", 127),
        ("trap 'echo bye' EXIT; cd sub", 0),
        ("cd sub; if", None),
        ("cd sub; return 4", None),
        ("cd sub; seq 1 200000", 0),
        ("cd sub; set -- a b c; shift 2", 0),
    ],
)
async def test_the_folder_is_kept_however_a_command_ends(
    run: Run, folder: Path, command: str, code: int | None
) -> None:
    (folder / "sub").mkdir()
    result = await run(command)
    if code is not None:
        assert result["exit_code"] == code
    there = (await run("pwd"))["stdout"].strip()
    assert there == str(folder if command.endswith("if") else folder / "sub")


async def test_a_replaced_shell_keeps_nothing_and_breaks_nothing(run: Run, folder: Path) -> None:
    result = await run("cd /; exec echo replaced")
    assert (result["stdout"], result["cwd"]) == ("replaced\n", str(folder))


async def test_a_command_sees_no_parameters_and_its_own_line_numbers(run: Run) -> None:
    result = await run('echo "[$#][${1-}]"\nnosuchprogram')
    assert result["stdout"] == "[0][]\n"
    assert "line 2: nosuchprogram" in result["stderr"]


async def test_tracing_shows_the_command_and_nothing_of_ours(run: Run) -> None:
    result = await run("set -x; echo hi")
    assert result["stderr"].strip("+ ") == "echo hi\n"


async def test_a_folder_that_is_gone_is_not_kept(run: Run, folder: Path) -> None:
    await run('mkdir gone; cd gone; rmdir "$PWD"')
    assert (await run("pwd"))["stdout"] == f"{folder}\n"


async def test_cwd_is_for_one_call_only(run: Run, folder: Path) -> None:
    (folder / "sub").mkdir()
    assert (await run("pwd; cd /; export X=1", cwd="sub"))["stdout"] == f"{folder}/sub\n"
    assert (await run("pwd; echo ${X-none}"))["stdout"] == f"{folder}\nnone\n"
    assert (await run("pwd", cwd="nowhere")).error_code == "not_found"


@tool()
async def side_by_side(commands: list[str], context: ToolContext) -> dict[str, Any]:
    """Run commands at the same time."""
    return {"results": await asyncio.gather(*(context.call("execute_cli", {"command": c}) for c in commands))}


async def test_commands_that_a_call_runs_side_by_side_keep_nothing(tmp_path: Path) -> None:
    plugins = {"cli": handrail_cli.hooks}
    async with open_test_session(tools=[side_by_side], plugins=plugins, confirm=yes, folder=tmp_path) as session:
        done = await session.call("side_by_side", {"commands": ["cd /; sleep 0.3", "cd /usr; sleep 0.3"]})
    first, second = done["results"]
    assert (first["cwd"], second["cwd"]) == (str(tmp_path / "work"), str(tmp_path / "work"))
    assert "beside another" in first["note"]


async def test_commands_of_two_calls_run_one_after_the_other(run: Run, folder: Path) -> None:
    first, second = await asyncio.gather(run("cd /; sleep 0.3"), run("pwd"))
    assert (first["cwd"], second["stdout"]) == ("/", "/\n")


async def test_standard_input_is_empty_unless_given(run: Run) -> None:
    assert (await run("cat; echo end"))["stdout"] == "end\n"
    assert (await run("cat", stdin="grüße\n"))["stdout"] == "grüße\n"
    assert (await run("head -c 1", stdin="x" * 1_000_000))["stdout"] == "x"


async def test_credentials_of_the_host_do_not_reach_commands(run: Run) -> None:
    assert (await run('true > made; echo "${MY_API_TOKEN-none} $PLAIN"'))["stdout"] == "none p\n"


async def test_bytes_that_are_no_text_are_replaced(run: Run) -> None:
    result = await run(r"printf 'a\0b\xffc\xed\xa0\x80d'")
    assert result["stdout"] == "a\nb\ufffdc\ufffd\ufffd\ufffdd"
    assert result["note"].startswith("stdout is not all in UTF-8, kept in the artifact a1; `iconv -f` reads it")
    assert result["note"].endswith("NUL bytes of stdout are shown as line ends.")


@pytest.mark.parametrize(
    ("text", "charset"), [("テスト日本語の出力です。", "shift_jis"), ("中文输出测试文件", "gb18030")]
)
async def test_what_could_not_be_read_is_said_and_kept_whole(run: Run, text: str, charset: str) -> None:
    result = await run(
        f"echo ok; printf '%s' '{text}' | iconv -f utf-8 -t {charset}; echo bad; printf '%s' '{text}' >&2"
    )
    assert result.ok
    assert "stdout is not all in UTF-8, kept in the artifact a1" in result["note"]
    assert "stderr" not in result["note"]
    assert Path(result["artifact"]["path"]).read_bytes() == f"ok\n{text}bad\n".encode(charset)


async def test_long_output_is_shown_as_head_and_tail_and_kept_whole(run: Run) -> None:
    result = await run("seq 1 100000; seq 1 100000 >&2")
    whole = "".join(f"{n}\n" for n in range(1, 100_001))
    assert result["truncated"]
    assert result["stdout"].startswith("1\n2\n3\n")
    assert result["stdout"].endswith("99999\n100000\n")
    assert f"[… {len(whole) - SHOWN} bytes left out …]" in result["stdout"]
    assert len(result["stdout"]) < SHOWN + 100
    assert Path(result["artifact"]["path"]).read_text() == whole
    assert Path(result["stderr_artifact"]["path"]).read_text() == whole


async def test_output_up_to_the_limit_is_shown_whole_without_an_artifact(run: Run) -> None:
    result = await run(f"head -c {SHOWN} /dev/zero | tr '\\0' x")
    assert result["stdout"] == "x" * SHOWN
    assert "artifact" not in result
    assert "truncated" not in result


async def test_the_timeout_stops_everything_and_tells_what_was_written(run: Run) -> None:
    began = time.monotonic()
    result = await run("echo begun; sleep 61 & echo $!; setsid sleep 62 & echo $!; sleep 63", timeout=0.5)
    assert time.monotonic() - began < 30
    assert (result.status, result.error_code, result["exit_code"]) == ("timeout", "timeout", None)
    assert "was stopped after 0.5 s, together with the processes that it had started" in result["error"]["message"]
    begun, *pids = result["stdout"].split()
    assert begun == "begun"
    for pid in pids:
        assert ends(int(pid))


async def test_a_program_that_will_not_end_is_made_to(run: Run) -> None:
    result = await run("trap '' TERM; echo $$; while :; do sleep 0.05; done", timeout=0.4)
    assert result.status == "timeout"
    assert ends(int(result["stdout"]))


async def test_on_timeout_background_hands_the_command_back(run: Run, session: Session) -> None:
    result = await run("echo one; sleep 0.4; echo two", timeout=0.2, on_timeout="background")
    assert (result.status, result["exit_code"], result["stdout"]) == ("success", None, "one\n")
    rest = await session.call("read_process", {"process_id": result["process_id"], "wait": 5})
    assert (rest["stdout"], rest["running"], rest["exit_code"]) == ("two\n", False, 0)


async def test_cancelling_leaves_nothing_running(session: Session) -> None:
    call = asyncio.create_task(session.call("execute_cli", {"command": "echo $$ > pid; sleep 64"}))
    pid_file = session.cwd / "pid"
    while not (pid_file.exists() and pid_file.read_text()):
        await asyncio.sleep(0.01)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert ends(int(pid_file.read_text()))


async def test_a_program_left_with_an_ampersand_goes_on_and_is_known(run: Run, session: Session) -> None:
    began = time.monotonic()
    result = await run("sleep 65 & echo $!")
    assert time.monotonic() - began < 30
    assert result.ok
    pid = int(result["stdout"])
    assert alive(pid)
    stopped = await session.call("stop_process", {"process_id": result["process_id"]})
    assert stopped["stopped"]
    assert ends(pid)


async def test_what_a_left_program_writes_later_can_be_read(run: Run, session: Session) -> None:
    result = await run("(sleep 0.5; echo later) & echo now")
    assert result["stdout"] == "now\n"
    deadline = time.monotonic() + 20
    later = ""
    while not later and time.monotonic() < deadline:
        later = (await session.call("read_process", {"process_id": result["process_id"]}))["stdout"]
        await asyncio.sleep(0.02)
    assert later == "later\n"


@pytest.mark.parametrize("hangup", [signal.SIG_DFL, signal.SIG_IGN], ids=["as-usual", "under-nohup"])
async def test_closing_the_session_ends_what_it_left_but_not_what_was_told_to_stay(
    folder: Path, hangup: signal.Handlers
) -> None:
    before = signal.signal(signal.SIGHUP, hangup)
    try:
        async with handrail.open(cwd=folder, confirm=yes, sandbox={"use": ["none"]}) as session:
            command = "sleep 66 >/dev/null 2>&1 & echo $!; nohup sleep 67 >/dev/null 2>&1 & echo $!"
            left, staying = map(int, (await session.call("execute_cli", {"command": command}))["stdout"].split())
    finally:
        signal.signal(signal.SIGHUP, before)
    try:
        assert ends(left)
        assert alive(staying)
    finally:
        os.kill(staying, signal.SIGKILL)


async def test_output_is_told_live_to_those_who_listen(session: Session) -> None:
    heard: list[Event] = []
    unsubscribe = session.bus.subscribe(heard.append)
    await session.call("execute_cli", {"command": "echo a; sleep 0.1; echo b; echo c >&2"})
    unsubscribe()
    told = [(event.stream, event.text) for event in heard if isinstance(event, Output)]
    assert "".join(text for stream, text in told if stream == "stdout") == "a\nb\n"
    assert ("stderr", "c\n") in told


async def test_a_command_with_a_nul_is_refused(run: Run) -> None:
    assert (await run("echo a\0b")).error_code == "invalid_arguments"


async def test_nothing_is_left_open_after_many_commands(run: Run) -> None:
    # A command that takes a moment is told to the watcher, which is started for the first one.
    await run("sleep 0.3")
    # And a shell waits after two commands that are alike.
    await run("echo x")
    await run("echo x")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        await run("echo x")
    # The last one may still be letting go.
    for _ in range(100):
        if len(os.listdir("/proc/self/fd")) <= before:
            return
        await asyncio.sleep(0.05)
    pytest.fail(f"{len(os.listdir('/proc/self/fd'))} descriptors are open; {before} were")


HOST = """
import asyncio, sys
import handrail
from handrail import Answer, Choice
async def yes(approval): return Answer(Choice.ONCE)
async def main():
    async with handrail.open(cwd=sys.argv[1], confirm=yes, sandbox={"use": ["none"]}) as session:
        await session.call("execute_cli", {"command": "sleep 68 >/dev/null 2>&1 & echo $! > left"})
        await session.call("execute_cli", {"command": "setsid sleep 69 & echo $! > moved; sleep 0.5; echo $$ > shell; sleep 70"})
asyncio.run(main())
"""


def test_a_host_that_is_killed_leaves_nothing_running(folder: Path) -> None:
    host = subprocess.Popen([sys.executable, "-c", HOST, str(folder)])
    files = [folder / name for name in ("left", "shell", "moved")]
    deadline = time.monotonic() + 20
    while not all(file.exists() and file.read_text() for file in files) and time.monotonic() < deadline:
        time.sleep(0.02)
    # The command says who it is once it has been running for long enough to be watched over.
    host.kill()
    host.wait()
    for file in files:
        assert ends(int(file.read_text()), 5), file.name


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


@pytest.mark.parametrize(
    "command",
    [
        "printf -v PLAIN x",
        "[[ 1 -eq PLAIN=1 ]]",
        "echo ${PLAIN:=x} > /dev/null; export PLAIN=y",
        "PLAIN=z",
        "echo hi; cd /",
        "echo $((PLAIN=1))",
    ],
)
async def test_what_a_command_sets_is_kept_however_harmless_it_looks(run: Run, command: str) -> None:
    before = (await run("echo $PLAIN in $PWD"))["stdout"]
    await run(command)
    assert (await run("echo $PLAIN in $PWD"))["stdout"] != before


async def test_a_function_of_the_host_in_the_place_of_a_program_may_go_elsewhere(folder: Path) -> None:
    environment = {**os.environ, "BASH_FUNC_ls%%": "() { cd /; }"}
    async with handrail.open(cwd=folder, confirm=yes, environment=environment) as session:
        await session.call("execute_cli", {"command": "ls"})
        assert (await session.call("execute_cli", {"command": "echo $PWD"}))["stdout"] == "/\n"


async def test_a_command_handed_back_goes_on_after_its_artifact_was_closed(run: Run, session: Session) -> None:
    result = await run("seq 100000; sleep 0.5; seq 200000", timeout=0.3, on_timeout="background")
    assert "artifact" in result
    rest = await session.call("read_process", {"process_id": result["process_id"], "wait": 5})
    assert (rest["running"], rest["stdout"].endswith("200000\n")) == (False, True)


async def test_a_folder_that_is_gone_does_not_end_the_session(session: Session, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    await session.call("execute_cli", {"command": f"cd {gone}"})
    gone.rmdir()
    refused = await session.call("execute_cli", {"command": "pwd"})
    assert refused.error_code == "not_found"
    again = await session.call("execute_cli", {"command": "pwd"})
    assert again["stdout"].strip() == str(session.workspace[0])


@pytest.mark.parametrize(
    "command",
    [
        pytest.param("(echo $BASHPID; sleep 1; touch late) & echo $$; wait", id="a-child"),
        pytest.param("trap '' TERM; echo $$; sleep 1; touch late; sleep 30", id="that-ignores-the-request"),
        pytest.param(
            "(setsid bash -c 'echo $$; sleep 1; touch late' &); sleep 30", id="forked-twice-into-a-group-of-its-own"
        ),
        pytest.param(
            "(setsid bash -c 'trap \"\" TERM; echo $$; sleep 1; touch late; sleep 30' &); sleep 30",
            id="forked-twice-and-ignoring",
        ),
    ],
)
async def test_nothing_of_a_cancelled_command_is_left_and_nothing_happens_afterwards(
    session: Session, folder: Path, command: str
) -> None:
    told: list[str] = []
    session.bus.subscribe(lambda event: told.append(event.text) if isinstance(event, Output) else None)
    before = asyncio.create_task(session.call("execute_cli", {"command": command}, call_id="c"))
    behind = asyncio.create_task(session.call("execute_cli", {"command": "touch behind"}, call_id="d"))
    deadline = time.monotonic() + 20
    while not told and time.monotonic() < deadline:
        await asyncio.sleep(0.005)
    assert session.cancel(["c", "d"]) == 2
    result, queued = await before, await behind
    pids = [int(word) for word in "".join(told).split()]
    assert pids
    assert not any(alive(pid) for pid in pids)
    assert (result.status, queued.status) == ("cancelled", "cancelled")
    assert str(pids[0]) in result["stdout"]
    await asyncio.sleep(1.3)
    assert not list(folder.iterdir())


async def test_without_a_folder_for_an_artifact_head_and_tail_are_shown_and_a_note_says_so(
    run: Run, session: Session
) -> None:
    # The session's folder of artifacts cannot be made.
    folder = session.runtime.places.artifacts / session.id
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.write_text("in the way")
    result = await run("seq 200000")
    assert (result.ok, result["truncated"], "artifact" in result) == (True, True, False)
    assert result["stdout"].startswith("1\n2\n")
    assert "The whole of stdout is not kept: Not a directory." in result["note"]

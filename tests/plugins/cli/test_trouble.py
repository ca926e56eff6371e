"""Commands that write no text, too much of it, or in another encoding; that leave daemons behind; that use more than they may."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.plugins.cli.test_execute_cli import alive, ends

import handrail
from handrail import Session, ToolResult
from handrail.api.approval import yes

Run = Callable[..., Awaitable[ToolResult]]
HANDRAIL = str(Path(sys.executable).with_name("handrail"))
# Both forks of a daemon by the book, with its descriptors as they were.
DAEMON = """
import os, sys, time
if os.fork(): os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
open("daemon", "w").write(str(os.getpid()))
if "closed" in sys.argv:
    null = os.open(os.devnull, os.O_RDWR)
    for fd in range(3): os.dup2(null, fd)
time.sleep(80)
"""


@pytest.fixture
async def limited(folder: Path) -> AsyncGenerator[Callable[..., Awaitable[Session]], None]:
    """Sessions with settings of `[plugins.cli]`."""
    opened: list[object] = []

    async def start(text: str) -> Session:
        (folder.parent / "limits.toml").write_text(text)
        manager = handrail.open(
            cwd=folder, confirm=yes, sandbox={"use": ["none"]}, config=folder.parent / "limits.toml"
        )
        opened.append(manager)
        return await manager.__aenter__()

    yield start
    for manager in opened:
        await manager.__aexit__(None, None, None)  # type: ignore[attr-defined]


# They take 40 s of processor time; the ceiling is for machines that do something else besides.
@pytest.mark.timeout(400)
async def test_ten_thousand_fast_commands_lose_no_byte(run: Run) -> None:
    for batch in range(500):
        results = await asyncio.gather(*(run(f"printf %s {batch}.{n}; printf %s {n} >&2") for n in range(20)))
        told = [(result["stdout"], result["stderr"]) for result in results]
        assert told == [(f"{batch}.{n}", f"{n}") for n in range(20)]


@contextmanager
def memory_grows_at_most(megabytes: int) -> Generator[None]:
    """Fails where this process grows more, however briefly, while the block runs."""
    me, over = psutil.Process(), threading.Event()
    before = most = me.memory_info().rss

    def watch() -> None:
        nonlocal most
        while not over.wait(0.005):
            most = max(most, me.memory_info().rss)

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        yield
    finally:
        over.set()
        watching.join()
    assert most - before < megabytes * 1_000_000


async def test_a_flood_is_kept_whole_and_takes_no_memory(run: Run) -> None:
    # What is loaded on first use is loaded.
    await run("seq 20000")
    with memory_grows_at_most(15):
        result = await run("yes 'a line that says nothing' | head -c 40000000; echo done; echo told >&2")
    assert (result.status, result["stdout"][-5:], result["stderr"]) == ("success", "done\n", "told\n")
    assert len(result["stdout"]) < 52_000
    data = Path(result["artifact"]["path"]).read_bytes()
    assert len(data) == 40_000_005
    assert set(data[:-5].splitlines()[:-1]) == {b"a line that says nothing"}


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
async def test_a_flood_beyond_the_ceiling_goes_on_to_its_end_and_takes_no_memory(
    limited: Callable[..., Awaitable[Session]], stream: str
) -> None:
    session = await limited("[plugins.cli]\noutput_limit = 8\n")
    await session.call("execute_cli", {"command": "seq 20000"})
    flood = f"{{ head -c 500000000 /dev/zero | tr '\\0' x; echo; echo done; }} >/dev/{stream}"
    with memory_grows_at_most(15):
        result = await session.call("execute_cli", {"command": flood, "timeout": 100})
    assert (result.status, result[stream][-5:]) == ("success", "done\n")
    assert f"[… {500_000_006 - 51_200} bytes left out …]" in result[stream]
    assert result["artifact" if stream == "stdout" else "stderr_artifact"]["bytes"] == 8 * 1_048_576


async def test_what_floods_while_nobody_reads_takes_no_memory(
    limited: Callable[..., Awaitable[Session]],
) -> None:
    session = await limited("[plugins.cli]\noutput_limit = 1\n")
    await session.call("execute_cli", {"command": "seq 20000"})
    with memory_grows_at_most(15):
        flood = {"command": "yes | head -c 100000000; echo done", "background": True}
        id = (await session.call("execute_cli", flood))["process_id"]
        while (await session.call("list_processes", {}))["processes"][0]["running"]:
            await asyncio.sleep(0.02)
        state = await session.call("read_process", {"process_id": id})
    assert (state["stdout"][-5:], state["exit_code"]) == ("done\n", 0)


async def test_bytes_that_are_no_text_are_kept_and_not_shown(run: Run) -> None:
    result = await run("head -c 3000 /dev/urandom | tee whole")
    assert result["stdout"] == "[3000 bytes of binary data]"
    assert "stdout is no text, kept in the artifact" in result["note"]
    assert Path(result["artifact"]["path"]).read_bytes() == Path(result["cwd"], "whole").read_bytes()


async def test_names_that_end_with_nul_do_not_run_together(run: Run) -> None:
    result = await run("touch a b; find . -name '?' -print0 | sort -z")
    assert result["stdout"] == ".\n./a\n./b\n"


@pytest.mark.parametrize(
    ("text", "encoding", "environment", "read_as"),
    [
        ("grüße\n" * 3, "utf-16", "", "utf-16"),
        ("plain words\n" * 3, "utf-16-le", "", "utf-16-le"),
        ("déjà vu à Ångström\n", "latin-1", "", "cp1252"),
        ("„schön“ – 5 €\n", "cp1252", "", "cp1252"),
        ("привет, мир\n", "koi8-r", "LC_ALL=ru_RU.KOI8-R", "koi8-r"),
    ],
)
async def test_other_encodings_are_read_and_named(
    run: Run, folder: Path, text: str, encoding: str, environment: str, read_as: str
) -> None:
    (folder / "text").write_bytes(text.encode(encoding))
    if environment:
        await run(f"export {environment}")
    result = await run("cat text")
    assert result["stdout"] == text
    assert f"stdout was read as {read_as}." in result["note"]


async def test_a_mistake_in_utf_8_is_no_other_encoding(run: Run) -> None:
    result = await run(r"printf 'gr\xc3\xbc\xc3\x9fe \xff\n'")
    assert result["stdout"] == "grüße \ufffd\n"


async def test_states_of_a_progress_bar_are_not_shown(run: Run) -> None:
    result = await run(r"for n in 1 2 3 100; do printf '\r%3d%%' $n; done; echo")
    assert result["stdout"] == "100%\n"
    assert result["removed"]["overwritten"] == 3


@pytest.mark.parametrize("how", ["held", "closed"])
async def test_a_daemon_that_was_left_is_named_and_can_be_stopped(
    run: Run, session: Session, folder: Path, how: str
) -> None:
    (folder / "daemon.py").write_text(DAEMON)
    began = time.monotonic()
    # Until it has its number, it is no daemon yet.
    result = await run(f"{sys.executable} daemon.py {how}; until [ -s daemon ]; do sleep 0.02; done; echo done")
    assert time.monotonic() - began < 20
    pid = int((folder / "daemon").read_text())
    try:
        assert (result.status, result["stdout"]) == ("success", "done\n")
        assert str(pid) in result["note"]
        assert ("its output is still open" in result["note"]) is (how == "held")
        listed = await session.call("list_processes", {})
        assert listed["processes"][0]["running"] is True
        assert (await session.call("stop_process", {"process_id": result["process_id"]}))["stopped"]
        assert ends(pid)
    finally:
        if alive(pid):
            os.kill(pid, signal.SIGKILL)


async def test_a_folder_deleted_under_a_command_changes_nothing_else(run: Run, folder: Path) -> None:
    result = await run('mkdir here; cd here; rmdir "$PWD"; echo still; ls')
    assert result["stdout"] == "still\n"
    assert (await run("pwd"))["stdout"] == f"{folder}\n"


async def test_messages_come_in_the_locale_that_was_asked_for(run: Run) -> None:
    assert "No such file" in (await run("LC_ALL=C ls nothing"))["stderr"]


async def test_a_background_command_keeps_all_that_it_wrote(run: Run, session: Session) -> None:
    id = (await run("seq 100000; read line; seq 5", background=True))["process_id"]
    whole = "".join(f"{n}\n" for n in range(1, 100_001))
    read = b""
    deadline = time.monotonic() + 20
    while len(read) < len(whole) and time.monotonic() < deadline:
        state = await session.call("read_process", {"process_id": id})
        artifact = state.get("artifact")
        read += Path(artifact["path"]).read_bytes() if artifact else state["stdout"].encode()
        await asyncio.sleep(0.02)
    assert read.decode() == whole
    await session.call("write_process", {"process_id": id, "text": "\n"})
    state = await session.call("read_process", {"process_id": id, "wait": 20})
    assert state["stdout"] == "1\n2\n3\n4\n5\n"


async def test_an_artifact_ends_where_it_is_configured_and_the_command_goes_on(
    limited: Callable[..., Awaitable[Session]],
) -> None:
    session = await limited("[plugins.cli]\noutput_limit = 1\n")
    result = await session.call("execute_cli", {"command": "seq 1000000; echo done"})
    assert (result.status, result["stdout"][-5:]) == ("success", "done\n")
    assert result["artifact"]["bytes"] == 1024 * 1024
    assert "The artifact of stdout ends after 1048576 bytes: plugins.cli.output_limit allows no more." in result["note"]


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_an_artifact_on_a_full_disk_says_why_it_ends_and_the_command_goes_on(tmp_path: Path, stream: str) -> None:
    command = {"command": f"{{ seq 1000000; echo done; }} >/dev/{stream}"}
    result = _on_a_small_disk(tmp_path, command)
    artifact = result["artifact" if stream == "stdout" else "stderr_artifact"]
    assert (result["status"], result[stream][-5:]) == ("success", "done\n")
    assert 1_000_000 < artifact["bytes"] < 2_100_000
    assert f"The artifact of {stream} ends after {artifact['bytes']} bytes: No space left on device." in result["note"]


def _on_a_small_disk(folder: Path, args: Mapping[str, Any]) -> dict[str, Any]:
    """The result of a call of `execute_cli` whose artifacts are on a disk of 2 MB."""
    home = folder / "home"
    kept = home / "cache" / "artifacts"
    kept.mkdir(parents=True)
    call = [HANDRAIL, "call", "execute_cli", "--args", json.dumps(args), "--json", "--yes"]
    disk = ["bwrap", "--dev-bind", "/", "/", "--size", "2000000", "--tmpfs", str(kept), "--chdir", str(folder), "--"]
    environment = {**os.environ, "HANDRAIL_HOME": str(home), "HANDRAIL_PLUGINS": "cli"}
    done = subprocess.run([*disk, *call], env=environment, capture_output=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


# Root is held by no limit of processes; a user is, whom nothing else runs for.
NOBODY = "setpriv --reuid=65534 --clear-groups " if os.geteuid() == 0 else ""
BUSY = f"{sys.executable} -c 'import time\nwhile time.process_time() < 1.8: pass'"
CHILDREN = f"{NOBODY}sh -c 'for n in 1 2 3 4 5 6 7 8; do sleep 1 & done; wait'"


@pytest.mark.parametrize(
    ("limit", "enough", "command", "where", "says"),
    [
        ("memory", (300, 3_000), f"{sys.executable} -c 'bytearray(900_000_000)'", "stderr", "MemoryError"),
        ("file_size", (1, 9), "head -c 3000000 /dev/zero > big", "note", "plugins.cli.limits.file_size"),
        ("cpu_seconds", (1, 60), BUSY, "note", "plugins.cli.limits.cpu_seconds"),
        ("processes", (4, 200), CHILDREN, "stderr", "fork"),
    ],
)
async def test_a_command_on_the_host_uses_no_more_than_is_configured(
    limited: Callable[..., Awaitable[Session]], limit: str, enough: tuple[int, int], command: str, where: str, says: str
) -> None:
    little, much = [await limited(f"[plugins.cli.limits]\n{limit} = {value}\n") for value in enough]
    held = await little.call("execute_cli", {"command": f"{command}; exit $?", "timeout": 25})
    assert (held.status, says in held[where]) == ("error", True), held
    free = await much.call("execute_cli", {"command": command, "timeout": 100})
    assert (free.status, "limit" in free.get("note", "")) == ("success", False), free


async def test_what_is_unset_is_not_limited(run: Run) -> None:
    assert "limit" not in (await run("echo hi"))["stdout"]


async def test_a_program_that_leaves_with_a_trap_and_set_e_is_told_by_its_code(run: Run) -> None:
    result = await run("set -e; trap 'echo leaving' EXIT; false; echo never")
    assert (result["stdout"], result["exit_code"]) == ("leaving\n", 1)


def test_a_call_alone_says_that_what_it_left_running_ended_with_its_session(tmp_path: Path):
    done = _alone(tmp_path, {"command": "sleep 609", "background": True})
    told = json.loads(done.stdout)
    assert done.returncode == 1
    assert "the command 'sleep 609' ended with the session of this one call" in told["error"]["message"]
    assert "handrail session --jsonl" in told["error"]["message"]
    assert "note" not in told
    assert not alive(told["pid"])


def test_a_call_alone_that_leaves_what_is_to_stay_is_a_success(tmp_path: Path):
    done = _alone(tmp_path, {"command": "nohup sleep 67 >/dev/null 2>&1 & echo $!"})
    told = json.loads(done.stdout)
    staying = int(told["stdout"])
    try:
        assert done.returncode == 0
        assert alive(staying)
    finally:
        os.kill(staying, signal.SIGKILL)


def _alone(folder: Path, args: Mapping[str, Any]) -> subprocess.CompletedProcess[str]:
    """What `handrail call` makes of a command."""
    environment = {**os.environ, "HANDRAIL_HOME": str(folder / "home"), "HANDRAIL_PLUGINS": "cli"}
    call = [HANDRAIL, "call", "execute_cli", "--args", json.dumps(args), "--json", "--yes"]
    return subprocess.run(call, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=60)

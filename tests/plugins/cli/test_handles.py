"""Background commands by their handles."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import handrail
from handrail import Session, ToolResult
from handrail.api.approval import no, yes

Run = Callable[..., Awaitable[ToolResult]]


async def test_a_background_command_is_read_as_it_writes(run: Run, session: Session) -> None:
    started = await run("echo one; read line; echo got $line", background=True)
    id = started["process_id"]
    written = await session.call("write_process", {"process_id": id, "text": "hello\n"})
    assert written.ok
    state = await session.call("read_process", {"process_id": id, "wait": 5})
    assert (state["stdout"], state["running"], state["exit_code"]) == ("one\ngot hello\n", False, 0)
    assert (await session.call("read_process", {"process_id": id}))["stdout"] == ""


async def test_closing_its_input_lets_a_command_end(run: Run, session: Session) -> None:
    id = (await run("cat; echo end", background=True))["process_id"]
    await session.call("write_process", {"process_id": id, "text": "x", "end": True})
    assert (await session.call("read_process", {"process_id": id, "wait": 5}))["stdout"] == "xend\n"
    again = await session.call("write_process", {"process_id": id, "text": "y"})
    assert again.error_code == "downstream_error"


async def test_more_than_a_pipe_holds_can_be_written(run: Run, session: Session) -> None:
    id = (await run("wc -c", background=True))["process_id"]
    assert (await session.call("write_process", {"process_id": id, "text": "x" * 500_000, "end": True})).ok
    assert (await session.call("read_process", {"process_id": id, "wait": 5}))["stdout"].strip() == "500000"


async def test_stopping_ends_a_command_and_the_list_says_so(run: Run, session: Session) -> None:
    id = (await run("sleep 71", background=True))["process_id"]
    listed = await session.call("list_processes", {})
    assert [(p["process_id"], p["running"], p["command"]) for p in listed["processes"]] == [(id, True, "sleep 71")]
    stopped = await session.call("stop_process", {"process_id": id})
    assert (stopped["stopped"], stopped["running"]) == (True, False)
    assert (await session.call("stop_process", {"process_id": id}))["stopped"] is False


async def test_what_is_written_to_a_process_that_has_ended_is_refused_with_its_end(run: Run, session: Session) -> None:
    id = (await run("exit 3", background=True))["process_id"]
    assert (await session.call("read_process", {"process_id": id, "wait": 20}))["running"] is False
    result = await session.call("write_process", {"process_id": id, "text": "x"})
    assert "has ended and reads nothing any more (exit code 3)" in result["error"]["message"]


async def test_an_unknown_handle_is_named_with_those_there_are(run: Run, session: Session) -> None:
    await run("sleep 72", background=True)
    result = await session.call("read_process", {"process_id": "p9"})
    assert result.error_code == "not_found"
    assert "p1" in result["error"]["message"]


async def test_what_nobody_reads_is_bounded(run: Run, session: Session) -> None:
    id = (await run("seq 1 300000", background=True))["process_id"]
    state = await session.call("read_process", {"process_id": id, "wait": 20})
    assert state["truncated"]
    assert len(state["stdout"]) < 52_000
    assert state["stdout"].endswith("300000\n")


async def test_sessions_do_not_see_each_others_processes(tmp_path: Path) -> None:
    async with handrail.open(cwd=tmp_path, confirm=yes) as one, handrail.open(cwd=tmp_path, confirm=yes) as other:
        await one.call("execute_cli", {"command": "sleep 73", "background": True})
        assert (await other.call("list_processes", {}))["processes"] == []


async def test_waiting_for_a_process_can_be_cancelled(run: Run, session: Session) -> None:
    id = (await run("sleep 74", background=True))["process_id"]
    waiting = asyncio.create_task(session.call("read_process", {"process_id": id, "wait": 50}))
    await asyncio.sleep(0)
    began = time.monotonic()
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert time.monotonic() - began < 25


async def test_nobody_is_asked_about_a_process_that_does_not_exist(tmp_path: Path) -> None:
    async with handrail.open(cwd=tmp_path, confirm=no) as session:
        for text in ("rm -rf x\n", "y"):
            result = await session.call("write_process", {"process_id": "p9", "text": text})
            assert result.error_code == "not_found", result
        assert (await session.call("read_process", {"process_id": "p9"})).error_code == "not_found"

"""What running calls put out is seen by who looks on from another process, and costs nothing where nobody does."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio

from handrail import Session, Tool, ToolContext, tool
from handrail.events.live_output import MAX_OUTPUT_CHARS, MAX_OUTPUT_LINES, MAX_SHOWN_CALLS, watch_live_output
from handrail.fs.app_dirs import AppDirs
from handrail.testing import open_test_session


def talking(lines: list[str], end: anyio.Event) -> Tool:
    @tool(live=True)
    async def talk(*, context: ToolContext) -> dict[str, Any]:
        """Put something out again and again."""
        heard = False
        while not end.is_set():
            heard = heard or context.listening
            for line in lines:
                context.output("stdout", line)
            await anyio.sleep(0.01)
        return {"heard": heard}

    return talk


async def until(condition: Any) -> Any:
    with anyio.fail_after(60):
        while not (found := condition()):
            await anyio.sleep(0.01)
    return found


@asynccontextmanager
async def looked_on_at(lines: list[str], folder: Path) -> AsyncGenerator[tuple[Session, str], None]:
    """A session after a call that put these out and is over, with what an onlooker saw of it."""
    end = anyio.Event()
    async with open_test_session(tools=[talking(lines, end)], folder=folder) as session:
        with watch_live_output(session.runtime.places, session.id) as seen:
            async with anyio.create_task_group() as group:
                group.start_soon(session.call, "talk")
                text = (await until(seen))["c1"]
                end.set()
            await until(lambda: not seen())
        yield session, text


async def test_an_onlooker_sees_the_end_of_what_a_call_puts_out_until_it_is_over(tmp_path: Path) -> None:
    lines = ["done 1%\rdone 99%\r\n", "AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY\n"]
    async with looked_on_at(lines, tmp_path) as (session, text):
        assert "done 99%" in text
        assert "1%" not in text
        assert "wJalr" not in text
        assert not session.bus.listening
        assert list((session.runtime.places.state / "onlookers").iterdir()) == []


async def test_what_is_seen_is_bounded(tmp_path: Path) -> None:
    end = anyio.Event()
    lines = ["short\n" * 10 * MAX_OUTPUT_LINES, "x" * 3 * MAX_OUTPUT_CHARS]
    async with open_test_session(tools=[talking(lines[:1], end)], folder=tmp_path) as session:
        with watch_live_output(session.runtime.places, session.id) as seen:
            async with anyio.create_task_group() as group:
                for _ in range(MAX_SHOWN_CALLS + 4):
                    group.start_soon(session.call, "talk")
                await until(lambda: len(seen()) == MAX_SHOWN_CALLS)
                lines[:1] = lines[1:]
                shown = seen()
                end.set()
    assert all(len(text) <= MAX_OUTPUT_CHARS and len(text.split("\n")) <= MAX_OUTPUT_LINES for text in shown.values())


async def test_of_a_secret_that_begins_above_what_is_seen_nothing_is_seen(tmp_path: Path) -> None:
    body = "MIIEpAIBAAKCAQEAx5mOexample\n" * (MAX_OUTPUT_LINES - 1)
    lines = [f"-----BEGIN RSA PRIVATE KEY-----\n{body}-----END RSA PRIVATE KEY-----\ndone\n"]
    async with looked_on_at(lines, tmp_path) as (_, text):
        assert "done" in text
        assert "MIIE" not in text


async def test_a_call_ends_well_whatever_became_of_what_was_shown(tmp_path: Path) -> None:
    end = anyio.Event()
    async with open_test_session(tools=[talking(["a line\n"], end)], folder=tmp_path) as session:
        with watch_live_output(session.runtime.places, session.id) as seen:
            async with anyio.create_task_group() as group:

                async def call() -> None:
                    results.append(await session.call("talk"))

                results: list[Any] = []
                group.start_soon(call)
                await until(seen)
                shown = session.runtime.places.state / "onlookers" / f"{session.id}.json"
                shown.unlink()
                shown.mkdir()
                end.set()
            assert results[0].status == "success", results
            shown.rmdir()


async def test_where_nobody_looks_on_nothing_is_heard_and_nothing_written(tmp_path: Path) -> None:
    end = anyio.Event()
    async with open_test_session(tools=[talking(["hello\n"], end)], folder=tmp_path) as session:
        places = session.runtime.places
        async with anyio.create_task_group() as group:
            group.start_soon(session.call, "talk")
            # Somebody was there, and their process was killed.
            watched = places.state / "onlookers" / f"{session.id}.watched"
            watched.parent.mkdir(parents=True)
            watched.touch()
            # Longer than a session takes to look.
            with watch_live_output(places, "20260101-000000-abcdef") as another:
                for _ in range(100):
                    await anyio.sleep(0.01)
                assert another() == {}
            end.set()
        assert session.history.last()[0].result["heard"] is False
        assert [file.name for file in watched.parent.iterdir()] == [watched.name]


LOOKER = """
import sys
from dataclasses import replace
from pathlib import Path
from handrail.fs.app_dirs import AppDirs
from handrail.events.live_output import watch_live_output

with watch_live_output(replace(AppDirs.of({}), state=Path(sys.argv[1])), sys.argv[2]) as seen:
    while not seen():
        pass
    print("seen", flush=True)
    sys.stdin.read()
"""


async def test_an_onlooker_in_another_process_that_is_killed_looks_on_no_more(tmp_path: Path) -> None:
    end = anyio.Event()
    async with open_test_session(tools=[talking(["hello\n"], end)], folder=tmp_path) as session:
        places: AppDirs = session.runtime.places
        async with anyio.create_task_group() as group:
            group.start_soon(session.call, "talk")
            command = [sys.executable, "-c", LOOKER, str(places.state), session.id]
            async with await anyio.open_process(command, stderr=None, stdin=subprocess.PIPE) as process:
                assert process.stdout is not None
                assert (await process.stdout.receive()).decode().strip() == "seen"
                assert session.bus.listening
                process.kill()
                await process.wait()
            await until(lambda: not session.bus.listening)
            end.set()
        assert not os.path.exists(places.state / "onlookers" / f"{session.id}.json")

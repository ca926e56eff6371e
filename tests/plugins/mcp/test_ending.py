"""How calls and the server end: cancelled, left, told to, fed garbage."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import anyio
import psutil
import pytest

from .place import ERAS, HANDRAIL, LEGACY, Place, how_it_ended, wait_for


@pytest.mark.parametrize("era", ERAS)
async def test_a_cancelled_call_is_stopped_recorded_and_leaves_no_child(place: Place, era: str):
    async with place.client(era) as client:
        async with anyio.create_task_group() as group:
            group.start_soon(client.call_tool, "nurse", {})
            child = await wait_for(place.child)
            # The SDK's client tells the server when its caller is cancelled.
            group.cancel_scope.cancel()
        await wait_for(lambda: not child.is_running())
        assert await how_it_ended(client, "nurse") == "cancelled"


async def test_a_cancelled_question_is_withdrawn(place: Place):
    withdrawn = anyio.Event()

    async def never(_: Any) -> Any:
        shown.set()
        try:
            await anyio.sleep_forever()
        finally:
            withdrawn.set()

    shown = anyio.Event()
    async with place.client(LEGACY, never) as client:
        async with anyio.create_task_group() as group:
            group.start_soon(client.call_tool, "scribble", {"word": "hello"})
            await shown.wait()
            group.cancel_scope.cancel()
        with anyio.fail_after(30):
            await withdrawn.wait()
        assert await how_it_ended(client, "scribble") == "cancelled"
    assert place.scribbled == []


def test_a_client_that_leaves_ends_everything(place: Place):
    with serving(place) as server:
        server.call(2, "nurse")
        child = server.child()
        server.stdin.close()
        assert server.process.wait(30) == 0
    assert not child.is_running()
    assert '"status":"cancelled"' in place.audit[-2]
    assert '"event":"end"' in place.audit[-1]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_everything(place: Place, number: signal.Signals):
    with serving(place) as server:
        server.call(2, "nurse")
        child = server.child()
        server.process.send_signal(number)
        assert server.process.wait(30) == 0
    assert not child.is_running()
    assert '"event":"end"' in place.audit[-1]


def test_a_client_that_no_longer_reads_ends_everything(place: Place):
    with serving(place) as server:
        server.stdout.close()
        server.call(2, "see_tree")
        assert server.process.wait(30) == 0


def test_a_client_that_does_not_read_keeps_no_signal_away(place: Place):
    with serving(place) as server:
        for number in range(2, 400):
            server.call(number, "see_tree")
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(30) == 0


GARBAGE = (
    b"garbage",
    b"",
    b"\xff\xfe\x00",
    b'{"jsonrpc": "2.0"}',
    b"[" * 100_000,
    b'{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": 3}}',
    b'{"jsonrpc": "2.0", "id": 7, "method": "no/such"}',
    b'{"jsonrpc": "2.0", "id": 99, "result": {}}',
    # Longer than any message may be.
    b"x" * (65 * 2**20),
)


def test_garbage_does_not_end_the_server(place: Place):
    with serving(place) as server:
        for number, garbage in enumerate(GARBAGE, start=100):
            server.send(garbage, b"\n")
            server.call(number, "see_tree")
            assert server.answer(number)["result"]["isError"] is False


def test_what_plugins_and_tools_print_never_reaches_the_client(place: Place):
    with serving(place) as server:
        server.call(2, "count", {"to": 1})
        server.answer(2)
        server.stdin.close()
        rest = server.stdout.read()
        assert server.process.wait(30) == 0
    assert all(json.loads(line)["jsonrpc"] == "2.0" for line in [*server.lines, *rest.splitlines()])
    errors = (place.folder / "stderr").read_text()
    for said in ("a plugin that prints", "printed by a tool", "written by a tool", "said by a child"):
        assert said in errors


def test_a_file_can_stand_in_for_the_client(place: Place):
    script = place.folder / "script"
    script.write_bytes(b"".join(HANDSHAKE))
    with script.open("rb") as lines, (place.folder / "out").open("wb") as out:
        done = subprocess.run(
            command(place), stdin=lines, stdout=out, env=place.environment, cwd=place.folder, timeout=30
        )
    assert done.returncode == 0
    assert b'"serverInfo"' in (place.folder / "out").read_bytes()


def test_a_configuration_that_cannot_be_read_is_said_and_nothing_is_served(place: Place):
    place.configure("colour = 1\n")
    done = subprocess.run(
        command(place),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=place.environment,
        cwd=place.folder,
        timeout=30,
    )
    assert done.returncode == 1
    assert done.stdout == b""
    assert b"colour" in done.stderr


HANDSHAKE = (
    b'{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": {}, '
    b'"clientInfo": {"name": "test", "version": "1"}}}\n',
    b'{"jsonrpc": "2.0", "method": "notifications/initialized"}\n',
)


def command(place: Place) -> list[str]:
    return [str(HANDRAIL), "serve", *place.args]


class Server:
    """A server whose client is this test, line by line."""

    def __init__(self, place: Place, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.place = place
        self.process = process
        self.stdin, self.stdout = process.stdin, process.stdout
        self.lines: list[bytes] = []

    def send(self, *lines: bytes) -> None:
        for line in lines:
            self.stdin.write(line)
        self.stdin.flush()

    def call(self, number: int, name: str, args: dict[str, Any] | None = None) -> None:
        params = {"name": name, "arguments": args or {}}
        message = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
        self.send(json.dumps(message).encode() + b"\n")

    def answer(self, number: int) -> dict[str, Any]:
        """The answer to a request, past everything else that is said before it."""
        while line := self.stdout.readline():
            self.lines.append(line)
            if (message := json.loads(line)).get("id") == number:
                return message
        raise AssertionError(f"the server left without an answer to {number}")

    def child(self) -> psutil.Process:
        """The child that the tool `nurse` started."""
        return anyio.run(wait_for, self.place.child)


@contextmanager
def serving(place: Place, handshake: tuple[bytes, ...] = HANDSHAKE) -> Iterator[Server]:
    with (place.folder / "stderr").open("wb") as errors:
        process = subprocess.Popen(
            command(place),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=place.environment,
            cwd=place.folder,
        )
    server = Server(place, process)
    try:
        if handshake:
            server.send(*handshake)
            server.answer(1)
        yield server
    finally:
        process.kill()
        process.wait()
        for pipe in (server.stdin, server.stdout):
            with open(os.devnull, "wb") as nothing:
                os.dup2(nothing.fileno(), pipe.fileno()) if not pipe.closed else None
            pipe.close()


TOO_DEEP = b"[" * 5_000 + b"]" * 5_000


@pytest.mark.parametrize(
    ("line", "id", "code"),
    [
        (b'{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"arguments": {"a": "\\ud800"}}}', 7, -32700),
        (
            b'{"params": {"arguments": ' + TOO_DEEP + b', "id": 8}, "method": "m", "id": "x", "jsonrpc": "2.0"}',
            "x",
            -32700,
        ),
        (b'{"jsonrpc": "2.0", "method": "m", "id": "\\ud800"}', None, -32700),
        (b'{"jsonrpc": "1.0", "method": "m", "id": 9}', 9, -32600),
        (b"garbage", None, -32700),
    ],
    ids=["half a character", "nested too deep", "an id of half a character", "not the protocol", "garbage"],
)
def test_a_line_that_is_no_message_is_answered(place: Place, line: bytes, id: int | str | None, code: int):
    with serving(place) as server:
        server.send(line, b"\n")
        server.call(70, "see_tree")
        server.answer(70)
        (error,) = [message for told in server.lines if "error" in (message := json.loads(told))]
        assert (error["id"], error["error"]["code"]) == (id, code)


@pytest.mark.parametrize("line", [b'{"jsonrpc": "2.0", "id": 1, "result": "\\ud800"}', b'{"method": "a\\ud800"}'])
def test_nobody_waits_for_an_answer_to_an_answer_or_a_notification(place: Place, line: bytes):
    with serving(place) as server:
        server.send(line, b"\n")
        server.call(70, "see_tree")
        server.answer(70)
        assert not any("error" in json.loads(told) for told in server.lines)


def test_a_garbled_line_of_many_quotes_is_answered_soon(place: Place):
    with serving(place) as server:
        server.send(b'{"id": 7, "a": "' + b'\\"' * 200_000 + b"\n")
        server.call(70, "see_tree")
        server.answer(70)
        (error,) = [message for told in server.lines if "error" in (message := json.loads(told))]
        assert error["error"]["code"] == -32700


def test_a_message_that_is_too_long_is_dropped_and_not_kept(place: Place):
    with serving(place) as server:
        server.call(69, "see_tree")
        server.answer(69)
        before = psutil.Process(server.process.pid).memory_info().rss
        server.send(b'{"id": 7, "a": "', *[b"x" * 2**20] * 60, b'"}\n')
        server.call(70, "see_tree")
        server.answer(70)
        assert psutil.Process(server.process.pid).memory_info().rss - before < 64 * 2**20

"""Clients that do what they should not, and more than is good: the session goes on, and nothing is left."""

from __future__ import annotations

import json
import os
import select
import time
from typing import Any

import psutil
import pytest
from mcp import types

from .place import Place, result_fields
from .test_ending import Server, serving

pytestmark = pytest.mark.usefixtures("without_undo")

CAN_ASK = (
    b'{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25", '
    b'"capabilities": {"elicitation": {"form": {}}}, "clientInfo": {"name": "test", "version": "1"}}}\n'
)
MEGABYTE = 2**20


def memory(server: Server) -> int:
    return psutil.Process(server.process.pid).memory_info().rss


def asked(server: Server) -> dict[str, Any]:
    """The next question."""
    while line := server.stdout.readline():
        server.lines.append(line)
        if (message := json.loads(line)).get("method") == "elicitation/create":
            return message
    raise AssertionError("the server left without a question")


def answer(question: dict[str, Any], result: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": question["id"], "result": result}).encode() + b"\n"


def fields_of(server: Server, number: int) -> dict[str, Any]:
    """Return the keys of the result that answers the numbered call."""
    return result_fields(types.CallToolResult.model_validate(server.answer(number)["result"]))


def goes_on(server: Server, number: int = 7_000) -> None:
    server.call(number, "see_tree")
    assert server.answer(number)["result"]["isError"] is False


def test_calls_before_the_handshake_are_refused_and_harm_nothing(place: Place):
    with serving(place, handshake=()) as server:
        server.send(
            b'{"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "nurse", "arguments": {}}}\n'
        )
        assert "error" in server.answer(5)
        assert place.child() is None
        server.send(CAN_ASK)
        server.answer(1)
        server.send(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')
        goes_on(server)


def test_two_calls_of_one_id_are_both_answered(place: Place):
    with serving(place) as server:
        server.call(5, "wait", {"seconds": 0.3})
        server.call(5, "see_tree")
        keys = [set(fields_of(server, 5)) for _ in range(2)]
        assert any("seen" in found for found in keys)
        assert any("waited_seconds" in found for found in keys)
        goes_on(server)


def test_to_cancel_what_is_not_there_harms_nothing(place: Place):
    with serving(place) as server:
        for id in ("77", '"77"', "-1", "null", "[]", "1e400"):
            server.send(
                b'{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": %s}}\n' % id.encode()
            )
        goes_on(server)


def test_an_answer_of_nonsense_is_a_no_and_a_second_answer_is_none(place: Place):
    with serving(place, handshake=(CAN_ASK, b'{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')) as server:
        for number, nonsense in enumerate(
            ({}, {"action": "yes"}, {"action": "accept", "content": []}, {"action": 1}), 10
        ):
            server.call(number, "scribble", {"word": "hello"})
            question = asked(server)
            server.send(answer(question, nonsense))
            server.send(answer(question, {"action": "accept", "content": {"answer": "once"}}))
            assert fields_of(server, number)["status"] == "denied"
        goes_on(server)
    assert place.scribbled == []


def test_an_error_in_place_of_an_answer_is_a_no(place: Place):
    with serving(place, handshake=(CAN_ASK, b'{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')) as server:
        server.call(5, "scribble", {"word": "hello"})
        error = {"jsonrpc": "2.0", "id": asked(server)["id"], "error": {"code": -1, "message": "no \u202e\x1b[2J"}}
        server.send(json.dumps(error).encode() + b"\n")
        assert fields_of(server, 5)["status"] == "denied"
    assert place.scribbled == []


def test_a_client_that_leaves_while_it_is_asked_has_said_no(place: Place):
    with serving(place, handshake=(CAN_ASK, b'{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')) as server:
        server.call(5, "scribble", {"word": "hello"})
        asked(server)
        server.stdin.close()
        assert server.process.wait(30) == 0
    assert place.scribbled == []
    assert '"event":"end"' in place.audit[-1]


def test_a_thousand_calls_at_once_are_all_answered(place: Place):
    with serving(place) as server:
        for number in range(100, 1_100):
            server.call(number, "wait", {"seconds": 0.1})
        left = set(range(100, 1_100))
        while left:
            left.discard(json.loads(server.stdout.readline()).get("id"))
        goes_on(server)


def test_more_calls_than_may_be_under_way_are_refused_and_the_rest_goes_on(place: Place):
    with serving(place) as server:
        for number in range(10_000, 11_100):
            server.call(number, "wait", {"seconds": 60})
        refused = fields_of(server, 11_099)["error"]
        assert refused["code"] == "tool_unavailable"
        assert "under way" in refused["message"]
        server.stdin.close()
        assert server.process.wait(30) == 0


def test_a_client_that_never_reads_is_not_read_for_ever(place: Place):
    request = b'{"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "no_such_tool", "arguments": {"x": "%s"}}}\n'
    request %= b"x" * 10_000
    with serving(place) as server:
        goes_on(server)
        before = memory(server)
        os.set_blocking(server.stdin.fileno(), False)
        sent = 0
        # Until the server has taken nothing for a while.
        while select.select([], [server.stdin], [], 3)[1] and sent < 200 * MEGABYTE:
            sent += os.write(server.stdin.fileno(), request) or 0
        assert sent < 100 * MEGABYTE
        assert memory(server) - before < 150 * MEGABYTE


def test_ten_thousand_calls_leave_the_memory_as_it_was(place: Place):
    with serving(place) as server:
        call_many(server, 1_000, first=10_000)
        before = memory(server)
        begun = time.monotonic()
        call_many(server, 10_000, first=100_000)
        print(f"10,000 calls: {time.monotonic() - begun:.1f} s, {(memory(server) - before) / MEGABYTE:+.1f} MB")
        assert memory(server) - before < 12 * MEGABYTE


def call_many(server: Server, count: int, *, first: int) -> None:
    """So many trivial calls, fifty at a time."""
    for start in range(first, first + count, 50):
        for number in range(start, start + 50):
            server.call(number, "see_tree")
        left = 50
        while left:
            message = json.loads(server.stdout.readline())
            assert message["result"]["isError"] is False
            left -= 1

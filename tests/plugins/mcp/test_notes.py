"""Log messages on calls, for clients that set a level."""

from __future__ import annotations

import json

from .place import Place
from .test_ending import Server, serving


def told(server: Server) -> list[tuple[str, str]]:
    messages = [json.loads(line) for line in server.lines]
    notes = [message["params"] for message in messages if message.get("method") == "notifications/message"]
    return [(note["level"], note["data"]["event"]) for note in notes]


def test_a_client_is_told_of_its_calls_from_the_level_it_sets(place: Place):
    with serving(place) as server:
        server.call(2, "see_tree")
        server.answer(2)
        assert told(server) == []
        server.send(b'{"jsonrpc": "2.0", "id": 3, "method": "logging/setLevel", "params": {"level": "info"}}\n')
        server.answer(3)
        server.call(4, "see_tree")
        server.answer(4)
        server.call(5, "no_such_tool")
        server.answer(5)
    assert told(server)[0] == ("info", "finished")
    assert "debug" not in [level for level, _ in told(server)]

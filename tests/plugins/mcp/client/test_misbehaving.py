"""Servers that break the protocol, lie, flood, die or stay: they harm nobody, and other servers and tools go on."""

from __future__ import annotations

import gzip
import json
import os
import threading
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import anyio
import psutil
import pytest

from handrail import Answer, Choice, Session
from handrail_mcp.client.connection import MAX_LISTED_ITEMS

from .using import at, helpful, names, raw, until, using

pytestmark = pytest.mark.anyio


async def echoed(session: Session, server: str) -> str:
    result = await session.call(f"mcp_{server}_echo", {"text": "hi"})
    return result.get("content") or result["error"]["message"]


async def test_a_server_that_hangs_holds_nothing_up() -> None:
    async with using({"hangs": raw("hang"), "works": raw("plain")}, start_wait=20) as session:
        # The first list waits for what starts, though not for ever.
        session.settings = session.settings.model_copy(
            update={"mcp": session.settings.mcp.model_copy(update={"start_wait": 3.0})}
        )
        assert await names(session) == ["mcp_works_echo"]
        assert await echoed(session, "works") == "hi"


@pytest.mark.parametrize("kind", ["long", "flood", "answers"])
async def test_a_server_that_floods_is_cut_off(kind: str) -> None:
    async with using({"bad": raw(kind), "works": raw("plain")}) as session:
        await session.tools()
        before = psutil.Process().memory_info().rss
        assert "gone before it answered" in await echoed(session, "bad")
        assert psutil.Process().memory_info().rss - before < 300 * 2**20
        assert await echoed(session, "works") == "hi"


async def test_noise_between_messages_is_passed_over() -> None:
    async with using({"bad": raw("garbage")}) as session:
        assert await echoed(session, "bad") == "through the noise"


async def test_a_second_answer_counts_for_nothing() -> None:
    async with using({"bad": raw("twice")}) as session:
        assert [await echoed(session, "bad") for _ in range(3)] == ["first"] * 3


async def test_an_answer_that_is_none_is_an_error() -> None:
    async with using({"bad": raw("malformed")}) as session:
        assert "an answer that is none" in await echoed(session, "bad")


@pytest.mark.parametrize(("kind", "text"), [("zeros", "20000"), ("zeros", "5000000"), ("many_values", "")])
async def test_an_answer_of_very_many_values_is_an_error(kind: str, text: str) -> None:
    async with using({"bad": raw(kind), "works": raw("plain")}) as session:
        await session.tools()
        before = psutil.Process().memory_info().rss
        result = await session.call("mcp_bad_echo", {"text": text})
        assert result.error_code == "downstream_error"
        assert len(json.dumps(result)) < 2_000
        assert psutil.Process().memory_info().rss - before < 300 * 2**20
        assert await echoed(session, "works") == "hi"


async def test_a_list_of_very_many_values_is_not_taken() -> None:
    before = psutil.Process().memory_info().rss
    async with using({"bad": raw("zero_tools"), "works": raw("plain")}, start_wait=20) as session:
        assert await names(session) == ["mcp_works_echo"]
        (bad,) = [each for each in (await session.service("mcp_servers")).connections if each.name == "bad"]
        assert len(bad.problem) < 500
    assert psutil.Process().memory_info().rss - before < 300 * 2**20


@pytest.mark.parametrize("many", [False, True], ids=["packed", "many-values"])
async def test_an_answer_over_http_is_neither_packed_nor_of_very_many_values(*, many: bool) -> None:
    asked: list[str] = []
    body = b'{"jsonrpc": "2.0", "id": 0, "result": {"x": [%s0]}}' % (b"0," * 4_000_000 if many else b"")

    class Answering(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("content-length", 0)))
            asked.append(self.headers.get("accept-encoding", ""))
            self.send_response(200)
            self.send_header("content-type", "application/json")
            if not many:
                self.send_header("content-encoding", "gzip")
            self.end_headers()
            self.wfile.write(body if many else gzip.compress(b" " * 200_000_000 + body))

        def log_message(self, format: str, *args: Any) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Answering) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/mcp"
        before = psutil.Process().memory_info().rss
        async with using({"bad": at(url, transport="http"), "works": raw("plain")}, start_wait=20) as session:
            assert await names(session) == ["mcp_works_echo"]
            assert set(asked) == {"identity"}
            (bad,) = [each for each in (await session.service("mcp_servers")).connections if each.name == "bad"]
            assert bad.problem
            assert psutil.Process().memory_info().rss - before < 200 * 2**20
        server.shutdown()


async def test_half_a_character_in_an_answer_is_replaced() -> None:
    async with using({"bad": raw("half")}) as session:
        assert await echoed(session, "bad") == "a?"


async def test_nobody_waits_after_an_answer_that_cannot_be_read() -> None:
    async with using({"bad": raw("unreadable")}) as session:
        assert "cannot be read" in await echoed(session, "bad")


async def test_a_servers_own_error_ends_no_other_call() -> None:
    async with using({"bad": raw("refuses", read_only=["echo"])}) as session:
        await session.tools()
        results: list[Any] = []

        async def slow() -> None:
            results.append(await session.call("mcp_bad_echo", {"text": "slow"}))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(slow)
            servers = await session.service("mcp_servers")
            (connection,) = servers.connections

            async def sent() -> bool:
                return connection.under_way == 1

            await until(sent)
            assert "refused echo: not today" in await echoed(session, "bad")
        assert results[0].get("content") == "done", results
        assert connection.state == "ready"


async def test_output_that_is_not_what_was_declared_is_an_error() -> None:
    async with using({"bad": raw("output")}) as session:
        assert "is not what the server 'bad' declares" in await echoed(session, "bad")


async def test_a_server_that_dies_is_reached_again() -> None:
    async with using({"docs": helpful()}) as session:
        await session.tools()
        died = await session.call("mcp_docs_leave")
        assert "gone before it answered" in died["error"]["message"]
        # The tool is still there while its server is reached again.
        assert "mcp_docs_add" in await names(session)
        assert (await session.call("mcp_docs_add", {"a": 1, "b": 1})).ok


async def test_why_a_server_did_not_start_is_told() -> None:
    async with using({"bad": raw("noisy"), "none": {"command": ["no-such-program"]}}) as session:
        await session.tools()
        servers = await session.service("mcp_servers")
        told = {each["name"]: each["problem"] for each in servers.states()}
    assert told["bad"] == "it ended with the exit code 7: it cannot find its key"
    assert "the program no-such-program is " in told["none"]


async def test_of_ten_thousand_tools_some_are_offered(caplog: pytest.LogCaptureFixture) -> None:
    async with using({"bad": raw("many")}) as session:
        assert len(await names(session)) == MAX_LISTED_ITEMS
        await session.tools()
    assert sum("more than" in record.message for record in caplog.records) == 1


async def test_of_a_server_that_says_much_the_first_tools_are_offered(caplog: pytest.LogCaptureFixture) -> None:
    async with using({"bad": raw("wordy")}) as session:
        assert await names(session) == ["mcp_bad_tool0", "mcp_bad_tool1", "mcp_bad_tool2"]
    assert sum("says more than" in record.message for record in caplog.records) == 2


async def test_a_check_of_output_that_would_take_for_ever_is_given_up() -> None:
    async with using({"bad": raw("repeats")}) as session:
        assert "it takes too many steps" in await echoed(session, "bad")


async def test_a_description_is_shown_without_what_nobody_sees() -> None:
    async with using({"bad": raw("liar")}) as session:
        (tool,) = [tool for tool in await session.tools() if tool.server == "bad"]
        assert tool.description.startswith("Harmless.xxx")
        assert len(tool.description) <= 4_000
        # A hint that it only reads is believed by nobody.
        assert not tool.read_only


async def test_a_hint_that_it_destroys_is_believed() -> None:
    async with using({"bad": raw("destroyer", read_only=["echo"], trust_hints=True)}) as session:
        (tool,) = [tool for tool in await session.tools() if tool.server == "bad"]
        assert not tool.read_only


async def test_odd_names_are_made_distinct_and_stay_so() -> None:
    found: list[dict[str, str]] = []
    for _ in range(2):
        async with using({"bad": raw("names")}) as session:
            tools = [tool for tool in await session.tools() if tool.remote is not None]
            found.append({tool.remote.name: tool.name for tool in tools if tool.remote is not None})
    assert found[0] == found[1]
    assert found[0]["do_it_"] == "mcp_bad_do_it_"
    assert found[0]["Träge"] == "mcp_bad_tr_ge"
    assert len(set(found[0].values())) == len(found[0]) == 7
    assert all(len(name) <= 63 for name in found[0].values())


async def test_two_servers_names_never_run_into_one(caplog: pytest.LogCaptureFixture) -> None:
    one, two = raw("plain"), raw("plain")
    async with using({"a-b": one, "a_b": two}) as session:
        offered = await names(session)
        assert len(offered) == 2
        assert "mcp_a_b_echo" in offered
        assert [await session.call(name, {"text": "x"}) for name in offered]
    assert sum("is called mcp_a_b_echo_" in record.message for record in caplog.records) == 1


async def test_a_schema_that_cannot_be_checked_takes_its_tool_away(caplog: pytest.LogCaptureFixture) -> None:
    async with using({"bad": raw("schemas")}) as session:
        assert await names(session) == ["mcp_bad_echo"]
    assert sum("is not offered" in record.message for record in caplog.records) == 4


async def test_media_that_are_none_harm_nobody() -> None:
    async with using({"bad": raw("media")}) as session:
        result = await session.call("mcp_bad_echo")
    assert "cannot be decoded" in result["content"]
    assert [media.mime_type for media in result["media"]] == ["application/octet-stream"]
    assert result["links"][0]["uri"] == "file:///etc/passwd"
    assert result["resources"] == [{"uri": "note://x", "text": "in it"}]


@pytest.mark.skipif(os.name == "nt", reason="signals")
async def test_nothing_is_left_of_a_server_that_will_not_go(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    async with using({"bad": raw("stubborn", env={"PIDS": str(pids)})}) as session:
        assert await echoed(session, "bad") == "hi"
        started = [psutil.Process(int(pid)) for pid in pids.read_text().split()]
        assert len(started) == 2
    assert not any(_lives(process) for process in started)


async def test_nothing_is_left_of_what_a_server_started() -> None:
    async with using({"docs": helpful()}) as session:
        child = psutil.Process(int((await session.call("mcp_docs_spawn"))["structured"]["result"]))
        assert _lives(child)
    assert not _lives(child)


def _lives(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


async def test_a_server_that_the_configuration_no_longer_names_ends() -> None:
    async with using({"docs": raw("plain"), "more": raw("plain")}) as session:
        assert await names(session) == ["mcp_docs_echo", "mcp_more_echo"]
        children = list(filter(_lives, psutil.Process().children()))
        only = session.settings.mcp.model_copy(update={"servers": {"more": session.settings.mcp.servers["more"]}})
        session.apply(session.settings.model_copy(update={"mcp": only}))
        assert await names(session) == ["mcp_more_echo"]

        async def one_is_gone() -> bool:
            return sum(map(_lives, children)) == len(children) - 1

        await until(one_is_gone)


async def test_a_server_that_is_configured_anew_is_called_as_it_says_now() -> None:
    async with using({"docs": raw("plain", read_only=["echo"])}) as session:
        (before,) = [tool for tool in await session.tools() if tool.server]
        assert before.read_only
        now = session.settings.mcp.servers["docs"].model_copy(update={"read_only": ()})
        changed = session.settings.mcp.model_copy(update={"servers": {"docs": now}})
        session.apply(session.settings.model_copy(update={"mcp": changed}))

        async def there_again() -> list[Any]:
            return [tool for tool in await session.tools() if tool.server]

        (after,) = await until(there_again)
        assert not after.read_only
        assert await echoed(session, "docs") == "hi"


async def test_two_sessions_have_servers_of_their_own() -> None:
    async with using({"docs": raw("plain")}) as one:
        async with using({"docs": raw("plain")}) as two:
            servers = [await session.service("mcp_servers") for session in (one, two) if await session.tools()]
            assert servers[0] is not servers[1]
        assert await echoed(one, "docs") == "hi"


async def test_hundreds_of_calls_leave_nothing_behind() -> None:
    async with using({"docs": raw("plain")}) as session:
        await session.tools()
        for number in range(300):
            result = await session.call("mcp_docs_echo", {"text": f"n{number}"})
            assert result["content"] == f"n{number}"
        servers = await session.service("mcp_servers")
        (connection,) = servers.connections
        assert connection.under_way == 0


async def test_a_server_is_told_of_a_call_that_was_cancelled(tmp_path: Path) -> None:
    told = tmp_path / "told"
    async with using({"bad": raw("silent", env={"TOLD": str(told)})}) as session:
        await session.tools()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(session.call, "mcp_bad_echo")

            async def stopped() -> bool:
                await anyio.sleep(0.1)
                return session.cancel() > 0

            await until(stopped)

        async def heard() -> bool:
            return told.exists()

        await until(heard)


async def test_a_servers_question_is_closed_with_its_call() -> None:
    asked = anyio.Event()

    async def confirm(approval: Any) -> Answer:
        if approval.verdict.rule == "mcp:elicitation":
            asked.set()
            await anyio.sleep_forever()
        return Answer(Choice.ONCE)

    async with using({"bad": raw("asker")}, confirm=confirm) as session:
        await session.tools()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(partial(session.call, "mcp_bad_echo", call_id="x"))
            await asked.wait()
            session.cancel("x")

        async def closed() -> bool:
            return not session.running

        await until(closed)

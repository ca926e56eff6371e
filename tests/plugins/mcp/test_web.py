"""`handrail serve --http`: who is let in, what is refused, and that a session is one token's."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
from collections.abc import AsyncGenerator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import httpx2
import psutil
import pytest
from mcp import Client, types
from mcp.client.streamable_http import streamable_http_client

from .place import ERAS, HANDRAIL, LEGACY, MODERN, Decide, Place, accept, made, result_fields, wait_for

both_eras = pytest.mark.parametrize("era", ERAS)
ALICE, BOB = "a" * 32, "b" * 32
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}


@dataclass
class Web:
    """A server over HTTP."""

    place: Place
    process: subprocess.Popen[bytes]
    url: str

    @property
    def address(self) -> tuple[str, int]:
        host, _, port = self.url.removeprefix("http://").removesuffix("/mcp").rpartition(":")
        return host, int(port)

    @property
    def errors(self) -> str:
        return (self.place.folder / "stderr").read_text()

    def post(self, body: Any = INITIALIZE, *, token: str | None = ALICE, **headers: str) -> httpx2.Response:
        accepted = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
        shown = {"authorization": f"Bearer {token}"} if token else {}
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        return httpx2.post(self.url, content=content, headers={**accepted, **shown, **headers}, timeout=30)

    @asynccontextmanager
    async def client(
        self, era: str, token: str = ALICE, decide: Decide | None = None, hear: Callable[..., Any] | None = None
    ) -> AsyncGenerator[Client, None]:
        headers = {"authorization": f"Bearer {token}"}
        async with httpx2.AsyncClient(headers=headers, timeout=60) as connection:
            to = streamable_http_client(self.url, http_client=connection)
            async with self.place.client(era, decide, hear=hear, to=to) as client:
                yield client


@contextmanager
def serving_web(place: Place, *args: str) -> Iterator[Web]:
    with (place.folder / "stderr").open("wb") as errors:
        process = subprocess.Popen(
            [str(HANDRAIL), "serve", "--http", "--port", "0", *args],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=place.environment,
            cwd=place.folder,
        )
    assert process.stdout is not None
    try:
        with process.stdout as out:
            yield Web(place, process, out.readline().decode().strip())
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(30)
        finally:
            process.kill()
            process.wait()


def with_tokens(place: Place) -> Place:
    place.configure('backend = "treeish"\n[serve]\ntokens = ["ALICE", "BOB"]\n')
    place.environment.update(ALICE=ALICE, BOB=BOB)
    return place


@pytest.fixture
def two(place: Place) -> Place:
    """A place with two tokens."""
    return with_tokens(place)


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory, stage: str) -> Iterator[Web]:
    """A server for requests that no session hears of."""
    with serving_web(with_tokens(made(tmp_path_factory.mktemp("door"), stage))) as web:
        yield web


@pytest.fixture
def web(two: Place) -> Iterator[Web]:
    with serving_web(two) as web:
        yield web


@both_eras
async def test_the_sdk_s_client_lists_calls_and_is_asked(web: Web, era: str):
    async with web.client(era, decide=lambda _: accept("once")) as client:
        assert client.protocol_version == ("2025-11-25" if era == LEGACY else "2026-07-28")
        assert "see_tree" in [tool.name for tool in (await client.list_tools()).tools]
        result = await client.call_tool("scribble", {"word": "hello"})
    assert result_fields(result)["status"] == "success"
    assert web.place.scribbled == ["hello"]
    assert len(web.place.asked) == 1


@both_eras
async def test_progress_arrives_before_the_result(web: Web, era: str):
    told: list[float] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        told.append(progress)

    async with web.client(era) as client:
        await client.call_tool("count", {"to": 12}, progress_callback=hear)
    assert len(told) >= 2
    assert told == sorted(told)


async def test_a_token_is_one_session_and_no_other_s(web: Web):
    async with web.client(LEGACY, ALICE) as alice, web.client(MODERN, BOB) as bob:
        await alice.call_tool("lines", {"to": 9_000})
        assert [resource.name for resource in (await alice.list_resources()).resources] == ["a1"]
        assert (await bob.list_resources()).resources == []
        actions = result_fields(await bob.call_tool("get_action_history", {}))["actions"]
        assert [action["tool"] for action in actions] == []
    # The same token later, in the other era: the same session.
    async with web.client(MODERN, ALICE) as alice:
        actions = result_fields(await alice.call_tool("get_action_history", {}))["actions"]
    assert [action["tool"] for action in actions] == ["lines"]


async def test_one_token_s_connection_is_not_found_with_another_s(web: Web):
    opened = web.post()
    connection = opened.headers["mcp-session-id"]
    listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
    assert web.post(listing, **{"mcp-session-id": connection}).status_code == 200
    assert web.post(listing, token=BOB, **{"mcp-session-id": connection}).status_code == 404


async def test_an_answer_of_one_session_is_refused_by_another(web: Web):
    async with web.client(MODERN, ALICE, lambda _: accept("once")) as alice:
        question = await alice.session.call_tool("scribble", {"word": "hello"}, allow_input_required=True)
        assert isinstance(question, types.InputRequiredResult)
        async with web.client(MODERN, BOB, lambda _: accept("once")) as bob:
            answers: types.InputResponses = {"confirmation": accept("once")}
            result = await bob.session.call_tool(
                "scribble", {"word": "hello"}, request_state=question.request_state, input_responses=answers
            )
    assert result_fields(result)["error"]["code"] == "denied_by_policy"
    assert web.place.scribbled == []


def test_what_is_refused_is_told_by_its_status(door: Web):
    host, port = door.address
    for status, response in [
        (401, door.post(token=None)),
        (401, door.post(token="c" * 32)),
        (401, door.post(token=None, authorization=f"Basic {ALICE}")),
        (421, door.post(host="evil.example")),
        (421, door.post(host=f"evil.example:{port}")),
        (421, door.post(host=host)),
        (403, door.post(origin="http://evil.example")),
        (403, door.post(origin="null")),
        (404, httpx2.post(f"{door.url}?token={ALICE}")),
        (404, httpx2.post(f"http://{host}:{port}/")),
        (404, door.post(**{"mcp-session-id": "no-such"})),
        (413, door.post(b"x" * (4 * 2**20 + 1))),
        (400, door.post(b"garbage")),
        (405, httpx2.put(door.url, headers={"authorization": f"Bearer {ALICE}"})),
        (200, door.post(host=f"localhost:{port}", origin=f"http://localhost:{port}")),
    ]:
        assert response.status_code == status, response.text
        assert not [name for name in response.headers if name.startswith("access-control")]
    assert door.post(token=None).headers["www-authenticate"].startswith("Bearer")


def test_a_browser_is_told_nothing_of_other_origins(door: Web):
    asked = {"origin": "http://evil.example", "access-control-request-method": "POST"}
    response = httpx2.options(door.url, headers=asked)
    assert response.status_code == 403
    assert not [name for name in response.headers if name.startswith("access-control")]


def test_a_body_without_a_length_is_limited_too(door: Web):
    def chunks() -> Iterator[bytes]:
        for _ in range(80):
            yield b"x" * 2**16

    headers = {"authorization": f"Bearer {ALICE}"}
    try:
        assert httpx2.post(door.url, content=chunks(), headers=headers).status_code == 413
    except httpx2.WriteError:
        # The connection was closed while it was still sending.
        assert door.post().status_code == 200


def test_headers_without_end_are_refused(door: Web):
    with socket.create_connection(door.address) as connection:
        connection.sendall(b"POST /mcp HTTP/1.1\r\n" + b"".join(b"x%d: y\r\n" % n for n in range(10_000)))
        assert connection.recv(100).startswith(b"HTTP/1.1 4")


def test_a_request_that_never_comes_keeps_nobody_out(door: Web):
    slow = [socket.create_connection(door.address) for _ in range(20)]
    for connection in slow:
        connection.sendall(b"POST /mcp HT")
    assert door.post().status_code == 200
    # They are closed by the server.
    for connection in slow:
        connection.settimeout(60)
        assert connection.recv(100) == b""
        connection.close()


def test_no_token_is_said_in_any_log(web: Web):
    web.post()
    web.post(token="c" * 32)
    httpx2.post(f"{web.url}?token={ALICE}")
    end(web)
    assert not [token for token in (ALICE, BOB, "c" * 32) if token in web.errors]


def test_a_tool_s_child_learns_no_token(two: Place):
    with serving_web(two) as web:
        assert psutil.Process(web.process.pid).environ()["ALICE"] == ALICE
        headers = {"mcp-session-id": web.post().headers["mcp-session-id"]}
        text = web.post(called("surroundings"), **headers).text
    assert "PATH" in text
    assert "ALICE" not in text


def end(web: Web) -> int:
    web.process.send_signal(signal.SIGINT)
    return web.process.wait(30)


def test_a_signal_ends_calls_streams_and_children(web: Web):
    connection = web.post().headers["mcp-session-id"]
    with ThreadPoolExecutor() as threads:
        answer = threads.submit(web.post, called("nurse"), **{"mcp-session-id": connection})
        child = anyio.run(wait_for, web.place.child)
        assert end(web) == 0
        # What was being answered is cut off.
        assert isinstance(answer.exception(), httpx2.HTTPError) or "result" not in answer.result().text
    assert not child.is_running()
    assert '"event":"end"' in web.place.audit[-1]
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(web.address)


def called(tool: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": tool, "arguments": {}}}


@both_eras
async def test_a_cancelled_call_is_stopped(web: Web, era: str):
    async with web.client(era) as client:
        async with anyio.create_task_group() as group:
            group.start_soon(client.call_tool, "nurse", {})
            child = await wait_for(web.place.child)
            group.cancel_scope.cancel()
        await wait_for(lambda: not child.is_running())


async def test_a_session_that_is_not_used_ends_and_the_next_request_opens_another(two: Place):
    two.configure('[serve]\ntokens = ["ALICE"]\nidle = 0.5\n')
    with serving_web(two) as web:
        async with web.client(MODERN) as client:
            await client.call_tool("wait", {"seconds": 0.1})
            await wait_for(lambda: '"event":"end"' in two.audit[-1])
            actions = result_fields(await client.call_tool("get_action_history", {}))["actions"]
    assert actions == []


def test_without_tokens_one_is_made_and_left_for_its_owner_alone(place: Place):
    with serving_web(place) as web:
        folder = Path(place.environment["HANDRAIL_HOME"], "state", "serve")
        anyio.run(wait_for, lambda: list(folder.glob("*.json")))
        (file,) = folder.glob("*.json")
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        server = json.loads(file.read_text())["mcpServers"]["handrail"]
        token = server["headers"]["Authorization"].removeprefix("Bearer ")
        assert server["url"] == web.url
        assert web.post(token=token).status_code == 200
        assert str(file) in web.errors
        assert token not in web.errors
        assert end(web) == 0
        assert not file.exists()


@pytest.mark.parametrize(
    ("args", "settings", "said"),
    [
        (["--host", "0.0.0.0"], "", "ssh -L"),
        (["--host", "192.0.2.1"], "", "this one only"),
        (["--host", "example.org"], "", "127.0.0.1"),
        (["--port", "70000"], "", "65535"),
        ([], '[serve]\ntokens = ["NO_SUCH"]\n', "serve.tokens"),
        ([], '[serve]\ntokens = ["SHORT"]\n', "at least 32"),
        ([], '[serve]\ntokens = ["ALICE", "SAME"]\n', "the same token"),
    ],
)
def test_what_cannot_be_served_is_said_with_the_cure(two: Place, args: list[str], settings: str, said: str):
    two.configure(settings)
    two.environment.update(SHORT="swordfish", SAME=ALICE)
    done = subprocess.run(
        [str(HANDRAIL), "serve", "--http", *args], env=two.environment, cwd=two.folder, capture_output=True, timeout=60
    )
    assert done.returncode in (1, 2)
    assert said in done.stderr.decode()
    assert b"swordfish" not in done.stderr
    assert done.stdout == b""


def test_a_port_that_is_taken_is_said(two: Place):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        done = subprocess.run(
            [str(HANDRAIL), "serve", "--http", "--port", port], env=two.environment, capture_output=True, timeout=60
        )
    assert done.returncode == 1
    assert b"--port 0" in done.stderr


@pytest.mark.skipif(not os.path.exists("/proc/net/if_inet6"), reason="this machine has no IPv6")
def test_the_loopback_of_ipv6_is_served_too(two: Place):
    with serving_web(two, "--host", "::1") as web:
        assert web.url.startswith("http://[::1]:")
        assert web.post().status_code == 200

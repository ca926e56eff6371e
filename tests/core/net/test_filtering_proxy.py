"""A confined program's only way out: it reaches the hosts of its list and no others, whatever it says."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import ssl
import subprocess
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from handrail.net.allowed_hosts import AllowedHosts
from handrail.net.client_hello import NotClientHello, parse_client_hello
from handrail.net.filtering_proxy import FilteringProxy, RefusedConnection
from handrail.net.http_heads import BadRequest, parse_request
from handrail.net.outbound import OutboundConnector

# Names of these tests: each leads to this machine, whose address is allowed like a registry of one's own network.
NAMES = {
    "good.example": "127.0.0.1",
    "other.example": "127.0.0.1",
    "xn--bcher-kva.example": "127.0.0.1",
    "inner.example": "10.1.2.3",
    "meta.example": "169.254.169.254",
}


async def resolve(host: str, port: int) -> Sequence[str]:
    """Look a name of these tests up."""
    return [NAMES[host]]


@dataclass
class Server:
    """A server of ours, with all that it was sent."""

    port: int = 0
    heard: list[bytes] = field(default_factory=list[bytes])
    answer: bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-Kept: yes\r\nConnection: keep-alive\r\n\r\nhello"
    sent: int = 0
    endless: bool = False

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            at = len(self.heard)
            self.heard.append(head)
            writer.write(self.answer)
            while self.endless:
                writer.write(bytes(65_536))
                await writer.drain()
                self.sent += 65_536
            while data := await reader.read(65_536):
                self.heard[at] += data
        writer.close()


@asynccontextmanager
async def listening(tls: ssl.SSLContext | None = None) -> AsyncGenerator[Server]:
    server = Server()
    opened = await asyncio.start_server(server.serve, "127.0.0.1", 0, ssl=tls)
    server.port = opened.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        opened.close()


@pytest.fixture
async def server() -> AsyncGenerator[Server]:
    async with listening() as opened:
        yield opened


@dataclass
class Way:
    """A running proxy: where it listens and what it has refused."""

    port: int
    refused: list[RefusedConnection]

    async def say(self, *parts: bytes) -> bytes:
        """Send bytes to the proxy and return all that it answers."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            for part in parts:
                writer.write(part)
                await writer.drain()
            async with asyncio.timeout(10):
                return await reader.read(-1)
        finally:
            writer.close()

    async def get(self, url: str, *headers: str) -> bytes:
        """Return the answer to a request for an address, with these headers beside Host."""
        host = url.partition("://")[2].partition("/")[0]
        lines = [f"GET {url} HTTP/1.1", f"Host: {host}", *headers, "", ""]
        return await self.say("\r\n".join(lines).encode())

    async def connect(self, authority: str) -> tuple[bytes, asyncio.StreamReader, asyncio.StreamWriter]:
        """Ask for a tunnel; the first line of the answer, and the connection."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n".encode())
        head = await reader.readuntil(b"\r\n\r\n")
        return head.partition(b"\r\n")[0], reader, writer

    async def asked_for(self, authority: str) -> bytes:
        """The first line of the answer to who asks for a tunnel."""
        line, _, writer = await self.connect(authority)
        writer.transport.abort()
        return line


@asynccontextmanager
async def proxying(*hosts: str, **outward: object) -> AsyncGenerator[Way]:
    """A proxy for these hosts."""
    refused: list[RefusedConnection] = []
    known = {"allow_private": ("127.0.0.1",), "resolver": resolve, **outward}
    proxy = FilteringProxy(AllowedHosts.of(hosts), OutboundConnector(**known), refused.append)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        serving = asyncio.create_task(proxy.serve(listener))
        try:
            yield Way(listener.getsockname()[1], refused)
        finally:
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)


# What is let through


async def test_a_request_to_an_allowed_host_is_handed_on_as_the_server_expects_it(server: Server) -> None:
    async with proxying(f"good.example:{server.port}") as way:
        answer = await way.get(
            f"http://good.example:{server.port}/a?b=c", "Proxy-Authorization: x", "X-Mine: 1", "TE: y"
        )
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"X-Kept: yes" in answer
    assert answer.endswith(b"Connection: close\r\n\r\nhello")
    lines = server.heard[0].decode().split("\r\n")
    assert lines[0] == "GET /a?b=c HTTP/1.1"
    assert f"Host: good.example:{server.port}" in lines
    assert "X-Mine: 1" in lines
    assert not [line for line in lines if line.startswith(("Proxy-", "TE"))]


@pytest.mark.parametrize("written", ["GOOD.Example", "good.example.", "bücher.example"])
async def test_a_host_is_the_same_in_any_spelling_that_means_it(server: Server, written: str) -> None:
    name = written.encode("idna").decode()
    async with proxying(f"good.example:{server.port}", f"bücher.example:{server.port}") as way:
        assert b" 200 " in await way.get(f"http://{name}:{server.port}/")


@pytest.mark.parametrize("chunked", [True, False])
async def test_a_body_is_handed_on_and_nothing_behind_it(server: Server, *, chunked: bool) -> None:
    framing = b"Transfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\nTrailer: t\r\n\r\n"
    body = framing if chunked else b"Content-Length: 3\r\n\r\nabc"
    target = f"good.example:{server.port}".encode()
    second = b"GET http://" + target + b"/second HTTP/1.1\r\nHost: " + target + b"\r\n\r\n"
    async with proxying(target.decode()) as way:
        head = b"POST http://" + target + b"/first HTTP/1.1\r\nHost: " + target + b"\r\n"
        answer = await way.say(head + body + second)
    assert answer.count(b"HTTP/1.1 ") == 1
    assert len(server.heard) == 1
    assert b"second" not in server.heard[0]
    assert b"Trailer" not in server.heard[0]
    assert server.heard[0].endswith(b"3\r\nabc\r\n0\r\n\r\n" if chunked else b"abc")


@pytest.mark.parametrize("name", ["Content-Length", "transfer-encoding", "HOST"])
async def test_a_header_that_every_hop_needs_is_not_left_out(server: Server, name: str) -> None:
    target = f"good.example:{server.port}"
    head = f"POST http://{target}/a HTTP/1.1\r\nHost: {target}\r\nConnection: close, {name}\r\nContent-Length: 3\r\n\r\nabc"
    async with proxying(target) as way:
        answer = await way.say(head.encode())
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert not server.heard


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("certificate") / "both.pem"
    words = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=good.example"]
    names = ["-addext", "subjectAltName=DNS:good.example,DNS:other.example"]
    subprocess.run([*words, *names, "-keyout", file, "-out", file], check=True, capture_output=True)
    return file


@pytest.fixture
async def secure(certificate: Path) -> AsyncGenerator[Server]:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)
    async with listening(context) as opened:
        yield opened


async def through_tls(way: Way, authority: str, certificate: Path, *, name: str | None) -> bytes:
    """Return a server's answer through a tunnel to `authority`, asked for under this name."""
    context = ssl.create_default_context(cafile=str(certificate))
    if name is None:
        context.check_hostname = False
    line, reader, writer = await way.connect(authority)
    assert b" 200 " in line, line
    try:
        async with asyncio.timeout(10):
            await writer.start_tls(context, server_hostname=name)
            writer.write(b"GET / HTTP/1.1\r\n\r\n")
            return await reader.read(1_000)
    except (OSError, ssl.SSLError):
        return b""
    finally:
        writer.transport.abort()


async def test_tls_goes_through_a_tunnel_to_the_host_it_asks_for(secure: Server, certificate: Path) -> None:
    place = f"good.example:{secure.port}"
    async with proxying(place) as way:
        assert (await through_tls(way, place, certificate, name="good.example")).endswith(b"hello")
    assert not way.refused


async def test_a_client_may_end_its_side_first(server: Server) -> None:
    async with proxying(f"good.example:{server.port}") as way:
        reader, writer = await asyncio.open_connection("127.0.0.1", way.port)
        host = f"good.example:{server.port}"
        writer.write(f"GET http://{host}/ HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        writer.write_eof()
        assert (await reader.read(-1)).endswith(b"hello")
        writer.close()


# What is refused


@pytest.mark.parametrize(
    ("host", "why"),
    [
        ("other.example", "not_allowed"),
        ("evil-good.example", "not_allowed"),
        ("good.example.attacker.example", "not_allowed"),
        ("sub.good.example", "not_allowed"),
        ("example", "not_public"),
        ("169.254.169.254", "not_public"),
        ("[::ffff:169.254.169.254]", "not_public"),
        ("metadata.google.internal", "not_public"),
        ("10.0.0.1", "not_public"),
        ("localhost", "not_public"),
        ("[::1]", "not_public"),
    ],
)
async def test_no_other_host_is_reached_and_each_is_told(host: str, why: str) -> None:
    async with proxying("good.example") as way:
        for answer in (await way.get(f"http://{host}/"), await way.asked_for(f"{host}:443")):
            assert answer.startswith(b"HTTP/1.1 403 ")
    assert {refused.why for refused in way.refused} == {why}


async def test_other_ports_pass_only_where_they_are_named(server: Server) -> None:
    async with proxying("good.example", "other.example:8443") as way:
        assert (await way.asked_for(f"good.example:{server.port}")).startswith(b"HTTP/1.1 403")
        assert (await way.asked_for("other.example:443")).startswith(b"HTTP/1.1 403")
    assert [refused.place for refused in way.refused] == [f"good.example:{server.port}", "other.example"]


@pytest.mark.parametrize("name", ["inner.example", "meta.example"])
async def test_an_allowed_name_that_leads_to_a_private_place_is_refused(name: str) -> None:
    async with proxying(name) as way:
        assert (await way.get(f"http://{name}/")).startswith(b"HTTP/1.1 403 ")
        assert (await way.asked_for(f"{name}:443")).startswith(b"HTTP/1.1 403 ")
    assert {refused.why for refused in way.refused} == {"not_public"}
    assert all(refused.text.startswith(f"the sandbox refused a connection to {name}: ") for refused in way.refused)


async def test_an_address_of_this_machine_is_reached_by_its_own_name_alone(server: Server) -> None:
    """A grant of a port here must not let another allowed name lead to the ports that this name is allowed."""
    hosts = f"127.0.0.1:{server.port}", f"good.example:{server.port}"
    async with proxying(*hosts, allow_private=(), own_names=("127.0.0.1",)) as way:
        assert b" 200 " in await way.get(f"http://127.0.0.1:{server.port}/")
        assert (await way.get(f"http://good.example:{server.port}/")).startswith(b"HTTP/1.1 403 ")
        assert (await way.asked_for(f"good.example:{server.port}")).startswith(b"HTTP/1.1 403 ")
    assert next((refused.place, refused.why) for refused in way.refused) == (
        f"good.example:{server.port}",
        "not_public",
    )
    assert len(server.heard) == 1


async def test_the_address_that_was_checked_is_the_one_that_is_connected_to(server: Server) -> None:
    """The name leads elsewhere a moment later, as attackers' servers have it."""
    answers = iter((["127.0.0.1"], ["10.0.0.1"], ["169.254.169.254"]))

    async def turning(host: str, port: int) -> Sequence[str]:
        return next(answers)

    async with proxying(f"good.example:{server.port}", resolver=turning) as way:
        url = f"http://good.example:{server.port}/"
        assert b" 200 " in await way.get(url)
        assert b" 403 " in await way.get(url)
        assert b" 403 " in await way.get(url)


HOST = "Host: good.example"


@pytest.mark.parametrize(
    "request_text",
    [
        pytest.param("GET / HTTP/1.1\r\nHost: good.example", id="no-whole-address"),
        pytest.param(f"GET https://good.example/ HTTP/1.1\r\n{HOST}", id="https-without-tunnel"),
        pytest.param(f"GET ftp://good.example/ HTTP/1.1\r\n{HOST}", id="another-scheme"),
        pytest.param(f"GET http://user@good.example/ HTTP/1.1\r\n{HOST}", id="user-in-front"),
        pytest.param(f"GET http://other.example\\@good.example/ HTTP/1.1\r\n{HOST}", id="backslash"),
        pytest.param("GET http://good.example/ HTTP/1.1\r\nHost: other.example", id="another-host-header"),
        pytest.param(f"GET http://good.example/ HTTP/1.1\r\n{HOST}\r\nHost: other.example", id="two-hosts"),
        pytest.param("GET http://good.example/ HTTP/1.1\r\nX: y", id="no-host"),
        pytest.param(f"GET http://good.example/ HTTP/1.1\r\n{HOST}\r\nX : y", id="blank-before-colon"),
        pytest.param(f"GET http://good.example/ HTTP/1.1\r\n{HOST}\r\n continued", id="folded-header"),
        pytest.param(f"GET http://good.example/ HTTP/1.1\r\n{HOST}\nX: y", id="bare-line-feed"),
        pytest.param(f"GET http://good.example/ HTTP/1.1\r\n{HOST}\rX: y", id="bare-return"),
        pytest.param(f"GET http://good.example/\0 HTTP/1.1\r\n{HOST}", id="nul-in-address"),
        pytest.param("GET http://good.example\0.attacker.example/ HTTP/1.1\r\nHost: good.example\0", id="nul-in-host"),
        pytest.param(f"GET http://good.example/ HTTP/1.1\r\n{HOST}\r\nX: \0", id="nul-in-header"),
        pytest.param(f"GET  http://good.example/ HTTP/1.1\r\n{HOST}", id="two-blanks"),
        pytest.param(f"GET http://good.example/ HTTP/2.0\r\n{HOST}", id="another-version"),
        pytest.param("PRI * HTTP/2.0", id="http-2"),
        pytest.param(
            f"POST http://good.example/ HTTP/1.1\r\n{HOST}\r\nContent-Length: 1\r\nTransfer-Encoding: chunked",
            id="two-lengths",
        ),
        pytest.param(
            f"POST http://good.example/ HTTP/1.1\r\n{HOST}\r\nContent-Length: 1\r\nContent-Length: 2", id="length-twice"
        ),
        pytest.param(f"POST http://good.example/ HTTP/1.1\r\n{HOST}\r\nContent-Length: +1", id="signed-length"),
        pytest.param(
            f"POST http://good.example/ HTTP/1.1\r\n{HOST}\r\nTransfer-Encoding: x, chunked", id="another-coding"
        ),
        pytest.param("CONNECT good.example HTTP/1.1\r\nHost: good.example", id="tunnel-without-port"),
        pytest.param("CONNECT good.example:443 HTTP/1.1\r\nHost: other.example:443", id="tunnel-for-another-host"),
        pytest.param(f"CONNECT good.example:443 HTTP/1.1\r\n{HOST}\r\nContent-Length: 5", id="tunnel-with-body"),
        pytest.param("CONNECT http://good.example/ HTTP/1.1\r\nHost: good.example", id="tunnel-to-an-address"),
        pytest.param("CONNECT 2852039166:443 HTTP/1.1\r\nHost: 2852039166", id="address-as-a-number"),
        pytest.param("GET http://0x7f.1/ HTTP/1.1\r\nHost: 0x7f.1", id="address-in-hexadecimal"),
        pytest.param("CONNECT good.example:99999 HTTP/1.1\r\nHost: good.example", id="no-such-port"),
    ],
)
async def test_what_two_programs_could_read_differently_is_not_handed_on(request_text: str) -> None:
    async with proxying("good.example") as way:
        answer = await way.say(request_text.encode("latin-1") + b"\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 400 ")


async def test_a_chunk_without_a_clear_size_cuts_the_request_off(server: Server) -> None:
    target = f"good.example:{server.port}"
    server.answer = b""
    head = f"POST http://{target}/ HTTP/1.1\r\nHost: {target}\r\nTransfer-Encoding: chunked\r\n\r\n"
    async with proxying(target) as way:
        await way.say(head.encode() + b"0x3\r\nabc\r\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n")
    assert not server.heard or b"abc" not in server.heard[0]


@pytest.mark.parametrize("name", ["other.example", "GOOD.example.evil.example"])
async def test_a_tunnel_stays_with_the_host_it_was_made_to(secure: Server, certificate: Path, name: str) -> None:
    place = f"good.example:{secure.port}"
    async with proxying(place, f"other.example:{secure.port}") as way:
        assert await through_tls(way, place, certificate, name=name) == b""
    assert [(refused.place, refused.why) for refused in way.refused] == [(place, "other_host")]
    assert not secure.heard


async def test_a_client_that_names_no_server_goes_through(secure: Server, certificate: Path) -> None:
    place = f"good.example:{secure.port}"
    async with proxying(place) as way:
        assert (await through_tls(way, place, certificate, name=None)).endswith(b"hello")


@pytest.mark.parametrize(
    "said",
    [
        b"GET / HTTP/1.1\r\nHost: other.example\r\n\r\n",
        b"SSH-2.0-x\r\n",
        b"\x16\x03\x01\xff\xff" + bytes(70_000),
        b"\x16\x03",
    ],
    ids=["http", "ssh", "too-long", "cut-off"],
)
async def test_a_tunnel_is_for_tls_only(server: Server, said: bytes) -> None:
    async with proxying(f"good.example:{server.port}") as way:
        _, reader, writer = await way.connect(f"good.example:{server.port}")
        writer.write(said)
        writer.write_eof()
        with contextlib.suppress(ConnectionError):
            assert await reader.read(-1) == b""
        writer.close()
    assert not server.heard


# The host's own proxy


@dataclass
class Upstream:
    """A proxy of a company: what it was asked, and where it connects to instead."""

    target: int
    port: int = 0
    asked: list[str] = field(default_factory=list[str])

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        self.asked.append(head.decode())
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self.target)
        if head.startswith(b"CONNECT"):
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        else:
            far_writer.write(head)

        async def copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
            with contextlib.suppress(OSError):
                while data := await source.read(65_536):
                    target.write(data)
            target.close()

        await asyncio.gather(copy(reader, far_writer), copy(far_reader, writer))


@asynccontextmanager
async def company_proxy(target: int) -> AsyncGenerator[Upstream]:
    upstream = Upstream(target)
    opened = await asyncio.start_server(upstream.serve, "127.0.0.1", 0)
    upstream.port = opened.sockets[0].getsockname()[1]
    try:
        yield upstream
    finally:
        opened.close()


async def nobody(host: str, port: int) -> Sequence[str]:
    """Look names up as a network does that knows no public ones."""
    return []


@pytest.mark.parametrize("resolver", [resolve, nobody])
async def test_the_hosts_own_proxy_is_used_and_gets_its_password(
    secure: Server, certificate: Path, resolver: Callable[..., object]
) -> None:
    place = f"good.example:{secure.port}"
    async with company_proxy(secure.port) as upstream:
        variables = {"HTTPS_PROXY": f"http://us%65r:secret@127.0.0.1:{upstream.port}"}
        async with proxying(place, environment=variables, resolver=resolver) as way:
            assert (await through_tls(way, place, certificate, name="good.example")).endswith(b"hello")
    assert upstream.asked[0].startswith(f"CONNECT {place} HTTP/1.1\r\n")
    assert "Proxy-Authorization: Basic dXNlcjpzZWNyZXQ=" in upstream.asked[0]


async def test_requests_without_tls_reach_the_hosts_own_proxy_with_their_whole_address(server: Server) -> None:
    host = f"good.example:{server.port}"
    async with company_proxy(server.port) as upstream:
        variables = {"http_proxy": f"127.0.0.1:{upstream.port}", "NO_PROXY": "other.example,.lan"}
        async with proxying(host, environment=variables) as way:
            assert b" 200 " in await way.get(f"http://{host}/x")
    assert upstream.asked[0].startswith(f"GET http://{host}/x HTTP/1.1\r\n")


@pytest.mark.parametrize("exempt", ["good.example", ".example", "*", "127.0.0.1, good.example", "*.example"])
async def test_what_the_host_exempts_from_its_proxy_is_reached_directly(server: Server, exempt: str) -> None:
    host = f"good.example:{server.port}"
    variables = {"http_proxy": "http://127.0.0.1:9", "no_proxy": exempt}
    async with proxying(host, environment=variables) as way:
        assert b" 200 " in await way.get(f"http://{host}/x")


async def test_a_proxy_of_another_kind_is_named_and_not_passed_by(server: Server) -> None:
    host = f"good.example:{server.port}"
    async with proxying(host, environment={"ALL_PROXY": "socks5://127.0.0.1:9"}) as way:
        answer = await way.asked_for(host)
    assert answer.startswith(b"HTTP/1.1 502 ")
    assert "socks5" in way.refused[0].text
    assert not server.heard


async def test_a_request_to_a_server_that_is_not_there_gets_no_answer_and_is_told_of() -> None:
    async with proxying("good.example:9") as way:
        assert await way.get("http://good.example:9/x") == b""
    assert [(each.place, each.why) for each in way.refused] == [("good.example:9", "unreachable")]


async def test_a_private_place_is_refused_whatever_proxy_there_is() -> None:
    async with proxying("meta.example", environment={"HTTPS_PROXY": "http://127.0.0.1:9"}) as way:
        assert (await way.asked_for("meta.example:443")).startswith(b"HTTP/1.1 403 ")


# Memory and descriptors


async def test_a_client_that_does_not_read_makes_the_server_wait(server: Server) -> None:
    server.answer, server.endless = b"HTTP/1.1 200 OK\r\n\r\n", True
    host = f"good.example:{server.port}"
    async with proxying(host) as way:
        _, writer = await asyncio.open_connection("127.0.0.1", way.port, limit=1_000)
        writer.write(f"GET http://{host}/ HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        before = -1
        async with asyncio.timeout(20):
            while server.sent != before or not server.sent:
                before = server.sent
                await asyncio.sleep(0.5)
        assert server.sent < 32 * 2**20
        writer.transport.abort()
        server.endless = False


async def test_nothing_is_left_of_many_connections(server: Server) -> None:
    host = f"good.example:{server.port}"
    async with proxying(host) as way:
        await way.get(f"http://{host}/")
        before, tasks = len(os.listdir("/proc/self/fd")), len(asyncio.all_tasks())
        for _ in range(10):
            await asyncio.gather(*(way.get(f"http://{host}/") for _ in range(20)))
            await asyncio.gather(*(way.get("http://other.example/") for _ in range(5)))
        async with asyncio.timeout(10):
            while len(os.listdir("/proc/self/fd")) > before + 2 or len(asyncio.all_tasks()) > tasks + 2:
                await asyncio.sleep(0.1)


async def test_more_connections_than_are_taken_at_a_time_wait(server: Server) -> None:
    host = f"good.example:{server.port}"
    async with proxying(host) as way:
        idle = [await asyncio.open_connection("127.0.0.1", way.port) for _ in range(200)]
        later = asyncio.create_task(way.get(f"http://{host}/"))
        await asyncio.sleep(0.3)
        for _, writer in idle:
            writer.transport.abort()
        assert b" 200 " in await later


# Reading


@given(st.binary(max_size=400))
def test_any_bytes_are_a_request_or_none(data: bytes) -> None:
    with contextlib.suppress(BadRequest):
        parse_request(data)


@given(st.binary(max_size=400), st.booleans())
def test_any_bytes_are_a_first_message_or_none(data: bytes, begun: bool) -> None:
    with contextlib.suppress(NotClientHello):
        parse_client_hello(b"\x16\x03\x01\x01\x00" + data if begun else data)


def client_hello(name: str) -> bytes:
    """The first message that OpenSSL sends for a server of this name."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.create_default_context()
    with contextlib.suppress(ssl.SSLWantReadError):
        context.wrap_bio(incoming, outgoing, server_hostname=name).do_handshake()
    return outgoing.read()


def test_a_first_message_is_read_in_any_pieces() -> None:
    whole = client_hello("good.example")
    assert all(parse_client_hello(whole[:size]) is None for size in range(len(whole)))
    body = whole[5:]
    pieces = [body[at : at + 40] for at in range(0, len(body), 40)]
    split = b"".join(b"\x16\x03\x01" + len(piece).to_bytes(2) + piece for piece in pieces)
    for message in (whole, split):
        found = parse_client_hello(message)
        assert found is not None
        assert found.server_name == "good.example"


def with_extension(hello: bytes, kind: int, body: bytes) -> bytes:
    """A first message with one more extension at its end."""
    extension = kind.to_bytes(2) + len(body).to_bytes(2) + body
    message = hello[9:]
    at = 34 + 1 + message[34]
    at += 2 + int.from_bytes(message[at : at + 2])
    at += 1 + message[at]
    size = int.from_bytes(message[at : at + 2]) + len(extension)
    message = message[:at] + size.to_bytes(2) + message[at + 2 :] + extension
    body = b"\x01" + len(message).to_bytes(3) + message
    return b"\x16\x03\x01" + len(body).to_bytes(2) + body


def test_a_hidden_server_name_is_noticed() -> None:
    hidden = parse_client_hello(with_extension(client_hello("good.example"), 0xFE0D, b"\x00" * 8))
    assert hidden is not None
    assert hidden.encrypted


def test_a_second_server_name_is_refused() -> None:
    name = b"other.example"
    listed = b"\x00" + len(name).to_bytes(2) + name
    second = with_extension(client_hello("good.example"), 0, len(listed).to_bytes(2) + listed)
    with pytest.raises(NotClientHello, match="several"):
        parse_client_hello(second)


@pytest.mark.parametrize(
    "text", ["", "*", "a b", "x:y", "http://x", "x:0", "x:70000", "*.1.2.3.4", "x/y", "u@x", "*.*.x", "[::1"]
)
def test_what_is_no_host_is_no_entry_of_a_list(text: str) -> None:
    with pytest.raises(ValueError, match="is not a host"):
        AllowedHosts.of([text])


def test_a_star_stands_for_names_below() -> None:
    allowed = AllowedHosts.of(["*.good.example", "[2606:4700::1111]:8443"])
    assert allowed.permits("a.b.good.example", 443)
    assert not allowed.permits("good.example", 443)
    assert not allowed.permits("evilgood.example", 443)
    assert allowed.covers("x.good.example")
    assert not allowed.covers("x.good.example:8080")
    assert allowed.covers("[2606:4700::1111]:8443")

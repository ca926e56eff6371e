"""Connections go where they were checked to go: over real sockets, on this machine only."""

from __future__ import annotations

import asyncio
import gzip
import socket
import ssl
import subprocess
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import pytest

from handrail import Denied, Downstream, TimedOut
from handrail.net.resolver import HostResolver, find_refusal_reason, resolve_public
from handrail.net.urls import UrlView
from handrail.net.web_client import ConnectionBroken, RequestLimits, WebClient

PUBLIC = "93.184.215.14"
LOOPBACK = ("127.0.0.1", "::1")


@dataclass
class Served:
    """A server of ours: where it listens, what it answers by path, and what it was asked."""

    port: int = 0
    answers: dict[str, bytes] = field(default_factory=dict[str, bytes])
    asked: list[str] = field(default_factory=list[str])
    over: asyncio.Event = field(default_factory=asyncio.Event)
    handlers: set[asyncio.Task[None] | None] = field(default_factory=set["asyncio.Task[None] | None"])

    def answer(self, path: str, body: bytes = b"", status: int = 200, **headers: str) -> None:
        lines = [f"HTTP/1.1 {status} X", f"content-length: {len(body)}", "connection: close"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        self.answers[path] = "\r\n".join([*lines, "", ""]).encode() + body

    def url(self, path: str, host: str = "good.example") -> str:
        return f"http://{host}:{self.port}{path}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.handlers.add(asyncio.current_task())
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        self.asked.append(head)
        path = head.split(" ")[1]
        if path in self.answers:
            writer.write(self.answers[path])
            await writer.drain()
        else:
            await self.over.wait()
        writer.close()
        await writer.wait_closed()


@asynccontextmanager
async def serving(host: str = "127.0.0.1", *, tls: ssl.SSLContext | None = None) -> AsyncGenerator[Served, None]:
    served = Served()
    server = await asyncio.start_server(served.serve, host, 0, ssl=tls)
    served.port = server.sockets[0].getsockname()[1]
    try:
        yield served
    finally:
        served.over.set()
        server.close()
        # They end their connections: what is left open would be reported in a later test.
        if handlers := [task for task in served.handlers if task is not None]:
            await asyncio.wait(handlers, timeout=5)


@pytest.fixture
async def server() -> AsyncGenerator[Served, None]:
    async with serving() as served:
        yield served


def answering(**names: Sequence[str]) -> HostResolver:
    """A resolver that knows these names (`_` for `.`)."""

    async def resolve(host: str, port: int) -> Sequence[str]:
        return names[host.replace(".", "_")]

    return resolve


async def yes(view: UrlView) -> bool:
    return True


def local(**given: object) -> WebClient:
    """A client to which this machine's own addresses are allowed."""
    known = answering(good_example=["127.0.0.1"], other_example=["127.0.0.1"], six_example=["::1"])
    return WebClient(**{"allow_private": LOOPBACK, "resolver": known, "approve": yes, **given})


async def got(web: WebClient, url: str, **given: object) -> bytes:
    async with web, web.request(url, **given) as answer:  # type: ignore[arg-type]
        return await answer.read()


@pytest.mark.parametrize(
    "found",
    [
        ["127.0.0.1"],
        [PUBLIC, "10.0.0.1"],
        ["::ffff:127.0.0.1"],
        ["fe80::1%eth0"],
        ["64:ff9b::a9fe:a9fe"],
        [PUBLIC, "169.254.169.254"],
        ["203.0.113.1"],
    ],
)
async def test_a_name_with_any_address_that_is_not_public_is_refused(found: list[str]) -> None:
    with pytest.raises(Denied):
        await resolve_public("x.example", 80, resolver=answering(x_example=found))


async def test_all_addresses_of_a_public_name_are_given() -> None:
    found = await resolve_public("x.example", 80, resolver=answering(x_example=[PUBLIC, "2606:4700::1111", PUBLIC]))
    assert [str(address) for address in found] == [PUBLIC, "2606:4700::1111"]


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "169.254.169.254", "localhost"])
async def test_this_machine_is_refused_by_address_and_by_the_systems_own_resolver(host: str) -> None:
    with pytest.raises(Denied):
        await resolve_public(host, 80)


async def test_a_name_that_a_person_allowed_may_be_private_but_no_metadata_service() -> None:
    known = answering(printer_lan=["192.168.1.7"], trap_lan=["169.254.169.254"])
    allowed = ("printer.lan", "trap.lan")
    assert await resolve_public("printer.lan", 80, allow_private=allowed, resolver=known)
    with pytest.raises(Denied):
        await resolve_public("trap.lan", 80, allow_private=allowed, resolver=known)


@pytest.mark.parametrize("address", ["192.0.2.7", "10.0.0.7"])
async def test_a_refusal_says_what_the_name_leads_to_and_what_a_person_can_do(address: str) -> None:
    with pytest.raises(Denied, match=f"^'x.example' leads to {address}, which is a") as refused:
        await resolve_public("x.example", 80, resolver=answering(x_example=[address]))
    assert "allow_private" in (refused.value.hint or "")


async def test_an_unknown_name_is_said_to_be_unknown() -> None:
    with pytest.raises(Downstream, match="no address"):
        await resolve_public("x.example", 80, resolver=answering(x_example=[]))


async def test_a_page_is_fetched_under_its_own_name(server: Served) -> None:
    server.answer("/a", b"hello")
    assert await got(local(), server.url("/a")) == b"hello"
    assert f"Host: good.example:{server.port}" in server.asked[0]


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key and a certificate for good.example that it signed itself, in one file."""
    file = tmp_path_factory.mktemp("tls") / "both.pem"
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=good.example",
    ]
    command += ["-addext", "subjectAltName=DNS:good.example", "-keyout", str(file), "-out", f"{file}.crt"]
    subprocess.run(command, check=True, capture_output=True)
    file.write_bytes(file.read_bytes() + Path(f"{file}.crt").read_bytes())
    return file


async def test_a_certificate_is_checked_for_the_name_that_was_asked_for(certificate: Path) -> None:
    mine = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    mine.load_cert_chain(certificate)
    trusting = ssl.create_default_context(cafile=f"{certificate}.crt")
    async with serving(tls=mine) as server:
        server.answer("/a", b"hello")
        server.answer("/b", status=302, location=server.url("/a"))
        secure = server.url("/a").replace("http:", "https:")
        assert await got(local(verify=trusting), secure) == b"hello"
        with pytest.raises(Downstream, match="could not be fetched"):
            await got(local(verify=trusting), secure.replace("good.", "other."))
        with pytest.raises(Downstream, match="could not be fetched"):
            await got(local(), secure)
        with pytest.raises(Denied, match="from https to http"):
            await got(local(verify=trusting), secure.replace("/a", "/b"))


async def test_ipv6_is_connected_to() -> None:
    async with serving("::1") as server:
        server.answer("/a", b"six")
        assert await got(local(), server.url("/a", "six.example")) == b"six"
        assert await got(local(), server.url("/a", "[::1]")) == b"six"


async def test_the_next_address_is_tried_when_one_does_not_answer(server: Served) -> None:
    server.answer("/a", b"hello")
    both = answering(good_example=["::1", "127.0.0.1"])
    assert await got(local(resolver=both), server.url("/a")) == b"hello"


async def test_a_name_that_is_bound_anew_after_the_check_is_not_connected_to(server: Served) -> None:
    server.answer("/a", b"SECRET")
    answers = iter([[PUBLIC], ["127.0.0.1"]])

    async def rebinding(host: str, port: int) -> Sequence[str]:
        return next(answers)

    assert await resolve_public("x.example", server.port, resolver=rebinding)
    with pytest.raises(Denied, match="loopback"):
        await got(WebClient(resolver=rebinding), server.url("/a", "x.example"))
    assert server.asked == []


async def test_a_connection_asks_for_the_name_once_and_goes_to_what_it_got(server: Served) -> None:
    server.answer("/a", b"hello")
    asked: list[str] = []

    async def counting(host: str, port: int) -> Sequence[str]:
        asked.append(host)
        return ["127.0.0.1"] if len(asked) == 1 else ["127.9.9.9"]

    assert await got(local(resolver=counting), server.url("/a")) == b"hello"
    assert asked == ["good.example"]


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:1/", "http://localhost/", "file:///etc/passwd", "view-source:https://x.example/"]
)
async def test_a_first_address_that_is_denied_is_not_asked_for(url: str) -> None:
    with pytest.raises(Denied):
        await got(WebClient(resolver=answering()), url)


async def test_redirects_are_followed_and_told(server: Served) -> None:
    server.answer("/a", status=302, location="/b?x=1")
    server.answer("/b?x=1", b"hello")
    async with local(approve=None) as web, web.request(server.url("/a")) as answer:
        assert await answer.read() == b"hello"
        assert (answer.status, answer.url) == (200, server.url("/b?x=1"))
        assert answer.hops == (server.url("/a"), server.url("/b?x=1"))


@pytest.mark.parametrize(
    "location",
    [
        "http://127.0.0.1:9/",
        "http://169.254.169.254/latest/",
        "http://[::1]/",
        "//2130706433/",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "http:127.0.0.1/",
        "http://private.example/",
        "view-source:http://good.example/",
    ],
)
async def test_every_hop_is_judged(server: Served, location: str) -> None:
    server.answer("/a", status=302, location=location)
    known = answering(good_example=["127.0.0.1"], private_example=["10.0.0.1"])
    web = WebClient(allow_private=("good.example",), resolver=known, approve=yes)
    with pytest.raises(Denied):
        await got(web, server.url("/a"))
    assert len(server.asked) == 1


async def test_a_hop_that_a_person_should_see_first_is_asked_about(server: Served) -> None:
    server.answer("/a", status=302, location=server.url("/b", "other.example"))
    server.answer("/b", b"hello")
    with pytest.raises(Denied, match="nobody was asked about"):
        await got(local(approve=None), server.url("/a"))
    seen: list[str] = []

    async def note(view: UrlView) -> bool:
        seen.append(view.place)
        return True

    assert await got(local(approve=note), server.url("/a")) == b"hello"
    assert seen == [f"other.example:{server.port}"]


@pytest.mark.parametrize(("host", "kept"), [("good.example", True), ("other.example", False)])
async def test_credentials_stay_with_the_origin_they_were_given_to(server: Served, host: str, kept: bool) -> None:
    server.answer("/a", status=307, location=server.url("/b", host))
    server.answer("/b", b"hello")
    given = {"Authorization": "Bearer SECRET", "Cookie": "id=SECRET", "X-Own": "1"}
    await got(local(), server.url("/a"), headers=given)
    first, second = server.asked
    assert first.count("SECRET") == 2
    assert second.count("SECRET") == (2 if kept else 0)
    assert "x-own: 1" in second.lower()


async def test_what_is_sent_is_not_sent_on_to_another_origin(server: Served) -> None:
    server.answer("/a", status=307, location=server.url("/b", "other.example"))
    server.answer("/c", status=303, location=server.url("/b", "other.example"))
    server.answer("/b", b"hello")
    with pytest.raises(Denied, match="sent on"):
        await got(local(), server.url("/a"), method="POST", content=b"data")
    assert await got(local(), server.url("/c"), method="POST", content=b"data") == b"hello"
    assert server.asked[-1].startswith("GET /b ")


async def test_cookies_go_back_to_the_host_that_set_them_and_to_no_other(server: Served) -> None:
    server.answer("/a", status=302, location="/b", set_cookie="id=SECRET")
    server.answer("/b", status=302, location=server.url("/c", "other.example"))
    server.answer("/c", b"hello")
    await got(local(), server.url("/a"))
    assert ["SECRET" in head for head in server.asked] == [False, True, False]


async def test_a_circle_of_redirects_ends(server: Served) -> None:
    server.answer("/a", status=302, location="/a")
    with pytest.raises(Downstream, match="more than 3 times"):
        await got(local(limits=RequestLimits(hops=3)), server.url("/a"))
    assert len(server.asked) == 4


async def test_content_is_limited_after_decoding(server: Served) -> None:
    server.answer("/a", gzip.compress(bytes(5_000_000)), content_encoding="gzip")
    with pytest.raises(Downstream, match="more than 1,000,000 bytes"):
        await got(local(limits=RequestLimits(size=1_000_000)), server.url("/a"))


@pytest.mark.parametrize("limits", [RequestLimits(seconds=0.2), RequestLimits(silence=0.2)])
async def test_a_server_that_says_nothing_is_not_waited_for(server: Served, limits: RequestLimits) -> None:
    with pytest.raises((TimedOut, Downstream)):
        await got(local(limits=limits), server.url("/silent"))


async def test_a_server_that_drips_its_first_lines_is_not_waited_for(server: Served) -> None:
    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server.handlers.add(asyncio.current_task())
        with suppress(ConnectionError):
            while not server.over.is_set():
                writer.write(b"x")
                await writer.drain()
                await asyncio.sleep(0.02)
        writer.close()

    listening = await asyncio.start_server(drip, "127.0.0.1", 0)
    async with listening:
        port = listening.sockets[0].getsockname()[1]
        with anyio.fail_after(30), pytest.raises(ConnectionBroken, match=r"within 0\.2 s") as caught:
            await got(local(limits=RequestLimits(silence=0.2)), f"http://good.example:{port}/a")
        server.over.set()
    assert caught.value.retryable


async def test_what_cannot_be_decoded_is_no_broken_connection(server: Served) -> None:
    server.answer("/a", b"not packed", content_encoding="gzip")
    with pytest.raises(Downstream, match="cannot be unpacked") as caught:
        await got(local(), server.url("/a"))
    assert not isinstance(caught.value, ConnectionBroken)


async def test_an_answer_that_ends_early_is_broken(server: Served) -> None:
    server.answers["/a"] = b"HTTP/1.1 200 X\r\ncontent-length: 9\r\n\r\nhalf"
    with pytest.raises(ConnectionBroken, match="could not be fetched"):
        await got(local(), server.url("/a"))


async def test_no_error_shows_a_password(server: Served) -> None:
    server.answer("/a", gzip.compress(bytes(5_000)), content_encoding="gzip")
    with pytest.raises(Downstream) as caught:
        await got(local(limits=RequestLimits(size=10)), server.url("/a").replace("://", "://ada:SECRET@"))
    assert "SECRET" not in str(caught.value)


async def test_a_server_that_is_not_there_is_a_failure_of_its_own() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        with pytest.raises(Downstream, match="could not be fetched"):
            await got(local(), f"http://good.example:{taken.getsockname()[1]}/")


@pytest.mark.parametrize(
    ("url", "navigation", "code"),
    [
        ("https://good.example/", True, None),
        ("https://good.example:8443/x", True, None),
        ("data:image/png;base64,x", False, None),
        ("data:text/html,x", True, "scheme"),
        ("blob:https://good.example/x", False, None),
        ("about:blank", True, None),
        ("wss://good.example/", False, None),
        ("wss://good.example/", True, "scheme"),
        ("ws://127.0.0.1:9222/devtools", False, "private_address"),
        ("http://127.0.0.1/", True, "private_address"),
        ("http://private.example/", False, "private_address"),
        ("http://metadata.google.internal/", False, "metadata_address"),
        ("file:///etc/passwd", False, "scheme"),
        ("chrome://settings", True, "scheme"),
        ("view-source:https://good.example/", True, "browser_scheme"),
        ("https://good.example\\@127.0.0.1/", True, "backslash"),
    ],
)
async def test_a_browser_loads_nothing_from_this_machine_or_its_network(
    url: str, navigation: bool, code: str | None
) -> None:
    known = answering(good_example=[PUBLIC], private_example=[PUBLIC, "10.0.0.1"])
    why = await find_refusal_reason(url, navigation=navigation, resolver=known)
    assert (why.code if why else None) == code


async def test_what_a_resolver_raises_is_not_taken_for_a_yes() -> None:
    async def broken(host: str, port: int) -> Sequence[str]:
        raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        await find_refusal_reason("https://x.example/", navigation=True, resolver=broken)


# Proxies


@dataclass
class Proxy:
    """A proxy that leads every connection to one server of ours, and what it was told."""

    port: int = 0
    told: list[str] = field(default_factory=list[str])
    answer: bytes = b"HTTP/1.1 200 Connection established\r\n\r\n"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@asynccontextmanager
async def proxying(server: Served) -> AsyncGenerator[Proxy, None]:
    proxy = Proxy()

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
        writer.close()

    handlers: set[asyncio.Task[None] | None] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        handlers.add(asyncio.current_task())
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            proxy.told.append((await reader.readuntil(b"\r\n\r\n")).decode())
            writer.write(proxy.answer)
            await writer.drain()
            if proxy.answer.startswith(b"HTTP/1.1 200 "):
                there, back = await asyncio.open_connection("127.0.0.1", server.port)
                await asyncio.gather(copy(reader, back), copy(there, writer))
        writer.close()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    proxy.port = listening.sockets[0].getsockname()[1]
    async with listening:
        yield proxy
    if waiting := [task for task in handlers if task is not None]:
        await asyncio.wait(waiting, timeout=5)


async def test_a_proxy_is_told_the_address_that_was_checked_and_no_name(server: Served) -> None:
    server.answer("/a", b"hello")
    async with proxying(server) as proxy:
        web = WebClient(proxy=proxy.url, resolver=answering(good_example=[PUBLIC]))
        assert await got(web, "http://good.example/a") == b"hello"
    assert proxy.told == [f"CONNECT {PUBLIC}:80 HTTP/1.1\r\nHost: {PUBLIC}:80\r\n\r\n"]
    assert "Host: good.example\r\n" in server.asked[0]


async def test_a_certificate_is_checked_through_a_proxy(certificate: Path) -> None:
    mine = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    mine.load_cert_chain(certificate)
    trusting = ssl.create_default_context(cafile=f"{certificate}.crt")
    async with serving(tls=mine) as server, proxying(server) as proxy:
        server.answer("/a", b"hello")
        known = answering(good_example=["2606:4700::1111"], other_example=[PUBLIC])
        assert (
            await got(WebClient(proxy=proxy.url, resolver=known, verify=trusting), "https://good.example/a") == b"hello"
        )
        with pytest.raises(Downstream, match="certificate") as caught:
            await got(WebClient(proxy=proxy.url, resolver=known, verify=trusting), "https://other.example/a")
        assert not caught.value.retryable
    assert proxy.told[0].startswith("CONNECT [2606:4700::1111]:443 ")


@pytest.mark.parametrize("found", [["127.0.0.1"], [PUBLIC, "10.0.0.1"], ["169.254.169.254"]])
async def test_no_proxy_leads_to_a_private_place(server: Served, found: list[str]) -> None:
    async with proxying(server) as proxy:
        with pytest.raises(Denied):
            await got(WebClient(proxy=proxy.url, resolver=answering(good_example=found)), "http://good.example/a")
    assert proxy.told == []


async def test_a_redirect_through_a_proxy_is_judged(server: Served) -> None:
    server.answer("/a", status=302, location="http://private.example/")
    known = answering(good_example=[PUBLIC], private_example=["10.0.0.1"])
    async with proxying(server) as proxy:
        with pytest.raises(Denied):
            await got(WebClient(proxy=proxy.url, resolver=known), "http://good.example/a")
    assert len(proxy.told) == 1


async def test_a_host_of_ones_own_is_reached_without_the_proxy(server: Served) -> None:
    server.answer("/a", b"hello")
    async with proxying(server) as proxy:
        assert await got(local(proxy=proxy.url), server.url("/a")) == b"hello"
    assert proxy.told == []


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n",
        b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n",
        b"",
        b"SSH-2.0-x\r\n\r\n",
        b"x" * 100_000,
        b"HTTP/1.1 201 X\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nforged",
    ],
)
async def test_a_proxy_that_does_not_connect_is_said_to_be_the_reason(server: Served, answer: bytes) -> None:
    async with proxying(server) as proxy:
        proxy.answer = answer
        with pytest.raises(ConnectionBroken, match="by the proxy"):
            await got(WebClient(proxy=proxy.url, resolver=answering(good_example=[PUBLIC])), "http://good.example/a")


async def test_a_name_that_is_not_known_here_is_not_left_to_the_proxy() -> None:
    web = WebClient(proxy="http://127.0.0.1:9", resolver=answering(x_example=[]))
    with pytest.raises(Downstream) as caught:
        await got(web, "http://x.example/a")
    assert "names are looked up here" in str(caught.value.hint)


async def test_no_proxy_of_the_environment_is_used(server: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    server.answer("/a", b"hello")
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert await got(local(), server.url("/a")) == b"hello"

"""Where a browser goes: nothing that a page does leads to a place that the rail closes."""

from __future__ import annotations

import socket
import threading
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import asynccontextmanager, suppress

import pytest
from tests.plugins.browser.site import Answer, Site
from tests.plugins.browser.working import OWN, Hands, browsing

from handrail import Service, ServiceContext, hookimpl
from handrail.api import approval
from handrail.api.approval import no, yes
from handrail.testing import open_test_session
from handrail_browser import hooks
from handrail_browser.browsing.browser_service import SessionBrowser, create_browser_service
from handrail_browser.browsing.tool import execute_browser
from handrail_browser.config import BrowserConfig
from handrail_browser.hooks import open_reader


@pytest.fixture(scope="module")
def hands(shared: Hands) -> Hands:
    """One tab for all tests."""
    return shared


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd", "javascript:alert(1)", "data:text/html,hi", "chrome://settings", "view-source:file:///etc/passwd", "about:config",
        "ftp://example.org/", "http://10.0.0.1/", "http://169.254.169.254/latest/meta-data/", "http://[::1]/", "http://localhost/",
        "http://0x7f.1/", "http://192.168.1.1/", "blob:http://10.0.0.1/x",
    ],
)  # fmt: skip
@pytest.mark.parametrize("action", ["navigate", "open_tab", "download"])
async def test_such_addresses_are_not_gone_to(hands: Hands, url: str, action: str) -> None:
    given = {"path": "x.bin"} if action == "download" else {}
    result = await hands.call(action, url, **given)
    assert result["status"] == "denied", result


async def test_a_redirect_to_a_private_place_ends_there(hands: Hands, site: Site) -> None:
    site.pages["/away"] = Answer("", 302, {"location": "http://10.1.2.3/secret"})
    result = await hands.refused(
        "navigate", "10.1.2.3 is a private address", site.url("/away"), code="denied_by_policy"
    )
    assert result["error"]["details"]["reason"] == "private_address"
    assert "allow_private" in result["error"]["message"]


@pytest.mark.parametrize(
    "attempt",
    [
        pytest.param("fetch('http://127.0.0.2:{port}/leak', {{mode: 'no-cors'}})", id="fetch"),
        pytest.param("new Image().src = 'http://127.0.0.2:{port}/leak'", id="image"),
        pytest.param("new WebSocket('ws://127.0.0.2:{port}/leak')", id="websocket"),
        pytest.param("document.body.append(Object.assign(document.createElement('iframe'), {{src: 'http://127.0.0.2:{port}/leak'}}))", id="frame"),
        pytest.param("document.body.append(Object.assign(document.createElement('script'), {{src: 'http://127.0.0.2:{port}/leak'}}))", id="script"),
        pytest.param("navigator.sendBeacon('http://127.0.0.2:{port}/leak', 'x')", id="beacon"),
        pytest.param("window.open('http://127.0.0.2:{port}/leak')", id="window"),
        pytest.param("new Worker(URL.createObjectURL(new Blob([\"fetch('http://127.0.0.2:{port}/leak', {{mode: 'no-cors'}})\"])))", id="worker"),
        pytest.param("location = 'http://127.0.0.2:{port}/leak'", id="location"),
        pytest.param("Object.assign(document.createElement('form'), {{method: 'post', action: 'http://127.0.0.2:{port}/leak'}}).submit()", id="form"),
        pytest.param(
            "const l = document.createElement('link'); document.head.append(Object.assign(l, {{rel: 'prefetch', href: 'http://127.0.0.2:{port}/leak'}}))",
            id="prefetch",
        ),
        pytest.param("new EventSource('http://127.0.0.2:{port}/leak')", id="events"),
    ],
)  # fmt: skip
async def test_what_a_page_does_reaches_no_other_place_of_this_machine(
    hands: Hands, site: Site, other: Site, attempt: str
) -> None:
    # The server listens there, too: only the rail stands between.
    before = other.asked.copy()
    script = attempt.format(port=other.port)
    site.pages["/try"] = f"<body><button id=b>Try</button><script>b.onclick = () => {{ {script} }}</script>"
    await hands.done("open_tab", site.url("/try"))
    await hands.call("click", name="Try")
    told = (await hands.done("list_tabs"))["content"]
    assert other.asked == before
    for tab in told.splitlines()[1:]:
        await hands.done("close_tab", tab_id=tab.split()[1])


# Pages that try harder: each holds LEAK where the other server's place belongs.
ESCAPES = {
    "service worker": "navigator.serviceWorker.register('/sw.js')",
    "shared worker": "new SharedWorker('/sw.js')",
    "worker": "new Worker('/sw.js')",
    "module": "import('http://LEAK/leak')",
    "redirected part": "fetch('/away')",
    "redirected frame": "body.append(Object.assign(make('iframe'), {src: '/away'}))",
    "refresh": "body.append(Object.assign(make('iframe'), {srcdoc: '<meta http-equiv=refresh content=\"0;url=http://LEAK/leak\">'}))",
    "frame within": "body.append(Object.assign(make('iframe'), {srcdoc: `<script>fetch('http://LEAK/leak', {mode: 'no-cors'})<${''}/script>`}))",
    "data frame": "body.append(Object.assign(make('iframe'), {src: `data:text/html,<img src=http://LEAK/leak>`}))",
    "blob window": "open(URL.createObjectURL(new Blob(['<img src=http://LEAK/leak>'], {type: 'text/html'})))",
    "javascript window": "open(`javascript:fetch('http://LEAK/leak')`)",
    "object": "body.append(Object.assign(make('object'), {data: 'http://LEAK/leak'}))",
    "embed": "body.append(Object.assign(make('embed'), {src: 'http://LEAK/leak'}))",
    "sound": "new Audio('http://LEAK/leak').play()",
    "style": "body.append(Object.assign(make('style'), {textContent: `@import 'http://LEAK/leak'; body { background: url(http://LEAK/leak) }`}))",
    "preconnect": "document.head.append(Object.assign(make('link'), {rel: 'preconnect', href: 'http://LEAK/'}))",
    "icon": "document.head.append(Object.assign(make('link'), {rel: 'icon', href: 'http://LEAK/leak'}))",
    "manifest": "document.head.append(Object.assign(make('link'), {rel: 'manifest', href: 'http://LEAK/leak'}))",
    "speculation": "document.head.append(Object.assign(make('script'), {type: 'speculationrules', "
    "textContent: JSON.stringify({prerender: [{urls: ['http://LEAK/leak']}], prefetch: [{urls: ['http://LEAK/leak']}]})}))",
    "ping": "const a = Object.assign(make('a'), {href: '#x', ping: 'http://LEAK/leak'}); body.append(a); a.click()",
    "download": "const a = Object.assign(make('a'), {href: 'http://LEAK/leak', download: 'x'}); body.append(a); a.click()",
    "file link": "const a = Object.assign(make('a'), {href: 'file:///etc/hostname'}); body.append(a); a.click()",
    "secure socket": "new WebSocket('wss://LEAK/leak')",
    "turn": "const urls = ['turn:LEAK?transport=tcp', 'turn:LEAK?transport=udp']; "
    "const c = new RTCPeerConnection({iceServers: [{urls, username: 'a', credential: 'b'}, "
    "{urls: 'stun:LEAK'}]}); c.createDataChannel('x'); c.createOffer().then(o => c.setLocalDescription(o))",
    "transport": "new WebTransport('https://LEAK/leak')",
}
PLACES = {
    "another address": "127.0.0.2:{port}",
    "short": "127.2:{port}",
    "number": "2130706434:{port}",
    "octal": "0177.0.0.2:{port}",
    "any": "0.0.0.0:{port}",
    "name": "localhost:{port}",
    "mapped": "[::ffff:127.0.0.2]:{port}",
    "dotted name": "localhost.:{port}",
}


@pytest.fixture(scope="module")
def listening() -> Iterator[tuple[int, list[object]]]:
    """A port where whoever comes, by TCP or UDP, to any address of this machine, is noted."""
    came: list[object] = []
    with socket.create_server(("0.0.0.0", 0)) as stream, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as packets:
        port = stream.getsockname()[1]
        packets.bind(("0.0.0.0", port))

        def accept() -> None:
            with suppress(OSError):
                while True:
                    connection, whence = stream.accept()
                    connection.close()
                    came.append(whence)

        def receive() -> None:
            with suppress(OSError):
                while (packet := packets.recvfrom(2048))[0] != b"end":
                    came.append(packet)

        threads = [threading.Thread(target=accept, daemon=True), threading.Thread(target=receive, daemon=True)]
        for thread in threads:
            thread.start()
        yield port, came
        packets.sendto(b"end", ("127.0.0.1", port))
        stream.shutdown(socket.SHUT_RDWR)
        for thread in threads:
            thread.join()


async def attempted(hands: Hands, site: Site, script: str, leak: str) -> None:
    """A page that does it by itself as it is loaded, then is clicked, then has had its time."""
    tried = script.replace("LEAK", leak)
    site.pages["/away"] = Answer("", 302, {"location": f"http://{leak}/leak"})
    site.pages["/sw.js"] = Answer(
        f"fetch('http://{leak}/leak', {{mode: 'no-cors'}})", headers={"content-type": "text/javascript"}
    )
    site.pages["/hostile"] = (
        f"<!doctype html><title>Hostile</title><body><button id=b>Go</button><script>"
        f"const {{body}} = document, make = n => document.createElement(n);"
        f"const go = () => {{ {tried} }}; b.onclick = go; try {{ go() }} catch {{}}</script>"
    )
    # Where it leads away at once, that is refused.
    await hands.call("open_tab", site.url("/hostile"))
    assert "/hostile" in site.asked
    await hands.call("click", name="Go")
    await hands.call("wait", until="network", timeout=2)
    for tab in (await hands.done("list_tabs"))["content"].splitlines()[1:]:
        assert "file:" not in tab
        await hands.done("close_tab", tab_id=tab.split()[1])


@pytest.mark.parametrize("script", ESCAPES.values(), ids=ESCAPES.keys())
async def test_a_hostile_page_gets_no_byte_out(
    hands: Hands, site: Site, listening: tuple[int, list[object]], script: str
) -> None:
    port, came = listening
    await attempted(hands, site, script, f"127.0.0.2:{port}")
    assert came == []


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES.keys())
async def test_however_a_place_is_written_it_is_not_reached(
    hands: Hands, site: Site, listening: tuple[int, list[object]], place: str
) -> None:
    port, came = listening
    await attempted(hands, site, "fetch('http://LEAK/leak', {mode: 'no-cors'})", place.format(port=port))
    assert came == []


async def test_what_was_refused_is_told(hands: Hands, site: Site) -> None:
    site.pages["/part"] = "<!doctype html><img src=http://10.9.9.9/x.png>"
    result = await hands.done("navigate", site.url("/part"))
    assert "10.9.9.9: 10.9.9.9 is a private address" in result["blocked"]


class Resolving:
    """A name that is this machine's by the second time it is asked for, as one that is bound anew."""

    def __init__(self) -> None:
        self.asked = 0

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked += 1
        return ["127.0.0.1"] if host == "good.example" or self.asked > 3 else ["93.184.216.34"]


@asynccontextmanager
async def resolved(resolver: Resolving, **network: object) -> AsyncGenerator[Hands, None]:
    async def open_here(context: ServiceContext) -> SessionBrowser:
        assert isinstance(context.config, BrowserConfig)
        return SessionBrowser(context.config, context.environment, resolver)

    class Plugin:
        @hookimpl
        def handrail_register_tools(self) -> list[object]:
            return [execute_browser]

        @hookimpl
        def handrail_register_config(self) -> type[BrowserConfig]:
            return BrowserConfig

        @hookimpl
        def handrail_register_services(self) -> list[Service]:
            return [create_browser_service(open_here), Service("page_reader", open_reader, scope="session")]

    async with open_test_session(plugins={"browser": Plugin()}, settings={"network": network}, confirm=yes) as session:
        yield Hands(session)


async def test_a_name_that_leads_to_this_machine_is_not_gone_to(site: Site) -> None:
    async with resolved(Resolving()) as hands:
        await hands.refused(
            "navigate", "loopback address", f"http://good.example:{site.port}/", code="denied_by_policy"
        )


async def test_sites_may_be_allowed_and_denied_by_name(site: Site) -> None:
    site.pages["/"] = "<title>Here</title>"
    async with resolved(Resolving(), allow_private=["good.example"]) as hands:
        assert (await hands.done("navigate", f"http://good.example:{site.port}/"))["title"] == "Here"
    async with browsing(allowed_domains=["example.org"]) as hands:
        await hands.refused(
            "navigate", "is not among plugins.browser.allowed_domains", site.url(), code="denied_by_policy"
        )
    async with browsing(denied_domains=["127.0.0.1"]) as hands:
        await hands.refused("navigate", "is among plugins.browser.denied_domains", site.url(), code="denied_by_policy")


async def test_looking_is_free_acting_is_asked_about_once_and_files_each_time(site: Site) -> None:
    asked: list[str] = []

    async def confirmer(approval: approval.Approval) -> approval.Answer:
        asked.append("asked")
        return await yes(approval)

    site.pages["/"] = "<title>Here</title><button>A</button><input type=file aria-label=F>"
    async with open_test_session(plugins={"browser": hooks}, settings=OWN, confirm=confirmer) as session:
        hands = Hands(session)
        (session.cwd / "f.txt").write_text("x")
        await hands.done("navigate", site.url())
        after_going = len(asked)
        await hands.done("snapshot")
        await hands.done("extract_text")
        assert len(asked) == after_going
        await hands.done("click", name="A")
        await hands.done("click", name="A")
        assert len(asked) == after_going + 1
        await hands.done("upload", name="F", paths=["f.txt"])
        await hands.done("upload", name="F", paths=["f.txt"])
        assert len(asked) == after_going + 3


async def test_files_outside_the_workspace_and_secret_ones_are_not_given_away(site: Site) -> None:
    site.pages["/"] = "<input type=file aria-label=F>"
    async with open_test_session(plugins={"browser": hooks}, settings=OWN, confirm=no) as session:
        hands = Hands(session)
        for path in ("/etc/shadow", "~/.ssh/id_rsa", "/etc/hostname"):
            assert (await hands.call("upload", name="F", paths=[path]))["status"] == "denied"


async def test_a_secret_goes_only_to_the_sites_that_it_is_for(site: Site) -> None:
    site.pages["/inner"] = "<input aria-label=Inner>"
    site.pages["/"] = (
        "<input aria-label=Outer><script>onload = () => prompt('Password?')</script>"
        f"<iframe src='{site.url('/inner', 'localhost')}'></iframe>"
    )
    environment = {"HANDRAIL_SECRET_OFFICE": "correct-horse"}
    network = {"allow_private": ["127.0.0.1", "localhost"]}
    async with browsing(network=network, environment=environment, sites={"office": ["127.0.0.1"]}) as hands:
        await hands.done("navigate", site.url())
        await hands.done("dialog", text="secret:OFFICE")
        await hands.done("fill", name="Outer", text="secret:OFFICE")
        await hands.refused(
            "fill", "is not for 'localhost'", name="Inner", text="secret:OFFICE", code="denied_by_policy"
        )
        await hands.refused(
            "fill", "is not for 'localhost'", ref=await hands.ref('textbox "Inner"'), text="a secret:office"
        )
        await hands.refused("navigate", "is not for 'localhost'", site.url("/x?key=secret:OFFICE", "localhost"))
        lines = await hands.lines()
    assert 'textbox "Outer"' in lines
    assert not any("=" in line for line in lines.splitlines() if "Inner" in line)
    assert not any("/x" in path for path in site.asked)
    async with browsing(environment=environment, sites={"office": ["office.example"]}) as hands:
        await hands.done("navigate", site.url("/inner"))
        await hands.refused("press", "but for office.example", key="secret:OFFICE", code="denied_by_policy")


@pytest.mark.parametrize(
    "url",
    [
        "http://10.0.0.1:9222",
        "http://example.org:9222",
        "ws://127.0.0.1.example.org/x",
        "http://a@127.0.0.1:9222",
        "file:///x",
    ],
)
async def test_only_a_browser_on_this_machine_is_connected_to(hands: Hands, url: str) -> None:
    await hands.refused("connect_cdp", "no browser on this machine", url, code="denied_by_policy")


@pytest.mark.parametrize("name", ["goes_to", "acts_on", "reads", "writes"])
async def test_what_is_judged_cannot_be_given_by_the_caller(hands: Hands, name: str) -> None:
    result = await hands.session.call("execute_browser", {"action": "list_tabs", name: []})
    assert result["error"]["code"] == "invalid_arguments"

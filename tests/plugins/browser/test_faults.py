"""What ends, hangs or is too large: the call says so, the next one works, and nothing is left behind."""

from __future__ import annotations

import asyncio
import os
import signal
import ssl
import subprocess
import sys
import threading
from dataclasses import dataclass
from http.server import HTTPServer, SimpleHTTPRequestHandler
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from tests.plugins.browser.site import Answer, Asked, Site
from tests.plugins.browser.working import Hands, browsers_of, browsing, command

from handrail.testing import ScriptedConfirmer

PATIENCE_S = 60.0
MANY = 50_000
OF_ITS_OWN = """
import asyncio, sys
from tests.plugins.browser.working import browsing
async def main():
    async with browsing() as hands:
        await hands.done("navigate", sys.argv[1])
        print("ready", flush=True)
        await asyncio.Event().wait()
asyncio.run(main())
"""


@dataclass(frozen=True)
class Browser:
    """A browser that runs: its own process, its pages', and its profile."""

    pid: int
    pages: list[int]
    profile: Path


def browsers(pid: int) -> list[Browser]:
    """Those that a process has started."""
    pids = browsers_of(pid)
    found: list[Browser] = []
    for each in pids:
        words = command(each).split()
        if "--remote-debugging-pipe" in words and "--type=" not in command(each) and "reaper.py" not in command(each):
            folder = next(word for word in words if word.startswith("--user-data-dir=")).partition("=")[2]
            pages = [one for one in browsers_of(each) if "--type=renderer" in command(one)]
            found.append(Browser(each, pages, Path(folder)))
    return found


@pytest.fixture(scope="module")
def site(site: Site) -> Site:
    def remembered(asked: Asked) -> Answer:
        return Answer(f"<title>{asked.headers.get('cookie', 'nobody')}</title>", headers={"set-cookie": "who=known"})

    site.pages["/"] = "<title>Here</title><button onclick='while (true);'>Hang</button><input>"
    site.pages["/many"] = (
        "<title>Many</title><main>"
        + "".join(f"<button>Number {n}</button>" for n in range(MANY - 1))
        + "</main><footer><button onclick='document.title = `Reached`'>The last</button></footer>"
    )
    site.pages["/who"] = remembered
    return site


@pytest.fixture
async def hands(shared: Hands) -> Hands:
    """The browser, in a new tab; what a test does may end it."""
    await shared.done("open_tab")
    return shared


async def test_a_page_of_50_000_things_is_shown_in_part_with_a_way_on(hands: Hands, site: Site) -> None:
    await hands.done("navigate", site.url("/many"), timeout=60)
    first = await hands.done("snapshot")
    assert first["truncated"] is True
    assert '"Number 0"' in first["content"]
    assert "Number 300" not in first["content"]
    assert "name a part by selector" in first["note"]
    assert '"The last"' in await hands.lines(selector="footer")
    second = await hands.done("snapshot", offset=200, limit=2)
    assert [line.split()[2] for line in second["content"].splitlines()] == ['200"', '201"']
    end = await hands.done("snapshot", offset=MANY - 2)
    assert "truncated" not in end
    ref = end["content"].splitlines()[-1].partition("[")[2].partition("]")[0]
    assert (await hands.done("click", ref=ref))["title"] == "Reached"
    await hands.done("close_tab")


async def test_a_page_that_hangs_is_said_to_and_its_tab_can_be_closed(hands: Hands, site: Site) -> None:
    tab = (await hands.done("navigate", site.url()))["tab_id"]
    result = await hands.call("click", name="Hang", timeout=1)
    assert result["status"] == "timeout"
    assert "close the tab" in result["error"]["message"]
    meant: dict[str, dict[str, Any]] = {"fill": {"text": "x"}, "press": {"key": "x"}, "select": {"values": ["a"]}}
    for action, given in meant.items():
        result = await hands.call(action, selector="input", timeout=1, **given)
        assert result["status"] == "timeout"
        assert "the page did not answer within 1 s" in result["error"]["message"]
    await hands.done("close_tab", tab_id=tab)
    await hands.done("open_tab")
    assert (await hands.done("navigate", site.url()))["title"] == "Here"


async def test_a_page_that_crashes_is_said_to_and_is_shown_anew_by_going_somewhere(hands: Hands, site: Site) -> None:
    await hands.done("navigate", site.url())
    for pid in browsers(os.getpid())[0].pages:
        os.kill(pid, signal.SIGKILL)
    ends = monotonic() + PATIENCE_S
    while (result := await hands.call("snapshot"))["status"] == "success" and monotonic() < ends:
        await asyncio.sleep(0.05)
    assert "crashed" in result["error"]["message"]
    assert "[crashed]" in (await hands.done("list_tabs"))["content"]
    assert (await hands.done("navigate", site.url()))["title"] == "Here"
    assert "Hang" in await hands.lines()


@pytest.fixture
def secure(tmp_path: Path) -> ssl.SSLContext:
    """A server's, with a certificate that it signed itself."""
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    argv = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1"]
    argv += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(argv, check=True, capture_output=True)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    return context


async def test_a_server_that_cannot_prove_who_it_is_is_not_spoken_to(hands: Hands, secure: ssl.SSLContext) -> None:
    asked: list[str] = []

    class Handler(SimpleHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)

    class Server(HTTPServer):
        def get_request(self) -> tuple[ssl.SSLSocket, tuple[str, int]]:
            connection, address = super().get_request()
            try:
                return secure.wrap_socket(connection, server_side=True), address
            except OSError:
                connection.close()
                raise

    with Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            url = f"https://127.0.0.1:{server.server_port}/"
            await hands.refused("navigate", "cannot prove who it is (ERR_CERT_AUTHORITY_INVALID)", url)
        finally:
            server.shutdown()
            thread.join()
    assert asked == []


async def test_a_browser_that_was_killed_is_started_anew(hands: Hands, site: Site) -> None:
    await hands.done("navigate", site.url())
    old = browsers(os.getpid())[0]
    os.kill(old.pid, signal.SIGKILL)
    ends = monotonic() + PATIENCE_S
    while (result := await hands.call("navigate", site.url()))["status"] != "success" and monotonic() < ends:
        # It may be noticed in the middle of a call: then that says so, and nothing else.
        assert "the browser has ended" in result["error"]["message"], result
    assert result["title"] == "Here"
    assert not old.profile.exists()


async def test_two_sessions_share_nothing_and_one_that_ends_leaves_nothing(hands: Hands, site: Site) -> None:
    await hands.done("navigate", site.url("/who"))
    assert (await hands.done("navigate", site.url("/who")))["title"] == "who=known"
    before = browsers(os.getpid())
    async with browsing() as others:
        assert (await others.done("navigate", site.url("/who")))["title"] == "nobody"
        (second,) = [each for each in browsers(os.getpid()) if each.pid not in {one.pid for one in before}]
        assert second.profile.is_dir()
    assert [each.pid for each in browsers(os.getpid())] == [each.pid for each in before]
    assert not second.profile.exists()
    assert (await hands.done("reload"))["title"] == "who=known"


def test_nothing_is_left_when_handrail_is_killed(site: Site) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", OF_ITS_OWN, site.url()], stdout=subprocess.PIPE, cwd=Path(__file__).parents[3]
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        (browser,) = browsers(process.pid)
        pids = browsers_of(process.pid)
        process.kill()

    def left() -> list[int]:
        return [pid for pid in pids if "chrom" in command(pid) or "reaper.py" in command(pid)]

    ends = monotonic() + PATIENCE_S
    while (browser.profile.exists() or left()) and monotonic() < ends:
        signal.sigtimedwait([], 0.05)
    assert not browser.profile.exists()
    assert not left()


async def test_without_a_browser_it_is_said_why_and_what_to_do_instead(site: Site, tmp_path: Path) -> None:
    async with browsing(executable=str(tmp_path / "none")) as hands:
        result = await hands.refused("navigate", "none' is no program", site.url())
        assert "execute_gui" in result["error"]["message"]
    async with browsing(environment={"PATH": str(tmp_path)}) as hands:
        result = await hands.refused("navigate", "there is no Chromium on this machine", site.url())
        assert "apt install chromium" in result["error"]["message"]
        assert "execute_gui" in result["error"]["message"]


async def test_a_profile_of_a_persons_own_is_used_only_with_a_yes_and_by_one_browser(tmp_path: Path) -> None:
    profile = tmp_path / "mine"
    profile.mkdir()
    person = ScriptedConfirmer("deny", "once")
    async with browsing(confirm=person, profile=str(profile)) as hands:
        await hands.refused("open_tab", "no browser was started", code="denied_by_user")
        assert list(profile.iterdir()) == []
        await hands.done("open_tab")
        # Once it runs, nobody is asked again.
        await hands.done("list_tabs")
        assert profile in [browser.profile for browser in browsers(os.getpid())]
        async with browsing(profile=str(profile)) as others:
            await others.refused("open_tab", "is in use by a browser")
    assert len(person.asked) == 2
    assert all("which is yours" in str(each) for each in person.asked)
    assert profile.is_dir()


async def test_a_profile_of_a_persons_own_is_not_used_where_nobody_is_asked(tmp_path: Path) -> None:
    async with browsing(confirm=None, profile=str(tmp_path)) as hands:
        await hands.refused("open_tab", "no browser was started", code="no_confirmer")
    assert list(tmp_path.iterdir()) == []

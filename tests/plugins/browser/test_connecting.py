"""A browser that a person started for debugging is worked as it is, and stays theirs."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.plugins.browser.site import Answer, Asked, Site
from tests.plugins.browser.working import browsing

from handrail_browser.chromium.cdp import CdpConnection, WebSocketChannel

PATIENCE_S = 60.0


@pytest.fixture(scope="module")
def site(site: Site) -> Site:
    site.pages["/"] = "<title>Here</title><button onclick=\"document.title = 'Pressed'\">Press</button>"
    site.pages["/asks"] = (
        '<title>Asks</title><p id=out></p><button onclick="navigator.clipboard.readText()'
        ".then(text => out.textContent = 'was given ' + text, why => out.textContent = why.name)\">Paste</button>"
    )
    return site


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory, site: Site) -> Iterator[str]:
    """The endpoint of a browser that this test started, as a person would."""
    profile = tmp_path_factory.mktemp("profile")
    argv = ["chromium", "--headless=new", "--no-sandbox", "--remote-debugging-port=0", f"--user-data-dir={profile}"]
    browser = subprocess.Popen(
        [*argv, site.url()], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        yield f"http://127.0.0.1:{_port(profile)}"
        assert browser.poll() is None, "the person's browser was ended"
    finally:
        os.killpg(browser.pid, signal.SIGTERM)
        browser.wait(PATIENCE_S)


def _port(profile: Path) -> int:
    told = profile / "DevToolsActivePort"
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        if told.exists() and (lines := told.read_text().split()):
            return int(lines[0])
        time.sleep(0.05)
    raise AssertionError("the browser named no port")


async def test_its_page_is_seen_and_worked_and_the_browser_stays(started: str) -> None:
    async with browsing() as hands:
        assert "1 tabs" in (await hands.done("connect_cdp", started))["content"]
        tab = (await hands.done("list_tabs"))["content"].split()[1]
        assert "Press" in await hands.lines(tab_id=tab)
        pressed = await hands.done("click", name="Press", tab_id=tab)
        assert (pressed["effect"], pressed["title"]) == ("confirmed", "Pressed")


async def test_a_press_in_a_persons_browser_is_known_to_who_takes_their_answers(started: str) -> None:
    async with browsing() as hands:
        await hands.done("connect_cdp", started)
        await hands.done("open_tab")
        presses = hands.session.runtime.presses
        assert not presses.recent()
        await hands.done("press", key="a")
        assert presses.recent()
        await hands.done("close_tab")


async def test_a_press_in_a_page_of_this_machine_is_known_to_who_takes_a_persons_answers(site: Site) -> None:
    async with browsing() as hands:
        presses = hands.session.runtime.presses
        await hands.done("open_tab")
        await hands.done("press", key="a")
        assert not presses.recent()
        await hands.done("navigate", site.url())
        assert not presses.recent()
        await hands.done("click", name="Press")
        assert presses.recent()


async def test_a_tab_that_is_still_on_its_way_is_waited_for(started: str, site: Site) -> None:
    asked, answered = threading.Event(), threading.Event()

    def slow(request: Asked) -> Answer:
        asked.set()
        answered.wait(PATIENCE_S)
        return Answer("<title>Slow</title><button>Late</button>")

    site.pages["/slow"] = slow
    async with httpx.AsyncClient(trust_env=False) as client:
        (await client.put(f"{started}/json/new?{site.url('/slow')}")).raise_for_status()
    assert await asyncio.to_thread(asked.wait, PATIENCE_S)
    async with browsing() as hands:
        await hands.done("connect_cdp", started)
        tabs = (await hands.done("list_tabs"))["content"].splitlines()
        tab = next(line for line in tabs if "Press" not in line).split()[1]
        asyncio.get_running_loop().call_later(0.3, answered.set)
        assert "Late" in await hands.lines(tab_id=tab)


async def test_where_no_browser_answers_it_is_said(started: str, site: Site) -> None:
    async with browsing() as hands:
        await hands.refused("connect_cdp", "no browser answers", site.url("/none"))


async def test_a_page_that_asks_for_the_clipboard_is_not_given_it(site: Site) -> None:
    async with browsing() as hands:
        await hands.done("navigate", site.url("/asks"))
        await hands.done("click", name="Paste")
        await hands.done("wait", text="NotAllowedError")


async def test_what_a_person_saves_in_a_browser_of_theirs_stays_theirs(
    started: str, site: Site, tmp_path: Path
) -> None:
    site.pages["/saves"] = "<title>Saves</title><a download=theirs.txt href='data:text/plain,theirs'>Save</a>"
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    async with httpx.AsyncClient(trust_env=False) as client:
        told = (await client.get(f"{started}/json/version")).json()
    person = CdpConnection(await WebSocketChannel.to(told["webSocketDebuggerUrl"]))
    await person.send("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(theirs)})
    try:
        async with browsing() as hands:
            await hands.done("connect_cdp", started)
            await hands.done("open_tab", site.url("/saves"))
            await hands.done("click", name="Save")
            async with asyncio.timeout(PATIENCE_S):
                while not (theirs / "theirs.txt").exists():
                    await asyncio.sleep(0.05)
            await hands.done("close_tab")
    finally:
        await person.close()

"""Both drivers keep the same contract: Chromium over its own protocol, and PinchTab over HTTP."""

from __future__ import annotations

import threading
from collections.abc import AsyncGenerator, Callable, Iterator
from typing import Any

import pytest
from tests.plugins.browser.pinchtab import program
from tests.plugins.browser.site import Answer, Asked, Site

from handrail_browser.browsing.browser_service import SessionBrowser
from handrail_browser.config import BrowserConfig
from handrail_browser.driver import BrowserDriver, BrowserTab, LoadState, WaitConditions
from handrail_browser.testing import DriverContract, Show


@pytest.fixture(scope="module")
def environment() -> dict[str, str]:
    import os

    return dict(os.environ)


async def driven(environment: dict[str, str], **config: Any) -> AsyncGenerator[BrowserDriver, None]:
    browsers = SessionBrowser(BrowserConfig(**config), environment)
    try:
        yield await browsers.driver(allow_private=("127.0.0.1",), upstream=None)
    finally:
        await browsers.close()


class Drivers:
    """What every test of a driver has."""

    @pytest.fixture
    async def driver(self, opened: BrowserDriver) -> AsyncGenerator[BrowserDriver, None]:
        """One browser for all tests; no tab of one is there in the next."""
        yield opened
        opened.refused()
        for tab in await opened.tabs():
            await opened.close_tab(tab)

    @pytest.fixture
    def show(self, site: Site) -> Show:
        def shown(html: str, path: str = "/") -> str:
            site.pages[path] = f"<!doctype html>{html}"
            return site.url(path)

        return shown

    @pytest.fixture
    def slow(self, site: Site) -> Iterator[Callable[[], None]]:
        """A picture that does not come until this is called."""
        come = threading.Event()

        def picture(asked: Asked) -> Answer:
            come.wait(60)
            return Answer(b"", 404)

        site.pages["/slow.png"] = picture
        yield come.set
        come.set()


async def state(driver: BrowserDriver, tab: BrowserTab, until: LoadState, seconds: float) -> bool:
    return await driver.wait(tab, WaitConditions(until=until), seconds=seconds)


class Contract(Drivers, DriverContract):
    async def test_a_page_is_loaded_once_its_pictures_are_there(
        self, driver: BrowserDriver, show: Show, site: Site, slow: Callable[[], None]
    ) -> None:
        tab = await driver.open_tab(None)
        url = show("<p>words</p><img src=/slow.png>", "/slow")
        assert (await driver.navigate(tab, url, until="load", seconds=2)).settled is False
        assert not await state(driver, tab, "load", 0.3)
        slow()
        assert await state(driver, tab, "load", 20)
        assert await state(driver, tab, "network", 20)


class Told(Drivers):
    """Drivers that can tell a document that is there from a page that is loaded."""

    async def test_a_document_is_there_before_its_pictures(
        self, driver: BrowserDriver, show: Show, slow: Callable[[], None]
    ) -> None:
        tab = await driver.open_tab(None)
        url = show("<p>words</p><img src=/slow.png>", "/slow")
        assert (await driver.navigate(tab, url, until="dom", seconds=20)).settled
        assert await state(driver, tab, "dom", 20)
        assert not await state(driver, tab, "load", 0.3)
        slow()
        assert await state(driver, tab, "load", 20)


class TestChromium(Contract, Told):
    @pytest.fixture(scope="class")
    async def opened(self, environment: dict[str, str]) -> AsyncGenerator[BrowserDriver, None]:
        async for driver in driven(environment):
            yield driver


class TestPinchTab(Contract):
    @pytest.fixture(scope="class")
    async def opened(
        self, environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory
    ) -> AsyncGenerator[BrowserDriver, None]:
        pinchtab = {"executable": program(tmp_path_factory.mktemp("pinchtab"))}
        async for driver in driven(environment, driver="pinchtab", pinchtab=pinchtab):
            yield driver


class TestNewerPinchTab(Told):
    @pytest.fixture(scope="class")
    async def opened(
        self, environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory
    ) -> AsyncGenerator[BrowserDriver, None]:
        pinchtab = {"executable": program(tmp_path_factory.mktemp("pinchtab"), release="0.15.0")}
        async for driver in driven(environment, driver="pinchtab", pinchtab=pinchtab):
            yield driver

"""Both drivers keep the same contract: Chromium over its own protocol, and PinchTab over HTTP."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from typing import Any

import pytest
from tests.plugins.browser.pinchtab import program
from tests.plugins.browser.site import Site, serving

from handrail_browser.browsing.driver import Driver
from handrail_browser.browsing.service import Browsers
from handrail_browser.config import BrowserConfig
from handrail_browser.testing import DriverContract, Show


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with serving(Site()) as site:
        yield site


@pytest.fixture(scope="module")
def environment() -> dict[str, str]:
    import os

    return dict(os.environ)


async def driven(environment: dict[str, str], **config: Any) -> AsyncGenerator[Driver, None]:
    browsers = Browsers(BrowserConfig(**config), environment)
    try:
        yield await browsers.driver(allow_private=("127.0.0.1",), upstream=None)
    finally:
        await browsers.close()


class Contract(DriverContract):
    @pytest.fixture
    async def driver(self, opened: Driver) -> AsyncGenerator[Driver, None]:
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


class TestChromium(Contract):
    @pytest.fixture(scope="class")
    async def opened(self, environment: dict[str, str]) -> AsyncGenerator[Driver, None]:
        async for driver in driven(environment):
            yield driver


class TestPinchTab(Contract):
    @pytest.fixture(scope="class")
    async def opened(
        self, environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory
    ) -> AsyncGenerator[Driver, None]:
        pinchtab = {"executable": program(tmp_path_factory.mktemp("pinchtab"))}
        async for driver in driven(environment, driver="pinchtab", pinchtab=pinchtab):
            yield driver

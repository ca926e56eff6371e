"""A session's browser: chosen by what answers, started on first use, started anew after it has ended."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import TYPE_CHECKING

import anyio

from handrail import Service, ServiceContext, ToolUnavailable
from handrail.net.connecting import Resolver, system_resolver
from handrail_browser.browsing.domains import Domains
from handrail_browser.config import BrowserConfig

if TYPE_CHECKING:
    from handrail_browser.browsing.driver import Driver
    from handrail_browser.chromium.browser import Browser

INSTEAD = (
    "with a screen that a person can see, open a browser by launch_app and work it by observe_screen and execute_gui"
)


class Browsers:
    """The driver of one session. `resolver` is how names are looked up: only code can give another one, as tests do."""

    def __init__(
        self, config: BrowserConfig, environment: Mapping[str, str], resolver: Resolver = system_resolver
    ) -> None:
        self._config = config
        self._environment = environment
        self._resolver = resolver
        self._driver: Driver | None = None
        self._gone: Callable[[], bool] = lambda: True
        self._starting = asyncio.Lock()
        # The lines of each tab's last snapshot.
        self.snapshots: dict[str, list[str]] = {}

    @property
    def running(self) -> bool:
        """Whether a browser is there already."""
        return self._driver is not None and not self._gone()

    async def driver(self, *, allow_private: Collection[str], upstream: str | None) -> Driver:
        """The browser of this session. `ToolUnavailable` says what lacks, and what to do instead."""
        async with self._starting:
            if self._driver is not None and not self._gone():
                return self._driver
            await self._let_go()
            from handrail_browser.chromium.launching import missing

            lacking = missing(self._config.executable, self._environment)
            if lacking is None:
                return await self._start(allow_private, upstream)
            raise ToolUnavailable(lacking, hint=INSTEAD)

    async def connect(self, url: str) -> Driver:
        """Use a browser that runs already, in the place of our own."""
        from handrail_browser.chromium.connecting import attached

        async with self._starting:
            browser = await attached(url, most_bytes=self._config.download_max_bytes)
            await self._let_go()
            return self._take(browser)

    async def close(self) -> None:
        """End the browser."""
        await self._let_go()

    async def _start(self, allow_private: Collection[str], upstream: str | None) -> Driver:
        from handrail_browser.chromium.browser import Browser
        from handrail_browser.chromium.launching import launch, program
        from handrail_browser.chromium.proxy import Proxy

        config = self._config
        executable = program(config.executable, self._environment)
        assert executable is not None
        domains = Domains(config.allowed_domains, config.denied_domains)
        proxy = Proxy(tuple(allow_private), domains, upstream, self._resolver)
        await proxy.start()
        try:
            running = await launch(
                executable,
                proxy=proxy.url,
                environment=self._environment,
                profile=config.profile,
                headless=config.headless,
                window=config.window,
            )
        except BaseException:  # being cancelled, too: the proxy ends with the start
            with anyio.CancelScope(shield=True):
                await proxy.close()
            raise

        async def end() -> None:
            try:
                await running.end()
            finally:
                await proxy.close()

        browser = Browser(
            running.connection,
            proxy=proxy,
            most_bytes=config.download_max_bytes,
            end=end,
            folder=running.profile if config.profile is None else None,
        )
        try:
            await browser.start()
        except BaseException:  # being cancelled, too: no browser is left
            await browser.close()
            raise
        return self._take(browser)

    def _take(self, browser: Browser) -> Driver:
        from handrail_browser.chromium.driver import ChromiumDriver

        self._driver, self._gone = ChromiumDriver(browser), browser.connection.closed.is_set
        return self._driver

    async def _let_go(self) -> None:
        if self._driver is not None:
            driver, self._driver = self._driver, None
            self.snapshots.clear()
            await driver.close()


async def open_browsers(context: ServiceContext) -> Browsers:
    """For one session; nothing is started yet."""
    assert isinstance(context.config, BrowserConfig)
    return Browsers(context.config, context.environment)


def browsers(open: Callable[[ServiceContext], Awaitable[Browsers]] = open_browsers) -> Service:
    """The service `browser`."""
    return Service("browser", open, scope="session", missing=_missing)


def _missing() -> str | None:
    import os

    from handrail_browser.chromium.launching import missing

    return missing(None, os.environ)

"""A session's browser: chosen by what answers, started on first use, started anew after it has ended."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import anyio

from handrail import Finding, HandrailError, Service, ServiceContext, ToolUnavailable
from handrail.api.desktop import remove_screen_variables
from handrail.net.resolver import HostResolver, resolve_with_system
from handrail.redaction import redact_text
from handrail.workers.host_programs import HostPrograms
from handrail_browser.config import BrowserConfig
from handrail_browser.domains import DomainPolicy

if TYPE_CHECKING:
    from handrail import Session
    from handrail_browser.chromium.browser import ChromiumBrowser
    from handrail_browser.chromium.proxy import JudgingProxy
    from handrail_browser.driver import BrowserDriver
    from handrail_browser.pinchtab.release import PinchTabRelease

# What the program of PinchTab may be, and how long it may take to come.
PROGRAM_BYTES, PROGRAM_S = 100_000_000, 300.0
SCREEN_HINT = (
    "with a screen that a person can see, open a browser by launch_app and work it by observe_screen and execute_gui"
)

UNGUARDED_NOTE = "the addresses of its tabs are judged before and after each step, what its pages load is not"


@dataclass(frozen=True, slots=True)
class DriverChoice:
    """Choice of the driver of a browser.

    `asks` is text for the user, who has to approve it first; `program` is that of PinchTab, once it is installed.
    """

    driver: Literal["chromium", "pinchtab", "joined"]
    asks: str | None = None
    program: Path | None = None


class SessionBrowser:
    """The driver of one session; `data` is where programs are kept.

    `resolver` is how names are looked up, `release` which PinchTab is fetched: only code can give other ones, as tests do.
    """

    def __init__(
        self,
        config: BrowserConfig,
        environment: Mapping[str, str],
        resolver: HostResolver = resolve_with_system,
        *,
        data: Path | None = None,
        release: PinchTabRelease | None = None,
        session: Session | None = None,
    ) -> None:
        self._config = config
        self._programs = HostPrograms(environment, session.workspace if session is not None else ())
        self._environment = self._programs.environment
        self._resolver = resolver
        self._data = data
        self._release = release
        self._session = session
        self._driver: BrowserDriver | None = None
        self._gone: Callable[[], bool] = lambda: True
        self._starting = asyncio.Lock()
        # Whether it is a browser that a person uses, too.
        self.shared = False
        # The lines of each tab's last snapshot.
        self.snapshots: dict[str, list[str]] = {}

    @property
    def running(self) -> bool:
        """True if a browser is already running."""
        return self._driver is not None and not self._gone()

    @property
    def may_be_pinchtab(self) -> bool:
        """True if the configuration mentions PinchTab."""
        config = self._config
        return config.driver == "pinchtab" or (config.driver == "auto" and config.pinchtab.url is not None)

    async def address(self) -> str | None:
        """Return the address of the active tab, or None if no browser is running. Nothing is started."""
        if self._driver is None or self._gone():
            return None
        try:
            await self._driver.follow()
            tab = await self._driver.tab(None)
        except HandrailError:  # it has no tab, or has just ended: there is no address
            return None
        return redact_text(tab.url)

    async def choose(self) -> DriverChoice:
        """Choose the driver of the browser on this machine.

        Raises `ToolUnavailable`, which says what is missing and what to do instead.
        """
        config = self._config
        if config.driver != "chromium" and config.pinchtab.url is not None:
            from handrail_browser.pinchtab.driver_factory import is_pinchtab_running

            if await is_pinchtab_running(config.pinchtab.url):
                return DriverChoice(
                    "joined", f"it uses the PinchTab at {config.pinchtab.url}, which is yours; {UNGUARDED_NOTE}"
                )
            if config.driver == "pinchtab":
                raise ToolUnavailable(
                    f"no PinchTab answers at {config.pinchtab.url!r}",
                    hint=f"start it by `pinchtab server`; {SCREEN_HINT}",
                )
        from handrail_browser.chromium.launcher import explain_missing_browser

        if (lacking := explain_missing_browser(config.executable, self._programs)) is not None:
            told = "PinchTab works a Chromium too: " if config.driver == "pinchtab" else ""
            raise ToolUnavailable(told + lacking, hint=SCREEN_HINT)
        return self._pinchtab() if config.driver == "pinchtab" else DriverChoice("chromium", self._profile_asks())

    def _pinchtab(self) -> DriverChoice:
        """Choose a PinchTab of our own: the configured program, else the pinned release, fetched now or earlier."""
        from handrail_browser.pinchtab import release

        config = self._config
        if config.profile is not None:
            raise ToolUnavailable("PinchTab gets no profile of yours", hint="use the driver chromium, or unset profile")
        if (named := config.pinchtab.executable) is not None:
            if not os.access(named, os.X_OK):
                raise ToolUnavailable(f"{str(named)!r} is no program", hint=f"{release.PINCHTAB_HINT}; {SCREEN_HINT}")
            return DriverChoice("pinchtab", program=named)
        if self._data is None:
            raise ToolUnavailable("there is no folder to keep PinchTab in", hint=release.PINCHTAB_HINT)
        wanted, place = self._wanted(), release.get_platform_name()
        path = wanted.path(self._data, place)
        if release.is_program_intact(path, wanted.file(place)):
            return DriverChoice("pinchtab", program=path)
        return DriverChoice(
            "pinchtab", f"it fetches PinchTab {wanted.version} from {wanted.base}, checks its SHA-256, and runs it"
        )

    def _wanted(self) -> PinchTabRelease:
        from handrail_browser.pinchtab import release

        return self._release or release.load_pinned_release()

    def _profile_asks(self) -> str | None:
        profile = self._config.profile
        if profile is None:
            return None
        return (
            f"it starts a browser with the profile {str(profile)!r}, which is yours, with all that you are logged in to"
        )

    async def driver(
        self, *, allow_private: Collection[str], upstream: str | None, token: str | None = None
    ) -> BrowserDriver:
        """Return the session's browser, started if necessary; `token` is that of a PinchTab run by the user."""
        async with self._starting:
            if self._driver is not None and not self._gone():
                return self._driver
            await self._let_go()
            choice = await self.choose()
            self.shared = choice.driver == "joined" or self._config.profile is not None
            if choice.driver == "chromium":
                return await self._start(allow_private, upstream)
            if choice.driver == "joined":
                return await self._join(allow_private, token)
            return await self._start_pinchtab(choice.program, allow_private, upstream)

    async def _join(self, allow_private: Collection[str], token: str | None) -> BrowserDriver:
        from handrail_browser.pinchtab.driver_factory import join_pinchtab

        driver = await join_pinchtab(self._config, token, allow_private=allow_private, resolver=self._resolver)
        self._driver, self._gone = driver, driver.lost
        return driver

    async def _start_pinchtab(
        self, program: Path | None, allow_private: Collection[str], upstream: str | None
    ) -> BrowserDriver:
        from handrail_browser.chromium.launcher import find_chromium as chromium
        from handrail_browser.pinchtab.driver_factory import open_own_pinchtab

        program = program or await self._fetched(allow_private, upstream)
        browser = chromium(self._config.executable, self._programs)
        assert browser is not None
        around = await self._around()
        proxy = await self._proxy(allow_private, upstream)
        try:
            driver, own = await open_own_pinchtab(self._config, program, browser, proxy=proxy, environment=around)
        except BaseException:  # being cancelled, too: the proxy ends with the start
            with anyio.CancelScope(shield=True):
                await proxy.close()
            raise
        self._driver, self._gone = driver, own.keeper.gone
        return driver

    async def _fetched(self, allow_private: Collection[str], upstream: str | None) -> Path:
        from handrail.net.web_client import RequestLimits, WebClient
        from handrail_browser.pinchtab import release

        assert self._data is not None
        limits = RequestLimits(size=PROGRAM_BYTES, seconds=PROGRAM_S)
        web = WebClient(allow_private=tuple(allow_private), limits=limits, resolver=self._resolver, proxy=upstream)
        return await release.fetch_program(web, self._wanted(), self._data, release.get_platform_name())

    async def _around(self) -> Mapping[str, str]:
        """Return the environment of a browser. One with a window opens it on the desktop of its session."""
        if self._config.headless or self._session is None:
            return self._environment
        return {**remove_screen_variables(self._environment), **(await self._session.desktop()).environment}

    async def _proxy(self, allow_private: Collection[str], upstream: str | None) -> JudgingProxy:
        from handrail_browser.chromium.proxy import JudgingProxy

        domains = DomainPolicy(self._config.allowed_domains, self._config.denied_domains)
        proxy = JudgingProxy(tuple(allow_private), domains, upstream, self._resolver)
        await proxy.start()
        return proxy

    async def connect(self, url: str) -> BrowserDriver:
        """Use a browser that runs already, in the place of our own."""
        from handrail_browser.chromium.attached_browser import attach_browser

        async with self._starting:
            browser = await attach_browser(url, most_bytes=self._config.download_max_bytes)
            await self._let_go()
            self.shared = True
            return self._take(browser)

    async def close(self) -> None:
        """End the browser."""
        await self._let_go()

    async def _start(self, allow_private: Collection[str], upstream: str | None) -> BrowserDriver:
        from handrail_browser.chromium.browser import ChromiumBrowser
        from handrail_browser.chromium.launcher import find_chromium, launch_chromium

        config = self._config
        executable = find_chromium(config.executable, self._programs)
        assert executable is not None
        around = await self._around()
        proxy = await self._proxy(allow_private, upstream)
        try:
            running = await launch_chromium(
                executable,
                proxy=proxy.url,
                environment=around,
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

        browser = ChromiumBrowser(
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

    def _take(self, browser: ChromiumBrowser) -> BrowserDriver:
        from handrail_browser.chromium.driver import ChromiumDriver

        self._driver, self._gone = ChromiumDriver(browser), browser.connection.closed.is_set
        return self._driver

    async def _let_go(self) -> None:
        if self._driver is not None:
            driver, self._driver = self._driver, None
            self.snapshots.clear()
            await driver.close()


async def open_session_browser(context: ServiceContext) -> SessionBrowser:
    """Create the browser service of a session. No browser is started yet."""
    assert isinstance(context.config, BrowserConfig)
    return SessionBrowser(context.config, context.environment, data=context.data, session=context.session)


def create_browser_service(
    open: Callable[[ServiceContext], Awaitable[SessionBrowser]] = open_session_browser,
) -> Service:
    """Create the service `browser`."""
    return Service("browser", open, scope="session", missing=_explain_missing, examine=examine_driver)


async def examine_driver(session: Session) -> Sequence[Finding]:
    """Report the driver that would be used here, if the configuration mentions PinchTab."""
    found: SessionBrowser = await session.service("browser")
    if not found.may_be_pinchtab:
        return ()
    try:
        choice = await found.choose()
    except ToolUnavailable as exc:
        return (Finding("browser driver", False, str(exc), exc.hint or ""),)
    told = "a PinchTab that you run" if choice.driver == "joined" else choice.driver
    return (Finding("browser driver", True, f"{told}; before it is used, {choice.asks}" if choice.asks else told),)


def _explain_missing() -> str | None:
    from handrail.workers.host_programs import find_own_programs
    from handrail_browser.chromium.launcher import explain_missing_browser

    return explain_missing_browser(None, find_own_programs())

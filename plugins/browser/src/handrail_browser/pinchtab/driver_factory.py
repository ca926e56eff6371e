"""PinchTab for one session: our own, or the user's."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from handrail import Downstream, TimedOut
from handrail.net.resolver import HostResolver
from handrail_browser.chromium.proxy import JudgingProxy
from handrail_browser.domains import DomainPolicy
from handrail_browser.pinchtab.address_guard import AddressGuard
from handrail_browser.pinchtab.client import PinchTabClient
from handrail_browser.pinchtab.driver import PinchTabDriver
from handrail_browser.pinchtab.launcher import OwnPinchTab, start_pinchtab
from handrail_browser.pinchtab.tab_hosts import InstanceHost, SingleBrowserHost, TabHost
from handrail_browser.pinchtab.tabs import PinchTabPages

if TYPE_CHECKING:
    from handrail_browser.config import BrowserConfig

ANSWER_S = 2.0


async def is_pinchtab_running(url: str) -> bool:
    """Return True if a PinchTab responds at an address. No secret is sent."""
    client = PinchTabClient(url, None)
    try:
        await client.get("/health", seconds=ANSWER_S)
    except TimedOut:
        return False
    except Downstream as exc:
        return exc.details.get("http_status") == 401
    finally:
        await client.close()
    return True


async def open_own_pinchtab(
    config: BrowserConfig,
    executable: Path,
    chromium: str,
    *,
    proxy: JudgingProxy,
    environment: Mapping[str, str],
) -> tuple[PinchTabDriver, OwnPinchTab]:
    """Start a PinchTab of our own, whose browser has no route but the proxy."""
    own = await start_pinchtab(executable, chromium, proxy=proxy, environment=environment, headless=config.headless)
    try:
        place = SingleBrowserHost(own.client)
        pages = PinchTabPages(own.client, place, spare={str(row["id"]) for row in await place.tabs()})
    except BaseException:  # being cancelled, too: no process is left
        await own.end()
        raise
    rail = AddressGuard(proxy.domains, proxy.allow_private, proxy.resolver, proxy)

    async def end() -> None:
        try:
            await own.end()
        finally:
            await proxy.close()

    return PinchTabDriver(pages, rail, end=end, uploads=own.uploads), own


async def join_pinchtab(
    config: BrowserConfig, token: str | None, *, allow_private: Collection[str], resolver: HostResolver
) -> PinchTabDriver:
    """Connect to the user's PinchTab: in an instance of our own if it runs several, else with its existing tabs."""
    pinchtab = config.pinchtab
    assert pinchtab.url is not None
    scheme = "Session" if pinchtab.auth == "session" else "Bearer"
    client = PinchTabClient(pinchtab.url.rstrip("/"), f"{scheme} {token}" if token else None)
    try:
        place = await _select_tab_host(client, headless=config.headless, alone=pinchtab.auth == "session")
        spare = {str(row["id"]) for row in await place.tabs()} if isinstance(place, InstanceHost) else set[str]()
    except BaseException:  # being cancelled, too: the connections are closed
        with anyio.CancelScope(shield=True):
            await client.close()
        raise
    rail = AddressGuard(DomainPolicy(config.allowed_domains, config.denied_domains), allow_private, resolver)
    return PinchTabDriver(PinchTabPages(client, place, spare=spare), rail, end=client.close)


async def _select_tab_host(client: PinchTabClient, *, headless: bool, alone: bool) -> TabHost:
    told = await client.get("/health")
    if not alone and told.get("mode") == "dashboard":
        return await InstanceHost.started(client, headless=headless)
    return SingleBrowserHost(client)

"""PinchTab for one session: one of our own, or one that a person runs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from handrail import Downstream, TimedOut
from handrail.net.connecting import Resolver
from handrail_browser.chromium.proxy import Proxy
from handrail_browser.domains import Domains
from handrail_browser.pinchtab.client import Client
from handrail_browser.pinchtab.driver import PinchTabDriver
from handrail_browser.pinchtab.places import Instance, Place, Single
from handrail_browser.pinchtab.rail import Rail
from handrail_browser.pinchtab.starting import Own, started
from handrail_browser.pinchtab.tabs import Pages

if TYPE_CHECKING:
    from handrail_browser.config import BrowserConfig

ANSWER_S = 2.0


async def answers(url: str) -> bool:
    """Whether a PinchTab is at an address; nothing secret is sent."""
    client = Client(url, None)
    try:
        await client.get("/health", seconds=ANSWER_S)
    except TimedOut:
        return False
    except Downstream as exc:
        return exc.details.get("http_status") == 401
    finally:
        await client.close()
    return True


async def opened(
    config: BrowserConfig,
    executable: Path,
    chromium: str,
    *,
    proxy: Proxy,
    environment: Mapping[str, str],
) -> tuple[PinchTabDriver, Own]:
    """One of our own, whose browser knows no way but the proxy."""
    own = await started(executable, chromium, proxy=proxy, environment=environment, headless=config.headless)
    try:
        place = Single(own.client)
        pages = Pages(own.client, place, spare={str(row["id"]) for row in await place.tabs()})
    except BaseException:  # being cancelled, too: no process is left
        await own.end()
        raise
    rail = Rail(proxy.domains, proxy.allow_private, proxy.resolver, proxy)

    async def end() -> None:
        try:
            await own.end()
        finally:
            await proxy.close()

    return PinchTabDriver(pages, rail, end=end, uploads=own.uploads), own


async def joined(
    config: BrowserConfig, token: str | None, *, allow_private: Collection[str], resolver: Resolver
) -> PinchTabDriver:
    """One that a person runs: an instance of ours where it has several, else the tabs that there are."""
    pinchtab = config.pinchtab
    assert pinchtab.url is not None
    scheme = "Session" if pinchtab.auth == "session" else "Bearer"
    client = Client(pinchtab.url.rstrip("/"), f"{scheme} {token}" if token else None)
    try:
        place = await _place(client, headless=config.headless, alone=pinchtab.auth == "session")
        spare = {str(row["id"]) for row in await place.tabs()} if isinstance(place, Instance) else set[str]()
    except BaseException:  # being cancelled, too: the connections are closed
        with anyio.CancelScope(shield=True):
            await client.close()
        raise
    rail = Rail(Domains(config.allowed_domains, config.denied_domains), allow_private, resolver)
    return PinchTabDriver(Pages(client, place, spare=spare), rail, end=client.close)


async def _place(client: Client, *, headless: bool, alone: bool) -> Place:
    told = await client.get("/health")
    if not alone and told.get("mode") == "dashboard":
        return await Instance.started(client, headless=headless)
    return Single(client)

"""Sessions whose pages come from a server on this machine, through the allowance that a person may give."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.plugins.system.serving import known

from handrail import Service, Session, Tool, ToolContext, hookimpl
from handrail.api.approval import yes
from handrail.net.web_client import RequestLimits, WebClient
from handrail.testing import open_test_session
from handrail_browser.config import BrowserConfig
from handrail_browser.hooks import open_reader
from handrail_browser.search.tool import MAX_ANSWER_BYTES, create_web_search_tool
from handrail_browser.web.tool import create_web_fetch_tool
from handrail_documents import hooks


def to_this_machine(context: ToolContext) -> WebClient:
    """The client of tests: names of ours lead to this machine, which it may reach. It is given in code; no setting does this."""
    config = context.config
    assert isinstance(config, BrowserConfig)
    limits = RequestLimits(size=config.fetch_max_bytes, seconds=config.fetch_timeout, silence=config.fetch_silence)
    return WebClient(allow_private=("127.0.0.1",), resolver=known, limits=limits)


def searching_here(context: ToolContext) -> WebClient:
    """The same for searches."""
    config = context.config
    assert isinstance(config, BrowserConfig)
    limits = RequestLimits(hops=2, size=MAX_ANSWER_BYTES, seconds=config.search.timeout, silence=config.search.timeout)
    return WebClient(allow_private=("127.0.0.1",), resolver=known, limits=limits)


class Plugin:
    """The plugin, with a client that reaches this machine."""

    @hookimpl
    def handrail_register_tools(self) -> list[Tool]:
        return [create_web_fetch_tool(to_this_machine), create_web_search_tool(searching_here)]

    @hookimpl
    def handrail_register_config(self) -> type[BrowserConfig]:
        return BrowserConfig

    @hookimpl
    def handrail_register_services(self) -> list[Service]:
        return [Service("page_reader", open_reader, scope="session")]


@asynccontextmanager
async def opened(
    folder: Path, /, environment: Mapping[str, str] | None = None, *, documents: bool = False, **config: Any
) -> AsyncGenerator[Session, None]:
    settings = {"plugins": {"browser": {"fetch_per_minute": 0, **config}}}
    async with open_test_session(
        plugins={"browser": Plugin()} | ({"documents": hooks} if documents else {}),
        folder=folder,
        settings=settings,
        environment=environment,
        confirm=yes,
    ) as session:
        yield session

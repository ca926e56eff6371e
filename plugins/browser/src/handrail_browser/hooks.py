"""What this plugin registers. Light: it is imported at every start."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from handrail import hookimpl

if TYPE_CHECKING:
    from handrail import Service, ServiceContext, Tool
    from handrail_browser.config import BrowserConfig
    from handrail_browser.web.reader import Reader


@hookimpl
def handrail_register_tools() -> Iterable[Tool]:
    """`web_fetch`, `web_search`."""
    from handrail_browser.search.tool import web_search
    from handrail_browser.web.tool import web_fetch

    return [web_fetch, web_search]


@hookimpl
def handrail_register_config() -> type[BrowserConfig]:
    """`[plugins.browser]`."""
    from handrail_browser.config import BrowserConfig

    return BrowserConfig


@hookimpl
def handrail_register_services() -> Iterable[Service]:
    """What a session's pages are read with."""
    from handrail import Service

    return [Service("page_reader", open_reader, scope="session")]


async def open_reader(context: ServiceContext) -> Reader:
    """A reader for one session."""
    from handrail_browser.web.reader import Reader

    return Reader(context.environment)

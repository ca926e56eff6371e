"""Registration hooks of this plugin; lightweight because it is imported at every startup."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from handrail import hookimpl

if TYPE_CHECKING:
    from handrail import Evaluator, Service, ServiceContext, Tool
    from handrail_browser.config import BrowserConfig
    from handrail_browser.web.page_reader import PageReader


@hookimpl
def handrail_register_tools() -> Iterable[Tool]:
    """Return `execute_browser`, `web_fetch` and `web_search`."""
    from handrail_browser.browsing.tool import execute_browser
    from handrail_browser.search.tool import web_search
    from handrail_browser.web.tool import web_fetch

    return [execute_browser, web_fetch, web_search]


@hookimpl
def handrail_register_config() -> type[BrowserConfig]:
    """Return the model of `[plugins.browser]`."""
    from handrail_browser.config import BrowserConfig

    return BrowserConfig


@hookimpl
def handrail_register_services() -> Iterable[Service]:
    """Return the services for a session's browser and for reading its pages."""
    from handrail import Service
    from handrail_browser.browsing.browser_service import create_browser_service

    return [create_browser_service(), Service("page_reader", open_reader, scope="session")]


@hookimpl
def handrail_register_evaluators() -> Iterable[Evaluator]:
    """Return the evaluator of file uploads and of the use of the user's own browser."""
    from handrail_browser.browsing.evaluator import BrowserEvaluator

    return [BrowserEvaluator()]


async def open_reader(context: ServiceContext) -> PageReader:
    """Create a page reader for a session."""
    from handrail_browser.web.page_reader import PageReader

    return PageReader(context.environment)

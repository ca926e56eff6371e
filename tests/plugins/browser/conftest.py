"""A web application, and one browser for all tests of a module, with a tab of its own for each."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from pathlib import Path

import pytest
from tests.plugins.browser.site import Site, serving
from tests.plugins.browser.working import Hands, browsing


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with serving(Site()) as site:
        yield site


@pytest.fixture(scope="module")
def other() -> Iterator[Site]:
    """The same at another origin."""
    with serving(Site()) as site:
        yield site


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the session of this module is."""
    return tmp_path_factory.mktemp("session")


@pytest.fixture(scope="module")
async def shared(folder: Path) -> AsyncGenerator[Hands, None]:
    async with browsing(folder) as hands:
        yield hands


@pytest.fixture
async def hands(shared: Hands) -> AsyncGenerator[Hands, None]:
    """The browser, in a new tab that is closed after the test."""
    await shared.done("open_tab")
    yield shared
    await shared.done("close_tab")

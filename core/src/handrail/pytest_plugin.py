"""The pytest plugin: fixtures for tests of Handrail's plugins. Nothing is imported before a test asks for it."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from handrail.testing.session_fixtures import OpenSession


@pytest.fixture
def handrail_session(tmp_path: Path) -> OpenSession:
    """Open sessions like `handrail.testing.open_test_session`; all sessions of a test share one private folder.

    `async with handrail_session(tools=[greet]) as session: …`
    """
    from handrail.testing.session_fixtures import open_test_session

    return partial(open_test_session, folder=tmp_path)

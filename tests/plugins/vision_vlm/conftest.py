from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.plugins.vision_vlm.serving import served_apart


@pytest.fixture(scope="package")
def models() -> Iterator[str]:
    """The address of all the models, each under its name."""
    with served_apart("tests.plugins.vision_vlm.models") as url:
        yield url

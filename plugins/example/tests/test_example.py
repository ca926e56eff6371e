"""The backend keeps what it promises, and sees the patch where it is."""

import numpy as np
import pytest

from handrail import Rect, VisionBackend
from handrail.testing import VisionBackendContract
from handrail.testing.backend_contract import create_frame
from handrail_example import Example, ExampleConfig


class TestExample(VisionBackendContract):
    @pytest.fixture
    def backend(self) -> VisionBackend:
        return Example()


async def test_the_patch_is_found_where_it_is_on_the_screen():
    pixels = np.full((40, 60, 3), 255, np.uint8)
    pixels[10:20, 30:50] = (0x28, 0x1C, 0xC0)
    (seen,) = await Example(ExampleConfig(colour="#c01c28")).parse(create_frame(pixels, 100, 200), "")
    assert seen.rect == Rect(130, 210, 20, 10)

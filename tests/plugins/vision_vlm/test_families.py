"""Each family of models, asked over real HTTP: what a backend promises, and that what a model names is found on the screen."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import numpy as np
import pytest
from tests.plugins.vision_vlm.models import MODELS

from handrail import Frame, Rect, VisionBackend
from handrail.testing import VisionBackendContract
from handrail.testing.backend_contract import FakeBackendContext, create_frame, open_backend
from handrail_vision_vlm.hooks import handrail_register_vision_backends
from handrail_vision_vlm.model_families import MODEL_FAMILIES, HolotronBackend
from handrail_vision_vlm.tars.backend import UiTarsBackend

pytestmark = pytest.mark.anyio

BY_NAME = {backend.name: backend for backend in MODEL_FAMILIES}
EVERY = pytest.mark.parametrize("speaks", list(MODELS))


def backend_of(models: str, speaks: str, **settings: Any) -> VisionBackend:
    """The backend of one model. Of a family that speaks in several ways the version stands behind its name."""
    name, _, version = speaks.partition(" ")
    if name == "ui_tars" and version:
        settings["version"] = version
    kind = BY_NAME[name]
    return kind(kind.Config.model_validate({"url": f"{models}/{quote(speaks)}/v1", "model": "m", **settings}))


@pytest.mark.parametrize("name", list(BY_NAME))
class TestFamily(VisionBackendContract):
    @pytest.fixture
    def backend(self, models: str, name: str) -> VisionBackend:
        return backend_of(models, name)


def screen(bar: Rect, *, width: int, height: int, x: int = 0, y: int = 0) -> Frame:
    """A light screen with a dark bar on it."""
    pixels = np.full((height, width, 3), 240, np.uint8)
    pixels[bar.y : bar.bottom, bar.x : bar.right] = 20
    return create_frame(pixels, x, y)


@EVERY
@pytest.mark.parametrize(
    ("width", "height", "at"),
    [
        pytest.param(1280, 800, (0, 0), id="usual"),
        pytest.param(3840, 2160, (-3840, -100), id="large-and-left-of-the-first"),
        pytest.param(300, 200, (50, 60), id="small"),
        pytest.param(1000, 333, (0, 0), id="long"),
    ],
)
async def test_what_a_model_names_is_where_it_is_on_the_screen(
    models: str, speaks: str, width: int, height: int, at: tuple[int, int]
) -> None:
    bar = Rect(width // 2, height // 3, width // 5, height // 9)
    async with open_backend(backend_of(models, speaks), FakeBackendContext()) as backend:
        (found,) = await backend.parse(
            screen(bar, width=width, height=height, x=at[0], y=at[1]), "the button that saves"
        )
    assert found.rect is not None
    x, y = found.rect.center
    # A thousandth of the picture, and a pixel of what was sent, is as well as models name places.
    assert abs(x - at[0] - bar.center[0]) <= width / 1000 + 3
    assert abs(y - at[1] - bar.center[1]) <= height / 1000 + 3
    names_things = BY_NAME[speaks.partition(" ")[0]] not in (UiTarsBackend, HolotronBackend)
    assert found.text == ("Save" if names_things else "the button that saves")
    assert found.actions == ("click",)


@EVERY
async def test_nothing_found_is_no_failure(models: str, speaks: str) -> None:
    async with open_backend(backend_of(models, speaks), FakeBackendContext()) as backend:
        assert not await backend.parse(create_frame(np.full((200, 300, 3), 255, np.uint8), 0, 0), "a button")


@pytest.mark.parametrize("setting", ["pixels", "unit", "percent", "thousand"])
async def test_how_a_model_counts_can_be_configured(models: str, setting: str) -> None:
    bar = Rect(100, 50, 50, 20)
    async with open_backend(backend_of(models, "qwen", coordinates=setting), FakeBackendContext()) as backend:
        frame = screen(bar, width=1000, height=1000)
        if setting in ("unit", "percent"):
            with pytest.raises(Exception, match="coordinates go from 0 to") as caught:
                await backend.parse(frame, "")
            assert "coordinates" in (getattr(caught.value, "hint", None) or "")
        else:
            (found,) = await backend.parse(frame, "")
            assert found.rect == bar


def test_the_plugin_registers_each_family_once() -> None:
    registered = handrail_register_vision_backends()
    assert sorted(backend.name for backend in registered) == sorted(BY_NAME)
    assert len(registered) == len(BY_NAME)

"""Marks on a real window, by every backend that works here: their numbers can be read, and hide nothing."""

from __future__ import annotations

import base64
import os
import subprocess
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import cv2
import numpy as np
import pytest

import handrail
from handrail import Rect, Session
from handrail_gui.observe import annotate, model_image

pytestmark = pytest.mark.anyio

SEES = {"accessibility_tree", "parse_screen", "ocr"}


@asynccontextmanager
async def calculator(folder: Path, scale: float) -> AsyncGenerator[Session, None]:
    """A session whose desktop is as large as the scale asks for, with a calculator on it."""
    async with handrail.open(environment=os.environ, desktop="current", cwd=folder) as host:
        desktops = await host.runtime.service("desktops", session=None, desktop=None)
        size = {"width": round(1280 * scale), "height": round(800 * scale)}
        shown = await desktops.start(f"marks-{scale:g}".replace(".", "-"), **size)
        environment = {**os.environ, **shown.environment, "GDK_DPI_SCALE": f"{scale:g}"}
        async with await anyio.open_process(
            ["galculator"], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as program:
            try:
                async with handrail.open(environment=environment, desktop="current", cwd=folder) as session:
                    await drawn(session)
                    yield session
            finally:
                program.kill()


async def drawn(session: Session) -> None:
    """Wait until the program has told all of itself, and its window looks the same twice."""
    screen = await session.service("screen")
    # Where it is over nothing that would light up or show a hint.
    await (await session.service("hands")).move(0, 0)
    before = None
    with anyio.fail_after(30):
        while True:
            now = (await screen.capture()).pixels
            seen = await session.call("observe_screen", {"image": "none"})
            if len(seen["ui_elements"]) > 20 and before is not None and (before == now).all():
                return
            before = now
            await anyio.sleep(0.1)


@pytest.fixture(scope="module")
def reader() -> Any:
    """Reads one word of a picture."""
    from rapidocr import RapidOCR

    return RapidOCR(params={"Global.log_level": "critical"})


def read(reader: Any, tag: Any) -> str:
    """What is written in a tag, looked at from near."""
    large = cv2.resize(tag, None, fx=4, fy=4, interpolation=cv2.INTER_CUBIC)
    large = cv2.copyMakeBorder(large, 8, 8, 8, 8, cv2.BORDER_REPLICATE)
    told = reader(large, use_det=False, use_cls=False, use_rec=True).txts
    return told[0] if told else ""


def decoded(image_b64: str) -> Any:
    return cv2.imdecode(np.frombuffer(base64.b64decode(image_b64), np.uint8), cv2.IMREAD_COLOR)


@pytest.mark.parametrize("scale", [1, 1.5, 2])
async def test_numbers_are_readable_and_hide_nothing_with_every_backend(
    tmp_path: Path, scale: float, reader: Any
) -> None:
    answered: set[str] = set()
    async with calculator(tmp_path, scale) as session:
        for backend in session.runtime.backends.values():
            if not backend.capabilities & SEES or backend.missing() is not None:
                continue
            await session.use_backend(backend.name)
            seen = await session.call("observe_screen", {"image": "both"})
            # One that needs a server is installed, and has none here.
            assert seen.ok or seen.error_code == "backend_unavailable", seen
            if seen.ok and seen["actual_backend"] == backend.name and seen["ui_elements"]:
                answered.add(backend.name)
                await check(session, seen, reader)
    assert answered >= {"accessibility", "ocr"}


async def check(session: Session, seen: Any, reader: Any) -> None:
    observation = session.observations.get(seen["observation_id"])
    assert observation.transform is not None
    frame = await (await session.service("screen")).capture()
    pixels = model_image.scale_frame(frame, observation.transform)
    found = annotate.place_marks(pixels, observation.elements, observation.transform)
    numbered = [(mark, mark.tag) for mark in found if mark.tag is not None]
    assert len(numbered) >= 0.7 * len(found) > 15
    shown, empty = decoded(seen["image_b64"]), annotate.find_blank_pixels(pixels)
    # Reading takes long: every third stands for the others.
    for mark, tag in numbered[::3]:
        # The letter is always the same, and the reader takes an e of this size for a 0 now and then.
        assert read(reader, shown[tag.y : tag.bottom, tag.x : tag.right])[1:] == mark.id[1:]
    for mark, tag in numbered:
        box = mark.box
        inside = tag.intersect(Rect(box.x + 3, box.y + 3, box.width - 6, box.height - 6))
        assert empty[inside.y : inside.bottom, inside.x : inside.right].all(), f"{mark.id} hides its own thing"
        others = [other.box for other in found if other.box != box]
        assert all(tag.intersect(other).empty or other.intersect(box) == box for other in others), mark.id
    assert (decoded(seen["raw_image_b64"]).shape, decoded(seen["raw_image_b64"]).max()) == (shown.shape, 255)

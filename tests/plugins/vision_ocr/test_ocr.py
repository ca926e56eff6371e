"""The backend `ocr` on pictures whose text is known, and on a real window."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from typing import Any

import anyio
import cv2
import numpy as np
import psutil
import pytest

import handrail
from handrail import Answer, Approval, BackendUnavailable, Choice, VisionBackend
from handrail.testing import VisionBackendContract
from handrail.testing.backend_contract import FakeBackendContext, create_frame
from handrail_vision_ocr.backend import OcrBackend, OcrConfig

pytestmark = pytest.mark.anyio


def picture(*texts: tuple[str, int, int], width: int = 640, height: int = 200) -> Any:
    """Black on white, each text with its left end and its line."""
    pixels = np.full((height, width, 3), 255, np.uint8)
    for text, x, y in texts:
        cv2.putText(pixels, text, (x, y), cv2.FONT_HERSHEY_SIMPLEX, 0.7, (0, 0, 0), 1, cv2.LINE_AA)
    return pixels


@pytest.fixture
async def ocr() -> AsyncGenerator[OcrBackend, None]:
    backend = OcrBackend()
    await backend.open(FakeBackendContext())
    yield backend
    await backend.close()


def texts(elements: Any) -> list[str]:
    return [element.text for element in elements if element.role == "text"]


class TestOcr(VisionBackendContract):
    @pytest.fixture
    def backend(self) -> VisionBackend:
        return OcrBackend()

    @pytest.fixture
    def pixels(self) -> Any:
        return picture(("Save", 20, 40))


async def test_lines_are_read_where_they_are(ocr: OcrBackend) -> None:
    frame = create_frame(picture(("Open file", 40, 60), ("Total 1,234.50", 300, 140)), -640, 100)
    seen = {element.text: element for element in await ocr.parse(frame, "")}
    assert {"Open file", "Total 1,234.50"} <= set(seen)
    rect = seen["Open file"].rect
    assert rect is not None
    assert rect.contains(-640 + 80, 100 + 54)
    assert seen["Open file"].source == "ocr"


async def test_only_what_changed_is_read_again_and_the_rest_stays(ocr: OcrBackend) -> None:
    before = picture(("First line", 20, 40), ("Second line", 20, 100), ("Third line", 20, 160))
    after = picture(("First line", 20, 40), ("Another text", 20, 100), ("Third line", 20, 160))
    first = await ocr.parse(create_frame(before, 0, 0), "")
    second = await ocr.parse(create_frame(after, 0, 0), "")
    assert texts(second) == ["First line", "Another text", "Third line"]
    kept = [element for element in second if element.text in ("First line", "Third line") and element.role == "text"]
    assert all(element in first for element in kept)


async def test_what_is_gone_is_not_remembered(ocr: OcrBackend) -> None:
    await ocr.parse(create_frame(picture(("Going", 20, 40), ("Staying", 20, 160)), 0, 0), "")
    assert texts(await ocr.parse(create_frame(picture(("Staying", 20, 160)), 0, 0), "")) == ["Staying"]
    assert texts(await ocr.parse(create_frame(picture(), 0, 0), "")) == []


async def test_a_button_is_found_by_its_frame_and_named_by_its_text(ocr: OcrBackend) -> None:
    pixels = picture(("Apply", 60, 66))
    cv2.rectangle(pixels, (40, 40), (160, 80), (120, 120, 120), 1)
    cv2.circle(pixels, (312, 52), 14, (200, 80, 20), -1)
    seen = await ocr.parse(create_frame(pixels, 0, 0), "")
    (box,) = [element for element in seen if element.role == "box" and element.text == "Apply"]
    assert box.rect is not None
    assert abs(box.rect.x - 40) <= 3
    assert any(e.rect and e.rect.contains(312, 52) and e.fingerprint.startswith("icon:") for e in seen)


async def test_controls_are_left_out_when_they_are_not_wanted() -> None:
    pixels = picture(("Apply", 60, 66))
    cv2.rectangle(pixels, (40, 40), (160, 80), (120, 120, 120), 1)
    backend = OcrBackend(OcrConfig(controls=False))
    await backend.open(FakeBackendContext())
    try:
        assert {element.role for element in await backend.parse(create_frame(pixels, 0, 0), "")} == {"text"}
    finally:
        await backend.close()


def children() -> set[int]:
    running = (child for child in psutil.Process().children() if child.status() != psutil.STATUS_ZOMBIE)
    return {child.pid for child in running if "handrail_vision_ocr.worker" in child.cmdline()}


async def test_a_question_that_is_cancelled_ends_the_process_and_the_next_one_is_answered(ocr: OcrBackend) -> None:
    frame = create_frame(picture(("Still here", 20, 40)), 0, 0)
    assert texts(await ocr.parse(frame, "")) == ["Still here"]
    (worker,) = children()
    noise = np.random.default_rng(1).integers(0, 255, (800, 1280, 3), np.uint8)
    with anyio.move_on_after(0.02):
        await ocr.parse(create_frame(noise, 0, 0), "")
    assert not psutil.pid_exists(worker)
    assert texts(await ocr.parse(frame, "")) == ["Still here"]


async def test_a_process_that_dies_is_said_and_started_anew(ocr: OcrBackend) -> None:
    frame = create_frame(picture(("Back again", 20, 40)), 0, 0)
    await ocr.parse(frame, "")
    (worker,) = children()
    os.kill(worker, 9)
    with pytest.raises(BackendUnavailable, match="reads pictures"):
        await ocr.parse(frame, "")
    assert texts(await ocr.parse(frame, "")) == ["Back again"]


async def test_nothing_of_it_is_left_after_closing() -> None:
    backend = OcrBackend()
    await backend.open(FakeBackendContext())
    await backend.parse(create_frame(picture(("Bye", 20, 40)), 0, 0), "")
    assert children()
    await backend.close()
    assert not children()


async def test_chinese_and_japanese_are_read(ocr: OcrBackend) -> None:
    from PIL import Image, ImageDraw, ImageFont

    page = Image.new("RGB", (480, 120), "white")
    font = ImageFont.truetype("/usr/share/fonts/opentype/noto/NotoSansCJK-Regular.ttc", 24)
    ImageDraw.Draw(page).text((20, 30), "保存文件 設定を変更", fill="black", font=font)
    seen = "".join(texts(await ocr.parse(create_frame(np.asarray(page)[:, :, ::-1], 0, 0), "")))
    assert "保存文件" in seen
    assert "設定を変更" in seen


FONTS = {"Sans": "DejaVuSans", "Mono": "DejaVuSansMono"}


def written(font: str, *lines: tuple[str, int, int], height: int = 120) -> Any:
    """Lines in a real font of 16 pixels, as programs write them, each with its left end and its top."""
    from PIL import Image, ImageDraw, ImageFont

    page = Image.new("RGB", (640, height), "white")
    face = ImageFont.truetype(f"/usr/share/fonts/truetype/dejavu/{FONTS[font]}.ttf", 16)
    for text, x, y in lines:
        ImageDraw.Draw(page).text((x, y), text, fill="black", font=face)
    return np.asarray(page)[:, :, ::-1].copy()


def menu(*names: str, gap: int) -> list[tuple[str, int, int]]:
    from PIL import ImageFont

    face = ImageFont.truetype(f"/usr/share/fonts/truetype/dejavu/{FONTS['Sans']}.ttf", 16)
    placed: list[tuple[str, int, int]] = []
    x = 20
    for name in names:
        placed.append((name, x, 40))
        x += int(face.getlength(name)) + gap
    return placed


@pytest.mark.parametrize("gap", [12, 16, 22, 40])
async def test_each_item_of_a_menu_bar_is_an_element_of_its_own(ocr: OcrBackend, gap: int) -> None:
    placed = menu("File", "Edit", "Search", "View", "Document", "Help", gap=gap)
    seen = {element.text: element.rect for element in await ocr.parse(create_frame(written("Sans", *placed), 0, 0), "")}
    for name, x, y in placed:
        rect = seen[name]
        assert rect is not None
        assert rect.contains(x + 8, y + 10)
        assert rect.width < 120


@pytest.mark.parametrize("font", ["Sans", "Mono"])
async def test_a_sentence_stays_one_line(ocr: OcrBackend, font: str) -> None:
    line = "2. Send it to the office before noon, or call me."
    assert texts(await ocr.parse(create_frame(written(font, (line, 20, 40)), 0, 0), "")) == [line]


async def test_two_words_are_one_text_where_all_letters_are_of_one_width(ocr: OcrBackend) -> None:
    lines = [("Next meeting: room B-204, at nine", 20, 20), ("total 48", 20, 60)]
    assert texts(await ocr.parse(create_frame(written("Mono", *lines), 0, 0), "")) == [text for text, *_ in lines]


async def test_cells_are_apart_where_a_rule_is_between_them(ocr: OcrBackend) -> None:
    pixels = written("Sans", ("Brunner Optik", 24, 40), ("129.90", 148, 40))
    for x in (20, 144, 210):
        pixels[30:70, x] = 190
    pixels[[30, 69], 20:211] = 190
    assert {"Brunner Optik", "129.90"} <= set(texts(await ocr.parse(create_frame(pixels, 0, 0), "")))


async def yes(approval: Approval) -> Answer:
    return Answer(Choice.ONCE)


async def test_a_program_without_a_tree_is_worked_by_what_is_written_on_it(tmp_path: Any) -> None:
    async with handrail.open(desktop="private", backend="ocr", confirm=yes, cwd=tmp_path) as session:
        desktop = await session.desktop()
        environment = {**os.environ, **desktop.environment, "NO_AT_BRIDGE": "1"}
        async with await anyio.open_process(["galculator"], env=environment, stdout=-3, stderr=-3) as calculator:

            async def shown(text: str) -> dict[str, Any]:
                """What says so on the screen, once it is there."""
                with anyio.fail_after(60):
                    while True:
                        seen = await session.call("observe_screen", {"image": "none"})
                        assert seen["actual_backend"] == "ocr"
                        if (found := next((e for e in seen["ui_elements"] if e["text"] == text), None)) is not None:
                            return found

            try:
                for key in ("7", "8"):
                    clicked = await session.call(
                        "execute_gui", {"action": "click", "element_id": (await shown(key))["id"]}
                    )
                    assert clicked.ok
                await shown("78")
            finally:
                calculator.kill()


def test_settings_are_checked() -> None:
    with pytest.raises(ValueError, match="threads"):
        OcrConfig(threads=0)

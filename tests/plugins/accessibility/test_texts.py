from __future__ import annotations

import pytest

from handrail import Element
from handrail_accessibility.control import Control

from .conftest import Launch

pytestmark = pytest.mark.anyio


async def editor(control: Control) -> Element:
    return next(e for e in (await control.tree(window="Mousepad")).elements if e.role == "text")


async def test_text_is_inserted_at_the_caret(control: Control, launch: Launch) -> None:
    await launch("mousepad", title="Mousepad")
    text = await editor(control)
    assert await control.insert_text(text, "漢字 😀, ")
    assert await control.insert_text(text, "ÄÖß ✓\n")
    assert await control.read_text(text) == "漢字 😀, ÄÖß ✓\n"


async def test_a_label_takes_no_text(control: Control, launch: Launch) -> None:
    await launch("galculator", title="galculator")
    key = next(e for e in (await control.tree()).elements if e.text == "8")
    assert not await control.insert_text(key, "x")
    assert await control.read_text(key) is None

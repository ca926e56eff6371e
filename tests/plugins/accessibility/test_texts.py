from __future__ import annotations

from collections.abc import Callable

import pytest

from handrail import Element
from handrail_accessibility.tree.protocol import AccessibilityController

from .conftest import Launch, shows, until
from .published import EDITABLE, ENTRY, FIELD, USABLE, Published, Thing

pytestmark = pytest.mark.anyio


async def editor(control: AccessibilityController) -> Element:
    return next(e for e in (await control.tree(window="Mousepad")).elements if e.role == "text")


async def test_text_is_inserted_at_the_caret(control: AccessibilityController, launch: Launch) -> None:
    await launch("mousepad", title="Mousepad")
    text = await editor(control)
    assert await control.insert_text(text, "漢字 😀, ")
    assert await control.insert_text(text, "ÄÖß ✓\n")
    assert await control.read_text(text) == "漢字 😀, ÄÖß ✓\n"


@pytest.mark.parametrize(
    ("taken", "left", "there"),
    [
        pytest.param(lambda whole: whole[:10], "x" * 10, True, id="goes-on-on-the-next-page"),
        pytest.param(str.upper, "", False, id="is-taken-out-again"),
        pytest.param(lambda whole: max("y" * 30, whole.upper(), key=len), "y" * 30, True, id="cannot-be-taken-out"),
    ],
)
async def test_a_text_that_may_be_there_counts_as_taken_so_that_it_is_not_written_twice(
    control: AccessibilityController, published: Published, taken: Callable[[str], str], left: str, there: bool
) -> None:
    field = Thing(ENTRY, "Name", states=USABLE | {EDITABLE}, interfaces=FIELD, taken=taken)
    published.show("/name", field)
    await until(lambda: shows(control, "Published"), "the window")
    (seen,) = (await control.tree(window="Published", query="Name")).elements
    assert await control.insert_text(seen, "x" * 20) is there
    assert field.text == left


async def test_a_label_takes_no_text(control: AccessibilityController, launch: Launch) -> None:
    await launch("galculator", title="galculator")
    key = next(e for e in (await control.tree()).elements if e.text == "8")
    assert not await control.insert_text(key, "x")
    assert await control.read_text(key) is None

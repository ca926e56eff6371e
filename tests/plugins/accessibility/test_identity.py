from __future__ import annotations

from typing import Any

import pytest

from handrail import Session
from handrail_accessibility.tree.protocol import AccessibilityController

from .conftest import Launch, Use, empty, until
from .published import BUTTON, ENTRY, LABEL, Published, Thing

pytestmark = pytest.mark.anyio


async def ids(session: Session, **args: Any) -> dict[str, str]:
    result = await session.call("get_ui_context", args)
    assert result.ok, result
    return {element["name"]: element["id"] for element in result["elements"] if element["name"]}


async def test_the_same_element_keeps_its_id(session: Session, launch: Launch, use: Use) -> None:
    await launch("galculator", title="galculator")
    before = await ids(session)
    await use(action="click", element_id=before["8"])
    assert await ids(session) == before


async def test_an_id_of_a_closed_window_is_stale(session: Session, launch: Launch, use: Use) -> None:
    await launch("galculator", title="galculator")
    key = (await ids(session))["8"]
    programs_gone = await use(action="click", element_name="Quit")
    assert programs_gone["status"] == "success", programs_gone
    result = await use(action="click", element_id=key)
    assert result["error"]["code"] == "stale_element"


async def test_another_run_of_a_program_has_other_ids(
    session: Session, control: AccessibilityController, launch: Launch
) -> None:
    first = await launch("galculator", title="galculator")
    before = await ids(session)
    first.kill()
    await until(lambda: empty(control), "the first run to end")
    await launch("galculator", title="galculator")
    after = await ids(session)
    assert before.keys() == after.keys()
    assert not set(before.values()) & set(after.values())


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(Thing(BUTTON, "Delete everything", interfaces=("Accessible", "Component", "Action")), id="name"),
        pytest.param(Thing(ENTRY, "Save", interfaces=("Accessible", "Component", "Action")), id="role"),
    ],
)
async def test_a_path_that_is_used_again_is_another_element(
    session: Session, use: Use, published: Published, other: Thing
) -> None:
    pressed: list[str] = []
    other.pressed = lambda: pressed.append(other.name)
    published.show("/thing", Thing(BUTTON, "Save", interfaces=("Accessible", "Component", "Action")))
    known = (await ids(session, window="Published"))["Save"]
    published.show("/thing", other)
    result = await use(action="click", element_id=known)
    assert result["error"]["code"] == "stale_element", result
    assert pressed == []
    assert known not in (await ids(session, window="Published")).values()


async def test_a_stale_id_is_answered_with_what_looks_like_it_now(
    session: Session, use: Use, published: Published
) -> None:
    published.show("/first", Thing(BUTTON, "Save"))
    known = (await ids(session, window="Published"))["Save"]
    published.hide("/first")
    published.show("/second", Thing(BUTTON, "Save"))
    result = await use(action="click", element_id=known)
    (candidate,) = result["error"]["details"]["candidates"]
    assert candidate["id"] != known
    assert {"role": "button", "text": "Save", "window": "Published"}.items() <= candidate.items()


async def test_content_that_changes_is_the_same_element(
    session: Session, control: AccessibilityController, published: Published
) -> None:
    published.show("/clock", Thing(LABEL, "12:00"))
    (before,) = (await control.tree(window="Published", full=True)).elements
    published.show("/clock", Thing(LABEL, "12:01"))
    after = await control.refresh(before)
    assert after is not None
    assert after.text == "12:01"
    assert after.fingerprint == before.fingerprint


async def test_an_element_that_is_gone_refreshes_to_nothing(
    control: AccessibilityController, published: Published
) -> None:
    published.show("/button", Thing(BUTTON, "Go"))
    (button,) = (await control.tree(window="Published")).elements
    assert await control.refresh(button) is not None
    published.hide("/button")
    assert await control.refresh(button) is None


async def test_an_id_that_was_never_given_is_stale(use: Use) -> None:
    result = await use(action="click", element_id="e987654")
    assert result["error"]["code"] == "stale_element"


def two_of_one_name(published: Published) -> list[str]:
    """Which of two buttons "OK" are pressed, in order."""
    pressed: list[str] = []
    for number in (1, 2):
        button = Thing(BUTTON, "OK", interfaces=("Accessible", "Component", "Action"))
        button.pressed = lambda number=number: pressed.append(f"{number}")
        published.show(f"/ok{number}", button)
    return pressed


async def test_several_that_fit_are_named_and_none_is_touched(use: Use, published: Published) -> None:
    pressed = two_of_one_name(published)
    result = await use(action="click", element_name="OK", window="Published")
    assert result["error"]["code"] == "ambiguous_element"
    assert [candidate["text"] for candidate in result["error"]["details"]["candidates"]] == ["OK", "OK"]
    assert pressed == []


async def test_a_candidate_of_several_can_be_used(use: Use, published: Published) -> None:
    pressed = two_of_one_name(published)
    several = await use(action="click", element_name="OK", window="Published")
    second = several["error"]["details"]["candidates"][1]["id"]
    assert (await use(action="click", element_id=second))["status"] == "success"
    assert pressed == ["2"]


@pytest.mark.parametrize(
    ("naming", "found"),
    [
        pytest.param({"element_name": "Save"}, "Save", id="exact-before-part"),
        pytest.param({"element_name": "save all…"}, "Save All", id="case-and-dots"),
        pytest.param({"element_name": "ance"}, "Cancel", id="part"),
        pytest.param({"automation_id": "go"}, "Go", id="automation-id"),
        pytest.param({"control_type": "text"}, "Name", id="type"),
        pytest.param({"control_type": "button", "element_name": "cancel"}, "Cancel", id="type-and-name"),
    ],
)
async def test_an_element_is_found_by_what_names_it(
    use: Use, published: Published, naming: dict[str, str], found: str
) -> None:
    for name in ("Save", "Save All", "Cancel"):
        published.show(f"/{name.replace(' ', '')}", Thing(BUTTON, name))
    published.show("/go", Thing(BUTTON, "Go", accessible_id="go"))
    published.show("/name", Thing(ENTRY, "Name"))
    result = await use(action="read", window="Published", **naming)
    assert result["element_name"] == found


async def test_a_name_that_nothing_has_is_answered_with_near_ones(use: Use, published: Published) -> None:
    published.show("/save", Thing(BUTTON, "Save"))
    result = await use(action="click", element_name="Safe", window="Published")
    assert result["error"]["code"] == "not_found"
    assert [candidate["text"] for candidate in result["error"]["details"]["candidates"]] == ["Save"]


async def test_an_item_of_a_menu_that_is_elsewhere_is_named_with_its_way(launch: Launch, use: Use) -> None:
    await launch("mousepad", title="Mousepad")
    result = await use(action="click", element_name="Edit > Find and Replace...")
    assert "Search > Find and Replace..." in [c["text"] for c in result["error"]["details"]["candidates"]]


async def test_an_action_that_names_no_element_is_refused(use: Use) -> None:
    result = await use(action="click")
    assert result["error"]["code"] == "invalid_arguments"

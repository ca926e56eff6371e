"""Places are read in whatever form a model names them."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from handrail_vision_vlm.place_parser import PicturePlace, UnreadableAnswer, parse_places

BOX = (10.0, 20.0, 30.0, 40.0)


@pytest.mark.parametrize(
    ("answer", "place"),
    [
        ('{"bbox_2d": [10, 20, 30, 40], "label": "A"}', PicturePlace(BOX, "A")),
        ('```json\n[{"bbox": [10, 20, 30, 40], "text": "A", "type": "Button"}]\n```', PicturePlace(BOX, "A", "Button")),
        ('Here: {"elements": [{"name": "A", "bounding_box": {"x1": 10, "y1": 20, "x2": 30, "y2": 40}}]} Done.', PicturePlace(BOX, "A")),
        ('[{"label": "A", "x": 10, "y": 20, "width": 20, "height": 20}]', PicturePlace(BOX, "A")),
        ('[{"label": "A", "bbox": "10, 20, 30, 40"}]', PicturePlace(BOX, "A")),
        ('[{"label": "A", "bbox": [[10, 20], [30, 40]]}]', PicturePlace(BOX, "A")),
        ("[[10, 20, 30, 40]]", PicturePlace(BOX)),
        ("The box is [10, 20, 30, 40].", PicturePlace(BOX)),
        ("<|object_ref_start|>A<|object_ref_end|><|box_start|>(10,20),(30,40)<|box_end|>", PicturePlace(BOX)),
        ("<bbox>10 20 30 40</bbox>", PicturePlace(BOX)),
        ('{"x": 10, "y": 20}', PicturePlace((10, 20))),
        ('[{"point_2d": [10, 20], "label": "A"}]', PicturePlace((10, 20), "A")),
        ('{"action": "left_click", "coordinate": [10, 20]}', PicturePlace((10, 20))),
        ("Click(10, 20)", PicturePlace((10, 20))),
        ("pyautogui.click(x=0.5, y=0.25)", PicturePlace((0.5, 0.25))),
        ("<point>10 20</point>", PicturePlace((10, 20))),
        ("Thought: near (1, 2)\nAction: click(start_box='(10,20)')", PicturePlace((10, 20))),
        ('<point x="10.0" y="20" alt="A &amp; B">A</point>', PicturePlace((10, 20), "A & B", "", "percent")),
        ('<points coords="1 1 010 020">A</points>', PicturePlace((10, 20), "A", "", "thousand")),
        ('<points coords="0 10 20"/>', PicturePlace((10, 20), "", "", "thousand")),
    ],
)  # fmt: skip
def test_each_form_is_read(answer: str, place: PicturePlace) -> None:
    assert parse_places(answer) == [place]


def test_several_points_of_one_tag_are_several_places() -> None:
    first = parse_places('<points x1="1.5" y1="2" x2="3" y2="4" alt="tabs">tabs</points>')
    assert [place.numbers for place in first] == [(1.5, 2), (3, 4)]
    second = parse_places('<points coords="1 1 010 020 2 030 040">tabs</points>')
    assert [place.numbers for place in second] == [(10, 20), (30, 40)]
    assert {place.label for place in (*first, *second)} == {"tabs"}


@pytest.mark.parametrize("answer", ["[]", "```json\n[]\n```", '{"elements": []}', "There is none: []"])
def test_an_empty_list_is_an_answer(answer: str) -> None:
    assert parse_places(answer) == []


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "It is on the left.",
        '{"error": "not found"}',
        '{"x": null, "y": null}',
        "[1, 2, 3]",
        '{"bbox": [1, 2, 3]}',
        "{",
    ],
)
def test_what_names_no_place_is_refused(answer: str) -> None:
    with pytest.raises(UnreadableAnswer):
        parse_places(answer)


numbers = st.lists(st.integers(0, 1000), min_size=4, max_size=4)
boxes = st.lists(
    st.fixed_dictionaries({"label": st.text(min_size=1).filter(str.strip), "bbox": numbers}), min_size=1, max_size=8
)


@settings(deadline=None)
@given(boxes=boxes, before=st.text(st.characters(exclude_characters="[]{}<>():"), max_size=20))
def test_every_box_of_a_list_is_read_whatever_stands_before_it(boxes: list[dict[str, Any]], before: str) -> None:
    found = parse_places(f"{before}{json.dumps(boxes)}")
    assert [list(place.numbers) for place in found] == [box["bbox"] for box in boxes]
    assert [place.label for place in found] == [" ".join(box["label"].split()) for box in boxes]


@settings(deadline=None)
@given(boxes=boxes, share=st.floats(0, 1))
def test_of_a_list_that_was_cut_all_whole_boxes_are_read(boxes: list[dict[str, Any]], share: float) -> None:
    whole = json.dumps(boxes)
    cut = whole[: int(len(whole) * share)]
    wanted = sum(len(json.dumps(boxes[: n + 1])) - 1 <= len(cut) for n in range(len(boxes)))
    try:
        found = parse_places(cut)
    except UnreadableAnswer:
        found = []
    assert [list(place.numbers) for place in found[:wanted]] == [box["bbox"] for box in boxes[:wanted]]


@pytest.mark.parametrize(
    "answer",
    [
        "[" * 100_000,
        "{" * 100_000,
        '{"a":' * 50_000,
        "<points " * 20_000,
        "(1," * 60_000,
        pytest.param(f"<points {'a' * 390_000}>", id="a-name"),
        pytest.param(f"<point{' ' * 390_000}x", id="gap-in-a-tag"),
        pytest.param(f"(1{' ' * 390_000}x", id="gap-after-a-number"),
        pytest.param(f"{'[' * 190}{'1,' * 190_000}", id="one-list-read-again"),
    ],
)
def test_hostile_answers_are_done_with_soon(answer: str) -> None:
    with pytest.raises(UnreadableAnswer):
        parse_places(answer)


@settings(deadline=None)
@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(answer: str) -> None:
    with suppress(UnreadableAnswer):
        parse_places(answer)


def test_numbers_of_any_length_are_no_places() -> None:
    answer = f'[{{"bbox": [1{"0" * 400}, 0, 1, 1]}}, {{"bbox": [NaN, 1, 1, 1]}}, {{"bbox": [10, 20, 30, 40]}}]'
    assert parse_places(answer) == [PicturePlace(BOX)]

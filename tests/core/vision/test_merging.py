"""Several looks at one screen make one list."""

from __future__ import annotations

from hypothesis import given, strategies as st

from handrail import Element, Rect
from handrail.vision.element_merge import merge_elements

SAVE = Element("button", "Save", Rect(10, 10, 80, 30), actions=("click",), fingerprint="save")


def read(text: str, rect: Rect, source: str = "ocr") -> Element:
    return Element("text", text, rect, source=source)


def test_what_is_written_on_a_button_is_the_button() -> None:
    (one,) = merge_elements([SAVE], [read("Save", Rect(30, 16, 40, 18))])
    assert (one.source, one.also, one.fingerprint) == ("accessibility", ("ocr",), "save")


def test_a_control_without_a_name_is_named_by_what_is_written_on_it() -> None:
    nameless = Element("button", "", Rect(10, 10, 80, 30), actions=("click",))
    (one,) = merge_elements([nameless], [read("Send", Rect(30, 16, 40, 18))])
    assert (one.text, one.role, one.also) == ("Send", "button", ("ocr",))


def test_other_words_in_the_same_place_are_another_thing() -> None:
    assert [e.text for e in merge_elements([SAVE], [read("2 files", Rect(30, 16, 40, 18))])] == ["Save", "2 files"]


def test_the_same_word_elsewhere_is_another_thing() -> None:
    both = merge_elements([SAVE], [read("Save", Rect(300, 16, 40, 18))])
    assert [e.source for e in both] == ["accessibility", "ocr"]


def test_a_line_of_a_long_text_belongs_to_it() -> None:
    text = Element("text", "", Rect(0, 0, 500, 400), value="first line\nsecond line")
    (one,) = merge_elements([text], [read("second line", Rect(5, 30, 100, 16))])
    assert one.also == ("ocr",)


def test_the_smaller_of_two_that_could_be_it_is_it() -> None:
    box = Element("group", "Save options", Rect(0, 0, 300, 200))
    both = merge_elements([box, SAVE], [read("Save", Rect(30, 16, 40, 18))])
    assert [e.also for e in both] == [(), ("ocr",)]


def test_three_sources_are_all_named() -> None:
    seen = merge_elements(
        merge_elements([SAVE], [read("Save", Rect(30, 16, 40, 18))]), [read("", Rect(10, 10, 80, 30), "vision")]
    )
    assert [e.also for e in seen] == [("ocr", "vision")]


rects = st.builds(Rect, st.integers(-50, 50), st.integers(-50, 50), st.integers(1, 60), st.integers(1, 60))
elements = st.lists(st.builds(read, st.sampled_from(["", "a", "b", "ab"]), rects), max_size=6)


@given(first=elements, second=elements)
def test_nothing_is_lost_and_what_was_known_stays_first(first: list[Element], second: list[Element]) -> None:
    both = merge_elements(first, second)
    assert len(first) <= len(both) <= len(first) + len(second)
    assert [e.rect for e in both[: len(first)]] == [e.rect for e in first]
    assert {e.text for e in second} <= {e.text for e in both} | {t for e in both for t in _parts(e.text)} | {""}


def _parts(text: str) -> list[str]:
    return [text[a:b] for a in range(len(text)) for b in range(a + 1, len(text) + 1)]


def test_a_crowded_screen_is_one_list_and_no_rectangle_is_too_large() -> None:
    places = [Rect(20 * x, 12 * y, 30, 20) for x in range(60) for y in range(60)]
    tree = [Element("button", f"b{at}", rect, actions=("click",)) for at, rect in enumerate(places)]
    tree.append(Element("frame", "", Rect(-(2**30), -(2**30), 2**31, 2**31)))
    seen = [read(f"b{at}", rect) for at, rect in enumerate(places)]
    both = merge_elements(tree, seen)
    assert len(both) == len(tree)
    assert all(element.also == ("ocr",) for element in both[:-1])


def test_what_has_no_place_is_nothing_else() -> None:
    unnamed = Element("button", "", Rect(10, 10, 80, 30), actions=("click",))
    assert len(merge_elements([unnamed], [read("far", Rect(0, 0, 0, 0))])) == 2

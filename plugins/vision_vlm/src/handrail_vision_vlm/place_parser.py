"""Parsing of places in a picture from any form in which a model gives them.

Models are asked for JSON, and answer as they were trained: fenced or truncated JSON under many names, Molmo's tags
(https://huggingface.co/allenai/Molmo2-8B), actions of UI-TARS, `Click(x, y)`, boxes of Qwen2-VL. The form therefore
decides, not the model.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from handrail.json_types import is_list, is_mapping
from handrail_vision_vlm.config import CoordinateKind

MAX_PLACES = 1_000
# Characters of an answer that are looked at, and openings of JSON in it that lead nowhere.
MAX_ANSWER, MAX_ERRORS = 400_000, 200
# Characters that are read more than once for the sake of those.
READ_AGAIN = 4 * MAX_ANSWER
MAX_VALUE_DEPTH = 8
MAX_LABEL = 500
# No picture has as many pixels, however they are counted.
MAX_COORDINATE = 1e9

BOX_KEYS = ("bbox_2d", "bbox", "box", "bounding_box", "boundingBox", "bounds", "rect", "box_2d")
POINT_KEYS = ("point_2d", "point", "coordinate", "coordinates", "position", "center", "click", "location")
LABEL_KEYS = ("label", "text", "text_content", "name", "title", "caption", "description", "element")
ROLE_KEYS = ("role", "type", "control_type", "kind")

# Nothing in these is given back once it is taken, so the time is that of one reading, whatever the answer is.
NUMBER_REGEX = r"-?\d++(?:\.\d++)?"
NEXT = r"(?:\s*+,\s*+|\s++)"
BOTH = rf"({NUMBER_REGEX}){NEXT}({NUMBER_REGEX})"
NUMBERS = re.compile(NUMBER_REGEX)
# After it, UI-TARS acts.
ACTS = re.compile(r"Action:|<seed:tool_call\w*>")
POINTS_TAG = re.compile(r"<points?\s++([^<>]*+)>(?:([^<]*+)</points?>)?")
ATTRIBUTE = re.compile(r"""\b(\w++)\s*+=\s*+["']([^"']*+)["']""")
# `(x1,y1),(x2,y2)`, then four or two numbers in brackets of any kind, then `x=0.1, y=0.2`.
TEXTUAL = re.compile(
    rf"\(\s*+{BOTH}\s*+\)\s*+,\s*+\(\s*+{BOTH}\s*+\)"
    rf"|(?:[\[(]|<(?:point|bbox|box)>)\s*+{BOTH}{NEXT}{BOTH}\s*+(?:[\])]|</)"
    rf"|(?:[\[(]|<(?:point|bbox|box)>)\s*+{BOTH}\s*+(?:[\])]|</)"
    rf"|\bx\s*+[=:]\s*+({NUMBER_REGEX})\s*+,\s*+y\s*+[=:]\s*+({NUMBER_REGEX})"
)


class UnreadableAnswer(ValueError):
    """An answer that names places in no form that is known."""


@dataclass(frozen=True, slots=True)
class PicturePlace:
    """Two numbers for a point, four for a box, as the model counts; `coordinates` where the form says how that is."""

    numbers: tuple[float, ...]
    label: str = ""
    role: str = ""
    coordinates: CoordinateKind | None = None


def parse_places(answer: str) -> list[PicturePlace]:
    """Return all places in an answer, in order; an empty list if the answer is one.

    Raises `UnreadableAnswer` if it is neither.
    """
    # What a model thinks before it acts may hold numbers, too.
    answer = ACTS.split(answer[:MAX_ANSWER])[-1]
    if tagged := list(_iter_tagged_places(answer)):
        return tagged[:MAX_PLACES]
    values = list(_iter_json_values(answer))
    if found := [place for value in values for place in _iter_value_places(value, MAX_VALUE_DEPTH)]:
        return found[:MAX_PLACES]
    if any(_is_empty(value) for value in values):
        return []
    if found := [PicturePlace(tuple(float(n) for n in match.groups() if n)) for match in TEXTUAL.finditer(answer)]:
        return found[:MAX_PLACES]
    raise UnreadableAnswer("it names no place")


def _iter_tagged_places(answer: str) -> Iterator[PicturePlace]:
    """Yield places from Molmo's tags: percent of the picture in version 1, thousandths under `coords` in version 2."""
    for match in POINTS_TAG.finditer(answer):
        attributes = dict(ATTRIBUTE.findall(match[1]))
        label = _clean_text(html.unescape(attributes.get("alt") or match[2] or ""))
        if "coords" in attributes:
            numbers = [float(number) for number in NUMBERS.findall(attributes["coords"])]
            # The number of the picture may come first; then each point has a number of its own.
            triples = numbers[1:] if len(numbers) % 3 == 1 else numbers
            for at in range(0, len(triples) - 2, 3):
                yield PicturePlace((triples[at + 1], triples[at + 2]), label, "", "thousand")
        else:
            for suffix in ("", *map(str, range(1, MAX_PLACES))):
                x, y = (attributes.get(f"{axis}{suffix}") for axis in "xy")
                if x is not None and y is not None and NUMBERS.fullmatch(x) and NUMBERS.fullmatch(y):
                    yield PicturePlace((float(x), float(y)), label, "", "percent")
                elif suffix:
                    break


def _iter_json_values(answer: str) -> Iterator[Any]:
    """Yield the objects and lists in a text, outermost first; for a truncated one, its complete parts."""
    decoder = json.JSONDecoder()
    at, wrong, again = 0, 0, 0
    for match in re.finditer(r"[\[{]", answer):
        if match.start() < at:
            continue
        try:
            value, at = decoder.raw_decode(answer, match.start())
        except (ValueError, RecursionError) as exc:
            wrong += 1
            again += exc.pos - match.start() if isinstance(exc, json.JSONDecodeError) else MAX_ANSWER // MAX_ERRORS
            if wrong > MAX_ERRORS or again > READ_AGAIN:
                return
        else:
            yield value


def _iter_value_places(value: object, depth: int) -> Iterator[PicturePlace]:
    if is_mapping(value):
        numbers = _get_object_numbers(value)
        if numbers is not None:
            yield PicturePlace(numbers, _get_first_text(value, LABEL_KEYS), _get_first_text(value, ROLE_KEYS))
        elif depth:
            for inner in value.values():
                yield from _iter_value_places(inner, depth - 1)
    elif is_list(value):
        numbers = _parse_numbers(value)
        if numbers is not None:
            yield PicturePlace(numbers)
        elif depth:
            for inner in value:
                yield from _iter_value_places(inner, depth - 1)


def _get_object_numbers(value: Mapping[str, Any]) -> tuple[float, ...] | None:
    """Return the box of an object, or its point; None without either."""
    for name in (*BOX_KEYS, *POINT_KEYS):
        if (numbers := _parse_numbers(value.get(name))) is not None:
            return numbers
    for names in (("x1", "y1", "x2", "y2"), ("xmin", "ymin", "xmax", "ymax"), ("left", "top", "right", "bottom")):
        if (numbers := _parse_numbers([value.get(name) for name in names])) is not None:
            return numbers
    corner = _parse_numbers([value.get("x"), value.get("y")])
    size = _parse_numbers([value.get("width"), value.get("height")])
    if corner is not None and size is not None:
        return *corner, corner[0] + size[0], corner[1] + size[1]
    return corner


def _parse_numbers(value: object) -> tuple[float, ...] | None:
    """Return two or four numbers, or None; two points form a box."""
    if isinstance(value, str):
        value = [float(number) for number in NUMBERS.findall(value[:200])]
    if is_mapping(value):
        return _get_object_numbers(value)
    if not is_list(value):
        return None
    items = value
    if len(items) == 1 and is_list(items[0]):
        return _parse_numbers(items[0])
    if len(items) == 2 and all(is_list(item) for item in items):
        items = [number for item in items for number in item]
    if len(items) not in (2, 4):
        return None
    if any(isinstance(item, bool) or not isinstance(item, int | float) for item in items):
        return None
    numbers = cast("list[float]", items)
    return tuple(map(float, numbers)) if all(abs(number) <= MAX_COORDINATE for number in numbers) else None


def _is_empty(value: object) -> bool:
    """Return True for an empty list, or an object that contains one."""
    return value == [] or (is_mapping(value) and any(_is_empty(v) for v in value.values()))


def _get_first_text(value: Mapping[str, Any], names: tuple[str, ...]) -> str:
    return next((_clean_text(text) for name in names if isinstance(text := value.get(name), str) and text.strip()), "")


def _clean_text(text: str) -> str:
    return " ".join(text.split())[:MAX_LABEL]

"""Places in a picture, out of whatever form a model names them in.

Models are asked for JSON, and answer as they were trained: fenced or cut JSON under many names, Molmo's tags
(https://huggingface.co/allenai/Molmo2-8B), actions of UI-TARS, `Click(x, y)`, boxes of Qwen2-VL. So the form decides, not who answers.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from handrail.plain import is_list, is_mapping
from handrail_vision_vlm.config import Coordinates

MOST = 1_000
# Characters of an answer that are looked at, and openings of JSON in it that lead nowhere.
LONGEST, WRONG = 400_000, 200
# Characters that are read more than once for the sake of those.
READ_AGAIN = 4 * LONGEST
DEPTH = 8
LONGEST_LABEL = 500
# No picture has as many pixels, however they are counted.
FARTHEST = 1e9

BOXES = ("bbox_2d", "bbox", "box", "bounding_box", "boundingBox", "bounds", "rect", "box_2d")
POINTS = ("point_2d", "point", "coordinate", "coordinates", "position", "center", "click", "location")
LABELS = ("label", "text", "text_content", "name", "title", "caption", "description", "element")
ROLES = ("role", "type", "control_type", "kind")

# Nothing in these is given back once it is taken, so the time is that of one reading, whatever the answer is.
NUMBER = r"-?\d++(?:\.\d++)?"
NEXT = r"(?:\s*+,\s*+|\s++)"
BOTH = rf"({NUMBER}){NEXT}({NUMBER})"
NUMBERS = re.compile(NUMBER)
# After it, UI-TARS acts.
ACTS = re.compile(r"Action:|<seed:tool_call\w*>")
TAG = re.compile(r"<points?\s++([^<>]*+)>(?:([^<]*+)</points?>)?")
ATTRIBUTE = re.compile(r"""\b(\w++)\s*+=\s*+["']([^"']*+)["']""")
# `(x1,y1),(x2,y2)`, then four or two numbers in brackets of any kind, then `x=0.1, y=0.2`.
TEXTUAL = re.compile(
    rf"\(\s*+{BOTH}\s*+\)\s*+,\s*+\(\s*+{BOTH}\s*+\)"
    rf"|(?:[\[(]|<(?:point|bbox|box)>)\s*+{BOTH}{NEXT}{BOTH}\s*+(?:[\])]|</)"
    rf"|(?:[\[(]|<(?:point|bbox|box)>)\s*+{BOTH}\s*+(?:[\])]|</)"
    rf"|\bx\s*+[=:]\s*+({NUMBER})\s*+,\s*+y\s*+[=:]\s*+({NUMBER})"
)


class Unreadable(ValueError):
    """An answer that names places in no form that is known."""


@dataclass(frozen=True, slots=True)
class Place:
    """Two numbers for a point, four for a box, as the model counts; `coordinates` where the form says how that is."""

    numbers: tuple[float, ...]
    label: str = ""
    role: str = ""
    coordinates: Coordinates | None = None


def places(answer: str) -> list[Place]:
    """All places that an answer names, in its order; none where it is an empty list. `Unreadable` when it is neither."""
    # What a model thinks before it acts may hold numbers, too.
    answer = ACTS.split(answer[:LONGEST])[-1]
    if tagged := list(_tagged(answer)):
        return tagged[:MOST]
    values = list(_json(answer))
    if found := [place for value in values for place in _in_value(value, DEPTH)]:
        return found[:MOST]
    if any(_empty(value) for value in values):
        return []
    if found := [Place(tuple(float(n) for n in match.groups() if n)) for match in TEXTUAL.finditer(answer)]:
        return found[:MOST]
    raise Unreadable("it names no place")


def _tagged(answer: str) -> Iterator[Place]:
    """Molmo's tags: percent of the picture in the first version, thousandths under `coords` in the second."""
    for match in TAG.finditer(answer):
        attributes = dict(ATTRIBUTE.findall(match[1]))
        label = _plain(html.unescape(attributes.get("alt") or match[2] or ""))
        if "coords" in attributes:
            numbers = [float(number) for number in NUMBERS.findall(attributes["coords"])]
            # The number of the picture may come first; then each point has a number of its own.
            triples = numbers[1:] if len(numbers) % 3 == 1 else numbers
            for at in range(0, len(triples) - 2, 3):
                yield Place((triples[at + 1], triples[at + 2]), label, "", "thousand")
        else:
            for suffix in ("", *map(str, range(1, MOST))):
                x, y = (attributes.get(f"{axis}{suffix}") for axis in "xy")
                if x is not None and y is not None and NUMBERS.fullmatch(x) and NUMBERS.fullmatch(y):
                    yield Place((float(x), float(y)), label, "", "percent")
                elif suffix:
                    break


def _json(answer: str) -> Iterator[Any]:
    """The objects and lists in a text, outermost first; of one that was cut, those that are whole."""
    decoder = json.JSONDecoder()
    at, wrong, again = 0, 0, 0
    for match in re.finditer(r"[\[{]", answer):
        if match.start() < at:
            continue
        try:
            value, at = decoder.raw_decode(answer, match.start())
        except (ValueError, RecursionError) as exc:
            wrong += 1
            again += exc.pos - match.start() if isinstance(exc, json.JSONDecodeError) else LONGEST // WRONG
            if wrong > WRONG or again > READ_AGAIN:
                return
        else:
            yield value


def _in_value(value: object, depth: int) -> Iterator[Place]:
    if is_mapping(value):
        numbers = _numbers_of(value)
        if numbers is not None:
            yield Place(numbers, _first(value, LABELS), _first(value, ROLES))
        elif depth:
            for inner in value.values():
                yield from _in_value(inner, depth - 1)
    elif is_list(value):
        numbers = _numbers(value)
        if numbers is not None:
            yield Place(numbers)
        elif depth:
            for inner in value:
                yield from _in_value(inner, depth - 1)


def _numbers_of(value: Mapping[str, Any]) -> tuple[float, ...] | None:
    """The box of an object, or its point."""
    for name in (*BOXES, *POINTS):
        if (numbers := _numbers(value.get(name))) is not None:
            return numbers
    for names in (("x1", "y1", "x2", "y2"), ("xmin", "ymin", "xmax", "ymax"), ("left", "top", "right", "bottom")):
        if (numbers := _numbers([value.get(name) for name in names])) is not None:
            return numbers
    corner = _numbers([value.get("x"), value.get("y")])
    size = _numbers([value.get("width"), value.get("height")])
    if corner is not None and size is not None:
        return *corner, corner[0] + size[0], corner[1] + size[1]
    return corner


def _numbers(value: object) -> tuple[float, ...] | None:
    """Two or four numbers; two points are a box."""
    if isinstance(value, str):
        value = [float(number) for number in NUMBERS.findall(value[:200])]
    if is_mapping(value):
        return _numbers_of(value)
    if not is_list(value):
        return None
    items = value
    if len(items) == 1 and is_list(items[0]):
        return _numbers(items[0])
    if len(items) == 2 and all(is_list(item) for item in items):
        items = [number for item in items for number in item]
    if len(items) not in (2, 4):
        return None
    if any(isinstance(item, bool) or not isinstance(item, int | float) for item in items):
        return None
    numbers = cast("list[float]", items)
    return tuple(map(float, numbers)) if all(abs(number) <= FARTHEST for number in numbers) else None


def _empty(value: object) -> bool:
    """An empty list, or an object that holds one and says nothing else of places."""
    return value == [] or (is_mapping(value) and any(_empty(v) for v in value.values()))


def _first(value: Mapping[str, Any], names: tuple[str, ...]) -> str:
    return next((_plain(text) for name in names if isinstance(text := value.get(name), str) and text.strip()), "")


def _plain(text: str) -> str:
    return " ".join(text.split())[:LONGEST_LABEL]

"""Removal of page content that no reader would see, and which is therefore meant for programs only.

Runs in the worker. It evaluates the page's own attributes and styles, as far as a rule refers to one element by its
name, classes and id; external style sheets are not loaded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
# Rules for other media, or for some windows only.
AT_BLOCK = re.compile(r"@[^{};]*\{(?:[^{}]*\{[^{}]*\})*[^{}]*\}")
RULE = re.compile(r"([^{}]+)\{([^{}]*)\}")
COMPOUND = re.compile(r"([a-z][a-z0-9]*|\*)?((?:[.#][\w-]+)*)", re.IGNORECASE)
PART = re.compile(r"([.#])([\w-]+)")
LONGEST_SHEET = 200_000
MOST_RULES = 3_000

OFFSCREEN_OFFSET = re.compile(r"-\d{4,}(?:\.\d+)?px|-\d{3,}(?:\.\d+)?(?:em|rem|vw|vh|%)")
ZERO_LENGTH = re.compile(r"0*\.?0*(?:px|em|rem|pt|%|vw|vh)?")
CLIPPED = re.compile(
    r"rect\(\s*[01](?:px)?[\s,]+[01](?:px)?[\s,]+[01](?:px)?[\s,]+[01](?:px)?\s*\)|inset\(\s*(?:50|100)%"
)
# Too small to be read, in pixels.
TINY_SIZE = re.compile(r"[0-2](?:\.\d+)?px|0?\.[0-2]\d*r?em")
COLOR_NAMES = {
    "white": "ffffff",
    "black": "000000",
    "transparent": "",
    "red": "ff0000",
    "gray": "808080",
    "grey": "808080",
}
RGB = re.compile(r"rgba?\(\s*(\d+)[\s,]+(\d+)[\s,]+(\d+)(?:[\s,/]+([\d.]+%?))?\s*\)")
HEX = re.compile(r"#([0-9a-f]{3,8})")
# What is laid out in a page without being text of it.
NON_TEXT_TAGS = frozenset(
    ("script", "style", "template", "noscript", "iframe", "frame", "object", "embed", "svg", "canvas", "audio", "video", "map",
     "button", "input", "select", "textarea", "datalist", "meter", "progress", "link")
)  # fmt: skip

# All else that a style says hides nothing.
RELEVANT_PROPERTIES = frozenset(
    ("display", "visibility", "content-visibility", "opacity", "font-size", "overflow", "overflow-x", "overflow-y", "width", "height",
     "max-width", "max-height", "clip", "clip-path", "position", "left", "right", "top", "bottom", "text-indent", "transform", "color",
     "background", "background-color", "background-image")
)  # fmt: skip

StyleMap = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class StyleRule:
    """Declarations for elements with this name, id and these classes. `sure`: nothing else in the selector narrows it."""

    name: str
    ids: frozenset[str]
    classes: frozenset[str]
    style: StyleMap
    sure: bool

    @property
    def weight(self) -> tuple[int, int, int]:
        return len(self.ids), len(self.classes), int(bool(self.name))

    def fits(self, name: str, id: str, classes: frozenset[str]) -> bool:
        return self.name in ("", name) and self.ids <= {id} and self.classes <= classes


class StyleSheet:
    """Rules by what an element must have for them."""

    def __init__(self, rules: Iterable[StyleRule]) -> None:
        self._by_mark: dict[str, list[tuple[int, StyleRule]]] = {}
        together: dict[tuple[object, ...], StyleRule] = {}
        for rule in rules:
            same = rule.name, rule.ids, rule.classes, rule.sure
            before = together.pop(same, None)
            together[same] = rule if before is None else replace(rule, style={**before.style, **rule.style})
        for place, rule in enumerate(together.values()):
            mark = next(
                (f"{sign}{value}" for sign, values in (("#", rule.ids), (".", rule.classes)) for value in values),
                rule.name,
            )
            self._by_mark.setdefault(mark, []).append((place, rule))

    def fitting(self, element: Any) -> list[StyleRule]:
        """Return the rules that match an element, in ascending order of weight and position."""
        if not self._by_mark:
            return []
        classes, id = frozenset(element.get("class", "").split()), element.get("id", "")
        marks = ("", element.tag, f"#{id}", *(f".{each}" for each in classes))
        found = (each for mark in marks for each in self._by_mark.get(mark, ()))
        fits = [(rule.weight, place, rule) for place, rule in found if rule.fits(element.tag, id, classes)]
        return [rule for *_, rule in sorted(fits, key=lambda each: each[:2])]


def remove_hidden(tree: Any) -> int:
    """Take what is not seen out of the tree; how many characters of text went."""
    sheet = StyleSheet(_parse_rules(tree))
    outside = bool(tree.xpath("//link[contains(@rel, 'stylesheet')]"))
    gone = 0
    for element in list(tree.iter()):
        if not isinstance(element.tag, str) or element.getparent() is None or element.tag in ("html", "body", "head"):
            continue
        if element.tag in NON_TEXT_TAGS:
            if element.tag == "template":
                gone += _text_length(element)
            remove_element(element)
        elif _is_hidden(element, _compute_style(element, sheet), sheet, outside=outside):
            gone += _text_length(element)
            remove_element(element)
    return gone


def remove_element(element: Any) -> None:
    """Take an element out, and leave the text behind it where it is."""
    parent = element.getparent()
    if parent is None:
        return
    before = element.getprevious()
    tail = element.tail or ""
    if before is not None:
        before.tail = (before.tail or "") + tail
    else:
        parent.text = (parent.text or "") + tail
    parent.remove(element)


def _text_length(element: Any) -> int:
    return len(" ".join("".join(element.itertext()).split()))


def _is_hidden(element: Any, style: StyleMap, sheet: StyleSheet, *, outside: bool) -> bool:
    attributes = element.attrib
    if "hidden" in attributes and attributes["hidden"] != "until-found":
        return style.get("display", "none") == "none"
    if element.tag == "dialog" and "open" not in attributes:
        return True
    return _is_hidden_by_style(style) or _is_same_color(element, style, sheet, outside=outside)


def _is_hidden_by_style(style: StyleMap) -> bool:
    get = style.get
    if get("display") == "none" or get("visibility") in ("hidden", "collapse") or get("content-visibility") == "hidden":
        return True
    if "opacity" in style and re.fullmatch(r"0*\.?0*[0-4]?%?", style["opacity"]):
        return True
    size = get("font-size", "")
    if size and (ZERO_LENGTH.fullmatch(size) or TINY_SIZE.fullmatch(size)):
        return True
    clipped = get("overflow", get("overflow-x", get("overflow-y", ""))) in ("hidden", "clip")
    flat = any(
        side in style and re.fullmatch(r"[01]?(?:px)?|0[a-z%]*", style[side])
        for side in ("width", "height", "max-height", "max-width")
    )
    if clipped and flat:
        return True
    if CLIPPED.search(get("clip", "") + get("clip-path", "")):
        return True
    if get("position") in ("absolute", "fixed") and any(
        OFFSCREEN_OFFSET.fullmatch(get(side, "")) for side in ("left", "right", "top", "bottom")
    ):
        return True
    return bool(OFFSCREEN_OFFSET.fullmatch(get("text-indent", ""))) or "scale(0" in get("transform", "").replace(
        "scale(0.", ""
    )


def _is_same_color(element: Any, style: StyleMap, sheet: StyleSheet, *, outside: bool) -> bool:
    """Return True if the text has the color of its background, as far as the page itself defines that."""
    colour = _parse_color(style.get("color", element.get("color", "")))
    if colour is None:
        return False
    if colour == "":
        return True
    above: Any = element
    while above is not None:
        own = style if above is element else _compute_style(above, sheet)
        if "url(" in own.get("background", "") + own.get("background-image", "") or "gradient" in own.get(
            "background", ""
        ):
            return False
        said = own.get("background-color") or own.get("background", "").split(" ")[0] or above.get("bgcolor", "")
        behind = _parse_color(said)
        if behind:
            return behind == colour
        if behind is None and said:
            return False
        # Another sheet may say more of what has a class or an id.
        if outside and (above.get("class") or above.get("id") or above.tag in ("body", "html")):
            return False
        above = above.getparent()
    return colour == "ffffff"


def _parse_color(text: str) -> str | None:
    """Six digits for a colour, empty for none at all, None for what is not said or not known."""
    text = text.strip().lower()
    if text in COLOR_NAMES:
        return COLOR_NAMES[text]
    if (found := HEX.fullmatch(text)) is not None:
        digits = found[1]
        if len(digits) in (3, 4):
            digits = "".join(digit * 2 for digit in digits)
        return "" if digits[6:] == "00" else digits[:6]
    if (found := RGB.fullmatch(text)) is not None:
        if found[4] is not None and not float(found[4].rstrip("%") or 0):
            return ""
        return "".join(f"{min(int(part), 255):02x}" for part in found.group(1, 2, 3))
    return None


def _compute_style(element: Any, sheet: StyleSheet) -> StyleMap:
    """Return the style that applies to an element.

    Later and weightier rules override others, and its own attribute overrides all of them.
    """
    own = _parse_declarations(element.get("style", ""))
    fitting = sheet.fitting(element)
    merged: dict[str, str] = {}
    for rule in fitting:
        if rule.sure:
            merged.update(rule.style)
    for rule in fitting:
        # It may show what another rule hides.
        if not rule.sure:
            for key in rule.style.keys() & merged.keys():
                merged.pop(key)
    return {**merged, **own}


def _parse_rules(tree: Any) -> Iterator[StyleRule]:
    sheet = "\n".join(element.text or "" for element in tree.iter("style"))[:LONGEST_SHEET]
    sheet = AT_BLOCK.sub("", COMMENT.sub("", sheet))
    for count, (selectors, body) in enumerate(RULE.findall(sheet)):
        if count >= MOST_RULES:
            return
        style = _parse_declarations(body)
        for selector in selectors.split(",") if style else ():
            words = selector.replace(">", " ").replace("+", " ").replace("~", " ").split()
            if not words:
                continue
            last = re.split(r"[:\[]", words[-1])[0]
            found = COMPOUND.fullmatch(last)
            if found is None:
                continue
            parts = PART.findall(found[2] or "")
            name = (found[1] or "").lower().replace("*", "")
            sure = len(words) == 1 and last == words[-1]
            ids = frozenset(value for mark, value in parts if mark == "#")
            yield StyleRule(name, ids, frozenset(value for mark, value in parts if mark == "."), style, sure)


def _parse_declarations(text: str) -> dict[str, str]:
    pairs = ((name.strip().lower(), value) for name, _, value in (each.partition(":") for each in text.split(";")))
    return {
        name: value.replace("!important", "").strip().lower()
        for name, value in pairs
        if name in RELEVANT_PROPERTIES and value.strip()
    }

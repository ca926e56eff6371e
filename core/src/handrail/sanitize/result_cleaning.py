"""Results as they may be shown: every text in them cleaned and kept to a size."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, cast

from handrail.api.observer import FIXED_KEYS
from handrail.api.result import Media, ToolResult
from handrail.json_types import BASE64_KEYS, MAPPING_TYPES, is_mapping
from handrail.sanitize import envelope as untrusted

NESTED_TYPES = (*MAPPING_TYPES, list, tuple)
# What a third party's text may hold that acts when it is shown.
MARKUP_SIGNS = re.compile(r"\]\(|\]:|<")
# So many times the usual size may have what a tool has measured itself.
MEASURED_FACTOR = 4
# Data that is nested deeper, or holds itself, is not shown.
MAX_NESTING = 60
TOO_DEEP = "[left out: nested too deep]"
# All values of a result together may have so many times the size of one text; each of them counts for its place, too.
TOTAL_FACTOR = 8
VALUE_OVERHEAD = 8


def clean_result(
    result: ToolResult, *, limit: int, foreign: bool, keep: Callable[[str], Mapping[str, Any]] | None
) -> ToolResult:
    """Return the result with all texts cleaned and limited to `limit` bytes.

    `removed` in the result reports what was removed, if anything.  `foreign`: the result is from a third party. `keep`
    stores one truncated text per result in full as an artifact, or an entire result that has too many values; if there
    is no space, a note says so. Pictures are unchanged.
    """
    # A tool that says whether it left something out has measured its text by itself, and says where to go on.
    measured = limit * MEASURED_FACTOR if "truncated" in result else limit
    cleaning = _ResultCleaner(limit=measured, room=limit * TOTAL_FACTOR, foreign=foreign)
    changed: dict[str, Any] = {}
    gone: set[str] = set()
    for key, value in result.items():
        if key in BASE64_KEYS or (cleaning.room < 0 and key in FIXED_KEYS):
            continue
        if cleaning.room < 0:
            gone.add(key)
            continue
        new = cleaning.value(value)
        if new is not value:
            changed[key] = new
    if not changed and not gone:
        return result
    whole = result
    result = ToolResult({key: changed.get(key, value) for key, value in result.items() if key not in gone})
    if left_out := cleaning.left_out + len(gone):
        cleaning.cut = _encode_result(whole)
        result.add_note(f"{left_out} values are left out: a result shows about {limit * TOTAL_FACTOR:,} characters.")
    if removed := dict(sorted((+cleaning.removed).items())):
        result.setdefault("removed", removed)
    if cleaning.cut is not None and keep is not None and "artifact" not in result:
        try:
            result["artifact"] = keep(cleaning.cut)
        except OSError as exc:
            result.add_note(f"The whole text could not be kept ({exc.strerror or exc}).")
    return result


class _ResultCleaner:
    """One pass over the texts of a result. What needs no change is given back as it is."""

    def __init__(self, *, limit: int, room: int, foreign: bool) -> None:
        self._limit = limit
        # Characters that may still be shown, and how many values were left out since there was no room.
        self.room = room
        self.left_out = 0
        self._foreign = foreign
        self._above: set[int] = set()
        self.removed: Counter[str] = Counter()
        # What of the result is kept whole: the first text of which only the ends are shown, or all of it.
        self.cut: str | None = None

    def text(self, text: str) -> str:
        shown = self._text(text)
        self.room -= len(shown)
        return shown

    def _text(self, text: str) -> str:
        # An honest short text is told at once: most are.
        if (
            len(text) * 4 <= self._limit
            and not (self._foreign and MARKUP_SIGNS.search(text))
            and untrusted.is_plain_text(text)
        ):
            return text
        shown = untrusted.clean_and_truncate(text, limit=self._limit, foreign=self._foreign)
        self.removed.update(shown.removed)
        if self.cut is None and "truncated" in shown.removed:
            self.cut = text
        return shown.text

    def value(self, value: Any) -> Any:
        self.room -= VALUE_OVERHEAD
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, int | float) or value is None:
            return value
        if isinstance(value, Media):
            return self._media(value)
        return self._nested(cast("object", value)) if isinstance(value, NESTED_TYPES) else value

    def _media(self, media: Media) -> Media:
        text = media.text if media.text is None else self.text(media.text)
        stash = {self.text(name): self.text(form) for name, form in media.stash.items()}
        same = text == media.text and stash == media.stash
        return media if same else replace(media, text=text, stash=stash)

    def _nested(self, value: object) -> object:
        place = id(value)
        if place in self._above or len(self._above) >= MAX_NESTING:
            return TOO_DEEP
        self._above.add(place)
        try:
            if is_mapping(value):
                return self._mapping(value)
            old = cast("list[Any] | tuple[Any, ...]", value)
            new = [self.value(item) for item in old if self._has_room()]
            return value if len(new) == len(old) and all(a is b for a, b in zip(new, old, strict=True)) else new
        finally:
            self._above.remove(place)

    def _mapping(self, value: Mapping[Any, Any]) -> Mapping[Any, Any]:
        items = {
            self.text(key) if isinstance(key, str) else key: item if key in BASE64_KEYS else self.value(item)
            for key, item in value.items()
            if self._has_room()
        }
        same = len(items) == len(value) and all(key in value and items[key] is value[key] for key in items)
        return value if same else items

    def _has_room(self) -> bool:
        """Return True if there is space for one more value; otherwise count it as omitted."""
        if self.room < 0:
            self.left_out += 1
        return self.room >= 0


def _encode_result(result: Mapping[str, Any]) -> str:
    """Return the entire result as text for storage, without base64 data."""
    try:
        return json.dumps(
            {key: value for key, value in result.items() if key not in BASE64_KEYS}, default=str, ensure_ascii=False
        )
    # Handlers return anything: cycles, depths, objects that fail to print.
    except Exception as exc:  # noqa: BLE001
        return f"[cannot be written down: {type(exc).__name__}]"

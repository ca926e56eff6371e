"""Meaning of the numbers in a workbook by their formats: dates, times, durations or plain numbers.

ECMA-376 part 1, 18.8.30.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Literal

NumberMeaning = Literal["number", "date", "time", "datetime", "span"]

BUILT_IN: Mapping[int, NumberMeaning] = {
    **dict.fromkeys((*range(14, 18), *range(27, 32), 34, 35, 36, *range(50, 59)), "date"),
    **dict.fromkeys((*range(18, 22), 32, 33, 45, 47), "time"),
    22: "datetime",
    46: "span",
}
# Quoted and escaped letters, colours and conditions mean nothing for the kind.
LITERAL_TEXT = re.compile(r'"[^"]*"|\\.|_.|\*.|\[(?!(?:h+|m+|s+)\])[^\]]*\]', re.IGNORECASE)
ELAPSED_TIME = re.compile(r"\[(h+|m+|s+)\]", re.IGNORECASE)
EPOCH, EPOCH_1904 = datetime.fromisoformat("1899-12-30"), datetime.fromisoformat("1904-01-01")
LAST_DAY = 2_958_466


def classify_format_code(code: str) -> NumberMeaning:
    """Return the meaning of a number with this format code."""
    bare = LITERAL_TEXT.sub("", code.partition(";")[0]).lower()
    if ELAPSED_TIME.search(bare):
        return "span"
    if "general" in bare:
        return "number"
    day, clock = "y" in bare or "d" in bare, "h" in bare or "s" in bare
    if day or ("m" in bare and not clock):
        return "datetime" if clock else "date"
    return "time" if clock else "number"


def read_style_meanings(styles: Iterable[tuple[str, Mapping[str, str]]]) -> list[NumberMeaning]:
    """Return the meaning of each cell style, from the elements of the part `styles`."""
    codes: dict[int, NumberMeaning] = dict(BUILT_IN)
    found: list[NumberMeaning] = []
    inside = False
    for tag, attributes in styles:
        if tag == "numFmt" and attributes.get("numFmtId", "").isdecimal():
            codes[int(attributes["numFmtId"])] = classify_format_code(attributes.get("formatCode", ""))
        elif tag in ("cellXfs", "cellStyles", "dxfs"):
            inside = tag == "cellXfs"
        elif inside and tag == "xf":
            id_ = attributes.get("numFmtId", "0")
            found.append(codes.get(int(id_), "number") if id_.isdecimal() else "number")
    return found


def format_stored_number(text: str, meaning: NumberMeaning = "number", *, from_1904: bool = False) -> str:
    """Format a stored number for people: dates and times in ISO 8601, integers without a decimal point."""
    try:
        value = float(text)
    except ValueError:
        return text
    if meaning != "number" and (told := _format_datetime(value, meaning, from_1904=from_1904)) is not None:
        return told
    if value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return repr(value)


def _format_datetime(value: float, meaning: NumberMeaning, *, from_1904: bool) -> str | None:
    if meaning == "span":
        return _format_duration(value) if abs(value) < LAST_DAY else None
    if not 0 <= value < LAST_DAY:
        return None
    # There was no 29 February 1900, but spreadsheets count one.
    epoch = EPOCH_1904 if from_1904 else EPOCH if value >= 61 else EPOCH + timedelta(days=1)
    moment = epoch + timedelta(milliseconds=round(value * 86_400_000))
    clock = moment.strftime("%H:%M:%S") + (f".{moment.microsecond // 1000:03}" if moment.microsecond else "")
    if meaning == "time" and value < 1:
        return clock
    if meaning == "date" and moment.time() == datetime.min.time():
        return moment.date().isoformat()
    return f"{moment.date().isoformat()} {clock}"


def _format_duration(value: float) -> str:
    seconds = round(abs(value) * 86_400)
    return f"{'-' if value < 0 else ''}{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"

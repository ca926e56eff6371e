"""Text from programs as shown to the model: bounded, with invisible characters made visible."""

from __future__ import annotations

from ctypes import c_float

from handrail.text import make_visible

# Characters of a window's title.
MAX_TITLE_CHARS = 200
# Characters of a number that nobody has written.
LONG_NUMBER_CHARS = 14


def format_title(title: str) -> str:
    """Format a window's title."""
    # Only what is shown is made visible: a title may have any length.
    shown = escape_invisible(" ".join(title[: MAX_TITLE_CHARS + 1].split()))
    return shown if len(shown) <= MAX_TITLE_CHARS and len(title) <= MAX_TITLE_CHARS else f"{shown[:MAX_TITLE_CHARS]}…"


def format_number(number: float) -> str:
    """Format the number of a slider or spin button with every significant digit."""
    told = f"{number:.15g}"
    if len(told) < LONG_NUMBER_CHARS or number != _round_to_float32(number):
        return told
    # Chromium keeps numbers in four bytes, in which 0.3 is 0.300000011920929.
    return next(
        (short for digits in range(1, 10) if _round_to_float32(float(short := f"{number:.{digits}g}")) == number), told
    )


def _round_to_float32(number: float) -> float:
    return c_float(number).value


def escape_invisible(text: str) -> str:
    """Make invisible characters in a name or value visible; tabs and line ends stay."""
    return text if text.isprintable() else "\t".join(make_visible(part) for part in text.split("\t"))

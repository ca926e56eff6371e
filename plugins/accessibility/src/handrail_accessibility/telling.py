"""What programs write, as the model is told it: bounded, and with nothing hidden in it."""

from __future__ import annotations

from ctypes import c_float

from handrail.words import visible

# Characters of a window's title.
TITLE = 200
# Characters of a number that nobody has written.
LONG = 14


def titled(title: str) -> str:
    """A window's title."""
    # Only what is shown is made visible: a title may have any length.
    shown = seen(" ".join(title[: TITLE + 1].split()))
    return shown if len(shown) <= TITLE and len(title) <= TITLE else f"{shown[:TITLE]}…"


def number_told(number: float) -> str:
    """What a slider or spin button stands at, with every digit that its program means."""
    told = f"{number:.15g}"
    if len(told) < LONG or number != _in_four_bytes(number):
        return told
    # Chromium keeps numbers in four bytes, in which 0.3 is 0.300000011920929.
    return next(
        (short for digits in range(1, 10) if _in_four_bytes(float(short := f"{number:.{digits}g}")) == number), told
    )


def _in_four_bytes(number: float) -> float:
    return c_float(number).value


def seen(text: str) -> str:
    """A name or a value; tabs and line ends stay."""
    return text if text.isprintable() else "\t".join(visible(part) for part in text.split("\t"))

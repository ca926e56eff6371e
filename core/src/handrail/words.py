"""Words for people: the nearest known one, and text in which nothing is hidden."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

# Controls, formats (also those that turn the direction of text), surrogates, private use, and separators of lines and paragraphs.
UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def nearest(word: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?`, or what there is when nothing is near."""
    import difflib

    known = sorted(known)
    close = difflib.get_close_matches(word, known, n=1)
    if close:
        return f"; did you mean {close[0]!r}?"
    return f"; there are {', '.join(known)}" if 0 < len(known) <= 60 else ""


def visible(text: str) -> str:
    """The text with everything that a person would not see, or that changes how the rest looks, written out; line ends stay."""
    return "".join(
        letter
        if letter == "\n" or unicodedata.category(letter) not in UNSEEN
        else letter.encode("unicode_escape").decode()
        for letter in text
    )

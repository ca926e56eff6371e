"""Words for people: the nearest known one, and text in which nothing is hidden."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

# Controls, formats (also those that turn the direction of text), surrogates, private use, and separators of lines and paragraphs.
UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
# Letters that are drawn as nothing: fillers, joiners, selectors of variants, the empty pattern of braille.
EMPTY = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u2800\u3164\uffa0")


def nearest(word: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?`, or what there is when nothing is near."""
    import difflib

    known = sorted(known)
    close = difflib.get_close_matches(word, known, n=1)
    if close:
        return f"; did you mean {close[0]!r}?"
    return f"; there are {', '.join(known)}" if 0 < len(known) <= 60 else ""


def is_unseen(letter: str) -> bool:
    """Whether a person would not see the letter, or see a plain space in its place, or it changes how the rest looks."""
    category = unicodedata.category(letter)
    if category in UNSEEN or letter in EMPTY:
        return True
    return (category == "Zs" and letter != " ") or "VARIATION SELECTOR" in unicodedata.name(letter, "")


def visible(text: str) -> str:
    """The text with everything that a person would not see, or that changes how the rest looks, written out; line ends stay."""
    return "".join(
        letter
        if letter == "\n" or (letter.isascii() and letter.isprintable()) or not is_unseen(letter)
        else letter.encode("unicode_escape").decode()
        for letter in text
    )

"""Text utilities: similar names, comparison of labels as people read them, and display without hidden characters."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

__all__ = [
    "find_similar_texts",
    "fold_text",
    "format_suggestion",
    "is_label_match",
    "is_right_to_left",
    "make_visible",
    "normalize_label",
]

# Controls, formats (also those that turn the direction of text), surrogates, private use, and separators of lines and paragraphs.
INVISIBLE_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
# Letters that are drawn as nothing: fillers, joiners, selectors of variants, the empty pattern of braille.
BLANK_CHARS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u2800\u3164\uffa0")

# Patterns, made when they are first used.
# What marks the key of a label in its source, and what stands behind a label that is none of it.
MNEMONIC_MARKS = "[_&]"
LABEL_END_CHARS = " .:*\u2026"
# Where the letters of a name are on no keyboard, its key stands behind it: 保存(S).
MNEMONIC_SUFFIX = r"(?<=[\u2e80-\ud7ff\uf900-\ufaff]) ?\([a-z0-9]\)"
# Arabic and Hebrew points, and the stroke that makes a word longer: few write them.
VOWEL_POINTS = "[\u0591-\u05bd\u05bf\u05c1\u05c2\u05c7\u0640\u064b-\u0652\u0670]"
# Greek capitals have no accent; a small i has its dot already.
ACCENT_MARKS = "(?<=[\u03b1-\u03c9])(\u0308?)\u0301|(?<=i)\u0307"
RTL_CLASSES = ("R", "AL")
# A text with more letters is no name; to put its marks in order takes time by the square of their number.
MAX_FOLDED_CHARS = 4096
# Letters of a text that is compared with others for likeness.
MAX_COMPARED_CHARS = 200


def fold_text(text: str) -> str:
    """Return the form shared by all texts that a reader takes for the same one.

    Ignores case in any language, full or half width, and vowel points. The two Turkish letters i become one, since only
    the language determines which is the other's capital.
    """
    if text.isascii() or len(text) > MAX_FOLDED_CHARS:
        return text.casefold()
    small = unicodedata.normalize("NFD", unicodedata.normalize("NFKC", text).casefold()).replace("\u0131", "i")
    kept = re.sub(ACCENT_MARKS, r"\1", re.sub(VOWEL_POINTS, "", small))
    return unicodedata.normalize("NFC", "".join(letter for letter in kept if unicodedata.category(letter) != "Cf"))


def normalize_label(text: str) -> str:
    """Return a label as spoken: folded, without its mnemonic mark and trailing dots, colon or asterisk."""
    return re.sub(MNEMONIC_MARKS, "", fold_text(text)).strip().rstrip(LABEL_END_CHARS)


def is_label_match(name: str, text: str) -> bool:
    """Return True if the spoken name may refer to the label, ignoring a mnemonic in parentheses at the label's end."""
    said = normalize_label(name)
    return bool(said) and said in (normalize_label(text), re.sub(MNEMONIC_SUFFIX, "", normalize_label(text)))


def is_right_to_left(texts: Iterable[str]) -> bool:
    """Return True if most letters with a direction (such as Latin or Arabic ones) run from right to left."""
    ways = [unicodedata.bidirectional(letter) for text in texts if not text.isascii() for letter in text]
    back = sum(way in RTL_CLASSES for way in ways)
    return back > sum(letter.isalpha() for text in texts for letter in text) - back


def find_similar_texts(text: str, known: Iterable[str], *, most: int, least: float = 0.6) -> list[str]:
    """Return the texts that are most like one, best first; `least`: how like, from 0 to 1.

    Long texts are like none: to compare two takes time with the product of their lengths.
    """
    import difflib

    short = [each for each in known if len(each) <= MAX_COMPARED_CHARS] if len(text) <= MAX_COMPARED_CHARS else []
    return difflib.get_close_matches(text, short, n=most, cutoff=least)


def format_suggestion(word: str, known: Iterable[str]) -> str:
    """Return `; did you mean 'x'?`, or the list of known names if none is similar."""
    known = sorted(known)
    close = find_similar_texts(word, known, most=1)
    if close:
        return f"; did you mean {close[0]!r}?"
    return f"; there are {', '.join(known)}" if 0 < len(known) <= 60 else ""


def is_invisible(letter: str) -> bool:
    """Return True if the character is invisible, looks like a plain space, or changes how other text is displayed."""
    category = unicodedata.category(letter)
    if category in INVISIBLE_CATEGORIES or letter in BLANK_CHARS:
        return True
    return (category == "Zs" and letter != " ") or "VARIATION SELECTOR" in unicodedata.name(letter, "")


def make_visible(text: str) -> str:
    """Return the text with all characters escaped for which `is_invisible` is True, except newlines."""
    return "".join(
        letter
        if letter == "\n" or (letter.isascii() and letter.isprintable()) or not is_invisible(letter)
        else letter.encode("unicode_escape").decode()
        for letter in text
    )

"""Confusable characters: those that people read as plain ASCII and programs do not."""

from __future__ import annotations

import re
import unicodedata

# Scripts with letters that are drawn like Latin ones. Within one word with Latin letters they are there to deceive, or are a slip.
NEIGHBOUR_SCRIPTS = frozenset({"CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "COPTIC", "LISU", "GEORGIAN"})
# Those of their letters that look like Latin ones in most fonts (Unicode Technical Standard 39, confusables, its Latin part).
LATIN_DOUBLES = frozenset("аеорсухіјѕһԁԛԝӏАВЕКМНОРСТХУІЈЅѴοναιρυχϲϳΑΒΕΖΗΙΚΜΝΟΡΤΥΧօսոցհսԼՏՕ")
# Marks that look like ASCII's and are not taken for them by Unicode's own compatibility forms.
PUNCTUATION_DOUBLES = frozenset("∕⁄⧸╱⟋‐‑‒−∶ꓽ։׃ǃ∣❘ǀ｜‚ꓸ․˸﹕∗⁎")
LETTER_RUN = re.compile(r"[^\W\d_]+")


def find_confusables(text: str) -> frozenset[int]:
    """Return the positions of confusable characters.

    These are wide and styled forms of ASCII, foreign letters in a Latin word, and words made of lookalikes only.
    """
    if text.isascii():
        return frozenset()
    alone = {place for place, letter in enumerate(text) if letter in PUNCTUATION_DOUBLES or _is_ascii_variant(letter)}
    for match in LETTER_RUN.finditer(text):
        if not match[0].isascii():
            alone |= {match.start() + place for place in _find_foreign_letters(match[0])}
    return frozenset(alone)


def _is_ascii_variant(letter: str) -> bool:
    if letter.isascii():
        return False
    plain = unicodedata.normalize("NFKC", letter)
    return len(plain) == 1 and plain.isascii()


def _find_foreign_letters(word: str) -> list[int]:
    scripts = [_get_script(letter) for letter in word]
    foreign = [place for place, script in enumerate(scripts) if script in NEIGHBOUR_SCRIPTS]
    if "LATIN" in scripts or len({scripts[place] for place in foreign}) > 1:
        return foreign
    return foreign if len(word) > 1 and LATIN_DOUBLES.issuperset(word) else []


def _get_script(letter: str) -> str:
    return unicodedata.name(letter, "").partition(" ")[0]

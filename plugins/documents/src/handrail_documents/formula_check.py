"""Flaws that keep spreadsheet programs from reading a formula. Runs in the worker."""

from __future__ import annotations

import re

# Texts, and names of sheets that are quoted; a quote in them is written twice.
QUOTED_TEXT = re.compile(r"\"(?:[^\"]|\"\")*\"|'(?:[^']|'')*'")
PAIRS = {")": "(", "}": "{"}
INCOMPLETE_ENDINGS = tuple("+-*/^&=<>,;:({")


def find_formula_flaw(formula: str) -> str | None:
    """Return the reason why no spreadsheet program can read the formula, or None if no flaw is found."""
    # Between the brackets of a table's columns an apostrophe is what a backslash is elsewhere.
    if "[" in formula and "'" in formula:
        return None
    bare = QUOTED_TEXT.sub("0", formula)
    if '"' in bare or "'" in bare:
        return "has a quotation mark that is not closed"
    open_ones: list[str] = []
    for letter in bare:
        if letter in "({":
            open_ones.append(letter)
        elif letter in PAIRS and (not open_ones or open_ones.pop() != PAIRS[letter]):
            return f"closes {letter!r}, which it did not open"
    if open_ones:
        return f"has {open_ones[-1]!r} that is not closed"
    if bare.rstrip().endswith(INCOMPLETE_ENDINGS):
        return f"ends with {bare.rstrip()[-1]!r}"
    return None if bare.strip() else "is empty"

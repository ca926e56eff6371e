"""What programs write, as the model is told it: bounded, and with nothing hidden in it."""

from __future__ import annotations

from handrail.words import visible

# Characters of a window's title.
TITLE = 200


def titled(title: str) -> str:
    """A window's title."""
    # Only what is shown is made visible: a title may have any length.
    shown = seen(" ".join(title[: TITLE + 1].split()))
    return shown if len(shown) <= TITLE and len(title) <= TITLE else f"{shown[:TITLE]}…"


def number_told(number: float) -> str:
    """What a slider or spin button stands at, with every digit that its program means."""
    return f"{number:.15g}"


def seen(text: str) -> str:
    """A name or a value; tabs and line ends stay."""
    return text if text.isprintable() else "\t".join(visible(part) for part in text.split("\t"))

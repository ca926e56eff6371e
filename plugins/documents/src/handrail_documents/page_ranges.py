"""Page numbers as people write them."""

from __future__ import annotations

import re

from handrail.workers.parse_refusal import ParseRefused

PAGE_RANGE = re.compile(r"(\d+)(?:\s*(-)\s*(\d*))?")


def parse_page_ranges(text: str, count: int) -> list[int]:
    """Return the pages in `text` ("3", "1-5", "7-", "1,4-6"), from 1, in order; those after page `count` are omitted.

    Raises `ParseRefused` if the text is not such a list, or if the document has none of the pages.
    """
    found: set[int] = set()
    for piece in text.split(","):
        match = PAGE_RANGE.fullmatch(piece.strip())
        if match is None or len(piece) > 30:
            raise ParseRefused("arguments", f"pages is {text[:80]!r}", hint='write "3", "1-5", "7-" or "1,4-6"')
        first = int(match[1])
        last = first if match[2] is None else int(match[3] or count)
        if first < 1:
            raise ParseRefused("arguments", f"{piece.strip()!r} in pages names no page", hint="the first page is 1")
        if match[3] and last < first:
            raise ParseRefused(
                "arguments", f"{piece.strip()!r} in pages ends before it begins", hint=f"write '{last}-{first}'"
            )
        found.update(range(first, min(last, count) + 1))
    if not found:
        raise ParseRefused("arguments", f"pages is {text[:80]!r}, and the document has {count} pages")
    return sorted(found)

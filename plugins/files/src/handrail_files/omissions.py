"""Detection of placeholder lines for text that a model omitted.

Examples: `// ... existing code ...`, `(rest of methods …)`, `# rest unchanged`.
"""

from __future__ import annotations

import re

from handrail_files.time_limit import TimeLimit

_COMMENT = re.compile(r"^\s*(?://+|#+|/?\*+|<!--+|\{/\*|--+|;+|%+|'|\"\"\"|REM\b)\s*|\s*(?:\*+/\}?|--+>|\"\"\")\s*$")
_DOTS = r"(?:\.{3,}|…)"
_WHOLE = re.compile(
    rf"""
    [\[(<{{]?\s*(?:{_DOTS}\s*)?
    (?:and\s+|keep\s+|the\s+)*
    (?:
        (?:rest|remainder)\b(?:\s+[a-z_]+)*
      | (?:remaining|existing|previous|other|original|unchanged|same)\s+[a-z_]+(?:\s+[a-z_]+){{0,3}}
      | (?:code|content|lines?|methods?|functions?|imports?|everything(?:\s+else)?)\s+(?:(?:is|are|remains?|stays?|the)\s+)*
        (?:unchanged|omitted|same|as\s+before)
      | unchanged
    )
    \s*(?:{_DOTS})?\s*[.,]?\s*[\])>}}]?
    """,
    re.VERBOSE | re.IGNORECASE,
)
_MARKED = re.compile(rf"{_DOTS}|\bunchanged\b|\bomitted\b|\bas\s+before\b|\bremains?\s+the\s+same\b", re.IGNORECASE)
_LONGEST = 120


def find_placeholder(new: str, *beside: str, limit: TimeLimit | None = None) -> tuple[int, str] | None:
    """Return the number, from 1, and the text of the first placeholder line in a new text; None if it has no such line.

    Lines that also occur in one of the texts `beside` are intentional and do not count.
    """
    for number, line in enumerate(new.split("\n"), 1):
        if limit is not None:
            limit.check()
        if len(line) <= _LONGEST and is_placeholder(line) and not any(line.strip() in text for text in beside):
            return number, line.strip()
    return None


def is_placeholder(line: str) -> bool:
    """Return True if a line consists only of a placeholder for omitted text."""
    if _MARKED.search(line) is None:
        return False
    bare = _COMMENT.sub("", _COMMENT.sub("", line)).strip()
    return _WHOLE.fullmatch(bare) is not None

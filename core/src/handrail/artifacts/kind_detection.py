"""Detection of a file's kind by its beginning and end; text if uncertain."""

from __future__ import annotations

import csv
import os
import re
from itertools import pairwise
from pathlib import Path

from pydantic_core import from_json

SAMPLE_BYTES = 65_536
# A table that is not one by chance has so many rows.
MIN_TABLE_ROWS = 3

_MARKDOWN_HEADING = re.compile(r"^#{1,6} \S", re.MULTILINE)
_MARKDOWN_SYNTAX = re.compile(r"^(?:```|~~~|[-*+] \S|\d+\. \S|> \S|\|.*\|$)|\]\(", re.MULTILINE)
_YAML_FRONTMATTER = re.compile(r"---\r?\n(?:[\w-]+:.*\r?\n|[ \t-].*\r?\n)+---\r?\n")
_XML_TAG = re.compile(r"<([A-Za-z_][\w:.-]{0,100})[\s/>]")


def detect_file_kind(path: Path) -> str:
    """Return the kind of a file: json, jsonl, xml, markdown, yaml, csv, binary or text."""
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as file:
        head = file.read(SAMPLE_BYTES)
        size = os.fstat(file.fileno()).st_size
        file.seek(max(0, size - 1_024))
        tail = file.read(1_024)
    return detect_kind(head, tail, whole=size <= SAMPLE_BYTES)


def detect_kind(head: bytes, tail: bytes, *, whole: bool) -> str:
    """Return the kind of a text from its first 64 KiB and its end; `whole`: `head` is the entire text."""
    if b"\0" in head or not _is_utf8(head, whole=whole):
        return "binary"
    text = head.decode("utf-8", "ignore").removeprefix("\ufeff").lstrip()
    last = tail.rstrip().decode("utf-8", "ignore")
    if text.startswith(("{", "[")) and (found := _detect_json(text, last, whole=whole)):
        return found
    if text.startswith("<"):
        return "xml" if _is_xml(text, last) else "text"
    if _YAML_FRONTMATTER.match(text) or (_MARKDOWN_HEADING.match(text) and _has_markdown_syntax(text)):
        return "markdown"
    if text.startswith(("---\n", "---\r\n", "%YAML ")):
        return "yaml"
    return "csv" if _is_table(text, whole=whole) else "text"


def _is_utf8(head: bytes, *, whole: bool) -> bool:
    """Return True if the data is UTF-8, apart from a truncated last character and one invalid byte in a thousand."""
    text = head.decode("utf-8", "replace")
    return text.count("\ufffd") <= (len(text) // 1_000 if whole else len(text) // 1_000 + 1)


def _detect_json(text: str, last: str, *, whole: bool) -> str | None:
    lines = [line for line in text.split("\n") if line.strip()]
    complete = lines if whole else lines[:-1]
    if len(complete) > 1 and all(line[0] in "{[" and _is_json(line) for line in complete):
        return "jsonl"
    closes = last.endswith("}" if text[0] == "{" else "]")
    return "json" if closes and _is_json(text, partial=not whole) else None


def _is_json(text: str, *, partial: bool = False) -> bool:
    try:
        from_json(text, allow_partial=partial)
    except ValueError:
        return False
    return True


def _is_xml(text: str, last: str) -> bool:
    root = _XML_TAG.match(text)
    return text.startswith("<?xml") or (root is not None and last.endswith(f"</{root[1]}>"))


def _has_markdown_syntax(text: str) -> bool:
    return len(_MARKDOWN_HEADING.findall(text)) > 1 or _MARKDOWN_SYNTAX.search(text) is not None


def _is_table(text: str, *, whole: bool) -> bool:
    lines = text.splitlines()[: None if whole else -1][:100]
    if len(lines) < MIN_TABLE_ROWS:
        return False
    for separator in ",;\t":
        try:
            rows = list(csv.reader(lines, delimiter=separator, strict=True))
        except csv.Error:
            continue
        names = [name.strip() for name in rows[0]]
        wide = len(names) > 1 and all(names) and len(set(names)) == len(names)
        if len(rows) >= MIN_TABLE_ROWS and wide and all(len(a) == len(b) for a, b in pairwise(rows)):
            return True
    return False

"""Storage of facts: a Markdown file for the user and one for each project, in Handrail's data folder.

A project's file is not kept in the project: a file from a cloned repository was written by others, but would be read
as the user's own.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from handrail import HandrailError, InvalidArguments, NotFound
from handrail.fs.app_dirs import hold_file_lock, write_private_file
from handrail.redaction import redact_text

MemoryScope = Literal["user", "project"]

MAX_FACT = 500
MIN_FACT = 3
# Facts of one file, and bytes of it that are read.
MAX_FACTS = 300
MAX_MEMORY_BYTES = 1_048_576
ITEM = re.compile(r"\s*[-*+]\s+(?P<fact>\S.*?)\s*")
# What would make a heading, a quote, a list or a fence of a fact.
MARKUP = re.compile(r"(?:[#>*+=~`|\s-]+|\d+[.)]\s+)+")


@dataclass(frozen=True, slots=True)
class FactFile:
    """Facts of one scope: the items of a list in a Markdown file, in the order in which they were saved.

    The user may write anything around them.
    """

    scope: MemoryScope
    title: str
    file: Path

    def facts(self) -> list[str]:
        """Return all facts, oldest first."""
        return [match["fact"] for line in self._lines() if (match := ITEM.fullmatch(line))]

    def add(self, text: str) -> tuple[str, bool]:
        """Save a fact; return it as stored, and True if it is new.

        Raises `InvalidArguments` for an invalid fact, and if the file is full.
        """
        fact = parse_fact(text)
        with hold_file_lock(self.file):
            known = self.facts()
            if _fold_text(fact) in map(_fold_text, known):
                return fact, False
            if len(known) >= MAX_FACTS:
                raise InvalidArguments(
                    f"{MAX_FACTS} facts are remembered already",
                    hint="a person takes some out with `handrail memory forget` or `edit`",
                )
            self._write([*(self._lines() or self._head()), f"- {fact}"])
        return fact, True

    def forget(self, number: int) -> str:
        """Take a fact out, by its place from 1; the fact. Raises `NotFound`."""
        with hold_file_lock(self.file):
            lines = self._lines()
            places = [place for place, line in enumerate(lines) if ITEM.fullmatch(line)]
            if not 1 <= number <= len(places):
                raise NotFound(f"there is no fact {number} of the {self.scope}; there are {len(places)}")
            line = lines.pop(places[number - 1])
            self._write(lines)
        match = ITEM.fullmatch(line)
        assert match is not None
        return match["fact"]

    def begin(self) -> None:
        """Create the file, if it does not exist or is empty, for the user to edit."""
        with hold_file_lock(self.file):
            if not self._lines():
                self._write(self._head())

    def _head(self) -> list[str]:
        return [f"# {self.title}", ""]

    def _lines(self) -> list[str]:
        try:
            descriptor = os.open(self.file, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
        except FileNotFoundError:
            return []
        except OSError as exc:
            if exc.errno == errno.ELOOP:
                raise HandrailError(f"{str(self.file)!r} is a link, and is not followed", hint="remove it") from exc
            raise
        with open(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise HandrailError(f"{str(self.file)!r} is no ordinary file", hint="remove it")
            data = file.read(MAX_MEMORY_BYTES + 1)
        if len(data) > MAX_MEMORY_BYTES:
            raise HandrailError(f"{str(self.file)!r} is larger than {MAX_MEMORY_BYTES:,} bytes", hint="shorten it")
        return data.decode("utf-8-sig", "replace").splitlines()

    def _write(self, lines: Sequence[str]) -> None:
        write_private_file(self.file, "\n".join(lines) + "\n")


def list_fact_files(data: Path, workspace: Sequence[Path]) -> tuple[FactFile, ...]:
    """Return the user's facts and, if there is a workspace, those of the project, which is the first root."""
    folder = data / "memory"
    user = FactFile("user", "What is remembered of the user", folder / "user.md")
    if not workspace:
        return (user,)
    root = workspace[0]
    name = re.sub(r"[^A-Za-z0-9]+", "-", root.name).strip("-")[:40] or "root"
    place = hashlib.sha256(os.fsencode(root)).hexdigest()[:12]
    title = f"What is remembered of {_to_one_line(str(root))}"
    return user, FactFile("project", title, folder / "projects" / f"{name}-{place}.md")


def parse_fact(text: str) -> str:
    """Return the fact in a text, on one line and without markup.

    Raises `InvalidArguments` for several lines, a length out of bounds, invisible characters or a secret.
    """
    # Patterns of all scripts, which a start that remembers nothing has no use for.
    from handrail.sanitize.invisible_chars import remove_invisible

    removed: Counter[str] = Counter()
    text = text.strip()
    shown = remove_invisible(text, removed)
    if removed or any(unicodedata.category(letter) == "Cc" and letter not in "\n\r\t" for letter in text):
        raise InvalidArguments("the fact holds characters that nobody sees", hint="write it in plain text")
    if len(shown.splitlines()) > 1:
        raise InvalidArguments("a fact is one line", hint="save several facts with several calls")
    fact = MARKUP.sub("", " ".join(shown.split()), count=1) if MARKUP.match(shown) else " ".join(shown.split())
    if not MIN_FACT <= len(fact) <= MAX_FACT:
        raise InvalidArguments(f"a fact has {MIN_FACT} to {MAX_FACT} characters; this one has {len(fact)}")
    if redact_text(fact) != fact:
        raise InvalidArguments(
            "the fact holds a secret, which is not written down", hint="a person names it: secret:NAME"
        )
    return fact


def recall_facts(shelves: Sequence[FactFile], query: str | None) -> Iterator[tuple[MemoryScope, str]]:
    """Yield the facts that contain every word of the query, or all facts without a query, each with its scope."""
    words = _fold_text(query or "").split()
    for shelf in shelves:
        for fact in shelf.facts():
            folded = _fold_text(fact)
            if all(word in folded for word in words):
                yield shelf.scope, fact


def _fold_text(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split()).rstrip(".")


def _to_one_line(text: str) -> str:
    return " ".join(text.split())

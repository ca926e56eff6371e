"""The values of an analysis: what a command line consists of, and how its words stand."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import NamedTuple

from handrail import Reason

# What a line has in it that starts something in the background; others may have it, too, in a text in quotes.
STARTS_JOB = re.compile(r"(?<![&<>|])&(?![&>])")


class ShellWord(NamedTuple):
    """One word of a command. `text` is what bash will make of it, None when that is not certain; `guess` is the likeliest, with nothing
    in place of what is unknown. `glob`: names of files may take its place. `inner`: commands in its substitutions, by number.
    """

    text: str | None
    guess: str
    span: tuple[int, int]
    glob: bool = False
    inner: tuple[int, ...] = ()
    # A process substitution and nothing else.
    process: bool = False
    # What it certainly begins with, where the rest is not certain.
    start: str = ""


@dataclass(frozen=True, slots=True)
class ShellRedirect:
    """`operator` as written (`>`, `2>&1` has `>&`, `<<` for here-documents, `<<<`); `body` is the text of a here-document or here-string."""

    operator: str
    target: ShellWord | None
    fd: str = ""
    body: ShellWord | None = None


@dataclass(frozen=True)
class SimpleCommand:
    """A simple command: its words (the program first), variables set for it alone, redirections.

    `argv` are the words as bash will see them, None when one of them is not certain. `guess` are the words as they are likeliest, empty
    ones left out.
    """

    words: tuple[ShellWord, ...]
    assignments: tuple[tuple[str, ShellWord], ...]
    redirects: tuple[ShellRedirect, ...]
    span: tuple[int, int]

    @cached_property
    def argv(self) -> tuple[str, ...] | None:
        texts = tuple([word.text for word in self.words if word.text is not None])
        return texts if len(texts) == len(self.words) else None

    @cached_property
    def guess(self) -> tuple[str, ...]:
        return tuple([word.guess for word in self.words if word.guess])

    @property
    def program(self) -> str | None:
        """Name of the program without its directory; None if it is missing or uncertain."""
        return self.words[0].text.rpartition("/")[2] if self.words and self.words[0].text else None


class ParsedLine(NamedTuple):
    """Everything that a command line may run. `pipelines` hold, for each stage, the numbers of its commands. `functions` are defined in it.

    `assigned` are variables that it sets for the shell, with their values. `opaque` is empty only when all of it was understood.
    """

    text: str
    commands: tuple[SimpleCommand, ...]
    pipelines: tuple[tuple[tuple[int, ...], ...], ...] = ()
    functions: Mapping[str, str] = MappingProxyType[str, str]({})
    assigned: tuple[tuple[str, ShellWord], ...] = ()
    opaque: tuple[Reason, ...] = ()
    # The inner texts of substitutions that may hide in what was not understood.
    hidden: tuple[str, ...] = ()


def is_constant_word(word: ShellWord) -> bool:
    """Return True if the line itself says what the word is: it holds no value, no output and no names of files that may change."""
    return word.text is not None and not word.glob and not word.process


def iter_substitutions(words: Sequence[ShellWord]) -> Iterator[int]:
    """Return the indices of all commands in the substitutions of these words."""
    return (number for word in words for number in word.inner)

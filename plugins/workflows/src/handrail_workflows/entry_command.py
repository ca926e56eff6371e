"""Command of a desktop entry: its quoting, and the expansion of its field codes (Desktop Entry Specification 1.5)."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

VALUE_ESCAPES = {"s": " ", "n": "\n", "t": "\t", "r": "\r", "\\": "\\"}
FILE_CODES = re.compile("%[fFuU]")
FIELD_CODE = re.compile("%(.)")
# Between these words `flatpak run --file-forwarding` takes files (file URIs after the second) that the program in its sandbox is to see.
FORWARDING_MARKS = ("@@", "@@u")


def unescape_value(value: str) -> str:
    """Return a value of a desktop entry with its escapes resolved."""
    return re.sub(r"\\([sntr\\])", lambda found: VALUE_ESCAPES[found[1]], value)


def split_command(text: str) -> tuple[str, ...]:
    """Split a command into words, including its field codes. Raises `ValueError` for an unterminated quote."""
    # In double quotes a backslash stands before these, too.
    return tuple(shlex.split(re.sub(r"(?<!\\)\\([$`])", r"\1", unescape_value(text))))


@dataclass(frozen=True, slots=True)
class CommandLine:
    """Command that starts a program. `name`, `icon` and `path` are those of its entry, for %c, %i and %k."""

    words: tuple[str, ...]
    name: str
    icon: str
    path: Path

    @property
    def program(self) -> str:
        """Program that is run, without a leading `env` and the variables set for it."""
        own = [word for word in self.words if "=" not in word]
        return own[1] if PurePath(own[0]).name == "env" and len(own) > 1 else own[0]

    def argv(self, args: Sequence[str] = ()) -> list[str]:
        """Return the command with these arguments at its position for files, or at its end if it has none."""
        made: list[str] = []
        placed = False
        for at, word in enumerate(self.words):
            around = self.words[at - 1] if at else ""
            if FILE_CODES.search(word) and not placed:
                placed = True
                if around in FORWARDING_MARKS:
                    made[-1:] = _mark_forwarded_files(args, around)
                elif FILE_CODES.fullmatch(word):
                    made += args
                elif args:
                    made += [FILE_CODES.sub(lambda _: args[0], word), *args[1:]]
            elif word not in FORWARDING_MARKS or not FILE_CODES.fullmatch(around):
                made += self._expanded(word)
        return made if placed else [*made, *args]

    def _expanded(self, word: str) -> Iterator[str]:
        if word == "%i":
            yield from ("--icon", self.icon) if self.icon else ()
            return
        codes = {"%": "%", "c": self.name, "k": str(self.path)}
        whole = FIELD_CODE.sub(lambda found: codes.get(found[1], ""), word)
        # What was nothing but a code without a value is no argument.
        if whole or not word:
            yield whole


def _mark_forwarded_files(args: Sequence[str], mark: str) -> Iterator[str]:
    """Yield the arguments with forwarding marks around existing files.

    Other arguments get no marks, because between them they would be taken for files.
    """
    for arg in args:
        if os.path.isabs(arg) and os.path.exists(arg):
            yield from (mark, Path(arg).as_uri() if mark.endswith("u") else arg, "@@")
        else:
            yield arg

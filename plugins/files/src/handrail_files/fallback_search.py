"""Fallback search for machines without ripgrep: a separate program, which can be terminated at any time.

It takes its parameters as JSON and writes the output format of `rg --null`: names terminated by NUL, or
`name NUL number : line`. It skips what ripgrep skips: hidden files, files ignored by `.gitignore`, `.ignore` and
`.rgignore` (https://git-scm.com/docs/gitignore), symlinks, and binary files.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from handrail.fs.small_files import read_small_bytes
from handrail_files.glob_patterns import GlobError, NamePattern, translate_glob

TOOL_IGNORE_FILES = (".rgignore", ".ignore")
GIT_IGNORE_FILE = ".gitignore"
# Bytes of an ignore file that are read; a larger one is none.
MAX_RULES = 4_194_304
# Bytes that ripgrep looks at together.
BUFFER = 65_536
BOMS = (b"\xff\xfe", b"\xfe\xff")
UNSUPPORTED_REGEX = re.compile(r"\(\?<?[=!]|\\[1-9]|\(\?P=")


@dataclass(frozen=True, slots=True)
class IgnoreRule:
    """One line of an ignore file."""

    fits: NamePattern
    ignores: bool
    folders_only: bool


@dataclass(frozen=True, slots=True)
class IgnoreLevel:
    """A folder with its ignore files: rules by the file's name. `base` is what paths are compared from."""

    base: str
    rules: dict[str, tuple[IgnoreRule, ...]]
    has_git: bool


def parse_ignore_rules(text: str) -> tuple[IgnoreRule, ...]:
    """Parse the rules of an ignore file, last rule first, because the last matching rule wins."""
    return tuple(rule for line in reversed(text.split("\n")) if (rule := _parse_ignore_rule(line)) is not None)


def _parse_ignore_rule(line: str) -> IgnoreRule | None:
    line = line.removesuffix("\r")
    if not line.endswith("\\ "):
        line = line.rstrip(" ")
    if not line or line.startswith("#"):
        return None
    ignores = not line.startswith("!")
    line = line if ignores else line[1:]
    folders_only = line.endswith("/")
    line = line.rstrip("/") if folders_only else line
    anchored = "/" in line
    try:
        glob = translate_glob(line.removeprefix("/"))
        if line.endswith("/**"):
            glob = translate_glob(line.removeprefix("/") + "/*").replace("/[^/]*", "/[^/]+")
        return IgnoreRule(NamePattern(glob if anchored else f"(?:.*/)?{glob}"), ignores, folders_only)
    except GlobError:
        return None


class FileWalker:
    """Walks from the working directory down."""

    def __init__(self, *, ignore: bool) -> None:
        self._ignore = ignore
        self._above = list(self._parents()) if ignore else []

    def _parents(self) -> Iterator[IgnoreLevel]:
        here = Path.cwd()
        for folder in here.parents:
            yield _read_level(str(folder), os.path.relpath(here, folder) + "/")

    def files(self, below: str = "", levels: tuple[IgnoreLevel, ...] = ()) -> Iterator[str]:
        """Yield every file below the working directory that is not skipped."""
        try:
            entries = sorted(os.scandir(below or "."), key=lambda entry: entry.name)
        except OSError:
            return
        if self._ignore:
            levels = (_read_level(below or ".", ""), *levels)
        for entry in entries:
            path = f"{below}/{entry.name}" if below else entry.name
            folder = entry.is_dir(follow_symlinks=False)
            if self._ignore and self._skipped(path, entry.name, levels, below, folder=folder):
                continue
            if folder:
                yield from self.files(path, levels)
            elif entry.is_file(follow_symlinks=False):
                yield path

    def _skipped(self, path: str, name: str, levels: tuple[IgnoreLevel, ...], below: str, *, folder: bool) -> bool:
        inside = below.split("/") if below else []
        found: list[tuple[IgnoreLevel, str]] = []
        for up, level in enumerate(levels):
            found.append((level, "/".join([*inside[len(inside) - up :], name]) if up else name))
        found += [(level, level.base + path) for level in self._above]
        any_git = any(level.has_git for level, _ in found)
        for file in (*TOOL_IGNORE_FILES, GIT_IGNORE_FILE):
            rule = _find_rule(file, found, any_git=any_git, folder=folder)
            if rule is not None:
                return rule.ignores
        return name.startswith(".")


def _find_rule(file: str, found: list[tuple[IgnoreLevel, str]], *, any_git: bool, folder: bool) -> IgnoreRule | None:
    by_git = file == GIT_IGNORE_FILE
    if by_git and not any_git:
        return None
    for level, path in found:
        for rule in level.rules.get(file, ()):
            if (folder or not rule.folders_only) and rule.fits.fits(path):
                return rule
        if by_git and level.has_git:
            return None
    return None


def _read_level(folder: str, base: str) -> IgnoreLevel:
    rules: dict[str, tuple[IgnoreRule, ...]] = {}
    for file in (*TOOL_IGNORE_FILES, GIT_IGNORE_FILE):
        data = read_small_bytes(Path(folder, file), most=MAX_RULES)
        if data is not None:
            rules[file] = parse_ignore_rules(data.decode("utf-8", "surrogateescape").removeprefix("\ufeff"))
    return IgnoreLevel(base, rules, Path(folder, ".git").exists())


def find_lines(text: str, wanted: re.Pattern[str], context: int) -> Iterator[tuple[int, bool, str]]:
    """Yield matching lines and their context: line number, True if the line itself matches, and text."""
    if not text:
        return
    lines = text.removesuffix("\n").split("\n")
    hits = {number for number, line in enumerate(lines) if wanted.search(line.removesuffix("\r"))}
    shown = sorted({near for hit in hits for near in range(max(hit - context, 0), min(hit + context + 1, len(lines)))})
    for number in shown:
        yield number + 1, number in hits, lines[number]


def is_binary_match(data: bytes, wanted: re.Pattern[str], *, named: bool) -> bool:
    """Return True if ripgrep would report a match in a binary file.

    `named`: the search names the file. Otherwise the file looked like text at first, and only the content before the
    buffer with the first NUL byte is searched.
    """
    if not named:
        data = data[: data.index(b"\0") // BUFFER * BUFFER]
    lines = re.split("[\n\0]", data.decode("utf-8", "surrogateescape"))
    return any(wanted.search(line.removesuffix("\r")) for line in lines)


def _decode_text(data: bytes) -> str | None:
    if data.startswith(BOMS):
        return data.decode("utf-16", "replace")
    return None if b"\0" in data else data.decode("utf-8", "surrogateescape").removeprefix("\ufeff")


def run_search(orders: dict[str, Any]) -> int:
    """Search and write; 2 for a pattern that cannot be used."""
    out = sys.stdout.buffer
    files = [orders["file"]] if orders["file"] else FileWalker(ignore=orders["ignore"]).files()
    if orders["text"] is None:
        for path in files:
            out.write(os.fsencode(path) + b"\0")
        return 0
    text = orders["text"] if orders["regex"] else re.escape(orders["text"])
    try:
        if orders["regex"] and UNSUPPORTED_REGEX.search(text):
            raise ValueError("look-around, including look-ahead and look-behind, and backreferences are not supported")
        wanted = re.compile(text.encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape"))
    except (re.error, ValueError) as exc:
        sys.stderr.write(f"regex parse error: {exc}")
        return 2
    for path in files:
        out.write(b"".join(_format_matches(path, wanted, orders)))
        out.flush()
    return 0


def _format_matches(path: str, wanted: re.Pattern[str], orders: dict[str, Any]) -> Iterator[bytes]:
    """Return what to show of a file. A file that the search names is open as the standard input."""
    try:
        data = sys.stdin.buffer.read() if orders["file"] else Path(path).read_bytes()
    except OSError:
        return
    name = os.fsencode(path)
    text = _decode_text(data)
    if text is None:
        if is_binary_match(data, wanted, named=orders["file"] is not None):
            yield name + b": binary file matches ()\n"
        return
    for number, fits, line in find_lines(text, wanted, orders["context"]):
        sign = ":" if fits else "-"
        yield name + b"\0" + f"{number}{sign}{line}\n".encode("utf-8", "surrogateescape")


if __name__ == "__main__":
    sys.exit(run_search(json.loads(sys.argv[1])))

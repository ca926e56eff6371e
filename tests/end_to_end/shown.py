"""What pages of the documentation show to be typed: commands of Handrail, calls of tools, and names that are imported."""

from __future__ import annotations

import ast
import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml
from tests.end_to_end.walk import blocks

# Between two commands of one line.
BETWEEN = {"|", "||", "&&", ";", "&"}
INLINE = re.compile(r"`(handrail [^`\n]+)`")
INDENTED = re.compile(r"^ {4}(\S.*)$", re.MULTILINE)
FENCED = re.compile(r"^ *```.*?^ *```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Call:
    """A call of a tool with the arguments that a page shows."""

    tool: str
    args: dict[str, Any]


def commands(page: Path) -> Iterator[tuple[str, ...]]:
    """What is given to `handrail` wherever the page has it typed: in a block, in an indented line, in a line of text."""
    text = page.read_text(encoding="utf-8")
    shell = [block.text for block in blocks(page) if block.kind in ("sh", "console", "")]
    lines = [line for block in shell for line in block.replace("\\\n", " ").splitlines()]
    outside = FENCED.sub("", text)
    for line in (*lines, *INDENTED.findall(outside), *INLINE.findall(outside)):
        for words in _commands_of(line.removeprefix("$ ")):
            if Path(words[0]).name == "handrail":
                yield words[1:]


def _commands_of(line: str) -> Iterator[tuple[str, ...]]:
    """The commands of one line, each as its words, without assignments in front, redirections and whom ssh asks."""
    with suppress(ValueError):
        lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
        lexer.wordchars += "…$*[]{}%,@+"
        command: list[str] = []
        for word in (*lexer, ";"):
            if word in BETWEEN:
                yield from _bare(command)
                command = []
            else:
                command.append(word)


def _bare(words: Sequence[str]) -> Iterator[tuple[str, ...]]:
    start = next((at for at, word in enumerate(words) if not re.match(r"\w+=", word)), len(words))
    cut = next((at for at, word in enumerate(words) if set(word) <= set("<>")), len(words))
    command = tuple(words[start:cut])
    if command[:1] == ("ssh",):
        command = command[next((at for at, word in enumerate(command) if "@" in word), len(command)) + 1 :]
    if command:
        yield command


def calls(page: Path) -> Iterator[Call]:
    """The calls of tools in commands, lines of JSON, steps of plans, and Python with its arguments written out."""
    for words in commands(page):
        if words[:1] == ("call",) and "--args" in words:
            yield Call(words[1], json.loads(words[words.index("--args") + 1]))
    for block in blocks(page):
        if block.kind == "python":
            yield from _called(ast.parse(block.text))
        elif block.kind == "yaml":
            yield from _steps(yaml.safe_load(block.text))
        else:
            yield from _lines(block.text)


def _called(tree: ast.AST) -> Iterator[Call]:
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(attr="call"), args=[ast.Constant(value=str(name)), ast.Dict() as given]):
                with suppress(ValueError):
                    yield Call(name, ast.literal_eval(given))


def _steps(value: Any, defaults: Mapping[str, Any] = MappingProxyType({})) -> Iterator[Call]:
    """The calls of a plan. An argument that is nothing but a parameter has the parameter's default."""
    if isinstance(value, dict):
        given = value.get("parameters") or {}
        defaults = {
            **defaults,
            **{f"${{{name}}}": each["default"] for name, each in given.items() if "default" in each},
        }
        if isinstance(value.get("tool"), str):
            args = value.get("args", {})
            yield Call(value["tool"], {name: defaults.get(str(given), given) for name, given in args.items()})
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _steps(item, defaults)


def _lines(text: str) -> Iterator[Call]:
    for line in text.splitlines():
        with suppress(ValueError):
            found = json.loads(line)
            if isinstance(found, dict) and isinstance(found.get("args"), dict) and "tool" in found:
                yield Call(found["tool"], found["args"])


def imports(page: Path) -> Iterator[tuple[str, str]]:
    """Modules that Python on the page imports, each with a name that it is to have, empty for the module alone."""
    for block in blocks(page):
        if block.kind == "python":
            for node in ast.walk(ast.parse(block.text)):
                if isinstance(node, ast.Import):
                    yield from ((each.name, "") for each in node.names)
                elif isinstance(node, ast.ImportFrom) and not node.level:
                    yield from ((node.module or "", each.name) for each in node.names)

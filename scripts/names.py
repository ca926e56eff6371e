"""The text of the page about the public names, read from the code."""

from __future__ import annotations

import ast
import enum
import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import groupby, takewhile
from types import UnionType
from typing import Any

import handrail
from handrail import HandrailError

HEAD = """# Every public name

Made from the code by `make docs`. What plugins and hosts import is a name of `handrail`: `from handrail import Session, tool`. Errors have a page
of their own ([Every error](error-codes.md)), and so have events ([Every event](events.md)). What is meant for tests is in `handrail.testing`
([Test a plugin](plugins/testing.md)). Names that begin with `_`, and modules that do, are nobody's but Handrail's.
"""
# The subject of names whose module stands alone.
TOP = "At the top"
# The module whose names are told of on a page of their own.
ELSEWHERE = "errors"
SIMPLE = (bool, int, float, str, type(None))


def names_page() -> str:
    """Return every name in `handrail`, by subject: its kind, how it is created or called, and its members."""
    names = [name for name in handrail.__all__ if _home(name) != ELSEWHERE or name == HandrailError.__name__]
    ordered = sorted(names, key=lambda name: (_subject(name) != TOP, _subject(name), name))
    sections = ("".join(map(_section, group)) for _, group in groupby(ordered, _subject))
    headings = dict.fromkeys(map(_subject, ordered))
    return HEAD + "".join(f"\n## {heading}\n{text}" for heading, text in zip(headings, sections, strict=True))


def _home(name: str) -> str:
    return handrail._HOME_OF[name]


def _subject(name: str) -> str:
    subject, _, module = _home(name).partition(".")
    if subject == "api":
        return module.replace("_", " ").capitalize()
    return subject.replace("_", " ").capitalize() if module else TOP


def _section(name: str) -> str:
    thing = getattr(handrail, name)
    if inspect.isclass(thing):
        told = [_made(thing), _doc(thing, name), "".join(_members(thing))]
    elif inspect.isfunction(thing):
        told = [f"`{_said(name, thing)}`", _doc(thing, name)]
    else:
        kind = f"A type: `{_cell(str(thing))}`." if isinstance(thing, UnionType) else f"A `{type(thing).__name__}`."
        told = [kind, _comment(name)]
    return f"\n### {name}\n\n" + "\n\n".join(part.strip() for part in told if part.strip()) + "\n"


def _made(thing: type) -> str:
    """Describe the kind of a class."""
    kind = "A protocol" if getattr(thing, "_is_protocol", False) else "A class"
    bases = [base.__name__ for base in thing.__mro__[1:] if base.__name__ in handrail.__all__]
    made = f"{kind}; it is a {' and a '.join(f'`{base}`' for base in bases)}." if bases else f"{kind}."
    values = ", ".join(f"`{each.value}`" for each in thing) if issubclass(thing, enum.Enum) else ""
    return f"{made} Its values: {values}." if values else made


def _members(thing: type) -> Iterator[str]:
    fields = [f"`{name}: {kind}`" for name, kind in inspect.get_annotations(thing).items() if not name.startswith("_")]
    if fields:
        yield f"It has {', '.join(fields)}.\n"
    if methods := list(_methods(thing)):
        yield "\n| member | what |\n|---|---|\n"
        yield from (f"| `{_cell(member)}` | {_cell(told)} |\n" for member, told in methods)


def _methods(thing: type) -> Iterator[tuple[str, str]]:
    for name, member in vars(thing).items():
        if name.startswith("_") and (name != "__call__" or not member.__doc__):
            continue
        where = f"{thing.__name__}.{name}"
        if isinstance(member, property | cached_property):
            getter: Any = member.fget if isinstance(member, property) else member.func
            yield f"{name}: {getter.__annotations__['return']}", _line(getter)
        elif isinstance(member, classmethod | staticmethod):
            yield _said(name, member.__func__), _doc(member.__func__, where)
        elif inspect.isfunction(member):
            yield _said(name, member), _doc(member, where)


def _said(name: str, function: Callable[..., Any]) -> str:
    """Return name, parameters and return type as written; a default that is not a plain value is shown as `…`."""
    signature = inspect.signature(function)
    shown: list[str] = []
    given = [each for each in signature.parameters.values() if each.name not in ("self", "cls")]
    for place, each in enumerate(given):
        only_named = each.kind is each.KEYWORD_ONLY
        if only_named and not any(other.kind in (each.VAR_POSITIONAL, each.KEYWORD_ONLY) for other in given[:place]):
            shown.append("*")
        shown.append(_parameter(each))
    returned = "" if signature.return_annotation is signature.empty else f" -> {signature.return_annotation}"
    waits = "async " if inspect.iscoroutinefunction(function) else ""
    return f"{waits}{name}({', '.join(shown)}){returned}"


def _parameter(parameter: inspect.Parameter) -> str:
    stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
    kind = "" if parameter.annotation is parameter.empty else f": {parameter.annotation}"
    if parameter.default is parameter.empty:
        return f"{stars}{parameter.name}{kind}"
    default = repr(parameter.default) if isinstance(parameter.default, SIMPLE) else "…"
    return f"{stars}{parameter.name}{kind} = {default}"


def _doc(thing: Any, name: str) -> str:
    if not (told := inspect.getdoc(thing)):
        raise ValueError(f"nothing is said of the public name {name!r}")
    return told


def _line(thing: Any) -> str:
    """Return the docstring; empty if the name and type say it all."""
    return inspect.getdoc(thing) or ""


def _comment(name: str) -> str:
    """Return the comment above a value."""
    source = inspect.getsource(importlib.import_module(f"handrail.{_home(name)}"))
    lines = source.splitlines()
    at = next(node.lineno for node in ast.parse(source).body if _assigns(node, name)) - 1
    above = [*takewhile(lambda line: line.startswith("# "), reversed(lines[:at]))]
    if not above:
        raise ValueError(f"no comment says what the public name {name!r} is")
    return " ".join(line.removeprefix("# ") for line in reversed(above))


def _assigns(node: ast.stmt, name: str) -> bool:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return any(isinstance(target, ast.Name) and target.id == name for target in targets)


def _cell(text: str) -> str:
    return re.sub(r"\s+", " ", text).replace("|", "\\|").strip()

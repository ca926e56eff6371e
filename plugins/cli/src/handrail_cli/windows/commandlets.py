"""Judges cmdlets by their data."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from handrail_cli.windows import powershell_values as values
from handrail_cli.windows.binding import Bound, bind, take_piped
from handrail_cli.windows.cmdlets import ACTING_VERBS, DESTRUCTIVE, FATAL, NOUNS, SHOW_ONLY, Cmdlet
from handrail_cli.windows.findings import Grade
from handrail_cli.windows.parameters import blocks_in, judge_value
from handrail_cli.windows.places import WILD, drive_of, secret
from handrail_cli.windows.powershell_nodes import Invoked, Parameter
from handrail_cli.windows.powershell_values import NOTHING, UNKNOWN, Files, Value, known
from handrail_cli.windows.structural import ALSO_BY_DATA, HANDLERS

if TYPE_CHECKING:
    from handrail_cli.windows.powershell import Shell

# What passes on what is piped into it, and what keeps only some of it.
PASSING = frozenset(("sort-object", "write-output", "out-string", "tee-object", "get-unique", "out-host", "resolve-path", "convert-path",
"foreach-object",
                     "group-object", "get-item", "out-default"))  # fmt: skip
CHOOSING = frozenset(("where-object", "select-object"))
# Classes of WMI whose objects are what backups consist of.
SHADOW = re.compile(r"win32_shadow\w*|msft_shadow\w*", re.IGNORECASE)


def run(shell: Shell, cmdlet: Cmdlet, node: Invoked, piped: Value | None) -> Value:
    """Judge a cmdlet that is listed; what it gives."""
    case = shell.case
    before = len(case.touches)
    lowered = cmdlet.name.lower()
    worst = len(case.found)
    bound = bind(shell, cmdlet, node)
    if piped is not None:
        take_piped(cmdlet, bound, piped, node.span)
    dry = bound.on("WhatIf")
    if lowered in DESTRUCTIVE and not dry:
        case.add(Grade.DANGEROUS, "destructive", f"{cmdlet.name} is asked about each time", node.span)
    if bound.odd:
        case.add(Grade.UNKNOWN, "unknown_option", f"{cmdlet.name} has a parameter that is not known", node.span)
    handler = HANDLERS.get(lowered)
    value = handler(shell, bound, node, piped) if handler is not None else UNKNOWN
    if handler is None or lowered in ALSO_BY_DATA:
        by_data = _by_data(shell, cmdlet, bound, node, piped, dry=dry)
        value = by_data if handler is None or lowered == "foreach-object" else value
    if cmdlet.grade is Grade.EFFECT and not dry and len(case.found) == worst:
        case.add(Grade.EFFECT, "changes", f"{cmdlet.name} changes something", node.span)
    case.part((cmdlet.name, *bound.words), node.span, before, varies=bound.varies)
    case.narrowed.append((cmdlet.name,))
    for name in ("OutVariable", "PipelineVariable", "ErrorVariable", "ResponseHeadersVariable", "SessionVariable"):
        if (target := bound.one(name)) is not None and target.text:
            shell.scope[target.text.lstrip("+").lower()] = Value(marks=value.marks)
    return value


def unlisted(shell: Shell, name: str, node: Invoked, piped: Value | None) -> Value:
    """Judge a command with the name of a cmdlet that is not listed; what it gives."""
    case = shell.case
    before = len(case.touches)
    arguments = [shell.argument(item) for item in node.arguments]
    if name in SHOW_ONLY and any(isinstance(item, Parameter) and _asks_what_if(item) for item in node.arguments):
        case.part((name, *(value.guess for value in arguments)), node.span, before)
        return UNKNOWN
    verb, _, noun = name.partition("-")
    marks = frozenset[str]().union(*(value.marks for value in arguments), piped.marks if piped is not None else ())
    if name in DESTRUCTIVE:
        case.add(Grade.DANGEROUS, "destructive", f"{name} is asked about each time", node.span)
    if name in FATAL:
        code, text = FATAL[name]
        case.add(Grade.CATASTROPHIC, code, text, node.span)
    elif "shadow" in marks and verb in ("remove", "invoke", "set"):
        case.add(Grade.CATASTROPHIC, "deletes_backups", "it deletes what could bring files back", node.span)
    elif verb in ACTING_VERBS:
        code, text = NOUNS.get(noun, ("acts", f"{name} changes more than files of the workspace"))
        case.add(Grade.DANGEROUS, code, text, node.span)
    else:
        case.add(Grade.UNKNOWN, "unknown_command", f"{name} is not known", node.span)
    if name == "add-type":
        case.executes = True
    for value in arguments:
        if value.text and (what := secret(case, value.text)) is not None:
            case.add(Grade.DANGEROUS, "secret", f"{value.text!r} keeps {what}", node.span)
    varies = any(value.text is None for value in arguments)
    case.part((name, *(value.guess for value in arguments)), node.span, before, varies=varies)
    return Value(marks=marks)


def _asks_what_if(item: Parameter) -> bool:
    return item.value is None and (
        item.name.lower() == "wi" or re.fullmatch(r"wh?(at?)?|whati|whatif", item.name.lower()) is not None
    )


def _by_data(shell: Shell, cmdlet: Cmdlet, bound: Bound, node: Invoked, piped: Value | None, *, dry: bool) -> Value:
    case = shell.case
    marks = piped.marks if piped is not None else frozenset[str]()
    result: Value = piped if piped is not None else UNKNOWN
    filtered = any(name in bound.given for name in ("Filter", "Include"))
    for name, given in bound.given.items():
        option, span = bound.kinds[name], bound.spans[name]
        if option.beyond and (option.kind or bound.on(name)):
            case.add(Grade.DANGEROUS, "option", f"-{name} goes beyond what {cmdlet.name} does", span)
        for value in given:
            for item in values.flat(value) if value.items is not None else (value,):
                marks |= judge_value(shell, option, item, bound, span, filtered=filtered, dry=dry)
                for block in blocks_in(item):
                    result = shell.block(block, piped)
                    marks |= result.marks
    if any(option.kind == "u" for option in bound.kinds.values()):
        marks |= {"network"}
    return _result(cmdlet, bound, result, piped, marks, filtered=filtered)


def _result(
    cmdlet: Cmdlet, bound: Bound, result: Value, piped: Value | None, marks: frozenset[str], *, filtered: bool
) -> Value:
    name = cmdlet.name.lower()
    if name == "get-childitem":
        return Value(marks=marks - {"secret"} | _listing(bound), files=tuple(_listed_files(bound, filtered=filtered)))
    if name in ("get-item", "resolve-path", "convert-path", "get-location"):
        path = bound.one("Path") or bound.one("LiteralPath")
        if path is not None and WILD.search(path.guess):
            return Value(marks=marks - {"file"}, files=tuple(_listed_files(bound, filtered=filtered)))
        if path is not None and not path.files:
            return Value(path.text, path.guess, path.items, marks - {"file"}, kind="string")
        return (path or UNKNOWN).marked(marks)
    if name in ("write-output", "get-content") and name == "write-output":
        return (bound.one("InputObject") or NOTHING).marked(marks)
    if name == "join-path":
        return _joined_path(bound).marked(marks)
    if name in ("get-cimclass", "get-ciminstance", "get-wmiobject"):
        words = " ".join(value.guess for given in bound.given.values() for value in given)
        return Value(marks=marks | {"shadow"}) if SHADOW.search(words) else Value(marks=marks)
    if name in CHOOSING and piped is not None:
        files = tuple(replace(file, filtered=True) for file in piped.files)
        return Value(marks=marks, files=files, text=piped.text if name == "select-object" else None, guess=piped.guess)
    if name in PASSING:
        return result.marked(marks)
    if name == "get-clipboard":
        return Value(marks=marks | {"secret"})
    return Value(marks=marks)


def _listing(bound: Bound) -> frozenset[str]:
    path = bound.one("Path") or bound.one("LiteralPath")
    drive = drive_of(path.guess) if path is not None else None
    return frozenset(("secret",)) if drive is not None and drive[0] == "env" else frozenset()


def _listed_files(bound: Bound, *, filtered: bool) -> Iterator[Files]:
    path = bound.one("Path") or bound.one("LiteralPath")
    recursive = bound.on("Recurse") or "Depth" in bound.given
    for item in values.flat(path) if path is not None else (known("."),):
        if item.files:
            yield from (replace(file, recursive=file.recursive or recursive) for file in item.files)
            continue
        text = item.text
        wild = text is not None and re.search(r"[*?]", text) is not None
        yield Files(text, within=not wild, recursive=recursive, filtered=filtered)


def _joined_path(bound: Bound) -> Value:
    first, second = bound.one("Path"), bound.one("ChildPath")
    if first is None or second is None or "AdditionalChildPath" in bound.given:
        return UNKNOWN
    rest = known(second.text.lstrip("\\/"), second.marks) if second.text is not None else second
    start = (
        known(first.text.rstrip("\\/") + ("\\" if "\\" in first.text or ":" in first.text else "/"), first.marks)
        if first.text is not None
        else first
    )
    return values.joined((start, rest))

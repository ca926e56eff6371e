"""Judges cmdlets by their data."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from handrail_cli.shell.powershell import values
from handrail_cli.shell.powershell.nodes import CommandNode, CommandParameter
from handrail_cli.shell.powershell.values import (
    NULL_VALUE,
    UNKNOWN_VALUE,
    FileListing,
    PowerShellValue,
    create_known_value,
)
from handrail_cli.shell.windows.argument_binding import BoundArguments, bind_arguments, bind_piped_value
from handrail_cli.shell.windows.cmdlet_handlers import ALSO_DATA_DRIVEN, CMDLET_HANDLERS
from handrail_cli.shell.windows.cmdlet_table import (
    ACTING_VERBS,
    DESTRUCTIVE_CMDLETS,
    FATAL_CMDLETS,
    SHOW_ONLY,
    SYSTEM_NOUNS,
    CmdletSpec,
)
from handrail_cli.shell.windows.findings import FindingGrade
from handrail_cli.shell.windows.parameter_effects import iter_blocks, judge_value
from handrail_cli.shell.windows.path_effects import WILDCARD, find_secret, split_drive

if TYPE_CHECKING:
    from handrail_cli.shell.windows.powershell_analyzer import PowerShellAnalyzer

# What passes on what is piped into it, and what keeps only some of it.
PASSING_CMDLETS = frozenset(("sort-object", "write-output", "out-string", "tee-object", "get-unique", "out-host", "resolve-path", "convert-path",
"foreach-object",
                     "group-object", "get-item", "out-default"))  # fmt: skip
FILTERING_CMDLETS = frozenset(("where-object", "select-object"))
# Classes of WMI whose objects are what backups consist of.
SHADOW_CLASS = re.compile(r"win32_shadow\w*|msft_shadow\w*", re.IGNORECASE)


def judge_cmdlet(
    shell: PowerShellAnalyzer, cmdlet: CmdletSpec, node: CommandNode, piped: PowerShellValue | None
) -> PowerShellValue:
    """Judge a cmdlet that is listed; what it gives."""
    case = shell.case
    before = len(case.touches)
    lowered = cmdlet.name.lower()
    worst = len(case.found)
    bound = bind_arguments(shell, cmdlet, node)
    if piped is not None:
        bind_piped_value(cmdlet, bound, piped, node.span)
    dry = bound.on("WhatIf")
    if lowered in DESTRUCTIVE_CMDLETS and not dry:
        case.add(FindingGrade.DANGEROUS, "destructive", f"{cmdlet.name} is asked about each time", node.span)
    if bound.odd:
        case.add(FindingGrade.UNKNOWN, "unknown_option", f"{cmdlet.name} has a parameter that is not known", node.span)
    handler = CMDLET_HANDLERS.get(lowered)
    value = handler(shell, bound, node, piped) if handler is not None else UNKNOWN_VALUE
    if handler is None or lowered in ALSO_DATA_DRIVEN:
        by_data = _judge_by_data(shell, cmdlet, bound, node, piped, dry=dry)
        value = by_data if handler is None or lowered == "foreach-object" else value
    if cmdlet.grade is FindingGrade.EFFECT and not dry and len(case.found) == worst:
        case.add(FindingGrade.EFFECT, "changes", f"{cmdlet.name} changes something", node.span)
    case.part((cmdlet.name, *bound.words), node.span, before, varies=bound.varies)
    case.narrowed.append((cmdlet.name,))
    for name in ("OutVariable", "PipelineVariable", "ErrorVariable", "ResponseHeadersVariable", "SessionVariable"):
        if (target := bound.one(name)) is not None and target.text:
            shell.scope[target.text.lstrip("+").lower()] = PowerShellValue(marks=value.marks)
    return value


def judge_unlisted_cmdlet(
    shell: PowerShellAnalyzer, name: str, node: CommandNode, piped: PowerShellValue | None
) -> PowerShellValue:
    """Judge a command with the name of a cmdlet that is not listed; what it gives."""
    case = shell.case
    before = len(case.touches)
    arguments = [shell.argument(item) for item in node.arguments]
    if name in SHOW_ONLY and any(isinstance(item, CommandParameter) and _is_what_if(item) for item in node.arguments):
        case.part((name, *(value.guess for value in arguments)), node.span, before)
        return UNKNOWN_VALUE
    verb, _, noun = name.partition("-")
    marks = frozenset[str]().union(*(value.marks for value in arguments), piped.marks if piped is not None else ())
    if name in DESTRUCTIVE_CMDLETS:
        case.add(FindingGrade.DANGEROUS, "destructive", f"{name} is asked about each time", node.span)
    if name in FATAL_CMDLETS:
        code, text = FATAL_CMDLETS[name]
        case.add(FindingGrade.CATASTROPHIC, code, text, node.span)
    elif "shadow" in marks and verb in ("remove", "invoke", "set"):
        case.add(FindingGrade.CATASTROPHIC, "deletes_backups", "it deletes what could bring files back", node.span)
    elif verb in ACTING_VERBS:
        code, text = SYSTEM_NOUNS.get(noun, ("acts", f"{name} changes more than files of the workspace"))
        case.add(FindingGrade.DANGEROUS, code, text, node.span)
    else:
        case.add(FindingGrade.UNKNOWN, "unknown_command", f"{name} is not known", node.span)
    if name == "add-type":
        case.executes = True
    for value in arguments:
        if value.text and (what := find_secret(case, value.text)) is not None:
            case.add(FindingGrade.DANGEROUS, "secret", f"{value.text!r} keeps {what}", node.span)
    varies = any(value.text is None for value in arguments)
    case.part((name, *(value.guess for value in arguments)), node.span, before, varies=varies)
    return PowerShellValue(marks=marks)


def _is_what_if(item: CommandParameter) -> bool:
    return item.value is None and (
        item.name.lower() == "wi" or re.fullmatch(r"wh?(at?)?|whati|whatif", item.name.lower()) is not None
    )


def _judge_by_data(
    shell: PowerShellAnalyzer,
    cmdlet: CmdletSpec,
    bound: BoundArguments,
    node: CommandNode,
    piped: PowerShellValue | None,
    *,
    dry: bool,
) -> PowerShellValue:
    case = shell.case
    marks = piped.marks if piped is not None else frozenset[str]()
    result: PowerShellValue = piped if piped is not None else UNKNOWN_VALUE
    filtered = any(name in bound.given for name in ("Filter", "Include"))
    for name, given in bound.given.items():
        option, span = bound.kinds[name], bound.spans[name]
        if option.beyond and (option.kind or bound.on(name)):
            case.add(FindingGrade.DANGEROUS, "option", f"-{name} goes beyond what {cmdlet.name} does", span)
        for value in given:
            for item in values.flatten_value(value) if value.items is not None else (value,):
                marks |= judge_value(shell, option, item, bound, span, filtered=filtered, dry=dry)
                for block in iter_blocks(item):
                    result = shell.block(block, piped)
                    marks |= result.marks
    if any(option.kind == "u" for option in bound.kinds.values()):
        marks |= {"network"}
    return _compute_result(cmdlet, bound, result, piped, marks, filtered=filtered)


def _compute_result(
    cmdlet: CmdletSpec,
    bound: BoundArguments,
    result: PowerShellValue,
    piped: PowerShellValue | None,
    marks: frozenset[str],
    *,
    filtered: bool,
) -> PowerShellValue:
    name = cmdlet.name.lower()
    if name == "get-childitem":
        return PowerShellValue(
            marks=marks - {"secret"} | _find_listing_marks(bound), files=tuple(_listed_files(bound, filtered=filtered))
        )
    if name in ("get-item", "resolve-path", "convert-path", "get-location"):
        path = bound.one("Path") or bound.one("LiteralPath")
        if path is not None and WILDCARD.search(path.guess):
            return PowerShellValue(marks=marks - {"file"}, files=tuple(_listed_files(bound, filtered=filtered)))
        if path is not None and not path.files:
            return PowerShellValue(path.text, path.guess, path.items, marks - {"file"}, kind="string")
        return (path or UNKNOWN_VALUE).marked(marks)
    if name in ("write-output", "get-content") and name == "write-output":
        return (bound.one("InputObject") or NULL_VALUE).marked(marks)
    if name == "join-path":
        return _join_path(bound).marked(marks)
    if name in ("get-cimclass", "get-ciminstance", "get-wmiobject"):
        words = " ".join(value.guess for given in bound.given.values() for value in given)
        return PowerShellValue(marks=marks | {"shadow"}) if SHADOW_CLASS.search(words) else PowerShellValue(marks=marks)
    if name in FILTERING_CMDLETS and piped is not None:
        files = tuple(replace(file, filtered=True) for file in piped.files)
        return PowerShellValue(
            marks=marks, files=files, text=piped.text if name == "select-object" else None, guess=piped.guess
        )
    if name in PASSING_CMDLETS:
        return result.marked(marks)
    if name == "get-clipboard":
        return PowerShellValue(marks=marks | {"secret"})
    return PowerShellValue(marks=marks)


def _find_listing_marks(bound: BoundArguments) -> frozenset[str]:
    path = bound.one("Path") or bound.one("LiteralPath")
    drive = split_drive(path.guess) if path is not None else None
    return frozenset(("secret",)) if drive is not None and drive[0] == "env" else frozenset()


def _listed_files(bound: BoundArguments, *, filtered: bool) -> Iterator[FileListing]:
    path = bound.one("Path") or bound.one("LiteralPath")
    recursive = bound.on("Recurse") or "Depth" in bound.given
    for item in values.flatten_value(path) if path is not None else (create_known_value("."),):
        if item.files:
            yield from (replace(file, recursive=file.recursive or recursive) for file in item.files)
            continue
        text = item.text
        wild = text is not None and re.search(r"[*?]", text) is not None
        yield FileListing(text, within=not wild, recursive=recursive, filtered=filtered)


def _join_path(bound: BoundArguments) -> PowerShellValue:
    first, second = bound.one("Path"), bound.one("ChildPath")
    if first is None or second is None or "AdditionalChildPath" in bound.given:
        return UNKNOWN_VALUE
    rest = create_known_value(second.text.lstrip("\\/"), second.marks) if second.text is not None else second
    start = (
        create_known_value(
            first.text.rstrip("\\/") + ("\\" if "\\" in first.text or ":" in first.text else "/"), first.marks
        )
        if first.text is not None
        else first
    )
    return values.join_values((start, rest))

"""Effects of parameter values: read, written, deleted, sent, run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from handrail.net import urls
from handrail_cli.shell.powershell.nodes import ScriptBlock
from handrail_cli.shell.powershell.values import PowerShellValue
from handrail_cli.shell.windows.argument_binding import BoundArguments
from handrail_cli.shell.windows.cmdlet_table import CmdletParameter
from handrail_cli.shell.windows.findings import FindingGrade, Span
from handrail_cli.shell.windows.path_effects import (
    WILDCARD,
    find_secret,
    note_delete,
    note_found_read,
    note_read,
    note_write,
    split_drive,
)
from handrail_cli.shell.windows.program_call import judge_address

if TYPE_CHECKING:
    from handrail_cli.shell.windows.powershell_analyzer import PowerShellAnalyzer


def iter_blocks(value: PowerShellValue) -> Iterator[ScriptBlock]:
    """Yield the code blocks in a value, at any depth."""
    if value.block is not None:
        yield value.block
    for item in value.items or ():
        yield from iter_blocks(item)
    for _, item in value.table or ():
        yield from iter_blocks(item)


def judge_value(
    shell: PowerShellAnalyzer,
    option: CmdletParameter,
    value: PowerShellValue,
    bound: BoundArguments,
    span: Span,
    *,
    filtered: bool,
    dry: bool,
) -> frozenset[str]:
    """Note what becomes of one value of a parameter; the marks it leaves on what the cmdlet gives."""
    marks = value.marks - {"missing"}
    match option.kind:
        case "r" | "l":
            return marks | judge_read(shell, value, bound, span, listing=option.kind == "l")
        case "t" if value.files:
            return marks | judge_read(shell, value, bound, span)
        case "w" if not dry:
            judge_write(shell, value, bound, span)
        case "d" if not dry:
            judge_delete(shell, value, bound, span, filtered=filtered)
        case "u":
            judge_target(shell, value, span)
            return marks | {"network"}
        case "b":
            judge_sent_value(shell, value, span)
        case "i":
            judge_sent_file(shell, value, span)
        case _:
            pass
    return marks


def judge_read(
    shell: PowerShellAnalyzer, value: PowerShellValue, bound: BoundArguments, span: Span, *, listing: bool = False
) -> frozenset[str]:
    """Note the reading of what a value names; the marks of what is read."""
    case = shell.case
    if value.files:
        if not listing:
            note_found_read(case, span)
        for file in value.files:
            if file.text is not None:
                note_read(case, file.text, span, listing=listing)
                if find_secret(case, file.text) is not None:
                    return frozenset(("file", "secret"))
        return frozenset(("file",))
    if value.text is None:
        case.add(FindingGrade.UNKNOWN, "unresolved", "it is not known what it reads", span)
        case.touch("read", "")
        return frozenset(("file",))
    count = len(case.found)
    note_read(case, value.text, span, listing=listing)
    found = any(reason.code == "secret" for _, reason in list(case.found)[count:]) or _is_secret(shell, value.text)
    return frozenset(("file", "secret")) if found else frozenset(("file",))


def _is_secret(shell: PowerShellAnalyzer, text: str) -> bool:
    drive = split_drive(text)
    return drive is None and find_secret(shell.case, text) is not None


def judge_write(shell: PowerShellAnalyzer, value: PowerShellValue, bound: BoundArguments, span: Span) -> None:
    """Note the writing of what a value names."""
    case = shell.case
    if value.files:
        for file in value.files:
            if file.text is None:
                case.add(FindingGrade.DANGEROUS, "unresolved", "it is not known what it writes", span)
            else:
                note_write(case, file.text, span)
        return
    if value.text is None:
        case.add(FindingGrade.DANGEROUS, "unresolved", "it is not known what it writes", span)
        case.touch("write", "")
        return
    text = value.text
    name = bound.one("Name")
    if name is not None and name.text and split_drive(text) is not None:
        text = f"{text}\\{name.text}"
    elif name is not None and name.text and "ItemType" in bound.given:
        text = f"{text}\\{name.text}" if case.windows else f"{text}/{name.text}"
    note_write(case, text, span, fetched="Uri" in bound.given or "Source" in bound.given)


def judge_delete(
    shell: PowerShellAnalyzer, value: PowerShellValue, bound: BoundArguments, span: Span, *, filtered: bool
) -> None:
    """Note the deleting of what a value names."""
    case, recursive = shell.case, bound.on("Recurse")
    separator = "\\" if case.windows else "/"
    for file in value.files:
        if file.text is None:
            note_delete(case, None, span, recursive=recursive or file.recursive)
            continue
        inner = f"{file.text}{separator}" if file.text else ""
        if file.filtered:
            note_delete(case, f"{inner}some" if file.within else file.text, span)
        else:
            note_delete(
                case,
                f"{inner}*" if file.within else file.text,
                span,
                recursive=recursive or file.recursive,
                bulk=file.within,
            )
    if value.files:
        return
    if value.text is None:
        guess = value.guess if value.guess[:1] not in ("", "\\", "/") or value.guess[1:] else ""
        note_delete(case, None, span, guess=guess, recursive=recursive)
        return
    text = value.text
    if filtered and (WILDCARD.search(text) or not recursive):
        text = re.sub(r"[*?]+$", "some", text)
        note_delete(case, text, span)
        return
    note_delete(case, text, span, recursive=recursive)


def judge_target(shell: PowerShellAnalyzer, value: PowerShellValue, span: Span) -> None:
    """Note a request to the address that a value is."""
    case = shell.case
    case.touch("network", urls.find_url_place(value.text or ""))
    if "secret" in value.marks:
        case.add(FindingGrade.CATASTROPHIC, "leaks_credentials", "it sends credentials to another machine", span)
    elif "file" in value.marks:
        case.add(FindingGrade.DANGEROUS, "sends_data", "it sends what it has read to another machine", span)
    elif value.text is None:
        case.add(
            FindingGrade.DANGEROUS, "unresolved", "it is not known where it sends its request, or what is in it", span
        )
    else:
        judge_address(case, value.text, span)
    case.add(FindingGrade.EFFECT, "network", "it reaches out over the network", span)


def judge_sent_value(shell: PowerShellAnalyzer, value: PowerShellValue, span: Span) -> None:
    """Note what sending a value to another machine amounts to."""
    case = shell.case
    marks = value.marks
    if "secret" in marks:
        case.add(FindingGrade.CATASTROPHIC, "leaks_credentials", "it sends credentials to another machine", span)
    elif value.table is not None:
        for _, item in value.table:
            judge_sent_value(shell, item, span)
    elif value.items is not None:
        for item in value.items:
            judge_sent_value(shell, item, span)
    elif value.text is None or "file" in marks:
        case.add(FindingGrade.DANGEROUS, "sends_data", "it sends what it has read to another machine", span)


def judge_sent_file(shell: PowerShellAnalyzer, value: PowerShellValue, span: Span) -> None:
    """Note that the file which a value names is sent to another machine."""
    case = shell.case
    if value.text is None:
        case.add(FindingGrade.DANGEROUS, "unresolved", "it is not known what it sends", span)
        return
    note_read(case, value.text, span)
    if find_secret(case, value.text) is not None:
        case.add(FindingGrade.CATASTROPHIC, "leaks_credentials", "it sends credentials to another machine", span)
    else:
        case.add(FindingGrade.DANGEROUS, "sends_data", "it sends a file to another machine", span)

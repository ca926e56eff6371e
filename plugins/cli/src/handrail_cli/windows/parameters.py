"""What becomes of the values of parameters: read, written, deleted, sent, run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from handrail.net import urls
from handrail_cli.windows.binding import Bound
from handrail_cli.windows.calls import judge_address
from handrail_cli.windows.cmdlets import Option
from handrail_cli.windows.findings import Grade, Span
from handrail_cli.windows.places import WILD, deletes, drive_of, reads, reads_found, secret, writes
from handrail_cli.windows.powershell_nodes import Block
from handrail_cli.windows.powershell_values import Value

if TYPE_CHECKING:
    from handrail_cli.windows.powershell import Shell


def blocks_in(value: Value) -> Iterator[Block]:
    """The blocks of code in a value, wherever they stand in it."""
    if value.block is not None:
        yield value.block
    for item in value.items or ():
        yield from blocks_in(item)
    for _, item in value.table or ():
        yield from blocks_in(item)


def judge_value(
    shell: Shell, option: Option, value: Value, bound: Bound, span: Span, *, filtered: bool, dry: bool
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
            judge_sent(shell, value, span)
        case "i":
            judge_sent_file(shell, value, span)
        case _:
            pass
    return marks


def judge_read(shell: Shell, value: Value, bound: Bound, span: Span, *, listing: bool = False) -> frozenset[str]:
    """Note the reading of what a value names; the marks of what is read."""
    case = shell.case
    if value.files:
        if not listing:
            reads_found(case, span)
        for file in value.files:
            if file.text is not None:
                reads(case, file.text, span, listing=listing)
                if secret(case, file.text) is not None:
                    return frozenset(("file", "secret"))
        return frozenset(("file",))
    if value.text is None:
        case.add(Grade.UNKNOWN, "unresolved", "it is not known what it reads", span)
        case.touch("read", "")
        return frozenset(("file",))
    count = len(case.found)
    reads(case, value.text, span, listing=listing)
    found = any(reason.code == "secret" for _, reason in list(case.found)[count:]) or _is_secret(shell, value.text)
    return frozenset(("file", "secret")) if found else frozenset(("file",))


def _is_secret(shell: Shell, text: str) -> bool:
    drive = drive_of(text)
    return drive is None and secret(shell.case, text) is not None


def judge_write(shell: Shell, value: Value, bound: Bound, span: Span) -> None:
    """Note the writing of what a value names."""
    case = shell.case
    if value.files:
        for file in value.files:
            if file.text is None:
                case.add(Grade.DANGEROUS, "unresolved", "it is not known what it writes", span)
            else:
                writes(case, file.text, span)
        return
    if value.text is None:
        case.add(Grade.DANGEROUS, "unresolved", "it is not known what it writes", span)
        case.touch("write", "")
        return
    text = value.text
    name = bound.one("Name")
    if name is not None and name.text and drive_of(text) is not None:
        text = f"{text}\\{name.text}"
    elif name is not None and name.text and "ItemType" in bound.given:
        text = f"{text}\\{name.text}" if case.windows else f"{text}/{name.text}"
    writes(case, text, span, fetched="Uri" in bound.given or "Source" in bound.given)


def judge_delete(shell: Shell, value: Value, bound: Bound, span: Span, *, filtered: bool) -> None:
    """Note the deleting of what a value names."""
    case, recursive = shell.case, bound.on("Recurse")
    separator = "\\" if case.windows else "/"
    for file in value.files:
        if file.text is None:
            deletes(case, None, span, recursive=recursive or file.recursive)
            continue
        inner = f"{file.text}{separator}" if file.text else ""
        if file.filtered:
            deletes(case, f"{inner}some" if file.within else file.text, span)
        else:
            deletes(
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
        deletes(case, None, span, guess=guess, recursive=recursive)
        return
    text = value.text
    if filtered and (WILD.search(text) or not recursive):
        text = re.sub(r"[*?]+$", "some", text)
        deletes(case, text, span)
        return
    deletes(case, text, span, recursive=recursive)


def judge_target(shell: Shell, value: Value, span: Span) -> None:
    """Note a request to the address that a value is."""
    case = shell.case
    case.touch("network", urls.place(value.text or ""))
    if "secret" in value.marks:
        case.add(Grade.CATASTROPHIC, "leaks_credentials", "it sends credentials to another machine", span)
    elif "file" in value.marks:
        case.add(Grade.DANGEROUS, "sends_data", "it sends what it has read to another machine", span)
    elif value.text is None:
        case.add(Grade.DANGEROUS, "unresolved", "it is not known where it sends its request, or what is in it", span)
    else:
        judge_address(case, value.text, span)
    case.add(Grade.EFFECT, "network", "it reaches out over the network", span)


def judge_sent(shell: Shell, value: Value, span: Span) -> None:
    """Note what sending a value to another machine amounts to."""
    case = shell.case
    marks = value.marks
    if "secret" in marks:
        case.add(Grade.CATASTROPHIC, "leaks_credentials", "it sends credentials to another machine", span)
    elif value.table is not None:
        for _, item in value.table:
            judge_sent(shell, item, span)
    elif value.items is not None:
        for item in value.items:
            judge_sent(shell, item, span)
    elif value.text is None or "file" in marks:
        case.add(Grade.DANGEROUS, "sends_data", "it sends what it has read to another machine", span)


def judge_sent_file(shell: Shell, value: Value, span: Span) -> None:
    """Note that the file which a value names is sent to another machine."""
    case = shell.case
    if value.text is None:
        case.add(Grade.DANGEROUS, "unresolved", "it is not known what it sends", span)
        return
    reads(case, value.text, span)
    if secret(case, value.text) is not None:
        case.add(Grade.CATASTROPHIC, "leaks_credentials", "it sends credentials to another machine", span)
    else:
        case.add(Grade.DANGEROUS, "sends_data", "it sends a file to another machine", span)

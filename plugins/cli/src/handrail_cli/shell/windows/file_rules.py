"""Programs of Windows that change files in ways of their own: who may reach them, what is noted about them, copies, links, shredding."""

from __future__ import annotations

import re
from collections.abc import Mapping

from handrail_cli.shell.windows.findings import FindingGrade, LineEvaluation
from handrail_cli.shell.windows.path_effects import (
    is_fatal_delete,
    is_in_workspace,
    note_delete,
    note_read,
    note_write,
    resolve_path,
)
from handrail_cli.shell.windows.program_call import OutputMarks, ProgramCall, ProgramRule, note_dangerous


def _judge_permissions(case: LineEvaluation, call: ProgramCall) -> OutputMarks:
    options = {option.partition(":")[0] for option in call.options()}
    loose = call.loose()
    if call.name in ("icacls", "cacls") and len(loose) <= 1 and options <= {"t", "c", "q", "l", "findsid", "verify"}:
        for word in loose:
            note_read(case, word.guess, word.span, listing=True)
        return None
    recursive = bool(options & ({"t"} if call.name != "takeown" else {"r"}))
    targets = loose[:1]
    if call.name == "takeown":
        targets = [other for word, other in zip(call.words, call.words[1:], strict=False) if word.guess.lower() == "/f"]
    for word in targets:
        found = resolve_path(case, word.guess)
        if recursive and found is not None and found.refused is None and is_fatal_delete(case, found):
            case.add(
                FindingGrade.CATASTROPHIC,
                "deletes_system",
                "it changes who may do what in the whole system or a home",
                call.span,
            )
        case.touch("write", found.real if found is not None else "")
    note_dangerous(case, call, "permissions", "it changes who may do what")
    return None


def _judge_attrib(case: LineEvaluation, call: ProgramCall) -> OutputMarks:
    changes = any(re.fullmatch(r"[+-][a-z]+", word) for word in call.lowered)
    for word in call.words:
        if not re.match(r"[+/-]", word.guess):
            if changes:
                note_write(case, word.guess, word.span)
            else:
                note_read(case, word.guess, word.span, listing=True)
    if changes:
        case.add(FindingGrade.EFFECT, "changes", "it changes what is noted about files", call.span)
        if all(re.match(r"[+/-]", word) for word in call.lowered):
            note_dangerous(case, call, "bulk", "it changes all that is there")
    return None


def _judge_copy(case: LineEvaluation, call: ProgramCall) -> OutputMarks:
    """Judge robocopy, xcopy, expand and makecab: from the first word to the last word that names a place."""
    loose = call.loose()
    options = {option.partition(":")[0] for option in call.options()}
    if {"job", "save", "unilog", "log", "log+", "unilog+", "if", "f"} & options and call.name == "robocopy":
        note_dangerous(case, call, "option", "it reads its options from, or writes to, another file")
    if "l" in options and call.name in ("robocopy", "xcopy"):
        for word in loose[:2]:
            note_read(case, word.guess, word.span)
        return None
    source = loose[:1]
    target = loose[1:2] if call.name in ("robocopy", "xcopy") else loose[-1:] if len(loose) > 1 else []
    moves = bool({"mov", "move"} & options)
    for word in source if call.name in ("robocopy", "xcopy", "makecab") else loose[: max(1, len(loose) - len(target))]:
        note_read(case, word.guess, word.span)
        if moves:
            note_delete(case, word.text, word.span, guess=word.guess, recursive=True)
    for word in target:
        note_write(case, word.guess, word.span)
        if {"mir", "purge"} & options:
            note_delete(case, f"{word.guess}\\*", word.span, recursive=True, bulk=True)
    case.add(FindingGrade.EFFECT, "changes", f"{call.name} copies files", call.span)
    return None


def _judge_raw_copy(case: LineEvaluation, call: ProgramCall) -> OutputMarks:
    note_dangerous(case, call, "runs_anything", f"{call.name} copies files by a way that nothing guards")
    for word in call.words:
        if re.match(r"[A-Za-z]:|\\\\", word.guess):
            note_read(case, word.guess, word.span)
    return None


def _judge_sdelete(case: LineEvaluation, call: ProgramCall) -> OutputMarks:
    for word in call.loose():
        note_delete(case, word.text, word.span, guess=word.guess, recursive=True)
    note_dangerous(case, call, "shreds", "what it deletes cannot be brought back")
    return None


def _judge_cipher(case: LineEvaluation, call: ProgramCall) -> OutputMarks:
    if not any(re.match(r"[/-]", word) for word in call.lowered):
        for word in call.words:
            note_read(case, word.guess, word.span)
        return None
    note_dangerous(case, call, "shreds", "it encrypts files, or destroys what could bring deleted ones back")
    return None


def _judge_mklink(case: LineEvaluation, call: ProgramCall) -> OutputMarks:
    loose = call.loose()
    for word in loose[:1]:
        note_write(case, word.guess, word.span)
    for word in loose[1:2]:
        note_read(case, word.guess, word.span)
        if not is_in_workspace(case, word.guess):
            note_dangerous(case, call, "link_out", "it makes a link that leaves the workspace")
    return None


RULES: Mapping[str, ProgramRule] = {
    **dict.fromkeys(("icacls", "cacls", "takeown"), _judge_permissions),
    "attrib": _judge_attrib,
    **dict.fromkeys(("robocopy", "xcopy", "makecab", "expand", "extrac32", "replace"), _judge_copy),
    **dict.fromkeys(("esentutl", "print"), _judge_raw_copy),
    **dict.fromkeys(("sdelete", "sdelete64"), _judge_sdelete),
    "cipher": _judge_cipher,
    "mklink": _judge_mklink,
}

"""Programs of Windows that change files in ways of their own: who may reach them, what is noted about them, copies, links, shredding."""

from __future__ import annotations

import re
from collections.abc import Mapping

from handrail_cli.windows.calls import Call, Marks, Rule, dangerous
from handrail_cli.windows.findings import Case, Grade
from handrail_cli.windows.places import deletes, fatal, reads, resolved, within, writes


def _permissions(case: Case, call: Call) -> Marks:
    options = {option.partition(":")[0] for option in call.options()}
    loose = call.loose()
    if call.name in ("icacls", "cacls") and len(loose) <= 1 and options <= {"t", "c", "q", "l", "findsid", "verify"}:
        for word in loose:
            reads(case, word.guess, word.span, listing=True)
        return None
    recursive = bool(options & ({"t"} if call.name != "takeown" else {"r"}))
    targets = loose[:1]
    if call.name == "takeown":
        targets = [other for word, other in zip(call.words, call.words[1:], strict=False) if word.guess.lower() == "/f"]
    for word in targets:
        found = resolved(case, word.guess)
        if recursive and found is not None and found.refused is None and fatal(case, found):
            case.add(
                Grade.CATASTROPHIC,
                "deletes_system",
                "it changes who may do what in the whole system or a home",
                call.span,
            )
        case.touch("write", found.real if found is not None else "")
    dangerous(case, call, "permissions", "it changes who may do what")
    return None


def _attrib(case: Case, call: Call) -> Marks:
    changes = any(re.fullmatch(r"[+-][a-z]+", word) for word in call.lowered)
    for word in call.words:
        if not re.match(r"[+/-]", word.guess):
            if changes:
                writes(case, word.guess, word.span)
            else:
                reads(case, word.guess, word.span, listing=True)
    if changes:
        case.add(Grade.EFFECT, "changes", "it changes what is noted about files", call.span)
        if all(re.match(r"[+/-]", word) for word in call.lowered):
            dangerous(case, call, "bulk", "it changes all that is there")
    return None


def _copies(case: Case, call: Call) -> Marks:
    """robocopy, xcopy, expand, makecab: from the first word to the last that names a place."""
    loose = call.loose()
    options = {option.partition(":")[0] for option in call.options()}
    if {"job", "save", "unilog", "log", "log+", "unilog+", "if", "f"} & options and call.name == "robocopy":
        dangerous(case, call, "option", "it reads its options from, or writes to, another file")
    if "l" in options and call.name in ("robocopy", "xcopy"):
        for word in loose[:2]:
            reads(case, word.guess, word.span)
        return None
    source = loose[:1]
    target = loose[1:2] if call.name in ("robocopy", "xcopy") else loose[-1:] if len(loose) > 1 else []
    moves = bool({"mov", "move"} & options)
    for word in source if call.name in ("robocopy", "xcopy", "makecab") else loose[: max(1, len(loose) - len(target))]:
        reads(case, word.guess, word.span)
        if moves:
            deletes(case, word.text, word.span, guess=word.guess, recursive=True)
    for word in target:
        writes(case, word.guess, word.span)
        if {"mir", "purge"} & options:
            deletes(case, f"{word.guess}\\*", word.span, recursive=True, bulk=True)
    case.add(Grade.EFFECT, "changes", f"{call.name} copies files", call.span)
    return None


def _copies_anything(case: Case, call: Call) -> Marks:
    dangerous(case, call, "runs_anything", f"{call.name} copies files by a way that nothing guards")
    for word in call.words:
        if re.match(r"[A-Za-z]:|\\\\", word.guess):
            reads(case, word.guess, word.span)
    return None


def _sdelete(case: Case, call: Call) -> Marks:
    for word in call.loose():
        deletes(case, word.text, word.span, guess=word.guess, recursive=True)
    dangerous(case, call, "shreds", "what it deletes cannot be brought back")
    return None


def _cipher(case: Case, call: Call) -> Marks:
    if not any(re.match(r"[/-]", word) for word in call.lowered):
        for word in call.words:
            reads(case, word.guess, word.span)
        return None
    dangerous(case, call, "shreds", "it encrypts files, or destroys what could bring deleted ones back")
    return None


def _link(case: Case, call: Call) -> Marks:
    loose = call.loose()
    for word in loose[:1]:
        writes(case, word.guess, word.span)
    for word in loose[1:2]:
        reads(case, word.guess, word.span)
        if not within(case, word.guess):
            dangerous(case, call, "link_out", "it makes a link that leaves the workspace")
    return None


RULES: Mapping[str, Rule] = {
    **dict.fromkeys(("icacls", "cacls", "takeown"), _permissions),
    "attrib": _attrib,
    **dict.fromkeys(("robocopy", "xcopy", "makecab", "expand", "extrac32", "replace"), _copies),
    **dict.fromkeys(("esentutl", "print"), _copies_anything),
    **dict.fromkeys(("sdelete", "sdelete64"), _sdelete),
    "cipher": _cipher,
    "mklink": _link,
}

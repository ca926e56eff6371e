"""Judges programs by their name and words, for both dialects: those of Windows by data, those of every system as bash's judge does."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace

from handrail_cli.windows import program_data as data
from handrail_cli.windows.calls import Call, Stdin, Word, base, check_words, note_part, runs_foreign_code
from handrail_cli.windows.every_system import add_catastrophes, delegated, of_every_system
from handrail_cli.windows.findings import Case, Grade
from handrail_cli.windows.places import reads, reads_found, resolved, runs, runs_fetched, system_program, writes
from handrail_cli.windows.program_data import Reader
from handrail_cli.windows.shells import DASHES, cmd, powershell

# The marks of what a program prints of which nothing else is known.
FILE = frozenset(("file",))
SCRIPT = re.compile(r"\.(ps1|psm1|bat|cmd|vbs|vbe|js|jse|wsf|hta|msi|lnk|reg|cpl|scr|pif|py|pl|rb|sh)$", re.IGNORECASE)


def program(case: Case, call: Call) -> frozenset[str]:
    """Note what running a program amounts to; the marks of what it prints."""
    before = len(case.touches)
    if call.stdin is None and case.stdin is not None:
        call = replace(call, stdin=Stdin(case.stdin))
    place = _path(case, call)
    if place is not None and not _run_by_path(case, call, place):
        note_part(case, call, before)
        return FILE
    name = base(call.name)
    case.touch("execute", name)
    marks = _known(case, call, name)
    if marks is None:
        if not case.windows:
            return delegated(case, call, before)
        if name in data.RUNS_ANYTHING:
            _anything(case, call)
        elif name in data.DANGEROUS:
            case.add(Grade.DANGEROUS, *data.DANGEROUS[name], call.span)
        elif (marks := of_every_system(case, replace(call, name=name), before)) is not None:
            return marks
        else:
            case.add(Grade.UNKNOWN, "unknown_program", f"{call.name!r} is not known to only read", call.span)
        check_words(case, call)
        marks = FILE
    note_part(case, call, before)
    return marks


def _known(case: Case, call: Call, name: str) -> frozenset[str] | None:
    """The marks of what it prints, where something here reads the words of just this program; else None."""
    helping = len(call.words) == 1 and call.words[0].text in ("/?", "-?", "--help", "--version", "/help", "-h")
    handler = HANDLERS.get(name) if case.windows else UNIX_HANDLERS.get(name)
    if handler is not None and not (helping and name not in SHELLS):
        return handler(case, replace(call, name=name)) or frozenset()
    if case.windows and name not in data.KNOWN and _is_local(case, call, name):
        return frozenset()
    if helping and (name in data.KNOWN or name in HANDLERS):
        return frozenset()
    if case.windows and (reader := data.READERS.get(name)) is not None:
        return read(case, call, reader)
    return None


def _path(case: Case, call: Call) -> str | None:
    return call.name if re.search(r"[\\/]", call.name) else None


def _run_by_path(case: Case, call: Call, text: str) -> bool:
    """Whether a program that is named by its path is one of the system, which its name tells."""
    found = resolved(case, text)
    if found is not None and found.refused is None and found.doubtful is None and system_program(case, found.path):
        return True
    if case.windows or not text.startswith("/"):
        runs(case, text, call.span)
        check_words(case, call)
        return False
    return True


def _is_local(case: Case, call: Call, name: str) -> bool:
    """Whether a bare name is a script, or a file that was brought or written before it is run by its name."""
    found = resolved(case, call.name)
    if found is not None:
        known = {f"{found.real.lower()}{ending}" for ending in ("", ".exe", ".bat", ".cmd", ".com", ".ps1")}
        if known & (case.fetched | case.written):
            runs(case, next(iter(known & (case.fetched | case.written))), call.span)
            return True
    if SCRIPT.search(call.name):
        runs(case, call.name, call.span)
        check_words(case, call)
        return True
    return False


# -- programs of Windows that read


def read(case: Case, call: Call, reader: Reader) -> frozenset[str]:
    """Note what a program amounts to of which the options that only read are known."""
    marks = FILE
    loose: list[Word] = []
    waiting = list(call.words)
    while waiting:
        word = waiting.pop(0)
        text = word.text
        if text is None:
            case.add(Grade.UNKNOWN, "unresolved", "one of its words is not known", call.span)
            loose.append(word)
        elif text[:1] in DASHES and text[1:] and (not text.startswith("/") or "/" not in text[1:] or ":" in text):
            _read_option(case, call, reader, text[1:], waiting)
        elif text.startswith("/") and text[1:]:
            for option in text[1:].split("/"):
                _read_option(case, call, reader, option, waiting)
        else:
            loose.append(word)
    if reader.words == "none" and loose:
        case.add(Grade.UNKNOWN, "unknown_option", f"{call.name} has a word that is not known", call.span)
    files = loose[1:] if reader.words == "pattern" and not _gives_pattern(call) else loose
    if reader.words in ("read", "list", "pattern"):
        for word in files:
            if word.text is not None:
                before = len(case.found)
                recursive = reader.words == "pattern" and any(
                    re.fullmatch(r"[/-][a-z/]*s[a-z/]*", w) for w in call.lowered
                )
                reads(case, word.text, word.span, recursive=recursive, listing=reader.words == "list")
                if any(reason.code == "secret" for _, reason in list(case.found)[before:]):
                    marks |= {"secret"}
    return marks


def _gives_pattern(call: Call) -> bool:
    return any(re.match(r"[/-][cg]:", word) for word in call.lowered)


def _read_option(case: Case, call: Call, reader: Reader, option: str, waiting: list[Word]) -> None:
    name, colon, value = option.lower().partition(":")
    if name in reader.remote:
        case.add(Grade.DANGEROUS, "remoting", f"{call.name} asks another machine", call.span)
    elif (kind := reader.options.get(name)) is not None:
        if kind == "":
            return
        given = Word(value, option.partition(":")[2]) if colon else (waiting.pop(0) if waiting else Word("", ""))
        if kind in ("r", "l") and given.text:
            reads(case, given.text, call.span)
            if kind == "l":
                reads_found(case, call.span)
        elif kind == "w" and given.text:
            writes(case, given.text, call.span)
        elif given.text is None:
            case.add(Grade.UNKNOWN, "unresolved", "one of its words is not known", call.span)
    elif (
        (reader.cluster and all(letter in reader.options and not reader.options[letter] for letter in name))
        or re.fullmatch(r"[+-]?\d+", name)
        or name == "?"
    ):
        return
    else:
        case.add(Grade.UNKNOWN, "unknown_option", f"{call.name} has an option that is not known: {option!r}", call.span)


def _anything(case: Case, call: Call) -> None:
    """Programs of Windows that run what they are given, or fetch it."""
    case.executes = True
    add_catastrophes(case, replace(call, name=base(call.name)))
    runs_foreign_code(case, call)
    for word in call.words:
        runs_fetched(case, re.sub(r"^/\w+:|,.*$", "", word.guess), call.span)
    case.add(Grade.DANGEROUS, "runs_anything", f"{base(call.name)} runs what it is given", call.span)


def _by_program(case: Case, call: Call) -> frozenset[str]:
    from handrail_cli.windows import rules

    return rules.judge(case, call)


SHELLS = frozenset(("powershell", "pwsh", "cmd", "powershell_ise"))
HANDLERS: Mapping[str, Callable[[Case, Call], frozenset[str] | None]] = {
    **dict.fromkeys(("powershell", "pwsh", "powershell_ise"), powershell),
    "cmd": cmd,
    **dict.fromkeys(data.RULED, _by_program),
}
UNIX_HANDLERS: Mapping[str, Callable[[Case, Call], frozenset[str] | None]] = {
    **dict.fromkeys(("powershell", "pwsh"), powershell),
}

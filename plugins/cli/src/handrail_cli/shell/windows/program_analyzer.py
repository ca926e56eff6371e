"""Judges programs by their name and words, for both dialects: those of Windows by data, those of every system as bash's judge does."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace

from handrail_cli.shell.windows import program_table as data
from handrail_cli.shell.windows.findings import FindingGrade, LineEvaluation
from handrail_cli.shell.windows.path_effects import (
    is_system_program,
    note_fetched_run,
    note_found_read,
    note_read,
    note_run,
    note_write,
    resolve_path,
)
from handrail_cli.shell.windows.portable_programs import judge_as_bash, judge_portable_program, note_catastrophes
from handrail_cli.shell.windows.program_call import (
    CallWord,
    ProgramCall,
    StdinContent,
    check_words,
    get_base_name,
    note_foreign_code,
    note_part,
)
from handrail_cli.shell.windows.program_table import ReadOnlyProgram
from handrail_cli.shell.windows.shell_calls import DASHES, judge_cmd_call, judge_powershell_call

# The marks of what a program prints of which nothing else is known.
FILE_MARKS = frozenset(("file",))
SCRIPT_FILE = re.compile(
    r"\.(ps1|psm1|bat|cmd|vbs|vbe|js|jse|wsf|hta|msi|lnk|reg|cpl|scr|pif|py|pl|rb|sh)$", re.IGNORECASE
)


def judge_program(case: LineEvaluation, call: ProgramCall) -> frozenset[str]:
    """Note what running a program amounts to; the marks of what it prints."""
    before = len(case.touches)
    if call.stdin is None and case.stdin is not None:
        call = replace(call, stdin=StdinContent(case.stdin))
    place = _get_path(case, call)
    if place is not None and not _check_program_path(case, call, place):
        note_part(case, call, before)
        return FILE_MARKS
    name = get_base_name(call.name)
    case.touch("execute", name)
    marks = _judge_known_program(case, call, name)
    if marks is None:
        if not case.windows:
            return judge_as_bash(case, call, before)
        if name in data.RUNS_ANYTHING:
            _judge_code_runner(case, call)
        elif name in data.DANGEROUS_PROGRAMS:
            case.add(FindingGrade.DANGEROUS, *data.DANGEROUS_PROGRAMS[name], call.span)
        elif (marks := judge_portable_program(case, replace(call, name=name), before)) is not None:
            return marks
        else:
            case.add(FindingGrade.UNKNOWN, "unknown_program", f"{call.name!r} is not known to only read", call.span)
        check_words(case, call)
        marks = FILE_MARKS
    note_part(case, call, before)
    return marks


def _judge_known_program(case: LineEvaluation, call: ProgramCall, name: str) -> frozenset[str] | None:
    """Return the marks of a program's output if this specific program has its own handler; else None."""
    helping = len(call.words) == 1 and call.words[0].text in ("/?", "-?", "--help", "--version", "/help", "-h")
    handler = PROGRAM_HANDLERS.get(name) if case.windows else UNIX_HANDLERS.get(name)
    if handler is not None and not (helping and name not in SHELLS):
        return handler(case, replace(call, name=name)) or frozenset()
    if case.windows and name not in data.KNOWN_PROGRAMS and _is_local_program(case, call, name):
        return frozenset()
    if helping and (name in data.KNOWN_PROGRAMS or name in PROGRAM_HANDLERS):
        return frozenset()
    if case.windows and (reader := data.READERS.get(name)) is not None:
        return judge_reader(case, call, reader)
    return None


def _get_path(case: LineEvaluation, call: ProgramCall) -> str | None:
    return call.name if re.search(r"[\\/]", call.name) else None


def _check_program_path(case: LineEvaluation, call: ProgramCall, text: str) -> bool:
    """Return True if a program named by its path is one of the system's, which its name identifies."""
    found = resolve_path(case, text)
    if found is not None and found.refused is None and found.doubtful is None and is_system_program(case, found.path):
        return True
    if case.windows or not text.startswith("/"):
        note_run(case, text, call.span)
        check_words(case, call)
        return False
    return True


def _is_local_program(case: LineEvaluation, call: ProgramCall, name: str) -> bool:
    """Return True if a bare name is a script, or a file that was fetched or written before it is run by its name."""
    found = resolve_path(case, call.name)
    if found is not None:
        known = {f"{found.real.lower()}{ending}" for ending in ("", ".exe", ".bat", ".cmd", ".com", ".ps1")}
        if known & (case.fetched | case.written):
            note_run(case, next(iter(known & (case.fetched | case.written))), call.span)
            return True
    if SCRIPT_FILE.search(call.name):
        note_run(case, call.name, call.span)
        check_words(case, call)
        return True
    return False


# -- programs of Windows that read


def judge_reader(case: LineEvaluation, call: ProgramCall, reader: ReadOnlyProgram) -> frozenset[str]:
    """Note what a program amounts to of which the options that only read are known."""
    marks = FILE_MARKS
    loose: list[CallWord] = []
    waiting = list(call.words)
    while waiting:
        word = waiting.pop(0)
        text = word.text
        if text is None:
            case.add(FindingGrade.UNKNOWN, "unresolved", "one of its words is not known", call.span)
            loose.append(word)
        elif text[:1] in DASHES and text[1:] and (not text.startswith("/") or "/" not in text[1:] or ":" in text):
            _judge_reader_option(case, call, reader, text[1:], waiting)
        elif text.startswith("/") and text[1:]:
            for option in text[1:].split("/"):
                _judge_reader_option(case, call, reader, option, waiting)
        else:
            loose.append(word)
    if reader.words == "none" and loose:
        case.add(FindingGrade.UNKNOWN, "unknown_option", f"{call.name} has a word that is not known", call.span)
    files = loose[1:] if reader.words == "pattern" and not _has_pattern_option(call) else loose
    if reader.words in ("read", "list", "pattern"):
        for word in files:
            if word.text is not None:
                before = len(case.found)
                recursive = reader.words == "pattern" and any(
                    re.fullmatch(r"[/-][a-z/]*s[a-z/]*", w) for w in call.lowered
                )
                note_read(case, word.text, word.span, recursive=recursive, listing=reader.words == "list")
                if any(reason.code == "secret" for _, reason in list(case.found)[before:]):
                    marks |= {"secret"}
    return marks


def _has_pattern_option(call: ProgramCall) -> bool:
    return any(re.match(r"[/-][cg]:", word) for word in call.lowered)


def _judge_reader_option(
    case: LineEvaluation, call: ProgramCall, reader: ReadOnlyProgram, option: str, waiting: list[CallWord]
) -> None:
    name, colon, value = option.lower().partition(":")
    if name in reader.remote:
        case.add(FindingGrade.DANGEROUS, "remoting", f"{call.name} asks another machine", call.span)
    elif (kind := reader.options.get(name)) is not None:
        if kind == "":
            return
        given = (
            CallWord(value, option.partition(":")[2]) if colon else (waiting.pop(0) if waiting else CallWord("", ""))
        )
        if kind in ("r", "l") and given.text:
            note_read(case, given.text, call.span)
            if kind == "l":
                note_found_read(case, call.span)
        elif kind == "w" and given.text:
            note_write(case, given.text, call.span)
        elif given.text is None:
            case.add(FindingGrade.UNKNOWN, "unresolved", "one of its words is not known", call.span)
    elif (
        (reader.cluster and all(letter in reader.options and not reader.options[letter] for letter in name))
        or re.fullmatch(r"[+-]?\d+", name)
        or name == "?"
    ):
        return
    else:
        case.add(
            FindingGrade.UNKNOWN,
            "unknown_option",
            f"{call.name} has an option that is not known: {option!r}",
            call.span,
        )


def _judge_code_runner(case: LineEvaluation, call: ProgramCall) -> None:
    """Judge programs of Windows that run what they are given, or fetch it."""
    case.executes = True
    note_catastrophes(case, replace(call, name=get_base_name(call.name)))
    note_foreign_code(case, call)
    for word in call.words:
        note_fetched_run(case, re.sub(r"^/\w+:|,.*$", "", word.guess), call.span)
    case.add(FindingGrade.DANGEROUS, "runs_anything", f"{get_base_name(call.name)} runs what it is given", call.span)


def _judge_by_rule(case: LineEvaluation, call: ProgramCall) -> frozenset[str]:
    # Imported here, as some of the rules judge another program in their turn.
    from handrail_cli.shell.windows.program_rules import judge_by_rule

    return judge_by_rule(case, call)


SHELLS = frozenset(("powershell", "pwsh", "cmd", "powershell_ise"))
PROGRAM_HANDLERS: Mapping[str, Callable[[LineEvaluation, ProgramCall], frozenset[str] | None]] = {
    **dict.fromkeys(("powershell", "pwsh", "powershell_ise"), judge_powershell_call),
    "cmd": judge_cmd_call,
    **dict.fromkeys(data.RULED_PROGRAMS, _judge_by_rule),
}
UNIX_HANDLERS: Mapping[str, Callable[[LineEvaluation, ProgramCall], frozenset[str] | None]] = {
    **dict.fromkeys(("powershell", "pwsh"), judge_powershell_call),
}

"""Programs of Windows that fetch, install or run what their words name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from handrail.net import urls
from handrail_cli.shell.windows.findings import FindingGrade, LineEvaluation
from handrail_cli.shell.windows.path_effects import is_in_workspace, note_fetched_run, note_read, note_run, note_write
from handrail_cli.shell.windows.program_analyzer import judge_program
from handrail_cli.shell.windows.program_call import (
    ADDRESS,
    CallWord,
    OutputMarks,
    ProgramCall,
    ProgramRule,
    find_host,
    judge_nested_text,
    note_dangerous,
    note_foreign_code,
)


def _note_fetched_file(case: LineEvaluation, call: ProgramCall, at: int) -> None:
    """Note the file that a program brings, which its words name from `at` on, behind the address."""
    words = call.words
    for number, word in enumerate(words):
        if ADDRESS.match(word.guess):
            case.touch("network", urls.find_url_place(word.text or ""))
            target = next((other for other in words[number + 1 :] if not re.match(r"[/-]\w", other.guess)), None)
            name = target.guess if target is not None else re.split(r"[/?#]", word.guess.rstrip("/"))[-1]
            note_write(case, name, call.span, fetched=True)
            return


def _judge_certutil(case: LineEvaluation, call: ProgramCall) -> OutputMarks:
    words = call.lowered
    flags = [word.lstrip("-/") for word in words if word[:1] in "-/"]
    if flags and flags[0] in ("hashfile", "?"):
        for word in call.loose()[:1]:
            note_read(case, word.guess, word.span)
        return None
    if any(ADDRESS.match(word) for word in words):
        _note_fetched_file(case, call, 1)
        note_dangerous(case, call, "network", "it fetches a file by a program that is not made for it")
        return frozenset(("network",))
    if {"encode", "encodehex", "decode", "decodehex"} & set(flags):
        files = call.loose()
        for word, judge_place in zip(files, (note_read, note_write), strict=False):
            judge_place(case, word.guess, word.span)
    note_dangerous(case, call, "runs_anything", "it changes certificates, or makes programs out of text")
    return None


def _judge_bitsadmin(case: LineEvaluation, call: ProgramCall) -> OutputMarks:
    if call.lowered[:1] in (["/list"], ["/info"], ["/rawreturn"]) or not call.words:
        return None
    _note_fetched_file(case, call, 1)
    note_dangerous(case, call, "network", "it fetches files, or runs programs, behind one's back")
    return frozenset(("network",))


def _judge_mshta(case: LineEvaluation, call: ProgramCall) -> OutputMarks:
    case.executes = True
    note_foreign_code(case, call, shares=True)
    for word in call.words:
        note_run(case, word.guess, word.span, direct=False)
    note_dangerous(case, call, "runs_anything", "mshta runs what it is given")
    return None


def _judge_msiexec(case: LineEvaluation, call: ProgramCall) -> OutputMarks:
    text = " ".join(call.lowered)
    if ADDRESS.search(text):
        case.touch("network", find_host(text))
        case.add(
            FindingGrade.CATASTROPHIC, "network_code", "it installs a program straight from the network", call.span
        )
    note_dangerous(case, call, "installs", "it installs or removes programs")
    for word in call.loose():
        note_fetched_run(case, word.guess, call.span)
    return None


def _judge_package_manager(case: LineEvaluation, call: ProgramCall) -> OutputMarks:
    words = call.lowered
    showing = (
        "list",
        "search",
        "show",
        "info",
        "outdated",
        "status",
        "which",
        "prefix",
        "cat",
        "find",
        "features",
        "--info",
        "-v",
        "--version",
        "ls",
        "help",
        "pin_",
    )
    case.touch("network", "")
    if not words or words[0] in showing:
        case.add(FindingGrade.EFFECT, "network", "it asks a list of packages on the network", call.span)
    else:
        note_dangerous(case, call, "installs", "it installs or removes programs")
    return None


def _judge_network_query(case: LineEvaluation, call: ProgramCall) -> OutputMarks:
    loose = call.loose()
    if call.name == "route":
        if call.lowered[:1] not in (["print"], []):
            note_dangerous(case, call, "network_settings", "it changes the network")
        return None
    case.touch("network", loose[0].guess if loose else "")
    case.add(FindingGrade.EFFECT, "network", "it reaches out over the network", call.span)
    return None


def _judge_forfiles(case: LineEvaluation, call: ProgramCall) -> OutputMarks:
    """Judge forfiles, which runs its command for each file: the directory and pattern represent each file."""
    given: dict[str, str] = {}
    waiting = list(call.words)
    while waiting:
        word = waiting.pop(0)
        name = word.guess.lower().lstrip("/-")
        if name in ("p", "m", "c", "d") and waiting:
            given[name] = waiting.pop(0).guess
        elif name == "s":
            given["s"] = ""
    folder, pattern = given.get("p", "."), given.get("m", "*")
    place = f"{folder}\\{pattern}"
    command = given.get("c", 'cmd /c echo "@file"')
    note_read(case, folder, call.span, listing=True)
    for name, value in (("@path", place), ("@file", place), ("@relpath", place), ("@fname", place)):
        command = re.sub(f'"?{name}"?', lambda match, value=value: value, command, flags=re.IGNORECASE)
    command = re.sub(r"0x([0-9a-f]{2})", lambda match: chr(int(match[1], 16)), command, flags=re.IGNORECASE)
    judge_nested_text(case, "cmd", command)
    case.add(
        FindingGrade.DANGEROUS if "c" in given and not is_in_workspace(case, folder) else FindingGrade.EFFECT,
        "runs_each",
        "it runs a command for each file",
        call.span,
    )
    return None


def _judge_launcher(case: LineEvaluation, call: ProgramCall) -> OutputMarks:
    """Judge psexec, winrs, runas, conhost, pcalua and wsl: running a command with them requires approval.

    The command itself is judged as well.
    """
    code = (
        "privilege"
        if call.name == "runas"
        else "remoting"
        if call.name in ("psexec", "psexec64", "winrs")
        else "runs_anything"
    )
    note_dangerous(
        case, call, code, f"{call.name} runs a program with another's power, elsewhere, or behind one's back"
    )
    loose = [word for word in call.words if not re.match(r"[-/]\w|\\\\", word.guess)]
    if loose and call.name != "wsl":
        name, *rest = loose[0].guess.split() or [""]
        words = (*(CallWord(text, text) for text in rest), *call.words[call.words.index(loose[0]) + 1 :])
        if name:
            judge_program(case, replace(call, name=name, words=words, raw=None))
    return None


def _judge_explorer(case: LineEvaluation, call: ProgramCall) -> OutputMarks:
    if any(re.search(r"\.(exe|bat|cmd|lnk|vbs|js|hta|url|scr)$", word) or ADDRESS.match(word) for word in call.lowered):
        note_dangerous(case, call, "opens", "it opens a file with whatever program is set for it")
    case.add(FindingGrade.UNKNOWN, "opens", "it opens a window", call.span)
    return None


RULES: Mapping[str, ProgramRule] = {
    "certutil": _judge_certutil,
    "bitsadmin": _judge_bitsadmin,
    "mshta": _judge_mshta,
    "msiexec": _judge_msiexec,
    **dict.fromkeys(("winget", "choco", "scoop"), _judge_package_manager),
    **dict.fromkeys(("ping", "tracert", "nslookup", "route"), _judge_network_query),
    "forfiles": _judge_forfiles,
    **dict.fromkeys(("psexec", "psexec64", "winrs", "runas", "conhost", "pcalua", "wsl"), _judge_launcher),
    "explorer": _judge_explorer,
}

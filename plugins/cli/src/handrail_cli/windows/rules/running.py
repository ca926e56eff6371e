"""Programs of Windows that fetch, install or run what their words name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from handrail.net import urls
from handrail_cli.windows.calls import ADDRESS, Call, Marks, Rule, Word, dangerous, host_of, nested, runs_foreign_code
from handrail_cli.windows.findings import Case, Grade
from handrail_cli.windows.places import reads, runs, runs_fetched, within, writes
from handrail_cli.windows.programs import program


def _fetches(case: Case, call: Call, at: int) -> None:
    """Note the file that a program brings, which its words name from `at` on, behind the address."""
    words = call.words
    for number, word in enumerate(words):
        if ADDRESS.match(word.guess):
            case.touch("network", urls.place(word.text or ""))
            target = next((other for other in words[number + 1 :] if not re.match(r"[/-]\w", other.guess)), None)
            name = target.guess if target is not None else re.split(r"[/?#]", word.guess.rstrip("/"))[-1]
            writes(case, name, call.span, fetched=True)
            return


def _certutil(case: Case, call: Call) -> Marks:
    words = call.lowered
    flags = [word.lstrip("-/") for word in words if word[:1] in "-/"]
    if flags and flags[0] in ("hashfile", "?"):
        for word in call.loose()[:1]:
            reads(case, word.guess, word.span)
        return None
    if any(ADDRESS.match(word) for word in words):
        _fetches(case, call, 1)
        dangerous(case, call, "network", "it fetches a file by a program that is not made for it")
        return frozenset(("network",))
    if {"encode", "encodehex", "decode", "decodehex"} & set(flags):
        files = call.loose()
        for word, judge_place in zip(files, (reads, writes), strict=False):
            judge_place(case, word.guess, word.span)
    dangerous(case, call, "runs_anything", "it changes certificates, or makes programs out of text")
    return None


def _bitsadmin(case: Case, call: Call) -> Marks:
    if call.lowered[:1] in (["/list"], ["/info"], ["/rawreturn"]) or not call.words:
        return None
    _fetches(case, call, 1)
    dangerous(case, call, "network", "it fetches files, or runs programs, behind one's back")
    return frozenset(("network",))


def _mshta(case: Case, call: Call) -> Marks:
    case.executes = True
    runs_foreign_code(case, call, shares=True)
    for word in call.words:
        runs(case, word.guess, word.span, direct=False)
    dangerous(case, call, "runs_anything", "mshta runs what it is given")
    return None


def _msiexec(case: Case, call: Call) -> Marks:
    text = " ".join(call.lowered)
    if ADDRESS.search(text):
        case.touch("network", host_of(text))
        case.add(Grade.CATASTROPHIC, "network_code", "it installs a program straight from the network", call.span)
    dangerous(case, call, "installs", "it installs or removes programs")
    for word in call.loose():
        runs_fetched(case, word.guess, call.span)
    return None


def _packages(case: Case, call: Call) -> Marks:
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
        case.add(Grade.EFFECT, "network", "it asks a list of packages on the network", call.span)
    else:
        dangerous(case, call, "installs", "it installs or removes programs")
    return None


def _asks_network(case: Case, call: Call) -> Marks:
    loose = call.loose()
    if call.name == "route":
        if call.lowered[:1] not in (["print"], []):
            dangerous(case, call, "network_settings", "it changes the network")
        return None
    case.touch("network", loose[0].guess if loose else "")
    case.add(Grade.EFFECT, "network", "it reaches out over the network", call.span)
    return None


def _forfiles(case: Case, call: Call) -> Marks:
    """Forfiles runs its command for each file: the place and pattern stand for each."""
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
    reads(case, folder, call.span, listing=True)
    for name, value in (("@path", place), ("@file", place), ("@relpath", place), ("@fname", place)):
        command = re.sub(f'"?{name}"?', lambda match, value=value: value, command, flags=re.IGNORECASE)
    command = re.sub(r"0x([0-9a-f]{2})", lambda match: chr(int(match[1], 16)), command, flags=re.IGNORECASE)
    nested(case, "cmd", command)
    case.add(
        Grade.DANGEROUS if "c" in given and not within(case, folder) else Grade.EFFECT,
        "runs_each",
        "it runs a command for each file",
        call.span,
    )
    return None


def _elsewhere(case: Case, call: Call) -> Marks:
    """psexec, winrs, runas, conhost, pcalua, wsl: what they run is judged, and that they run it must be seen."""
    code = (
        "privilege"
        if call.name == "runas"
        else "remoting"
        if call.name in ("psexec", "psexec64", "winrs")
        else "runs_anything"
    )
    dangerous(case, call, code, f"{call.name} runs a program with another's power, elsewhere, or behind one's back")
    loose = [word for word in call.words if not re.match(r"[-/]\w|\\\\", word.guess)]
    if loose and call.name != "wsl":
        name, *rest = loose[0].guess.split() or [""]
        words = (*(Word(text, text) for text in rest), *call.words[call.words.index(loose[0]) + 1 :])
        if name:
            program(case, replace(call, name=name, words=words, raw=None))
    return None


def _explorer(case: Case, call: Call) -> Marks:
    if any(re.search(r"\.(exe|bat|cmd|lnk|vbs|js|hta|url|scr)$", word) or ADDRESS.match(word) for word in call.lowered):
        dangerous(case, call, "opens", "it opens a file with whatever program is set for it")
    case.add(Grade.UNKNOWN, "opens", "it opens a window", call.span)
    return None


RULES: Mapping[str, Rule] = {
    "certutil": _certutil,
    "bitsadmin": _bitsadmin,
    "mshta": _mshta,
    "msiexec": _msiexec,
    **dict.fromkeys(("winget", "choco", "scoop"), _packages),
    **dict.fromkeys(("ping", "tracert", "nslookup", "route"), _asks_network),
    "forfiles": _forfiles,
    **dict.fromkeys(("psexec", "psexec64", "winrs", "runas", "conhost", "pcalua", "wsl"), _elsewhere),
    "explorer": _explorer,
}

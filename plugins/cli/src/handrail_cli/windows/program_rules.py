"""Programs of Windows that need more than a list of options: what each of their words does."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace

from handrail.files import paths
from handrail.net import urls
from handrail_cli.windows.calls import ADDRESS, UNC, Call, Word, host_of, nested
from handrail_cli.windows.findings import Case, Grade
from handrail_cli.windows.places import REGISTRY, deletes, fatal, reads, resolved, runs, writes
from handrail_cli.windows.programs import program

Marks = frozenset[str] | None
HIVES = {
    "hkey_local_machine": "hklm", "hkey_current_user": "hkcu", "hkey_classes_root": "hkcr", "hkey_users": "hku", "hkey_current_config": "hkcc",
}  # fmt: skip


def judge(case: Case, call: Call) -> frozenset[str]:
    """Note what a program amounts to that has a rule of its own; the marks of what it prints."""
    if any(word.text is None for word in call.words):
        case.add(Grade.DANGEROUS, "unresolved", "one of its words is not known", call.span)
    return RULES[call.name](case, call) or frozenset(("file",))


def _dangerous(case: Case, call: Call, code: str, text: str) -> None:
    case.add(Grade.DANGEROUS, code, text, call.span)


def _options(call: Call) -> list[str]:
    """The options, in lower case and without their mark, glued ones apart."""
    found: list[str] = []
    for word in call.lowered:
        if word.startswith("/"):
            found.extend(part for part in word.split("/") if part)
        elif word.startswith("-") and len(word) > 1:
            found.append(word.lstrip("-"))
    return found


def _loose(call: Call) -> list[Word]:
    return [
        word
        for word in call.words
        if not word.guess.startswith("/") and not (word.guess.startswith("-") and len(word.guess) > 1)
    ]


def _reg(case: Case, call: Call) -> Marks:
    words = call.lowered
    verb, key = (words[0] if words else ""), (call.words[1].guess if len(words) > 1 else "")
    if key.startswith("\\\\"):
        _dangerous(case, call, "remoting", "it reaches for the registry of another machine")
    root, _, rest = key.partition("\\")
    place = f"{HIVES.get(root.lower(), root.lower())}:\\{rest}"
    if root.lower() not in HIVES and root.lower() not in REGISTRY:
        place = "hklm:\\"
    match verb:
        case "query" | "compare":
            if {"s", "p", "u"} & {"p", "u"} & set(_options(call)):
                _dangerous(case, call, "secret", "it asks with another's password")
            if "s" in _options(call) and any(re.search(r"passw|secret|cred", word) for word in words):
                _dangerous(case, call, "secret", "it searches the registry for passwords")
            reads(case, place, call.span)
        case "delete":
            deletes(case, place, call.span, recursive=True)
        case "export" | "save":
            reads(case, place, call.span)
            if verb == "save":
                _dangerous(case, call, "secret", "it copies a part of the registry that may keep passwords")
            if len(call.words) > 2:
                writes(case, call.words[2].guess, call.span)
        case "" | "/?":
            pass
        case _:
            writes(case, place, call.span)
    return None


def _sc(case: Case, call: Call) -> Marks:
    words = call.lowered
    if words and words[0].startswith("\\\\"):
        _dangerous(case, call, "remoting", "it acts on another machine")
        words = words[1:]
    reading = (
        "query",
        "queryex",
        "qc",
        "qdescription",
        "qfailure",
        "qtriggerinfo",
        "qprivs",
        "qsidtype",
        "getdisplayname",
        "getkeyname",
        "enumdepend",
        "sdshow",
        "showsid",
        "qprotection",
    )
    if words and words[0] not in reading:
        _dangerous(case, call, "service", "it changes a service of the system")
    return None


def _schtasks(case: Case, call: Call) -> Marks:
    options = _options(call)
    if "s" in options:
        _dangerous(case, call, "remoting", "it acts on another machine")
    if (options and "query" not in options) or {"create", "delete", "change", "run", "end"} & set(options):
        _dangerous(case, call, "persistence", "it changes what runs later, unasked")
    return None


def _wmic(case: Case, call: Call) -> Marks:
    text = " ".join(call.lowered)
    words = text.replace("=", " ").split()
    if match := re.search(r"/format:\s*\"?([^\s\"]+)", text):
        if ADDRESS.search(match[1]) or match[1].startswith("\\\\"):
            case.add(Grade.CATASTROPHIC, "network_code", "it runs code straight from the network", call.span)
        elif match[1] not in (
            "list",
            "csv",
            "table",
            "value",
            "hform",
            "htable",
            "mof",
            "rawxml",
            "xml",
            "textvaluelist",
        ):
            _dangerous(case, call, "runs_anything", "it runs the code in a style sheet")
    if re.search(r"/(node|user|password|output|append|record)\b", text):
        _dangerous(case, call, "remoting", "it reaches for another machine, or writes a file")
    acts = {"call", "delete", "create", "set", "assoc"} & set(words)
    if acts and re.search(r"shadow(copy|storage|context|volume)", text):
        case.add(Grade.CATASTROPHIC, "deletes_backups", "it deletes what could bring files back", call.span)
    elif acts:
        case.executes = True
        _dangerous(case, call, "runs_anything", "it changes the system or runs programs")
    elif not words:
        _dangerous(case, call, "starts_shell", "it waits for commands of its own")
    return None


NET = {
    **dict.fromkeys(("start", "stop", "pause", "continue"), ("service", "it changes a service of the system")),
    **dict.fromkeys(("user", "localgroup", "group", "accounts"), ("users", "it changes users or groups")),
    **dict.fromkeys(
        ("use", "view", "session", "share", "file", "computer"),
        ("remoting", "it shares with, or reaches for, another machine"),
    ),
}


def _net(case: Case, call: Call) -> Marks:
    words = call.lowered
    if not words:
        return None
    sub, rest = words[0], words[1:]
    showing = {"user": 1, "localgroup": 1, "group": 1, "accounts": 0, "share": 1, "use": 0, "view": 0, "session": 0, "start": 0, "statistics": 1,
    "config": 1,
               "help": 1, "helpmsg": 1, "file": 0, "time": 0, "localgroups": 0}  # fmt: skip
    if (
        sub in showing
        and len(rest) <= showing[sub]
        and not any(word.startswith(("/", "\\\\")) or word == "*" or "=" in word for word in rest)
    ):
        return None
    code, text = NET.get(sub, ("system", "it changes the system"))
    _dangerous(case, call, code, text)
    return None


def _netsh(case: Case, call: Call) -> Marks:
    words = call.lowered
    if any(re.match(r"[-/][frucp]$", word) for word in words) or not words:
        _dangerous(case, call, "runs_anything", "it reads commands of its own, or acts elsewhere")
    elif "key=clear" in words:
        _dangerous(case, call, "secret", "it shows passwords")
    elif "show" not in words or {
        "add",
        "delete",
        "set",
        "reset",
        "import",
        "export",
        "start",
        "dump",
        "exec",
        "trace",
    } & set(words):
        code = "firewall" if "firewall" in words or "advfirewall" in words else "network_settings"
        _dangerous(case, call, code, "it changes the network or its protection")
    return None


def _ends(case: Case, call: Call) -> Marks:
    if call.name == "shutdown" and not call.words:
        return None
    _dangerous(case, call, "ends", "it ends programs or the system")
    return None


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
        for word in _loose(call)[:1]:
            reads(case, word.guess, word.span)
        return None
    if any(ADDRESS.match(word) for word in words):
        _fetches(case, call, 1)
        _dangerous(case, call, "network", "it fetches a file by a program that is not made for it")
        return frozenset(("network",))
    if {"encode", "encodehex", "decode", "decodehex"} & set(flags):
        files = _loose(call)
        for word, judge_place in zip(files, (reads, writes), strict=False):
            judge_place(case, word.guess, word.span)
    _dangerous(case, call, "runs_anything", "it changes certificates, or makes programs out of text")
    return None


def _bitsadmin(case: Case, call: Call) -> Marks:
    if call.lowered[:1] in (["/list"], ["/info"], ["/rawreturn"]) or not call.words:
        return None
    _fetches(case, call, 1)
    _dangerous(case, call, "network", "it fetches files, or runs programs, behind one's back")
    return frozenset(("network",))


def _mshta(case: Case, call: Call) -> Marks:
    text = " ".join(call.lowered)
    case.executes = True
    if ADDRESS.search(text) or re.search(r"(java|vb)script:", text) or UNC.search(text):
        case.touch("network", host_of(text))
        case.add(
            Grade.CATASTROPHIC,
            "network_code",
            "it runs code straight from the network, or from its own words",
            call.span,
        )
    for word in call.words:
        runs(case, word.guess, word.span, direct=False)
    _dangerous(case, call, "runs_anything", "mshta runs what it is given")
    return None


def _msiexec(case: Case, call: Call) -> Marks:
    text = " ".join(call.lowered)
    if ADDRESS.search(text):
        case.touch("network", host_of(text))
        case.add(Grade.CATASTROPHIC, "network_code", "it installs a program straight from the network", call.span)
    _dangerous(case, call, "installs", "it installs or removes programs")
    for word in _loose(call):
        found = resolved(case, word.guess) if word.guess else None
        if found is not None and found.real.lower() in case.fetched:
            case.add(
                Grade.CATASTROPHIC,
                "network_code",
                "it runs a file that it has just fetched from the network",
                call.span,
            )
    return None


def _backups(case: Case, call: Call) -> Marks:
    words = call.lowered
    if words[:1] in (["list"], ["get"], ["query"]) or words[:1] == ["/?"]:
        return None
    if words[:1] in (["delete"], ["resize"], ["disable"]):
        case.add(Grade.CATASTROPHIC, "deletes_backups", "it deletes what could bring files back", call.span)
    else:
        _dangerous(case, call, "system", "it changes backups")
    return None


def _diskshadow(case: Case, call: Call) -> Marks:
    if call.stdin is not None and re.search(r"\bdelete\b", call.stdin.text or "", re.IGNORECASE):
        case.add(Grade.CATASTROPHIC, "deletes_backups", "it deletes what could bring files back", call.span)
    _dangerous(case, call, "runs_anything", "it runs commands of its own")
    return None


def _bcdedit(case: Case, call: Call) -> Marks:
    if call.words and call.lowered[0] not in ("/enum", "/v", "/?"):
        _dangerous(case, call, "boot", "it changes how the system starts")
    return None


def _diskpart(case: Case, call: Call) -> Marks:
    text = call.stdin.text if call.stdin is not None else ""
    if text is not None and re.search(r"\b(clean|format|delete|convert|create|remove)\b", text, re.IGNORECASE):
        case.add(Grade.CATASTROPHIC, "overwrites_device", "it destroys what is on a disk or volume", call.span)
    _dangerous(case, call, "overwrites_device", "it changes disks and volumes")
    return None


def _format(case: Case, call: Call) -> Marks:
    if any(re.match(r"[a-z]:|\\\\[.?]\\", word) for word in call.lowered):
        case.add(Grade.CATASTROPHIC, "overwrites_device", "it destroys what is on a disk or volume", call.span)
    else:
        _dangerous(case, call, "overwrites_device", "it formats a disk or volume")
    return None


def _fsutil(case: Case, call: Call) -> Marks:
    words = call.lowered
    second = words[1] if len(words) > 1 else ""
    if not words or words[0] == "fsinfo" or re.match(r"(query|list|info|diskfree|find)", second):
        return None
    _dangerous(case, call, "tamper", "it changes a file system or its records")
    return None


def _wevtutil(case: Case, call: Call) -> Marks:
    reading = (
        "el",
        "enum-logs",
        "gl",
        "get-log",
        "qe",
        "query-events",
        "gli",
        "get-log-info",
        "ep",
        "enum-publishers",
        "gp",
        "get-publisher",
    )
    if call.words and (
        call.lowered[0] not in reading or {"r", "remote"} & {option.partition(":")[0] for option in _options(call)}
    ):
        _dangerous(case, call, "history", "it destroys records, or reads those of another machine")
    return None


def _auditpol(case: Case, call: Call) -> Marks:
    if call.words and _options(call)[:1] not in (["get"], ["list"]):
        _dangerous(case, call, "history", "it changes what is recorded")
    return None


def _permissions(case: Case, call: Call) -> Marks:
    options = {option.partition(":")[0] for option in _options(call)}
    loose = _loose(call)
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
    _dangerous(case, call, "permissions", "it changes who may do what")
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
            _dangerous(case, call, "bulk", "it changes all that is there")
    return None


def _copies(case: Case, call: Call) -> Marks:
    """robocopy, xcopy, expand, makecab: from the first word to the last that names a place."""
    loose = _loose(call)
    options = {option.partition(":")[0] for option in _options(call)}
    if {"job", "save", "unilog", "log", "log+", "unilog+", "if", "f"} & options and call.name == "robocopy":
        _dangerous(case, call, "option", "it reads its options from, or writes to, another file")
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


def _sdelete(case: Case, call: Call) -> Marks:
    for word in _loose(call):
        deletes(case, word.text, word.span, guess=word.guess, recursive=True)
    _dangerous(case, call, "shreds", "what it deletes cannot be brought back")
    return None


def _setx(case: Case, call: Call) -> Marks:
    _dangerous(case, call, "persistence", "it sets a variable for all that runs later")
    return None


def _subst(case: Case, call: Call) -> Marks:
    if call.words:
        _dangerous(case, call, "system", "it gives a folder the name of a drive")
    return None


def _clip(case: Case, call: Call) -> Marks:
    case.add(Grade.EFFECT, "clipboard", "it changes your clipboard", call.span)
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
        Grade.DANGEROUS if "c" in given and not _inside(case, folder) else Grade.EFFECT,
        "runs_each",
        "it runs a command for each file",
        call.span,
    )
    return None


def _inside(case: Case, text: str) -> bool:
    found = resolved(case, text)
    return found is not None and found.refused is None and paths.inside(found.path, case.judging.workspace)


def _elsewhere(case: Case, call: Call) -> Marks:
    """psexec, winrs, runas, conhost, pcalua, wsl: what they run is judged, and that they run it must be seen."""
    code = (
        "privilege"
        if call.name == "runas"
        else "remoting"
        if call.name in ("psexec", "psexec64", "winrs")
        else "runs_anything"
    )
    _dangerous(case, call, code, f"{call.name} runs a program with another's power, elsewhere, or behind one's back")
    loose = [word for word in call.words if not re.match(r"[-/]\w|\\\\", word.guess)]
    if loose and call.name != "wsl":
        name, *rest = loose[0].guess.split() or [""]
        words = (*(Word(text, text) for text in rest), *call.words[call.words.index(loose[0]) + 1 :])
        if name:
            program(case, replace(call, name=name, words=words, raw=None))
    return None


def _power(case: Case, call: Call) -> Marks:
    reading = (
        "l",
        "list",
        "q",
        "query",
        "a",
        "availablesleepstates",
        "getactivescheme",
        "lastwake",
        "requests",
        "devicequery",
        "waketimers",
        "qh",
        "aliases",
        "?",
    )
    if call.words and (not _options(call) or _options(call)[0] not in reading):
        _dangerous(case, call, "system", "it changes the system")
    return None


def _cipher(case: Case, call: Call) -> Marks:
    if not any(re.match(r"[/-]", word) for word in call.lowered):
        for word in call.words:
            reads(case, word.guess, word.span)
        return None
    _dangerous(case, call, "shreds", "it encrypts files, or destroys what could bring deleted ones back")
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
        _dangerous(case, call, "installs", "it installs or removes programs")
    return None


def _asks_network(case: Case, call: Call) -> Marks:
    loose = _loose(call)
    if call.name == "route":
        if call.lowered[:1] not in (["print"], []):
            _dangerous(case, call, "network_settings", "it changes the network")
        return None
    case.touch("network", loose[0].guess if loose else "")
    case.add(Grade.EFFECT, "network", "it reaches out over the network", call.span)
    return None


def _link(case: Case, call: Call) -> Marks:
    loose = _loose(call)
    for word in loose[:1]:
        writes(case, word.guess, word.span)
    for word in loose[1:2]:
        reads(case, word.guess, word.span)
        if not _inside(case, word.guess):
            _dangerous(case, call, "link_out", "it makes a link that leaves the workspace")
    return None


def _disk(case: Case, call: Call) -> Marks:
    options = _options(call)
    if call.name == "chkdsk" and not options:
        return None
    if call.name == "dism" and any(
        option.startswith("get-") or option.endswith(("checkhealth", "scanhealth")) for option in options
    ):
        return None
    _dangerous(case, call, "system", "it changes a disk or the system")
    return None


def _copies_anything(case: Case, call: Call) -> Marks:
    _dangerous(case, call, "runs_anything", f"{call.name} copies files by a way that nothing guards")
    for word in call.words:
        if re.match(r"[A-Za-z]:|\\\\", word.guess):
            reads(case, word.guess, word.span)
    return None


def _explorer(case: Case, call: Call) -> Marks:
    if any(re.search(r"\.(exe|bat|cmd|lnk|vbs|js|hta|url|scr)$", word) or ADDRESS.match(word) for word in call.lowered):
        _dangerous(case, call, "opens", "it opens a file with whatever program is set for it")
    case.add(Grade.UNKNOWN, "opens", "it opens a window", call.span)
    return None


Rule = Callable[[Case, Call], Marks]
RULES: Mapping[str, Rule] = {
    "reg": _reg,
    "sc": _sc,
    "schtasks": _schtasks,
    "wmic": _wmic,
    **dict.fromkeys(("net", "net1"), _net),
    "netsh": _netsh,
    **dict.fromkeys(("taskkill", "tskill", "shutdown"), _ends),
    "certutil": _certutil,
    "bitsadmin": _bitsadmin,
    "mshta": _mshta,
    "msiexec": _msiexec,
    **dict.fromkeys(("vssadmin", "wbadmin"), _backups),
    "diskshadow": _diskshadow,
    "bcdedit": _bcdedit,
    "diskpart": _diskpart,
    "format": _format,
    "fsutil": _fsutil,
    "wevtutil": _wevtutil,
    "auditpol": _auditpol,
    **dict.fromkeys(("icacls", "cacls", "takeown"), _permissions),
    "attrib": _attrib,
    **dict.fromkeys(("robocopy", "xcopy", "makecab", "expand", "extrac32", "replace"), _copies),
    **dict.fromkeys(("sdelete", "sdelete64"), _sdelete),
    "setx": _setx,
    "subst": _subst,
    "clip": _clip,
    "forfiles": _forfiles,
    **dict.fromkeys(("psexec", "psexec64", "winrs", "runas", "conhost", "pcalua", "wsl"), _elsewhere),
    "powercfg": _power,
    "cipher": _cipher,
    **dict.fromkeys(("winget", "choco", "scoop"), _packages),
    **dict.fromkeys(("ping", "tracert", "nslookup", "route"), _asks_network),
    "mklink": _link,
    **dict.fromkeys(("chkdsk", "dism"), _disk),
    **dict.fromkeys(("esentutl", "print"), _copies_anything),
    "explorer": _explorer,
}

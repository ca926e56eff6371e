"""Programs that administer a Windows system: its registry, services, users, network settings, disks and records."""

from __future__ import annotations

import re
from collections.abc import Mapping

from handrail_cli.shell.windows.findings import FindingGrade, LineEvaluation
from handrail_cli.shell.windows.path_effects import REGISTRY, note_delete, note_read, note_write
from handrail_cli.shell.windows.program_call import ADDRESS, OutputMarks, ProgramCall, ProgramRule, note_dangerous

HIVES = {
    "hkey_local_machine": "hklm", "hkey_current_user": "hkcu", "hkey_classes_root": "hkcr", "hkey_users": "hku", "hkey_current_config": "hkcc",
}  # fmt: skip


def _judge_reg(case: LineEvaluation, call: ProgramCall) -> OutputMarks:
    words = call.lowered
    verb, key = (words[0] if words else ""), (call.words[1].guess if len(words) > 1 else "")
    if key.startswith("\\\\"):
        note_dangerous(case, call, "remoting", "it reaches for the registry of another machine")
    root, _, rest = key.partition("\\")
    place = f"{HIVES.get(root.lower(), root.lower())}:\\{rest}"
    if root.lower() not in HIVES and root.lower() not in REGISTRY:
        place = "hklm:\\"
    match verb:
        case "query" | "compare":
            if {"s", "p", "u"} & {"p", "u"} & set(call.options()):
                note_dangerous(case, call, "secret", "it asks with another's password")
            if "s" in call.options() and any(re.search(r"passw|secret|cred", word) for word in words):
                note_dangerous(case, call, "secret", "it searches the registry for passwords")
            note_read(case, place, call.span)
        case "delete":
            note_delete(case, place, call.span, recursive=True)
        case "export" | "save":
            note_read(case, place, call.span)
            if verb == "save":
                note_dangerous(case, call, "secret", "it copies a part of the registry that may keep passwords")
            if len(call.words) > 2:
                note_write(case, call.words[2].guess, call.span)
        case "" | "/?":
            pass
        case _:
            note_write(case, place, call.span)
    return None


def _judge_sc(case: LineEvaluation, call: ProgramCall) -> OutputMarks:
    words = call.lowered
    if words and words[0].startswith("\\\\"):
        note_dangerous(case, call, "remoting", "it acts on another machine")
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
        note_dangerous(case, call, "service", "it changes a service of the system")
    return None


def _judge_schtasks(case: LineEvaluation, call: ProgramCall) -> OutputMarks:
    options = call.options()
    if "s" in options:
        note_dangerous(case, call, "remoting", "it acts on another machine")
    if (options and "query" not in options) or {"create", "delete", "change", "run", "end"} & set(options):
        note_dangerous(case, call, "persistence", "it changes what runs later, unasked")
    return None


def _judge_wmic(case: LineEvaluation, call: ProgramCall) -> OutputMarks:
    text = " ".join(call.lowered)
    words = text.replace("=", " ").split()
    if match := re.search(r"/format:\s*\"?([^\s\"]+)", text):
        if ADDRESS.search(match[1]) or match[1].startswith("\\\\"):
            case.add(FindingGrade.CATASTROPHIC, "network_code", "it runs code straight from the network", call.span)
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
            note_dangerous(case, call, "runs_anything", "it runs the code in a style sheet")
    if re.search(r"/(node|user|password|output|append|record)\b", text):
        note_dangerous(case, call, "remoting", "it reaches for another machine, or writes a file")
    acts = {"call", "delete", "create", "set", "assoc"} & set(words)
    if acts and re.search(r"shadow(copy|storage|context|volume)", text):
        case.add(FindingGrade.CATASTROPHIC, "deletes_backups", "it deletes what could bring files back", call.span)
    elif acts:
        case.executes = True
        note_dangerous(case, call, "runs_anything", "it changes the system or runs programs")
    elif not words:
        note_dangerous(case, call, "starts_shell", "it waits for commands of its own")
    return None


NET = {
    **dict.fromkeys(("start", "stop", "pause", "continue"), ("service", "it changes a service of the system")),
    **dict.fromkeys(("user", "localgroup", "group", "accounts"), ("users", "it changes users or groups")),
    **dict.fromkeys(
        ("use", "view", "session", "share", "file", "computer"),
        ("remoting", "it shares with, or reaches for, another machine"),
    ),
}


def _judge_net(case: LineEvaluation, call: ProgramCall) -> OutputMarks:
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
    note_dangerous(case, call, code, text)
    return None


def _judge_netsh(case: LineEvaluation, call: ProgramCall) -> OutputMarks:
    words = call.lowered
    if any(re.match(r"[-/][frucp]$", word) for word in words) or not words:
        note_dangerous(case, call, "runs_anything", "it reads commands of its own, or acts elsewhere")
    elif "key=clear" in words:
        note_dangerous(case, call, "secret", "it shows passwords")
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
        note_dangerous(case, call, code, "it changes the network or its protection")
    return None


def _judge_termination(case: LineEvaluation, call: ProgramCall) -> OutputMarks:
    if call.name == "shutdown" and not call.words:
        return None
    note_dangerous(case, call, "ends", "it ends programs or the system")
    return None


def _judge_backups(case: LineEvaluation, call: ProgramCall) -> OutputMarks:
    words = call.lowered
    if words[:1] in (["list"], ["get"], ["query"]) or words[:1] == ["/?"]:
        return None
    if words[:1] in (["delete"], ["resize"], ["disable"]):
        case.add(FindingGrade.CATASTROPHIC, "deletes_backups", "it deletes what could bring files back", call.span)
    else:
        note_dangerous(case, call, "system", "it changes backups")
    return None


def _judge_diskshadow(case: LineEvaluation, call: ProgramCall) -> OutputMarks:
    if call.stdin is not None and re.search(r"\bdelete\b", call.stdin.text or "", re.IGNORECASE):
        case.add(FindingGrade.CATASTROPHIC, "deletes_backups", "it deletes what could bring files back", call.span)
    note_dangerous(case, call, "runs_anything", "it runs commands of its own")
    return None


def _judge_bcdedit(case: LineEvaluation, call: ProgramCall) -> OutputMarks:
    if call.words and call.lowered[0] not in ("/enum", "/v", "/?"):
        note_dangerous(case, call, "boot", "it changes how the system starts")
    return None


def _judge_diskpart(case: LineEvaluation, call: ProgramCall) -> OutputMarks:
    text = call.stdin.text if call.stdin is not None else ""
    if text is not None and re.search(r"\b(clean|format|delete|convert|create|remove)\b", text, re.IGNORECASE):
        case.add(FindingGrade.CATASTROPHIC, "overwrites_device", "it destroys what is on a disk or volume", call.span)
    note_dangerous(case, call, "overwrites_device", "it changes disks and volumes")
    return None


def _judge_format(case: LineEvaluation, call: ProgramCall) -> OutputMarks:
    if any(re.match(r"[a-z]:|\\\\[.?]\\", word) for word in call.lowered):
        case.add(FindingGrade.CATASTROPHIC, "overwrites_device", "it destroys what is on a disk or volume", call.span)
    else:
        note_dangerous(case, call, "overwrites_device", "it formats a disk or volume")
    return None


def _judge_disk_tool(case: LineEvaluation, call: ProgramCall) -> OutputMarks:
    options = call.options()
    if call.name == "chkdsk" and not options:
        return None
    if call.name == "dism" and any(
        option.startswith("get-") or option.endswith(("checkhealth", "scanhealth")) for option in options
    ):
        return None
    note_dangerous(case, call, "system", "it changes a disk or the system")
    return None


def _judge_fsutil(case: LineEvaluation, call: ProgramCall) -> OutputMarks:
    words = call.lowered
    second = words[1] if len(words) > 1 else ""
    if not words or words[0] == "fsinfo" or re.match(r"(query|list|info|diskfree|find)", second):
        return None
    note_dangerous(case, call, "tamper", "it changes a file system or its records")
    return None


def _judge_wevtutil(case: LineEvaluation, call: ProgramCall) -> OutputMarks:
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
        call.lowered[0] not in reading or {"r", "remote"} & {option.partition(":")[0] for option in call.options()}
    ):
        note_dangerous(case, call, "history", "it destroys records, or reads those of another machine")
    return None


def _judge_auditpol(case: LineEvaluation, call: ProgramCall) -> OutputMarks:
    if call.words and call.options()[:1] not in (["get"], ["list"]):
        note_dangerous(case, call, "history", "it changes what is recorded")
    return None


def _judge_setx(case: LineEvaluation, call: ProgramCall) -> OutputMarks:
    note_dangerous(case, call, "persistence", "it sets a variable for all that runs later")
    return None


def _judge_subst(case: LineEvaluation, call: ProgramCall) -> OutputMarks:
    if call.words:
        note_dangerous(case, call, "system", "it gives a folder the name of a drive")
    return None


def _judge_clip(case: LineEvaluation, call: ProgramCall) -> OutputMarks:
    case.add(FindingGrade.EFFECT, "clipboard", "it changes your clipboard", call.span)
    return None


def _judge_powercfg(case: LineEvaluation, call: ProgramCall) -> OutputMarks:
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
    if call.words and (not call.options() or call.options()[0] not in reading):
        note_dangerous(case, call, "system", "it changes the system")
    return None


RULES: Mapping[str, ProgramRule] = {
    "reg": _judge_reg,
    "sc": _judge_sc,
    "schtasks": _judge_schtasks,
    "wmic": _judge_wmic,
    **dict.fromkeys(("net", "net1"), _judge_net),
    "netsh": _judge_netsh,
    **dict.fromkeys(("taskkill", "tskill", "shutdown"), _judge_termination),
    **dict.fromkeys(("vssadmin", "wbadmin"), _judge_backups),
    "diskshadow": _judge_diskshadow,
    "bcdedit": _judge_bcdedit,
    "diskpart": _judge_diskpart,
    "format": _judge_format,
    **dict.fromkeys(("chkdsk", "dism"), _judge_disk_tool),
    "fsutil": _judge_fsutil,
    "wevtutil": _judge_wevtutil,
    "auditpol": _judge_auditpol,
    "setx": _judge_setx,
    "subst": _judge_subst,
    "clip": _judge_clip,
    "powercfg": _judge_powercfg,
}

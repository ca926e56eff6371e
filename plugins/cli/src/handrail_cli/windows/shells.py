"""Judges `powershell` and `cmd` where another command runs them: what they are given to run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from handrail_cli.windows import program_data as data
from handrail_cli.windows.calls import Call, Word, code_from_pipe, nested
from handrail_cli.windows.findings import Case, Grade
from handrail_cli.windows.places import resolved, runs
from handrail_cli.windows.powershell_values import decoded_base64

DASHES = "-/\u2013\u2014\u2015"
# Under these, no script runs that would not run without them.
HARMLESS_POLICIES = frozenset(("restricted", "allsigned", "remotesigned", "default", "undefined"))


def powershell(case: Case, call: Call) -> frozenset[str]:
    """`powershell` and `pwsh`: options by any beginning and behind any dash, then a text, a file, or what is piped in."""
    at, ran = 0, False
    words = call.words
    while at < len(words):
        text = words[at].guess
        if text[:1] not in DASHES or text == "-" or not text[1:]:
            break
        name, _, glued = text[1:].lstrip(DASHES).partition(":")
        at += 1
        given = Word(glued, glued) if glued else words[at] if at < len(words) else None
        option = data.powershell_option(name.lower())
        if option == "command":
            _command(case, call, [given, *words[at:]] if glued and given else words[at:])
            return frozenset(("network",)) if has_network(case) else frozenset(("file",))
        if option == "file":
            _file(case, call, given)
            return frozenset(("file",))
        if option == "flag":
            continue
        at += 0 if glued else 1
        ran = ran or option == "encoded"
        _option(case, call, option, given, text)
    if at < len(words):
        _rest(case, call, words[at:])
    elif call.stdin is not None:
        _stdin_code(case, call, "powershell")
    elif not ran and not call.blocks:
        case.executes = True
        case.add(Grade.DANGEROUS, "starts_shell", "it starts a shell", call.span)
    return frozenset(("file",))


def _option(case: Case, call: Call, option: str | None, given: Word | None, text: str) -> None:
    """Note an option of PowerShell that takes a value; `text` is how it is written."""
    value = given.guess.lower() if given is not None else ""
    match option:
        case "encoded":
            _encoded(case, call, given)
        case "policy":
            if value not in HARMLESS_POLICIES:
                why = "it lets scripts run that would not run otherwise"
                case.add(Grade.UNKNOWN, "execution_policy", why, call.span)
        case "folder":
            found = resolved(case, given.text) if given is not None and given.text is not None else None
            case.cwd = found.path if found is not None else None
        case "hidden":
            if value == "hidden":
                case.add(Grade.UNKNOWN, "hidden", "it hides its window", call.span)
        case "value":
            pass
        case _:
            why = f"powershell has an option that is not known: {text!r}"
            case.add(Grade.DANGEROUS, "unknown_option", why, call.span)


def _rest(case: Case, call: Call, words: Sequence[Word]) -> None:
    """What stands behind the options: a file, a text, or `-` for what is piped in."""
    first = words[0].guess
    if first == "-":
        _stdin_code(case, call, "powershell")
    elif first.lower().endswith(".ps1") and " " not in first:
        _file(case, call, words[0])
    else:
        _command(case, call, words)


def has_network(case: Case) -> bool:
    """Whether anything so far reaches out over the network."""
    return any(touch.kind == "network" for part in case.parts for touch in part.touches)


def _encoded(case: Case, call: Call, given: Word | None) -> None:
    case.add(Grade.DANGEROUS, "encoded", "its code is hidden in an encoding", call.span)
    case.executes = True
    raw = decoded_base64(given.text) if given is not None and given.text is not None else None
    text = raw.decode("utf-16-le", "replace") if raw else None
    if text:
        nested(case, "powershell", text)


def _command(case: Case, call: Call, words: Sequence[Word]) -> None:
    if len(words) == 1 and words[0].guess == "-":
        _stdin_code(case, call, "powershell")
        return
    if any("network" in word.marks for word in words):
        case.add(Grade.CATASTROPHIC, "network_code", "it runs code straight from the network", call.span)
    if any(word.text is None for word in words):
        case.executes = True
        case.add(Grade.DANGEROUS, "opaque_code", "it runs text that is not known before", call.span)
    text = " ".join(word.guess for word in words)
    if text.strip():
        nested(case, "powershell", text)
    elif not call.blocks:
        case.add(Grade.DANGEROUS, "starts_shell", "it starts a shell", call.span)


def _file(case: Case, call: Call, given: Word | None) -> None:
    if given is None or given.guess == "-":
        _stdin_code(case, call, "powershell")
    elif given.text is None:
        case.add(Grade.DANGEROUS, "opaque_code", "it runs a file that is not known before", call.span)
    else:
        runs(case, given.text, given.span, direct=False)


def _stdin_code(case: Case, call: Call, dialect: Literal["powershell", "cmd"]) -> None:
    code_from_pipe(case, call)
    if call.stdin is not None and call.stdin.text is not None:
        nested(case, dialect, call.stdin.text)


def cmd(case: Case, call: Call) -> frozenset[str]:
    """`cmd`: switches, then `/c` or `/k` and all that follows as one text."""
    raw = (
        call.raw if call.raw is not None else " ".join(_quoted(word, alone=len(call.words) == 2) for word in call.words)
    )
    at = 0
    delayed = False
    while match := re.compile(r"\s*/([a-z?])(:\w+)?", re.IGNORECASE).match(raw, at):
        letter = match[1].lower()
        delayed = delayed or (letter == "v" and (match[2] or "").lower() != ":off")
        at = match.end()
        if letter in "ckr":
            if any(word.text is None for word in call.words):
                case.add(Grade.DANGEROUS, "opaque_code", "it runs text that is not known before", call.span)
            if any("network" in word.marks for word in call.words):
                case.add(Grade.CATASTROPHIC, "network_code", "it runs code straight from the network", call.span)
            if not raw[at:].strip() and call.stdin is None:
                case.executes = True
                case.add(Grade.DANGEROUS, "starts_shell", "it starts a shell", call.span)
            nested(case, "cmd", unquoted(raw[at:].strip()), delayed=delayed)
            if letter == "k" and call.stdin is not None:
                _stdin_code(case, call, "cmd")
            return frozenset(("network",)) if has_network(case) else frozenset(("file",))
        if letter == "?":
            return frozenset()
    if call.stdin is not None:
        _stdin_code(case, call, "cmd")
    else:
        case.executes = True
        case.add(Grade.DANGEROUS, "starts_shell", "it starts a shell", call.span)
    return frozenset(("file",))


def _quoted(word: Word, *, alone: bool) -> str:
    return f'"{word.guess}"' if " " in word.guess and not alone and '"' not in word.guess else word.guess


def unquoted(text: str) -> str:
    """What is left of the text behind `/c` when cmd has taken the outer quotes off."""
    if text.startswith('"'):
        end = text.rfind('"')
        return text[1:end] + text[end + 1 :] if end > 0 else text[1:]
    return text

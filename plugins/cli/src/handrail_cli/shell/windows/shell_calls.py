"""Judges `powershell` and `cmd` where another command runs them: what they are given to run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from handrail_cli.shell.powershell.values import decode_base64
from handrail_cli.shell.windows import program_table as data
from handrail_cli.shell.windows.findings import FindingGrade, LineEvaluation
from handrail_cli.shell.windows.path_effects import note_run, resolve_path
from handrail_cli.shell.windows.program_call import CallWord, ProgramCall, judge_nested_text, note_piped_code

DASHES = "-/\u2013\u2014\u2015"
# Under these, no script runs that would not run without them.
HARMLESS_POLICIES = frozenset(("restricted", "allsigned", "remotesigned", "default", "undefined"))


def judge_powershell_call(case: LineEvaluation, call: ProgramCall) -> frozenset[str]:
    """Judge `powershell` and `pwsh`.

    Options may be abbreviated to any prefix and follow any dash; then comes a text, a file, or piped input.
    """
    at, ran = 0, False
    words = call.words
    while at < len(words):
        text = words[at].guess
        if text[:1] not in DASHES or text == "-" or not text[1:]:
            break
        name, _, glued = text[1:].lstrip(DASHES).partition(":")
        at += 1
        given = CallWord(glued, glued) if glued else words[at] if at < len(words) else None
        option = data.find_powershell_option(name.lower())
        if option == "command":
            _judge_command(case, call, [given, *words[at:]] if glued and given else words[at:])
            return frozenset(("network",)) if has_network(case) else frozenset(("file",))
        if option == "file":
            _judge_script_file(case, call, given)
            return frozenset(("file",))
        if option == "flag":
            continue
        at += 0 if glued else 1
        ran = ran or option == "encoded"
        _judge_option(case, call, option, given, text)
    if at < len(words):
        _judge_remaining_words(case, call, words[at:])
    elif call.stdin is not None:
        _judge_stdin_code(case, call, "powershell")
    elif not ran and not call.blocks:
        case.executes = True
        case.add(FindingGrade.DANGEROUS, "starts_shell", "it starts a shell", call.span)
    return frozenset(("file",))


def _judge_option(
    case: LineEvaluation, call: ProgramCall, option: str | None, given: CallWord | None, text: str
) -> None:
    """Note an option of PowerShell that takes a value; `text` is how it is written."""
    value = given.guess.lower() if given is not None else ""
    match option:
        case "encoded":
            _judge_encoded(case, call, given)
        case "policy":
            if value not in HARMLESS_POLICIES:
                why = "it lets scripts run that would not run otherwise"
                case.add(FindingGrade.UNKNOWN, "execution_policy", why, call.span)
        case "folder":
            found = resolve_path(case, given.text) if given is not None and given.text is not None else None
            case.cwd = found.path if found is not None else None
        case "hidden":
            if value == "hidden":
                case.add(FindingGrade.UNKNOWN, "hidden", "it hides its window", call.span)
        case "value":
            pass
        case _:
            why = f"powershell has an option that is not known: {text!r}"
            case.add(FindingGrade.DANGEROUS, "unknown_option", why, call.span)


def _judge_remaining_words(case: LineEvaluation, call: ProgramCall, words: Sequence[CallWord]) -> None:
    """Judge the words after the options: a file, a text, or `-` for piped input."""
    first = words[0].guess
    if first == "-":
        _judge_stdin_code(case, call, "powershell")
    elif first.lower().endswith(".ps1") and " " not in first:
        _judge_script_file(case, call, words[0])
    else:
        _judge_command(case, call, words)


def has_network(case: LineEvaluation) -> bool:
    """Return True if anything so far accesses the network."""
    return any(touch.kind == "network" for part in case.parts for touch in part.touches)


def _judge_encoded(case: LineEvaluation, call: ProgramCall, given: CallWord | None) -> None:
    case.add(FindingGrade.DANGEROUS, "encoded", "its code is hidden in an encoding", call.span)
    case.executes = True
    raw = decode_base64(given.text) if given is not None and given.text is not None else None
    text = raw.decode("utf-16-le", "replace") if raw else None
    if text:
        judge_nested_text(case, "powershell", text)


def _judge_command(case: LineEvaluation, call: ProgramCall, words: Sequence[CallWord]) -> None:
    if len(words) == 1 and words[0].guess == "-":
        _judge_stdin_code(case, call, "powershell")
        return
    if any("network" in word.marks for word in words):
        case.add(FindingGrade.CATASTROPHIC, "network_code", "it runs code straight from the network", call.span)
    if any(word.text is None for word in words):
        case.executes = True
        case.add(FindingGrade.DANGEROUS, "opaque_code", "it runs text that is not known before", call.span)
    text = " ".join(word.guess for word in words)
    if text.strip():
        judge_nested_text(case, "powershell", text)
    elif not call.blocks:
        case.add(FindingGrade.DANGEROUS, "starts_shell", "it starts a shell", call.span)


def _judge_script_file(case: LineEvaluation, call: ProgramCall, given: CallWord | None) -> None:
    if given is None or given.guess == "-":
        _judge_stdin_code(case, call, "powershell")
    elif given.text is None:
        case.add(FindingGrade.DANGEROUS, "opaque_code", "it runs a file that is not known before", call.span)
    else:
        note_run(case, given.text, given.span, direct=False)


def _judge_stdin_code(case: LineEvaluation, call: ProgramCall, dialect: Literal["powershell", "cmd"]) -> None:
    note_piped_code(case, call)
    if call.stdin is not None and call.stdin.text is not None:
        judge_nested_text(case, dialect, call.stdin.text)


def judge_cmd_call(case: LineEvaluation, call: ProgramCall) -> frozenset[str]:
    """Judge `cmd`: switches, then `/c` or `/k` and the entire rest as one text."""
    raw = (
        call.raw
        if call.raw is not None
        else " ".join(_quote_word(word, alone=len(call.words) == 2) for word in call.words)
    )
    at = 0
    delayed = False
    while match := re.compile(r"\s*/([a-z?])(:\w+)?", re.IGNORECASE).match(raw, at):
        letter = match[1].lower()
        delayed = delayed or (letter == "v" and (match[2] or "").lower() != ":off")
        at = match.end()
        if letter in "ckr":
            if any(word.text is None for word in call.words):
                case.add(FindingGrade.DANGEROUS, "opaque_code", "it runs text that is not known before", call.span)
            if any("network" in word.marks for word in call.words):
                case.add(FindingGrade.CATASTROPHIC, "network_code", "it runs code straight from the network", call.span)
            if not raw[at:].strip() and call.stdin is None:
                case.executes = True
                case.add(FindingGrade.DANGEROUS, "starts_shell", "it starts a shell", call.span)
            judge_nested_text(case, "cmd", strip_outer_quotes(raw[at:].strip()), delayed=delayed)
            if letter == "k" and call.stdin is not None:
                _judge_stdin_code(case, call, "cmd")
            return frozenset(("network",)) if has_network(case) else frozenset(("file",))
        if letter == "?":
            return frozenset()
    if call.stdin is not None:
        _judge_stdin_code(case, call, "cmd")
    else:
        case.executes = True
        case.add(FindingGrade.DANGEROUS, "starts_shell", "it starts a shell", call.span)
    return frozenset(("file",))


def _quote_word(word: CallWord, *, alone: bool) -> str:
    return f'"{word.guess}"' if " " in word.guess and not alone and '"' not in word.guess else word.guess


def strip_outer_quotes(text: str) -> str:
    """Return the text after `/c` with the outer quotes removed as cmd does."""
    if text.startswith('"'):
        end = text.rfind('"')
        return text[1:end] + text[end + 1 :] if end > 0 else text[1:]
    return text

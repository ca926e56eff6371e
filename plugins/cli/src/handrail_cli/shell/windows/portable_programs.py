"""Judges programs that are the same on every system: by their own grammar on Windows, as bash's judge does elsewhere."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import replace

from handrail import Decision, Opinion, Reason, Route
from handrail.fs import path_resolution
from handrail.net import urls
from handrail_cli.programs import InnerRun, NamedOperand
from handrail_cli.programs.grammars.arg_matching import match_command_line
from handrail_cli.programs.values import add_network_need
from handrail_cli.shell.bash.syntax import ShellWord as Whole
from handrail_cli.shell.windows import program_table as data
from handrail_cli.shell.windows.findings import AnalysisExhausted, FindingGrade, LineEvaluation
from handrail_cli.shell.windows.path_effects import (
    find_secret,
    is_fatal_delete,
    is_secret_variable,
    note_delete,
    note_fetched_run,
    note_found_read,
    note_read,
    note_run,
    note_variable_change,
    note_write,
    resolve_path,
)
from handrail_cli.shell.windows.program_call import (
    ADDRESS,
    MAX_NESTING,
    CallWord,
    ProgramCall,
    check_words,
    get_base_name,
    judge_address,
    note_part,
    note_piped_code,
)


def judge_portable_program(case: LineEvaluation, call: ProgramCall, before: int) -> frozenset[str] | None:
    """Judge a program that is the same on every system by its own grammar; None when it is not known."""
    words = [Whole(name := data.PROGRAM_ALIASES.get(call.name, call.name), name, call.span or (0, 0))]
    words += [Whole(word.text, word.guess, word.span or (0, 0)) for word in call.words]
    found = match_command_line(words)
    if found is None:
        return None
    if "engine" in found.needs:
        from handrail_cli.shell.remote_engines import find_remote_engine

        found = found if find_remote_engine(name, case.judging) is None else add_network_need(found)
    check_words(case, call)
    if call.stdin is not None and data.CODE_READER.fullmatch(name) and all(w.startswith("-") for w in call.guesses):
        note_piped_code(case, call)
    if found.kind == "dangerous":
        reason = found.reason or Reason("dangerous", f"{name} can do harm so")
        case.add(FindingGrade.DANGEROUS, reason.code, reason.text, call.span)
        note_catastrophes(case, call)
    elif found.kind == "effect" and not found.named:
        case.add(FindingGrade.EFFECT, "changes", f"{name} changes something", call.span)
    if found.unknown is not None:
        case.add(FindingGrade.UNKNOWN, "unknown_option", f"{name} has a word that is not known", call.span)
    fetches = any(named.role == "url" for named in found.named)
    if "network" in found.needs:
        case.add(FindingGrade.EFFECT, "network", "it reaches out over the network", call.span)
        case.touch("network")
    if "reads_list" in found.needs:
        note_found_read(case, call.span)
    if "code" in found.needs:
        case.add(FindingGrade.EFFECT, "project_code", f"{name} runs code", call.span)
    elif "loads_project" in found.needs:
        case.add(
            FindingGrade.EFFECT, "project_code", f"{name} obeys settings of the folder that it works in", call.span
        )
    for named in found.named:
        _note_named(case, call, named, words, fetches=fetches)
    if call.stdin is not None and "secret" in call.stdin.marks and (fetches or "network" in found.needs):
        case.add(FindingGrade.CATASTROPHIC, "leaks_credentials", "it sends credentials to another machine", call.span)
    _note_fetched(case, call)
    note_part(case, call, before)
    for inner in found.inner:
        _judge_inner(case, call, inner)
    return frozenset(("network",)) if fetches or "network" in found.needs else frozenset(("file",))


def _note_named(
    case: LineEvaluation, call: ProgramCall, named: NamedOperand, words: Sequence[Whole], *, fetches: bool
) -> None:
    """Note what becomes of one thing that a command line names."""
    word = words[named.word_index]
    text = named.value if named.value is not None else word.text
    if text is None:
        case.add(
            FindingGrade.DANGEROUS if named.role not in ("name", "revision", "branch") else FindingGrade.UNKNOWN,
            "unresolved",
            "one of its words is not known",
            call.span,
        )
        return
    match named.role:
        case "read" | "list" | "folder":
            note_read(case, text, call.span, listing=named.role != "read")
            if named.role == "folder" and not _is_in_workspace(case, text):
                case.add(
                    FindingGrade.UNKNOWN, "unknown_folder", f"it works in {text!r}, outside the workspace", call.span
                )
        case "send":
            _note_sent_file(case, call, text)
        case "write" | "append" | "create" | "dest" | "change" | "change_tree":
            note_write(case, text, call.span, fetched=fetches)
            found = resolve_path(case, text) if named.role == "change_tree" else None
            if found is not None and found.refused is None and is_fatal_delete(case, found):
                case.add(
                    FindingGrade.CATASTROPHIC,
                    "deletes_system",
                    "it changes who may do what in the whole system or a home",
                    call.span,
                )
        case "move" | "delete" | "delete_tree":
            note_delete(case, text, call.span, recursive=named.role != "delete")
        case "execute":
            note_run(case, text, call.span)
        case "target":
            if not _is_in_workspace(case, text):
                case.add(FindingGrade.DANGEROUS, "link_out", "it makes a link that leaves the workspace", call.span)
        case "url" | "host":
            case.touch("network", urls.find_url_place(text))
            if named.role == "url":
                judge_address(case, text, call.span)
        case "device":
            case.add(
                FindingGrade.CATASTROPHIC, "overwrites_device", "it destroys what is on a disk or volume", call.span
            )
        case "variable" | "sets":
            if is_secret_variable(text.partition("=")[0]):
                case.add(FindingGrade.DANGEROUS, "secret", f"the variable {text!r} may hold a secret", call.span)
            elif named.role == "sets":
                note_variable_change(case, text.partition("=")[0], call.span)
        case "name" | "revision" | "branch":
            pass


def _is_in_workspace(case: LineEvaluation, text: str) -> bool:
    found = resolve_path(case, text)
    return (
        found is not None
        and found.refused is None
        and path_resolution.is_inside_roots(found.path, case.judging.workspace)
    )


def _note_sent_file(case: LineEvaluation, call: ProgramCall, text: str) -> None:
    if find_secret(case, text) is not None:
        case.add(FindingGrade.CATASTROPHIC, "leaks_credentials", "it sends credentials to another machine", call.span)
    else:
        case.add(FindingGrade.DANGEROUS, "sends_data", "it sends a file to another machine", call.span)


def _judge_inner(case: LineEvaluation, call: ProgramCall, inner: InnerRun) -> None:
    """Judge what a program runs in its turn."""
    if inner.where == "remote":
        case.add(FindingGrade.DANGEROUS, "remoting", f"{call.name} runs a command on another machine", call.span)
        return
    if inner.where == "container":
        return
    if inner.code is not None:
        _judge_inner_code(case, call, inner)
    elif inner.start < inner.end:
        given = call.words[inner.start - 1 : inner.end - 1]
        if not given or given[0].text is None:
            case.add(FindingGrade.DANGEROUS, "dynamic", "which command it runs is not known before", call.span)
            return
        rest = (*given[1:], *((CallWord(None, ""),) if inner.gets != "nothing" else ()))
        case.nesting += 1
        if case.nesting > MAX_NESTING:
            raise AnalysisExhausted("too_deep", "it is nested deeper than is analysed")
        from handrail_cli.shell.windows.program_analyzer import judge_program

        judge_program(case, replace(call, name=given[0].text, words=rest, raw=None, stdin=None))
        case.nesting -= 1


def _judge_inner_code(case: LineEvaluation, call: ProgramCall, inner: InnerRun) -> None:
    """Code for a shell of other systems: what it does to paths of Windows is not followed, so it is never plain reading."""
    if inner.language not in ("bash", "sh", "shell"):
        return
    from handrail_cli.shell.verdict import judge_line

    found = judge_line(inner.code or "", case.judging, cwd=case.cwd if case.cwd is not None else case.judging.cwd)
    _note_opinion(case, call, found)
    case.add(FindingGrade.DANGEROUS, "other_shell", "it is code for a shell of another system", call.span)


def judge_as_bash(case: LineEvaluation, call: ProgramCall, before: int) -> frozenset[str]:
    """Judge a program of a system other than Windows as bash's judge does, with the words that it would get."""
    from handrail_cli.shell.verdict import judge_line

    if any("secret" in word.marks for word in call.words):
        sends = get_base_name(call.name) in data.SENDING_PROGRAMS
        case.add(
            FindingGrade.CATASTROPHIC if sends else FindingGrade.DANGEROUS, "secret", "it is given a secret", call.span
        )
    line = " ".join(
        shlex.quote(word.text) if word.text is not None else '"$_unknown"'
        for word in (CallWord(call.name, call.name), *call.words)
    )
    stdin = call.stdin.text if call.stdin is not None else None
    reads_code = data.CODE_READER.fullmatch(get_base_name(call.name)) is not None
    if call.stdin is not None and reads_code and all(word.startswith("-") for word in call.guesses):
        note_piped_code(case, call)
    found = judge_line(line, case.judging, cwd=case.cwd if case.cwd is not None else case.judging.cwd, stdin=stdin)
    _note_opinion(case, call, found)
    _note_fetched(case, call)
    note_part(case, call, before)
    case.parts[-1] = replace(case.parts[-1], touches=tuple(touch for part in found.parts for touch in part.touches))
    case.parts.extend(part for part in found.parts if part.argv[:1] != (call.name,))
    network = get_base_name(call.name) in data.FETCHING_PROGRAMS or any(
        touch.kind == "network" for touch in case.parts[-1].touches
    )
    return frozenset(("network",)) if network else frozenset(("file",))


def note_catastrophes(case: LineEvaluation, call: ProgramCall) -> None:
    """Note what bash's judge calls a catastrophe in the words of a program."""
    from handrail_cli.shell.verdict import judge_line

    line = shlex.join((call.name, *call.guesses))
    found = judge_line(line, case.judging, cwd=case.cwd if case.cwd is not None else case.judging.cwd)
    if found.catastrophic:
        _note_opinion(case, call, found)


def _note_opinion(case: LineEvaluation, call: ProgramCall, found: Opinion) -> None:
    """Note what bash's judge has found."""
    grade = _grade_opinion(found)
    if grade is not FindingGrade.READ:
        for reason in found.reasons or (Reason("unknown_program", f"{call.name!r} is not known to only read"),):
            case.add(grade, reason.code, reason.text, call.span)


def _grade_opinion(found: Opinion) -> FindingGrade:
    if found.catastrophic:
        return FindingGrade.CATASTROPHIC
    if found.floor is Decision.DENY:
        return FindingGrade.REFUSED
    if found.floor is Decision.CONFIRM:
        return FindingGrade.DANGEROUS
    if found.suggestion is Decision.ALLOW:
        return FindingGrade.READ if found.route is Route.HOST else FindingGrade.EFFECT
    return FindingGrade.EFFECT if any(reason.code == "no_sandbox" for reason in found.reasons) else FindingGrade.UNKNOWN


def _note_fetched(case: LineEvaluation, call: ProgramCall) -> None:
    """Note files that a fetching program brings under their own name, and files run by an interpreter that have just been brought."""
    words = call.guesses
    named = any(re.fullmatch(r"-[a-zA-Z]*O|--remote-name(-all)?", word) for word in words)
    if (call.name == "curl" and named) or call.name == "wget":
        for word in words:
            if ADDRESS.match(word):
                note_write(case, re.split(r"[/?#]", word.rstrip("/"))[-1] or "index.html", call.span, fetched=True)
    if data.CODE_READER.fullmatch(call.name):
        for word in words:
            if not word.startswith("-"):
                note_fetched_run(case, word, call.span)

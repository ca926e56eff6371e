"""Judges programs that are the same on every system: by their own grammar on Windows, as bash's judge does elsewhere."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import replace

from handrail import Decision, Opinion, Reason, Route
from handrail.files import paths
from handrail.net import urls
from handrail_cli.commandline import Word as Whole
from handrail_cli.programs import Inner, Named, use
from handrail_cli.programs.values import needing_network
from handrail_cli.windows import program_data as data
from handrail_cli.windows.calls import (
    ADDRESS,
    MAX_NESTING,
    Call,
    Word,
    base,
    check_words,
    code_from_pipe,
    judge_address,
    note_part,
)
from handrail_cli.windows.findings import Case, Exhausted, Grade
from handrail_cli.windows.places import (
    deletes,
    fatal,
    reads,
    reads_found,
    resolved,
    runs,
    runs_fetched,
    secret,
    secret_variable,
    sets_variable,
    writes,
)


def of_every_system(case: Case, call: Call, before: int) -> frozenset[str] | None:
    """Judge a program that is the same on every system by its own grammar; None when it is not known."""
    words = [Whole(name := data.SAME.get(call.name, call.name), name, call.span or (0, 0))]
    words += [Whole(word.text, word.guess, word.span or (0, 0)) for word in call.words]
    found = use(words)
    if found is None:
        return None
    if "engine" in found.needs:
        from handrail_cli.engines import engine_elsewhere

        found = found if engine_elsewhere(name, case.judging) is None else needing_network(found)
    check_words(case, call)
    if call.stdin is not None and data.READS_CODE.fullmatch(name) and all(w.startswith("-") for w in call.guesses):
        code_from_pipe(case, call)
    if found.kind == "dangerous":
        reason = found.reason or Reason("dangerous", f"{name} can do harm so")
        case.add(Grade.DANGEROUS, reason.code, reason.text, call.span)
        add_catastrophes(case, call)
    elif found.kind == "effect" and not found.named:
        case.add(Grade.EFFECT, "changes", f"{name} changes something", call.span)
    if found.unknown is not None:
        case.add(Grade.UNKNOWN, "unknown_option", f"{name} has a word that is not known", call.span)
    fetches = any(named.role == "url" for named in found.named)
    if "network" in found.needs:
        case.add(Grade.EFFECT, "network", "it reaches out over the network", call.span)
        case.touch("network")
    if "reads_list" in found.needs:
        reads_found(case, call.span)
    if "code" in found.needs:
        case.add(Grade.EFFECT, "project_code", f"{name} runs code", call.span)
    elif "loads_project" in found.needs:
        case.add(Grade.EFFECT, "project_code", f"{name} obeys settings of the folder that it works in", call.span)
    for named in found.named:
        _named(case, call, named, words, fetches=fetches)
    if call.stdin is not None and "secret" in call.stdin.marks and (fetches or "network" in found.needs):
        case.add(Grade.CATASTROPHIC, "leaks_credentials", "it sends credentials to another machine", call.span)
    _check_fetched(case, call)
    note_part(case, call, before)
    for inner in found.inner:
        _inner(case, call, inner)
    return frozenset(("network",)) if fetches or "network" in found.needs else frozenset(("file",))


def _named(case: Case, call: Call, named: Named, words: Sequence[Whole], *, fetches: bool) -> None:
    """Note what becomes of one thing that a command line names."""
    word = words[named.word_index]
    text = named.value if named.value is not None else word.text
    if text is None:
        case.add(
            Grade.DANGEROUS if named.role not in ("name", "revision", "branch") else Grade.UNKNOWN,
            "unresolved",
            "one of its words is not known",
            call.span,
        )
        return
    match named.role:
        case "read" | "list" | "folder":
            reads(case, text, call.span, listing=named.role != "read")
            if named.role == "folder" and not _in_workspace(case, text):
                case.add(Grade.UNKNOWN, "unknown_folder", f"it works in {text!r}, outside the workspace", call.span)
        case "send":
            _sends(case, call, text)
        case "write" | "append" | "create" | "dest" | "change" | "change_tree":
            writes(case, text, call.span, fetched=fetches)
            found = resolved(case, text) if named.role == "change_tree" else None
            if found is not None and found.refused is None and fatal(case, found):
                case.add(
                    Grade.CATASTROPHIC,
                    "deletes_system",
                    "it changes who may do what in the whole system or a home",
                    call.span,
                )
        case "move" | "delete" | "delete_tree":
            deletes(case, text, call.span, recursive=named.role != "delete")
        case "execute":
            runs(case, text, call.span)
        case "target":
            if not _in_workspace(case, text):
                case.add(Grade.DANGEROUS, "link_out", "it makes a link that leaves the workspace", call.span)
        case "url" | "host":
            case.touch("network", urls.place(text))
            if named.role == "url":
                judge_address(case, text, call.span)
        case "device":
            case.add(Grade.CATASTROPHIC, "overwrites_device", "it destroys what is on a disk or volume", call.span)
        case "variable" | "sets":
            if secret_variable(text.partition("=")[0]):
                case.add(Grade.DANGEROUS, "secret", f"the variable {text!r} may hold a secret", call.span)
            elif named.role == "sets":
                sets_variable(case, text.partition("=")[0], call.span)
        case "name" | "revision" | "branch":
            pass


def _in_workspace(case: Case, text: str) -> bool:
    found = resolved(case, text)
    return found is not None and found.refused is None and paths.inside(found.path, case.judging.workspace)


def _sends(case: Case, call: Call, text: str) -> None:
    if secret(case, text) is not None:
        case.add(Grade.CATASTROPHIC, "leaks_credentials", "it sends credentials to another machine", call.span)
    else:
        case.add(Grade.DANGEROUS, "sends_data", "it sends a file to another machine", call.span)


def _inner(case: Case, call: Call, inner: Inner) -> None:
    """Judge what a program runs in its turn."""
    if inner.where == "remote":
        case.add(Grade.DANGEROUS, "remoting", f"{call.name} runs a command on another machine", call.span)
        return
    if inner.where == "container":
        return
    if inner.code is not None:
        _inner_code(case, call, inner)
    elif inner.start < inner.end:
        given = call.words[inner.start - 1 : inner.end - 1]
        if not given or given[0].text is None:
            case.add(Grade.DANGEROUS, "dynamic", "which command it runs is not known before", call.span)
            return
        rest = (*given[1:], *((Word(None, ""),) if inner.gets != "nothing" else ()))
        case.nesting += 1
        if case.nesting > MAX_NESTING:
            raise Exhausted("too_deep", "it is nested deeper than is analysed")
        from handrail_cli.windows.programs import program

        program(case, replace(call, name=given[0].text, words=rest, raw=None, stdin=None))
        case.nesting -= 1


def _inner_code(case: Case, call: Call, inner: Inner) -> None:
    """Code for a shell of other systems: what it does to paths of Windows is not followed, so it is never plain reading."""
    if inner.language not in ("bash", "sh", "shell"):
        return
    from handrail_cli.judgement import judge

    found = judge(inner.code or "", case.judging, cwd=case.cwd if case.cwd is not None else case.judging.cwd)
    _add_opinion(case, call, found)
    case.add(Grade.DANGEROUS, "other_shell", "it is code for a shell of another system", call.span)


def delegated(case: Case, call: Call, before: int) -> frozenset[str]:
    """Judge a program of a system other than Windows as bash's judge does, with the words that it would get."""
    from handrail_cli.judgement import judge

    if any("secret" in word.marks for word in call.words):
        sends = base(call.name) in data.SENDING
        case.add(Grade.CATASTROPHIC if sends else Grade.DANGEROUS, "secret", "it is given a secret", call.span)
    line = " ".join(
        shlex.quote(word.text) if word.text is not None else '"$_unknown"'
        for word in (Word(call.name, call.name), *call.words)
    )
    stdin = call.stdin.text if call.stdin is not None else None
    reads_code = data.READS_CODE.fullmatch(base(call.name)) is not None
    if call.stdin is not None and reads_code and all(word.startswith("-") for word in call.guesses):
        code_from_pipe(case, call)
    found = judge(line, case.judging, cwd=case.cwd if case.cwd is not None else case.judging.cwd, stdin=stdin)
    _add_opinion(case, call, found)
    _check_fetched(case, call)
    note_part(case, call, before)
    case.parts[-1] = replace(case.parts[-1], touches=tuple(touch for part in found.parts for touch in part.touches))
    case.parts.extend(part for part in found.parts if part.argv[:1] != (call.name,))
    network = base(call.name) in data.FETCHING or any(touch.kind == "network" for touch in case.parts[-1].touches)
    return frozenset(("network",)) if network else frozenset(("file",))


def add_catastrophes(case: Case, call: Call) -> None:
    """Note what bash's judge calls a catastrophe in the words of a program."""
    from handrail_cli.judgement import judge

    line = shlex.join((call.name, *call.guesses))
    found = judge(line, case.judging, cwd=case.cwd if case.cwd is not None else case.judging.cwd)
    if found.catastrophic:
        _add_opinion(case, call, found)


def _add_opinion(case: Case, call: Call, found: Opinion) -> None:
    """Note what bash's judge has found."""
    grade = _grade_of(found)
    if grade is not Grade.READ:
        for reason in found.reasons or (Reason("unknown_program", f"{call.name!r} is not known to only read"),):
            case.add(grade, reason.code, reason.text, call.span)


def _grade_of(found: Opinion) -> Grade:
    if found.catastrophic:
        return Grade.CATASTROPHIC
    if found.floor is Decision.DENY:
        return Grade.REFUSED
    if found.floor is Decision.CONFIRM:
        return Grade.DANGEROUS
    if found.suggestion is Decision.ALLOW:
        return Grade.READ if found.route is Route.HOST else Grade.EFFECT
    return Grade.EFFECT if any(reason.code == "no_sandbox" for reason in found.reasons) else Grade.UNKNOWN


def _check_fetched(case: Case, call: Call) -> None:
    """Note files that a fetching program brings under their own name, and files run by an interpreter that have just been brought."""
    words = call.guesses
    named = any(re.fullmatch(r"-[a-zA-Z]*O|--remote-name(-all)?", word) for word in words)
    if (call.name == "curl" and named) or call.name == "wget":
        for word in words:
            if ADDRESS.match(word):
                writes(case, re.split(r"[/?#]", word.rstrip("/"))[-1] or "index.html", call.span, fetched=True)
    if data.READS_CODE.fullmatch(call.name):
        for word in words:
            if not word.startswith("-"):
                runs_fetched(case, word, call.span)

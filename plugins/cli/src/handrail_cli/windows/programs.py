"""Judges programs by their name and words, for both dialects: those of Windows by data, those of every system as bash's judge does."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from handrail import Decision, paths
from handrail_cli.windows import program_data as data
from handrail_cli.windows.findings import MAX_NESTED, Case, Exhausted, Grade, Span
from handrail_cli.windows.places import deletes, drive_of, reads, resolved, runs, secret, system_program, writes
from handrail_cli.windows.powershell_values import UNKNOWN, Value, decoded_base64
from handrail_cli.windows.program_data import Reader

if TYPE_CHECKING:
    from handrail_cli.windows.powershell import Shell

MAX_NESTING = 8
ADDRESS = re.compile(r"(?:https?|ftps?|ftp|webdav|smb)://([^/\\?#\s\"']+)", re.IGNORECASE)
UNC = re.compile(r"\\\\(?![?.]\\)[^\\\s]")
ENDINGS = re.compile(r"\.(exe|com|cmd|bat)$")
SCRIPT = re.compile(r"\.(ps1|psm1|bat|cmd|vbs|vbe|js|jse|wsf|hta|msi|lnk|reg|cpl|scr|pif|py|pl|rb|sh)$", re.IGNORECASE)
DASHES = "-/\u2013\u2014\u2015"


@dataclass(frozen=True, slots=True)
class Word:
    """A word given to a program; `text` None when it is not known, `guess` it with nothing for what is not known."""

    text: str | None
    guess: str
    span: Span | None = None
    marks: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Stdin:
    """What comes in on a program's standard input."""

    text: str | None
    marks: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Call:
    """A program that is run. `raw` is all that follows its name, as cmd has it; `started`: in a process of its own that is not waited for."""

    name: str
    words: tuple[Word, ...]
    stdin: Stdin | None = None
    span: Span | None = None
    raw: str | None = None
    blocks: bool = False
    started: bool = False

    @property
    def guesses(self) -> list[str]:
        return [word.guess for word in self.words]

    @property
    def lowered(self) -> list[str]:
        return [word.guess.lower() for word in self.words]


def nested(
    case: Case, dialect: Literal["powershell", "cmd"], text: str, *, session: Shell | None = None, delayed: bool = False
) -> Value:
    """Judge a text that another command runs; in a PowerShell that is given, or else in a process of its own."""
    case.nesting += 1
    case.nested += len(text)
    if case.nesting > MAX_NESTING or case.nested > MAX_NESTED:
        raise Exhausted("too_deep", "it is nested deeper than is analysed")
    place, cwd, case.place = case.place, case.cwd, None
    try:
        if dialect == "cmd":
            from handrail_cli.windows.cmd import judge_text

            judge_text(case, text, delayed=delayed)
            return UNKNOWN
        from handrail_cli.windows.powershell import judge_text as judge_powershell

        return judge_powershell(case, text, shell=session)
    finally:
        case.place = place
        if session is None:
            case.cwd = cwd
        case.nesting -= 1


def host_of(text: str) -> str:
    """The host in an address; empty when there is none."""
    match = ADDRESS.search(text)
    return match[1].rpartition("@")[2].lower() if match else ""


def program(case: Case, call: Call) -> frozenset[str]:
    """Note what running a program amounts to; the marks of what it prints."""
    before = len(case.touches)
    if call.stdin is None and case.stdin is not None:
        call = replace(call, stdin=Stdin(case.stdin))
    place = _path(case, call)
    if place is not None and not _run_by_path(case, call, place):
        _part(case, call, before)
        return frozenset(("file",))
    name = base(call.name)
    case.touch("execute", name)
    helping = len(call.words) == 1 and call.words[0].text in ("/?", "-?", "--help", "--version", "/help", "-h")
    handler = HANDLERS.get(name) if case.windows else UNIX_HANDLERS.get(name)
    if handler is not None and not (helping and name not in SHELLS):
        marks = handler(case, replace(call, name=name)) or frozenset[str]()
        _part(case, call, before)
        return marks
    if case.windows and not _delegates(name) and name not in data.KNOWN and _is_local(case, call, name):
        _part(case, call, before)
        return frozenset()
    if helping and (name in data.KNOWN or name in HANDLERS):
        _part(case, call, before)
        return frozenset()
    if case.windows and (reader := data.READERS.get(name)) is not None:
        marks = read(case, call, reader)
        _part(case, call, before)
        return marks
    if not case.windows or _delegates(name):
        return delegated(case, replace(call, name=name if case.windows else call.name), before)
    if name in data.RUNS_ANYTHING:
        _anything(case, call)
    elif name in data.DANGEROUS:
        code, text = data.DANGEROUS[name]
        case.add(Grade.DANGEROUS, code, text, call.span)
    else:
        case.add(Grade.UNKNOWN, "unknown_program", f"{call.name!r} is not known to only read", call.span)
    _check_words(case, call)
    _part(case, call, before)
    return frozenset(("file",))


def base(name: str) -> str:
    """The bare name of a program, in lower case."""
    return ENDINGS.sub("", re.split(r"[\\/]", name.lower().rstrip(" ."))[-1])


def _part(case: Case, call: Call, before: int) -> None:
    case.part((base(call.name), *call.guesses), call.span, before)
    words = call.guesses
    sub = words[0] if words and re.fullmatch(r"[a-z][a-z-]+", words[0]) else None
    case.narrowed.append((base(call.name), sub) if sub else (base(call.name),))


def _path(case: Case, call: Call) -> str | None:
    return call.name if re.search(r"[\\/]", call.name) else None


def _run_by_path(case: Case, call: Call, text: str) -> bool:
    """Whether a program that is named by its path is one of the system, which its name tells."""
    found = resolved(case, text)
    if found is not None and found.refused is None and found.doubtful is None and system_program(case, found.path):
        return True
    if case.windows or not text.startswith("/"):
        runs(case, text, call.span)
        _check_words(case, call)
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
        _check_words(case, call)
        return True
    return False


def _check_words(case: Case, call: Call) -> None:
    """Note the secrets and other machines that words of any program name."""
    for word in call.words:
        for text in dict.fromkeys((word.guess, re.sub(r"^(--?[\w-]+[=:]|/\w+:|@|\w+=@?)", "", word.guess))):
            _check_word(case, call, text, word)
        if word.text is None:
            case.add(Grade.UNKNOWN, "unresolved", "one of its words is not known", call.span)


def _check_word(case: Case, call: Call, text: str, word: Word) -> None:
    if not text or len(text) > 400 or (" " in text and "\\" not in text):
        return
    if case.windows and UNC.match(text):
        case.add(Grade.DANGEROUS, "network_path", f"{text!r} is on another machine", word.span)
    elif drive_of(text) is None and not ADDRESS.match(text) and (what := secret(case, text)) is not None:
        grade = Grade.CATASTROPHIC if base(call.name) in data.SENDING else Grade.DANGEROUS
        code = "leaks_credentials" if grade is Grade.CATASTROPHIC else "secret"
        case.add(grade, code, f"{text!r} keeps {what}", word.span)
    elif (
        (found := resolved(case, text)) is not None
        and paths.protected(found.path, case.judging.protected)
        and not _above(case, found)
    ):
        case.add(Grade.DANGEROUS, "own", "files by which Handrail judges are named in it", word.span)


def _above(case: Case, found: paths.Resolved) -> bool:
    """Whether it is a place that merely holds protected ones, such as the workspace."""
    return not any(paths.inside(found.path, (place,)) for place in case.judging.protected)


# -- programs of every system


def _delegates(name: str) -> bool:
    return name in data.EVERYWHERE or re.fullmatch(r"python[23](\.\d+)?|pip[23]", name) is not None


def delegated(case: Case, call: Call, before: int = 0) -> frozenset[str]:
    """Judge a program that is the same on every system as bash's judge does, with the words that it would get."""
    from handrail_cli.judgement import judge

    _check_words(case, call)
    if any(re.match(r"-{0,2}[\w-]*[@=]?", word.guess) and "secret" in word.marks for word in call.words):
        case.add(
            Grade.CATASTROPHIC if call.name in data.SENDING else Grade.DANGEROUS,
            "secret",
            "it is given a secret",
            call.span,
        )
    line = " ".join(
        shlex.quote(word.text) if word.text is not None else '"$_unknown"'
        for word in (Word(call.name, call.name), *call.words)
    )
    stdin = call.stdin.text if call.stdin is not None else None
    if (
        call.stdin is not None
        and data.READS_CODE.fullmatch(call.name)
        and not any(not w.startswith("-") for w in call.guesses)
    ):
        _code_from_pipe(case, call)
    found = judge(line, case.judging, cwd=case.cwd if case.cwd is not None else case.judging.cwd, stdin=stdin)
    grade = _grade_of(
        found.floor,
        found.suggestion,
        found.catastrophic,
        {reason.code for reason in found.reasons},
        found.route == "sandbox",
    )
    for reason in found.reasons:
        if grade is not Grade.READ:
            case.add(grade, reason.code, reason.text, call.span)
    if grade is not Grade.READ and not found.reasons:
        case.add(grade, "unknown_program", f"{call.name!r} is not known to only read", call.span)
    network = any(touch.kind == "network" for part in found.parts for touch in part.touches)
    _check_fetched(case, call)
    if call.name in data.FETCHING:
        case.touch("network", next((host for word in call.guesses if (host := host_of(word))), ""))
    case.part((base(call.name), *call.guesses), call.span, before)
    case.narrowed.extend(found.narrowed or ((base(call.name),),))
    case.parts.extend(part for part in found.parts[1:])
    for part in found.parts[:1]:
        case.parts[-1] = replace(case.parts[-1], touches=tuple(dict.fromkeys((*case.parts[-1].touches, *part.touches))))
    return frozenset(("network",)) if network or call.name in data.FETCHING else frozenset(("file",))


def _grade_of(
    floor: Decision | None, suggestion: Decision | None, catastrophic: bool, codes: set[str], sandboxed: bool
) -> Grade:
    if catastrophic:
        return Grade.CATASTROPHIC
    if floor is Decision.DENY:
        return Grade.REFUSED
    if floor is Decision.CONFIRM:
        return Grade.DANGEROUS
    if suggestion is Decision.ALLOW:
        return Grade.EFFECT if sandboxed else Grade.READ
    return Grade.EFFECT if "no_sandbox" in codes else Grade.UNKNOWN


def _check_fetched(case: Case, call: Call) -> None:
    """Note files that a fetching program brings, and files run by an interpreter that have just been brought."""
    words = call.guesses
    if call.name in data.FETCHING:
        for at, word in enumerate(words[:-1]):
            if word in ("-o", "--output", "-O", "--output-document"):
                writes(case, words[at + 1], call.span, fetched=True)
        if (
            call.name == "curl" and any(re.fullmatch(r"-[a-zA-Z]*O|--remote-name", word) for word in words)
        ) or call.name == "wget":
            for word in words:
                if ADDRESS.match(word):
                    writes(case, re.split(r"[/?#]", word.rstrip("/"))[-1] or "index.html", call.span, fetched=True)
    for word in call.words:
        found = resolved(case, word.guess) if word.guess and not word.guess.startswith("-") else None
        if found is not None and found.real.lower() in case.fetched and data.READS_CODE.fullmatch(call.name):
            case.add(
                Grade.CATASTROPHIC,
                "network_code",
                "it runs a file that it has just fetched from the network",
                call.span,
            )


def _code_from_pipe(case: Case, call: Call) -> None:
    case.executes = True
    if call.stdin is not None and "network" in call.stdin.marks:
        case.add(Grade.CATASTROPHIC, "network_code", "it runs code straight from the network", call.span)
    case.add(Grade.DANGEROUS, "opaque_code", "it runs what is piped into it", call.span)


# -- programs of Windows that read


def read(case: Case, call: Call, reader: Reader) -> frozenset[str]:
    """Note what a program amounts to of which the options that only read are known."""
    marks = frozenset(("file",))
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
    if reader.words in ("read", "pattern"):
        for word in files:
            if word.text is not None:
                before = len(case.found)
                recursive = reader.words == "pattern" and any(
                    re.fullmatch(r"[/-][a-z/]*s[a-z/]*", w) for w in call.lowered
                )
                reads(case, word.text, word.span, recursive=recursive)
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
        if kind == "r" and given.text:
            reads(case, given.text, call.span)
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
    text = " ".join(call.guesses)
    if ADDRESS.search(text) or re.search(r"(java|vb)script:", text, re.IGNORECASE):
        case.touch("network", host_of(text))
        case.add(
            Grade.CATASTROPHIC,
            "network_code",
            "it runs code straight from the network, or from its own words",
            call.span,
        )
    for word in call.words:
        found = resolved(case, re.sub(r"^/\w+:|,.*$", "", word.guess)) if word.guess else None
        if found is not None and found.real.lower() in case.fetched:
            case.add(
                Grade.CATASTROPHIC,
                "network_code",
                "it runs a file that it has just fetched from the network",
                call.span,
            )
    case.add(Grade.DANGEROUS, "runs_anything", f"{base(call.name)} runs what it is given", call.span)


# -- shells


def _powershell(case: Case, call: Call) -> frozenset[str]:
    """`powershell` and `pwsh`: options by any beginning and behind any dash, then a text, a file, or what is piped in."""
    at = 0
    words = call.words
    ran = False
    while at < len(words):
        text = words[at].guess
        if text[:1] not in DASHES or text == "-" or not text[1:]:
            break
        name, _, glued = text[1:].lstrip(DASHES).lower().partition(":")
        original = text.partition(":")[2]
        at += 1
        given = Word(original, original) if glued else words[at] if at < len(words) else None
        step = 0 if glued else 1
        match data.powershell_option(name):
            case "encoded":
                _encoded(case, call, given)
                ran, at = True, at + step
            case "command":
                rest = ([given] if glued and given else []) + list(words[at:])
                _command(case, call, rest)
                return frozenset(("network",)) if _has_network(case) else frozenset(("file",))
            case "file":
                _file(case, call, given)
                return frozenset(("file",))
            case "policy":
                if given is None or given.guess.lower() not in (
                    "restricted",
                    "allsigned",
                    "remotesigned",
                    "default",
                    "undefined",
                ):
                    case.add(
                        Grade.UNKNOWN, "execution_policy", "it lets scripts run that would not run otherwise", call.span
                    )
                at += step
            case "value":
                at += step
            case "folder":
                found = resolved(case, given.text) if given is not None and given.text is not None else None
                case.cwd = found.path if found is not None else None
                at += step
            case "flag":
                continue
            case "hidden":
                if given is not None and given.guess.lower() == "hidden":
                    case.add(Grade.UNKNOWN, "hidden", "it hides its window", call.span)
                at += step
            case _:
                case.add(
                    Grade.DANGEROUS,
                    "unknown_option",
                    f"powershell has an option that is not known: {text!r}",
                    call.span,
                )
                at += step
    if at < len(words):
        first = words[at].guess
        if first == "-":
            _stdin_code(case, call, "powershell")
        elif first.lower().endswith(".ps1") and " " not in first:
            _file(case, call, words[at])
        else:
            _command(case, call, words[at:])
    elif call.stdin is not None:
        _stdin_code(case, call, "powershell")
    elif not ran and not call.blocks:
        case.executes = True
        case.add(Grade.DANGEROUS, "starts_shell", "it starts a shell", call.span)
    return frozenset(("file",))


def _has_network(case: Case) -> bool:
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
    _code_from_pipe(case, call)
    if call.stdin is not None and call.stdin.text is not None:
        nested(case, dialect, call.stdin.text)


def _cmd(case: Case, call: Call) -> frozenset[str]:
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
            nested(case, "cmd", unquoted(raw[at:].strip()), delayed=delayed)
            if letter == "k" and call.stdin is not None:
                _stdin_code(case, call, "cmd")
            return frozenset(("network",)) if _has_network(case) else frozenset(("file",))
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


def _by_program(case: Case, call: Call) -> frozenset[str]:
    from handrail_cli.windows import program_rules

    return program_rules.judge(case, call)


SHELLS = frozenset(("powershell", "pwsh", "cmd", "powershell_ise"))
HANDLERS: Mapping[str, Callable[[Case, Call], frozenset[str] | None]] = {
    **dict.fromkeys(("powershell", "pwsh", "powershell_ise"), _powershell),
    "cmd": _cmd,
    **dict.fromkeys(data.RULED, _by_program),
}
UNIX_HANDLERS: Mapping[str, Callable[[Case, Call], frozenset[str] | None]] = {
    **dict.fromkeys(("powershell", "pwsh"), _powershell),
}
__all__ = ["Call", "Stdin", "Word", "base", "deletes", "host_of", "nested", "program", "unquoted"]

"""A program that is run, as both dialects hand it over, and what is noted of any such call."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from handrail import Decision
from handrail.fs import path_resolution
from handrail.net import urls
from handrail_cli.shell.powershell.values import UNKNOWN_VALUE, PowerShellValue
from handrail_cli.shell.windows import program_table as data
from handrail_cli.shell.windows.findings import MAX_NESTED, AnalysisExhausted, FindingGrade, LineEvaluation, Span
from handrail_cli.shell.windows.path_effects import find_secret, resolve_path, split_drive

if TYPE_CHECKING:
    from handrail_cli.shell.windows.powershell_analyzer import PowerShellAnalyzer

MAX_NESTING = 8
ADDRESS = re.compile(r"(?:https?|ftps?|webdav|smb)://[^/\\?#\s\"'][^\s\"']*", re.IGNORECASE)
UNC_PATH = re.compile(r"\\\\(?![?.]\\)[^\\\s]")
SCRIPT_ADDRESS = re.compile(r"(java|vb)script:", re.IGNORECASE)
PROGRAM_SUFFIX = re.compile(r"\.(exe|com|cmd|bat)$")


@dataclass(frozen=True, slots=True)
class CallWord:
    """A word given to a program; `text` None when it is not known, `guess` it with nothing for what is not known."""

    text: str | None
    guess: str
    span: Span | None = None
    marks: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class StdinContent:
    """Standard input of a program."""

    text: str | None
    marks: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ProgramCall:
    """Call of a program. `raw` is everything after its name, in cmd's form; `started`: in a process not waited for."""

    name: str
    words: tuple[CallWord, ...]
    stdin: StdinContent | None = None
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

    def options(self) -> list[str]:
        """Return the options, in lower case and without their mark, with joined ones separated."""
        found: list[str] = []
        for word in self.lowered:
            if word.startswith("/"):
                found.extend(part for part in word.split("/") if part)
            elif word.startswith("-") and len(word) > 1:
                found.append(word.lstrip("-"))
        return found

    def loose(self) -> list[CallWord]:
        """Return the words that are not options."""
        return [word for word in self.words if not re.match(r"/|-.", word.guess, re.DOTALL)]


# The marks of what a program prints; None: those of a file.
OutputMarks = frozenset[str] | None
ProgramRule = Callable[[LineEvaluation, ProgramCall], OutputMarks]


def note_dangerous(case: LineEvaluation, call: ProgramCall, code: str, text: str) -> None:
    """Note an effect of a program that requires the user's approval."""
    case.add(FindingGrade.DANGEROUS, code, text, call.span)


def judge_nested_text(
    case: LineEvaluation,
    dialect: Literal["powershell", "cmd"],
    text: str,
    *,
    session: PowerShellAnalyzer | None = None,
    delayed: bool = False,
) -> PowerShellValue:
    """Judge a text that another command runs, in the given PowerShell session or else in a separate process."""
    case.nesting += 1
    case.nested += len(text)
    if case.nesting > MAX_NESTING or case.nested > MAX_NESTED:
        raise AnalysisExhausted("too_deep", "it is nested deeper than is analysed")
    place, cwd, case.place = case.place, case.cwd, None
    try:
        if dialect == "cmd":
            from handrail_cli.shell.windows.cmd_analyzer import judge_cmd_text

            judge_cmd_text(case, text, delayed=delayed)
            return UNKNOWN_VALUE
        from handrail_cli.shell.windows.powershell_analyzer import judge_powershell_text as judge_powershell

        return judge_powershell(case, text, shell=session)
    finally:
        case.place = place
        if session is None:
            case.cwd = cwd
        case.nesting -= 1


def find_host(text: str) -> str:
    """Return the host of the first address in a text, as read by `urls.find_url_place`; empty without an address."""
    match = ADDRESS.search(text)
    return urls.find_url_place(match[0]) if match else ""


def note_foreign_code(case: LineEvaluation, call: ProgramCall, *, shares: bool = False) -> None:
    """Note that a program which runs what it is given is given an address, or code. `shares`: a file on another machine counts, too."""
    text = " ".join(call.guesses)
    if ADDRESS.search(text) or SCRIPT_ADDRESS.search(text) or (shares and UNC_PATH.search(text)):
        case.touch("network", find_host(text))
        case.add(
            FindingGrade.CATASTROPHIC,
            "network_code",
            "it runs code straight from the network, or from its own words",
            call.span,
        )


def get_base_name(name: str) -> str:
    """Return the bare name of a program, in lower case."""
    return PROGRAM_SUFFIX.sub("", re.split(r"[\\/]", name.lower().rstrip(" ."))[-1])


def note_part(case: LineEvaluation, call: ProgramCall, before: int) -> None:
    """Note a program as a part of the line, with what was touched since there were `before` touches."""
    varies = any(word.text is None for word in call.words)
    case.part((get_base_name(call.name), *call.guesses), call.span, before, varies=varies)
    words = call.guesses
    sub = words[0] if words and re.fullmatch(r"[a-z][a-z-]+", words[0]) else None
    case.narrowed.append((get_base_name(call.name), sub) if sub else (get_base_name(call.name),))


def check_words(case: LineEvaluation, call: ProgramCall) -> None:
    """Note the secrets and other machines that words of any program name."""
    for word in call.words:
        for text in dict.fromkeys((word.guess, re.sub(r"^(--?[\w-]+[=:]|/\w+:|@|\w+=@?)", "", word.guess))):
            _check_word(case, call, text, word)
        if word.text is None:
            case.add(FindingGrade.UNKNOWN, "unresolved", "one of its words is not known", call.span)


def _check_word(case: LineEvaluation, call: ProgramCall, text: str, word: CallWord) -> None:
    if not text or len(text) > 400 or (" " in text and "\\" not in text):
        return
    if case.windows and UNC_PATH.match(text):
        case.add(FindingGrade.DANGEROUS, "network_path", f"{text!r} is on another machine", word.span)
    elif split_drive(text) is None and not ADDRESS.match(text) and (what := find_secret(case, text)) is not None:
        grade = (
            FindingGrade.CATASTROPHIC if get_base_name(call.name) in data.SENDING_PROGRAMS else FindingGrade.DANGEROUS
        )
        code = "leaks_credentials" if grade is FindingGrade.CATASTROPHIC else "secret"
        case.add(grade, code, f"{text!r} keeps {what}", word.span)
    elif (
        (found := resolve_path(case, text)) is not None
        and path_resolution.is_protected_path(found.path, case.judging.protected)
        and not _is_above_protected(case, found)
    ):
        case.add(FindingGrade.DANGEROUS, "own", "files by which Handrail judges are named in it", word.span)


def _is_above_protected(case: LineEvaluation, found: path_resolution.ResolvedPath) -> bool:
    """Return True for a place that merely contains protected ones, such as the workspace."""
    return not any(path_resolution.is_inside_roots(found.path, (place,)) for place in case.judging.protected)


def judge_address(case: LineEvaluation, text: str, span: Span | None) -> None:
    """Note what speaks against an address itself."""
    if "://" not in text and not text.startswith("\\\\"):
        text = f"https://{text}"
    found = urls.evaluate_url(text)
    if found.suggestion is not Decision.ALLOW:
        grade = FindingGrade.DANGEROUS if found.floor is not None else FindingGrade.UNKNOWN
        for reason in found.reasons:
            case.add(grade, reason.code, reason.text, span)


def note_piped_code(case: LineEvaluation, call: ProgramCall) -> None:
    """Note that a program runs what is piped into it."""
    case.executes = True
    if call.stdin is not None and "network" in call.stdin.marks:
        case.add(FindingGrade.CATASTROPHIC, "network_code", "it runs code straight from the network", call.span)
    case.add(FindingGrade.DANGEROUS, "opaque_code", "it runs what is piped into it", call.span)

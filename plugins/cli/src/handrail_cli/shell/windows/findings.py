"""Findings in one command line, and the opinion that results from them."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import PurePath

from handrail import Decision, EvaluationContext, Opinion, Reason, Route, SubCommand
from handrail.api.verdict import Access, AccessKind
from handrail_cli.shell.restorable_files import find_unrestorable_reason

SHELL_RULE = "shell"
# Commands, and things found, that are followed in one line.
MAX_COMMANDS = 200
MAX_FOUND = 200
# Paths that are looked at, and characters of text inside text.
MAX_PLACES = 400
MAX_NESTED = 12_000
Span = tuple[int, int]


class FindingGrade(IntEnum):
    """Severity of a finding, in ascending order.

    Reading; an ordinary bounded change; an effect that is not vouched for; an effect that the user must review each
    time; an effect never allowed to a model; an effect that no approval can undo.
    """

    READ = 0
    EFFECT = 1
    UNKNOWN = 2
    DANGEROUS = 3
    REFUSED = 4
    CATASTROPHIC = 5


UNSURE_PART = SubCommand(("?",))


class AnalysisExhausted(Exception):
    """More than is analysed; `code` as in reasons."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


@dataclass(slots=True)
class LineEvaluation:
    """State of one command line while it is judged, with the effects of its earlier parts.

    `cwd` is the start of relative paths, None once it is unknown. `stdin` is the input of the entire line. `fetched`
    are the real paths of files that it has downloaded, `written` of those it has written, in lower case. `place` is the
    offset added to spans, and None inside text that does not appear verbatim in the command. `started` counts the
    programs that it starts without waiting for them.
    """

    judging: EvaluationContext
    cwd: PurePath | None
    stdin: str | None = None
    found: dict[tuple[FindingGrade, Reason], None] = field(default_factory=dict[tuple[FindingGrade, Reason], None])
    parts: list[SubCommand] = field(default_factory=list[SubCommand])
    narrowed: list[tuple[str, ...]] = field(default_factory=list[tuple[str, ...]])
    fetched: set[str] = field(default_factory=set[str])
    written: set[str] = field(default_factory=set[str])
    touches: list[Access] = field(default_factory=list[Access])
    commands: int = 0
    depth: int = 0
    nesting: int = 0
    nested: int = 0
    places: int = 0
    place: int | None = 0
    socket: bool = False
    executes: bool = False
    started: int = 0

    @property
    def windows(self) -> bool:
        return self.judging.platform == "win32"

    def add(self, grade: FindingGrade, code: str, text: str, span: Span | None = None) -> None:
        """Note something; the same is noted once."""
        if len(self.found) > MAX_FOUND:
            raise AnalysisExhausted("too_much", "it has more parts than are analysed")
        self.found[grade, Reason(code, text, self._moved(span))] = None

    def touch(self, kind: AccessKind, what: str = "") -> None:
        """Note what the part that is being judged touches."""
        self.touches.append(Access(kind, what))

    def part(self, argv: tuple[str, ...], span: Span | None, touches_from: int = 0, *, varies: bool = False) -> None:
        """Note a simple command with what was touched since there were `touches_from` touches. `varies`: as in `SubCommand`."""
        self.commands += 1
        if self.commands > MAX_COMMANDS:
            raise AnalysisExhausted("too_much", "it has more parts than are analysed")
        touches = tuple(dict.fromkeys(self.touches[touches_from:]))
        folders = (str(self.cwd) if self.cwd is not None else "",)
        self.parts.append(SubCommand(argv, touches, self._moved(span), folders=folders, varies=varies))
        del self.touches[touches_from:]

    def _moved(self, span: Span | None) -> Span | None:
        """Return a span in the text being read as one in the entire command; None if it does not contain that text."""
        return None if span is None or self.place is None else (span[0] + self.place, span[1] + self.place)

    def looks(self) -> None:
        """Count one more path that is looked at."""
        self.places += 1
        if self.places > MAX_PLACES:
            raise AnalysisExhausted("too_much", "it names more places than are looked at")

    def unread(self, code: str, text: str) -> None:
        """Note that the line was not read to its end, which only the user's approval can make up for."""
        self.found[FindingGrade.DANGEROUS, Reason(code, text)] = None
        self.parts.append(UNSURE_PART)

    @property
    def worst(self) -> FindingGrade:
        return max((grade for grade, _ in self.found), default=FindingGrade.READ)


def create_opinion(case: LineEvaluation) -> Opinion:
    """Return the opinion that results from all findings."""
    if case.socket and case.executes:
        case.add(FindingGrade.CATASTROPHIC, "remote_shell", "it hands a shell to another machine")
    worst = case.worst
    reasons = tuple(reason for grade, reason in case.found if grade is worst)
    parts = tuple(case.parts)
    if worst is FindingGrade.CATASTROPHIC:
        return Opinion(SHELL_RULE, Decision.DENY, Decision.DENY, catastrophic=True, reasons=reasons, parts=parts)
    if worst is FindingGrade.REFUSED:
        return Opinion(SHELL_RULE, Decision.DENY, Decision.DENY, reasons=reasons, parts=parts)
    if worst is FindingGrade.DANGEROUS:
        return Opinion(
            f"{SHELL_RULE}:{reasons[0].code}", Decision.CONFIRM, Decision.CONFIRM, reasons=reasons, parts=parts
        )
    if worst is FindingGrade.UNKNOWN:
        unlisted = any(reason.code == "unknown_option" for reason in reasons)
        return Opinion(SHELL_RULE, Decision.CONFIRM, reasons=reasons, parts=parts, unknown_effects=unlisted)
    if worst is FindingGrade.EFFECT:
        return _create_effect_opinion(case, reasons, parts)
    if not parts:
        return Opinion(SHELL_RULE, Decision.CONFIRM, reasons=(Reason("empty", "there is no command in it"),))
    return Opinion(SHELL_RULE, Decision.ALLOW, parts=parts)


def _create_effect_opinion(case: LineEvaluation, reasons: tuple[Reason, ...], parts: tuple[SubCommand, ...]) -> Opinion:
    """Return the opinion on ordinary changes: in the sandbox if one can contain them, else with approval."""
    narrowed = tuple(dict.fromkeys(case.narrowed))
    network = any(touch.kind == "network" for part in parts for touch in part.touches)
    offer = case.judging.sandbox
    # What confines a process on Windows does not confine what its text does to files.
    if offer is not None and not case.windows and (offer.network or not network):
        changed = [touch.what for part in parts for touch in part.touches if touch.kind in ("write", "delete")]
        losing = [path for path in changed if path.startswith("/")]
        if (reason := find_unrestorable_reason(losing, case.judging)) is not None:
            reasons = (reason, *reasons)
            return Opinion(
                SHELL_RULE, Decision.CONFIRM, route=Route.SANDBOX, reasons=reasons, parts=parts, narrowed=narrowed
            )
        return Opinion(
            SHELL_RULE,
            Decision.ALLOW,
            route=Route.SANDBOX,
            reasons=reasons,
            parts=parts,
            narrowed=narrowed,
            relies_on_undo=bool(losing) and case.judging.undoable,
        )
    if offer is None and not network:
        reasons = (*reasons, Reason("no_sandbox", "there is no sandbox here that could hold it"))
    return Opinion(SHELL_RULE, suggestion=Decision.CONFIRM, reasons=reasons, parts=parts, narrowed=narrowed)

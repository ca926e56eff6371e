"""Verdict on one command line for bash: parses all of it and collects the reasons against running it.

    only reads data that any user may see           allow
    ordinary change, completely understood          allow in the sandbox; confirm without one, or without what it needs
    potentially harmful                             confirm, each time (a floor)
    not understood                                  confirm
    a small set whose harm cannot be undone         deny, in every mode

Programs that a repository's own configuration names (`core.fsmonitor`, drivers of diffs) cannot be known without
opening a file; a repository inside the workspace is assumed to be trusted by the user.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePath

from handrail import CommandStep, Decision, EvaluationContext, Mode, Opinion, Reach, Reason, Route, SubCommand, View
from handrail_cli.shell.analyzer import LineAnalyzer
from handrail_cli.shell.bash.line_parser import NestedCodeParser, parse_line
from handrail_cli.shell.bash.syntax import ParsedLine
from handrail_cli.shell.catastrophic_rules import find_catastrophes
from handrail_cli.shell.command_hosts import are_hosts_allowed
from handrail_cli.shell.destructive_programs import PathContext
from handrail_cli.shell.host_env import HostEnvironment, read_host_environment
from handrail_cli.shell.line_steps import explain_kept_repository, plan_line_steps
from handrail_cli.shell.link_reasons import find_link_reasons
from handrail_cli.shell.path_effects import Finding
from handrail_cli.shell.program_wrappers import reads_code_from_input
from handrail_cli.shell.repository_changes import RepositoryChanges
from handrail_cli.shell.restorable_files import NOT_RESTORABLE, find_unrestorable_reason
from handrail_cli.shell.verdict_codes import INSPECTS_INSIDE, KEEPS_GIT, SHELL_RULE

# What Handrail judges by may not be written by what it judges.
OVERWRITES_OWN = "own_files"
EMPTY_REASON = Reason("empty", "there is no command in it")
MAX_REASONS = 12
# The code of a reason for a word that the grammar of a program does not list.
UNLISTED_CODE = "option"
# The codes of reasons for what is not known of a command, so that it might do or show anything.
UNKNOWN_CODES = frozenset((UNLISTED_CODE, "unknown_path"))
# The code of a reason for a variable that programs may obey.
VARIABLE_CODE = "variable"
# The codes of reasons for which a line in permissive mode runs in the sandbox.
CONFINED_CODES = UNKNOWN_CODES | {VARIABLE_CODE, NOT_RESTORABLE}
# The code of a reason for which a sandbox is needed.
NO_SANDBOX = "no_sandbox"
UNCONFINED_REASON = Reason(
    NO_SANDBOX, "it reads files through a program, and there is no sandbox (`handrail doctor` says why)"
)


def judge_line(
    text: str,
    judging: EvaluationContext,
    *,
    cwd: PurePath | None = None,
    stdin: str | None = None,
    around: HostEnvironment | None = None,
) -> Opinion:
    """Return the opinion on one command line for bash, run in `cwd` (default: the session's).

    `stdin` is the text on its standard input. `around` is the result of `read_host_environment` for the same context,
    which avoids computing it for each command.
    """
    cwd = cwd if cwd is not None else judging.cwd
    variables = list_known_variables(judging, cwd)
    analysis = parse_line(text, variables=variables, environment=judging.environment)
    codes = NestedCodeParser()
    weighing = LineAnalyzer(judging, (cwd,), around or read_host_environment(judging), variables, codes)
    weighing.line(analysis)
    scene = PathContext(variables["PWD"], variables["HOME"], drives=judging.platform == "win32")
    fatal = tuple(dict.fromkeys(find_catastrophes(analysis, scene, variables=variables, codes=codes)))
    if stdin is not None and any(reads_code_from_input(command.guess) for command in analysis.commands):
        given = parse_line(stdin, variables=variables)
        fatal += tuple(find_catastrophes(given, scene, variables=variables, codes=codes))
    if fatal:
        return Opinion(
            f"{SHELL_RULE}:{fatal[0].code}",
            Decision.DENY,
            Decision.DENY,
            catastrophic=True,
            reasons=fatal,
            parts=tuple(weighing.parts),
        )
    if not analysis.commands and not analysis.assigned:
        weighing.doubt(Finding(EMPTY_REASON))
    opinion = _create_opinion(weighing, judging)
    if opinion.view is not View.WORK or not (kept := weighing.histories.refused):
        return opinion
    steps = _split_into_steps(analysis, weighing, cwd) if stdin is None and weighing.histories.may_be_split else ()
    if steps:
        return replace(opinion, steps=steps)
    if _is_one_program(analysis):
        # What git runs itself (`git bisect run`) is beside it in any call.
        return opinion
    return replace(opinion, reasons=(*opinion.reasons, Reason(KEEPS_GIT, explain_kept_repository(kept))))


def _is_one_program(analysis: ParsedLine) -> bool:
    """Return True for a line with a single command that opens no files by redirection."""
    if len(analysis.commands) != 1 or analysis.opaque or analysis.assigned:
        return False
    return all(redirect.operator == ">&" for redirect in analysis.commands[0].redirects)


def _split_into_steps(analysis: ParsedLine, weighing: LineAnalyzer, cwd: PurePath) -> tuple[CommandStep, ...]:
    """Return the steps that a line is run in, which let git change the repository in its own step."""

    def weigh(part: ParsedLine, folders: Sequence[PurePath]) -> tuple[RepositoryChanges, Sequence[PurePath]]:
        alone = LineAnalyzer(weighing.judging, folders, weighing.around, weighing.variables, weighing.codes)
        alone.line(part)
        return alone.histories, alone.places.cwds

    return plan_line_steps(analysis, (cwd,), weighing.variables, weighing.judging.environment, weigh)


def list_known_variables(judging: EvaluationContext, cwd: PurePath) -> dict[str, str]:
    """Return the variables whose value is certain, regardless of what the host has set."""
    return {
        "HOME": str(judging.home),
        "PWD": str(cwd),
        "USER": judging.user,
        "LOGNAME": judging.user,
        "TMPDIR": judging.environment.get("TMPDIR", "/tmp"),
    }


def _create_opinion(weighing: LineAnalyzer, judging: EvaluationContext) -> Opinion:
    parts = tuple(weighing.parts)
    # Only what is alike in these is compared whole.
    if len({(part.span, part.argv) for part in parts}) < len(parts):
        parts = tuple(dict.fromkeys(parts))
    if judging.sandbox is None:
        for doubt in (*weighing.unconfined, *weighing.places.secrets_searched()):
            weighing.doubt(doubt)
    if not weighing.doubts and not weighing.changes:
        return _judge_read_only(weighing, judging, parts)
    if not weighing.doubts and (reached := _judge_by_hosts(weighing, judging, parts)) is not None:
        return reached
    if judging.sandbox is not None and (weighing.sends_files or weighing.feeds_files):
        parts = tuple(replace(part, varies=True) for part in parts)
    withheld = _find_missing_needs(weighing, judging)
    if weighing.doubts or withheld:
        # Somebody's yes is for the host.
        for doubt in weighing.unconfined:
            weighing.doubt(doubt)
    if _may_leave_sandbox(weighing, withheld):
        for doubt in weighing.doubts_on_host():
            weighing.doubt(doubt)
    floors = tuple(doubt.reason for doubt in weighing.doubts if doubt.floor is not None)
    if any(doubt.floor is Decision.DENY for doubt in weighing.doubts):
        own = tuple(reason for reason in floors if reason.code == OVERWRITES_OWN)
        return Opinion(f"{SHELL_RULE}:{OVERWRITES_OWN}", Decision.DENY, Decision.DENY, reasons=own, parts=parts)
    if floors:
        # Several floors are one name together: a rule that lifts one of them lifts none of the others.
        codes = "+".join(dict.fromkeys(reason.code for reason in floors))
        floors = (*floors[:MAX_REASONS], *(reason for reason in withheld if reason.code == NOT_RESTORABLE))
        floors += find_link_reasons(parts, judging, floors)
        return Opinion(f"{SHELL_RULE}:{codes}", Decision.CONFIRM, Decision.CONFIRM, reasons=floors, parts=parts)
    narrowed = tuple(dict.fromkeys(weighing.narrowed)) if weighing.narrowable else ()
    reasons = (*(doubt.reason for doubt in weighing.doubts), *withheld)
    if reasons:
        # Where nobody is asked, in permissive mode, what loses files stays confined, as do options that nobody knows and files that cannot be told.
        codes = {reason.code for reason in reasons}
        reasons = reasons[:MAX_REASONS]
        confined = judging.sandbox is not None and codes <= CONFINED_CODES
        # Without a sandbox the project's code may set variables as well.
        unknown = UNKNOWN_CODES if judging.sandbox is None else UNKNOWN_CODES | {VARIABLE_CODE}
        route = Route.SANDBOX if confined else Route.HOST
        if not confined:
            reasons += find_link_reasons(parts, judging, reasons)
        return Opinion(
            f"{SHELL_RULE}:{reasons[0].code}",
            Decision.CONFIRM,
            route=route,
            reasons=reasons,
            parts=parts,
            narrowed=narrowed,
            changes_repositories=weighing.histories.changed,
            unknown_effects=not unknown.isdisjoint(codes),
        )
    inside = _explain_inspection(weighing)
    return Opinion(
        f"{SHELL_RULE}:effect",
        Decision.ALLOW,
        route=Route.SANDBOX,
        reasons=inside,
        parts=parts,
        narrowed=narrowed,
        view=View.WORK,
        changes_repositories=weighing.histories.changed,
        relies_on_undo=_is_undo_needed(weighing, judging),
        reach=_create_likely_reach(weighing, judging) if weighing.runs_code else None,
    )


def _may_leave_sandbox(weighing: LineAnalyzer, withheld: Sequence[Reason]) -> bool:
    """Return True if a line may run on the host although there is a sandbox: its approval is for the host.

    In permissive mode, approval is not requested for a line that can do without the host.
    """
    codes = {doubt.reason.code for doubt in weighing.doubts} | {reason.code for reason in withheld}
    if weighing.judging.sandbox is None or not codes:
        return False
    floors = any(doubt.floor is not None for doubt in weighing.doubts)
    return floors or weighing.judging.mode is not Mode.PERMISSIVE or not codes <= CONFINED_CODES


def _judge_by_hosts(
    weighing: LineAnalyzer, judging: EvaluationContext, parts: tuple[SubCommand, ...]
) -> Opinion | None:
    """Return the opinion on an ordinary change that lacks only connections to some hosts; None for any other line."""
    if not (weighing.network and weighing.hosts and weighing.by_host and _can_filter_hosts(judging)):
        return None
    assert judging.sandbox is not None
    lost = find_unrestorable_reason(weighing.lost, judging)
    if lost is not None:
        # No grant of hosts answers it.
        parts = tuple(replace(part, view=None) for part in parts)
    relies = _is_undo_needed(weighing, judging)
    hosts = tuple(weighing.hosts)
    reach = Reach(hosts, needed=True)
    known = are_hosts_allowed(hosts, judging.sandbox.hosts)
    if known and lost is None:
        return Opinion(
            f"{SHELL_RULE}:effect",
            Decision.ALLOW,
            route=Route.SANDBOX,
            parts=parts,
            view=View.WORK,
            changes_repositories=weighing.histories.changed,
            reach=reach,
            relies_on_undo=relies,
        )
    told = f"it needs the network: {', '.join(hosts)}; if approved, it runs in the sandbox and can reach no other host"
    lacking = None if known else Reason("needs_network", told)
    reasons = tuple(reason for reason in (lacking, lost) if reason is not None)
    return Opinion(
        f"{SHELL_RULE}:{reasons[0].code}",
        Decision.CONFIRM,
        route=Route.SANDBOX,
        reasons=reasons,
        parts=parts,
        view=View.WORK,
        changes_repositories=weighing.histories.changed,
        reach=reach,
        relies_on_undo=relies,
    )


def _is_undo_needed(weighing: LineAnalyzer, judging: EvaluationContext) -> bool:
    return bool(weighing.lost) and judging.undoable


def _create_likely_reach(weighing: LineAnalyzer, judging: EvaluationContext) -> Reach | None:
    """Return the hosts that a line not known to need any may connect to; None if hosts cannot be filtered."""
    return Reach(tuple(weighing.likely)) if _can_filter_hosts(judging) else None


def _can_filter_hosts(judging: EvaluationContext) -> bool:
    """Return True if the sandbox can allow only some hosts and does not allow the entire network anyway."""
    return judging.sandbox is not None and judging.sandbox.filters and not judging.sandbox.network


def _judge_read_only(weighing: LineAnalyzer, judging: EvaluationContext, parts: tuple[SubCommand, ...]) -> Opinion:
    """Return the opinion on a line that changes nothing, which says where it may run without approval."""
    view = weighing.view
    if view in (View.SHELL, View.SYSTEM):
        return Opinion(SHELL_RULE, Decision.ALLOW, parts=parts, view=view)
    if judging.sandbox is None and weighing.names_files and not weighing.located and judging.platform == "linux":
        return Opinion(SHELL_RULE, Decision.ALLOW, parts=parts, view=View.FILES)
    if judging.sandbox is None:
        return Opinion(f"{SHELL_RULE}:{NO_SANDBOX}", Decision.CONFIRM, reasons=(UNCONFINED_REASON,), parts=parts)
    inside = _explain_inspection(weighing)
    reach = _create_likely_reach(weighing, judging) if weighing.likely else None
    return Opinion(
        SHELL_RULE, Decision.ALLOW, route=Route.SANDBOX, reasons=inside, parts=parts, view=View.READ, reach=reach
    )


def _explain_inspection(weighing: LineAnalyzer) -> tuple[Reason, ...]:
    """Return a reason that tells the caller which programs see the sandbox instead of the system."""
    if not weighing.inspecting:
        return ()
    names = list(dict.fromkeys(weighing.inspecting))
    sees, it = ("sees", "it by itself") if len(names) == 1 else ("see", "them by themselves")
    told = f"{', '.join(names)} {sees} the sandbox and not the system; run {it} to see the system"
    return (Reason(INSPECTS_INSIDE, told),)


def _find_missing_needs(weighing: LineAnalyzer, judging: EvaluationContext) -> tuple[Reason, ...]:
    """Return the reasons for what an ordinary change needs and does not have."""
    if not weighing.changes:
        return ()
    if judging.sandbox is None:
        return (Reason(NO_SANDBOX, "it changes something, and there is no sandbox (`handrail doctor` says why)"),)
    if weighing.network and not judging.sandbox.network:
        return (Reason("needs_network", "it needs the network, which the sandbox does not give"),)
    reason = find_unrestorable_reason(weighing.lost, judging)
    return (reason,) if reason is not None else ()

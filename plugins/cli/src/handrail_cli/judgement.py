"""What one command line for bash is worth: reads it whole, and says what speaks against running it.

    nothing but reading what anybody may see        allow
    an ordinary change, understood wholly           allow in the sandbox; where there is none, or it lacks what is needed, confirm
    what may do harm                                confirm, each time (a floor)
    what is not understood                          confirm
    a small set that a yes cannot undo              deny, in every mode

Programs that a repository's own configuration names (`core.fsmonitor`, drivers of diffs) cannot be known without opening a file; a repository
inside the workspace is taken as one that the person trusts.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePath

from handrail import Decision, Judging, Opinion, Part, Reach, Reason, Route, View
from handrail_cli.analysis import Codes, analyse
from handrail_cli.catastrophe import catastrophes
from handrail_cli.deadly import Scene
from handrail_cli.placing import Doubt
from handrail_cli.reaching import are_allowed
from handrail_cli.restorable import NOT_RESTORABLE, not_restorable
from handrail_cli.surroundings import Surroundings, surroundings
from handrail_cli.weighing import Weighing
from handrail_cli.wrappers import reads_code

RULE = "shell"
# What Handrail judges by may not be written by what it judges.
OVERWRITES_OWN = "own_files"
EMPTY = Reason("empty", "there is no command in it")
MAX_REASONS = 12
# The code of a reason for a word that the grammar of a program does not list.
UNLISTED = "option"
# The code of a reason for which the result of an allowed command carries a note.
INSPECTS_INSIDE = "inspects_inside"
# The code of a reason for which a sandbox is needed.
NO_SANDBOX = "no_sandbox"
UNCONFINED = Reason(
    NO_SANDBOX, "it reads files through a program, and there is no sandbox (`handrail doctor` says why)"
)


def judge(
    text: str,
    judging: Judging,
    *,
    cwd: PurePath | None = None,
    stdin: str | None = None,
    around: Surroundings | None = None,
) -> Opinion:
    """The opinion on one command line for bash, run in `cwd` (default: the session's) with `stdin` on its standard input.

    `around` is what `surroundings` gives for the same circumstances, so that it need not be found out for each command.
    """
    cwd = cwd if cwd is not None else judging.cwd
    variables = known_variables(judging, cwd)
    analysis = analyse(text, variables=variables, environment=judging.environment)
    codes = Codes()
    weighing = Weighing(judging, (cwd,), around or surroundings(judging), variables, codes)
    weighing.line(analysis)
    scene = Scene(variables["PWD"], variables["HOME"], drives=judging.platform == "win32")
    fatal = tuple(dict.fromkeys(catastrophes(analysis, scene, variables=variables, codes=codes)))
    if stdin is not None and any(reads_code(command.guess) for command in analysis.commands):
        given = analyse(stdin, variables=variables)
        fatal += tuple(catastrophes(given, scene, variables=variables, codes=codes))
    if fatal:
        return Opinion(
            f"{RULE}:{fatal[0].code}",
            Decision.DENY,
            Decision.DENY,
            catastrophic=True,
            reasons=fatal,
            parts=tuple(weighing.parts),
        )
    if not analysis.commands and not analysis.assigned:
        weighing.doubt(Doubt(EMPTY))
    return _weighed(weighing, judging)


def known_variables(judging: Judging, cwd: PurePath) -> dict[str, str]:
    """The variables whose value is certain whatever the host has set."""
    return {
        "HOME": str(judging.home),
        "PWD": str(cwd),
        "USER": judging.user,
        "LOGNAME": judging.user,
        "TMPDIR": judging.environment.get("TMPDIR", "/tmp"),
    }


def _weighed(weighing: Weighing, judging: Judging) -> Opinion:
    parts = tuple(weighing.parts)
    # Only what is alike in these is compared whole.
    if len({(part.span, part.argv) for part in parts}) < len(parts):
        parts = tuple(dict.fromkeys(parts))
    if not weighing.doubts and not weighing.changes:
        return _reading(weighing, judging, parts)
    if not weighing.doubts and (reached := _by_host(weighing, judging, parts)) is not None:
        return reached
    if weighing.unconfined and (weighing.doubts or _withheld(weighing, judging)):
        # Somebody's yes is for the host.
        for doubt in weighing.unconfined:
            weighing.doubt(doubt)
    floors = tuple(doubt.reason for doubt in weighing.doubts if doubt.floor is not None)
    if any(doubt.floor is Decision.DENY for doubt in weighing.doubts):
        own = tuple(reason for reason in floors if reason.code == OVERWRITES_OWN)
        return Opinion(f"{RULE}:{OVERWRITES_OWN}", Decision.DENY, Decision.DENY, reasons=own, parts=parts)
    if floors:
        # Several floors are one name together: a rule that lifts one of them lifts none of the others.
        codes = "+".join(dict.fromkeys(reason.code for reason in floors))
        return Opinion(f"{RULE}:{codes}", Decision.CONFIRM, Decision.CONFIRM, reasons=floors[:MAX_REASONS], parts=parts)
    narrowed = tuple(dict.fromkeys(weighing.narrowed)) if weighing.narrowable else ()
    reasons = (*(doubt.reason for doubt in weighing.doubts), *_withheld(weighing, judging))[:MAX_REASONS]
    if reasons:
        # Where nobody is asked, in permissive mode, code of the workspace and what loses files run confined.
        inside = (NOT_RESTORABLE, UNLISTED) if weighing.runs_code else (NOT_RESTORABLE,)
        confined = judging.sandbox is not None and all(reason.code in inside for reason in reasons)
        route = Route.SANDBOX if confined else Route.HOST
        return Opinion(
            f"{RULE}:{reasons[0].code}",
            Decision.CONFIRM,
            route=route,
            reasons=reasons,
            parts=parts,
            narrowed=narrowed,
        )
    inside = _inspects_inside(weighing)
    return Opinion(
        f"{RULE}:effect",
        Decision.ALLOW,
        route=Route.SANDBOX,
        reasons=inside,
        parts=parts,
        narrowed=narrowed,
        view=View.WORK,
        keeps_repositories=not (weighing.works_on_history or weighing.runs_code),
        relies_on_undo=_relies_on_undo(weighing, judging),
        reach=_likely(weighing, judging) if weighing.runs_code else None,
    )


def _by_host(weighing: Weighing, judging: Judging, parts: tuple[Part, ...]) -> Opinion | None:
    """The opinion on an ordinary change that lacks nothing but connections to some hosts; None for any other."""
    if not (weighing.network and weighing.hosts and weighing.by_host and _filters(judging)):
        return None
    assert judging.sandbox is not None
    lost = not_restorable(weighing.lost, judging)
    if lost is not None:
        # No grant of hosts answers it.
        parts = tuple(replace(part, view=None) for part in parts)
    relies = _relies_on_undo(weighing, judging)
    hosts = tuple(weighing.hosts)
    reach = Reach(hosts, needed=True)
    known = are_allowed(hosts, judging.sandbox.hosts)
    if known and lost is None:
        return Opinion(
            f"{RULE}:effect",
            Decision.ALLOW,
            route=Route.SANDBOX,
            parts=parts,
            view=View.WORK,
            reach=reach,
            relies_on_undo=relies,
        )
    told = f"it needs the network: {', '.join(hosts)}; if approved, it runs in the sandbox and can reach no other host"
    lacking = None if known else Reason("needs_network", told)
    reasons = tuple(reason for reason in (lacking, lost) if reason is not None)
    return Opinion(
        f"{RULE}:{reasons[0].code}",
        Decision.CONFIRM,
        route=Route.SANDBOX,
        reasons=reasons,
        parts=parts,
        view=View.WORK,
        reach=reach,
        relies_on_undo=relies,
    )


def _relies_on_undo(weighing: Weighing, judging: Judging) -> bool:
    return bool(weighing.lost) and judging.undoable


def _likely(weighing: Weighing, judging: Judging) -> Reach | None:
    """The hosts that a line may connect to which is not known to need any."""
    return Reach(tuple(weighing.likely)) if _filters(judging) else None


def _filters(judging: Judging) -> bool:
    """True if the sandbox here can give the network to some hosts, and does not give all of it anyhow."""
    return judging.sandbox is not None and judging.sandbox.filters and not judging.sandbox.network


def _reading(weighing: Weighing, judging: Judging, parts: tuple[Part, ...]) -> Opinion:
    """The opinion on a line that changes nothing: where it may run without approval."""
    view = weighing.view
    if view in (View.SHELL, View.SYSTEM):
        return Opinion(RULE, Decision.ALLOW, parts=parts, view=view)
    if judging.sandbox is None and weighing.names_files and not weighing.located and judging.platform == "linux":
        return Opinion(RULE, Decision.ALLOW, parts=parts, view=View.FILES)
    if judging.sandbox is None:
        return Opinion(f"{RULE}:{NO_SANDBOX}", Decision.CONFIRM, reasons=(UNCONFINED,), parts=parts)
    inside = _inspects_inside(weighing)
    reach = _likely(weighing, judging) if weighing.likely else None
    return Opinion(RULE, Decision.ALLOW, route=Route.SANDBOX, reasons=inside, parts=parts, view=View.READ, reach=reach)


def _inspects_inside(weighing: Weighing) -> tuple[Reason, ...]:
    """A reason that tells the caller which programs see the sandbox in place of the system."""
    if not weighing.inspecting:
        return ()
    names = ", ".join(dict.fromkeys(weighing.inspecting))
    return (
        Reason(INSPECTS_INSIDE, f"{names} sees the sandbox and not the system; run it by itself to see the system"),
    )


def _withheld(weighing: Weighing, judging: Judging) -> tuple[Reason, ...]:
    """What an ordinary change would need that there is not."""
    if not weighing.changes:
        return ()
    if judging.sandbox is None:
        return (Reason(NO_SANDBOX, "it changes something, and there is no sandbox (`handrail doctor` says why)"),)
    if weighing.network and not judging.sandbox.network:
        return (Reason("needs_network", "it needs the network, which the sandbox does not give"),)
    reason = not_restorable(weighing.lost, judging)
    return (reason,) if reason is not None else ()

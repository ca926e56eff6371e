"""Core's own judge: what a tool declares that it does decides, by defaults that fit every tool.

    reading the screen, windows, processes, files of the workspace   allow
    input, windows, clipboard                                        allow on a private desktop, else confirm once a session
    writing in the workspace                                         confirm; allow in the mode accept_edits
    network, writing elsewhere, settings, installing, running code   confirm
    secrets, devices, start-up files, Handrail's own files           never without a rule of a person that says so

Commands for a shell are left to the evaluator that can read them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from urllib.parse import urlsplit

from handrail import paths
from handrail.invocation import Invocation, paths_in
from handrail.judging import Decision, Evaluator, Judging, Mode, Opinion, Part, Reason, Touch, Touching, strictest
from handrail.tools import Effect, Input, Read, Run, Send, Write


def _allowed(code: str) -> Opinion:
    return Opinion(f"effects:{code}", suggestion=Decision.ALLOW)


def _asked(code: str, text: str, *, remember: str | None = None) -> Opinion:
    return Opinion(f"effects:{code}", suggestion=Decision.CONFIRM, reasons=(Reason(code, text),), remember=remember)


def _kept(floor: Decision, reason: Reason) -> Opinion:
    return Opinion(f"effects:{reason.code}", suggestion=floor, floor=floor, reasons=(reason,))


HARMLESS = _allowed("harmless")
LOOKING = _allowed("looking")
READING = _allowed("read_inside")
EDITING = _allowed("write_inside")
OWN_STATE = _allowed("own_state")
PRIVATE = _allowed("private_desktop")
HANDS = _asked("desktop_input", "it acts on your own desktop", remember="desktop_input")
CLIPBOARD = _asked("clipboard", "it reads your clipboard", remember="clipboard")
NETWORK = _asked("network", "it reaches out over the network")
CODE = _asked("runs_code", "it runs code")
WRITE_INSIDE = _asked("write_inside", "it changes a file of the workspace")
READ_OUTSIDE = _asked("read_outside", "it reads a file outside the workspace")

# What may be looked at without asking. Anything else that a tool says it reads is asked about.
OPEN_TO_VIEW = frozenset(
    ("screen", "windows", "processes", "tree", "system", "monitors", "time", "session", "artifact", "history")
)
# State of the session itself, which ends with it.
OWN = frozenset(("session", "artifact", "todos"))
# What a person's hands do to a desktop, under other names.
DESKTOP = frozenset(("desktop", "windows", "clipboard"))
FILES = frozenset(("file", "folder"))


class EffectsEvaluator(Evaluator):
    """Judges by declared effects and the parameters they name; trusted."""

    name = "effects"

    async def opinion(self, invocation: Invocation, judging: Judging) -> Opinion | None:
        """Its view of the call; None when all it does is to run a shell command."""
        effects = invocation.tool.effects
        if not effects:
            return HARMLESS
        if len(effects) == 1:
            return _of_effect(effects[0], invocation, judging)
        return _combined([_of_effect(effect, invocation, judging) for effect in effects])


def _of_effect(effect: Effect, invocation: Invocation, judging: Judging) -> Opinion | None:
    judge = JUDGES.get(type(effect))
    if judge is None:
        return _asked("unknown_effect", f"it does something unknown ({type(effect).__name__.lower()} {effect.what})")
    return judge(effect, invocation, judging)


def _of_reading(effect: Effect, invocation: Invocation, judging: Judging) -> Opinion | None:
    if effect.what in FILES:
        return _of_files(effect, invocation, judging, kind="read", judge=_judge_reading)
    if effect.what in OPEN_TO_VIEW:
        return LOOKING
    if effect.what == "clipboard":
        return PRIVATE if judging.private_desktop else CLIPBOARD
    return _asked("reads", f"it reads {effect.what}")


def _of_writing(effect: Effect, invocation: Invocation, judging: Judging) -> Opinion | None:
    if effect.what in FILES:
        return _of_files(effect, invocation, judging, kind="write", judge=_judge_writing)
    if effect.what in DESKTOP:
        return PRIVATE if judging.private_desktop else HANDS
    if effect.what in OWN:
        return OWN_STATE
    return _asked("writes", f"it changes {effect.what}")


def _of_running(effect: Effect, invocation: Invocation, judging: Judging) -> Opinion | None:
    return None if effect.what == "shell" else CODE


def _of_sending(effect: Effect, invocation: Invocation, judging: Judging) -> Opinion:
    value = invocation.argument(effect)
    return _touching(NETWORK, Touch("network", _host(value) if isinstance(value, str) else ""))


def _host(url: str) -> str:
    """`host` or `host:port` of a URL; empty when it names none."""
    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").rstrip("."), parts.port
    except ValueError:
        return ""
    return f"{host}:{port}" if host and port else host


def _of_input(effect: Effect, invocation: Invocation, judging: Judging) -> Opinion:
    # Text typed into a terminal is a command: whoever can read commands judges it as one, beside this, and the stricter view counts.
    if effect.what in DESKTOP:
        return PRIVATE if judging.private_desktop else HANDS
    return _asked("input", f"it gives input to {effect.what}")


JUDGES: Mapping[type[Effect], Callable[[Effect, Invocation, Judging], Opinion | None]] = {
    Read: _of_reading,
    Write: _of_writing,
    Run: _of_running,
    Send: _of_sending,
    Input: _of_input,
}


def _of_files(
    effect: Effect,
    invocation: Invocation,
    judging: Judging,
    *,
    kind: Touching,
    judge: Callable[[str, paths.Resolved, Judging], Opinion],
) -> Opinion | None:
    if effect.arg is None:
        return _touching(_asked("unnamed_file", "it does not say which file"), Touch(kind))
    value = invocation.argument(effect)
    # A path that was left out means the session's own folder.
    named = (".",) if value is None else paths_in(value)
    found = [_resolved(text, judging) for text in named]
    view = _combined([judge(text, each, judging) for text, each in zip(named, found, strict=True)])
    return view and _touching(view, *(Touch(kind, each.real) for each in found))


def _touching(view: Opinion, *touches: Touch) -> Opinion:
    """The view with what the call touches, as the one part that it is."""
    return replace(view, parts=(Part(touches=touches),))


def judge_reading(text: str, judging: Judging) -> Opinion:
    """The view of reading the file or folder that `text` names."""
    return _judge_reading(text, _resolved(text, judging), judging)


def _judge_reading(text: str, found: paths.Resolved, judging: Judging) -> Opinion:
    if (closed := _closed(found)) is not None:
        return closed
    if (what := paths.secret(found.path) or paths.secret(found.named)) is not None:
        return _kept(Decision.DENY, Reason("secret", f"{text!r} keeps {what}"))
    if found.doubtful is not None:
        return _kept(Decision.CONFIRM, found.doubtful)
    return READING if paths.inside(found.path, judging.workspace) else READ_OUTSIDE


def judge_writing(text: str, judging: Judging) -> Opinion:
    """The view of writing the file or folder that `text` names."""
    return _judge_writing(text, _resolved(text, judging), judging)


def _resolved(text: str, judging: Judging) -> paths.Resolved:
    return paths.resolve(text, cwd=judging.cwd, home=judging.home, platform=judging.platform)


def _judge_writing(text: str, found: paths.Resolved, judging: Judging) -> Opinion:
    if (closed := _closed(found) or _out_of_reach(found, text, judging)) is not None:
        return closed
    inside = paths.inside(found.path, judging.workspace)
    if (what := paths.secret(found.path) or paths.secret(found.named)) is not None:
        return _kept(Decision.CONFIRM if inside else Decision.DENY, Reason("secret", f"{text!r} keeps {what}"))
    if found.doubtful is not None:
        return _kept(Decision.CONFIRM, found.doubtful)
    if (who := paths.autorun(found.path) or paths.autorun(found.named)) is not None:
        return _kept(Decision.CONFIRM, Reason("autorun", f"{text!r} is run or obeyed by {who} without being asked"))
    if not inside:
        return _kept(Decision.CONFIRM, Reason("write_outside", f"{text!r} is outside the workspace"))
    return EDITING if judging.mode is Mode.ACCEPT_EDITS else WRITE_INSIDE


def _closed(found: paths.Resolved) -> Opinion | None:
    """Places that are closed to reading and writing alike."""
    if found.refused is not None:
        return _kept(Decision.DENY, found.refused)
    if (what := paths.device(found.path)) is not None:
        return _kept(Decision.DENY, Reason("device", f"{str(found.path)!r} is {what}"))
    return None


def _out_of_reach(found: paths.Resolved, text: str, judging: Judging) -> Opinion | None:
    """Places that no tool writes."""
    if paths.protected(found.path, judging.protected):
        return _kept(Decision.DENY, Reason("protected", f"{text!r} is one of Handrail's own files"))
    if paths.kernel(found.path):
        return _kept(Decision.DENY, Reason("kernel", f"{text!r} is a setting of the running system"))
    if (who := paths.startup(found.path, home=judging.home)) is not None:
        return _kept(Decision.DENY, Reason("startup", f"{text!r} is run or obeyed by {who} without being asked"))
    leaves = (
        found.linked
        and paths.inside(found.named, judging.workspace)
        and not paths.inside(found.path, judging.workspace)
    )
    if leaves:
        return _kept(Decision.DENY, Reason("link_out", f"{text!r} goes through a link that leaves the workspace"))
    return None


def _combined(views: Sequence[Opinion | None]) -> Opinion | None:
    """One opinion of several: the strictest of each kind, with the reasons for it. What is left to another judge is never allowed here."""
    opinions = [view for view in views if view is not None]
    if len(views) < 2 or not opinions:
        return opinions[0] if opinions else None
    suggestion = strictest([o.suggestion for o in opinions if o.suggestion is not None])
    floor = strictest([o.floor for o in opinions if o.floor is not None])
    if suggestion is Decision.ALLOW and len(opinions) < len(views):
        return None
    weighty = [o for o in opinions if o.suggestion is suggestion or (floor is not None and o.floor is floor)]
    # A remembered yes covers what it was asked about, not what else the call does.
    words = {o.remember for o in weighty}
    return Opinion(
        weighty[0].rule,
        suggestion=suggestion,
        floor=floor,
        reasons=tuple(dict.fromkeys(reason for o in weighty for reason in o.reasons)),
        parts=_joined(opinions),
        remember=words.pop() if len(words) == 1 else None,
    )


def _joined(opinions: Sequence[Opinion]) -> tuple[Part, ...]:
    """A call of a tool that runs no command is one part, whatever it touches."""
    touches = tuple(touch for o in opinions for part in o.parts for touch in part.touches)
    return (Part(touches=touches),) if touches else ()

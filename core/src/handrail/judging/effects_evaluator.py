"""Core's own judge: what a tool declares that it does decides, by defaults that fit every tool.

    reading the screen, windows, processes, files of the workspace   allow
    working by calls of other tools, each of which is judged         allow
    fetching a public page, with nothing sent along                  allow
    input, windows, clipboard                                        allow on a private desktop, else confirm once a session
    keys into a terminal, where no evaluator reads commands          confirm, each time
    input to web pages in a browser of ours                          confirm once a session
    reading public files of the system                               allow
    writing and deleting in the workspace                            allow where undo keeps what is changed, else confirm; writing: allow in
                                                                     the mode accept_edits, too
    the same in the session's private /tmp, and where a person
    has opened a folder to sandboxed commands                        allow
    ending plan mode                                                 always confirm
    sending, downloading, writing elsewhere, settings, installing    confirm
    running code                                                     allow in the sandbox where its tool can be shut in, else confirm
    secrets, devices, start-up files, Handrail's own files, private
    addresses                                                        never without a rule of a person that says so

Commands for a shell are left to the evaluator that can read them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace

from handrail.calls.invocation import Invocation, paths_in
from handrail.files import paths
from handrail.judging import path_opinions
from handrail.judging.opinions import allowed, asked, combined, kept, touching
from handrail.judging.verdicts import Decision, Evaluator, Judging, Opinion, Reason, Route, Touch, Touching, View
from handrail.tools.contract import Delete, Effect, Input, Read, Run, Send, Write

HARMLESS = allowed("harmless")
LOOKING = allowed("looking")
STEPS = allowed("steps")
OWN_STATE = allowed("own_state")
PRIVATE = allowed("private_desktop", Touch("input", "desktop"))
LOOSENED = Opinion(
    "effects:mode",
    suggestion=Decision.CONFIRM,
    floor=Decision.CONFIRM,
    reasons=(Reason("mode", "it ends plan mode, and then things are changed"),),
)
HANDS = asked("desktop_input", "it acts on your own desktop", Touch("input", "desktop"), remember="desktop_input")
UNREAD = kept(
    Decision.CONFIRM,
    Reason(
        "terminal_unread",
        "its keys go to a terminal, and no plugin here (such as cli) reads the commands that they make",
    ),
)
PRIVATE_CLIPBOARD = allowed("private_desktop")
PAGE = asked("page_input", "it acts on web pages", Touch("input", "page"), remember="page_input")
CLIPBOARD = asked("clipboard", "it reads your clipboard", remember="clipboard")
FETCHING = allowed("fetch")
NETWORK = asked("network", "it reaches out over the network")
CODE = asked("runs_code", "it runs code")
SHUT_IN = allowed("shut_in")
ASKED_SERVER = asked("server_read", "another server is asked, and told what the call says")
SERVER = asked("server", "another server does it, and nothing here knows what it does there")

# A floor: undo does not keep the folder of a person's skills, and nothing of Handrail's own configuration is written unasked.
INSTRUCTIONS = kept(Decision.CONFIRM, Reason("skill", "it changes instructions that later sessions may follow"))

# What may be looked at without asking. Anything else that a tool says it reads is asked about.
OPEN_TO_VIEW = frozenset(
    (
        "screen",
        "page",
        "skill",
        "windows",
        "processes",
        "tree",
        "system",
        "monitors",
        "time",
        "session",
        "artifact",
        "history",
        "memory",
    )
)
# State of the session itself, which ends with it; and what it remembers, where a third party's text is asked about by itself.
OWN = frozenset(("session", "artifact", "todos", "plan", "memory"))
# What a person's hands do to a desktop, under other names.
DESKTOP = frozenset(("desktop", "windows", "clipboard"))
FILES = frozenset(("file", "folder"))


class EffectsEvaluator(Evaluator):
    """Judges by declared effects and the parameters they name; trusted."""

    name = "effects"

    def __init__(self) -> None:
        # The session's own folder, with nothing against working there, as it was when that was found out.
        self._fine: tuple[object, ...] | None = None

    async def opinion(self, invocation: Invocation, judging: Judging) -> Opinion | None:
        """Its view of the call; None when all it does is to run a shell command."""
        effects = invocation.tool.effects
        if not effects:
            return HARMLESS
        if len(effects) == 1:
            return self._of_effect(effects[0], invocation, judging)
        return combined([self._of_effect(effect, invocation, judging) for effect in effects])

    def _of_effect(self, effect: Effect, invocation: Invocation, judging: Judging) -> Opinion | None:
        if effect.what != "cwd" or effect.arg is None or invocation.argument(effect) is not None:
            return _of_effect(effect, invocation, judging)
        folder = _own_folder(judging)
        if folder is not None and folder == self._fine:
            return None
        view = _of_effect(effect, invocation, judging)
        self._fine = folder if view is None else None
        return view


def _own_folder(judging: Judging) -> tuple[object, ...] | None:
    """All that the view of working in the session's own folder depends on, with which folder it is and when it was last changed, renamed or
    replaced; None where there is none.
    """
    try:
        found = os.stat(judging.cwd)
    except (OSError, ValueError):
        return None
    here = judging.cwd, judging.home, judging.platform, judging.temporary, judging.workspace
    return *here, found.st_dev, found.st_ino, found.st_ctime_ns


def _of_effect(effect: Effect, invocation: Invocation, judging: Judging) -> Opinion | None:
    if effect.arg is not None and invocation.argument(effect) == ():
        # A tool of many actions says which of its effects this one has: none that it names nothing for.
        return HARMLESS
    judge = JUDGES.get(type(effect))
    if judge is None:
        text = f"it does something unknown ({type(effect).__name__.lower()} {effect.what})"
        return asked("unknown_effect", text, Touch("unknown"))
    return judge(effect, invocation, judging)


def _of_reading(effect: Effect, invocation: Invocation, judging: Judging) -> Opinion | None:
    if effect.what in FILES:
        return _of_files(effect, invocation, judging, kind="read", judge=path_opinions.of_reading)
    if effect.what in OPEN_TO_VIEW:
        return LOOKING
    if effect.what == "glob":
        return _of_files(effect, invocation, judging, kind="read", judge=path_opinions.of_pattern)
    if effect.what == "cwd":
        return _of_files(effect, invocation, judging, kind="read", judge=path_opinions.of_working)
    if effect.what == "clipboard":
        return PRIVATE_CLIPBOARD if judging.private_desktop else CLIPBOARD
    if effect.what == "server":
        return ASKED_SERVER
    return asked("reads", f"it reads {effect.what}")


def _of_writing(effect: Effect, invocation: Invocation, judging: Judging) -> Opinion | None:
    if effect.what in FILES:
        return _of_files(effect, invocation, judging, kind="write", judge=path_opinions.of_writing)
    if effect.what in DESKTOP:
        return PRIVATE if judging.private_desktop else HANDS
    if effect.what in OWN:
        return OWN_STATE
    if effect.what == "mode":
        return LOOSENED
    if effect.what == "skill":
        return INSTRUCTIONS
    return asked("writes", f"it changes {effect.what}")


def _of_deleting(effect: Effect, invocation: Invocation, judging: Judging) -> Opinion | None:
    if effect.what in FILES:
        return _of_files(effect, invocation, judging, kind="delete", judge=path_opinions.of_deleting)
    return OWN_STATE if effect.what in OWN else asked("deletes", f"it deletes {effect.what}")


def _of_running(effect: Effect, invocation: Invocation, judging: Judging) -> Opinion | None:
    if effect.what == "server":
        return SERVER
    if effect.what == "steps":
        return STEPS
    if effect.what == "shell":
        return None
    if invocation.tool.confinable and judging.sandbox is not None:
        return replace(touching(SHUT_IN, Touch("execute", effect.what)), route=Route.SANDBOX, view=View.WORK)
    return touching(CODE, Touch("execute", effect.what))


def _of_sending(effect: Effect, invocation: Invocation, judging: Judging) -> Opinion:
    """By every address that the call names; fetching sends nothing but the address itself."""
    plain = FETCHING if effect.what == "fetch" else NETWORK
    named = paths_in(invocation.argument(effect))
    if not named:
        return touching(NETWORK, Touch("network"))
    view = combined([_of_url(text, plain, judging) for text in named])
    assert view is not None
    return view


def _of_url(text: str, plain: Opinion, judging: Judging) -> Opinion:
    from handrail.net import urls

    found = urls.view(text, allow_private=judging.allow_private)
    view = plain
    if found.suggestion is not Decision.ALLOW:
        rule = f"effects:{found.reasons[0].code}"
        view = Opinion(rule, suggestion=found.suggestion, floor=found.floor, reasons=found.reasons)
    return touching(view, Touch("network", found.place))


def _of_input(effect: Effect, invocation: Invocation, judging: Judging) -> Opinion:
    # Text typed into a terminal is a command: whoever can read commands judges it as one, beside this, and the stricter view counts.
    if effect.what in DESKTOP and judging.focus is not None and not judging.focus.judged:
        return UNREAD
    if effect.what in DESKTOP:
        return PRIVATE if judging.private_desktop else HANDS
    if effect.what == "page":
        return PAGE
    return asked("input", f"it gives input to {effect.what}", Touch("input", effect.what))


JUDGES: Mapping[type[Effect], Callable[[Effect, Invocation, Judging], Opinion | None]] = {
    Read: _of_reading,
    Write: _of_writing,
    Delete: _of_deleting,
    Run: _of_running,
    Send: _of_sending,
    Input: _of_input,
}


def _of_files(
    effect: Effect, invocation: Invocation, judging: Judging, *, kind: Touching, judge: path_opinions.Judge
) -> Opinion | None:
    if effect.arg is None:
        return asked("unnamed_file", "it does not say which file", Touch(kind))
    value = invocation.argument(effect)
    # A path that was left out means the session's own folder.
    named = (".",) if value is None else paths_in(value)
    beginnings = [path_opinions.fixed(text) if effect.what == "glob" else text for text in named]
    seen: paths.Seen = {} if judging.seen is None else judging.seen
    found = [path_opinions.resolved(text, judging, seen, follow_last=kind != "delete") for text in beginnings]
    view = combined([judge(text, each, judging, seen) for text, each in zip(named, found, strict=True)])
    return view and touching(view, *(Touch(kind, each.real) for each in found))

"""Core evaluator: a tool's declared effects determine the opinion, with defaults that suit every tool.

    reading the screen, windows, processes, workspace files          allow
    calling other tools, where each call is judged                   allow
    fetching a public page without sending data                      allow
    input, windows, clipboard                                        allow on a private desktop, else confirm
                                                                     once a session
    keys into a terminal, if no evaluator reads commands             confirm, each time
    input to web pages in Handrail's own browser                     confirm once a session
    reading public files of the system                               allow
    writing and deleting in the workspace                            allow if undo saves what is changed, else
                                                                     confirm; writing: allow in the mode
                                                                     accept_edits, too
    the same in the session's private /tmp, and where the user
    has opened a folder to sandboxed commands                        allow
    ending plan mode                                                 always confirm
    sending, downloading, writing elsewhere, settings, installing    confirm
    running code                                                     allow in the sandbox if its tool can be
                                                                     confined, else confirm
    secrets, devices, startup files, Handrail's own files, private
    addresses                                                        never, except by a user's rule that says so

Shell commands are left to the evaluator that can parse them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace

from handrail.api.call import Invocation, list_argument_paths
from handrail.api.tool import Delete, Effect, Input, Read, Run, Send, Write
from handrail.api.verdict import (
    Access,
    AccessKind,
    Decision,
    EvaluationContext,
    Evaluator,
    Opinion,
    Reason,
    Route,
    View,
)
from handrail.fs import path_resolution
from handrail.policy import path_rules
from handrail.policy.effect_opinions import (
    allow_opinion,
    combine_opinions,
    confirm_opinion,
    floor_opinion,
    with_accesses,
)

HARMLESS = allow_opinion("harmless")
VIEW_ALLOWED = allow_opinion("looking")
NESTED_STEPS = allow_opinion("steps")
OWN_STATE = allow_opinion("own_state")
PRIVATE_DESKTOP = allow_opinion("private_desktop", Access("input", "desktop"))
PLAN_MODE_END = Opinion(
    "effects:mode",
    suggestion=Decision.CONFIRM,
    floor=Decision.CONFIRM,
    reasons=(Reason("mode", "it ends plan mode, and then things are changed"),),
)
DESKTOP_INPUT = confirm_opinion(
    "desktop_input",
    "it acts on your own desktop; approval holds for such input until the session ends",
    Access("input", "desktop"),
    remember="desktop_input",
)
UNREAD_TERMINAL = floor_opinion(
    Decision.CONFIRM,
    Reason(
        "terminal_unread",
        "its keys go to a terminal, and no plugin here (such as cli) reads the commands that they make",
    ),
)
PRIVATE_CLIPBOARD = allow_opinion("private_desktop")
PAGE_INPUT = confirm_opinion(
    "page_input",
    "it acts on web pages; approval holds for all pages until the session ends",
    Access("input", "page"),
    remember="page_input",
)
CLIPBOARD_READ = confirm_opinion(
    "clipboard", "it reads your clipboard; approval holds until the session ends", remember="clipboard"
)
PAGE_FETCH = allow_opinion("fetch")
NETWORK_ACCESS = confirm_opinion("network", "it reaches out over the network")
CODE_RUN = confirm_opinion("runs_code", "it runs code")
CONFINED_RUN = allow_opinion("shut_in")
SERVER_READ = confirm_opinion("server_read", "another server is asked, and told what the call says")
SERVER_RUN = confirm_opinion("server", "another server does it, and nothing here knows what it does there")

# A floor: undo does not keep the folder of a person's skills, and nothing of Handrail's own configuration is written unasked.
SKILL_CHANGE = floor_opinion(
    Decision.CONFIRM, Reason("skill", "it changes instructions that later sessions may follow")
)

# What may be looked at without asking. Anything else that a tool says it reads is asked about.
VIEWABLE_KINDS = frozenset(
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
OWN_STATE_KINDS = frozenset(("session", "artifact", "todos", "plan", "memory"))
# What a person's hands do to a desktop, under other names.
DESKTOP_KINDS = frozenset(("desktop", "windows", "clipboard"))
FILE_EFFECTS = frozenset(("file", "folder"))


class EffectsEvaluator(Evaluator):
    """Judges by declared effects and the parameters they name; trusted."""

    name = "effects"

    def __init__(self) -> None:
        # The session's own folder, with nothing against working there, as it was when that was found out.
        self._fine: tuple[object, ...] | None = None

    async def opinion(self, invocation: Invocation, judging: EvaluationContext) -> Opinion | None:
        """Return the opinion on the call, or None if its only effect is to run a shell command."""
        effects = invocation.tool.effects
        if not effects:
            return HARMLESS
        if len(effects) == 1:
            return self._of_effect(effects[0], invocation, judging)
        return combine_opinions([self._of_effect(effect, invocation, judging) for effect in effects])

    def _of_effect(self, effect: Effect, invocation: Invocation, judging: EvaluationContext) -> Opinion | None:
        if effect.what != "cwd" or effect.arg is None or invocation.argument(effect) is not None:
            return _evaluate_effect(effect, invocation, judging)
        folder = _folder_cache_key(judging)
        if folder is not None and folder == self._fine:
            return None
        view = _evaluate_effect(effect, invocation, judging)
        self._fine = folder if view is None else None
        return view


def _folder_cache_key(judging: EvaluationContext) -> tuple[object, ...] | None:
    """Return the cache key for opinions on working in the session's own folder, or None if there is no such folder.

    It contains everything they depend on, including the folder's identity and its last change, rename or replacement.
    """
    try:
        found = os.stat(judging.cwd)
    except (OSError, ValueError):
        return None
    here = judging.cwd, judging.home, judging.platform, judging.temporary, judging.workspace
    return *here, found.st_dev, found.st_ino, found.st_ctime_ns


def _evaluate_effect(effect: Effect, invocation: Invocation, judging: EvaluationContext) -> Opinion | None:
    if effect.arg is not None and invocation.argument(effect) == ():
        # A tool of many actions says which of its effects this one has: none that it names nothing for.
        return HARMLESS
    judge = EFFECT_EVALUATORS.get(type(effect))
    if judge is None:
        text = f"it does something unknown ({type(effect).__name__.lower()} {effect.what})"
        return confirm_opinion("unknown_effect", text, Access("unknown"))
    return judge(effect, invocation, judging)


def _evaluate_reading(effect: Effect, invocation: Invocation, judging: EvaluationContext) -> Opinion | None:
    if effect.what in FILE_EFFECTS:
        return _evaluate_files(effect, invocation, judging, kind="read", judge=path_rules.evaluate_reading)
    if effect.what in VIEWABLE_KINDS:
        return VIEW_ALLOWED
    if effect.what == "glob":
        return _evaluate_files(effect, invocation, judging, kind="read", judge=path_rules.evaluate_pattern)
    if effect.what == "cwd":
        return _evaluate_files(effect, invocation, judging, kind="read", judge=path_rules.evaluate_working_folder)
    if effect.what == "clipboard":
        return PRIVATE_CLIPBOARD if judging.private_desktop else CLIPBOARD_READ
    if effect.what == "server":
        return SERVER_READ
    return confirm_opinion("reads", f"it reads {effect.what}")


def _evaluate_writing(effect: Effect, invocation: Invocation, judging: EvaluationContext) -> Opinion | None:
    if effect.what in FILE_EFFECTS:
        return _evaluate_files(effect, invocation, judging, kind="write", judge=path_rules.evaluate_writing)
    if effect.what in DESKTOP_KINDS:
        return PRIVATE_DESKTOP if judging.private_desktop else DESKTOP_INPUT
    if effect.what in OWN_STATE_KINDS:
        return OWN_STATE
    if effect.what == "mode":
        return PLAN_MODE_END
    if effect.what == "skill":
        return SKILL_CHANGE
    return confirm_opinion("writes", f"it changes {effect.what}")


def _evaluate_deleting(effect: Effect, invocation: Invocation, judging: EvaluationContext) -> Opinion | None:
    if effect.what in FILE_EFFECTS:
        return _evaluate_files(effect, invocation, judging, kind="delete", judge=path_rules.evaluate_deleting)
    return OWN_STATE if effect.what in OWN_STATE_KINDS else confirm_opinion("deletes", f"it deletes {effect.what}")


def _evaluate_running(effect: Effect, invocation: Invocation, judging: EvaluationContext) -> Opinion | None:
    if effect.what == "server":
        return SERVER_RUN
    if effect.what == "steps":
        return NESTED_STEPS
    if effect.what == "shell":
        return None
    if invocation.tool.confinable and judging.sandbox is not None:
        return replace(with_accesses(CONFINED_RUN, Access("execute", effect.what)), route=Route.SANDBOX, view=View.WORK)
    return with_accesses(CODE_RUN, Access("execute", effect.what))


def _evaluate_sending(effect: Effect, invocation: Invocation, judging: EvaluationContext) -> Opinion:
    """Evaluate every URL that the call names; fetching sends nothing but the URL itself."""
    plain = PAGE_FETCH if effect.what == "fetch" else NETWORK_ACCESS
    named = list_argument_paths(invocation.argument(effect))
    if not named:
        return with_accesses(NETWORK_ACCESS, Access("network"))
    view = combine_opinions([_evaluate_url(text, plain, judging) for text in named])
    assert view is not None
    return view


def _evaluate_url(text: str, plain: Opinion, judging: EvaluationContext) -> Opinion:
    from handrail.net import urls

    found = urls.evaluate_url(text, allow_private=judging.allow_private)
    view = plain
    if found.suggestion is not Decision.ALLOW:
        rule = f"effects:{found.reasons[0].code}"
        view = Opinion(rule, suggestion=found.suggestion, floor=found.floor, reasons=found.reasons)
    return with_accesses(view, Access("network", found.place))


def _evaluate_input(effect: Effect, invocation: Invocation, judging: EvaluationContext) -> Opinion:
    # Text typed into a terminal is a command: whoever can read commands judges it as one, beside this, and the stricter view counts.
    if effect.what in DESKTOP_KINDS and judging.focus is not None and not judging.focus.judged:
        return UNREAD_TERMINAL
    if effect.what in DESKTOP_KINDS:
        return PRIVATE_DESKTOP if judging.private_desktop else DESKTOP_INPUT
    if effect.what == "page":
        return PAGE_INPUT
    return confirm_opinion("input", f"it gives input to {effect.what}", Access("input", effect.what))


EFFECT_EVALUATORS: Mapping[type[Effect], Callable[[Effect, Invocation, EvaluationContext], Opinion | None]] = {
    Read: _evaluate_reading,
    Write: _evaluate_writing,
    Delete: _evaluate_deleting,
    Run: _evaluate_running,
    Send: _evaluate_sending,
    Input: _evaluate_input,
}


def _evaluate_files(
    effect: Effect,
    invocation: Invocation,
    judging: EvaluationContext,
    *,
    kind: AccessKind,
    judge: path_rules.PathEvaluator,
) -> Opinion | None:
    if effect.arg is None:
        return confirm_opinion("unnamed_file", "it does not say which file", Access(kind))
    value = invocation.argument(effect)
    # A path that was left out means the session's own folder.
    named = (".",) if value is None else list_argument_paths(value)
    beginnings = [path_rules.fixed_folder(text) if effect.what == "glob" else text for text in named]
    seen: path_resolution.PathCache = {} if judging.seen is None else judging.seen
    found = [path_rules.resolve_path(text, judging, seen, follow_last=kind != "delete") for text in beginnings]
    view = combine_opinions([judge(text, each, judging, seen) for text, each in zip(named, found, strict=True)])
    return view and with_accesses(view, *(Access(kind, each.real) for each in found))

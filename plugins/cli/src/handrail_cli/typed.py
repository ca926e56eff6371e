"""Keys into a terminal, judged as the commands that they are. A terminal is the host: nothing there runs in a sandbox."""

from __future__ import annotations

from dataclasses import replace

from handrail import Decision, Focus, Judging, Opinion, Reason, View
from handrail_cli.judgement import NO_SANDBOX, judge

RULE = "shell:terminal"
ON_HOST = Reason("terminal_host", "it runs in a terminal, on the host and in no sandbox")
# The views of commands that read no file: a terminal gives them what they would see anyway.
OPEN_VIEWS = (View.SHELL, View.SYSTEM)


def judge_typed(focus: Focus, judging: Judging) -> Opinion | None:
    """The opinion on what the keys of a call would have a terminal's shell do; None when they run nothing and nothing is unknown.

    It is asked about each time: what a yes was given to was this line in this terminal, which the call alone does not say.
    """
    circumstances = replace(judging, sandbox=None)
    # What stands on the line is looked at too, so that a catastrophe is never one key away.
    text = "\n".join((*focus.lines, *([focus.rest] if focus.rest else [])))
    found = judge(text, circumstances, cwd=focus.cwd) if text.strip() else None
    if found is not None and found.catastrophic:
        return replace(found, reasons=_unplaced(found.reasons))
    runs = "\n".join(focus.lines)
    ran = judge(runs, circumstances, cwd=focus.cwd) if runs.strip() else None
    if focus.unknown or (ran is not None and not _allowed(ran)):
        reasons = (*focus.unknown, *_unplaced(ran.reasons if ran else ()))
        floor = Decision.DENY if ran is not None and ran.floor is Decision.DENY else Decision.CONFIRM
        parts = ran.parts if ran else ()
        return Opinion(RULE, suggestion=floor, floor=floor, reasons=reasons or (ON_HOST,), parts=parts)
    return Opinion(RULE, suggestion=Decision.ALLOW, parts=ran.parts) if ran is not None else None


def _allowed(opinion: Opinion) -> bool:
    allows = opinion.suggestion is Decision.ALLOW and opinion.floor in (None, Decision.ALLOW)
    return allows and opinion.view in OPEN_VIEWS


def _unplaced(reasons: tuple[Reason, ...]) -> tuple[Reason, ...]:
    """Reasons without their places, which are in the line and not in an argument, and in the words of a terminal."""
    return tuple(ON_HOST if reason.code == NO_SANDBOX else replace(reason, span=None) for reason in reasons)

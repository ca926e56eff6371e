"""Judgment of keys typed into a terminal, and of text for a running command, as the commands they are.

Both act on the host: nothing there runs in a sandbox.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from handrail import Decision, EvaluationContext, KeyboardTarget, Opinion, Reason, SubCommand, View
from handrail_cli.shell.bash.variable_rules import is_tame_variable
from handrail_cli.shell.verdict import MAX_REASONS, NO_SANDBOX, UNLISTED_CODE, judge_line

TERMINAL_RULE = "shell:terminal"
ON_HOST_REASON = Reason("terminal_host", "it runs in a terminal, on the host and in no sandbox")
RUNS_CODE_REASON = Reason("written_code", "the process that it is written to runs code on the host, in no sandbox")
WITH_EARLIER_REASON = Reason("written_before", "it is judged together with all that was written to the process before")
# The codes of reasons for what may change how an interactive shell reads later lines, and for files that only its variables name.
LASTING_CODES = frozenset(("variable", UNLISTED_CODE, "unknown_path"))
# The views of commands that read no file: a terminal gives them what they would see anyway.
OPEN_VIEWS = (View.SHELL, View.SYSTEM)


def judge_typed_keys(focus: KeyboardTarget, judging: EvaluationContext) -> Opinion | None:
    """Return the opinion on what the keys of a call would have a terminal's shell do.

    None if they run nothing and nothing is unknown. Approval is required each time: it was given for this line in this
    terminal, which the call alone does not specify.
    """
    circumstances = replace(judging, sandbox=None)
    # What stands on the line is looked at too, so that a catastrophe is never one key away.
    text = "\n".join((*focus.lines, *([focus.rest] if focus.rest else [])))
    found = judge_line(text, circumstances, cwd=focus.cwd) if text.strip() else None
    if found is not None and found.catastrophic:
        return replace(found, reasons=_remove_spans(found.reasons))
    runs = "\n".join(focus.lines)
    ran = judge_line(runs, circumstances, cwd=focus.cwd) if runs.strip() else None
    if focus.unknown or (ran is not None and not _is_allowed_openly(ran)):
        reasons = (*focus.unknown, *_remove_spans(ran.reasons if ran else ()))
        floor = Decision.DENY if ran is not None and ran.floor is Decision.DENY else Decision.CONFIRM
        parts = ran.parts if ran else ()
        return Opinion(TERMINAL_RULE, suggestion=floor, floor=floor, reasons=reasons or (ON_HOST_REASON,), parts=parts)
    return Opinion(TERMINAL_RULE, suggestion=Decision.ALLOW, parts=ran.parts) if ran is not None else None


def judge_written_text(focus: KeyboardTarget, read: Callable[[str], Opinion]) -> Opinion:
    """Return the opinion on all text given to a running command, including that of this call. `read` judges one text.

    Each line is also judged separately: a program that the shell started may have read the lines before it, and their
    quotes. Code that would run in the sandbox of `execute_cli` runs here without one, and requires approval in every
    mode.
    """
    text = "\n".join((*focus.lines, focus.rest or ""))
    whole = read(text)
    lines = [line for line in text.split("\n") if line.strip()]
    opinions = [whole, *(map(read, lines) if len(lines) > 1 else ())]
    for opinion in opinions:
        if opinion.catastrophic:
            return replace(opinion, reasons=_move_reasons(opinion, whole, focus.earlier), narrowed=())
    parts = tuple(
        replace(part, span=_move_span(part.span, focus.earlier))
        for part in whole.parts
        if part.span is None or part.span[1] >= focus.earlier
    )
    floored = [opinion for opinion in opinions if opinion.floor not in (None, Decision.ALLOW)]
    reasons = [
        *focus.unknown,
        *(reason for each in floored for reason in _move_reasons(each, whole, focus.earlier)),
        *(replace(reason, span=None) for each in opinions for reason in each.reasons if reason.code in LASTING_CODES),
        *([RUNS_CODE_REASON] if any(map(_is_code_execution, whole.parts)) else ()),
    ]
    if not reasons:
        return replace(whole, reasons=_move_reasons(whole, whole, focus.earlier), parts=parts, narrowed=())
    floor = Decision.DENY if any(opinion.floor is Decision.DENY for opinion in floored) else Decision.CONFIRM
    rule = _combine_rules(floored, reasons)
    told = _deduplicate_reasons(reasons) + ((WITH_EARLIER_REASON,) if focus.earlier else ())
    return Opinion(rule, floor, floor, reasons=told, parts=parts)


def _is_code_execution(part: SubCommand) -> bool:
    return any(touch.kind == "execute" for touch in part.touches)


def _combine_rules(floored: Sequence[Opinion], reasons: Sequence[Reason]) -> str:
    """Return the combined name of several floors: a rule that lifts one of them lifts none of the others."""
    codes = [code for opinion in floored for code in opinion.rule.partition(":")[2].split("+")]
    return f"shell:{'+'.join(dict.fromkeys((*codes, *(reason.code for reason in reasons))))}"


def _deduplicate_reasons(reasons: Sequence[Reason]) -> tuple[Reason, ...]:
    """Return the reasons, each text once."""
    return tuple({reason.text: reason for reason in reversed(reasons)}.values())[::-1][:MAX_REASONS]


def _move_reasons(opinion: Opinion, whole: Opinion, earlier: int) -> tuple[Reason, ...]:
    """Return an opinion's reasons, with their positions in the text of this call if they have one there."""
    return tuple(
        replace(reason, span=_move_span(reason.span, earlier) if opinion is whole else None)
        for reason in opinion.reasons
    )


def _move_span(span: tuple[int, int] | None, earlier: int) -> tuple[int, int] | None:
    return (span[0] - earlier, span[1] - earlier) if span is not None and span[0] >= earlier else None


def _is_allowed_openly(opinion: Opinion) -> bool:
    allows = opinion.suggestion is Decision.ALLOW and opinion.floor in (None, Decision.ALLOW)
    return allows and opinion.view in OPEN_VIEWS and not any(map(_sets_obeyed_variable, opinion.parts))


def _sets_obeyed_variable(part: SubCommand) -> bool:
    """Return True for a subcommand that gives later commands a variable that programs may obey.

    Commands of a terminal keep its environment.
    """
    return any(
        touch.kind == "session"
        and touch.what != "PWD"
        and not is_tame_variable(touch.what, _find_assigned_value(touch.what, part))
        for touch in part.touches
    )


def _find_assigned_value(variable: str, part: SubCommand) -> str:
    """Return the value that a subcommand sets a variable to; empty if its words do not name one."""
    assigned = (word.partition("=") for word in part.argv)
    return next((value for name, _, value in assigned if name.removesuffix("+") == variable), "")


def _remove_spans(reasons: tuple[Reason, ...]) -> tuple[Reason, ...]:
    """Return reasons worded for a terminal, without their positions, which are in the line and not in an argument."""
    return tuple(ON_HOST_REASON if reason.code == NO_SANDBOX else replace(reason, span=None) for reason in reasons)

"""Wording of the core effects evaluator's opinions, and their combination into one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from handrail.api.verdict import Access, Decision, Opinion, Reason, Route, SubCommand, strictest_decision


def allow_opinion(code: str, *touches: Access, relies_on_undo: bool = False) -> Opinion:
    """Return an opinion that allows the call; with `relies_on_undo` only if undo saves what the call changes."""
    return Opinion(
        f"effects:{code}",
        suggestion=Decision.ALLOW,
        parts=build_sub_commands(touches, harmless=True),
        relies_on_undo=relies_on_undo,
    )


def confirm_opinion(code: str, text: str, *touches: Access, remember: str | None = None) -> Opinion:
    """Return an opinion that requires confirmation, unless a rule or a grant decides."""
    reason = Reason(code, text)
    return Opinion(
        f"effects:{code}",
        suggestion=Decision.CONFIRM,
        reasons=(reason,),
        parts=build_sub_commands(touches),
        remember=remember,
    )


def floor_opinion(floor: Decision, reason: Reason) -> Opinion:
    """Return an opinion with a floor, which only a rule that names it can go below."""
    return Opinion(f"effects:{reason.code}", suggestion=floor, floor=floor, reasons=(reason,))


def with_accesses(view: Opinion, *touches: Access) -> Opinion:
    """Return the opinion with what the call accesses, as its only part."""
    return replace(view, parts=build_sub_commands(touches, harmless=_is_allowed(view.suggestion, view.floor)))


def build_sub_commands(touches: Sequence[Access], *, harmless: bool = False) -> tuple[SubCommand, ...]:
    """Return everything that a call accesses as one part, for a tool that runs no command; empty if nothing."""
    return (SubCommand(touches=tuple(touches), harmless=harmless),) if touches else ()


def _is_allowed(suggestion: Decision | None, floor: Decision | None) -> bool:
    return suggestion is Decision.ALLOW and floor in (None, Decision.ALLOW)


def combine_opinions(views: Sequence[Opinion | None]) -> Opinion | None:
    """Combine opinions into one: the strictest of each kind, with the reasons for it.

    Returns None if there are none, or if the combined suggestion would be an allow while one opinion is missing (None):
    what is left to another evaluator is never allowed here.
    """
    opinions = [view for view in views if view is not None]
    if len(views) < 2 or not opinions:
        return opinions[0] if opinions else None
    suggestion = strictest_decision([o.suggestion for o in opinions if o.suggestion is not None])
    floor = strictest_decision([o.floor for o in opinions if o.floor is not None])
    if suggestion is Decision.ALLOW and len(opinions) < len(views):
        return None
    weighty = [o for o in opinions if o.suggestion is suggestion or (floor is not None and o.floor is floor)]
    # A remembered yes covers what it was asked about, not what else the call does.
    words = {o.remember for o in weighty}
    return Opinion(
        weighty[0].rule,
        suggestion=suggestion,
        floor=floor,
        route=Route.SANDBOX if any(o.route is Route.SANDBOX for o in opinions) else Route.HOST,
        reasons=tuple(dict.fromkeys(reason for o in weighty for reason in o.reasons)),
        parts=build_sub_commands(
            [touch for o in opinions for each in o.parts for touch in each.touches],
            harmless=_is_allowed(suggestion, floor),
        ),
        remember=words.pop() if len(words) == 1 else None,
        view=next((o.view for o in opinions if o.view is not None), None),
        changes_repositories=tuple(dict.fromkeys(place for o in opinions for place in o.changes_repositories)),
        relies_on_undo=any(o.relies_on_undo for o in opinions),
    )

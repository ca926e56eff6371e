"""How core's own judge of effects words its views, and makes one of several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from handrail.judging.verdicts import Decision, Opinion, Part, Reason, Route, Touch, strictest


def allowed(code: str, *touches: Touch, relies_on_undo: bool = False) -> Opinion:
    """A view that lets the call pass; with `relies_on_undo` only if undo keeps what the call changes."""
    return Opinion(
        f"effects:{code}",
        suggestion=Decision.ALLOW,
        parts=part(touches, harmless=True),
        relies_on_undo=relies_on_undo,
    )


def asked(code: str, text: str, *touches: Touch, remember: str | None = None) -> Opinion:
    """A view that a person should be asked, unless a rule or a grant answers for them."""
    reason = Reason(code, text)
    return Opinion(
        f"effects:{code}", suggestion=Decision.CONFIRM, reasons=(reason,), parts=part(touches), remember=remember
    )


def kept(floor: Decision, reason: Reason) -> Opinion:
    """A view that only a rule which names it goes below."""
    return Opinion(f"effects:{reason.code}", suggestion=floor, floor=floor, reasons=(reason,))


def touching(view: Opinion, *touches: Touch) -> Opinion:
    """The view with what the call touches, as the one part that it is."""
    return replace(view, parts=part(touches, harmless=_lets_pass(view.suggestion, view.floor)))


def part(touches: Sequence[Touch], *, harmless: bool = False) -> tuple[Part, ...]:
    """A call of a tool that runs no command is one part, whatever it touches."""
    return (Part(touches=tuple(touches), harmless=harmless),) if touches else ()


def _lets_pass(suggestion: Decision | None, floor: Decision | None) -> bool:
    return suggestion is Decision.ALLOW and floor in (None, Decision.ALLOW)


def combined(views: Sequence[Opinion | None]) -> Opinion | None:
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
        route=Route.SANDBOX if any(o.route is Route.SANDBOX for o in opinions) else Route.HOST,
        reasons=tuple(dict.fromkeys(reason for o in weighty for reason in o.reasons)),
        parts=part(
            [touch for o in opinions for each in o.parts for touch in each.touches],
            harmless=_lets_pass(suggestion, floor),
        ),
        remember=words.pop() if len(words) == 1 else None,
        view=next((o.view for o in opinions if o.view is not None), None),
        changes_repositories=tuple(dict.fromkeys(place for o in opinions for place in o.changes_repositories)),
        relies_on_undo=any(o.relies_on_undo for o in opinions),
    )

"""Keys that a planning model never presses, in whatever spelling and on whatever platform."""

from __future__ import annotations

from collections.abc import Iterator

from handrail import Decision, Evaluator, InvalidArguments, Invocation, Judging, Opinion, Reason, Tool
from handrail.desktops.chords import Chord, blocking, chord_of

# Launchers and secure screens, and what closes a window unasked.
BLOCKED = ("super+r", "ctrl+alt+delete", "alt+f4")
PLANS = "plan_actions"


class BlockedKeys(Evaluator):
    """Refuses some chords to calls that are part of what a backend planned; a person may press them, and so may other agents."""

    name = "computer_use"

    def applies(self, tool: Tool) -> bool:
        """Only what gives input."""
        return tool.inputs

    async def opinion(self, invocation: Invocation, judging: Judging) -> Opinion | None:
        """A refusal, for keys that hold a blocked chord."""
        if not any(PLANS in above.tool.requires for above in _above(invocation)):
            return None
        chord = _chord(invocation)
        if chord is None or blocking(chord, BLOCKED) is None:
            return None
        reason = Reason("blocked_keys", f"the keys {chord} are never pressed for a model that plans")
        return Opinion("computer_use:blocked_keys", floor=Decision.DENY, reasons=(reason,))


def _above(invocation: Invocation) -> Iterator[Invocation]:
    while invocation.parent is not None:
        invocation = invocation.parent
        yield invocation


def _chord(invocation: Invocation) -> Chord | None:
    given = invocation.params.__dict__
    keys = [*([given["key"]] if given.get("key") else []), *(given.get("keys") or ())]
    try:
        return chord_of(keys) if keys else None
    except InvalidArguments:
        # Nobody can press it, and the tool says so.
        return None

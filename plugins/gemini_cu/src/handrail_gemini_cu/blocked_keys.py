"""Keys that a planning model never presses, in any spelling and on any platform."""

from __future__ import annotations

from collections.abc import Iterator

from handrail import Decision, EvaluationContext, Evaluator, InvalidArguments, Invocation, Opinion, Reason, Tool
from handrail.desktop.key_chords import KeyChord, find_blocked_chord, parse_chord

# Launchers and secure screens, and what closes a window unasked.
BLOCKED_CHORDS = ("super+r", "ctrl+alt+delete", "alt+f4")
PLANNING_CAPABILITY = "plan_actions"


class BlockedKeys(Evaluator):
    """Evaluator that denies certain chords to calls planned by a backend; users and other agents may press them."""

    name = "computer_use"

    def applies(self, tool: Tool) -> bool:
        """Return True for tools that produce input."""
        return tool.inputs

    async def opinion(self, invocation: Invocation, judging: EvaluationContext) -> Opinion | None:
        """Deny keys that contain a blocked chord."""
        if not any(PLANNING_CAPABILITY in above.tool.requires for above in _iter_parents(invocation)):
            return None
        chord = _parse_chord(invocation)
        if chord is None or find_blocked_chord(chord, BLOCKED_CHORDS) is None:
            return None
        reason = Reason("blocked_keys", f"the keys {chord} are never pressed for a model that plans")
        return Opinion("computer_use:blocked_keys", floor=Decision.DENY, reasons=(reason,))


def _iter_parents(invocation: Invocation) -> Iterator[Invocation]:
    while invocation.parent is not None:
        invocation = invocation.parent
        yield invocation


def _parse_chord(invocation: Invocation) -> KeyChord | None:
    given = invocation.params.__dict__
    keys = [*([given["key"]] if given.get("key") else []), *(given.get("keys") or ())]
    try:
        return parse_chord(keys) if keys else None
    except InvalidArguments:
        # Nobody can press it, and the tool says so.
        return None

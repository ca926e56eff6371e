"""From what UI-TARS says to calls of tools, and from what became of them to what it is told."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from handrail import Plan, PlannedAction, Turn
from handrail_vision_vlm.places import Unreadable
from handrail_vision_vlm.tars.grammar import Move, read

# A point in the model's numbers, as pixels of the screen.
At = Callable[[float, float], tuple[int, int]]

HANDS = "execute_gui"
# Actions of the mouse at one place.
AT_PLACE: Mapping[str, str] = {
    "click": "click",
    "left_single": "click",
    "left_double": "double_click",
    "right_single": "right_click",
    "hover": "move_mouse",
    "move_to": "move_mouse",
    "mouse_down": "mouse_down",
    "mouse_up": "mouse_up",
}
DIRECTIONS = frozenset({"up", "down", "left", "right"})
# As the prompt says, and at most.
WAIT_S, LONGEST_WAIT_S = 5, 60
CARRIED_OUT = "The action was carried out."
ASKS = "The model asks for your help. What should it do?"
LONGEST_QUESTION = 2_000


def plan_of(answer: str, at: At) -> Plan:
    """What to do next; `Unreadable` where an action is not whole, `OutOfRange` for a place outside the picture. `ref` is the answer."""
    words = read(answer)
    question = words.thought[:LONGEST_QUESTION] or ASKS
    actions = tuple(
        action for number, move in enumerate(words.moves) for action in _actions(str(number), move, at, question)
    )
    last = words.moves[-1]
    if last.verb == "finished":
        # What is still to be done is looked at before it is believed.
        return Plan(actions, last.args.get("content") or words.thought, done=not actions, ref=answer)
    return Plan(actions, words.thought, ref=answer)


def said_before(turn: Turn) -> str:
    """What the model said in an earlier turn, in its own words."""
    return turn.plan.ref if isinstance(turn.plan.ref, str) else f"Thought: {turn.plan.text}"


def told_after(turn: Turn) -> str:
    """What became of an earlier turn."""
    failed = [f"The action failed: {result['error']['message']}" for result in turn.results if not result.ok]
    answers = [each["answer"] for result in turn.results if result.ok for each in result.get("answers", ())]
    answered = [f"The user answers: {'nothing' if answer is None else answer}" for answer in answers]
    return "\n".join(filter(None, (*(failed or answered or [CARRIED_OUT]), turn.note)))


def _actions(id: str, move: Move, at: At, question: str) -> Iterator[PlannedAction]:
    def hands(action: str, **args: Any) -> PlannedAction:
        return PlannedAction(HANDS, {"action": action, **args}, id=id, name=move.verb)

    match move.verb:
        case "finished":
            return
        case "call_user":
            asked = move.args.get("content", "").strip()[:LONGEST_QUESTION] or question
            yield PlannedAction("ask_user", {"questions": [{"question": asked}]}, id=id, name=move.verb)
        case "wait":
            told = move.args.get("time", "").strip()
            seconds = min(max(int(told), 1), LONGEST_WAIT_S) if told.isdecimal() else WAIT_S
            yield PlannedAction("wait", {"seconds": seconds}, id=id, name=move.verb)
        case "drag" | "select":
            start, end = _there(move.start, at), _there(move.end, at)
            yield hands("drag", **start, to_x=end["x"], to_y=end["y"])
        case "scroll":
            direction = move.args.get("direction", "").lower()
            if direction not in DIRECTIONS:
                raise Unreadable(f"{direction!r} is no direction")
            yield hands("scroll", direction=direction, **(_there(move.start, at) if move.start else {}))
        case "hotkey" | "press":
            keys = (move.args.get("key") or move.args.get("hotkey") or "").split()
            if not keys:
                raise Unreadable("no key is named")
            yield hands("press_key", key=keys[0]) if len(keys) == 1 else hands("hotkey", keys=keys)
        case "type":
            yield from _typed(move, hands)
        case verb if verb in AT_PLACE:
            yield hands(AT_PLACE[verb], **_there(move.start, at))
        case _:
            why = f"there is no action {move.verb!r} here"
            yield PlannedAction(HANDS, {}, id=id, name=move.verb, problem=why)


def _typed(move: Move, hands: Callable[..., PlannedAction]) -> Iterator[PlannedAction]:
    """Text, and Enter where it ends in a new line."""
    content = move.args.get("content", "")
    text = content.removesuffix("\n")
    if text:
        yield hands("type", text=text)
    if text != content:
        yield hands("press_key", key="enter")
    elif not text:
        raise Unreadable("there is no text to type")


def _there(place: tuple[float, float] | None, at: At) -> dict[str, int]:
    if place is None:
        raise Unreadable("no place is named")
    x, y = at(*place)
    return {"x": x, "y": y}

"""Conversion of UI-TARS answers to tool calls, and of their results to messages for the model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from handrail import Plan, PlannedAction, Turn
from handrail_vision_vlm.place_parser import UnreadableAnswer
from handrail_vision_vlm.tars.grammar import ModelAction, parse_tars_answer

# A point in the model's numbers, as pixels of the screen.
PointMapper = Callable[[float, float], tuple[int, int]]

GUI_TOOL = "execute_gui"
# Actions of the mouse at one place.
POINTER_ACTIONS: Mapping[str, str] = {
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
WAIT_S, MAX_WAIT_S = 5, 60
CARRIED_OUT = "The action was carried out."
HELP_QUESTION = "The model asks for your help. What should it do?"
MAX_QUESTION = 2_000


def build_plan(answer: str, at: PointMapper) -> Plan:
    """Return the next actions; `ref` is the answer.

    Raises `UnreadableAnswer` if an action is incomplete, `OutOfRange` for a place outside the picture.
    """
    words = parse_tars_answer(answer)
    question = words.thought[:MAX_QUESTION] or HELP_QUESTION
    actions = tuple(
        action
        for number, move in enumerate(words.moves)
        for action in _iter_planned_actions(str(number), move, at, question)
    )
    last = words.moves[-1]
    if last.verb == "finished":
        # What is still to be done is looked at before it is believed.
        return Plan(actions, last.args.get("content") or words.thought, done=not actions, ref=answer)
    return Plan(actions, words.thought, ref=answer)


def get_earlier_answer(turn: Turn) -> str:
    """Return the model's answer in an earlier turn, verbatim if available."""
    return turn.plan.ref if isinstance(turn.plan.ref, str) else f"Thought: {turn.plan.text}"


def describe_outcome(turn: Turn) -> str:
    """Describe the outcome of an earlier turn."""
    failed = [f"The action failed: {result['error']['message']}" for result in turn.results if not result.ok]
    answers = [each["answer"] for result in turn.results if result.ok for each in result.get("answers", ())]
    answered = [f"The user answers: {'nothing' if answer is None else answer}" for answer in answers]
    return "\n".join(filter(None, (*(failed or answered or [CARRIED_OUT]), turn.note)))


def _iter_planned_actions(id: str, move: ModelAction, at: PointMapper, question: str) -> Iterator[PlannedAction]:
    def hands(action: str, **args: Any) -> PlannedAction:
        return PlannedAction(GUI_TOOL, {"action": action, **args}, id=id, name=move.verb)

    match move.verb:
        case "finished":
            return
        case "call_user":
            asked = move.args.get("content", "").strip()[:MAX_QUESTION] or question
            yield PlannedAction("ask_user", {"questions": [{"question": asked}]}, id=id, name=move.verb)
        case "wait":
            told = move.args.get("time", "").strip()
            seconds = min(max(int(told), 1), MAX_WAIT_S) if told.isdecimal() else WAIT_S
            yield PlannedAction("wait", {"seconds": seconds}, id=id, name=move.verb)
        case "drag" | "select":
            start, end = _to_screen_point(move.start, at), _to_screen_point(move.end, at)
            yield hands("drag", **start, to_x=end["x"], to_y=end["y"])
        case "scroll":
            direction = move.args.get("direction", "").lower()
            if direction not in DIRECTIONS:
                raise UnreadableAnswer(f"{direction!r} is no direction")
            yield hands("scroll", direction=direction, **(_to_screen_point(move.start, at) if move.start else {}))
        case "hotkey" | "press":
            keys = (move.args.get("key") or move.args.get("hotkey") or "").split()
            if not keys:
                raise UnreadableAnswer("no key is named")
            yield hands("press_key", key=keys[0]) if len(keys) == 1 else hands("hotkey", keys=keys)
        case "type":
            yield from _iter_typing_actions(move, hands)
        case verb if verb in POINTER_ACTIONS:
            yield hands(POINTER_ACTIONS[verb], **_to_screen_point(move.start, at))
        case _:
            why = f"there is no action {move.verb!r} here"
            yield PlannedAction(GUI_TOOL, {}, id=id, name=move.verb, problem=why)


def _iter_typing_actions(move: ModelAction, hands: Callable[..., PlannedAction]) -> Iterator[PlannedAction]:
    """Text, and Enter where it ends in a new line."""
    content = move.args.get("content", "")
    text = content.removesuffix("\n")
    if text:
        yield hands("type", text=text)
    if text != content:
        yield hands("press_key", key="enter")
    elif not text:
        raise UnreadableAnswer("there is no text to type")


def _to_screen_point(place: tuple[float, float] | None, at: PointMapper) -> dict[str, int]:
    if place is None:
        raise UnreadableAnswer("no place is named")
    x, y = at(*place)
    return {"x": x, "y": y}

"""What UI-TARS says is read as the vendor's own package reads it, in both dialects, and more forgivingly where that one gives up."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import example, given, settings, strategies as st
from ui_tars.action_parser import parse_action_to_structure_output, parse_xml_action_v2, smart_resize

from handrail import OutOfRange, Plan, Size, ToolResult, Turn
from handrail.api.coordinates import TO_1000, compute_smart_size
from handrail.tools.builtin import wait
from handrail_gui.tools.screen_tools import execute_gui
from handrail_session.ask_user_tool import ask_user
from handrail_vision_vlm.place_parser import UnreadableAnswer
from handrail_vision_vlm.tars.action_plan import build_plan, describe_outcome
from handrail_vision_vlm.tars.grammar import ModelAction, parse_tars_answer
from handrail_vision_vlm.tars.prompts import FUNCTIONS

SIZE = Size(1280, 800)

number = st.integers(0, 1000)
point = st.tuples(number, number)
# The package takes quotes, backslashes and brackets at the end of a line for its own; those are tried apart.
plain = st.text(
    st.characters(codec="utf-8", exclude_categories=["C", "Zl", "Zp"], exclude_characters="'\"\\()\n"), min_size=1
)
words = plain.map(str.strip).filter(lambda text: bool(text) and "Action:" not in text and "point" not in text)
keys = st.lists(st.sampled_from(["ctrl", "shift", "c", "f5", "pagedown", "enter"]), min_size=1, max_size=3).map(
    " ".join
)
direction = st.sampled_from(["up", "down", "left", "right"])
at_place = st.sampled_from(["click", "left_double", "right_single"])


def box(at: tuple[int, int], name: str = "start_box") -> str:
    return f"{name}='({at[0]},{at[1]})'"


def spot(at: tuple[int, int], name: str = "point") -> str:
    return f"{name}='<point>{at[0]} {at[1]}</point>'"


def action_in(place: Any, start: str, end: str) -> st.SearchStrategy[str]:
    """One action in a dialect: `place` writes a place, under these names where there are two."""
    return st.one_of(
        st.builds(lambda verb, at: f"{verb}({place(at)})", at_place, point),
        st.builds(lambda a, b: f"drag({place(a, start)}, {place(b, end)})", point, point),
        st.builds(lambda at, way: f"scroll({place(at)}, direction='{way}')", point, direction),
        st.builds(lambda held: f"hotkey(key='{held}')", keys),
        st.builds(lambda text: f"type(content='{text}')", words),
        st.builds(lambda text: f"finished(content='{text}')", words),
        st.sampled_from(["wait()", "call_user()"]),
    )


action = st.one_of(action_in(box, "start_box", "end_box"), action_in(spot, "start_point", "end_point"))


def vendor(answer: str, kind: str) -> list[dict[str, Any]]:
    return parse_action_to_structure_output(answer, 1000, SIZE.height, SIZE.width, model_type=kind)


def middles(inputs: dict[str, str], name: str) -> tuple[float, float] | None:
    """The middle of one of the package's boxes, which it gives as text, in ratios."""
    if name not in inputs:
        return None
    x1, y1, x2, y2 = ast.literal_eval(inputs[name])
    return (x1 + x2) / 2, (y1 + y2) / 2


def ratio(at: tuple[float, float] | None, wide: float, high: float) -> Any:
    return None if at is None else pytest.approx((at[0] / wide, at[1] / high))


@pytest.mark.parametrize("kind", ["doubao", "qwen25vl"])
@settings(deadline=None)
@given(thought=words, said=action)
@example(thought="a (1, 2) b", said="click(start_box='(0,0)')")
def test_thoughts_verbs_places_and_texts_are_those_that_the_vendors_package_reads(
    kind: str, thought: str, said: str
) -> None:
    answer = f"Thought: {thought}\nAction: {said}"
    (theirs,) = vendor(answer, kind)
    ours = parse_tars_answer(answer)
    (move,) = ours.moves
    seen = compute_smart_size(SIZE)
    wide, high = (seen.width, seen.height) if kind == "qwen25vl" else (1000, 1000)
    assert ours.thought == theirs["thought"]
    assert move.verb == theirs["action_type"]
    inputs = theirs["action_inputs"]
    assert middles(inputs, "start_box") == ratio(move.start, wide, high)
    assert middles(inputs, "end_box") == ratio(move.end, wide, high)
    texts = {name: text for name, text in inputs.items() if name not in ("start_box", "end_box")}
    assert {name: text.lstrip() for name, text in move.args.items()} == texts


@settings(deadline=None)
@given(first=action, second=action)
def test_several_actions_are_read_in_order(first: str, second: str) -> None:
    answer = f"Thought: both\nAction: {first}\n\n{second}"
    assert [move.verb for move in parse_tars_answer(answer).moves] == [
        each["action_type"] for each in vendor(answer, "doubao")
    ]


@settings(deadline=None)
@given(width=st.integers(1, 5000), height=st.integers(1, 5000))
def test_pictures_are_sized_as_the_vendors_package_sizes_them(width: int, height: int) -> None:
    if max(width, height) / min(width, height) > 200:
        with pytest.raises(OutOfRange):
            compute_smart_size(Size(width, height))
    else:
        high, wide = smart_resize(height, width)
        seen = compute_smart_size(Size(width, height))
        # The package may round a side of a very thin picture to nothing.
        assert (seen.width, seen.height) == (max(28, wide), max(28, high))


@settings(deadline=None)
@given(text=st.text(max_size=60))
@example(text="\\")
def test_any_text_that_is_escaped_as_the_prompt_says_comes_back_whole(text: str) -> None:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
    (move,) = parse_tars_answer(f"Action: type(content='{escaped}')").moves
    assert move.args["content"] == text


@settings(deadline=None)
@given(answer=st.text(max_size=300))
@example(answer="Action: " + "(" * 5000)
@example(answer="Action: click(start_box='" + "9" * 5000 + "')")
def test_whatever_is_said_is_read_or_refused(answer: str) -> None:
    with suppress(UnreadableAnswer, OutOfRange):
        parse_tars_answer(answer)
        plan(answer)


@pytest.mark.parametrize(
    ("answer", "move"),
    [
        pytest.param(
            "Thought: go\nAction: click(start_box='<|box_start|>(197,525)<|box_end|>')",
            ModelAction("click", {}, (197, 525), None),
            id="marks",
        ),
        pytest.param(
            "Action: click(start_box='[100, 200, 300, 400]')",
            ModelAction("click", {}, (200, 300), None),
            id="box-of-four",
        ),
        pytest.param(
            "Action: click(start_box='<bbox>100 200 300 400</bbox>')",
            ModelAction("click", {}, (200, 300), None),
            id="bbox",
        ),
        pytest.param(
            "Action: type(content='it's (almost) done')",
            ModelAction("type", {"content": "it's (almost) done"}, None, None),
            id="quotes-that-are-not-escaped",
        ),
        pytest.param(
            'Action: type(content="say \\"hi\\"\\n")',
            ModelAction("type", {"content": 'say "hi"\n'}, None, None),
            id="double",
        ),
        pytest.param(
            "Action: type(content='a\nb')", ModelAction("type", {"content": "a\nb"}, None, None), id="a-real-new-line"
        ),
        pytest.param("Action:\nwait()", ModelAction("wait", {}, None, None), id="on-its-own-line"),
        pytest.param(
            "```\nThought: x\nAction: hotkey(key='ctrl c')\n```",
            ModelAction("hotkey", {"key": "ctrl c"}, None, None),
            id="fenced",
        ),
        pytest.param("Action: wait\nAction: wait( )", ModelAction("wait", {}, None, None), id="the-last-one-counts"),
    ],
)
def test_what_models_really_write_is_read(answer: str, move: ModelAction) -> None:
    assert parse_tars_answer(answer).moves == (move,)


def test_of_a_reflection_and_a_summary_the_summary_is_the_thought() -> None:
    assert (
        parse_tars_answer("Reflection: went wrong.\nAction_Summary: try again\nAction: wait()").thought == "try again"
    )


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param("I cannot help with that.", id="no-action"),
        pytest.param("Action: ", id="nothing-after-it"),
        pytest.param("Action: click(start_box='(1,", id="cut"),
        pytest.param("Action: click the button", id="in-words"),
        pytest.param("Action: click(start_box='(1,2,3)')", id="three-numbers"),
    ],
)
def test_what_is_no_action_is_refused(answer: str) -> None:
    with pytest.raises(UnreadableAnswer):
        parse_tars_answer(answer)


# Version 2


def called(verb: str, suffix: str = "", **args: str) -> str:
    told = "".join(f"<parameter{suffix}={name}>{value}</parameter{suffix}>" for name, value in args.items())
    return f"<function{suffix}={verb}>{told}</function{suffix}>"


def tool_call(*calls: str, thought: str = "now") -> str:
    return f"<gui_think>{thought}</gui_think>\n<seed:tool_call>{''.join(calls)}</seed:tool_call>"


SCHEMAS = [
    {"type": "function", "name": name, "parameters": {"properties": {each: {"type": "string"} for each in arguments}}}
    for name, (_, arguments) in FUNCTIONS.items()
]


@settings(deadline=None)
@given(at=point, to=point, typed=words, held=keys, way=direction)
def test_the_functions_of_version_2_are_those_that_the_vendors_package_reads(
    at: tuple[int, int], to: tuple[int, int], typed: str, held: str, way: str
) -> None:
    here, there = (f"<point>{x} {y}</point>" for x, y in (at, to))
    said = tool_call(
        called("click", point=here),
        called("drag", start_point=here, end_point=there),
        called("scroll", point=here, direction=way),
        called("hotkey", key=held),
        called("type", content=typed),
    )
    theirs = parse_xml_action_v2(said, SCHEMAS)
    ours = parse_tars_answer(said)
    assert ours.thought == "now"
    assert [move.verb for move in ours.moves] == [each["function"] for each in theirs]
    assert [(move.start, move.end) for move in ours.moves[:3]] == [(at, None), (at, to), (at, None)]
    left = [{k: v for k, v in each["parameters"].items() if "point" not in k} for each in theirs]
    assert [dict(move.args) for move in ours.moves] == left


@pytest.mark.parametrize(
    ("said", "calls"),
    [
        (called("click", point="<point>100 200</point>"), [{"action": "click", "x": 100, "y": 100}]),
        (
            called("left_double", "_never_used_51bce0", point="<point>100 200</point>"),
            [{"action": "double_click", "x": 100, "y": 100}],
        ),
        (called("type", content="go\\n"), [{"action": "type", "text": "go"}, {"action": "press_key", "key": "enter"}]),
        (called("type", content="\none\ntwo\n"), [{"action": "type", "text": "one\ntwo"}]),
        (called("type", content=r"C:\new (it's)"), [{"action": "type", "text": r"C:\new (it's)"}]),
        (called("wait", time="2"), [{"seconds": 2}]),
        (called("call_user", content="Which one?"), [{"questions": [{"question": "Which one?"}]}]),
    ],
)
def test_functions_become_calls(said: str, calls: list[dict[str, Any]]) -> None:
    assert [dict(each.args) for each in plan(tool_call(said)).actions] == calls


def test_a_text_that_looks_like_a_function_is_typed() -> None:
    (move,) = parse_tars_answer("Action: type(content='<function=click></function>')").moves
    assert move == ModelAction("type", {"content": "<function=click></function>"}, None, None)


def test_a_function_call_that_is_cut_is_refused() -> None:
    with pytest.raises(UnreadableAnswer, match="not whole"):
        parse_tars_answer("<gui_think>x</gui_think><seed:tool_call><function=click><parameter=point><point>1")


# From actions to calls


def plan(answer: str) -> Plan:
    return build_plan(answer, lambda x, y: TO_1000.point(x, y, Size(1000, 500)))


SAID: Sequence[tuple[str, Any]] = [
    ("click(start_box='(100,200)')", [{"action": "click", "x": 100, "y": 100}]),
    ("left_double(point='<point>100 200</point>')", [{"action": "double_click", "x": 100, "y": 100}]),
    ("right_single(start_box='(0,1000)')", [{"action": "right_click", "x": 0, "y": 499}]),
    (
        "drag(start_box='(1,2)', end_box='(3,4)')",
        [{"action": "drag", "x": 1, "y": 1, "to_x": 3, "to_y": 2}],
    ),
    ("hotkey(key='ctrl shift t')", [{"action": "hotkey", "keys": ["ctrl", "shift", "t"]}]),
    ("hotkey(key='enter')", [{"action": "press_key", "key": "enter"}]),
    ("type(content='find me')", [{"action": "type", "text": "find me"}]),
    ("type(content='go\\n')", [{"action": "type", "text": "go"}, {"action": "press_key", "key": "enter"}]),
    ("type(content='\\n')", [{"action": "press_key", "key": "enter"}]),
    ("scroll(start_box='(1,2)', direction='down')", [{"action": "scroll", "direction": "down", "x": 1, "y": 1}]),
    ("scroll(direction='up')", [{"action": "scroll", "direction": "up"}]),
    ("wait()", [{"seconds": 5}]),
]


@pytest.mark.parametrize(("said", "calls"), SAID)
def test_actions_become_calls(said: str, calls: list[dict[str, Any]]) -> None:
    planned = plan(f"Thought: now\nAction: {said}")
    assert [dict(each.args) for each in planned.actions] == calls
    assert len({each.id for each in planned.actions}) == 1
    assert (planned.text, planned.done) == ("now", False)


def test_the_calls_that_are_planned_fit_the_tools_they_name() -> None:
    tools = {"execute_gui": execute_gui, "wait": wait, "ask_user": ask_user}
    for said, *_ in (*SAID, ("call_user()",)):
        for each in plan(f"Action: {said}").actions:
            tools[each.tool].validate(dict(each.args))


def test_the_end_is_told_and_so_is_that_a_person_is_wanted() -> None:
    finished = plan("Thought: all set\nAction: finished(content='It is saved.')")
    assert (finished.done, finished.text, finished.actions) == (True, "It is saved.", ())
    (asks,) = plan("Thought: Which of the two files?\nAction: call_user()").actions
    assert (asks.tool, dict(asks.args)) == ("ask_user", {"questions": [{"question": "Which of the two files?"}]})
    told = describe_outcome(
        Turn(Plan((asks,)), (ToolResult({"status": "success", "answers": [{"answer": "the first"}]}),))
    )
    assert told == "The user answers: the first"
    # What is done last is looked at before it is believed.
    assert not plan("Action: click(start_box='(1,1)')\n\nfinished(content='x')").done


def test_an_action_that_there_is_not_is_told_and_not_tried() -> None:
    (action,) = plan("Action: open_computer()").actions
    assert (action.name, action.problem) == ("open_computer", "there is no action 'open_computer' here")


@pytest.mark.parametrize(
    "said",
    [
        "click()",
        "click(start_box='')",
        "drag(start_box='(1,1)')",
        "scroll(direction='sideways')",
        "hotkey(key='')",
        "type(content='')",
        "click(start_box='(1001,1)')",
        "click(start_box='(-1,1)')",
    ],
)
def test_what_cannot_be_carried_out_is_refused(said: str) -> None:
    with pytest.raises((UnreadableAnswer, OutOfRange)):
        plan(f"Action: {said}")


@pytest.mark.parametrize("said", ["<function=a>" * 8_000, "<function=click>" + "<parameter=a>" * 7_000 + "</function>"])
def test_marks_that_are_never_closed_are_looked_for_once(said: str) -> None:
    with suppress(UnreadableAnswer):
        assert parse_tars_answer(said).moves == (ModelAction("click", {}, None, None),)

"""Plans: read strictly, filled in, run to the first failure."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from handrail import ConfigError
from handrail.plans.expressions import fill_variables, find_unmet_expectation, get_at_path
from handrail.plans.plan_file import ReplayPlan, find_plan_faults, read_plan
from handrail.plans.replay import StepResult, run_plan
from handrail.testing import open_test_session

ALIASES = "".join(f"    a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 13))
MERGES = "".join(f"    a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}\n" for n in range(1, 13))


def written(folder: Path, text: str) -> Path:
    file = folder / "plan.yaml"
    file.write_text(text)
    return file


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param("steps: [{tool: wait}]", "name", id="no-name"),
        pytest.param("name: x\nsteps: []", "steps", id="no-steps"),
        pytest.param("name: x\nsteps: [{tool: wait, arg: {}}]", "did you mean 'args'", id="misspelt"),
        pytest.param(
            "name: x\nsteps: [{tool: wait, expect: {a: {not: {containz: b}}}}]", "did you mean 'contains'", id="form"
        ),
        pytest.param(
            "name: x\nsteps: [{tool: wait, expect: {a: {matches: '(('}}}]", "regular expression", id="pattern"
        ),
        pytest.param("name: x\nsteps: [{tool: wait, set: {a: 1}}]", "exactly one", id="two-things"),
        pytest.param("name: x\nsteps: [{set: {a: 1}, args: {}}]", "only a step with a tool", id="set-with-arguments"),
        pytest.param("name: x\nsteps: [{set: {'a b': 1}}]", "steps", id="no-variable"),
        pytest.param("name: [", "not YAML", id="not-yaml"),
        pytest.param("- 1", "not a mapping", id="a-list"),
        pytest.param("#" * 1_048_577, "not a file of at most 1,048,576 bytes", id="too-long"),
        pytest.param(
            "name: x\nlook: {tool: look}\nsteps: [{tool: act, find: {element_id: {window: Editor}}}]",
            "element_id",
            id="nothing-named",
        ),
        pytest.param("name: x\nsteps:\n- &s {tool: wait, args: {inner: *s}}", "itself", id="self-reference"),
        pytest.param(f"name: x\nsteps:\n- set:\n    a0: &a0 [x, x]\n{ALIASES}", "aliases", id="aliases-of-aliases"),
        pytest.param(f"name: x\nsteps:\n- set:\n    a0: &a0 {{x: y}}\n{MERGES}", "aliases", id="merges-of-merges"),
        pytest.param(
            f"name: x\nsteps:\n- {{set: {{a: {'9' * 5_000}}}}}", "line 3: an integer has more than", id="long-integer"
        ),
        pytest.param(f"name: x\nsteps:\n- {{set: {{a: 0x{'f' * 9_999}}}}}", "an integer has", id="long-hexadecimal"),
        pytest.param(f"name: x\n0x{'f' * 200_000}: 1\nsteps: [{{tool: wait}}]", "not YAML", id="long-integer-as-key"),
        pytest.param(
            f"name: x\nsteps: [{{tool: wait}}]\n? 0x{'f' * 9_999}\n: 1", "an integer has", id="long-explicit-key"
        ),
        pytest.param("name: x\nsteps:\n- {set: {a: 2001-99-99}}", "not YAML", id="no-date"),
        pytest.param("name: x\nsteps:\n- {set: {a: !!bool perhaps}}", "not YAML", id="no-boolean"),
        pytest.param("name: " + "[" * 5000, "nested", id="deep"),
        pytest.param(
            "name: x\nsteps:\n- tool: wait\n  args: {seconds: 0.1}\n  args: {seconds: 60}",
            "line 5: the key 'args' is there twice",
            id="key-twice",
        ),
        pytest.param(
            "name: x\nparameters: {n: {type: integer, default: some}}\nsteps: [{tool: wait}]",
            "the default 'some' is no integer",
            id="default",
        ),
        pytest.param(
            "name: x\nparameters: {n: {default: c, choices: [a, b]}}\nsteps: [{tool: wait}]",
            "the default 'c' is none of the choices",
            id="default-no-choice",
        ),
    ],
)
def test_a_bad_plan_is_refused_by_name(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(ConfigError, match=r"plan\.yaml") as refused:
        read_plan(written(tmp_path, text))
    assert told in str(refused.value)


def test_a_plan_that_is_a_pipe_is_refused_at_once(tmp_path: Path) -> None:
    pipe = tmp_path / "plan.yaml"
    os.mkfifo(pipe)
    with pytest.raises(ConfigError, match="is not a file"):
        read_plan(pipe)


def test_a_text_that_is_one_variable_keeps_its_type() -> None:
    assert fill_variables({"a": "${n}", "b": "${n}!", "c": ["${n}"]}, {"n": 4}) == {"a": 4, "b": "4!", "c": [4]}
    with pytest.raises(ConfigError, match="did you mean 'name'"):
        fill_variables("${nmae}", {"name": 1})


@pytest.mark.parametrize(
    ("path", "found"),
    [("a.0.b", 1), ("a.b=2.c", "here"), ("a.9", None), ("a.x", None), ("nothing", None), ("a.-1.c", "here")],
)
def test_values_are_found_by_dotted_paths(path: str, found: Any) -> None:
    assert get_at_path({"a": [{"b": 1}, {"b": 2, "c": "here"}]}, path) == found


@pytest.mark.parametrize(
    ("wanted", "holds"),
    [
        ({"text": "hello"}, True),
        ({"text": "hell"}, False),
        ({"text": {"contains": "ell"}}, True),
        ({"text": {"contains": 5}}, False),
        ({"text": {"matches": "^h.*o$"}}, True),
        ({"lines": {"matches": "done$"}}, True),
        ({"lines": {"matches": "first$"}}, False),
        ({"lines": {"matches": "(?m)first$"}}, True),
        ({"odd": {"matches": "é."}}, True),
        ({"items": {"any": {"n": 2}}}, True),
        ({"items": {"any": {"n": 3}}}, False),
        ({"items": {"contains": {"n": 1}}}, True),
        ({"missing": {"contains": "x"}}, False),
        ({"text": {"one_of": ["hello", "bye"]}}, True),
        ({"text": {"one_of": ["bye"]}}, False),
        ({"text": {"not": {"contains": "bye"}}}, True),
        ({"missing": {"not": None}}, False),
    ],
)
def test_expectations(wanted: dict[str, Any], holds: bool) -> None:
    found = {"text": "hello", "items": [{"n": 1}, {"n": 2}], "lines": "first\ndone\n", "odd": "é\udcff"}
    assert (find_unmet_expectation(wanted, found) is None) is holds


def test_no_pattern_of_a_plan_takes_longer_than_its_text_is_long() -> None:
    # If this test takes minutes, patterns have begun to go back in the text.
    assert find_unmet_expectation({"text": {"matches": "(a+)+b"}}, {"text": "a" * 10_000}) is not None


async def run(*steps: dict[str, Any], **plan: Any) -> list[StepResult]:
    params = plan.pop("params", None)
    async with open_test_session() as session:
        return await run_plan(ReplayPlan.model_validate({"name": "x", "steps": steps, **plan}), session, params=params)


async def test_a_run_stops_at_the_first_step_that_fails() -> None:
    done = await run({"tool": "wait", "args": {"seconds": 0}}, {"tool": "get_action_history"})
    assert [step.failure is None for step in done] == [False]
    assert "seconds" in (done[0].failure or "")


async def test_what_a_step_saves_is_there_for_later_ones() -> None:
    done = await run(
        {"tool": "get_action_history", "save": {"before": "total_count"}},
        {
            "tool": "get_action_history",
            "args": {"last_n": 1},
            "expect": {"total_count": 1, "actions.0.tool": "get_action_history"},
        },
        {"tool": "wait", "when": {"before": 7}},
    )
    assert [step.failure for step in done] == [None, None, None]
    assert [step.skipped for step in done] == [False, False, True]


async def test_a_step_whose_result_has_nothing_to_save_fails() -> None:
    saving = {"tool": "get_action_history", "save": {"before": "no_such"}}
    (done,) = await run(saving, {"tool": "get_action_history"})
    assert done.failure == "the result has no 'no_such' to save as 'before'"


@pytest.mark.parametrize(
    "names",
    [{"find": {"element_id": {"role": "button"}}}, {"at": {"x": 0.5, "y": 0.5}}, {"front": "Editor"}],
    ids=["find", "at", "front"],
)
def test_a_plan_that_names_what_is_on_the_screen_says_how_to_look(tmp_path: Path, names: dict[str, Any]) -> None:
    plan = {"name": "x", "steps": [{"steps": [{"tool": "wait", **names}]}]}
    with pytest.raises(ConfigError, match="does not say how to look"):
        read_plan(written(tmp_path, json.dumps(plan)))


async def test_a_step_is_tried_again_while_its_expectation_does_not_hold() -> None:
    (done,) = await run({"tool": "get_action_history", "expect": {"total_count": 2}, "retry": {"times": 5, "wait": 0}})
    assert done.failure is None
    assert done.attempts == 3


async def test_a_step_is_tried_as_often_as_the_plan_says_where_a_model_would_be_held_to_go_in_circles() -> None:
    (done,) = await run({"tool": "no_such_tool", "retry": {"times": 15, "wait": 0}})
    assert done.result is not None
    assert (done.attempts, done.result.error_code) == (15, "unknown_tool")


async def test_steps_under_one_condition_run_or_are_left_out_together() -> None:
    looking = {"tool": "get_action_history"}
    done = await run(
        {"set": {"key": "ctrl"}},
        {"set": {"key": "cmd"}, "when": {"platform": "no such platform"}},
        {"when": {"key": "cmd"}, "steps": [looking, looking]},
        {"when": {"key": {"one_of": ["ctrl"]}}, "steps": [looking, {"set": {"done": True}}]},
    )
    assert [(step.number, step.skipped) for step in done] == [
        ("1", False),
        ("2", True),
        ("3.1", True),
        ("3.2", True),
        ("4.1", False),
        ("4.2", False),
    ]


async def test_a_failure_inside_a_group_ends_the_run() -> None:
    done = await run({"steps": [{"tool": "wait", "args": {"seconds": 0}}, {"tool": "wait"}]}, {"tool": "wait"})
    assert [(step.number, step.failure is None) for step in done] == [("1.1", False)]


PARAMETERS = {"n": {"type": "integer", "default": 1}, "who": {}, "how": {"default": "a", "choices": ["a", "b"]}}


async def test_parameters_are_filled_in_with_their_type() -> None:
    done = await run(
        {"tool": "get_action_history", "args": {"last_n": "${n}"}}, parameters=PARAMETERS, params={"who": "x", "n": "3"}
    )
    assert done[0].args == {"last_n": 3}


async def test_a_list_may_be_given_as_a_text_and_a_number_must_be_given_where_it_has_no_default() -> None:
    parameters = {"names": {"type": "list"}, "n": {"type": "integer", "choices": [1, 2]}}
    given = {"names": '["a", 1]', "n": "2"}
    done = await run({"set": {"both": ["${names}", "${n}"]}}, parameters=parameters, params=given)
    assert done[0].args == {"both": [["a", 1], 2]}
    with pytest.raises(ConfigError, match="needs the parameter 'n'"):
        await run({"set": {"both": ["${names}", "${n}"]}}, parameters=parameters, params={"names": "[]"})


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "needs the parameter 'who'"),
        ({"who": "x", "m": 1}, "no parameter 'm'"),
        ({"who": "x", "n": "three"}, "'three', which is no integer"),
        ({"who": "x", "how": "c"}, "one of a, b"),
    ],
)
async def test_parameters_that_do_not_fit_stop_the_run_before_it_begins(given: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError) as refused:
        await run({"tool": "get_action_history"}, parameters=PARAMETERS, params=given)
    assert told in str(refused.value)


@pytest.mark.parametrize(
    "step",
    [
        pytest.param({"tool": "wait", "args": {"seconds": "${later}"}}, id="argument"),
        pytest.param({"when": {"later": 1}, "tool": "wait", "args": {"seconds": 0.01}}, id="condition"),
        pytest.param({"steps": [{"set": {"now": "${later}"}}]}, id="inside"),
    ],
)
async def test_a_step_that_needs_what_a_later_one_sets_keeps_the_plan_from_running(step: dict[str, Any]) -> None:
    steps = [{"tool": "wait", "args": {"seconds": 0.01}}, step, {"set": {"later": 1}}]
    done: list[StepResult] = []
    async with open_test_session() as session:
        with pytest.raises(ConfigError, match="nothing sets the variable 'later' before"):
            await run_plan(ReplayPlan.model_validate({"name": "x", "steps": steps}), session, told=done.append)
    assert done == []


async def test_what_a_value_holds_is_not_filled_in_again() -> None:
    done = await run({"set": {"a": "${who}"}}, parameters=PARAMETERS, params={"who": "${n}"})
    assert done[0].args == {"a": "${n}"}


@pytest.mark.parametrize("form", ["text", "list"])
async def test_variables_that_multiply_one_another_stop_the_run(form: str) -> None:
    ten = ["${a%d}"] * 10
    steps: list[Any] = [{"set": {"a0": "x"}}]
    for number in range(12):
        filled = [each % number for each in ten]
        steps.append({"set": {f"a{number + 1}": filled if form == "list" else "".join(filled)}})
    assert "more than 1,048,576 characters" in ((await run(*steps))[-1].failure or "")


async def test_variables_are_bounded_all_together() -> None:
    steps = [{"set": {f"a{number}": "x" * 100_000}} for number in range(12)]
    assert "the variables have more than" in ((await run(*steps))[-1].failure or "")


def test_an_integer_that_is_too_long_for_a_text_is_not_filled_in() -> None:
    with pytest.raises(ConfigError, match="'a' holds an integer"):
        fill_variables("${a}x", {"a": 10**5_000})


def test_one_step_is_bounded_however_many_texts_it_fills() -> None:
    with pytest.raises(ConfigError, match="more than 1,048,576 characters"):
        fill_variables([["${a}", "${a}x"]] * 1_000, {"a": "x" * 100_000})


async def test_faults_are_found_without_running() -> None:
    steps = [
        {"tool": "wait", "args": {"secs": 1}},
        {"tool": "no_such"},
        {"set": {"a": "${b}"}, "when": {"c.d": 1}},
        {"tool": "get_action_history", "save": {"b": "total_count"}},
        {"set": {"a": "${b}"}},
    ]
    async with open_test_session() as session:
        tools = {tool.name: tool for tool in await session.tools()}
        found = find_plan_faults(ReplayPlan.model_validate({"name": "x", "steps": steps}), tools)
    assert [fault.partition(";")[0] for fault in found] == [
        "step 1: wait has no argument 'secs'",
        "step 1: wait needs the argument 'seconds'",
        "step 2: there is no tool 'no_such'",
        "step 3: nothing sets the variable 'b' before",
        "step 3: nothing sets the variable 'c' before",
    ]

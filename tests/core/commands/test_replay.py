"""`handrail replay`: a plan file from the command line."""

from __future__ import annotations

import re
from pathlib import Path

from handrail.plans.plan_file import parse_plan

PAGE = Path(__file__).parents[3] / "docs" / "plans.md"
PLAN = """
name: greet
parameters:
  whom: {}
steps:
  - tool: greet
    args: {name: "${whom}"}
    expect: {content: "hello, B"}
"""


def test_a_plan_runs_with_its_parameters(handrail):
    (handrail.folder / "plan.yaml").write_text(PLAN)
    done = handrail("replay", "plan.yaml", "--param", "whom=B", plugins="stage")
    assert done.returncode == 0, done.stderr
    assert "1 of 1 steps run, all as expected." in done.stdout


def test_a_step_that_does_something_else_is_told_and_fails(handrail):
    (handrail.folder / "plan.yaml").write_text(PLAN)
    done = handrail("replay", "plan.yaml", "--param", "whom=C", plugins="stage")
    assert done.returncode == 1
    assert "NOT AS EXPECTED: content is 'hello, C'" in done.stdout


def test_parameters_are_checked_before_anything_runs(handrail):
    (handrail.folder / "plan.yaml").write_text(PLAN)
    assert "needs the parameter 'whom'" in handrail("replay", "plan.yaml", plugins="stage").stderr
    assert "--param 'whom' names no value" in handrail("replay", "plan.yaml", "--param", "whom").stderr


def test_the_documented_plan_is_sound():
    for text in re.findall(r"```yaml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL):
        assert parse_plan(text.encode(), where=PAGE).count > 0


def test_a_plan_that_is_missing_is_said_as_missing_with_what_is_near(handrail):
    (handrail.folder / "greeting.yaml").write_text(PLAN)
    done = handrail("replay", "greting.yaml", plugins="stage")
    assert done.returncode == 1
    assert done.stderr == "Error: there is no plan 'greting.yaml'\nHint: near it there is greeting.yaml\n"

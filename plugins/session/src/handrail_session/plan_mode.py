"""The tools `enter_plan_mode`, `exit_plan_mode` and `generate_plan`."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

from pydantic import BaseModel, Field

from handrail import InfoConfirmation, Tool, ToolContext, ToolUnavailable, Verdict, Write, tool

MAX_PLAN_STEPS = 20
# Tools that are named for one step.
MAX_TOOLS = 3
# A word in a tool's name says more than one in its description.
NAME_WEIGHT = 3
# A tool is named when it fits at least so well as the best one.
NEAR_BEST = 0.6
BETWEEN_STEPS = re.compile(r"(?:[.!?](?=\s)|[;\n]|,?\s*\b(?:and\s+)?then\b)\s*(?:\d+[.)]|[-*])?\s*")
WORD_PATTERN = re.compile(r"[a-z]{3,}")
ENDINGS = re.compile(r"(?:ings?|ed|es|s)$")
OUTLINE_NOTE = "An outline by words, made of your tools' descriptions. Nobody has thought it through: order, gaps and risks are yours to judge."


@tool(layer="session", title="Enter plan mode", effects=[Write("plan")], trusted=True)
async def enter_plan_mode(*, context: ToolContext) -> dict[str, Any]:
    """Only look, until a person approves your plan (exit_plan_mode). Returns mode."""
    session = context.session
    if not session.court.judging.interactive:
        raise ToolUnavailable("nobody is there to approve a plan", hint="go on without plan mode")
    session.plan(True)
    return {"mode": session.mode.value}


class PlanParams(BaseModel):
    """The plan."""

    plan: str = Field(min_length=1, max_length=20_000, description="What you will do, step by step, in Markdown.")


def _build_confirmation(params: PlanParams, verdict: Verdict) -> InfoConfirmation:
    return InfoConfirmation("The agent ends plan mode and carries out this plan", params.plan)


@tool(
    layer="session",
    title="Exit plan mode",
    effects=[Write("mode")],
    trusted=True,
    describe=lambda params: "End plan mode and carry out the plan",
    confirmation=_build_confirmation,
)
async def exit_plan_mode(params: PlanParams, context: ToolContext) -> dict[str, Any]:
    """Show your plan to the person. Approved, it ends plan mode: returns mode and plan. Denied, change the plan."""
    context.session.plan(False)
    return {"mode": context.session.mode.value, "plan": params.plan}


# Few agents need it, and its declaration would cost all of them.
@tool(layer="session", title="Outline a plan", profiles={"all"}, trusted=True)
async def generate_plan(
    task_description: Annotated[
        str, Field(min_length=1, max_length=10_000, description="The whole task, a sentence a step.")
    ],
    *,
    context: ToolContext,
) -> dict[str, Any]:
    """Break a task into its sentences, each with the tools at hand that fit its words. Returns steps (do, tools, changes). It is no judgement."""
    tools = [listed.tool for listed in await context.session.all_tools() if listed.available]
    others = [each for each in tools if each.layer != "session"]
    parts = [part.strip(" ,.") for part in BETWEEN_STEPS.split(task_description)]
    wanted = [part for part in parts if part]
    ranking = ToolRanking(others)
    steps = [_describe_step(part, ranking.fitting(part)) for part in wanted[:MAX_PLAN_STEPS]]
    left = {"left_out": len(wanted) - MAX_PLAN_STEPS} if len(wanted) > MAX_PLAN_STEPS else {}
    return {"steps": steps, "note": OUTLINE_NOTE, **left}


def _describe_step(text: str, tools: Sequence[Tool]) -> dict[str, Any]:
    return {"do": text, "tools": [each.name for each in tools], "changes": any(not each.read_only for each in tools)}


class ToolRanking:
    """Ranking of tools by the words they share with a text; words that few tools have weigh more."""

    def __init__(self, tools: Sequence[Tool]) -> None:
        self._tools = tools
        self._words = [_weigh_words(tool) for tool in tools]
        self._shared = Counter(word for words in self._words for word in words)

    def fitting(self, text: str) -> list[Tool]:
        """Return the best matching tools, best first; empty if no words are shared."""
        asked = set(_list_stems(text))
        scored = [(self._score(asked, words), tool) for words, tool in zip(self._words, self._tools, strict=True)]
        best = max((score for score, _ in scored), default=0.0)
        near = [(score, tool) for score, tool in scored if score > 0 and score >= NEAR_BEST * best]
        return [tool for _, tool in sorted(near, key=lambda pair: -pair[0])[:MAX_TOOLS]]

    def _score(self, asked: Iterable[str], words: Mapping[str, int]) -> float:
        return sum(words[word] * math.log(len(self._tools) / self._shared[word]) for word in asked if word in words)


def _weigh_words(tool: Tool) -> dict[str, int]:
    described = dict.fromkeys(_list_stems(tool.description), 1)
    return described | dict.fromkeys(_list_stems(f"{tool.name.replace('_', ' ')} {tool.title}"), NAME_WEIGHT)


def _list_stems(text: str) -> list[str]:
    return [ENDINGS.sub("", word) for word in WORD_PATTERN.findall(text.casefold())]

"""The contract of evaluators holds for core's own, and notices each promise that a judge breaks."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from handrail import Decision, EvaluationContext, Evaluator, Invocation, Opinion, Read, Reason, Tool, Write, tool
from handrail.policy.effect_rules import EffectsEvaluator
from handrail.testing import EvaluatorContract
from handrail.testing.evaluator_contract import EvaluatorBench


@tool(effects=[Read("file", arg="path"), Write("file", arg="copy")])
async def duplicate(path: str, copy: str) -> None:
    """Copy a file. Returns nothing."""


class TestEffects(EvaluatorContract):
    @pytest.fixture
    def evaluator(self) -> Evaluator:
        return EffectsEvaluator()

    @pytest.fixture
    def tool(self) -> Tool:
        return duplicate

    @pytest.fixture
    def asked(self) -> Sequence[Mapping[str, Any]]:
        return [{"path": "a.txt", "copy": "b.txt"}, {"path": "/var/log/x", "copy": "b.txt"}]

    @pytest.fixture
    def denied(self) -> Sequence[Mapping[str, Any]]:
        return [{"path": "~/.ssh/id_rsa", "copy": "b.txt"}, {"path": "a.txt", "copy": "~/.bashrc"}]


class Bad(Evaluator):
    """A judge that does what it is given."""

    name = "bad"

    def __init__(self, act: Callable[[Invocation], Opinion | None]) -> None:
        self.act = act

    async def opinion(self, invocation: Invocation, judging: EvaluationContext) -> Opinion | None:
        return self.act(invocation)


def ask(code: str = "dear", text: str = "it is dear", **more: Any) -> Opinion:
    return Opinion("bad", suggestion=Decision.CONFIRM, reasons=(Reason(code, text, **more),))


def moody() -> Callable[[Invocation], Opinion]:
    numbers = count()
    return lambda invocation: ask(text=f"it is number {next(numbers)}")


def strict_about_text(invocation: Invocation) -> Opinion:
    invocation.args["path"].encode("ascii")
    return ask()


def looks_inside(invocation: Invocation) -> Opinion:
    with open(os.devnull) as file:
        return ask(text=f"it holds {file.read()!r}")


@pytest.mark.parametrize(
    ("act", "test"),
    [
        pytest.param(lambda i: ask("Too Dear"), "test_it_says_why", id="a-code-that-is-none"),
        pytest.param(lambda i: ask(text=" "), "test_it_says_why", id="no-words"),
        pytest.param(lambda i: Opinion("bad", Decision.CONFIRM), "test_it_says_why", id="no-reason"),
        pytest.param(lambda i: ask(span=(0, 999)), "test_spans_lie_in_an_argument", id="a-span-outside"),
        pytest.param(
            lambda i: Opinion("bad", Decision.DENY, catastrophic=True, reasons=ask().reasons),
            "test_what_is_catastrophic_is_denied",
            id="no-floor",
        ),
        pytest.param(moody(), "test_it_always_says_the_same", id="moody"),
        pytest.param(strict_about_text, "test_no_text_makes_it_fail", id="raises"),
        pytest.param(looks_inside, "test_it_opens_changes_and_starts_nothing", id="opens-a-file"),
    ],
)
def test_a_broken_promise_is_noticed(act: Callable[[Invocation], Opinion | None], test: str, tmp_path: Path) -> None:
    judging = EvaluationContext(tmp_path, tmp_path, "ada", {}, (tmp_path,), "linux")
    bench = EvaluatorBench(Bad(act), duplicate, judging)
    with pytest.raises((AssertionError, UnicodeError)):
        getattr(EvaluatorContract(), test)(bench, [{"path": "a.txt", "copy": "b.txt"}])

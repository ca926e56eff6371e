"""Replay of plans: each step goes through the full call path, until one does not do what the plan expects."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any, cast

import anyio

from handrail.api.call import ToolCall
from handrail.api.events import Event, Judged
from handrail.api.result import ToolResult
from handrail.api.verdict import Verdict
from handrail.errors import ConfigError, HandrailError
from handrail.plans.element_finder import ElementFinder, StepCaller
from handrail.plans.expressions import MAX_FILLED, fill_variables, find_unmet_expectation, get_at_path, measure_value
from handrail.plans.plan_file import PlanStep, ReplayPlan, find_unset_variables
from handrail.session.session import Session

__all__ = ["StepResult", "run_plan"]


@dataclass(frozen=True, slots=True)
class StepResult:
    """Outcome of one step.

    `failure` says which expectation did not hold; `skipped` means that its condition was not met. `number` counts from
    1, with a dot for steps inside others: "3.1". `args` are the arguments as sent, with variables filled in; `attempts`
    is how often it was tried. `now` is the plan's look at the screen after a failed step.
    """

    number: str
    step: PlanStep
    args: Mapping[str, Any] = field(default_factory=dict[str, Any])
    result: ToolResult | None = None
    verdict: Verdict | None = None
    failure: str | None = None
    skipped: bool = False
    attempts: int = 0
    seconds: float = 0.0
    now: ToolResult | None = None


def _ignore_step(done: StepResult) -> None:
    pass


async def run_plan(
    plan: ReplayPlan,
    session: Session,
    *,
    params: Mapping[str, Any] | None = None,
    call: StepCaller | None = None,
    told: Callable[[StepResult], None] = _ignore_step,
) -> list[StepResult]:
    """Run the steps in order and stop at the first that fails; `told` hears of each as it ends.

    `params` are values of the plan's parameters. `call` makes the calls; unset, they are a host's. `ConfigError` before the first step where
    parameters do not fit, and where a step needs a variable that nothing sets before.
    """
    for fault in find_unset_variables(plan):
        raise ConfigError(f"plan {plan.name!r}, {fault}")
    variables: dict[str, Any] = {
        "workspace": str(session.workspace[0]),
        "cwd": str(session.cwd),
        "platform": session.runtime.platform,
        **plan.values(params or {}),
    }
    calls = call or _create_host_caller(session)
    run = _PlanRun(calls, ElementFinder(session, calls, plan.look), variables, told)
    stop = session.bus.subscribe(run.remember)
    try:
        await run.steps(plan.steps, "")
    finally:
        stop()
    return run.finished


def _create_host_caller(session: Session) -> StepCaller:
    async def call(name: str, args: Mapping[str, Any], call_id: str, /) -> ToolResult:
        result = await session.call(name, args, call_id=call_id)
        # How often a call may fail, the plan says.
        session.limits.forgive(ToolCall(name, args, call_id))
        return result

    return call


class _PlanRun:
    """One run of a plan: its variables, and what became of the steps so far."""

    def __init__(
        self, call: StepCaller, eyes: ElementFinder, variables: dict[str, Any], told: Callable[[StepResult], None]
    ) -> None:
        self._call = call
        self._eyes = eyes
        self._variables = variables
        self._sizes: dict[str, int] = {}
        self._size = 0
        self._told = told
        self._verdicts: dict[str, Verdict] = {}
        self.finished: list[StepResult] = []

    def remember(self, event: Event) -> None:
        if isinstance(event, Judged):
            self._verdicts[event.call_id] = event.verdict

    async def steps(self, steps: Sequence[PlanStep], above: str) -> bool:
        """Run these; whether none of them failed."""
        for number, step in enumerate(steps, start=1):
            if not await self._step(step, f"{above}{number}"):
                return False
        return True

    async def _step(self, step: PlanStep, number: str) -> bool:
        if find_unmet_expectation(step.when, self._variables) is not None:
            for skipped in _iter_skipped_steps(step, number):
                self._end(skipped)
            return True
        if step.steps:
            return await self.steps(step.steps, f"{number}.")
        began = perf_counter()
        try:
            done = await self._called(step, number) if step.tool else self._set(step, number)
        except HandrailError as exc:
            done = StepResult(number, step, failure=str(exc))
        if done.failure is not None and step.tool:
            done = replace(done, now=await self._eyes.picture())
        self._end(replace(done, seconds=perf_counter() - began))
        return done.failure is None

    def _end(self, done: StepResult) -> None:
        self.finished.append(done)
        self._told(done)

    def _set(self, step: PlanStep, number: str) -> StepResult:
        values = cast("dict[str, Any]", fill_variables(step.set, self._variables))
        self._keep(values)
        return StepResult(number, step, values)

    async def _called(self, step: PlanStep, number: str) -> StepResult:
        args = cast("dict[str, Any]", fill_variables(step.args, self._variables))
        args |= await self._eyes.found(step, self._variables)
        expected = cast("dict[str, Any]", fill_variables(step.expect, self._variables))
        times, attempt = step.retry.times if step.retry else 1, 0
        while True:
            attempt += 1
            call_id = f"step{number}" if attempt == 1 else f"step{number}-{attempt}"
            result = await self._call(step.tool, args, call_id)
            failure = find_unmet_expectation(expected, result)
            if failure is None or attempt >= times:
                break
            assert step.retry is not None
            await anyio.sleep(step.retry.wait)
        if failure is None:
            failure = self._save(step, result)
        return StepResult(number, step, args, result, self._verdicts.get(call_id), failure, attempts=attempt)

    def _keep(self, values: Mapping[str, Any]) -> None:
        """Set variables. Raises `ConfigError` if all that steps have set is too large."""
        for name, value in values.items():
            size = measure_value(value, MAX_FILLED)
            self._size += size - self._sizes.get(name, 0)
            self._sizes[name] = size
        if self._size > MAX_FILLED:
            raise ConfigError(f"the variables have more than {MAX_FILLED:,} characters")
        self._variables.update(values)

    def _save(self, step: PlanStep, result: ToolResult) -> str | None:
        for name, path in step.save.items():
            value = get_at_path(result, path)
            if value is None:
                return f"the result has no {path!r} to save as {name!r}"
            try:
                self._keep({name: value})
            except ConfigError as exc:
                return str(exc)
        return None


def _iter_skipped_steps(step: PlanStep, number: str) -> Iterator[StepResult]:
    if not step.steps:
        yield StepResult(number, step, skipped=True)
    for inner, each in enumerate(step.steps, start=1):
        yield from _iter_skipped_steps(each, f"{number}.{inner}")

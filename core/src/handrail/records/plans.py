"""Plans: tool calls written down in YAML, run one after another through the whole path, without a model.

    name: greet
    description: Say hello in a file.
    steps:
      - name: look
        tool: execute_cli
        args: {command: "cat greeting.txt"}
        expect: {stdout: {contains: hello}}   # default: {status: success}
        save: {greeting: stdout}              # a variable from a dotted path of the result
        retry: {times: 5, wait: 0.5}          # again while the expectation does not hold
        when: {platform: linux}               # variables that must have these values
      - tool: execute_gui
        args: {action: type, text: "${greeting}!"}

`${workspace}`, `${cwd}` and `${platform}` are there from the start. A text that is nothing but one variable keeps the variable's type.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any, cast

import anyio
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from handrail.errors import ConfigError, HandrailError
from handrail.judging.verdicts import Verdict
from handrail.results.values import ToolResult
from handrail.session import Session
from handrail.tools import mistakes
from handrail.watching.events import Event, Judged
from handrail.words import nearest

DEPTH = 30
VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


class Part(BaseModel):
    """A part of a plan: unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Retry(Part):
    """Do a step again, at most `times` times and `wait` seconds apart, while its expectation does not hold."""

    times: int = Field(ge=1, le=1000)
    wait: float = Field(0.25, ge=0, le=60)


class Step(Part):
    """One tool call and what must be true of its result."""

    tool: str
    name: str = ""
    args: dict[str, Any] = Field(default_factory=dict[str, Any])
    expect: dict[str, Any] = Field(default_factory=lambda: {"status": "success"})
    save: dict[str, str] = Field(default_factory=dict[str, str])
    when: dict[str, Any] = Field(default_factory=dict[str, Any])
    retry: Retry | None = None

    @field_validator("expect")
    @classmethod
    def _sound_patterns(cls, expect: dict[str, Any]) -> dict[str, Any]:
        for wanted in expect.values():
            if isinstance(wanted, dict) and "matches" in wanted:
                try:
                    re.compile(str(cast("dict[str, Any]", wanted)["matches"]))
                except re.error as exc:
                    raise ValueError(f"'matches' is no regular expression: {exc}") from exc
        return expect


class Plan(Part):
    """A named list of steps."""

    name: str
    description: str = ""
    steps: tuple[Step, ...] = Field(min_length=1)


@dataclass(frozen=True, slots=True)
class StepDone:
    """What became of one step. `failure` says which expectation did not hold; `skipped` that its condition was not met.

    `args` are the arguments as they were sent, with variables filled in; `attempts` how often it was tried.
    """

    number: int
    step: Step
    args: Mapping[str, Any] = field(default_factory=dict[str, Any])
    result: ToolResult | None = None
    verdict: Verdict | None = None
    failure: str | None = None
    skipped: bool = False
    attempts: int = 0
    seconds: float = 0.0


def read_plan(path: Path) -> Plan:
    """The plan in a YAML file; `ConfigError` names file, line or key."""
    import yaml

    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as exc:
        raise ConfigError(f"the plan {path} cannot be read: {exc.strerror}") from exc
    except RecursionError as exc:
        raise ConfigError(f"the plan {path} contains itself, or is nested too deep") from exc
    except (yaml.YAMLError, UnicodeDecodeError) as exc:
        raise ConfigError(f"the plan {path} is not YAML: {' '.join(str(exc).split())}") from exc
    if not _finite(content, DEPTH):
        raise ConfigError(f"the plan {path} contains itself, or is nested too deep")
    if not isinstance(content, dict):
        raise ConfigError(f"the plan {path} is not a mapping", hint="it has the keys name and steps")
    try:
        return Plan.model_validate(content)
    except ValidationError as exc:
        raise ConfigError(f"{path}: {mistakes.told(mistakes.first(exc), Plan)}") from exc


def _finite(value: Any, depth: int) -> bool:
    """Whether nothing in it is nested deeper than that: an alias of YAML may make a value contain itself."""
    if isinstance(value, dict):
        return depth > 0 and all(_finite(item, depth - 1) for item in cast("dict[Any, Any]", value).values())
    if isinstance(value, list):
        return depth > 0 and all(_finite(item, depth - 1) for item in cast("list[Any]", value))
    return True


async def run_plan(
    plan: Plan, session: Session, *, told: Callable[[StepDone], None] = lambda done: None
) -> list[StepDone]:
    """Run the steps in order and stop at the first that fails; `told` hears of each as it ends."""
    variables: dict[str, Any] = {
        "workspace": str(session.workspace[0]),
        "cwd": str(session.cwd),
        "platform": session.runtime.platform,
    }
    verdicts: dict[str, Verdict] = {}

    def remember(event: Event) -> None:
        if isinstance(event, Judged):
            verdicts[event.call_id] = event.verdict

    stop = session.bus.subscribe(remember)
    finished: list[StepDone] = []
    try:
        for number, step in enumerate(plan.steps, start=1):
            done = await _run_step(number, step, session, variables, verdicts)
            finished.append(done)
            told(done)
            if done.failure is not None:
                break
    finally:
        stop()
    return finished


async def _run_step(
    number: int, step: Step, session: Session, variables: dict[str, Any], verdicts: Mapping[str, Verdict]
) -> StepDone:
    if any(variables.get(name) != wanted for name, wanted in step.when.items()):
        return StepDone(number, step, skipped=True)
    began = perf_counter()
    try:
        args = cast("dict[str, Any]", fill(step.args, variables))
        expected = cast("dict[str, Any]", fill(step.expect, variables))
    except HandrailError as exc:
        return StepDone(number, step, failure=str(exc))
    times = step.retry.times if step.retry else 1
    attempt = 0
    while True:
        attempt += 1
        call_id = f"step{number}" if attempt == 1 else f"step{number}-{attempt}"
        result = await session.call(step.tool, args, call_id=call_id)
        failure = unmet(expected, result)
        if failure is None or attempt >= times:
            break
        assert step.retry is not None
        await anyio.sleep(step.retry.wait)
    for name, path in step.save.items() if failure is None else ():
        variables[name] = look_up(result, path)
        if variables[name] is None:
            failure = f"the result has no {path!r} to save as {name!r}"
    return StepDone(
        number, step, args, result, verdicts.get(call_id), failure, attempts=attempt, seconds=perf_counter() - began
    )


def fill(value: Any, variables: Mapping[str, Any]) -> Any:
    """The value with every `${variable}` in its texts filled in; `ConfigError` for one that is not known."""
    if isinstance(value, str):
        return _fill_text(value, variables)
    if isinstance(value, Mapping):
        return {key: fill(item, variables) for key, item in cast("Mapping[str, Any]", value).items()}
    if isinstance(value, list):
        return [fill(item, variables) for item in cast("list[Any]", value)]
    return value


def _fill_text(text: str, variables: Mapping[str, Any]) -> Any:
    for name in VARIABLE.findall(text):
        if name not in variables:
            raise ConfigError(f"there is no variable {name!r}{nearest(name, variables)}")
    if whole := VARIABLE.fullmatch(text):
        return variables[whole[1]]
    return VARIABLE.sub(lambda found: str(variables[found[1]]), text)


def look_up(result: Any, path: str) -> Any:
    """The value at a dotted path (`elements.0.text`, `ui_elements.text=OK.id`); None where there is none."""
    node = result
    for part in path.split("."):
        if isinstance(node, Mapping):
            node = cast("Mapping[str, Any]", node).get(part)
        elif isinstance(node, list):
            node = _item(cast("list[Any]", node), part)
        else:
            return None
    return node


def _item(items: list[Any], part: str) -> Any:
    """The item at an index, or the first one that has the value of `key=value`."""
    if part.lstrip("-").isdigit():
        return items[int(part)] if -len(items) <= int(part) < len(items) else None
    key, _, value = part.partition("=")
    mappings = (cast("Mapping[str, Any]", item) for item in items if isinstance(item, Mapping))
    return next((item for item in mappings if str(item.get(key)) == value), None)


def unmet(expected: Mapping[str, Any], result: Mapping[str, Any]) -> str | None:
    """The first expectation that does not hold, as a sentence; None when all do.

    A value is compared for equality; `{contains: x}`, `{matches: regex}`, `{any: {…}}` (some item of a list fulfils these) say more.
    """
    for path, wanted in expected.items():
        found = look_up(result, path)
        if not _holds(found, wanted):
            return f"{path} is {_brief(found)}, expected {_brief(wanted)}{_told(result)}"
    return None


def _holds(found: Any, wanted: Any) -> bool:
    match wanted:
        case {"contains": part, **rest} if not rest:
            return str(part) in found if isinstance(found, str) else isinstance(found, list) and part in found
        case {"matches": pattern, **rest} if not rest:
            return isinstance(found, str) and re.search(str(pattern), found) is not None
        case {"any": inner, **rest} if not rest:
            items = cast("list[Any]", found) if isinstance(found, list) else []
            return any(
                unmet(inner, cast("Mapping[str, Any]", item)) is None for item in items if isinstance(item, Mapping)
            )
        case _:
            return found == wanted


def _told(result: Mapping[str, Any]) -> str:
    error = result.get("error")
    return f" ({error['message']})" if error else ""


def _brief(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}…"

"""Plans: tool calls written down in YAML, which run one after another through the whole path, without a model (`replaying`).

    name: greet
    description: Say hello in a file.

parameters:
      whom: {description: Who is greeted., default: world}
    steps:
      - name: look
        tool: execute_cli
        args: {command: "cat greeting.txt"}
        expect: {stdout: {contains: hello}}   # default: {status: success}
        save: {greeting: stdout}              # a variable from a dotted path of the result
        retry: {times: 5, wait: 0.5}          # again while the expectation does not hold
      - set: {key: ctrl+s}                    # variables, without a call
      - when: {platform: darwin}              # expectations of the variables; the step is left out where they do not hold
        set: {key: cmd+s}
      - when: {greeting: {contains: hello}}
        steps:                                # several steps under one condition
          - tool: execute_gui
            args: {action: type, text: "${greeting}, ${whom}!"}
          - tool: execute_gui
            args: {action: hotkey, key: "${key}"}

`${workspace}`, `${cwd}` and `${platform}` are there from the start. A text that is nothing but one variable keeps the variable's type.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self, cast

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, TypeAdapter, ValidationError, model_validator

from handrail.errors import ConfigError
from handrail.records.matching import unsound, variables_in
from handrail.tools import mistakes
from handrail.tools.contract import Tool
from handrail.words import nearest

DEPTH = 30
MAX_BYTES = 1_048_576
# Variables that are there from the start.
GIVEN = ("workspace", "cwd", "platform")

Variable = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
Kind = Literal["text", "integer", "number", "boolean", "list"]

TYPES: Mapping[Kind, TypeAdapter[Any]] = {
    "text": TypeAdapter(str),
    "integer": TypeAdapter(int),
    "number": TypeAdapter(float),
    "boolean": TypeAdapter(bool),
    "list": TypeAdapter(list[Any]),
}


class Part(BaseModel):
    """A part of a plan: unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Retry(Part):
    """Do a step again, at most `times` times and `wait` seconds apart, while its expectation does not hold."""

    times: int = Field(ge=1, le=1000)
    wait: float = Field(0.25, ge=0, le=60)


class Parameter(Part):
    """What whoever runs the plan may say. Without a default it must be said."""

    description: str = ""
    type: Kind = "text"
    default: Any = None
    choices: tuple[Any, ...] = ()

    @property
    def required(self) -> bool:
        return "default" not in self.model_fields_set


class Step(Part):
    """One tool call and what must be true of its result; or variables that are set; or several steps under one condition."""

    tool: str = ""
    set: dict[Variable, Any] = Field(default_factory=dict[str, Any])
    steps: tuple[Step, ...] = ()
    name: str = ""
    when: dict[str, Any] = Field(default_factory=dict[str, Any])
    args: dict[str, Any] = Field(default_factory=dict[str, Any])
    expect: dict[str, Any] = Field(default_factory=lambda: {"status": "success"})
    save: dict[Variable, str] = Field(default_factory=dict[str, str])
    retry: Retry | None = None

    @model_validator(mode="after")
    def _one_thing(self) -> Self:
        if sum(map(bool, (self.tool, self.set, self.steps))) != 1:
            raise ValueError("a step has exactly one of tool, set and steps")
        if not self.tool and (alone := self.model_fields_set & {"args", "expect", "save", "retry"}):
            raise ValueError(f"{', '.join(sorted(alone))}: only a step with a tool has that")
        for wanted in (*self.expect.values(), *self.when.values()):
            if (why := unsound(wanted)) is not None:
                raise ValueError(why)
        return self

    @property
    def title(self) -> str:
        return self.name or self.tool or (f"set {', '.join(self.set)}" if self.set else f"{len(self.steps)} steps")

    def calls(self) -> Iterator[Step]:
        """The steps that are no groups: itself, or those inside it."""
        if not self.steps:
            yield self
        for step in self.steps:
            yield from step.calls()


class Plan(Part):
    """A named list of steps."""

    name: str
    description: str = ""
    parameters: dict[Variable, Parameter] = Field(default_factory=dict[str, Parameter])
    steps: tuple[Step, ...] = Field(min_length=1)

    @property
    def count(self) -> int:
        """How many steps it has, those inside others counted each."""
        return sum(1 for step in self.steps for _ in step.calls())

    def values(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """A value for each parameter; `ConfigError` for one that is not known, does not fit, or is missing.

        A text is taken for what its parameter is: "3" for an integer.
        """
        for name in given:
            if name not in self.parameters:
                raise ConfigError(f"plan {self.name!r} has no parameter {name!r}{nearest(name, self.parameters)}")
        return {name: self._value(name, parameter, given) for name, parameter in self.parameters.items()}

    def _value(self, name: str, parameter: Parameter, given: Mapping[str, Any]) -> Any:
        if name not in given:
            if parameter.required:
                raise ConfigError(f"plan {self.name!r} needs the parameter {name!r}", hint=parameter.description)
            return parameter.default
        try:
            value = _typed(given[name], parameter.type)
        except ValidationError as exc:
            raise ConfigError(f"the parameter {name!r} is {given[name]!r}, which is no {parameter.type}") from exc
        if parameter.choices and value not in parameter.choices:
            raise ConfigError(
                f"the parameter {name!r} is {value!r}; it is one of {', '.join(map(str, parameter.choices))}"
            )
        return value


def _typed(value: Any, kind: Kind) -> Any:
    if isinstance(value, str) and kind == "list":
        return TYPES[kind].validate_json(value)
    return TYPES[kind].validate_python(value)


def read_plan(path: Path) -> Plan:
    """The plan in a YAML file; `ConfigError` names file, line or key."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
        text = data.decode("utf-8-sig")
    except OSError as exc:
        raise ConfigError(f"the plan {path} cannot be read: {exc.strerror}") from exc
    except UnicodeDecodeError as exc:
        raise ConfigError(f"the plan {path} is not YAML: it is not UTF-8") from exc
    if len(data) > MAX_BYTES:
        raise ConfigError(f"the plan {path} has more than {MAX_BYTES:,} bytes")
    return parse_plan(text, where=path)


def parse_plan(text: str, *, where: Path) -> Plan:
    """The plan in a text; `where` is what errors call it."""
    import yaml

    try:
        content = yaml.safe_load(text)
    except RecursionError as exc:
        raise ConfigError(f"the plan {where} contains itself, or is nested too deep") from exc
    except yaml.YAMLError as exc:
        raise ConfigError(f"the plan {where} is not YAML: {' '.join(str(exc).split())}") from exc
    if not _finite(content, DEPTH):
        raise ConfigError(f"the plan {where} contains itself, or is nested too deep")
    if not isinstance(content, dict):
        raise ConfigError(f"the plan {where} is not a mapping", hint="it has the keys name and steps")
    try:
        return Plan.model_validate(content)
    except ValidationError as exc:
        raise ConfigError(f"{where}: {mistakes.told(mistakes.first(exc), Plan)}") from exc


def _finite(value: Any, depth: int) -> bool:
    """Whether nothing in it is nested deeper than that: an alias of YAML may make a value contain itself."""
    if isinstance(value, dict):
        return depth > 0 and all(_finite(item, depth - 1) for item in cast("dict[Any, Any]", value).values())
    if isinstance(value, list):
        return depth > 0 and all(_finite(item, depth - 1) for item in cast("list[Any]", value))
    return True


def faults(plan: Plan, tools: Mapping[str, Tool | None]) -> list[str]:
    """What would go wrong with a plan however it is run: tools and arguments that do not exist, variables that nothing sets before.

    None stands for a tool of whose arguments nothing is known.
    """
    return list(_faults(plan.steps, {*GIVEN, *plan.parameters}, tools, ""))


def _faults(steps: Sequence[Step], known: set[str], tools: Mapping[str, Tool | None], above: str) -> Iterator[str]:
    for number, step in enumerate(steps, start=1):
        place = f"{above}{number}"
        for name in dict.fromkeys(variables_in([step.args, step.expect, step.set])):
            if name not in known:
                yield f"step {place}: nothing sets the variable {name!r} before{nearest(name, known)}"
        for name in step.when:
            if (first := name.partition(".")[0]) not in known:
                yield f"step {place}: nothing sets the variable {first!r} before{nearest(first, known)}"
        if step.tool:
            yield from (f"step {place}: {fault}" for fault in _misuse(step, tools))
        yield from _faults(step.steps, known, tools, f"{place}.")
        known |= {*step.set, *step.save}


def _misuse(step: Step, tools: Mapping[str, Tool | None]) -> Iterator[str]:
    if step.tool not in tools:
        yield f"there is no tool {step.tool!r}{nearest(step.tool, tools)}"
        return
    if (tool := tools[step.tool]) is None:
        return
    properties: Mapping[str, Any] = tool.input_schema.get("properties", {})
    for name in step.args:
        if name not in properties:
            yield f"{step.tool} has no argument {name!r}{nearest(name, properties)}"
    for name in tool.input_schema.get("required", ()):
        if name not in step.args:
            yield f"{step.tool} needs the argument {name!r}"

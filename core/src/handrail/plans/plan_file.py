"""Plans: tool calls written in YAML that run one after another through the full call path, without a model (`replay`).

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

`${workspace}`, `${cwd}` and `${platform}` are predefined. A text that consists of a single variable keeps the
variable's type; `$${name}` is the literal text `${name}`. Things on the screen are identified by their properties:

    look: {tool: observe_screen}              # how the screen is looked at
    steps:
      - tool: execute_gui
        args: {action: click}
        find: {element_id: {role: push button, text: "8", window: galculator}}
        picture: greet.pictures/1.jpg         # how the screen was when the step was recorded
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Annotated, Any, Literal, Self

from pydantic import Field, StringConstraints, TypeAdapter, ValidationError, model_validator

from handrail import validation_messages
from handrail.api.tool import Tool
from handrail.audit.selectors import ElementSelector, PlanPart, PointSelector
from handrail.config.source_text import read_regular_file
from handrail.errors import ConfigError
from handrail.fs.yaml_files import find_yaml_traps, load_yaml
from handrail.json_types import is_list, is_object
from handrail.plans.expressions import find_expectation_error, iter_variables
from handrail.text import format_suggestion

__all__ = ["PlanStep", "ReplayPlan", "find_plan_faults", "parse_plan"]

MAX_PLAN_DEPTH = 30
MAX_PLAN_BYTES = 1_048_576
# Variables that are there from the start.
GIVEN_VARIABLES = ("workspace", "cwd", "platform")

VariableName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
ParameterKind = Literal["text", "integer", "number", "boolean", "list"]

TYPE_ADAPTERS: Mapping[ParameterKind, TypeAdapter[Any]] = {
    "text": TypeAdapter(str),
    "integer": TypeAdapter(int),
    "number": TypeAdapter(float),
    "boolean": TypeAdapter(bool),
    "list": TypeAdapter(list[Any]),
}


class RetryPolicy(PlanPart):
    """Do a step again, at most `times` times and `wait` seconds apart, while its expectation does not hold."""

    times: int = Field(ge=1, le=1000)
    wait: float = Field(0.25, ge=0, le=60)


class PlanParameter(PlanPart):
    """Value that can be given when the plan is run. It must be given if it has no default."""

    description: str = ""
    type: ParameterKind = "text"
    default: Any = None
    choices: tuple[Any, ...] = ()

    @model_validator(mode="after")
    def _default_fits(self) -> Self:
        # A text may be written as what YAML takes for something else; without one it is None.
        if self.default is None:
            return self
        try:
            if self.type != "text":
                _parse_parameter_value(self.default, self.type)
        except ValidationError as exc:
            raise ValueError(f"the default {self.default!r} is no {self.type}") from exc
        if self.choices and self.default not in self.choices:
            raise ValueError(f"the default {self.default!r} is none of the choices {list(self.choices)}")
        return self

    @property
    def required(self) -> bool:
        return "default" not in self.model_fields_set


class LookCall(PlanPart):
    """The call that looks at the screen: to find what steps name, and for the picture of a step that fails.

    `seconds`: how long what a step names may take to appear.
    """

    tool: str
    args: dict[str, Any] = Field(default_factory=dict[str, Any])
    seconds: float = Field(default=5, ge=0, le=60)


class PlanStep(PlanPart):
    """One tool call and what must be true of its result; or variables that are set; or several steps under one condition.

    `find` names elements by what they are, `at` a point; both become arguments of the call. `front` is a part of the title of the window that
    must be in front before it is made. `picture` is a file beside the plan that shows
    how the screen was when the step was recorded.
    """

    tool: str = ""
    set: dict[VariableName, Any] = Field(default_factory=dict[str, Any])
    steps: tuple[PlanStep, ...] = ()
    name: str = ""
    when: dict[str, Any] = Field(default_factory=dict[str, Any])
    args: dict[str, Any] = Field(default_factory=dict[str, Any])
    find: dict[str, ElementSelector] = Field(default_factory=dict[str, ElementSelector])
    at: PointSelector | None = None
    front: str = ""
    picture: str = ""
    expect: dict[str, Any] = Field(default_factory=lambda: {"status": "success"})
    save: dict[VariableName, str] = Field(default_factory=dict[str, str])
    retry: RetryPolicy | None = None

    @model_validator(mode="after")
    def _one_thing(self) -> Self:
        if sum(map(bool, (self.tool, self.set, self.steps))) != 1:
            raise ValueError("a step has exactly one of tool, set and steps")
        alone = self.model_fields_set & {"args", "find", "at", "front", "picture", "expect", "save", "retry"}
        if not self.tool and alone:
            raise ValueError(f"{', '.join(sorted(alone))}: only a step with a tool has that")
        if PurePath(self.picture).is_absolute() or ".." in PurePath(self.picture).parts:
            raise ValueError("picture is a file beside the plan, and leads nowhere else")
        for wanted in (*self.expect.values(), *self.when.values()):
            if (why := find_expectation_error(wanted)) is not None:
                raise ValueError(why)
        return self

    @property
    def title(self) -> str:
        return self.name or self.tool or (f"set {', '.join(self.set)}" if self.set else f"{len(self.steps)} steps")

    def sought(self) -> dict[str, Any]:
        """Return what the step names on the screen, as written in the plan."""
        found = {argument: locator.model_dump(exclude_defaults=True) for argument, locator in self.find.items()}
        at = {} if self.at is None else {"at": self.at.model_dump(exclude_defaults=True)}
        return {**found, **at, **({"front": self.front} if self.front else {})}

    def calls(self) -> Iterator[PlanStep]:
        """Yield the steps that are not groups: this one, or those inside it."""
        if not self.steps:
            yield self
        for step in self.steps:
            yield from step.calls()


class ReplayPlan(PlanPart):
    """A named list of steps."""

    name: str
    description: str = ""
    parameters: dict[VariableName, PlanParameter] = Field(default_factory=dict[str, PlanParameter])
    look: LookCall | None = None
    steps: tuple[PlanStep, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _can_look(self) -> Self:
        sought = (step for each in self.steps for step in each.calls() if step.sought())
        if self.look is None and (first := next(sought, None)) is not None:
            raise ValueError(f"the step {first.title!r} has find, at or front, and the plan does not say how to look")
        return self

    @property
    def count(self) -> int:
        """Number of steps, counting each step inside a group."""
        return sum(1 for step in self.steps for _ in step.calls())

    def values(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return a value for each parameter.

        Raises `ConfigError` for a value whose parameter is unknown, a value that does not fit, or a missing one. A text
        is converted to its parameter's type: "3" for an integer.
        """
        for name in given:
            if name not in self.parameters:
                raise ConfigError(
                    f"plan {self.name!r} has no parameter {name!r}{format_suggestion(name, self.parameters)}"
                )
        return {name: self._value(name, parameter, given) for name, parameter in self.parameters.items()}

    def _value(self, name: str, parameter: PlanParameter, given: Mapping[str, Any]) -> Any:
        if name not in given:
            if parameter.required:
                raise ConfigError(f"plan {self.name!r} needs the parameter {name!r}", hint=parameter.description)
            return parameter.default
        try:
            value = _parse_parameter_value(given[name], parameter.type)
        except ValidationError as exc:
            raise ConfigError(f"the parameter {name!r} is {given[name]!r}, which is no {parameter.type}") from exc
        if parameter.choices and value not in parameter.choices:
            raise ConfigError(
                f"the parameter {name!r} is {value!r}; it is one of {', '.join(map(str, parameter.choices))}"
            )
        return value


def _parse_parameter_value(value: Any, kind: ParameterKind) -> Any:
    if isinstance(value, str) and kind == "list":
        return TYPE_ADAPTERS[kind].validate_json(value)
    return TYPE_ADAPTERS[kind].validate_python(value)


def read_plan(path: Path) -> ReplayPlan:
    """Read the plan in a YAML file; raises `ConfigError` that names the file, line or key."""
    return parse_plan(read_regular_file(path, MAX_PLAN_BYTES, kind="plan"), where=path)


def parse_plan(data: bytes, *, where: Path) -> ReplayPlan:
    """Parse a plan from a file's content; `where` is the file's name in errors."""
    import yaml

    if len(data) > MAX_PLAN_BYTES:
        raise ConfigError(f"the plan {where} has more than {MAX_PLAN_BYTES:,} bytes")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        raise ConfigError(f"the plan {where} is not YAML: it is not UTF-8") from exc
    try:
        for line, why in find_yaml_traps(text, aliases=True):
            raise ConfigError(f"the plan {where}, line {line}: {why}")
        content = load_yaml(text)
    except RecursionError as exc:
        raise ConfigError(f"the plan {where} contains itself, or is nested too deep") from exc
    except yaml.YAMLError as exc:
        raise ConfigError(f"the plan {where} is not YAML: {' '.join(str(exc).split())}") from exc
    if not _is_within_depth(content, MAX_PLAN_DEPTH):
        raise ConfigError(f"the plan {where} contains itself, or is nested too deep")
    if not isinstance(content, dict):
        raise ConfigError(f"the plan {where} is not a mapping", hint="it has the keys name and steps")
    try:
        return ReplayPlan.model_validate(content)
    except ValidationError as exc:
        raise ConfigError(
            f"{where}: {validation_messages.describe_error(validation_messages.select_error(exc), ReplayPlan)}"
        ) from exc


def _is_within_depth(value: Any, depth: int) -> bool:
    """Return True if nothing in a value is nested deeper than `depth`; a YAML alias may make a value contain itself."""
    if is_object(value):
        return depth > 0 and all(_is_within_depth(item, depth - 1) for item in value.values())
    if is_list(value):
        return depth > 0 and all(_is_within_depth(item, depth - 1) for item in value)
    return True


def find_plan_faults(plan: ReplayPlan, tools: Mapping[str, Tool | None]) -> list[str]:
    """Return the faults of a plan that do not depend on its values.

    These are tools and arguments that do not exist, and variables that nothing sets before their use. A tool of None is
    one whose arguments are unknown.
    """
    look = (
        [f"look: {fault}" for fault in _iter_tool_misuse(plan.look.tool, plan.look.args, tools)]
        if plan.look is not None
        else []
    )
    return [*look, *_iter_step_faults(plan.steps, {*GIVEN_VARIABLES, *plan.parameters}, tools, "")]


def find_unset_variables(plan: ReplayPlan) -> Iterator[str]:
    """Yield a sentence for each variable that steps need and nothing sets before them, under any conditions."""
    return _iter_step_faults(plan.steps, {*GIVEN_VARIABLES, *plan.parameters}, None, "")


def _iter_step_faults(
    steps: Sequence[PlanStep], known: set[str], tools: Mapping[str, Tool | None] | None, above: str
) -> Iterator[str]:
    for number, step in enumerate(steps, start=1):
        place = f"{above}{number}"
        for name in dict.fromkeys(iter_variables([step.args, step.expect, step.set, step.sought()])):
            if name not in known:
                yield f"step {place}: nothing sets the variable {name!r} before{format_suggestion(name, known)}"
        for name in step.when:
            if (first := name.partition(".")[0]) not in known:
                yield f"step {place}: nothing sets the variable {first!r} before{format_suggestion(first, known)}"
        if step.tool and tools is not None:
            given = {**step.args, **dict.fromkeys(step.find), **({"x": 0, "y": 0} if step.at is not None else {})}
            yield from (f"step {place}: {fault}" for fault in _iter_tool_misuse(step.tool, given, tools))
        yield from _iter_step_faults(step.steps, known, tools, f"{place}.")
        known |= {*step.set, *step.save}


def _iter_tool_misuse(name: str, given: Mapping[str, Any], tools: Mapping[str, Tool | None]) -> Iterator[str]:
    if name not in tools:
        yield f"there is no tool {name!r}{format_suggestion(name, tools)}"
        return
    if (tool := tools[name]) is None:
        return
    properties: Mapping[str, Any] = tool.input_schema.get("properties", {})
    for argument in given:
        if argument not in properties:
            yield f"{name} has no argument {argument!r}{format_suggestion(argument, properties)}"
    for argument in tool.input_schema.get("required", ()):
        if argument not in given:
            yield f"{name} needs the argument {argument!r}"

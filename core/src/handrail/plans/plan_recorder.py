"""Plans made of what was done: each call that worked, with what lasts in the place of ids, and with its pictures."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from handrail.api.result import detect_picture_type
from handrail.api.tool import Input, Read, Tool
from handrail.artifacts.picture_files import read_picture
from handrail.audit.step_recorder import RecordedStep
from handrail.errors import ConfigError, HandrailError
from handrail.fs import safe_open
from handrail.fs.app_dirs import ensure_private_folder, write_private_file
from handrail.json_types import is_mapping, is_sequence
from handrail.plans.expressions import escape_variables
from handrail.plans.plan_file import ReplayPlan
from handrail.redaction import REDACTED_TEXT

EXPECTED_VALUES = {"effect": "confirmed", "met": True}
# How a record says that it does not hold all.
TRUNCATION_MARK = re.compile(r"(?s).*… \[\d+ characters\]|… \d+ items|\[\d+ characters\]")
# What a look shows; whatever else a tool reads is more than the screen.
LOOK_EFFECTS = frozenset(("screen", "tree"))


def iter_recorded_steps(lines: Iterable[Mapping[str, Any]], kept: Path) -> Iterator[RecordedStep]:
    """Yield the calls found in the lines of an audit, in the order they ended, without nested calls.

    `kept`: the directory with the pictures of the session's results.
    """
    begun: dict[str, Mapping[str, Any]] = {}
    for line in lines:
        call_id = str(line.get("call_id"))
        if line.get("event") == "call" and "parent" not in line:
            begun.setdefault(call_id, line)
        elif line.get("event") == "result" and (call := begun.pop(call_id, None)) is not None:
            tool = call.get("asked_for", call["tool"])
            picture = read_picture(kept, line.get("picture"))
            yield RecordedStep(tool, call.get("args", {}), call.get("meant", {}), line.get("result", {}), picture)


@dataclass(frozen=True, slots=True)
class RecordingOptions:
    """Options for building a plan.

    They are its name, the directory that is `${workspace}`, values that become parameters, and `inputs`: True if
    everything that was typed becomes a parameter as well.
    """

    name: str
    workspace: str = ""
    params: Mapping[str, str] = field(default_factory=dict[str, str])
    inputs: bool = False


@dataclass(frozen=True, slots=True)
class PlanRecording:
    """A plan in the making: what its file holds, the pictures beside it by their names, and what was left out and why."""

    content: Mapping[str, Any]
    pictures: Mapping[str, bytes]
    left_out: Sequence[str]

    @property
    def count(self) -> int:
        return len(self.content["steps"])

    def write(self, path: Path) -> Path:
        """Write the file, for its owner only, and its pictures beside it.

        Raises `HandrailError` where the file is there already, or a link in the place of the pictures.
        """
        import yaml

        if path.exists():
            raise HandrailError(f"{str(path)!r} is there already", hint="name another file, or remove it first")
        ReplayPlan.model_validate(self.content)
        folder = path.parent.resolve() / _pictures_folder(path.name)
        if folder.is_symlink():
            raise HandrailError(f"{str(folder)!r} is a link", hint="remove it, or name another file")
        for name, data in self.pictures.items():
            safe_open.replace_file(ensure_private_folder(folder) / name, data, mode=0o600)
        steps = [
            {**step, "picture": f"{folder.name}/{step['picture']}"} if "picture" in step else step
            for step in self.content["steps"]
        ]
        text = yaml.safe_dump({**self.content, "steps": steps}, sort_keys=False, allow_unicode=True, width=120)
        write_private_file(path, text)
        return path


def _pictures_folder(name: str) -> str:
    return f"{name.rpartition('.')[0] or name}.pictures"


def build_plan(made: Iterable[RecordedStep], tools: Mapping[str, Tool], wishes: RecordingOptions) -> PlanRecording:
    """Build the plan that repeats these calls; raises `ConfigError` if nothing is left to do.

    Failed calls are left out, and so are looks at the screen: what a look saw is in the steps after it.
    """
    making = _PlanBuilder(tools, wishes)
    for each in made:
        making.take(each)
    if not making.steps:
        raise ConfigError("nothing was done that a plan could do again", hint="`handrail history` shows the calls")
    return making.recording()


def _is_look_tool(tool: Tool | None) -> bool:
    """Return True if the tool does nothing except show the screen."""
    return (
        tool is not None
        and bool(tool.effects)
        and all(isinstance(e, Read) and e.what in LOOK_EFFECTS for e in tool.effects)
    )


class _PlanBuilder:
    """One plan in the making."""

    def __init__(self, tools: Mapping[str, Tool], wishes: RecordingOptions) -> None:
        self._tools = tools
        self._wishes = wishes
        self._picture: bytes | None = None
        self._results: list[Mapping[str, Any]] = []
        self.steps: list[dict[str, Any]] = []
        self._parameters: dict[str, dict[str, Any]] = {}
        self._values = {value: name for name, value in wishes.params.items() if value}
        for name, value in wishes.params.items():
            self._parameters[name] = {"default": value}
        # What was typed, each as the parameter that it became.
        self._typed: dict[str, str] = {}
        self._pictures: dict[str, bytes] = {}
        self._left_out: list[str] = []

    def take(self, made: RecordedStep) -> None:
        """Add the next call to the plan."""
        tool = self._tools.get(made.tool)
        status = made.result.get("status")
        if status != "success":
            self._left_out.append(f"{made.tool}: its status was {status}")
        elif _is_look_tool(tool):
            self._picture = made.picture or self._picture
        else:
            self._step(made, tool)

    def _step(self, made: RecordedStep, tool: Tool | None) -> None:
        meant = dict(made.meant)
        dropped = {*meant.get("find", ()), *({"x", "y", "to_x", "to_y"} if meant.keys() & {"find", "at"} else ())}
        if dropped:
            dropped.add("observation_id")
        typed = _list_typed_arguments(tool) if self._wishes.inputs else frozenset[str]()
        args = {
            key: self._said(key, value, all_of_it=key in typed)
            for key, value in made.args.items()
            if key not in dropped
        }
        step: dict[str, Any] = {"tool": made.tool}
        if (name := _build_step_name(made)) is not None:
            step = {"name": name, **step}
        if args:
            step["args"] = args
        step |= {key: self._all(value, self._text) for key, value in meant.items() if key in ("find", "at", "front")}
        worked = {key: value for key, value in EXPECTED_VALUES.items() if made.result.get(key) == value}
        if worked:
            step["expect"] = {"status": "success", **worked}
        if self._picture is not None and (tool is None or tool.inputs):
            step["picture"] = self._kept(self._picture)
        self.steps.append(step)
        self._results.append(made.result)

    def _kept(self, data: bytes) -> str:
        ending = detect_picture_type(base64.b64encode(data[:12]).decode("ascii")).rpartition("/")[2]
        name = f"{len(self.steps) + 1}.{'jpg' if ending == 'jpeg' else ending}"
        self._pictures[name] = data
        return name

    def _said(self, key: str, value: Any, *, all_of_it: bool) -> Any:
        """Return an argument as the plan has it: an earlier result's id as a variable, the rest with parameters."""
        if isinstance(value, str):
            if key.endswith("_id") and (variable := self._saved(key, value)) is not None:
                return variable
            if all_of_it and value:
                return self._input(value)
        return self._all(value, self._text)

    def _saved(self, key: str, value: str) -> str | None:
        """Return a reference to the variable with an id from an earlier call's result under the same name, or None."""
        for step, result in zip(reversed(self.steps), reversed(self._results), strict=True):
            if result.get(key) == value:
                saved: dict[str, str] = step.setdefault("save", {})
                names = [name for name, path in saved.items() if path == key]
                variable = names[0] if names else self._fresh(key)
                saved[variable] = key
                return f"${{{variable}}}"
        return None

    def _fresh(self, name: str) -> str:
        taken = {*self._parameters, *(variable for step in self.steps for variable in step.get("save", ()))}
        return next(new for n in range(1, len(taken) + 3) if (new := name if n == 1 else f"{name}_{n}") not in taken)

    def _all(self, value: Any, change: Callable[[str], str]) -> Any:
        """Return the value with `change` applied to every text in it."""
        if isinstance(value, str):
            return change(value)
        if is_mapping(value):
            return {key: self._all(item, change) for key, item in value.items()}
        if is_sequence(value):
            return [self._all(item, change) for item in value]
        return value

    def _text(self, text: str) -> str:
        """Return the text with variables for the workspace, parameter values, and what the record does not hold."""
        if TRUNCATION_MARK.fullmatch(text):
            return self._missing("text", "The record holds a part of it only.")
        known = {**({self._wishes.workspace: "workspace"} if self._wishes.workspace else {}), **self._values}
        if not known:
            return self._plain(text)
        parts = re.split("|".join(f"({re.escape(each)})" for each in sorted(known, key=len, reverse=True)), text)
        return "".join(
            f"${{{known[part]}}}" if part in known else self._plain(part) for part in parts if part is not None
        )

    def _plain(self, text: str) -> str:
        parts = [escape_variables(part) for part in text.split(REDACTED_TEXT)]
        whole = parts[0]
        for part in parts[1:]:
            whole += self._missing("secret", "The record does not hold it.") + part
        return whole

    def _missing(self, name: str, why: str) -> str:
        fresh = self._fresh(name)
        self._parameters[fresh] = {"description": why}
        return f"${{{fresh}}}"

    def _input(self, text: str) -> str:
        """Turn what was typed into a parameter; for a path in the workspace, only the part below it."""
        text_of = self._text(text)
        if any(each in text for each in self._values) or REDACTED_TEXT in text or TRUNCATION_MARK.fullmatch(text):
            return text_of
        root = self._wishes.workspace
        inside = bool(root) and text.startswith(f"{root}/") and text != f"{root}/"
        typed = text.removeprefix(f"{root}/") if inside else text
        if typed not in self._typed:
            self._typed[typed] = self._fresh("text")
            self._parameters[self._typed[typed]] = {"default": typed}
        return ("${workspace}/" if inside else "") + f"${{{self._typed[typed]}}}"

    def recording(self) -> PlanRecording:
        """Return the finished plan.

        Raises `ConfigError` if the plan needs a look at the screen and no tool can do that.
        """
        content: dict[str, Any] = {"name": self._wishes.name}
        if self._parameters:
            content["parameters"] = self._parameters
        look = next((name for name, tool in self._tools.items() if _is_look_tool(tool) and _is_screen_tool(tool)), None)
        sought = any(step.keys() & {"find", "at", "front"} for step in self.steps)
        if look is not None and (sought or any(_is_input_tool(self._tools.get(step["tool"])) for step in self.steps)):
            content["look"] = {"tool": look}
        elif sought:
            raise ConfigError("no tool here looks at the screen", hint="the plan needs one: enable the plugin gui")
        return PlanRecording({**content, "steps": self.steps}, self._pictures, self._left_out)


def _is_screen_tool(tool: Tool) -> bool:
    return any(effect.what == "screen" for effect in tool.effects) and not tool.input_schema.get("required")


def _is_input_tool(tool: Tool | None) -> bool:
    return tool is not None and tool.inputs


def _list_typed_arguments(tool: Tool | None) -> frozenset[str]:
    """Return the arguments that are typed on the desktop."""
    if tool is None:
        return frozenset()
    return frozenset(effect.arg for effect in tool.effects if isinstance(effect, Input) and effect.arg is not None)


def _build_step_name(made: RecordedStep) -> str | None:
    """Return a step's name for reports: the action and its target; None if the tool's name says as much."""
    action = made.args.get("action")
    sought: Mapping[str, Mapping[str, Any]] = made.meant.get("find", {})
    found = next(iter(sought.values()), dict[str, Any]())
    what = found.get("text") or found.get("role") or made.args.get("element_name") or made.args.get("key")
    words = [str(each).replace("_", " ") for each in (action, what) if isinstance(each, str) and each]
    called = " ".join(words)[:80].replace("${", "$")
    return called[:1].upper() + called[1:] if len(words) > 1 else None

"""Contracts: subclass one, give what it asks for, and every promise that the project makes of such a thing is tested.

class TestGreet(ToolContract):
    @pytest.fixture
    def tool(self):
        return greet

    @pytest.fixture
    def good_args(self):
        return {"name": "Ada"}
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import math
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any, TypeVar

import anyio
import pytest

from handrail.api.approval import yes
from handrail.api.call import Invocation, confirmation_wire
from handrail.api.events import Event, Started
from handrail.api.result import Media, ToolResult
from handrail.api.tool import Tool
from handrail.api.verdict import Decision, Verdict
from handrail.audit.writer import verify_audit
from handrail.errors import InvalidArguments, Stopped, TimedOut
from handrail.json_types import is_list, is_mapping, is_object, is_sequence
from handrail.session.session import Session
from handrail.testing.fakes import fake_backend
from handrail.testing.session_fixtures import open_test_session

MAX_DESCRIPTION = 1_000
MAX_LINE = 400
# Seconds in which a call that is stopped must be over; generous, for machines that do much else.
PROMPT_S = 1.0
# Effects on these say too little without the parameter that names which.
PERSON_VISIBLE_EFFECTS = frozenset({"file", "folder", "shell"})
UNKNOWN_ARGUMENT = "no_such_parameter"

T = TypeVar("T")


class ToolContract:
    """Contract of every tool. Each test says in its failure what to fix.

        class TestGreet(ToolContract):
            @pytest.fixture
            def tool(self):
                return greet

            @pytest.fixture
            def good_args(self):
                return {"name": "Ada"}

    Provide the fixtures `tool` and `good_args`: arguments with which it succeeds. Optional fixtures are `bad_args`
    (argument sets that it must answer with an error), `options` (passed to `open_test_session`: services, backends,
    settings …; with `plugins` the tool is taken from those), and `prepare` (an async function that receives the session
    before each call).
    """

    @pytest.fixture
    def tool(self) -> Tool:
        """Return the tool under test."""
        raise NotImplementedError("give a fixture `tool` that returns the Tool")

    @pytest.fixture
    def good_args(self) -> Mapping[str, Any]:
        """Return arguments with which the tool succeeds in a session of `options`."""
        raise NotImplementedError("give a fixture `good_args` that returns arguments with which the tool succeeds")

    @pytest.fixture
    def bad_args(self) -> Sequence[Mapping[str, Any]]:
        """Argument sets that the tool answers with an error."""
        return ()

    @pytest.fixture
    def options(self) -> Mapping[str, Any]:
        """Return what `open_test_session` receives besides the tool."""
        return {}

    @pytest.fixture
    def prepare(self) -> Callable[[Session], Coroutine[Any, Any, None]]:
        """Return a function that prepares a new session for the call."""
        return _prepare_nothing

    @pytest.fixture
    def trial(
        self,
        tool: Tool,
        options: Mapping[str, Any],
        prepare: Callable[[Session], Coroutine[Any, Any, None]],
        tmp_path: Path,
    ) -> ToolTrial:
        """Return a trial, which runs checks in a session that knows the tool."""
        return ToolTrial(tool, options, prepare, tmp_path)

    # What a model is told

    def test_its_description_says_what_it_does_and_what_it_returns(
        self, tool: Tool, trial: ToolTrial, good_args: Mapping[str, Any]
    ) -> None:
        text = tool.description.strip()
        assert 0 < len(text) <= MAX_DESCRIPTION, (
            f"If this fails, write a description of at most {MAX_DESCRIPTION:,} characters; it has {len(text):,}."
        )
        result = trial.call(good_args)
        keys = [key for key in result if key not in ("status", "duration_ms")]
        says = "return" in text.casefold() or any(key in text for key in keys)
        assert says or not keys, (
            f"If this fails, let the description say what comes back; the result has {', '.join(keys)}."
        )

    def test_every_parameter_is_described(self, tool: Tool) -> None:
        bare = [
            where for where, prop in _iter_properties(tool.input_schema) if not _is_described(prop, tool.input_schema)
        ]
        assert not bare, (
            f"If this fails, describe these with Field(description=…) or in the docstring: {', '.join(bare)}."
        )

    def test_its_schema_is_a_closed_object_without_titles(self, tool: Tool) -> None:
        schema = tool.input_schema
        assert schema["type"] == "object", "If this fails, make the parameters a model with one field an argument."
        titles = [where for where, node in _iter_schema_nodes(schema) if isinstance(node.get("title"), str)]
        assert not titles, f"If this fails, something puts titles into the schema, at {', '.join(titles)}."
        open_ones = [
            where for where, node in _iter_schema_nodes(schema) if node.get("properties") and _is_open_object(node)
        ]
        assert not open_ones, f'If this fails, give these models extra="forbid": {", ".join(open_ones)}.'
        json.dumps(schema, allow_nan=False)

    def test_its_effects_name_the_parameters_they_speak_of(self, tool: Tool) -> None:
        vague = [
            f"{type(e).__name__}({e.what!r})"
            for e in tool.effects
            if e.what in PERSON_VISIBLE_EFFECTS and e.arg is None
        ]
        assert not vague, (
            f"If this fails, add arg=… to {', '.join(vague)}: a judge must know which file or command it is."
        )

    # What a person is told

    def test_a_call_can_be_shown_to_a_person(self, tool: Tool, good_args: Mapping[str, Any]) -> None:
        invocation = Invocation(tool, good_args, tool.validate(good_args), "1")
        line = invocation.describe()
        assert line.strip(), "If this fails, `describe` gives nothing: say in words what the call will do."
        assert len(line) <= MAX_LINE, f"If this fails, shorten what `describe` gives; it has {len(line)} characters."
        assert _find_odd_value(confirmation_wire(invocation.confirmation(Verdict(Decision.CONFIRM)))) is None, (
            "If this fails, `confirmation` holds something that is no plain data."
        )
        offered = tool.grants(invocation.params) if tool.grants is not None else ()
        strange = [option.label for option in offered if option.tool != tool.name]
        assert not strange, f"If this fails, `grants` offers what is not this tool's: {', '.join(strange)}."
        assert all(location.path for location in invocation.locations()), (
            "If this fails, `locations` gives empty paths."
        )

    # Arguments

    def test_an_unknown_argument_is_refused(self, trial: ToolTrial, good_args: Mapping[str, Any]) -> None:
        result = trial.call({**good_args, UNKNOWN_ARGUMENT: 1})
        assert result.error_code == InvalidArguments.code, (
            'If this fails, the parameter model takes unknown keys: leave `extra` out or set it to "forbid".'
        )

    def test_a_missing_argument_is_named(self, tool: Tool, trial: ToolTrial, good_args: Mapping[str, Any]) -> None:
        for name in tool.input_schema.get("required", ()):
            result = trial.call({key: value for key, value in good_args.items() if key != name})
            assert result.error_code == InvalidArguments.code, (
                f"If this fails, {name!r} is required and may be left out."
            )
            assert name in result["error"]["message"], f"If this fails, the error does not name {name!r}."

    def test_bad_arguments_are_answered_with_an_error(
        self, trial: ToolTrial, bad_args: Sequence[Mapping[str, Any]]
    ) -> None:
        for args in bad_args:
            result = trial.call(args)
            assert not result.ok, f"If this fails, {args!r} is taken for good."
            _assert_failure_shape(result)

    # Results

    def test_its_result_is_plain_data_with_a_status(self, trial: ToolTrial, good_args: Mapping[str, Any]) -> None:
        result = trial.call(good_args)
        assert result.ok, f"If this fails, the tool does not succeed with good_args: {result.get('error')}."
        assert (odd := _find_odd_value(result)) is None, (
            f"If this fails, return JSON types or Media; the result has {odd}."
        )
        assert isinstance(result["duration_ms"], int), "If this fails, the tool overwrites `duration_ms`."

    def test_a_call_is_remembered_and_audited(self, tool: Tool, trial: ToolTrial, good_args: Mapping[str, Any]) -> None:
        async def check(session: Session) -> None:
            await session.call(tool.name, good_args, call_id="contract")
            shown = (await session.call("get_action_history", {"last_n": 1}))["actions"]
            assert [action["tool"] for action in shown] == [tool.name], "If this fails, the call is not in the history."
            audit = verify_audit(session.runtime.places.audit / f"{session.id}.jsonl")
            assert audit.ok, f"If this fails, the audit is broken: {audit.problems}."
            assert not audit.unfinished, "If this fails, the audit has no result of the call."

        trial.run(check)

    def test_a_tool_that_only_reads_leaves_no_trace(
        self, tool: Tool, trial: ToolTrial, good_args: Mapping[str, Any]
    ) -> None:
        async def check(session: Session) -> None:
            before = _snapshot_traces(session)
            await session.call(tool.name, good_args)
            if tool.read_only:
                assert _snapshot_traces(session) == before, (
                    "If this fails, declare what the tool writes in its `effects`."
                )

        trial.run(check)

    # Stopping

    def test_it_can_be_cancelled_at_once(self, tool: Tool, trial: ToolTrial, good_args: Mapping[str, Any]) -> None:
        async def check(session: Session) -> None:
            seconds, result = await _time_stopped_call(session, tool, good_args, why=Stopped("cancelled"))
            assert seconds < PROMPT_S, (
                f"If this fails, the tool goes on for {seconds:.1f} s after it was cancelled: await in small steps, "
                "let CancelledError pass, and keep blocking work out of the event loop."
            )
            assert result.ok or result.status == Stopped.status, (
                f"If this fails, the tool turns a cancellation into {result.status!r}: let CancelledError pass."
            )

        trial.run(check)

    def test_its_timeout_ends_it(self, tool: Tool, trial: ToolTrial, good_args: Mapping[str, Any]) -> None:
        seconds = tool.timeout_for(tool.validate(good_args))
        assert seconds is None or seconds > 0, (
            f"If this fails, the timeout is {seconds}: give seconds above 0, or None."
        )

        async def check(session: Session) -> None:
            took, result = await _time_stopped_call(session, tool, good_args, why=TimedOut("stopped after 0 s"))
            assert took < PROMPT_S, f"If this fails, the tool goes on for {took:.1f} s after its timeout."
            assert result.ok or result.status == TimedOut.status, (
                f"If this fails, the tool turns a timeout into {result.status!r}: let CancelledError pass."
            )

        trial.run(check)

    def test_two_sessions_can_use_it_at_once(self, tool: Tool, trial: ToolTrial, good_args: Mapping[str, Any]) -> None:
        async def check(session: Session) -> None:
            async with session.runtime.session(confirm=session.confirmer) as other:
                await trial.prepare(other)
                results: list[ToolResult] = []

                async def use(one: Session) -> None:
                    results.append(await one.call(tool.name, good_args))

                async with anyio.create_task_group() as group:
                    group.start_soon(use, session)
                    group.start_soon(use, other)
                failed = [result["error"] for result in results if not result.ok]
                assert not failed, f"If this fails, two sessions get into each other's way: {failed[:1]}."

        trial.run(check)


@dataclasses.dataclass(frozen=True)
class ToolTrial:
    """A tool and the sessions it is tried in."""

    tool: Tool
    options: Mapping[str, Any]
    prepare: Callable[[Session], Coroutine[Any, Any, None]]
    folder: Path

    def call(self, args: Mapping[str, Any]) -> ToolResult:
        """Return the result of one call in a new session in which the user approves it."""

        async def call(session: Session) -> ToolResult:
            return await session.call(self.tool.name, args)

        return self.run(call)

    def run(self, check: Callable[[Session], Coroutine[Any, Any, T]]) -> T:
        """Run an async check in a new session."""

        async def run() -> T:
            options: dict[str, Any] = {"confirm": yes, "folder": self.folder, **self.options}
            if "plugins" not in options:
                options["tools"] = [*options.get("tools", ()), self.tool]
            if self.tool.requires and "backends" not in options:
                options["backends"] = [fake_backend(capabilities=self.tool.requires)]
            async with open_test_session(**options) as session:
                await self.prepare(session)
                return await check(session)

        return asyncio.run(run())


async def _prepare_nothing(session: Session) -> None:
    """Do nothing: a new session needs no preparation."""


async def _time_stopped_call(
    session: Session, tool: Tool, args: Mapping[str, Any], *, why: Stopped
) -> tuple[float, ToolResult]:
    """Return how many seconds a call took to end after being stopped right after its start, and its result."""
    started = anyio.Event()

    def notice(event: Event) -> None:
        if isinstance(event, Started) and event.call_id == "contract":
            started.set()

    session.bus.subscribe(notice)
    task = asyncio.create_task(session.call(tool.name, args, call_id="contract"))
    waiting = asyncio.create_task(started.wait())
    await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    began = perf_counter()
    session.cancel("contract", why=why)
    result = await task
    return perf_counter() - began, result


def _assert_failure_shape(result: ToolResult) -> None:
    error = result.get("error")
    assert is_mapping(error), "If this fails, raise a ToolError: a failure has `error`."
    missing = {"code", "message", "retryable", "details"} - set(error)
    assert not missing, f"If this fails, raise a ToolError instead of making `error` by hand; it lacks {missing}."
    assert result.get("voice_message"), "If this fails, raise a ToolError: a failure has a `voice_message`."


def _snapshot_traces(session: Session) -> tuple[Any, ...]:
    """Return what a call may have changed: the workspace's files, the working directory, the session's variables."""
    files = [
        (path, path.lstat().st_mtime_ns, path.lstat().st_size)
        for root in session.workspace
        for path in sorted(root.rglob("*"))
    ]
    return files, session.cwd, dict(session.environment)


def _iter_schema_nodes(schema: Any, where: str = "the parameters") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every schema in a schema with its location; data (defaults, examples, enums) is left out."""
    if not is_object(schema):
        return
    yield where, schema
    for key in ("properties", "$defs"):
        for name, inner in schema.get(key, {}).items():
            yield from _iter_schema_nodes(inner, name)
    for key in ("items", "additionalProperties", "prefixItems", "anyOf", "oneOf", "allOf"):
        inner: Any = schema.get(key)
        for each in inner if is_list(inner) else [inner]:
            yield from _iter_schema_nodes(each, where)


def _iter_properties(schema: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for where, node in _iter_schema_nodes(schema):
        prefix = "" if node is schema else f"{where}."
        for name, prop in node.get("properties", {}).items():
            yield f"{prefix}{name}", prop


def _is_described(prop: dict[str, Any], schema: dict[str, Any]) -> bool:
    """Return True if a property has a description, itself or through the model it refers to; a constant needs none."""
    if prop.get("description") or "const" in prop:
        return True
    name = str(prop.get("$ref", "")).rpartition("/")[2]
    return bool(schema.get("$defs", {}).get(name, {}).get("description"))


def _is_open_object(node: dict[str, Any]) -> bool:
    return node.get("additionalProperties") is not False


def _find_odd_value(value: Any, where: str = "") -> str | None:
    """Return the first part of a result that is neither a JSON type nor Media, as its type and location, or None."""
    if is_mapping(value):
        items = [(str(key), item) for key, item in value.items()]
    elif is_sequence(value):
        items = [(str(index), item) for index, item in enumerate(value)]
    elif isinstance(value, float) and not math.isfinite(value):
        return f"{value} at {where.lstrip('.') or 'its top'}"
    elif value is None or isinstance(value, str | int | float | bool | Media):
        return None
    else:
        return f"{type(value).__name__} at {where.lstrip('.') or 'its top'}"
    return next((odd for key, item in items if (odd := _find_odd_value(item, f"{where}.{key}")) is not None), None)

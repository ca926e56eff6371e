"""Which calls run together, which wait, in which order; and what becomes of those that are cancelled, denied or handed on."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import anyio
import pytest
from pydantic import Field

from handrail import (
    Answer,
    Approval,
    Choice,
    Delete,
    Read,
    TailCall,
    Tool,
    ToolCall,
    ToolContext,
    ToolResult,
    Write,
    tool,
)
from handrail.api.approval import yes
from handrail.api.call import Invocation
from handrail.api.events import ApprovalAsked, Event, Finished, Queued, Scheduled, Started, event_wire
from handrail.audit.history import MAX_RECORDS
from handrail.audit.writer import verify_audit
from handrail.pipeline.call_task import CallTask
from handrail.testing import Always, ScriptedConfirmer, open_test_session

# Nothing is kept for undo before a call acts, so that calls which are let go together begin together.
AT_ONCE = {"undo": {"enabled": False}}
Path_ = Annotated[str, Field(description="A file.")]


class Stage:
    """What runs beside what. `hold` names calls that go on only when they are let."""

    def __init__(self, *hold: str) -> None:
        self.order: list[str] = []
        self.together: set[frozenset[str]] = set()
        self._inside: set[str] = set()
        self._gates = {name: anyio.Event() for name in hold}
        self._came: dict[str, anyio.Event] = {}

    async def run(self, name: str) -> str:
        self.together |= {frozenset((name, other)) for other in self._inside}
        self._inside.add(name)
        self.order.append(name)
        self._arrival(name).set()
        try:
            await (self._gates[name].wait() if name in self._gates else anyio.sleep(0.01))
        finally:
            self._inside.remove(name)
        return name

    def let(self, name: str) -> None:
        self._gates[name].set()

    async def came(self, name: str) -> None:
        with anyio.fail_after(30):
            await self._arrival(name).wait()

    def _arrival(self, name: str) -> anyio.Event:
        return self._came.setdefault(name, anyio.Event())

    def tools(self) -> list[Tool]:
        async def on_file(name: str, path: Path_) -> str:
            return await self.run(name)

        async def plain(name: str) -> str:
            return await self.run(name)

        def made(called: str, body: Callable[..., Any], **declared: Any) -> Tool:
            return tool(name=called, description="Work.", **declared)(body)

        return [
            made("write", on_file, effects=[Write("file", arg="path")]),
            made("delete", on_file, effects=[Delete("file", arg="path")]),
            made("read", on_file, effects=[Read("file", arg="path")]),
            made("find", on_file, effects=[Read("folder", arg="path")]),
            made("look", plain, effects=[Read("screen")]),
            made("act", plain, effects=[Write("settings")]),
            made("press", plain, exclusive="desktop"),
        ]


def call(name: str, id: str, **args: Any) -> ToolCall:
    return ToolCall(name, {"name": id, **args}, id)


async def batch(stage: Stage, *calls: ToolCall, folder: Path, **given: Any) -> list[ToolResult]:
    given.setdefault("confirm", yes)
    async with open_test_session(tools=stage.tools(), folder=folder, **given) as session:
        results = await session.batch(calls)
    assert [result.get("content") for result in results] == [call.call_id for call in calls]
    return results


def pairs(*names: str) -> set[frozenset[str]]:
    return {frozenset(name) for name in names}


@pytest.mark.parametrize(
    ("first", "second", "together"),
    [
        pytest.param(("read", "a"), ("read", "a"), True, id="readers-of-one-file"),
        pytest.param(("write", "a"), ("write", "b"), True, id="writers-of-two-files"),
        pytest.param(("write", "a"), ("write", "a"), False, id="writers-of-one-file"),
        pytest.param(("write", "a"), ("write", "./x/../a"), False, id="one-file-in-two-spellings"),
        pytest.param(("write", "link"), ("write", "target"), False, id="a-link-and-its-target"),
        pytest.param(("delete", "link"), ("write", "target"), False, id="a-link-taken-away-under-a-writer"),
        pytest.param(("write", "a"), ("read", "a"), False, id="a-reader-after-the-writer"),
        pytest.param(("write", "x/a"), ("find", "x"), False, id="a-search-in-the-folder-that-is-written"),
        pytest.param(("write", "x/a"), ("find", "y"), True, id="a-search-elsewhere"),
        pytest.param(("write", "ab"), ("find", "a"), True, id="a-name-that-begins-alike"),
        pytest.param(("press", None), ("press", None), False, id="the-desktop"),
        pytest.param(("press", None), ("read", "a"), True, id="the-desktop-and-a-file"),
        pytest.param(("act", None), ("read", "a"), False, id="unknown-effects-first"),
        pytest.param(("look", None), ("act", None), False, id="unknown-effects-last"),
        pytest.param(("act", None), ("act", None), False, id="unknown-effects-twice"),
    ],
)
@pytest.mark.parametrize("beside", [False, True], ids=["in-a-batch", "two-calls"])
async def test_calls_run_together_unless_they_conflict(
    tmp_path: Path, first: Any, second: Any, together: bool, beside: bool
) -> None:
    stage = Stage()
    (tmp_path / "work" / "x").mkdir(parents=True)
    (tmp_path / "work" / "target").touch()
    (tmp_path / "work" / "link").symlink_to("target")
    calls = [
        call(name, id, **({} if path is None else {"path": path}))
        for id, (name, path) in zip("12", (first, second), strict=True)
    ]
    if beside:
        given: dict[str, Any] = {"tools": stage.tools(), "folder": tmp_path, "confirm": yes, "settings": AT_ONCE}
        async with open_test_session(**given) as session:
            await asyncio.gather(*(session.call(c.name, c.args, call_id=c.call_id) for c in calls))
    else:
        await batch(stage, *calls, folder=tmp_path, settings=AT_ONCE)
    assert stage.together == (pairs("12") if together else set())
    assert together or stage.order == ["1", "2"]


async def test_a_writer_goes_first_and_then_readers_together(tmp_path: Path) -> None:
    stage = Stage()
    await batch(stage, call("act", "w"), call("look", "1"), call("look", "2"), folder=tmp_path)
    assert (stage.order, stage.together) == (["w", "1", "2"], pairs("12"))


async def test_a_reader_does_not_overtake_a_writer_that_waits(tmp_path: Path) -> None:
    stage = Stage("1")
    calls = [call("read", "1", path="a"), call("write", "2", path="a"), call("read", "3", path="a")]
    async with open_test_session(tools=stage.tools(), folder=tmp_path, confirm=yes) as session:
        task = asyncio.create_task(session.batch(calls))
        await stage.came("1")
        await anyio.wait_all_tasks_blocked()
        stage.let("1")
        await task
    assert (stage.order, stage.together) == (["1", "2", "3"], set())


async def test_order_is_kept_between_a_batch_and_a_call_beside_it(tmp_path: Path) -> None:
    stage = Stage("1")
    async with open_test_session(tools=stage.tools(), folder=tmp_path, confirm=yes) as session:
        whole = asyncio.create_task(session.batch([call("act", "1"), call("act", "2")]))
        await stage.came("1")
        beside = asyncio.create_task(session.call("look", {"name": "3"}))
        free = asyncio.create_task(session.batch([call("look", "4")]))
        await anyio.wait_all_tasks_blocked()
        stage.let("1")
        await asyncio.gather(whole, beside, free)
    assert stage.order == ["1", "2", "3", "4"]
    assert stage.together == pairs("34")


async def test_a_call_is_judged_where_the_one_before_it_has_led(tmp_path: Path) -> None:
    @tool(effects=[Write("session")])
    async def move(context: ToolContext) -> None:
        """Work in the folder below."""
        context.keep(cwd=context.cwd / "below")

    stage = Stage()
    (tmp_path / "work" / "below").mkdir(parents=True)
    person = ScriptedConfirmer("once")
    async with open_test_session(tools=[move, *stage.tools()], folder=tmp_path, confirm=person) as session:
        await session.batch([ToolCall("move", {}, "m"), call("write", "w", path="a")])
    touched = [touch.what for part in person.asked[0].verdict.parts for touch in part.touches]
    assert touched == [str(tmp_path / "work" / "below" / "a")]


class Asked:
    """A person who answers each question when the test says so."""

    def __init__(self) -> None:
        self.open: dict[str, anyio.Event] = {}
        self.answers: dict[str, Answer] = {}

    async def __call__(self, approval: Approval) -> Answer:
        self.open[approval.call_id] = anyio.Event()
        await self.open[approval.call_id].wait()
        return self.answers[approval.call_id]

    def say(self, call_id: str, choice: str, **more: Any) -> None:
        self.answers[call_id] = Answer(Choice(choice), **more)
        self.open[call_id].set()


async def when(condition: Callable[[], bool]) -> None:
    with anyio.fail_after(30):
        while not condition():
            await anyio.sleep(0.002)


async def test_an_approved_call_runs_while_its_sibling_waits_for_an_answer(tmp_path: Path) -> None:
    stage, person = Stage(), Asked()
    calls = [call("write", "1", path="a"), call("write", "2", path="b"), call("look", "3")]
    async with open_test_session(tools=stage.tools(), folder=tmp_path, confirm=person) as session:
        task = asyncio.create_task(session.batch(calls))
        await when(lambda: len(person.open) == 2)
        person.say("2", "once")
        await stage.came("2")
        await stage.came("3")
        assert "1" not in stage.order
        person.say("1", "once")
        assert all(result.ok for result in await task)


async def test_those_that_may_change_anything_are_asked_about_together_and_run_in_order(tmp_path: Path) -> None:
    stage, person = Stage(), Asked()
    async with open_test_session(tools=stage.tools(), folder=tmp_path, confirm=person) as session:
        task = asyncio.create_task(session.batch([call("act", "1"), call("act", "2"), call("act", "3")]))
        await when(lambda: len(person.open) == 3)
        person.say("3", "once")
        person.say("2", "once")
        await anyio.wait_all_tasks_blocked()
        assert stage.order == []
        person.say("1", "once")
        assert all(result.ok for result in await task)
    assert (stage.order, stage.together) == (["1", "2", "3"], set())


async def test_what_was_approved_is_asked_about_again_when_it_means_something_else_by_now(tmp_path: Path) -> None:
    @tool(effects=[Write("settings")])
    async def move(context: ToolContext) -> None:
        """Work in the folder below."""
        context.keep(cwd=context.cwd / "below")

    stage = Stage()
    asked: list[Approval] = []
    opened = anyio.Event()

    async def person(approval: Approval) -> Answer:
        asked.append(approval)
        if approval.tool == "move":
            await opened.wait()
        elif len(asked) == 2:
            opened.set()
        return Answer(Choice.ONCE)

    (tmp_path / "work" / "below").mkdir(parents=True)
    async with open_test_session(tools=[move, *stage.tools()], folder=tmp_path, confirm=person) as session:
        results = await session.batch([ToolCall("move", {}, "m"), call("write", "w", path="a")])
    assert all(result.ok for result in results)
    touched = [[touch.what for part in a.verdict.parts for touch in part.touches] for a in asked if a.tool == "write"]
    assert touched == [[str(tmp_path / "work" / "a")], [str(tmp_path / "work" / "below" / "a")]]


async def test_an_edited_call_waits_for_what_it_conflicts_with_now(tmp_path: Path) -> None:
    stage, person = Stage("1"), Asked()
    calls = [call("write", "1", path="a"), call("write", "2", path="b")]
    async with open_test_session(tools=stage.tools(), folder=tmp_path, confirm=person) as session:
        task = asyncio.create_task(session.batch(calls))
        await when(lambda: len(person.open) == 2)
        person.say("1", "once")
        await stage.came("1")
        asked = dict(person.open)
        person.say("2", "edit", args={"name": "2", "path": "a"})
        await when(lambda: person.open["2"] is not asked["2"])
        person.say("2", "once")
        await anyio.wait_all_tasks_blocked()
        assert stage.order == ["1"]
        stage.let("1")
        assert all(result.ok for result in await task)
    assert stage.together == set()


@pytest.mark.parametrize(
    ("stop_on", "statuses"),
    [
        pytest.param((), ["denied", "success", "success"], id="not-asked-for"),
        pytest.param({"denied"}, ["denied", "cancelled", "cancelled"], id="asked-for"),
    ],
)
async def test_a_no_to_one_cancels_the_others_only_when_that_is_asked_for(
    tmp_path: Path, stop_on: Any, statuses: list[str]
) -> None:
    stage = Stage()
    person = ScriptedConfirmer("deny", "once", "once")
    async with open_test_session(tools=stage.tools(), folder=tmp_path, confirm=person) as session:
        calls = [call("write", id, path="a") for id in "123"]
        assert [result.status for result in await session.batch(calls, stop_on=stop_on)] == statuses


async def test_wait_for_previous_waits_and_is_no_argument_of_the_tool(tmp_path: Path) -> None:
    stage = Stage()
    calls = [call("look", "1"), call("look", "2", wait_for_previous=True), call("look", "3", wait_for_previous=False)]
    await batch(stage, *calls, folder=tmp_path)
    assert stage.together == pairs("23")
    assert stage.order[0] == "1"


async def test_a_tool_may_have_a_parameter_called_wait_for_previous() -> None:
    @tool()
    async def mine(wait_for_previous: str) -> str:
        """Give it back."""
        return wait_for_previous

    async with open_test_session(tools=[mine]) as session:
        (result,) = await session.batch([ToolCall("mine", {"wait_for_previous": "here"}, "1")])
    assert result["content"] == "here"


# Cancelling


@pytest.mark.parametrize("which", ["x", ("x", "y"), None], ids=["one", "several", "all"])
async def test_a_queued_call_that_is_cancelled_never_begins(tmp_path: Path, which: Any) -> None:
    stage = Stage("first")
    calls = [call("act", "first"), call("act", "x"), call("act", "y")]
    async with open_test_session(tools=stage.tools(), folder=tmp_path, confirm=yes) as session:
        task = asyncio.create_task(session.batch(calls))
        await stage.came("first")
        assert session.cancel(which) == {"x": 1, ("x", "y"): 2, None: 3}[which]
        stage.let("first")
        with anyio.fail_after(30):
            results = await task
        assert not session.running
        audit = verify_audit(session.runtime.places.audit / f"{session.id}.jsonl")
    expected = {"x": ["success", "cancelled", "success"], ("x", "y"): ["success", "cancelled", "cancelled"]}
    assert [result.status for result in results] == expected.get(which, ["cancelled"] * 3)
    assert "x" not in stage.order
    assert not audit.unfinished


async def test_a_batch_is_cancelled_with_the_task_that_waits_for_it(tmp_path: Path) -> None:
    stage = Stage("1")
    async with open_test_session(tools=stage.tools(), folder=tmp_path, confirm=yes) as session:
        task = asyncio.create_task(session.batch([call("act", "1"), call("act", "2"), call("look", "3")]))
        await stage.came("1")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not session.running
        assert [record.result["status"] for record in session.history.last()] == ["cancelled"] * 3
        assert (await session.call("look", {"name": "4"})).ok
    assert stage.order == ["1", "4"]


async def test_a_batch_that_is_cancelled_before_it_takes_a_step_leaves_nothing(tmp_path: Path) -> None:
    stage = Stage()
    async with open_test_session(tools=stage.tools(), folder=tmp_path, confirm=yes) as session:
        with anyio.CancelScope() as scope:
            scope.cancel()
            await session.batch([call("look", "1"), call("look", "2")])
        assert not session.running
        assert not [task for task in asyncio.all_tasks() if "batch" in repr(task)]
    assert stage.order == []


async def test_a_call_is_cancelled_while_it_is_judged() -> None:
    began = anyio.Event()

    class Slow(Always):
        async def opinion(self, invocation: Any, judging: Any) -> Any:
            began.set()
            await anyio.sleep(60)

    stage = Stage()
    async with open_test_session(tools=stage.tools(), evaluators=[Slow(None)]) as session:
        task = asyncio.create_task(session.call("look", {"name": "1"}, call_id="1"))
        await began.wait()
        assert session.cancel("1") == 1
        with anyio.fail_after(30):
            assert (await task).error_code == "cancelled"
    assert stage.order == []


async def test_a_call_that_is_cancelled_while_it_is_asked_about_keeps_what_was_shown(tmp_path: Path) -> None:
    stage, person = Stage(), Asked()
    async with open_test_session(tools=stage.tools(), folder=tmp_path, confirm=person) as session:
        task = asyncio.create_task(session.call("write", {"name": "1", "path": "a"}, call_id="1"))
        await when(lambda: "1" in person.open)
        session.cancel("1")
        result = await task
        person.say("1", "once")
        await anyio.wait_all_tasks_blocked()
    assert (result.status, result.error_code) == ("cancelled", "cancelled")
    assert "write" in result["confirmation"]["title"].casefold()
    assert stage.order == []


async def test_a_step_in_a_nested_call_is_not_taken_once_the_outer_call_was_cancelled() -> None:
    steps: list[str] = []

    @tool()
    async def outer(context: ToolContext) -> dict[str, Any]:
        """Call the inner tool, whatever happens."""
        return {"inner": await context.call("inner", {})}

    @tool()
    async def inner(context: ToolContext) -> None:
        """Stop the outer call, then take a step."""
        context.session.cancel("o")
        context.checkpoint()
        steps.append("taken")

    async with open_test_session(tools=[outer, inner]) as session:
        result = await session.call("outer", call_id="o")
    assert result.status == "cancelled"
    assert steps == []


async def test_a_handler_that_hangs_in_a_thread_does_not_hold_its_cancellation() -> None:
    release, entered = threading.Event(), threading.Event()

    def hang() -> None:
        entered.set()
        release.wait(30)

    @tool()
    async def stuck() -> None:
        """Wait in a thread."""
        await anyio.to_thread.run_sync(hang)

    async with open_test_session(tools=[stuck]) as session:
        task = asyncio.create_task(session.call("stuck"))
        await when(entered.is_set)
        session.cancel()
        try:
            with anyio.fail_after(20):
                assert (await task).status == "cancelled"
            assert not release.is_set()
        finally:
            release.set()


# Nested calls


async def test_a_call_that_waits_for_its_children_does_not_wait_for_itself(tmp_path: Path) -> None:
    stage = Stage()

    @tool(effects=[Write("settings")])
    async def job(name: str, context: ToolContext) -> list[Any] | dict[str, Any]:
        """Make three calls that conflict with each other and with this one."""
        results = [await context.call("act", {"name": f"{name}{step}"}) for step in range(3)]
        return {"statuses": [result.status for result in results]}

    async with open_test_session(tools=[job, *stage.tools()], folder=tmp_path, confirm=yes) as session:
        with anyio.fail_after(20):
            results = await session.batch([ToolCall("job", {"name": name}, name) for name in "abc"])
    assert [result["statuses"] for result in results] == [["success"] * 3] * 3
    assert stage.order == [f"{name}{step}" for name in "abc" for step in range(3)]


# Tail calls


@tool()
async def first(to: str, context: ToolContext) -> TailCall:
    """Hand on to another tool."""
    return TailCall(to, {"name": "x"} if to == "act" else {})


@tool()
async def second(context: ToolContext) -> str:
    """Say who it is."""
    return f"{context.invocation.tool.name} as {context.call_id}"


@tool()
async def again() -> TailCall:
    """Hand on to itself."""
    return TailCall("again", {})


async def test_a_tail_call_gives_the_result_under_the_same_id_and_the_first_name(tmp_path: Path) -> None:
    heard: list[Event] = []
    async with open_test_session(tools=[first, second], folder=tmp_path) as session:
        session.bus.subscribe(heard.append)
        result = await session.call("first", {"to": "second"}, call_id="c")
        (record,) = session.history.last()
        audit = session.runtime.places.audit / f"{session.id}.jsonl"
        lines = audit.read_text()
        assert not verify_audit(audit).unfinished
    assert (result["content"], result["tail_calls"]) == ("second as c", ["second"])
    assert record.call.name == "first"
    assert [event.tool for event in heard if isinstance(event, Started | Finished)] == ["first", "second", "first"]
    assert '"asked_for":"first"' in lines


async def test_a_tail_call_is_judged_for_itself(tmp_path: Path) -> None:
    stage = Stage()
    person = ScriptedConfirmer("deny")
    async with open_test_session(tools=[first, *stage.tools()], folder=tmp_path, confirm=person) as session:
        result = await session.call("first", {"to": "act"})
    assert result.error_code == "denied_by_user"
    assert [approval.tool for approval in person.asked] == ["act"]
    assert stage.order == []


async def test_a_tail_call_waits_for_what_it_conflicts_with(tmp_path: Path) -> None:
    stage = Stage("w")
    async with open_test_session(tools=[first, *stage.tools()], folder=tmp_path, confirm=yes) as session:
        task = asyncio.create_task(session.batch([call("press", "w"), ToolCall("first", {"to": "act"}, "t")]))
        await stage.came("w")
        await anyio.wait_all_tasks_blocked()
        stage.let("w")
        results = await task
    assert [result.ok for result in results] == [True, True]
    assert (stage.order, stage.together) == (["w", "x"], set())


def handing_on(stage: Stage) -> Tool:
    """A tool that looks at a file, and then hands on to what writes another."""

    @tool(effects=[Read("file", arg="path")])
    async def turn(name: str, path: Path_) -> TailCall:
        """Look, then write."""
        await stage.run(name)
        return TailCall("write", {"name": f"{name}!", "path": "y"})

    return turn


async def test_two_calls_that_hand_on_to_the_same_do_not_wait_for_each_other(tmp_path: Path) -> None:
    stage = Stage("a", "b")
    async with open_test_session(tools=[handing_on(stage), *stage.tools()], folder=tmp_path, confirm=yes) as session:
        task = asyncio.create_task(session.batch([call("turn", "a", path="y"), call("turn", "b", path="y")]))
        for name in "ab":
            await stage.came(name)
        for name in "ab":
            stage.let(name)
            await anyio.wait_all_tasks_blocked()
        with anyio.fail_after(30):
            results = await task
    assert [result.ok for result in results] == [True, True]
    assert (stage.order[2:], pairs("ab") >= stage.together) == (["a!", "b!"], True)


async def test_what_a_call_has_become_while_it_was_alone_is_waited_for(tmp_path: Path) -> None:
    stage = Stage("a", "a!")
    async with open_test_session(tools=[handing_on(stage), *stage.tools()], folder=tmp_path, confirm=yes) as session:
        first = asyncio.create_task(session.call("turn", {"name": "a", "path": "x"}))
        await stage.came("a")
        assert (await session.call("read", {"name": "r", "path": "x"})).ok
        stage.let("a")
        await stage.came("a!")
        last = asyncio.create_task(session.call("write", {"name": "w", "path": "y"}))
        await anyio.wait_all_tasks_blocked()
        assert "w" not in stage.order
        stage.let("a!")
        assert [(await first).ok, (await last).ok] == [True, True]


@pytest.mark.parametrize(("to", "code"), [("again", "tool_unavailable"), ("nobody", "unknown_tool")])
async def test_handing_on_has_an_end(to: str, code: str) -> None:
    async with open_test_session(tools=[first, again]) as session:
        result = await session.call("first", {"to": to})
    assert result.error_code == code


async def test_of_two_calls_of_a_batch_with_one_id_the_second_is_refused() -> None:
    async with open_test_session(tools=[second]) as session:
        results = await session.batch([ToolCall("second", {}, "c"), ToolCall("second", {}, "c")])
    assert [result.error_code for result in results] == [None, "invalid_arguments"]


# Events


async def test_the_states_of_a_queued_call_are_told_as_deltas(tmp_path: Path) -> None:
    heard: list[dict[str, Any]] = []
    stage = Stage()
    async with open_test_session(tools=stage.tools(), folder=tmp_path, confirm=yes) as session:
        session.bus.subscribe(lambda event: heard.append(event_wire(event)))
        await session.batch([call("write", "1", path="a"), call("write", "2", path="a")])
    told = [event["event"] for event in heard if event["call_id"] == "2"]
    assert told == [
        "queued", "proposed", "judged", "approval_asked", "approval_answered", "scheduled", "started", "finished",
    ]  # fmt: skip
    assert next(event for event in heard if event["event"] == "queued")["behind"] == "1"


async def test_what_is_refused_is_never_scheduled() -> None:
    heard: list[Event] = []
    async with open_test_session(tools=Stage().tools()) as session:
        session.bus.subscribe(heard.append)
        await session.call("act", {"name": "1"})
    assert not [event for event in heard if isinstance(event, Scheduled | ApprovalAsked | Queued)]


async def test_progress_stays_between_nothing_and_all() -> None:
    @tool()
    async def work(context: ToolContext) -> None:
        """Tell of more than there is."""
        for done in (-1, 0.5, 60 / 50):
            context.progress(done)

    heard: list[Any] = []
    async with open_test_session(tools=[work]) as session:
        session.bus.subscribe(lambda event: heard.append(event_wire(event).get("fraction")))
        await session.call("work")
    assert [fraction for fraction in heard if fraction is not None] == [0.0, 0.5, 1.0]


# Many


def calls_in_memory() -> list[CallTask | Invocation]:
    gc.collect()
    return [value for value in gc.get_objects() if isinstance(value, CallTask | Invocation)]


async def test_many_calls_leave_neither_tasks_nor_memory_behind(tmp_path: Path) -> None:
    stage = Stage()
    async with open_test_session(tools=[second, *stage.tools()], folder=tmp_path, confirm=yes) as session:
        before, others = asyncio.all_tasks(), calls_in_memory()
        for round in range(5):
            results = await session.batch(
                [
                    ToolCall("second", {}, f"{round}-{at}") if at % 4 else call("act", f"{round}-{at}")
                    for at in range(100)
                ]
            )
            assert all(result.ok for result in results)
        assert not session.running
        assert asyncio.all_tasks() <= before
        kept = [type(value) for value in calls_in_memory() if all(value is not other for other in others)]
    # What the session remembers of its last calls, and nothing of those that are over.
    assert kept.count(CallTask) == 0
    assert kept.count(Invocation) <= MAX_RECORDS


async def test_a_handler_that_cancels_its_own_task_ends_no_other_call() -> None:
    @tool(layer="system", effects=[Read("session")])
    async def gives_up() -> str:
        """Cancels the task that it runs in."""
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await anyio.sleep_forever()
        return "never"

    @tool(layer="system", effects=[Read("session")])
    async def goes_on() -> str:
        """Takes a moment longer."""
        for _ in range(10):
            await anyio.lowlevel.checkpoint()
        return "done"

    heard: list[tuple[int, str]] = []
    async with open_test_session(tools=[gives_up, goes_on]) as session:
        calls = [ToolCall("gives_up", {}, "1"), ToolCall("goes_on", {}, "2")]
        results = await session.batch(calls, told=lambda index, result: heard.append((index, result.status)))
        assert [result.status for result in results] == ["cancelled", "success"]
        assert sorted(heard) == [(0, "cancelled"), (1, "success")]
        assert not session.running

"""One agent's state: what it sees, what it holds, and that nobody else sees it."""

from __future__ import annotations

import asyncio
import gc
import os
import traceback
import tracemalloc
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest

import handrail
from handrail import (
    BackendUnavailable,
    ConfigError,
    Desktop,
    Element,
    NotFound,
    Read,
    Rect,
    Service,
    Session,
    Tool,
    ToolCall,
    ToolContext,
    ToolResult,
    ToolUnavailable,
    Write,
    tool,
)
from handrail.api.approval import yes
from handrail.api.events import Event, ToolsChanged, event_wire
from handrail.testing import FakeBackend, FakeDesktops, fake_backend, fake_service, open_test_runtime, open_test_session


def made(name: str, **declared: Any) -> Tool:
    async def handler() -> str:
        return name

    given: dict[str, Any] = {"name": name, "description": f"Return {name}.", **declared}
    return tool(**given)(handler)


async def names(session: Session) -> list[str]:
    return [each.name for each in await session.tools() if each.name not in ("wait", "get_action_history")]


# Conditional tools and backends

SEES = made("sees", requires={"parse_screen", "ocr"})
ACTS = made("acts", requires={"plan_actions"})
PLAIN = made("plain")
OCR = fake_backend("reader", capabilities=["ocr"])
PLANNER = fake_backend("planner", capabilities=["plan_actions"])
BOTH = fake_backend("both", capabilities=["ocr", "plan_actions"])


@pytest.mark.parametrize(
    ("backend", "seen"),
    [
        ("reader", ["sees", "plain"]),
        ("planner", ["acts", "plain"]),
        ("both", ["sees", "acts", "plain"]),
    ],
)
async def test_tools_follow_the_chosen_backend(backend: str, seen: list[str]) -> None:
    async with open_test_session(
        tools=[SEES, ACTS, PLAIN], backends=[OCR, PLANNER, BOTH], settings={"backend": backend}
    ) as session:
        assert await names(session) == seen


async def test_what_is_visible_is_callable_and_nothing_else() -> None:
    async with open_test_session(tools=[SEES, ACTS, PLAIN], backends=[OCR, PLANNER]) as session:
        for backend in ("reader", "planner"):
            await session.use_backend(backend)
            visible = await names(session)
            for listed in await session.all_tools():
                name = listed.tool.name
                if name not in ("sees", "acts", "plain"):
                    continue
                result = await session.call(name)
                assert result.ok is (name in visible) is listed.available
                assert result.error_code == (None if result.ok else "tool_unavailable")


async def test_a_hidden_tool_says_what_it_needs() -> None:
    async with open_test_session(tools=[ACTS], backends=[OCR]) as session:
        result = await session.call("acts")
    assert "plan_actions" in result["error"]["message"]
    assert "reader" in result["error"]["message"]


async def test_a_switch_is_told_and_holds_at_once() -> None:
    heard: list[str] = []
    async with open_test_session(tools=[SEES, ACTS], backends=[OCR, PLANNER]) as session:
        session.bus.subscribe(lambda event: heard.append(event_wire(event)["event"]))
        assert session.backend == "reader"
        await session.use_backend("planner")
        assert session.backend == "planner"
        assert await names(session) == ["acts"]
        assert sorted(heard) == ["backend_changed", "tools_changed"]
        await session.use_backend("planner")
        assert len(heard) == 2


async def test_a_backend_that_is_not_there_is_refused_with_the_nearest() -> None:
    async with open_test_session(backends=[OCR]) as session:
        with pytest.raises(BackendUnavailable, match="did you mean 'reader'"):
            await session.use_backend("raeder")
        assert session.backend == "reader"


async def test_unset_a_tree_is_chosen_before_anything_that_reads_pictures() -> None:
    tree = fake_backend("tree", capabilities=["accessibility_tree"])
    async with open_test_session(backends=[PLANNER, OCR, tree]) as session:
        assert session.backend == "tree"
    absent = fake_backend("tree", capabilities=["accessibility_tree"], missing="no bus")
    async with open_test_session(backends=[PLANNER, OCR, absent]) as session:
        assert session.backend == "reader"


async def test_a_backend_whose_check_fails_is_passed_over() -> None:
    class Broken(FakeBackend):
        name = "broken"
        capabilities = frozenset({"accessibility_tree"})

        @classmethod
        def missing(cls) -> str | None:
            raise OSError("no such library")

    async with open_test_session(backends=[Broken, OCR]) as session:
        assert session.backend == "reader"


@pytest.mark.parametrize(
    "broken",
    [
        {"missing": "it lacks a model"},
        {"fails": BackendUnavailable("the server is down")},
        {"fails": RuntimeError("a bug")},
    ],
)
async def test_the_next_backend_answers_where_the_chosen_one_cannot(broken: dict[str, Any]) -> None:
    chosen = fake_backend("chosen", capabilities=["ocr"], **broken)
    settings = {"backend": "chosen", "backend_fallback": ["reader"]}
    async with open_test_session(backends=[chosen, OCR], settings=settings) as session:
        assert await session.vision.ready() == "reader"
        # The chosen one counts for what is listed.
        assert session.backend == "chosen"
    async with open_test_session(backends=[chosen, OCR], settings={"backend": "chosen"}) as session:
        with pytest.raises(BackendUnavailable, match="chosen"):
            await session.vision.ready()


async def test_a_backend_is_opened_once_a_session_and_closed_with_it() -> None:
    backend = fake_backend("seer", capabilities=["ocr"])
    async with open_test_session(backends=[backend]) as session:
        async with anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(session.vision.ready)
        assert len(backend.built) == 1
        assert backend.built[0].is_open
    assert not backend.built[0].is_open


async def test_a_session_that_is_closed_twice_ends_once() -> None:
    closed: list[str] = []
    async with open_test_session(services=[service("mail", "session", closed)]) as session:
        await session.service("mail")
        async with anyio.create_task_group() as group:
            group.start_soon(session.close)
            group.start_soon(session.close)
        # A descriptor of the audit that was closed twice would be this one by now.
        reading, writing = os.pipe()
        await session.close()
    assert os.write(writing, b"x") == 1
    os.close(reading)
    os.close(writing)
    assert closed == ["mail"]


async def test_one_that_does_not_close_keeps_nothing_else_open(caplog: pytest.LogCaptureFixture) -> None:
    class Sticky(FakeBackend):
        name = "sticky"
        capabilities = frozenset({"ocr"})

        async def close(self) -> None:
            raise RuntimeError("stuck")

    closed: list[str] = []
    async with open_test_session(backends=[Sticky], services=[service("mail", "session", closed)]) as session:
        await session.vision.ready()
        await session.service("mail")
    assert closed == ["mail"]
    assert "stuck" in caplog.text


@pytest.mark.parametrize(("profile", "seen"), [("all", ["doc", "web"]), ("files", ["doc"]), ("browser", ["web"])])
async def test_profiles_pick_what_is_declared(profile: str, seen: list[str]) -> None:
    tools = [made("doc", layer="document"), made("web", layer="web")]
    async with open_test_session(tools=tools, settings={"tools": {"profile": profile}}) as session:
        assert await names(session) == seen


async def test_platform_and_disabled_tools_are_said_with_their_reason() -> None:
    tools = [made("other", platforms={"plan9"}), made("off"), made("on")]
    async with open_test_session(tools=tools, settings={"tools": {"disabled": ["off"]}}) as session:
        reasons = {listed.tool.name: listed.reason for listed in await session.all_tools()}
        assert await names(session) == ["on"]
    assert "plan9" in (reasons["other"] or "")
    assert "disabled" in (reasons["off"] or "")


async def test_without_a_screen_only_tools_for_the_desktop_are_gone() -> None:
    tools = [made("click", exclusive="desktop"), made("count")]
    async with open_test_session(tools=tools, settings={"desktop": "current"}) as session:
        assert await names(session) == ["count"]
        assert "no screen" in (await session.call("click"))["error"]["message"]


# Toolsets


class Changing:
    """A toolset whose tools a test sets."""

    def __init__(self, *tools: Tool) -> None:
        self.offered: Sequence[Tool] = tools

    async def tools(self, session: Session) -> Sequence[Tool]:
        return self.offered


async def test_a_toolset_is_asked_again_at_each_listing() -> None:
    changing = Changing(made("a"))
    async with open_test_session(tools=[changing, PLAIN]) as session:
        assert await names(session) == ["plain", "a"]
        changing.offered = [made("b"), made("a")]
        assert await names(session) == ["plain", "a", "b"]
        changing.offered = [made("b")]
        assert await names(session) == ["plain", "b"]


async def test_a_tool_that_a_toolset_took_away_cannot_be_called() -> None:
    changing = Changing(made("a"))
    async with open_test_session(tools=[changing]) as session:
        assert (await session.call("a")).ok
        changing.offered = []
        assert (await session.call("a")).error_code == "unknown_tool"


async def test_a_changed_tool_of_a_toolset_is_seen_in_its_old_place() -> None:
    changing = Changing(made("a", description="One."), made("b"))
    async with open_test_session(tools=[changing]) as session:
        assert await names(session) == ["a", "b"]
        changing.offered = [made("b"), made("a", description="Two.")]
        listed = [each for each in await session.tools() if each.name in ("a", "b")]
        assert [each.description for each in listed] == ["Two.", "Return b."]


async def test_a_toolset_cannot_take_a_plugins_name() -> None:
    impostor = made("plain", description="Something else.")
    async with open_test_session(tools=[PLAIN, Changing(impostor)]) as session:
        assert [each for each in await session.tools() if each.name == "plain"] == [PLAIN]


async def test_a_collision_at_run_time_keeps_the_incumbent_and_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    impostor = made("plain", description="Something else.", on_collision="replace", server="docs")
    async with open_test_session(tools=[PLAIN, Changing(impostor)]) as session:
        for _ in range(3):
            assert [each for each in await session.tools() if each.name == "plain"] == [PLAIN]
            assert (await session.call("plain"))["content"] == "plain"
    warnings = [record.getMessage() for record in caplog.records if record.name == "handrail.tools.tool_pool"]
    assert warnings == [
        "the tool 'plain' of plugin 'test' (server:docs) is left out: the name belongs to plugin 'test'"
    ]


async def test_the_toolset_that_had_a_name_first_keeps_it(caplog: pytest.LogCaptureFixture) -> None:
    early, late = Changing(), Changing(made("a", description="Late."))
    async with open_test_session(tools=[early, late]) as session:
        assert await names(session) == ["a"]
        early.offered = [made("a", description="Early.")]
        assert [each.description for each in await session.tools() if each.name == "a"] == ["Late."]
        late.offered = []
        assert [each.description for each in await session.tools() if each.name == "a"] == ["Early."]
    assert len([record for record in caplog.records if record.name == "handrail.tools.tool_pool"]) == 1


@pytest.mark.parametrize(("policy", "kept"), [("error", "One."), ("keep", "One."), ("replace", "Two.")])
async def test_within_one_toolset_a_tool_says_what_becomes_of_its_name(policy: Any, kept: str) -> None:
    both = Changing(made("a", description="One."), made("a", description="Two.", on_collision=policy))
    async with open_test_session(tools=[both]) as session:
        assert [each.description for each in await session.tools() if each.name == "a"] == [kept]


async def test_a_tool_that_appears_is_appended_and_the_rest_keeps_its_order() -> None:
    tools = [made("first", requires={"plan_actions"}), PLAIN, made("spare", loadable=True), made("last")]
    async with open_test_session(tools=tools, backends=[OCR, PLANNER, BOTH]) as session:
        assert await names(session) == ["plain", "last"]
        await session.use_backend("both")
        assert await names(session) == ["plain", "last", "first"]
        await session.load_tools(["spare"], source="skill:x")
        assert await names(session) == ["plain", "last", "first", "spare"]
        await session.use_backend("reader")
        assert await names(session) == ["plain", "last", "spare"]
        await session.use_backend("both")
        assert await names(session) == ["plain", "last", "spare", "first"]


# Loadable tools


async def test_a_loadable_tool_is_there_once_it_is_loaded_and_as_long() -> None:
    heard: list[Event] = []
    async with open_test_session(tools=[made("spare", loadable=True), PLAIN]) as session:
        session.bus.subscribe(lambda event: heard.append(event) if isinstance(event, ToolsChanged) else None)
        assert await names(session) == ["plain"]
        refused = await session.call("spare")
        assert refused.error_code == "tool_unavailable"
        assert "it is not loaded" in refused["error"]["message"]
        await session.load_tools(["spare"], source="skill:one")
        assert await names(session) == ["plain", "spare"]
        assert (await session.call("spare")).ok
        await session.load_tools(["spare"], source="skill:two")
        await session.unload_tools("skill:one")
        assert (await session.call("spare")).ok
        await session.unload_tools("skill:two")
        assert await names(session) == ["plain"]
        assert (await session.call("spare")).error_code == "tool_unavailable"
        told = len(heard)
        await session.unload_tools("skill:two")
        assert (told, len(heard)) == (4, 4)


async def test_what_is_loaded_is_there_in_every_profile_and_only_where_it_can_run() -> None:
    tools = [
        made("spare", loadable=True, layer="workflow"),
        made("off", loadable=True),
        made("planning", loadable=True, requires={"plan_actions"}),
    ]
    settings = {"tools": {"profile": "files", "disabled": ["off"]}}
    async with open_test_session(tools=tools, backends=[OCR], settings=settings) as session:
        await session.load_tools(["spare", "off", "planning"], source="skill:x")
        assert await names(session) == ["spare"]
        listed = {each.tool.name: each for each in await session.all_tools()}
        assert listed["spare"].source == "skill:x"
        assert "disabled" in (listed["off"].reason or "")


async def test_loading_a_name_that_no_tool_has_loads_nothing() -> None:
    async with open_test_session(tools=[made("spare", loadable=True)]) as session:
        with pytest.raises(NotFound, match="did you mean 'spare'"):
            await session.load_tools(["spare", "spar"], source="skill:x")
        assert await names(session) == []


async def test_a_nested_call_of_a_tool_that_is_not_loaded_runs_unless_it_is_disabled() -> None:
    @tool()
    async def outer(name: str, context: ToolContext) -> dict[str, Any]:
        """Call another tool."""
        return {"code": (await context.call(name, {})).error_code}

    tools = [outer, made("spare", loadable=True), made("off", loadable=True)]
    async with open_test_session(tools=tools, settings={"tools": {"disabled": ["off"]}}) as session:
        assert (await session.call("outer", {"name": "spare"}))["code"] is None
        assert (await session.call("outer", {"name": "off"}))["code"] == "tool_unavailable"


# Ephemeral tools


async def test_an_ephemeral_tool_is_there_for_one_step() -> None:
    async with open_test_session(tools=[made("once", ephemeral=True), PLAIN]) as session:
        assert await names(session) == ["once", "plain"]
        assert [each.available for each in await session.all_tools() if each.tool.name == "once"] == [True]
        assert (await session.call("once")).ok
        assert await names(session) == ["plain"]
        refused = await session.call("once")
        assert refused.error_code == "tool_unavailable"
        assert "one step" in refused["error"]["message"]
        assert await names(session) == ["plain"]


async def test_a_toolset_offers_an_ephemeral_tool_again_by_making_another() -> None:
    changing = Changing(made("once", ephemeral=True))
    async with open_test_session(tools=[changing]) as session:
        assert await names(session) == ["once"]
        assert await names(session) == []
        changing.offered = [made("once", ephemeral=True)]
        assert await names(session) == ["once"]
        assert (await session.call("once")).ok


async def test_an_ephemeral_tool_that_is_loaded_is_there_for_the_step_after() -> None:
    async with open_test_session(tools=[made("once", ephemeral=True, loadable=True)]) as session:
        assert await names(session) == []
        for _ in range(2):
            await session.load_tools(["once"], source="skill:x")
            assert await names(session) == ["once"]
            assert await names(session) == []


# Aliases


async def test_an_old_name_calls_the_tool_and_is_not_declared() -> None:
    renamed = made("read_page", aliases=["page_read"])
    async with open_test_session(tools=[renamed]) as session:
        assert await names(session) == ["read_page"]
        result = await session.call("page_read")
        assert result["content"] == "read_page"
        assert session.history.last(1)[0].call.name == "read_page"


@pytest.mark.parametrize(
    "settings",
    [
        {"tools": {"disabled": ["page_read"]}},
        {"policy": {"rules": [{"tool": "page_*", "decision": "deny"}]}},
    ],
)
async def test_rules_and_disabled_see_through_old_names(settings: dict[str, Any]) -> None:
    async with open_test_session(tools=[made("read_page", aliases=["page_read"])], settings=settings) as session:
        assert await names(session) == []
        for name in ("read_page", "page_read"):
            assert (await session.call(name)).error_code == "tool_unavailable"


async def test_a_toolset_that_fails_takes_nothing_else_away(caplog: pytest.LogCaptureFixture) -> None:
    class Failing:
        async def tools(self, session: Session) -> Sequence[Tool]:
            raise RuntimeError("the server is gone")

    async with open_test_session(tools=[Failing(), Changing(made("a")), PLAIN]) as session:
        assert await names(session) == ["plain", "a"]
    assert "the server is gone" in caplog.text


# Services


def service(
    capability: str, scope: Any, closed: list[str], *, needs: str | None = None, fails: bool = False
) -> Service:
    class Opened:
        async def close(self) -> None:
            closed.append(capability)
            if fails:
                raise RuntimeError(f"{capability} is stuck")

    async def opened(context: Any) -> Opened:
        if needs is not None:
            await context.service(needs)
        return Opened()

    return fake_service(capability, opened, scope=scope)


async def test_services_live_as_long_as_their_scope() -> None:
    closed: list[str] = []
    given = [
        service("clock", "process", closed),
        service("tree", "desktop", closed),
        service("mail", "session", closed),
    ]
    async with open_test_runtime(services=given) as runtime:
        async with runtime.session() as one:
            async with runtime.session() as other:
                seen = {name: [await s.service(name) for s in (one, other)] for name in ("clock", "tree", "mail")}
                assert await one.service("mail") is seen["mail"][0]
            assert closed == ["mail"]
        assert closed == ["mail", "mail"]
    assert sorted(closed) == ["clock", "mail", "mail", "tree", "tree"]
    assert seen["clock"][0] is seen["clock"][1]
    # Each session has a private desktop of its own.
    assert seen["tree"][0] is not seen["tree"][1]
    assert seen["mail"][0] is not seen["mail"][1]


async def test_what_was_opened_last_is_closed_first_and_failures_keep_nothing_open(
    caplog: pytest.LogCaptureFixture,
) -> None:
    closed: list[str] = []
    given = [
        service("base", "process", closed),
        service("middle", "process", closed, needs="base", fails=True),
        service("top", "process", closed, needs="middle"),
    ]
    async with open_test_session(services=given) as session:
        await session.service("top")
    assert closed == ["top", "middle", "base"]
    assert "middle is stuck" in caplog.text


async def test_a_service_is_opened_once_however_many_ask_at_once() -> None:
    opened: list[int] = []

    async def slow(context: Any) -> FakeDesktops:
        opened.append(1)
        await anyio.sleep(0.02)
        return FakeDesktops()

    async with open_test_session(services=[fake_service("slow", slow)]) as session, anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(session.service, "slow")
    assert len(opened) == 1


async def test_a_service_that_nobody_supplies_is_said_to_be_so() -> None:
    async with open_test_session() as session:
        with pytest.raises(ToolUnavailable, match="'telepathy'"):
            await session.service("telepathy")


async def test_a_service_that_does_not_open_is_tried_again() -> None:
    attempts: list[int] = []

    async def flaky(context: Any) -> FakeDesktops:
        attempts.append(1)
        if len(attempts) == 1:
            raise OSError("not yet")
        return FakeDesktops()

    async with open_test_session(services=[fake_service("flaky", flaky)]) as session:
        with pytest.raises(OSError, match="not yet"):
            await session.service("flaky")
        assert await session.service("flaky")


# Sessions beside each other


@tool(effects=[Write("session")])
async def keep(word: str, context: ToolContext) -> dict[str, Any]:
    """Keep a word everywhere a session keeps things, and return what was there."""
    before = context.stash.get("word")
    context.stash.set("word", word)
    context.keep(cwd=context.cwd / word, environment={"WORD": word})
    context.observations.add([Element("button", word, Rect(0, 0, 9, 9))])
    context.artifacts.keep(word)
    desktop: Desktop = await context.desktop()
    return {"before": before, "desktop": desktop.key}


async def test_two_sessions_of_one_process_do_not_see_each_other() -> None:
    async with (
        open_test_runtime(tools=[keep]) as runtime,
        runtime.session(confirm=yes) as one,
        runtime.session(confirm=yes) as other,
    ):
        first, second = await one.call("keep", {"word": "one"}), await other.call("keep", {"word": "other"})
        assert first["before"] is second["before"] is None
        assert first["desktop"] != second["desktop"]
        assert (one.cwd.name, other.cwd.name) == ("one", "other")
        assert (dict(one.environment), dict(other.environment)) == ({"WORD": "one"}, {"WORD": "other"})
        assert [len(s.history.last()) for s in (one, other)] == [1, 1]
        assert one.observations.element("e1").text == "one"
        assert other.observations.element("e1").text == "other"
        assert {a.path for a in one.artifacts}.isdisjoint(a.path for a in other.artifacts)
        await one.call("keep", {"word": "again"})
        assert other.stash.get("word") == "other"
        assert one.id != other.id


async def test_events_and_cancellation_stay_in_their_session() -> None:
    async with open_test_runtime() as runtime, runtime.session() as one, runtime.session() as other:
        heard: list[Event] = []
        one.bus.subscribe(heard.append)
        waiting = asyncio.create_task(other.call("wait", {"seconds": 0.2}))
        await asyncio.sleep(0.05)
        assert one.cancel() == 0
        assert (await waiting).ok
        assert not heard


async def test_an_answer_in_one_session_is_none_in_another() -> None:
    change = made("change", effects=[Write("settings")])
    async with (
        open_test_runtime(tools=[change]) as runtime,
        runtime.session(confirm=yes) as one,
        runtime.session() as other,
    ):
        assert (await one.call("change")).ok
        assert (await other.call("change")).status == "denied"


async def test_the_process_environment_is_never_changed() -> None:
    import os

    before = dict(os.environ)
    async with open_test_session(tools=[keep], confirm=yes) as session:
        await session.call("keep", {"word": "x"})
    assert dict(os.environ) == before


# Events


async def test_the_events_of_a_call_come_in_order() -> None:
    change = made("change", effects=[Write("settings")])
    heard: list[dict[str, Any]] = []
    async with open_test_session(tools=[change], confirm=yes) as session:
        session.bus.subscribe(lambda event: heard.append(event_wire(event)))
        await session.call("change", call_id="c")
    assert [event["event"] for event in heard] == [
        "proposed",
        "judged",
        "approval_asked",
        "approval_answered",
        "scheduled",
        "started",
        "finished",
        "session_ended",
    ]
    assert {event["call_id"] for event in heard[:-1]} == {"c"}
    assert heard[-2]["status"] == "success"


async def test_output_and_progress_come_between_start_and_end() -> None:
    @tool()
    async def work(context: ToolContext) -> None:
        """Work."""
        context.progress(0.5, "half")
        context.output("stdout", "line\n")

    heard: list[dict[str, Any]] = []
    async with open_test_session(tools=[work]) as session:
        stop = session.bus.subscribe(lambda event: heard.append(event_wire(event)))
        await session.call("work")
        stop()
        await session.call("work")
    assert [event["event"] for event in heard] == [
        "proposed", "judged", "scheduled", "started", "progress", "output", "finished",
    ]  # fmt: skip
    assert (heard[4]["fraction"], heard[5]["text"]) == (0.5, "line\n")


async def test_a_refused_call_is_finished_without_being_started() -> None:
    heard: list[str] = []
    async with open_test_session(tools=[made("change", effects=[Write("settings")])]) as session:
        session.bus.subscribe(lambda event: heard.append(event_wire(event)["event"]))
        await session.call("change")
        await session.call("nothing")
    assert heard == ["proposed", "judged", "finished", "finished", "session_ended"]


# Batches


async def test_a_batch_gives_results_in_order_and_runs_readers_together() -> None:
    together = 0
    most = 0

    async def body(name: str) -> str:
        nonlocal together, most
        together += 1
        most = max(most, together)
        await anyio.sleep(0.02)
        together -= 1
        return name

    read = tool(name="read", description="Read.", effects=[Read("screen")])(body)
    write = tool(name="write", description="Write.", effects=[Write("session")])(body)
    async with open_test_session(tools=[read, write]) as session:
        calls = [ToolCall(kind, {"name": f"{at}"}, f"{at}") for at, kind in enumerate(["read", "read", "read"])]
        assert [r["content"] for r in await session.batch(calls)] == ["0", "1", "2"]
        assert most == 3
        most = 0
        calls = [ToolCall("write", {"name": f"{at}"}, f"{at}") for at in range(3)]
        assert [r["content"] for r in await session.batch(calls)] == ["0", "1", "2"]
        assert most == 1


async def test_one_bad_call_of_a_batch_ends_no_other() -> None:
    async with open_test_session(tools=[PLAIN]) as session:
        results: list[ToolResult] = await session.batch(
            [ToolCall("plain", {}, "1"), ToolCall("nobody", {}, "2"), ToolCall("plain", {"x": 1}, "3")]
        )
    assert [result.error_code for result in results] == [None, "unknown_tool", "invalid_arguments"]


# Configuration that changes while a session lives


async def eventually(condition: Any, seconds: float = 10) -> None:
    with anyio.fail_after(seconds):
        while not await condition():
            await anyio.sleep(0.02)


async def test_a_changed_file_counts_at_once_and_a_broken_one_changes_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "handrail.toml"
    file.write_text('[tools]\nprofile = "all"\n')
    environment = {"HANDRAIL_HOME": str(tmp_path / "state"), "HANDRAIL_PLUGINS": "", "HOME": str(tmp_path)}
    async with handrail.open(config=file, cwd=tmp_path, environment=environment) as session:
        heard: list[str] = []
        session.bus.subscribe(lambda event: heard.append(event_wire(event)["event"]))

        async def has_wait() -> bool:
            return "wait" in [each.name for each in await session.tools()]

        async def has_no_wait() -> bool:
            return not await has_wait()

        assert await has_wait()
        file.write_text('[tools]\ndisabled = ["wait"]\n')
        await eventually(has_no_wait)
        assert (await session.call("wait", {"seconds": 0.1})).error_code == "tool_unavailable"
        assert "tools_changed" in heard
        file.write_text("[tools]\ndisbaled = []\n")

        async def complained() -> bool:
            return "disbaled" in caplog.text

        await eventually(complained)
        assert not await has_wait()
        file.write_text("")
        await eventually(has_wait)


async def test_rules_that_are_added_count_for_the_next_call(tmp_path: Path) -> None:
    file = tmp_path / "handrail.toml"
    file.write_text("")
    environment = {"HANDRAIL_HOME": str(tmp_path / "state"), "HANDRAIL_PLUGINS": "", "HOME": str(tmp_path)}
    async with handrail.open(config=file, cwd=tmp_path, environment=environment) as session:
        assert (await session.call("wait", {"seconds": 0.1})).ok
        file.write_text('[[policy.rules]]\ntool = "wait"\ndecision = "deny"\n')

        async def refused() -> bool:
            return not (await session.call("wait", {"seconds": 0.1})).ok

        await eventually(refused)


async def test_a_plugin_that_is_asked_for_and_not_there_is_an_error(tmp_path: Path) -> None:
    environment = {"HANDRAIL_HOME": str(tmp_path / "state"), "HOME": str(tmp_path)}
    with pytest.raises(handrail.PluginError, match="the plugin 'fils' is required and did not load"):
        async with handrail.open(cwd=tmp_path, environment=environment, plugins=["fils"]):
            pass


async def test_a_mistake_in_an_argument_is_told_as_an_argument_of_python(tmp_path: Path) -> None:
    environment = {"HANDRAIL_HOME": str(tmp_path / "state"), "HOME": str(tmp_path)}
    with pytest.raises(handrail.ConfigError, match=r"argument limits: limits\.seconds is 'x'"):
        async with handrail.open(cwd=tmp_path, environment=environment, plugins=(), limits={"seconds": "x"}):
            pass


async def test_what_is_no_call_is_named(tmp_path: Path) -> None:
    environment = {"HANDRAIL_HOME": str(tmp_path / "state"), "HOME": str(tmp_path)}
    calls: Any = [("wait", {"seconds": 1})]
    async with handrail.open(cwd=tmp_path, environment=environment, plugins=()) as session:
        with pytest.raises(TypeError, match=r"\('wait', .* is no call: batch takes ToolCall"):
            await session.batch(calls)


async def test_what_is_no_confirmer_is_said_at_once(tmp_path: Path) -> None:
    confirm: Any = True
    with pytest.raises(handrail.ConfigError, match="confirm is True") as raised:
        async with handrail.open(cwd=tmp_path, environment={"HOME": str(tmp_path)}, confirm=confirm):
            pass
    assert raised.value.hint is not None
    assert "callback" in raised.value.hint


# Memory


async def test_ten_thousand_calls_take_no_more_memory_than_a_thousand() -> None:
    @tool()
    async def echo(text: str) -> dict[str, Any]:
        """Return the text."""
        return {"text": text}

    async with open_test_session(tools=[echo, made("change", effects=[Write("settings")])], confirm=yes) as session:

        async def calls(count: int) -> None:
            for number in range(count):
                await session.call("echo", {"text": f"{number} " * 50})
                if number % 100 == 0:
                    await session.call("change")
                    await session.call("nobody", {"n": number})

        await calls(1_000)
        gc.collect()
        tracemalloc.start()
        try:
            await calls(200)
            gc.collect()
            before, _ = tracemalloc.get_traced_memory()
            await calls(9_000)
            gc.collect()
            after, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert after - before < 200_000
        assert session.history.total > 10_000
        assert len(session.history.last(1_000)) == 50


async def test_a_toolset_that_hangs_takes_no_other_tools_away() -> None:
    class Hanging:
        async def tools(self, session: Session) -> list[Tool]:
            await anyio.sleep_forever()
            raise AssertionError

    async with open_test_session(tools=[Hanging(), PLAIN]) as session:
        session.listing.pool.patience = 0.01
        assert await names(session) == ["plain"]
        assert (await session.call("nobody")).error_code == "unknown_tool"


async def test_a_traceback_shows_the_cure() -> None:
    with pytest.raises(ConfigError) as refused:
        async with handrail.open(confirm="yes", environment={}):  # pyright: ignore[reportArgumentType]
            pass
    assert refused.value.hint
    assert f"Hint: {refused.value.hint}" in "".join(traceback.format_exception(refused.value))

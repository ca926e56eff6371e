"""Handrail's tools in real runs of ADK, with a scripted model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from google.adk.artifacts import InMemoryArtifactService
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.sessions import InMemorySessionService
from google.adk.tools.base_toolset import BaseToolset
from tests.plugins.adk.agents import Chat, Scripted, answered, declarations, last_text, questions, results

from handrail import Choice, Frame, Media, Rect, Run, ToolContext, Variation, VisionBackend, Write, tool
from handrail.api.approval import Answer, Approval
from handrail.testing import fake_backend, open_test_runtime, open_test_session
from handrail_adk import HandrailToolset

pytestmark = pytest.mark.usefixtures("without_undo")

PIXEL = b"\x89PNG\r\n\x1a\n" + bytes(16)


@tool(trusted=True, families={"gemini": Variation(description="Add, Gemini.")})
async def add(a: int, b: int) -> dict[str, Any]:
    """Add two numbers. Returns sum."""
    return {"sum": a + b}


@tool(trusted=True)
async def crash() -> None:
    """Crash."""
    raise RuntimeError("a private word")


@tool()
async def look() -> dict[str, Any]:
    """Look. Returns a picture."""
    return {"seen": "a pixel", "media": [Media("image", "image/png", PIXEL)]}


@tool(effects=[Write("settings")], exclusive="settings", trusted=True)
async def change(context: ToolContext, to: str) -> str:
    """Change a setting."""
    context.stash.set("setting", to)
    return f"now {to}"


@tool(trusted=True)
async def setting(context: ToolContext) -> dict[str, Any]:
    """Read the setting."""
    return {"setting": context.stash.get("setting")}


@tool(loadable=True, trusted=True)
async def spare() -> str:
    """Say so."""
    return "spare"


@tool(trusted=True)
async def fetch(context: ToolContext) -> str:
    """Load the spare tool."""
    await context.session.load_tools(["spare"], source="skill:x")
    return "loaded"


TOOLS = (add, crash, look, change, setting, spare, fetch)
YES = [{"tool": "change", "decision": "allow"}]


async def test_a_call_is_validated_by_us_and_its_result_is_what_the_model_gets() -> None:
    async with open_test_session(tools=TOOLS) as session:
        chat = Chat(HandrailToolset(session), Scripted.of([("add", {"a": 1, "b": 2})], [("add", {"a": "x", "b": 2})]))
        events = await chat.say()
    first, second = results(events)
    assert (first["status"], first["sum"]) == ("success", 3)
    assert (second["status"], second["error"]["code"]) == ("error", "invalid_arguments")
    assert last_text(events) == "done"


async def test_a_tool_that_crashes_and_one_that_is_not_there_end_no_run() -> None:
    async with open_test_session(tools=TOOLS) as session:
        chat = Chat(HandrailToolset(session), Scripted.of([("crash", {})], [("nowhere", {})]))
        events = await chat.say()
    crashed, unknown = results(events)
    assert crashed["error"]["code"] == "downstream_error"
    assert "private" not in json.dumps(crashed)
    assert "no tool with that name" in json.dumps(unknown)
    assert last_text(events) == "done"


async def test_the_model_is_told_what_its_family_is_and_of_wait_for_previous() -> None:
    told: list[str | None] = []
    async with open_test_session(tools=TOOLS) as session:
        for name in ("gemini-2.5-flash", "nobody"):
            model = Scripted.of(model=name)
            await Chat(HandrailToolset(session), model).say()
            said = {each.name: each for each in declarations(model.requests[0])}["add"]
            told.append(said.description)
            assert said.parameters is not None
            assert set(said.parameters.properties or {}) == {"a", "b", "wait_for_previous"}
            assert "untrusted" in str(model.requests[0].config.system_instruction)
    assert told == ["Add, Gemini.", "Add two numbers. Returns sum."]


def test_adk_still_has_the_cache_that_is_turned_off() -> None:
    class Plain(BaseToolset):
        async def get_tools(self, readonly_context: Any = None) -> list[Any]:
            return []

    # If this fails, ADK caches what a toolset gives in another way: see to it that each step of a run asks anew.
    assert Plain()._use_invocation_cache is True
    assert HandrailToolset()._use_invocation_cache is False


async def test_a_tool_that_is_loaded_is_there_at_the_next_step_of_the_same_run() -> None:
    async with open_test_session(tools=TOOLS) as session:
        chat = Chat(HandrailToolset(session), Scripted.of([("fetch", {})], [("spare", {})]))
        events = await chat.say()
    assert ["spare" in names for names in chat.model.shown] == [False, True, True]
    assert chat.model.shown[1] == [*chat.model.shown[0], "spare"]
    assert results(events)[1]["content"] == "spare"


async def test_tools_of_the_host_wait_to_be_loaded_where_they_are_loadable() -> None:
    @tool(loadable=True, trusted=True)
    async def extra() -> str:
        """Say so."""
        return "extra"

    @tool(trusted=True)
    async def fetch_extra(context: ToolContext) -> str:
        """Load it."""
        await context.session.load_tools(["extra"], source="skill:y")
        return "loaded"

    async with open_test_session(tools=TOOLS) as session:
        toolset = HandrailToolset(session, additional_tools=[extra, fetch_extra])
        chat = Chat(toolset, Scripted.of([("fetch_extra", {})], [("extra", {})]))
        events = await chat.say()
    assert ["extra" in names for names in chat.model.shown] == [False, True, True]
    assert results(events)[1]["content"] == "extra"


async def test_what_nobody_vouches_for_is_in_its_envelope_and_only_the_newest_pictures_are_sent() -> None:
    async with open_test_session(tools=TOOLS) as session:
        model = Scripted.of([("look", {})], [("look", {})], [("look", {})], model="gemini-3-pro")
        events = await Chat(HandrailToolset(session, pictures=1), model).say()
    assert results(events)[0]["output"].startswith("<untrusted ")
    parts = [part for content in model.requests[-1].contents for part in content.parts or []]
    responses = [part.function_response for part in parts if part.function_response]
    assert [len(response.parts or []) for response in responses] == [0, 0, 1]
    newest = (responses[-1].parts or [])[0].inline_data
    assert newest is not None
    assert (newest.data, newest.mime_type) == (PIXEL, "image/png")
    assert "no longer shown" in (responses[0].response or {})["media_note"]


async def test_older_models_of_gemini_get_pictures_beside_the_response() -> None:
    async with open_test_session(tools=TOOLS) as session:
        model = Scripted.of([("look", {})], model="gemini-2.5-flash")
        await Chat(HandrailToolset(session), model).say()
    response, picture = model.requests[-1].contents[-1].parts or []
    assert response.function_response is not None
    assert response.function_response.parts is None
    assert picture.inline_data is not None
    assert picture.inline_data.data == PIXEL


# Confirmations


async def test_a_call_that_needs_a_yes_is_asked_about_by_adk_and_made_after_it() -> None:
    async with open_test_session(tools=TOOLS) as session:
        chat = Chat(HandrailToolset(session), Scripted.of([("change", {"to": "blue"})]))
        asked = await chat.say()
        assert session.stash.get("setting") is None
        (question,) = questions(asked)
        confirmation = (question.args or {})["toolConfirmation"]
        assert "Handrail asks: may change" in confirmation["hint"]
        assert confirmation["payload"]["answers"] == ["once", "session", "always", "deny"]
        events = await chat.say(answered(question, True))
        assert results(events)[-1]["content"] == "now blue"
        assert session.stash.get("setting") == "blue"
    assert last_text(events) == "done"


async def test_a_no_leaves_everything_as_it_is() -> None:
    async with open_test_session(tools=TOOLS) as session:
        chat = Chat(HandrailToolset(session), Scripted.of([("change", {"to": "blue"})]))
        (question,) = questions(await chat.say())
        events = await chat.say(answered(question, False))
        assert session.stash.get("setting") is None
    assert "denied_by_user" in json.dumps(results(events)[-1])
    assert last_text(events) == "done"


async def test_a_yes_for_the_session_covers_the_next_call() -> None:
    steps = [[("change", {"to": "blue"})], [("change", {"to": "blue"})]]
    async with open_test_session(tools=TOOLS) as session:
        chat = Chat(HandrailToolset(session), Scripted.of(*steps))
        (question,) = questions(await chat.say())
        events = await chat.say(answered(question, True, {"answer": "session", "grant": 1}))
    assert [result["status"] for result in results(events)[-2:]] == ["success", "success"]
    assert not questions(events)


async def test_a_yes_is_good_for_what_was_shown_and_nothing_else() -> None:
    async with open_test_session(tools=TOOLS) as session:
        chat = Chat(HandrailToolset(session), Scripted.of([("change", {"to": "blue"})]))
        (question,) = questions(await chat.say())
        stored = await chat.runner.session_service.get_session(app_name="app", user_id="u", session_id="s")
        assert stored is not None
        key = next(key for key in stored.state if key.startswith("_handrail_asked_"))
        chat.runner.session_service.sessions["app"]["u"]["s"].state[key] = "another question"  # pyright: ignore[reportAttributeAccessIssue]
        events = await chat.say(answered(question, True))
        assert session.stash.get("setting") is None
    assert "not what would happen now" in json.dumps(results(events)[-1])


async def test_a_confirmer_of_the_host_is_asked_in_the_place_of_adk() -> None:
    asked: list[str] = []

    async def confirm(approval: Approval) -> Answer:
        asked.append(approval.tool)
        return Answer(Choice.ONCE)

    async with open_test_session(tools=TOOLS, confirm=confirm) as session:
        events = await Chat(HandrailToolset(session), Scripted.of([("change", {"to": "blue"})])).say()
    assert asked == ["change"]
    assert not questions(events)
    assert results(events)[0]["status"] == "success"


async def test_what_may_not_overtake_a_call_that_is_asked_about_is_not_done() -> None:
    step = [("change", {"to": "blue"}), ("add", {"a": 1, "b": 1}), ("setting", {"wait_for_previous": True})]
    async with open_test_session(tools=TOOLS) as session:
        chat = Chat(HandrailToolset(session), Scripted.of(step, [("setting", {})]))
        asked = await chat.say()
        statuses = {response.name: response.response or {} for e in asked for response in e.get_function_responses()}
        assert statuses["setting"]["status"] == "cancelled"
        assert "call it again" in json.dumps(statuses["setting"])
        assert statuses["add"]["sum"] == 2
        (question,) = questions(asked)
        events = await chat.say(answered(question, True))
    assert results(events)[-1]["setting"] == "blue"


class SameIds(Scripted):
    """A model that gives all of its calls one id."""

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        async for response in super().generate_content_async(llm_request, stream):
            for part in (response.content and response.content.parts) or []:
                if part.function_call is not None:
                    part.function_call.id = "same"
            yield response


async def test_the_second_of_two_calls_with_one_id_is_refused_and_the_first_is_as_it_was() -> None:
    async with open_test_session(tools=TOOLS) as session:
        chat = Chat(HandrailToolset(session), SameIds.of([("add", {"a": 1, "b": 1}), ("add", {"a": 2, "b": 2})]))
        first, second = results(await chat.say())
        assert (first["status"], first["sum"]) == ("success", 2)
        assert second["error"]["code"] == "invalid_arguments"
        assert "KeyError" not in json.dumps([first, second])
        assert "sum" not in second


async def test_calls_of_which_nobody_knows_what_they_change_are_asked_about_together_and_made_in_their_order() -> None:
    done: list[str] = []

    @tool(effects=[Run("command")], trusted=True)
    async def execute(command: str) -> None:
        """Run a command."""
        done.append(command)

    step = [("execute", {"command": "one"}), ("execute", {"command": "two"})]
    async with open_test_session(tools=[execute]) as session:
        chat = Chat(HandrailToolset(session), Scripted.of(step))
        asked = questions(await chat.say())
        assert (len(asked), done) == (2, [])
        events = await chat.say(*[answered(question, True) for question in asked])
    assert done == ["one", "two"]
    assert [result["status"] for result in results(events)] == ["success"] * 2


# Calls at once


async def test_calls_that_conflict_run_in_their_order_and_others_together() -> None:
    running, most, order = 0, 0, list[str]()

    @tool(trusted=True)
    async def read(name: str) -> None:
        """Read."""
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.02)
        running -= 1

    @tool(effects=[Write("settings")], trusted=True)
    async def write(name: str) -> None:
        """Write."""
        order.append(f"{name} begins")
        await asyncio.sleep(0.01)
        order.append(f"{name} ends")

    rules = {"policy": {"rules": [{"tool": "write", "decision": "allow"}]}}
    step = [("read", {"name": "a"}), ("read", {"name": "b"}), ("write", {"name": "c"}), ("write", {"name": "d"})]
    async with open_test_session(tools=[read, write], settings=rules) as session:
        events = await Chat(HandrailToolset(session), Scripted.of(step)).say()
    assert [result["status"] for result in results(events)] == ["success"] * 4
    assert most == 2
    assert order == ["c begins", "c ends", "d begins", "d ends"]


async def test_a_run_that_is_cancelled_takes_its_calls_along() -> None:
    began, ended = asyncio.Event(), asyncio.Event()

    @tool(trusted=True)
    async def hang() -> None:
        """Hang."""
        began.set()
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    async with open_test_session(tools=[hang]) as session:
        run = asyncio.create_task(Chat(HandrailToolset(session), Scripted.of([("hang", {})])).say())
        await began.wait()
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        assert ended.is_set()
        assert not session.running
        assert session.history.last(1)[0].result["status"] == "cancelled"


async def test_a_call_that_is_stopped_by_a_person_is_data() -> None:
    @tool(trusted=True)
    async def hang(context: ToolContext) -> None:
        """Hang."""
        context.session.cancel()
        await asyncio.sleep(60)

    async with open_test_session(tools=[hang]) as session:
        events = await Chat(HandrailToolset(session), Scripted.of([("hang", {})])).say()
    assert results(events)[0]["status"] == "cancelled"
    assert last_text(events) == "done"


# Sessions


async def test_each_adk_session_has_its_own_and_a_run_is_a_turn() -> None:
    async with open_test_runtime(tools=TOOLS, settings={"policy": {"rules": YES}}) as runtime:
        chat = Chat(HandrailToolset(runtime=runtime), Scripted.of([("change", {"to": "blue"})]))
        await chat.say()
        await chat.say(session="other")
        assert len(runtime.sessions) == 2
        assert [session.stash.get("setting") for session in runtime.sessions] == ["blue", None]
        runtime.sessions[0].turn_stash.set("word", 1)
        await chat.say()
        assert runtime.sessions[0].turn_stash.all() == {}
        await chat.runner.close()
        assert runtime.sessions == []


async def test_a_session_goes_on_where_it_was_after_a_restart() -> None:
    sessions = InMemorySessionService()
    async with open_test_runtime(tools=TOOLS, settings={"policy": {"rules": YES}}) as runtime:
        model = Scripted.of([("change", {"to": "blue"})], [("fetch", {})])
        await Chat(HandrailToolset(runtime=runtime), model, session_service=sessions).say()
    async with open_test_runtime(tools=TOOLS) as runtime:
        chat = Chat(HandrailToolset(runtime=runtime), Scripted.of([("setting", {})]), session_service=sessions)
        events = await chat.say()
        await chat.runner.close()
    assert results(events)[0]["setting"] == "blue"
    assert "spare" in chat.model.shown[0]


async def test_a_session_that_is_given_and_new_goes_on_where_the_adk_session_was() -> None:
    sessions = InMemorySessionService()
    settings = {"policy": {"rules": YES}}
    async with open_test_session(tools=TOOLS, settings=settings) as session:
        model = Scripted.of([("change", {"to": "blue"})], [("fetch", {})])
        await Chat(HandrailToolset(session), model, session_service=sessions).say()
        # One in which something has been done is left as its host has it.
        session.stash.set("setting", "green")
        await Chat(HandrailToolset(session), Scripted.of(), session_service=sessions).say()
        assert session.stash.get("setting") == "green"
    async with open_test_session(tools=TOOLS) as session:
        chat = Chat(HandrailToolset(session), Scripted.of([("setting", {})]), session_service=sessions)
        events = await chat.say()
    assert results(events)[0]["setting"] == "blue"
    assert "spare" in chat.model.shown[0]


async def test_a_question_is_answered_after_a_restart(tmp_path: Path) -> None:
    sessions = InMemorySessionService()
    async with open_test_runtime(tools=TOOLS, folder=tmp_path) as runtime:
        model = Scripted.of([("change", {"to": "blue"})])
        (question,) = questions(await Chat(HandrailToolset(runtime=runtime), model, session_service=sessions).say())
    async with open_test_runtime(tools=TOOLS, folder=tmp_path) as runtime:
        chat = Chat(HandrailToolset(runtime=runtime), Scripted.of(), session_service=sessions)
        events = await chat.say(answered(question, True))
        await chat.runner.close()
    assert results(events)[-1]["content"] == "now blue"


async def test_long_results_are_with_the_artifact_service_too() -> None:
    @tool(artifact="text", trusted=True)
    async def report() -> str:
        """Report."""
        return "line\n" * 100

    service = InMemoryArtifactService()
    async with open_test_session(tools=[report]) as session:
        chat = Chat(HandrailToolset(session), Scripted.of([("report", {})]), artifact_service=service)
        await chat.say()
        (name,) = await service.list_artifact_keys(app_name="app", user_id="u", session_id="s")
        part = await service.load_artifact(app_name="app", user_id="u", session_id="s", filename=name)
    assert part is not None
    assert part.inline_data is not None
    assert part.inline_data.data == b"line\n" * 100
    assert any(name.startswith("artifact_") for name in chat.model.shown[1])


@tool(requires={"parse_screen"}, trusted=True)
async def read_screen() -> None:
    """Read the screen."""


@tool(requires={"plan_actions"}, trusted=True)
async def plan() -> None:
    """Plan."""


@tool(trusted=True)
async def switch(context: ToolContext) -> None:
    """Use the other backend."""
    await context.session.use_backend("planner")


async def test_a_backend_that_is_switched_changes_the_list_at_the_next_step() -> None:
    backends = [
        fake_backend("reader", capabilities=["parse_screen"]),
        fake_backend("planner", capabilities=["plan_actions"]),
    ]
    tools = [read_screen, plan, switch]
    async with open_test_session(tools=tools, backends=backends) as session:
        chat = Chat(HandrailToolset(session), Scripted.of([("switch", {})], [("read_screen", {})]))
        events = await chat.say()
    assert ["plan" in names for names in chat.model.shown] == [False, True, True]
    assert ["read_screen" in names for names in chat.model.shown] == [True, False, False]
    assert "no tool with that name" in json.dumps(results(events)[1])


async def test_a_call_under_way_ends_on_the_backend_that_is_left_and_the_next_step_has_the_tools_of_the_new_one() -> (
    None
):
    begun, gate = asyncio.Event(), asyncio.Event()

    class Slow(VisionBackend):
        name = "slow"
        capabilities = frozenset({"parse_screen", "understand"})

        async def understand(self, frame: Frame, intent: str) -> str:
            begun.set()
            await gate.wait()
            return "the slow one saw this"

    @tool(requires={"understand"}, trusted=True)
    async def see(context: ToolContext) -> str:
        """See."""
        return (await context.vision.understand(Frame(Rect(0, 0, 9, 9), None, 0.0))).value

    backends, settings = [Slow, fake_backend("planner", capabilities=["plan_actions"])], {"backend": "slow"}
    async with open_test_session(tools=[see, plan], backends=backends, settings=settings) as session:
        chat = Chat(HandrailToolset(session), Scripted.of([("see", {})], [("see", {})]))
        async with asyncio.timeout(30):
            run = asyncio.ensure_future(chat.say())
            await begun.wait()
            await session.use_backend("planner")
            gate.set()
            events = await run
    assert [{"see", "plan"} & set(names) for names in chat.model.shown] == [{"see"}, {"plan"}, {"plan"}]
    seen, refused = results(events)
    assert "the slow one saw this" in json.dumps(seen)
    assert "no tool with that name" in json.dumps(refused)

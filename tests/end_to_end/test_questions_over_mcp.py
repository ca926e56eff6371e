"""An agent behind an MCP client asks the client's person in words, in both eras of the protocol."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import types
from tests.plugins.mcp.place import ERAS, MODERN, Place, made, result_fields, wait_for

from handrail.approval.inbox import PendingInquiry, answer_inquiry, list_pending_questions
from handrail.fs.app_dirs import AppDirs

both_eras = pytest.mark.parametrize("era", ERAS)
QUESTIONS = [
    {"question": "Which colour?", "kind": "choice", "options": ["red", "blue"]},
    {"question": "Which sides?", "kind": "choice", "options": ["left", "right"], "several": True},
    {"question": "Are you sure?", "kind": "yes_no"},
    {"question": "What is it called?"},
]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = made(tmp_path, "")
    place.environment["HANDRAIL_PLUGINS"] = "mcp,session"
    place.configure("")
    return place


async def answers(place: Place, era: str, given: types.ElicitResult) -> Any:
    async with place.client(era, lambda _: given) as client:
        return result_fields(await client.call_tool("ask_user", {"questions": QUESTIONS}))


@both_eras
async def test_a_form_brings_the_answers(place: Place, era: str) -> None:
    content: Any = {"q1": "blue", "q2_1": False, "q2_2": True, "q2_own": "a slope", "q3": False, "q4": "the boat"}
    result = await answers(place, era, types.ElicitResult(action="accept", content=content))
    assert [each["answer"] for each in result["answers"]] == ["blue", ["right", "a slope"], False, "the boat"]
    (form,) = place.asked
    assert form.requested_schema["properties"]["q1"]["enum"] == ["red", "blue"]
    assert "    | Which colour?" in form.message


async def test_what_is_left_empty_or_was_not_offered_is_left_open(place: Place) -> None:
    content: Any = {"q1": "green", "q2_1": False, "q3": "yes", "q4": "the boat"}
    result = await answers(place, MODERN, types.ElicitResult(action="accept", content=content))
    assert [each["answer"] for each in result["answers"]] == [None, None, None, "the boat"]


@pytest.mark.parametrize("given", [{"action": "decline"}, {"action": "cancel"}, {"action": "accept"}])
async def test_who_does_not_answer_has_said_nothing(place: Place, given: Any) -> None:
    result = await answers(place, MODERN, types.ElicitResult(**given))
    assert result["error"]["code"] == "denied_by_user"


async def test_a_client_that_cannot_ask_is_nobody(place: Place) -> None:
    async with place.client(MODERN) as client:
        result = result_fields(await client.call_tool("ask_user", {"questions": QUESTIONS}))
    assert result["error"]["code"] == "no_confirmer"


async def test_where_a_client_may_not_answer_for_its_person_they_do_at_this_machine(place: Place) -> None:
    place.configure('[serve]\napprovals = "local"\n')
    places, results = AppDirs.of(place.environment), list[Any]()

    async def ask() -> None:
        results.append(await answers(place, MODERN, types.ElicitResult(action="accept", content={"q4": "the boat"})))

    async with anyio.create_task_group() as group:
        group.start_soon(ask)
        (left,) = await wait_for(lambda: list_pending_questions(places))
        assert isinstance(left, PendingInquiry)
        answer_inquiry(places, left, ["blue", ("left",), True, None])
    assert [each["answer"] for each in results[0]["answers"]] == ["blue", ["left"], True, None]
    assert place.asked == []


async def test_where_nobody_answers_at_this_machine_nothing_is_said(place: Place) -> None:
    place.configure('[serve]\napprovals = "local"\n[confirmation]\nexpires = 0.5\n')
    result = await answers(place, MODERN, types.ElicitResult(action="accept", content={"q4": "the boat"}))
    assert result["error"]["code"] == "no_confirmer"
    assert place.asked == []


async def test_what_is_remembered_is_a_resource(place: Place) -> None:
    async with place.client(MODERN) as client:
        await client.call_tool("save_memory", {"fact": "Tea is green here."})
        (memory,) = (await client.list_resources()).resources
        (content,) = (await client.read_resource(str(memory.uri))).contents
    assert isinstance(content, types.TextResourceContents)
    assert "- Tea is green here." in content.text


@both_eras
async def test_a_plan_is_shown_and_approved_by_the_clients_person(place: Place, era: str) -> None:
    given = types.ElicitResult(action="accept", content={"answer": "once"})
    async with place.client(era, lambda _: given) as client:
        assert result_fields(await client.call_tool("enter_plan_mode", {}))["mode"] == "plan"
        names = {tool.name for tool in (await client.list_tools()).tools}
        assert "exit_plan_mode" in names
        assert not names & {"enter_plan_mode", "save_memory"}
        left = result_fields(await client.call_tool("exit_plan_mode", {"plan": "1. Paint the boat."}))
    assert left["mode"] == "default"
    assert "    | 1. Paint the boat." in place.asked[0].message

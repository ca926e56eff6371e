"""Plan mode: what can be called in it, and who ends it. And outlines."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from handrail import Answer, Choice, Session, Tool, Write, tool
from handrail.api.events import Event, ModeChanged
from handrail.api.verdict import Mode
from handrail.testing import ToolContract, open_test_session
from handrail_session.plan_mode import generate_plan

from .people import PLUGINS, Host, Person


class TestGeneratePlan(ToolContract):
    @pytest.fixture
    def tool(self) -> Tool:
        return generate_plan

    @pytest.fixture
    def good_args(self) -> Mapping[str, Any]:
        return {"task_description": "Wait a little. Then look at the history."}


@tool(effects=[Write("settings")], trusted=True)
async def paint() -> str:
    """Paint the boat in a colour."""
    return "painted"


async def names(session: Session) -> set[str]:
    return {each.name for each in await session.tools()}


def opened(person: Person | None, **given: Any) -> Any:
    return open_test_session(plugins=PLUGINS, tools=[paint], confirm=person, **given)


async def test_in_plan_mode_only_what_changes_nothing_is_there() -> None:
    async with opened(Person("once")) as session:
        before = await names(session)
        assert (await session.call("enter_plan_mode", {}))["mode"] == "plan"
        during = await names(session)
        assert before - during == {"paint", "enter_plan_mode", "save_memory"}
        assert during - before == {"exit_plan_mode"}
        assert (await session.call("paint", {}))["error"]["code"] == "tool_unavailable"
        assert (await session.call("write_todos", {"todos": []}))["status"] == "success"
        assert (await session.call("recall_memory", {}))["status"] == "success"


@pytest.mark.parametrize("mode", ["default", "accept_edits", "permissive"])
async def test_a_yes_to_the_plan_brings_back_the_mode_that_was_before(mode: str) -> None:
    person = Person("once")
    heard: list[Event] = []
    async with opened(person, settings={"mode": mode}) as session:
        session.bus.subscribe(heard.append)
        before = await names(session)
        await session.call("enter_plan_mode", {})
        assert session.court.judging.mode is Mode.PLAN
        result = await session.call("exit_plan_mode", {"plan": "1. Paint the boat."})
        assert (result["status"], result["mode"], session.court.judging.mode) == ("success", mode, mode)
        assert await names(session) == before
    (asked,) = person.asked
    assert getattr(asked.confirmation, "text", "") == "1. Paint the boat."
    assert asked.grants == ()
    assert [each.mode for each in heard if isinstance(each, ModeChanged)] == ["plan", mode]


async def test_a_no_keeps_plan_mode_and_tells_why() -> None:
    person = Person(Answer(Choice.DENY, feedback="sand it first"), "once")
    async with opened(person) as session:
        await session.call("enter_plan_mode", {})
        refused = await session.call("exit_plan_mode", {"plan": "1. Paint the boat."})
        assert refused["error"]["code"] == "denied_by_user"
        assert "sand it first" in refused["error"]["message"]
        assert "paint" not in await names(session)
        assert (await session.call("exit_plan_mode", {"plan": "1. Sand it. 2. Paint it."}))["status"] == "success"


async def test_a_plan_that_the_person_changed_is_the_plan() -> None:
    person = Person(Answer(Choice.EDIT, args={"plan": "1. Sand it."}), "once")
    async with opened(person) as session:
        await session.call("enter_plan_mode", {})
        result = await session.call("exit_plan_mode", {"plan": "1. Paint it."})
    assert result["plan"] == "1. Sand it."


async def test_where_nobody_can_approve_a_plan_none_is_begun() -> None:
    async with opened(None) as session:
        assert (await session.call("enter_plan_mode", {}))["error"]["code"] == "tool_unavailable"
        assert session.court.judging.mode is Mode.DEFAULT


async def test_plan_mode_of_the_configuration_is_not_the_agents_to_leave() -> None:
    async with opened(Person("once"), settings={"mode": "plan"}) as session:
        assert not await names(session) & {"enter_plan_mode", "exit_plan_mode"}
        assert (await session.call("exit_plan_mode", {"plan": "x"}))["error"]["code"] == "tool_unavailable"


async def test_a_rule_for_what_reads_does_not_answer_for_a_plan() -> None:
    rules = {"policy": {"rules": [{"read_only": True, "decision": "allow"}]}}
    person = Person("deny")
    async with opened(person, settings=rules) as session:
        await session.call("enter_plan_mode", {})
        await session.call("exit_plan_mode", {"plan": "x"})
        assert session.court.judging.mode is Mode.PLAN
    assert len(person.asked) == 1


def test_a_host_sees_the_tools_of_plan_mode(tmp_path: Path) -> None:
    host = Host(tmp_path, "--ask", plugins="session,files")
    host.say(id=1, tool="enter_plan_mode", args={})
    assert host.hear()["result"]["mode"] == "plan"
    host.say(control="tools", id=2)
    listed = {each["name"] for each in host.hear()["tools"]}
    assert {"read_file", "exit_plan_mode"} <= listed
    assert not listed & {"write_file", "edit_file", "save_memory", "enter_plan_mode"}
    host.say(id=3, tool="exit_plan_mode", args={"plan": "Write it."})
    asked = host.hear()
    assert asked["confirmation"]["text"] == "Write it."
    host.say(control="answer", id=4, approval=asked["approval"], answer="once")
    assert {each["id"] for each in (host.hear(), host.hear())} == {3, 4}
    host.say(control="tools", id=5)
    assert "write_file" in {each["name"] for each in host.hear()["tools"]}
    host.close()


async def test_an_outline_names_tools_that_are_there_and_says_what_it_is() -> None:
    async with opened(None) as session:
        result = await session.call("generate_plan", {"task_description": "Wait; then paint the boat.\nRest"})
    assert [(each["do"], each["tools"], each["changes"]) for each in result["steps"]] == [
        ("Wait", ["wait"], False),
        ("paint the boat", ["paint"], True),
        ("Rest", [], False),
    ]
    assert "Nobody has thought it through" in result["note"]

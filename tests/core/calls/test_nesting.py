"""Calls within calls: the whole path again, under what the outer call holds."""

from __future__ import annotations

import asyncio
from typing import Any

import anyio

from handrail import Approval, Decision, Read, ToolContext, ToolError, Write, tool
from handrail.api.approval import callback
from handrail.api.events import Event, Proposed, Started
from handrail.audit.writer import verify_audit
from handrail.testing import Always, ScriptedConfirmer, open_test_session


@tool()
async def outer(name: str, context: ToolContext) -> dict[str, Any]:
    """Call another tool and return its result as inner."""
    return {"inner": await context.call(name, {})}


@tool()
async def inner(context: ToolContext) -> dict[str, Any]:
    """Return its id and its parent's."""
    parent = context.invocation.parent
    return {"id": context.call_id, "parent": parent.call_id if parent else None, "depth": context.invocation.depth}


@tool()
async def failing() -> None:
    """Fail."""
    raise ToolError("inner trouble")


@tool()
async def itself(context: ToolContext) -> dict[str, Any]:
    """Call itself and return the deepest result."""
    result = await context.call("itself", {})
    return {"deepest": result.get("deepest") or result, "depth": context.invocation.depth}


@tool(effects=[Write("settings")])
async def change() -> str:
    """Change something."""
    return "changed"


@tool()
async def sleep(context: ToolContext) -> None:
    """Sleep."""
    await anyio.sleep(60)


@tool(exclusive="desktop")
async def type_words(context: ToolContext) -> dict[str, Any]:
    """Type, and press a key as a part of it."""
    return {"pressed": await context.call("press_key", {})}


@tool(exclusive="desktop")
async def press_key() -> str:
    """Press a key."""
    return "pressed"


async def test_a_child_knows_its_parent() -> None:
    async with open_test_session(tools=[outer, inner]) as session:
        result = await session.call("outer", {"name": "inner"}, call_id="p")
    assert result["inner"]["parent"] == "p"
    assert result["inner"]["id"].startswith("p.")
    assert result["inner"]["depth"] == 1


async def test_a_childs_failure_is_a_result_and_ends_nothing() -> None:
    async with open_test_session(tools=[outer, failing]) as session:
        result = await session.call("outer", {"name": "failing"})
    assert result.ok
    assert result["inner"]["error"]["message"] == "inner trouble"


async def test_an_unknown_child_is_a_result() -> None:
    async with open_test_session(tools=[outer]) as session:
        assert (await session.call("outer", {"name": "nobody"}))["inner"].error_code == "unknown_tool"


async def test_depth_has_an_end() -> None:
    async with open_test_session(tools=[itself]) as session:
        result = await session.call("itself")
    assert result.ok
    assert result["deepest"]["error"]["code"] == "tool_unavailable"
    assert "nested" in result["deepest"]["error"]["message"]


async def test_a_child_is_judged_and_confirmed_on_its_own() -> None:
    person = ScriptedConfirmer("deny")
    async with open_test_session(tools=[outer, change], confirm=person) as session:
        result = await session.call("outer", {"name": "change"})
    assert result["inner"].error_code == "denied_by_user"
    assert [approval.tool for approval in person.asked] == ["change"]


async def test_a_yes_to_the_parent_is_none_to_the_child() -> None:
    @tool(effects=[Write("settings")])
    async def big(context: ToolContext) -> dict[str, Any]:
        """Change much."""
        return {"inner": await context.call("change", {})}

    person = ScriptedConfirmer("once", "deny")
    async with open_test_session(tools=[big, change], confirm=person) as session:
        result = await session.call("big")
    assert result.ok
    assert result["inner"].status == "denied"


async def test_a_child_works_under_the_leases_of_its_parent() -> None:
    async with open_test_session(tools=[type_words, press_key]) as session:
        with anyio.fail_after(30):
            result = await session.call("type_words")
    assert result["pressed"]["content"] == "pressed"


async def test_cancelling_the_parent_reaches_the_child() -> None:
    async with open_test_session(tools=[outer, sleep]) as session:
        started = anyio.Event()

        def notice(event: Event) -> None:
            if isinstance(event, Started) and event.tool == "sleep":
                started.set()

        session.bus.subscribe(notice)
        task = asyncio.create_task(session.call("outer", {"name": "sleep"}, call_id="p"))
        await started.wait()
        session.cancel("p")
        with anyio.fail_after(20):
            result = await task
        assert result.status == "cancelled"
        assert not session.running
        audit = verify_audit(session.runtime.places.audit / f"{session.id}.jsonl")
        assert not audit.unfinished


async def test_the_parents_timeout_reaches_the_child() -> None:
    hasty = tool(name="outer", description="Call.", timeout=0.05)(outer_function)
    async with open_test_session(tools=[hasty, sleep]) as session:
        with anyio.fail_after(20):
            assert (await session.call("outer", {"name": "sleep"})).status == "timeout"


async def test_the_parents_clock_rests_while_a_person_thinks_about_the_child() -> None:
    limit = 1
    hasty = tool(name="outer", description="Call.", timeout=limit)(outer_function)

    async def think(approval: Approval) -> bool:
        await anyio.sleep(limit + 0.1)
        return True

    async with open_test_session(tools=[hasty, change], confirm=callback(think)) as session:
        assert (await session.call("outer", {"name": "change"}))["inner"].status == "success"


async def test_after_the_answer_the_parents_clock_goes_on() -> None:
    hasty = tool(name="outer", description="Call.", timeout=0.05)(outer_function)

    @tool(effects=[Write("settings")])
    async def dawdle() -> None:
        """Take long."""
        await anyio.sleep(60)

    async with open_test_session(tools=[hasty, dawdle], confirm=ScriptedConfirmer("once")) as session:
        with anyio.fail_after(20):
            assert (await session.call("outer", {"name": "dawdle"})).status == "timeout"


async def outer_function(name: str, context: ToolContext) -> dict[str, Any]:
    return {"inner": await context.call(name, {})}


async def test_cancelling_the_child_leaves_the_parent_its_result() -> None:
    async with open_test_session(tools=[outer, sleep]) as session:
        started = anyio.Event()
        ids: list[str] = []

        def notice(event: Event) -> None:
            if isinstance(event, Started) and event.tool == "sleep":
                ids.append(event.call_id)
                started.set()

        session.bus.subscribe(notice)
        task = asyncio.create_task(session.call("outer", {"name": "sleep"}))
        await started.wait()
        session.cancel(ids[0])
        with anyio.fail_after(20):
            result = await task
    assert result.ok
    assert result["inner"].status == "cancelled"


async def test_children_may_run_side_by_side() -> None:
    @tool()
    async def fan(context: ToolContext) -> dict[str, Any]:
        """Call three at once."""
        ids: list[str] = []

        async def child() -> None:
            ids.append((await context.call("inner", {}))["id"])

        async with anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(child)
        return {"ids": sorted(ids)}

    async with open_test_session(tools=[fan, inner]) as session:
        assert (await session.call("fan", call_id="f"))["ids"] == ["f.1", "f.2", "f.3"]


async def test_the_ring_counts_top_level_calls_and_the_audit_all() -> None:
    async with open_test_session(tools=[outer, inner]) as session:
        await session.call("outer", {"name": "inner"})
        assert [record.call.name for record in session.history.last()] == ["outer"]
        audit = session.runtime.places.audit / f"{session.id}.jsonl"
        assert '"tool":"inner"' in audit.read_text()


async def test_events_of_a_child_name_its_parent() -> None:
    proposed: list[Proposed] = []
    async with open_test_session(tools=[outer, inner]) as session:
        session.bus.subscribe(lambda event: proposed.append(event) if isinstance(event, Proposed) else None)
        await session.call("outer", {"name": "inner"}, call_id="p")
    assert [(event.tool, event.parent) for event in proposed] == [("outer", None), ("inner", "p")]


async def test_a_hidden_tool_may_be_nested_but_a_disabled_one_not() -> None:
    @tool(requires={"plan_actions"}, effects=[Read("screen")])
    async def unseen() -> str:
        """Be needed by others."""
        return "here"

    async with open_test_session(tools=[outer, unseen]) as session:
        assert (await session.call("unseen")).error_code == "tool_unavailable"
        assert (await session.call("outer", {"name": "unseen"}))["inner"]["content"] == "here"
    async with open_test_session(tools=[outer, unseen], settings={"tools": {"disabled": ["unseen"]}}) as session:
        assert (await session.call("outer", {"name": "unseen"}))["inner"].error_code == "tool_unavailable"


async def test_a_denied_parent_calls_no_child() -> None:
    judge = Always(Decision.DENY)
    async with open_test_session(tools=[outer, inner], evaluators=[judge]) as session:
        assert (await session.call("outer", {"name": "inner"})).status == "denied"
    # About the parent alone: once for the verdict, then for the way to allow it, in accept_edits, as it is, and with a rule.
    assert judge.asked == 4


@tool()
async def careful(context: ToolContext) -> dict[str, Any]:
    """Call a harmless tool, and want a person asked first."""
    return {"inner": await context.call("inner", {}, ask="the model's safety check wants a yes")}


async def test_whoever_nests_a_call_may_want_a_person_asked_whatever_policy_says() -> None:
    person = ScriptedConfirmer("once", "deny")
    settings = {"policy": {"rules": [{"tool": "*", "decision": "allow"}]}}
    async with open_test_session(tools=[careful, inner], trusted=True, confirm=person, settings=settings) as session:
        assert (await session.call("careful"))["inner"].ok
        refused = (await session.call("careful"))["inner"]
        assert refused.error_code == "denied_by_user"
    assert [asked.tool for asked in person.asked] == ["inner", "inner"]
    assert person.asked[0].verdict.reasons[-1].text == "the model's safety check wants a yes"
    async with open_test_session(tools=[careful, inner], trusted=True) as session:
        assert (await session.call("careful"))["inner"].error_code == "no_confirmer"

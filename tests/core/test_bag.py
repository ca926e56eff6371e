"""Values by dotted path, for a session, a turn and what stands beside a tool."""

from __future__ import annotations

from typing import Any

import pytest

from handrail import Bag, ToolContext, tool
from handrail.testing import open_test_session


def test_a_path_leads_through_mappings_that_are_made_on_the_way() -> None:
    bag = Bag({"mail": {"folder": "inbox", "sizes": [1, {"a": 2}]}})
    bag.set("mail.last.sender", "ann")
    bag.set("empty", {})
    assert bag.get("mail.last.sender") == "ann"
    assert bag.get("mail.nobody", 7) == 7
    assert bag.get("mail.folder.deeper") is None
    # Lists are values, whatever they hold.
    assert list(bag.keys()) == ["mail.folder", "mail.sizes", "mail.last.sender", "empty"]


def test_nobody_changes_a_value_unseen() -> None:
    given: dict[str, Any] = {"sizes": [1]}
    bag = Bag(given)
    given["sizes"].append(2)
    bag.get("sizes").append(3)
    bag.all()["sizes"].append(4)
    bag.set("more", given)
    given["sizes"].append(5)
    assert bag.all() == {"sizes": [1], "more": {"sizes": [1, 2]}}


def test_none_is_a_value_and_what_is_deleted_is_gone() -> None:
    bag = Bag({"a": {"b": None}})
    assert (bag.has("a"), bag.has("a.b"), bag.has("a.c"), bag.has("a.b.c")) == (True, True, False, False)
    bag.delete("a.b")
    bag.delete("a.b.c")
    bag.delete("nothing.here")
    assert bag.all() == {"a": {}}


def test_a_path_through_a_value_is_an_error_and_changes_nothing() -> None:
    bag = Bag({"a": 1})
    with pytest.raises(ValueError, match=r"'a\.b'.*'a'"):
        bag.set("a.b", 2)
    assert bag.all() == {"a": 1}


def test_what_a_tool_carries_is_its_own() -> None:
    @tool(meta=Bag({"team": {"owner": "ops"}}))
    async def owned() -> None:
        """Do nothing."""

    assert owned.meta.get("team.owner") == "ops"
    owned.meta.get("team")["owner"] = "nobody"
    assert owned.meta.get("team.owner") == "ops"


async def test_the_turns_stash_ends_with_the_turn_and_the_sessions_with_the_session() -> None:
    @tool()
    async def count(context: ToolContext) -> dict[str, Any]:
        """Count calls."""
        found: dict[str, Any] = {}
        for name, stash in (("turn", context.turn_stash), ("session", context.stash)):
            stash.set("calls.made", stash.get("calls.made", 0) + 1)
            found[name] = stash.get("calls.made")
        return found

    async with open_test_session(tools=[count]) as session:

        async def counted() -> tuple[int, int]:
            result = await session.call("count")
            return result["turn"], result["session"]

        assert [await counted(), await counted()] == [(1, 1), (2, 2)]
        session.begin_turn()
        assert await counted() == (1, 3)
        session.begin_turn({"calls": {"made": 10}})
        assert await counted() == (11, 4)
    async with open_test_session(tools=[count]) as session:
        assert (await session.call("count"))["session"] == 1

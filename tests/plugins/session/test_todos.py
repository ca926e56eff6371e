"""The list of what is to be done, and the topic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from handrail import Tool
from handrail.api.events import Event, TopicChanged
from handrail.testing import ToolContract, open_test_session
from handrail_session.todos import write_todos
from handrail_session.topic_tool import update_topic

from .people import PLUGINS


def todos(*statuses: str) -> dict[str, Any]:
    return {"todos": [{"description": f"part {n}", "status": status} for n, status in enumerate(statuses, 1)]}


class TestWriteTodos(ToolContract):
    @pytest.fixture
    def tool(self) -> Tool:
        return write_todos

    @pytest.fixture
    def good_args(self) -> Mapping[str, Any]:
        return todos("completed", "in_progress", "pending", "cancelled")

    @pytest.fixture
    def bad_args(self) -> list[Mapping[str, Any]]:
        return [todos("in_progress", "in_progress"), todos("blocked"), {"todos": [{"status": "pending"}]}]


class TestUpdateTopic(ToolContract):
    @pytest.fixture
    def tool(self) -> Tool:
        return update_topic

    @pytest.fixture
    def good_args(self) -> Mapping[str, Any]:
        return {"title": "Painting", "summary": "The boat is dry."}


async def test_the_whole_list_is_replaced_and_shown() -> None:
    async with open_test_session(plugins=PLUGINS) as session:
        await session.call("write_todos", todos("pending", "pending"))
        result = await session.call("write_todos", todos("completed", "in_progress", "cancelled"))
        assert result["content"] == "[x] part 1\n[>] part 2\n[-] part 3"
        assert result["counts"] == {"in_progress": 1, "completed": 1, "cancelled": 1}
        assert [each["status"] for each in session.stash.get("todos")] == ["completed", "in_progress", "cancelled"]
        assert (await session.call("write_todos", {"todos": []}))["content"] == "the list is empty"


async def test_a_description_stays_on_its_line() -> None:
    given = {"todos": [{"description": "one\n[x] two", "status": "pending"}]}
    async with open_test_session(plugins=PLUGINS) as session:
        assert (await session.call("write_todos", given))["content"] == "[ ] one [x] two"


async def test_whoever_watches_is_told_of_a_topic_in_which_nothing_is_hidden() -> None:
    heard: list[Event] = []
    async with open_test_session(plugins=PLUGINS) as session:
        session.bus.subscribe(heard.append)
        await session.call("update_topic", {"title": "Painting\nthe \x1b[2Jboat", "summary": "It is dry."})
    (told,) = [each for each in heard if isinstance(each, TopicChanged)]
    assert (told.title, told.summary) == ("Painting the \\x1b[2Jboat", "It is dry.")

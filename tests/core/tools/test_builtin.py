"""The tools that core itself supplies keep the contract, and do what they say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from handrail import Read, Rect, Tool, ToolContext, Window, tool
from handrail.testing import FakeAccessibility, FakeScreen, ToolContract, fake_service
from handrail.testing.session_fixtures import OpenSession
from handrail.tools.builtin import get_action_history, wait


class TestWait(ToolContract):
    @pytest.fixture
    def tool(self) -> Tool:
        return wait

    @pytest.fixture
    def options(self) -> Mapping[str, Any]:
        return {"plugins": {}}

    @pytest.fixture
    def good_args(self) -> Mapping[str, Any]:
        return {"seconds": 0.1}

    @pytest.fixture
    def bad_args(self) -> list[dict[str, Any]]:
        return [
            {"seconds": 0},
            {"seconds": 61},
            {"seconds": "soon"},
            {"seconds": 1, "until": {"windw": "x"}},
            {"seconds": 1, "until": {}},
            {"seconds": 1, "until": {"text": "a", "window": "b"}},
        ]


@tool(effects=[Read("processes")])
async def list_processes() -> dict[str, Any]:
    """List two processes, one of which has ended. Returns processes."""
    return {"processes": [{"process_id": "p1", "running": False}, {"process_id": "p2", "running": True}]}


@tool(effects=[Read("tree")])
async def look(*, context: ToolContext) -> dict[str, Any]:
    """See the tree and number what is in it. Returns ids."""
    tree = await (await context.service("accessibility")).tree()
    return {"ids": [element.id for element in context.observations.number(tree.elements)]}


@pytest.mark.parametrize(
    ("until", "met"),
    [
        pytest.param({"text": "Save"}, True, id="text"),
        pytest.param({"text": "Quit"}, False, id="no-text"),
        pytest.param({"element": "Save"}, True, id="element"),
        pytest.param({"element": "e1"}, True, id="element-by-id"),
        pytest.param({"element": "e2"}, False, id="element-that-is-gone"),
        pytest.param({"window": "edit"}, True, id="window"),
        pytest.param({"window": "Files"}, False, id="no-window"),
        pytest.param({"process": "p1"}, True, id="ended-process"),
        pytest.param({"process": "p2"}, False, id="running-process"),
    ],
)
async def test_wait_says_whether_its_condition_was_met(
    until: dict[str, str], met: bool, handrail_session: OpenSession
) -> None:
    tree = FakeAccessibility.of(("button", "Save"), ("button", "Gone"))
    screen = FakeScreen([Window("1", "Editor", "mousepad", None, Rect(0, 0, 9, 9))])
    services = [fake_service("accessibility", tree), fake_service("screen", screen)]
    async with handrail_session(tools=[list_processes, look], services=services) as session:
        assert (await session.call("look"))["ids"] == ["e1", "e2"]
        tree.elements.pop()
        assert (await session.call("wait", {"seconds": 0.1, "until": until}))["met"] is met


@pytest.mark.parametrize(
    ("tools", "until", "code"),
    [
        pytest.param([list_processes], {"process": "p3"}, "not_found", id="unknown-process"),
        pytest.param([], {"process": "p1"}, "tool_unavailable", id="nobody-lists-processes"),
        pytest.param([], {"element": "e9"}, "stale_element", id="unknown-element"),
    ],
)
async def test_waiting_for_what_nobody_knows_is_an_error_and_not_a_condition_met(
    tools: list[Tool], until: dict[str, str], code: str, handrail_session: OpenSession
) -> None:
    services = [fake_service("accessibility", FakeAccessibility())]
    async with handrail_session(tools=tools, services=services) as session:
        assert (await session.call("wait", {"seconds": 0.1, "until": until})).error_code == code


class TestGetActionHistory(ToolContract):
    @pytest.fixture
    def tool(self) -> Tool:
        return get_action_history

    @pytest.fixture
    def options(self) -> Mapping[str, Any]:
        return {"plugins": {}}

    @pytest.fixture
    def good_args(self) -> Mapping[str, Any]:
        return {"last_n": 5}

    @pytest.fixture
    def bad_args(self) -> list[dict[str, Any]]:
        return [{"last_n": 0}, {"last_n": 51}]

"""Windows that are called the same are told apart: by their places, never by their titles."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from handrail import Rect

from .conftest import Agent, Programs, until

TWINS = str(Path(__file__).with_name("twin_windows.py"))


async def twins(agent: Agent, title: str) -> list[dict[str, Any]]:
    """The windows of that title, the lower one in the stack last, once there are two."""

    async def both() -> list[dict[str, Any]]:
        found = [window for window in (await agent("window_list"))["windows"] if window["title"] == title]
        return found if len(found) == 2 else []

    return await until(both, what=f"two windows called {title!r}")


async def in_window(agent: Agent, window: str, role: str, text: str) -> dict[str, Any]:
    """The element of that role and text in a window, which is named by its id."""

    async def found() -> dict[str, Any] | None:
        seen = await agent.session.call("get_ui_context", {"window": window})
        elements = seen["elements"] if seen.ok else []
        return next((e for e in elements if e["type"] == role and text in e["name"]), None)

    return await until(found, what=f"{role} {text!r} in {window}")


@pytest.fixture
async def qt(agent: Agent, programs: Programs) -> tuple[dict[str, Any], dict[str, Any]]:
    """Two windows of one program, the first in front."""
    desktop = await agent.session.desktop()
    programs.start(desktop, sys.executable, TWINS)
    found = await twins(agent, "twins")
    first, second = sorted(found, key=lambda window: window["x"])
    await agent("resize_window", title=first["id"], x=100, y=100)
    await agent("resize_window", title=second["id"], x=110, y=90)
    await agent("window_focus", title=first["id"])
    return first, second


async def test_a_window_is_read_by_its_id(agent: Agent, qt: Any):
    first, second = qt
    for window, button, other in ((first, "press 1", "press 2"), (second, "press 2", "press 1")):
        await in_window(agent, window["id"], "button", button)
        seen = await agent("get_ui_context", window=window["id"])
        assert other not in [element["name"] for element in seen["elements"]]
        looked = await agent("observe_screen", window=window["id"], image="none")
        assert button in [element["text"] for element in looked["ui_elements"]]
    refused = await agent.fails("observe_screen", window="twins")
    assert {each["id"] for each in refused["details"]["candidates"]} == {first["id"], second["id"]}


async def test_a_click_goes_to_the_window_that_the_element_is_in(agent: Agent, qt: Any):
    first, second = qt
    button = await in_window(agent, second["id"], "button", "press 2")
    refused = await agent.fails("execute_gui", action="click", element_id=button["id"])
    assert "covers" in refused["message"], refused
    await agent("resize_window", title=second["id"], x=300, y=90)
    clicked = await agent("execute_gui", action="click", element_id=button["id"])
    assert clicked["effect"] == "confirmed"
    over = next(window for window in await twins(agent, "twins") if window["id"] == first["id"])
    assert not Rect(over["x"], over["y"], over["width"], over["height"]).contains(*clicked["coordinates"]["screen"])
    counts = [(await in_window(agent, window["id"], "text", "count"))["value"] for window in qt]
    assert counts == ["0", "1"]


async def test_two_runs_of_one_program_are_told_apart(agent: Agent):
    await agent.open("galculator")
    seven = await agent.element("toggle button", "7")
    await agent.open("galculator")
    over, under = await twins(agent, "galculator")
    for window in (under, over):
        await agent("resize_window", title=window["id"], x=300, y=200)
    refused = await agent.fails("execute_gui", action="click", element_id=seven["id"])
    assert "covers" in refused["message"], refused
    await agent("resize_window", title=over["id"], x=300, y=700)
    await agent("execute_gui", action="click", element_id=seven["id"])
    values = [(await in_window(agent, window["id"], "text", ""))["value"] for window in (under, over)]
    assert values == ["7", "0"], values

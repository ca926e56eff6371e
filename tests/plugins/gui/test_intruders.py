"""What comes in between: windows that come up, take the keyboard or have to be answered first, and a program that floods the bus."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from handrail import Window

from .conftest import Agent, Programs, held_down, until

INTRUDING = str(Path(__file__).with_name("intruding_window.py"))
FLOODING = str(Path(__file__).with_name("flooding_program.py"))


async def first_window(agent: Agent, programs: Programs, *argv: str) -> Window:
    desktop = await agent.session.desktop()
    # Away from where windows come up.
    await (await agent.session.service("hands")).move(1000, 700)
    return await programs.open(desktop, await agent.session.service("screen"), sys.executable, *argv)


@pytest.mark.parametrize("action", ["click", "double_click", "drag", "mouse_down", "type"])
async def test_nothing_is_pressed_on_a_window_that_comes_up_as_the_pointer_gets_there(
    agent: Agent, programs: Programs, tmp_path: Path, action: str
):
    pressed = tmp_path / "pressed"
    window = await first_window(agent, programs, INTRUDING, "pointer", str(pressed))
    await agent("observe_screen", image="raw")
    x, y = window.rect.center
    args = {"drag": {"to_x": x + 50, "to_y": y}, "type": {"text": "x"}}.get(action, {})
    refused = await agent.fails("execute_gui", action=action, x=x, y=y, **args)
    assert refused["code"] == "stale_observation"
    assert "came up over" in refused["message"]
    assert pressed.read_text() == ""


async def test_typing_stops_when_another_window_takes_the_keyboard(agent: Agent, programs: Programs, tmp_path: Path):
    typed = tmp_path / "typed"
    await first_window(agent, programs, INTRUDING, "keys", str(typed))
    await agent("observe_screen", image="none")
    text = "".join(chr(0x4E00 + n) for n in range(400))
    stopped = await agent.fails("execute_gui", action="type", text=text)
    assert "'second' took the keyboard" in stopped["message"]
    assert 20 <= stopped["details"]["typed"] < 400
    # What was on its way when it came up may have reached it, and no more.
    assert len(typed.read_text()) < 100
    assert not held_down(await agent.session.desktop())


async def test_a_dialog_in_the_way_is_told_with_its_buttons(agent: Agent):
    await agent.open("mousepad")
    await agent("execute_gui", action="type", text="x")
    menu = await agent.element("menu", "Help")
    await agent("execute_gui", action="press_key", key="ctrl+w")
    await agent.element("button", "Cancel")
    clicked = await agent("execute_gui", action="click", element_id=menu["id"])
    assert clicked["effect"] == "none"
    assert {"Cancel", "Save"} <= {button["text"] for button in clicked["dialog"]["buttons"]}
    cancel = next(button["id"] for button in clicked["dialog"]["buttons"] if button["text"] == "Cancel")
    assert (await agent("execute_gui", action="click", element_id=cancel))["effect"] == "confirmed"
    assert (await agent("execute_gui", action="click", element_id=menu["id"]))["effect"] == "confirmed"


async def test_a_program_that_floods_the_bus_with_events_keeps_nobody_from_reading_and_clicking(
    agent: Agent, programs: Programs
):
    await agent.open("galculator")
    flood = programs.start(await agent.session.desktop(), sys.executable, FLOODING)
    await until(lambda: _busy(flood.pid), what="the flood")
    key = await agent.element("toggle button", "7")
    clicked = await agent("execute_gui", action="click", element_id=key["id"])
    assert clicked["effect"] == "confirmed"
    assert flood.poll() is None


async def _busy(pid: int) -> bool:
    ticks = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(ticks[11]) + int(ticks[12]) > 50


async def test_a_program_that_dies_while_it_is_clicked_is_told_and_nothing_stays_pressed(agent: Agent):
    window = await agent.open("galculator")
    key = await agent.element("toggle button", "7")
    results: list[Any] = []

    async def click() -> None:
        results.append(await agent.session.call("execute_gui", {"action": "triple_click", "element_id": key["id"]}))

    async with anyio.create_task_group() as group:
        group.start_soon(click)
        await until(lambda: _running(agent), what="the call to be under way")
        assert window.pid is not None
        os.kill(window.pid, 9)
    (result,) = results
    assert not result.ok or result["changed"]["windows_closed"] == ["galculator"], result
    assert not held_down(await agent.session.desktop())


async def _running(agent: Agent) -> bool:
    return bool(agent.session.running)

"""A person's hand on a desktop: `handrail control`, the corner, `handrail stop` and `handrail resume`."""

from __future__ import annotations

import json
import os
import subprocess
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from Xlib import X

import handrail
from handrail import Desktop, Downstream, Input, Session, Tool, ToolContext, tool
from handrail_gui.platforms.x11.connection import X11Connection
from handrail_gui.platforms.x11.device import DesktopDevice

from .conftest import HANDRAIL, Agent, until


def shell(*argv: str, code: int = 0) -> str:
    """What the command prints; it exits with `code`."""
    done = subprocess.run([HANDRAIL, *argv], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == code, done
    return done.stdout


@pytest.fixture(scope="module")
def named() -> Iterator[str]:
    """A desktop that several processes use."""
    name = f"hand-{uuid.uuid4().hex[:8]}"
    shell("desktop", "start", name)
    yield name
    shell("desktop", "stop", name)


@pytest.fixture
def resumed(named: str) -> Iterator[None]:
    yield
    shell("resume")


@pytest.fixture
async def by_hand(named: str, tmp_path: Path) -> AsyncIterator[Session]:
    """A session whose calls a person makes."""
    async with (
        handrail.open(desktop=named, cwd=tmp_path) as agents,
        agents.runtime.session(by_hand=True, desktop=named, cwd=tmp_path) as session,
    ):
        yield session


async def outside(desktop: Desktop, *argv: str) -> str:
    """What another program says."""
    environment = {**os.environ, **desktop.environment}
    return (await anyio.run_process(argv, env=environment, check=False)).stdout.decode()


async def buttons(session: Session) -> int:
    """The mouse buttons that are down, as the X server has them."""
    connection: X11Connection = await session.service("x11")
    held = X.Button1Mask | X.Button2Mask | X.Button3Mask
    return await connection.run(lambda client: client.root.query_pointer().mask & held)


def test_a_person_works_pointer_and_keys_from_a_shell(named: str):
    told = json.loads(shell("control", "move", "--x", "300", "--y", "200", "--desktop", named, "--json"))
    assert (told["status"], told["x"], told["y"]) == ("success", 300, 200)
    told = json.loads(shell("control", "click", "--dx", "5", "--dy", "-10", "--desktop", named, "--json"))
    assert (told["x"], told["y"]) == (305, 190)
    shell("control", "move", "--desktop", named, code=1)
    recorded = json.loads(shell("history", "--json"))
    assert any(call["tool"] == "manual_control" and call["args"].get("dx") == 5 for call in recorded), recorded


@pytest.mark.parametrize(
    "args",
    [
        {"action": "move"},
        {"action": "key_combo"},
        {"action": "click", "x": 5},
        {"action": "move", "x": 1, "y": 1, "dx": 2},
        {"action": "key_combo", "keys": "no such key"},
    ],
)
async def test_half_an_order_is_refused(by_hand: Session, args: dict[str, Any]):
    assert (await by_hand.call("manual_control", args)).error_code == "invalid_arguments"


async def test_every_order_is_carried_out(by_hand: Session):
    for args in (
        {"action": "scroll", "amount": -2},
        {"action": "key_combo", "keys": "ctrl+a"},
        {"action": "right_click", "x": 0, "y": 0},
    ):
        assert (await by_hand.call("manual_control", args)).ok
    await by_hand.call("manual_control", {"action": "mouse_down", "x": 400, "y": 400})
    assert await buttons(by_hand)
    await by_hand.call("manual_control", {"action": "mouse_up"})
    assert not await buttons(by_hand)


async def test_an_order_that_is_taken_back_leaves_no_key_changed(by_hand: Session):
    async with anyio.create_task_group() as group:
        results: list[Any] = []

        async def type_on() -> None:
            results.append(await by_hand.call("manual_control", {"action": "type", "text": "漢字" * 5000}))

        group.start_soon(type_on)
        await until(lambda: types(by_hand, "漢"), what="a key of the text")
        by_hand.cancel()
    assert results[0].status == "cancelled"
    assert not await types(by_hand, "漢")


async def types(session: Session, letter: str) -> bool:
    """Whether another program sees a key for the letter, which no keyboard has."""
    connection = await X11Connection.open(str((await session.desktop()).display))
    try:
        # https://www.x.org/releases/current/doc/xproto/x11protocol.html#Keysym_Encoding
        return bool(await connection.run(lambda client: client.display.keysym_to_keycode(0x1000000 + ord(letter))))
    finally:
        await connection.close()


def test_the_stop_switch_stops_agents_and_not_the_person(named: str, resumed: None):
    shell("stop", "--desktop", named)
    denied = shell("call", "clipboard_write", "--args", '{"text": "a"}', "--desktop", named, "--json", code=1)
    assert json.loads(denied)["error"]["code"] == "failsafe"
    shell("control", "move", "--x", "21", "--y", "22", "--desktop", named)
    shell("resume", "--desktop", named)
    shell("call", "clipboard_write", "--args", '{"text": "a"}', "--desktop", named, "--json")


async def test_no_agent_has_a_persons_hands(agent: Agent):
    refused = await agent.fails("manual_control", action="click")
    assert refused["code"] == "tool_unavailable"
    assert (await agent.fails("device_control", action="lock_screen"))["code"] == "tool_unavailable"
    assert not {"manual_control", "device_control"} & {found.name for found in await agent.session.tools()}


class Lent:
    """One tool of the host's own."""

    def __init__(self, tool: Tool) -> None:
        self._tools = [tool]

    async def tools(self, session: Session) -> list[Tool]:
        return self._tools


async def test_no_tool_lends_an_agent_a_persons_hands(tmp_path: Path):
    @tool(effects=[Input("desktop")])
    async def lend(*, context: ToolContext) -> dict[str, Any]:
        """Click as a person does."""
        return {"inner": (await context.call("manual_control", {"action": "click"})).wire()}

    async def yes(approval: handrail.Approval) -> handrail.Answer:
        return handrail.Answer(handrail.Choice.ONCE)

    async with handrail.open(desktop="private", cwd=tmp_path, confirm=yes) as session:
        session.offer(Lent(lend))
        result = await session.call("lend")
    assert result["inner"]["error"]["code"] == "tool_unavailable"


async def test_a_person_in_the_corner_stops_every_session_on_the_desktop(named: str, resumed: None, tmp_path: Path):
    async with (
        handrail.open(desktop=named, cwd=tmp_path) as first,
        handrail.open(desktop=named, cwd=tmp_path) as second,
    ):
        desktop = await first.desktop()
        # From where it is on a private desktop, it is known that no person put the pointer there.
        assert (await second.call("execute_gui", {"action": "press_key", "key": "a"})).ok
        assert (await first.call("execute_gui", {"action": "mouse_down"})).ok
        assert await buttons(first)
        await outside(desktop, "xdotool", "mousemove", "0", "0")
        assert (await second.call("execute_gui", {"action": "press_key", "key": "a"})).error_code == "failsafe"

        async def let_go() -> bool:
            return not await buttons(second)

        await until(let_go, what="the other session's button to be released")
        await outside(desktop, "xdotool", "mousemove", "300", "300")
        for session in (first, second):
            again = await session.call("execute_gui", {"action": "press_key", "key": "a"})
            assert again.error_code == "failsafe"
            assert "resume" in again["error"]["message"]
        shell("resume")
        assert (await first.call("execute_gui", {"action": "press_key", "key": "a"})).ok


async def test_one_private_desktop_is_stopped_alone(tmp_path: Path):
    async with (
        handrail.open(desktop="private", cwd=tmp_path) as first,
        handrail.open(desktop="private", cwd=tmp_path) as second,
    ):
        key = {"action": "press_key", "key": "a"}
        assert (await first.call("execute_gui", key)).ok
        assert (await second.call("execute_gui", key)).ok
        await outside(await first.desktop(), "xdotool", "mousemove", "0", "0")
        assert (await first.call("execute_gui", key)).error_code == "failsafe"
        assert (await first.call("clipboard_write", {"text": "a"})).error_code == "failsafe"
        assert (await second.call("execute_gui", key)).ok
        shell("resume")


async def test_stop_lets_go_of_what_is_held_between_calls(agent: Agent):
    await agent("execute_gui", action="mouse_down")
    assert await buttons(agent.session)
    shell("stop", "--desktop", "private")

    async def let_go() -> bool:
        return not await buttons(agent.session)

    await until(let_go, what="the button to be released")
    shell("resume")
    await agent("execute_gui", action="mouse_up")


async def test_the_screen_stays_awake_until_it_may_sleep(by_hand: Session, named: str):
    async def order(action: str) -> str:
        result = await by_hand.call("device_control", {"action": action})
        assert result.ok, result
        return result["description"]

    desktop = await by_hand.desktop()
    await outside(desktop, "xset", "s", "1")
    # Who keeps it awake is not the process that was told to.
    assert "stays awake" in shell("control", "keep_awake_on", "--desktop", named)
    assert "already" in await order("keep_awake_on")
    await anyio.sleep(1.5)
    assert not await saving(desktop)
    assert "may sleep" in await order("keep_awake_off")
    assert "nothing" in await order("keep_awake_off")
    await until(lambda: saving(desktop), what="the screen saver")
    await outside(desktop, "xset", "s", "off", "s", "reset")


async def saving(desktop: Desktop) -> bool:
    """Whether the screen saver is on."""
    from Xlib.ext import screensaver

    connection = await X11Connection.open(str(desktop.display))
    try:
        return await connection.run(lambda client: screensaver.query_info(client.root).state == screensaver.StateOn)
    finally:
        await connection.close()


async def test_locking_is_said_only_when_something_locks(tmp_path: Path):
    async with handrail.open(desktop="private", cwd=tmp_path) as agents:
        device: DesktopDevice = await agents.service("device")
        with pytest.raises(Downstream, match="was not locked"):
            await device.lock(["true"])
        assert "i3lock" in await device.lock(None)

"""What goes wrong while a desktop is worked: said within the deadline, and nothing stays pressed."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from typing import Any

import anyio
import pytest

import handrail
from handrail import Rect, Transform
from handrail.api.approval import yes
from handrail_gui.private.supervisor_client import PrivateDesktop

from .conftest import Agent, until


@pytest.fixture
def own(request: Any) -> Iterator[PrivateDesktop]:
    """A desktop that the test may break."""
    desktop = PrivateDesktop.start("faults")
    yield desktop
    desktop.close()


async def test_a_program_that_hangs_is_clicked_and_said_not_to_have_answered(agent: Agent):
    window = await agent.open("galculator")
    seen = await agent("observe_screen", image="none")
    x1, y1, x2, y2 = next(e for e in seen["ui_elements"] if e["text"] == "7")["bbox"]
    assert window.pid is not None
    os.kill(window.pid, signal.SIGSTOP)
    try:
        began = monotonic()
        by_point = await agent("execute_gui", action="click", x=(x1 + x2) // 2, y=(y1 + y2) // 2)
        assert by_point["effect"] != "confirmed"
        by_name = await agent.fails("execute_accessible", action="click", element_name="7", window="galculator")
        assert "does not answer" in by_name["message"]
        assert monotonic() - began < 30
    finally:
        os.kill(window.pid, signal.SIGCONT)


async def test_a_program_that_crashes_at_a_key_is_said_to_be_gone(agent: Agent, programs: Any):
    window = await agent.open("galculator")
    await agent("observe_screen", image="none")
    assert window.pid is not None
    # The same desktop, another program: what it did is seen by its window.
    await agent.open("mousepad")
    os.kill(window.pid, signal.SIGKILL)

    async def alone() -> bool:
        return [w["title"] for w in (await agent("window_list"))["windows"]] == ["Untitled 1 - Mousepad"]

    await until(alone, what="the end of the calculator")
    typed = await agent("execute_gui", action="type", text="still here")
    assert typed["effect"] == "confirmed"


async def test_a_screen_that_dies_ends_the_call_with_an_error(
    own: PrivateDesktop, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    environment = {**os.environ, **own.desktop.environment}
    async with handrail.open(desktop="current", environment=environment, cwd=tmp_path, confirm=yes) as session:
        assert (await session.call("observe_screen", {"image": "none"})).ok
        assert (await session.call("execute_gui", {"action": "mouse_down"})).ok
        results: list[Any] = []
        async with anyio.create_task_group() as group:

            async def type_on() -> None:
                results.append(await session.call("execute_gui", {"action": "type", "text": "漢字" * 5000}))

            group.start_soon(type_on)
            server = own.pids["Xvfb"]
            await until(lambda: _typing(session), what="the call to be under way")
            began = monotonic()
            os.kill(server, signal.SIGKILL)
        assert monotonic() - began < 20
        assert results[0].status == "error", results[0]
        again = await session.call("observe_screen", {"image": "none"})
        assert again.status == "error"
        assert "gone" in again["error"]["message"], again
    # A screen that is gone holds no button, so that letting go of it fails nowhere.
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == []


async def _typing(session: Any) -> bool:
    return bool(session.running)


async def test_windows_of_no_size_and_windows_over_windows_hinder_nobody(agent: Agent, programs: Any):
    from Xlib import X, display

    await agent.open("galculator")
    desktop = await agent.session.desktop()
    screen = display.Display(desktop.display)
    kept = []
    for number in range(20):
        window = screen.screen().root.create_window(number, number, 1, 1, 0, X.CopyFromParent, X.InputOutput)
        window.set_wm_name(f"speck {number}")
        window.map()
        kept.append(window)
    screen.sync()

    async def all_there() -> bool:
        return len((await agent("window_list"))["windows"]) == 21

    await until(all_there, what="the specks")
    await agent("window_focus", title="galculator")
    clicked = await agent("execute_gui", action="click", element_id=(await agent.element("toggle button", "7"))["id"])
    assert clicked["effect"] == "confirmed"
    screen.close()


@pytest.fixture
def two_monitors(own: PrivateDesktop) -> PrivateDesktop:
    """The screen as two monitors of different sizes, the main one on the right."""
    environment = {**os.environ, **own.desktop.environment}
    for order in (
        ["--setmonitor", "left", "480/100x600/150+0+0", "screen"],
        ["--setmonitor", "*right", "800/200x800/200+480+0", "none"],
    ):
        subprocess.run(["xrandr", *order], env=environment, check=True, capture_output=True)
    return own


async def test_each_monitor_is_seen_and_clicked_in_its_own_pixels(
    two_monitors: PrivateDesktop, tmp_path: Path, programs: Any
):
    environment = {**os.environ, **two_monitors.desktop.environment}
    async with handrail.open(
        desktop="current", environment=environment, cwd=tmp_path, confirm=yes, backend="accessibility"
    ) as session:
        screen = await session.service("screen")
        assert await screen.monitors() == [Rect(480, 0, 800, 800), Rect(0, 0, 480, 600)]
        agent = Agent(session, programs)
        await agent.open("galculator")
        await agent("resize_window", title="galculator", x=600, y=100)
        seen = await agent("observe_screen", monitor=0)
        assert {e["id"] for e in seen["ui_elements"]}
        key = next(e for e in seen["ui_elements"] if e["text"] == "7")
        x1, y1, x2, y2 = key["bbox"]
        x, y = (x1 + x2) // 2, (y1 + y2) // 2
        clicked = await agent("execute_gui", action="click", x=x, y=y)
        assert clicked["coordinates"]["screen"] == [480 + x, y]
        assert clicked["effect"] == "confirmed"
        other = await agent("observe_screen", monitor=1)
        assert other["ui_elements"] == []
        outside = await agent.fails("execute_gui", action="click", x=500, y=100)
        assert outside["code"] == "out_of_range"
        assert (await agent.fails("observe_screen", monitor=2))["code"] == "not_found"


# Desktops as Windows and macOS tell them: each monitor's rectangle in the pixels that input takes.
RECORDED = {
    "windows-4k-at-150-left-of-hd": (Rect(-3840, -540, 3840, 2160), Rect(0, 0, 1920, 1080)),
    "windows-portrait-above": (Rect(0, 0, 2560, 1440), Rect(680, -1920, 1200, 1920)),
    "macos-retina-with-external-left": (Rect(0, 0, 1512, 982), Rect(-1920, -98, 1920, 1080)),
    "three-in-a-row": (Rect(0, 0, 1920, 1200), Rect(1920, 60, 1920, 1080), Rect(-2560, -240, 2560, 1440)),
}


@pytest.mark.parametrize("monitors", RECORDED.values(), ids=RECORDED)
def test_a_point_of_any_monitors_picture_comes_back_to_that_monitor(monitors: tuple[Rect, ...]):
    left, top = min(m.x for m in monitors), min(m.y for m in monitors)
    whole = Rect(left, top, max(m.right for m in monitors) - left, max(m.bottom for m in monitors) - top)
    for monitor in monitors:
        for shown in (monitor, whole):
            transform = Transform.fit(shown)
            button = Rect(monitor.right - 60, monitor.bottom - 40, 48, 32)
            place = transform.to_image(button)
            assert button.contains(*transform.to_screen(*place.center)), (shown, place)
            assert monitor.contains(*transform.to_screen(*place.center))

"""Windows as two window managers keep them: what the list says, and what changing them does."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from handrail import Downstream, Rect, Window
from handrail.desktop.key_chords import parse_chord
from handrail_gui.platforms.input_driver import WindowPlacement
from handrail_gui.platforms.x11.input_driver import X11InputDriver
from handrail_gui.platforms.x11.screen import X11Screen
from handrail_gui.private.supervisor_client import PrivateDesktop

from .conftest import PLAIN_WINDOW, Programs, outside, until


@pytest.fixture(scope="module")
def private(managed: PrivateDesktop) -> PrivateDesktop:
    return managed


@pytest.fixture
async def window(
    manager: str, private: PrivateDesktop, screen: X11Screen, programs: Programs, hands: X11InputDriver, tmp_path: Path
) -> Window:
    """A window of a program that lets its size be anything."""
    argv = (sys.executable, PLAIN_WINDOW, str(tmp_path / "first"), "plain", "first")
    return await programs.open(private.desktop, screen, *argv)


async def state_of(screen: X11Screen, window: Window) -> str:
    return next(found.state for found in await screen.windows() if found.id == window.id)


async def test_the_list_says_what_other_programs_say(window: Window, private: PrivateDesktop):
    told = outside(private, "xwininfo", "-id", window.id)
    numbers = {line.split(":")[0].strip(): line.split(":")[1].strip() for line in told.splitlines() if ": " in line}
    assert window.rect == Rect(
        int(numbers["Absolute upper-left X"]),
        int(numbers["Absolute upper-left Y"]),
        int(numbers["Width"]),
        int(numbers["Height"]),
    )
    frame = window.frame
    assert frame is not None
    assert frame.y < window.rect.y
    assert frame.bottom >= window.rect.bottom
    assert (window.rect.x - frame.x, window.rect.y - frame.y) == (
        int(numbers["Relative upper-left X"]),
        int(numbers["Relative upper-left Y"]),
    )
    assert (window.title, window.active, window.state) == ("first", True, "normal")


async def test_a_window_goes_exactly_where_it_is_sent(window: Window, hands: X11InputDriver):
    placed = await hands.place(window.id, WindowPlacement(120, 90, 500, 333))
    assert placed.done
    assert placed.window is not None
    assert placed.window.rect == Rect(120, 90, 500, 333)
    moved = await hands.place(window.id, WindowPlacement(x=300))
    assert moved.window is not None
    assert moved.window.rect == Rect(300, 90, 500, 333)


async def test_a_window_goes_partly_off_the_screen(window: Window, hands: X11InputDriver):
    placed = await hands.place(window.id, WindowPlacement(-50, 90, 500, 333))
    assert placed.window is not None
    assert (placed.done, placed.window.rect) == (True, Rect(-50, 90, 500, 333))


@pytest.mark.parametrize("layout", ["left_half", "right_half", "top_half", "bottom_half"])
async def test_halves_hold_the_decoration_too(window: Window, hands: X11InputDriver, layout: str):
    placed = await hands.place_in(window.id, layout)
    assert placed.done
    assert placed.window is not None
    assert (
        placed.window.frame
        == {
            "left_half": Rect(0, 0, 640, 800),
            "right_half": Rect(640, 0, 640, 800),
            "top_half": Rect(0, 0, 1280, 400),
            "bottom_half": Rect(0, 400, 1280, 400),
        }[layout]
    )


async def test_every_state_is_reached_and_undone(window: Window, hands: X11InputDriver, screen: X11Screen):
    before = (await hands.place(window.id, WindowPlacement(100, 100, 400, 300))).window
    assert before is not None
    for _ in range(2):
        assert await hands.maximize(window.id)
        assert await state_of(screen, window) == "maximized"
    for _ in range(2):
        assert await hands.minimize(window.id)
        assert await state_of(screen, window) == "minimized"
    # One step back at a time, and one more that has nothing to undo.
    for expected in ("maximized", "normal", "normal"):
        assert await hands.restore(window.id)
        assert await state_of(screen, window) == expected
    (now,) = await screen.windows()
    # openbox puts a window back by the width of its decoration beside where it was.
    assert (now.rect.width, now.rect.height) == (before.rect.width, before.rect.height)


async def test_a_minimized_and_maximized_window_can_be_placed(window: Window, hands: X11InputDriver):
    assert await hands.maximize(window.id)
    assert await hands.minimize(window.id)
    placed = await hands.place(window.id, WindowPlacement(50, 60, 400, 300))
    assert placed.window is not None
    assert (placed.window.rect, placed.window.state) == (Rect(50, 60, 400, 300), "normal")


async def test_the_focus_is_where_the_keys_go(
    window: Window,
    private: PrivateDesktop,
    hands: X11InputDriver,
    screen: X11Screen,
    programs: Programs,
    tmp_path: Path,
):
    second = (sys.executable, PLAIN_WINDOW, str(tmp_path / "second"), "plain", "second")
    await programs.open(private.desktop, screen, *second)
    assert await hands.minimize(window.id)
    assert await hands.activate(window.id)
    await hands.type_piece("to the first")
    file = tmp_path / "first"

    async def arrived() -> bool:
        return file.read_text(encoding="utf-8") == "to the first"

    await until(arrived, what="the typed text")
    assert (await screen.windows())[0].id == window.id
    assert (tmp_path / "second").read_text(encoding="utf-8") == ""


async def test_a_window_on_another_workspace_is_brought_to_the_front(
    window: Window, private: PrivateDesktop, hands: X11InputDriver, screen: X11Screen
):
    outside(private, "xdotool", "set_num_desktops", "2")
    try:
        outside(private, "xdotool", "set_desktop_for_window", window.id, "1")

        async def away() -> bool:
            return all(surface.title != window.title for surface in await hands.surfaces())

        await until(away, what="the window to go to the other workspace")
        assert await hands.activate(window.id)
        assert next(found for found in await screen.windows() if found.active).id == window.id
        assert not await away()
    finally:
        outside(private, "xdotool", "set_desktop", "0")
        outside(private, "xdotool", "set_num_desktops", "1")


async def test_a_menu_that_takes_the_keys_is_named(
    window: Window, private: PrivateDesktop, hands: X11InputDriver, screen: X11Screen, programs: Programs
):
    editor = await programs.open(private.desktop, screen, "mousepad")
    await hands.chord(parse_chord("shift+f10"))

    async def opened() -> bool:
        return any(surface.state == "popup" for surface in await hands.surfaces())

    await until(opened, what="the editor's menu")
    with pytest.raises(Downstream, match="takes all that is typed"):
        await hands.activate(window.id)
    await hands.chord(parse_chord("escape"))
    assert await hands.activate(window.id)
    assert await hands.activate(editor.id)


async def test_a_terminal_fills_a_half_as_far_as_its_letters_do(
    manager: str, private: PrivateDesktop, screen: X11Screen, programs: Programs, hands: X11InputDriver
):
    terminal = await programs.open(private.desktop, screen, "xterm")
    placed = await hands.place_in(terminal.id, "left_half")
    assert placed.done
    assert placed.window is not None
    assert placed.window.frame is not None
    assert 600 < placed.window.frame.width <= 640


async def test_a_program_that_takes_another_size_is_not_said_to_have_obeyed(
    manager: str, private: PrivateDesktop, screen: X11Screen, programs: Programs, hands: X11InputDriver
):
    editor = await programs.open(private.desktop, screen, "mousepad")
    placed = await hands.place(editor.id, WindowPlacement(width=10, height=10))
    assert not placed.done
    assert placed.window is not None
    assert placed.window.rect.width > 10


async def test_a_window_that_has_gone_is_not_changed(
    manager: str, private: PrivateDesktop, screen: X11Screen, programs: Programs, hands: X11InputDriver, tmp_path: Path
):
    program = programs.start(private.desktop, sys.executable, PLAIN_WINDOW, str(tmp_path / "file"), "plain", "brief")

    async def shown() -> Any:
        return next((found for found in await screen.windows() if found.title == "brief"), None)

    window = await until(shown, what="the window")
    program.kill()

    async def gone() -> bool:
        return await shown() is None

    await until(gone, what="the window to close")
    assert not await hands.activate(window.id)
    assert not await hands.maximize(window.id)
    assert not await hands.minimize(window.id)
    assert not await hands.restore(window.id)
    assert (await hands.place(window.id, WindowPlacement(1, 1, 100, 100))).window is None


async def test_each_monitor_is_known_and_halves_are_its_own(
    manager: str, private: PrivateDesktop, screen: X11Screen, programs: Programs, hands: X11InputDriver, tmp_path: Path
):
    outside(private, "xrandr", "--setmonitor", "left", "800/200x800/200+0+0", "screen")
    outside(private, "xrandr", "--setmonitor", "right", "480/120x600/150+800+100", "none")
    try:
        assert await screen.monitors() == [Rect(0, 0, 800, 800), Rect(800, 100, 480, 600)]
        argv = (sys.executable, PLAIN_WINDOW, str(tmp_path / "file"), "plain", "second monitor")
        window = await programs.open(private.desktop, screen, *argv)
        placed = await hands.place(window.id, WindowPlacement(900, 200, 200, 150))
        assert placed.window is not None
        assert placed.window.monitor == 1
        half = await hands.place_in(window.id, "top_half")
        assert half.window is not None
        assert half.window.frame == Rect(800, 100, 480, 300)
    finally:
        outside(private, "xrandr", "--delmonitor", "left")
        outside(private, "xrandr", "--delmonitor", "right")

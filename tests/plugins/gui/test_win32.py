"""What is made of the facts that Windows tells. On Windows itself: tests/on_windows."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest

from handrail import DesktopError, Rect
from handrail_gui.platforms.win32.clipboard import decode_text, encode_text
from handrail_gui.platforms.win32.inputs import (
    WHEEL_TURNS,
    build_mouse_input,
    build_unit_input,
    elapsed_ms,
    split_utf16_units,
)
from handrail_gui.platforms.win32.system import open_win32_system
from handrail_gui.platforms.win32.windows import (
    WindowFacts,
    build_surface,
    build_window,
    determine_state,
    identify_terminal,
    is_click_target,
    is_in_task_list,
)

MONITORS = [Rect(0, 0, 1280, 800), Rect(-1920, 100, 1920, 1080)]

# As told by Wine 8 of its Notepad: style and extended style are Windows' own.
NOTEPAD = WindowFacts(
    handle=0x1006E,
    title="Untitled - Notepad",
    kind="Notepad",
    style=0x14CF0000,
    extended=0x110,
    owner=0,
    visible=True,
    cloaked=False,
    minimized=False,
    maximized=False,
    client=Rect(4, 42, 752, 524),
    outer=Rect(0, 0, 760, 570),
    frame=None,
    pid=268,
    program="notepad.exe",
)


def test_a_window_is_told_by_its_own_area_and_its_frame() -> None:
    window = build_window(NOTEPAD, MONITORS, active=0x1006E)
    assert (window.id, window.title, window.process, window.pid) == ("0x1006e", NOTEPAD.title, "notepad.exe", 268)
    assert (window.rect, window.frame, window.state, window.monitor) == (NOTEPAD.client, NOTEPAD.outer, "normal", 0)
    assert window.active


def test_the_invisible_border_is_no_part_of_a_window() -> None:
    facts = replace(NOTEPAD, outer=Rect(-8, 0, 776, 608), frame=Rect(0, 0, 760, 600), client=Rect(-1, 31, 762, 569))
    window = build_window(facts, MONITORS, active=None)
    assert window.frame == Rect(0, 0, 760, 600)
    assert window.rect == Rect(0, 31, 760, 569)


@pytest.mark.parametrize(
    ("changes", "listed"),
    [
        pytest.param({}, True, id="a program's window"),
        pytest.param({"visible": False}, False, id="hidden"),
        pytest.param({"cloaked": True}, False, id="cloaked, as of an app that is suspended or on another desktop"),
        pytest.param({"kind": "Progman"}, False, id="the desktop"),
        pytest.param({"kind": "Shell_TrayWnd"}, False, id="the task bar"),
        pytest.param({"extended": 0x80}, False, id="a palette"),
        pytest.param({"extended": 0x80 | 0x40000}, True, id="a palette that wants a button in the task bar"),
        pytest.param({"owner": 0x10, "style": 0x94C80000}, True, id="a dialog"),
        pytest.param({"owner": 0x10, "style": 0x96000000}, False, id="a drop-down list of another window"),
        pytest.param({"title": "", "style": 0x94000000}, False, id="a nameless window without a title bar"),
    ],
)
def test_the_task_list_is_what_a_person_sees_in_it(changes: dict[str, object], listed: bool) -> None:
    assert is_in_task_list(replace(NOTEPAD, **changes)) is listed


@pytest.mark.parametrize(
    ("changes", "covers"),
    [
        pytest.param({}, True, id="a program's window"),
        pytest.param({"kind": "#32768", "title": "", "style": 0x94800000}, True, id="a menu"),
        pytest.param({"cloaked": True}, False, id="cloaked"),
        pytest.param({"minimized": True}, False, id="minimized"),
        pytest.param({"kind": "tooltips_class32"}, False, id="a tool tip"),
        pytest.param({"extended": 0x80020}, False, id="an overlay that lets clicks through"),
    ],
)
def test_what_takes_clicks_covers_what_is_beneath(changes: dict[str, object], covers: bool) -> None:
    assert is_click_target(replace(NOTEPAD, **changes)) is covers


def test_a_menu_is_a_popup() -> None:
    assert build_surface(replace(NOTEPAD, kind="#32768", style=0x94800000)).state == "popup"


@pytest.mark.parametrize(
    ("changes", "state"),
    [
        ({}, "normal"),
        ({"minimized": True, "maximized": True}, "minimized"),
        ({"maximized": True, "outer": Rect(-8, -8, 1296, 816)}, "maximized"),
        ({"style": 0x94000000, "outer": MONITORS[1]}, "fullscreen"),
    ],
)
def test_states(changes: dict[str, object], state: str) -> None:
    assert determine_state(replace(NOTEPAD, **changes), MONITORS) == state


@pytest.mark.parametrize(
    ("changes", "is_terminal"),
    [
        ({"kind": "ConsoleWindowClass", "program": "cmd.exe"}, True),
        ({"kind": "CASCADIA_HOSTING_WINDOW_CLASS", "program": "WindowsTerminal.exe"}, True),
        ({"kind": "org.wezfurlong.wezterm", "program": "wezterm-gui.exe"}, True),
        ({"kind": "mintty", "program": "mintty.exe"}, True),
        ({}, False),
    ],
)
def test_a_terminal_is_known_and_what_runs_in_it_is_not(changes: dict[str, object], is_terminal: bool) -> None:
    terminal = identify_terminal(replace(NOTEPAD, **changes), active=True)
    assert (terminal is not None) is is_terminal
    if terminal is not None:
        assert (terminal.program, terminal.shell, terminal.active) == ("", False, True)


def test_a_notch_of_the_wheel_is_120_and_turns_the_way_it_is_told() -> None:
    told = {name: build_mouse_input(flags, data=turn).of.mouse for name, (flags, turn) in WHEEL_TURNS.items()}
    assert {name: (wheel.flags, wheel.data) for name, wheel in told.items()} == {
        "up": (0x800, 120),
        "down": (0x800, 0xFFFFFF88),
        "right": (0x1000, 120),
        "left": (0x1000, 0xFFFFFF88),
    }


def test_a_character_outside_the_first_plane_is_two_units() -> None:
    assert split_utf16_units("a漢😀") == [0x61, 0x6F22, 0xD83D, 0xDE00]
    pressed, released = build_unit_input(0xD83D, up=False).of.key, build_unit_input(0xD83D, up=True).of.key
    assert (pressed.vk, pressed.scan, pressed.flags, released.flags) == (0, 0xD83D, 0x4, 0x6)


def test_the_clock_of_windows_may_start_anew_between_two_looks() -> None:
    assert elapsed_ms(0xFFFFFFF0, 0x10) == 0x20
    assert elapsed_ms(0x10, 0xFFFFFFF0) == -0x20


def test_texts_of_the_clipboard_end_at_their_nul_and_have_lines_as_windows_has_them() -> None:
    assert encode_text("a\nb😀") == "a\r\nb😀\0".encode("utf-16-le")
    assert decode_text(encode_text("a\nb😀") + b"left over") == "a\nb😀"
    assert decode_text(b"") == ""


@pytest.mark.skipif(sys.platform == "win32", reason="it works there")
def test_elsewhere_the_adapter_says_that_it_is_for_windows() -> None:
    with pytest.raises(DesktopError, match=r"user32\.dll is a part of Windows"):
        open_win32_system()

"""The adapter for macOS, over stubs that have the signatures of pyobjc. It has not been run on a Mac."""

# Names are the frameworks' own.
# ruff: noqa: N802

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from handrail import DesktopError, Downstream, InvalidArguments, Rect
from handrail.desktop.key_chords import parse_chord
from handrail_gui.platforms.input_driver import WindowPlacement
from handrail_gui.platforms.macos import frameworks as told
from handrail_gui.platforms.macos.frameworks import MacFrameworks
from handrail_gui.platforms.macos.inputs import KEY_CODES, MacInput, count_utf16_units, split_event_texts
from handrail_gui.platforms.macos.permissions import list_permission_findings
from handrail_gui.platforms.macos.system import build_system, open_mac_system
from handrail_gui.platforms.macos.windows import (
    AccessibleWindow,
    ListedWindow,
    MacWindows,
    build_surface,
    determine_state,
    flip_rect,
    match_windows,
)
from handrail_gui.platforms.native import window_control
from handrail_gui.platforms.protocol import NativeMonitor

# What the metadata of the wheels of pyobjc-framework-Quartz and -ApplicationServices says: result, then arguments, in Objective-C's encoding.
ENCODED: Mapping[str, str] = json.loads(Path(__file__).with_name("pyobjc-13.0.json").read_text())
ONE_TYPE = re.compile(r"\^*(?:\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}|[A-Za-z@?*#:])")


@pytest.mark.parametrize("protocol", [told.QuartzApi, told.AccessibilityApi])
def test_each_function_has_as_many_arguments_as_pyobjc_says(protocol: type) -> None:
    functions = {name: value for name, value in vars(protocol).items() if name.startswith(("CG", "AX"))}
    assert functions
    for name, function in functions.items():
        assert len(inspect.signature(function).parameters) - 1 == len(ONE_TYPE.findall(ENCODED[name])) - 1, name


def rect(x: float, y: float, width: float, height: float) -> Any:
    return SimpleNamespace(origin=SimpleNamespace(x=x, y=y), size=SimpleNamespace(width=width, height=height))


@dataclass
class Quartz:
    """Quartz as far as it is used: keeps the events that were posted."""

    listed: list[Mapping[str, Any]] = field(default_factory=list)
    sees: bool = True
    locked: bool = False
    posted: list[dict[str, Any]] = field(default_factory=list)

    def CGPreflightScreenCaptureAccess(self) -> bool:
        return self.sees

    def CGSessionCopyCurrentDictionary(self) -> Mapping[str, Any] | None:
        return {"CGSSessionScreenIsLocked": self.locked}

    def CGWindowListCopyWindowInfo(self, option: int, window: int, /) -> Sequence[Mapping[str, Any]]:
        return [line for line in self.listed if not option & 1 or line.get("kCGWindowIsOnscreen")]

    def CGEventSourceCreate(self, state: int, /) -> Any:
        return "source"

    def CGEventCreate(self, source: Any, /) -> Any:
        return {}

    def CGEventGetLocation(self, event: Any, /) -> Any:
        return SimpleNamespace(x=40.0, y=50.0)

    def CGEventCreateMouseEvent(self, source: Any, kind: int, place: Any, button: int, /) -> Any:
        return {"mouse": kind, "at": place, "button": button}

    def CGEventCreateScrollWheelEvent2(self, source: Any, unit: int, wheels: int, v: int, h: int, t: int, /) -> Any:
        return {"wheel": (v, h), "unit": unit, "wheels": wheels}

    def CGEventCreateKeyboardEvent(self, source: Any, code: int, down: bool, /) -> Any:
        return {"code": code, "down": down}

    def CGEventKeyboardSetUnicodeString(self, event: Any, units: int, text: str, /) -> None:
        event.update(text=text, units=units)

    def CGEventSetFlags(self, event: Any, flags: int, /) -> None:
        event["flags"] = flags

    def CGEventSetIntegerValueField(self, event: Any, field: int, value: int, /) -> None:
        event["nth"] = value

    def CGEventPost(self, tap: int, event: Any, /) -> None:
        assert tap == 1, "the session's tap: what goes to the hardware's looks like a person's"
        self.posted.append(event)


@dataclass
class Accessible:
    """A program's accessibility: windows are dictionaries of their attributes; a program with `hangs` does not answer."""

    programs: Mapping[int, list[dict[str, Any]]] = field(default_factory=dict)
    trusted: bool = True
    timeouts: list[float] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)

    def AXIsProcessTrusted(self) -> bool:
        return self.trusted

    def AXUIElementCreateSystemWide(self) -> Any:
        return "everything"

    def AXUIElementCreateApplication(self, pid: int, /) -> Any:
        return {"AXWindows": self.programs[pid], "AXFocusedWindow": next(iter(self.programs[pid]), None)}

    def AXUIElementSetMessagingTimeout(self, element: Any, seconds: float, /) -> int:
        assert element == "everything", "it would hold for that object only"
        self.timeouts.append(seconds)
        return 0

    def AXUIElementCopyAttributeValue(self, element: Any, name: str, value: None, /) -> tuple[int, Any]:
        self.calls.append(name)
        return (0, element[name]) if element.get(name) is not None else (-25212, None)

    def AXUIElementCopyMultipleAttributeValues(
        self, element: Any, names: Sequence[str], options: int, values: None, /
    ) -> tuple[int, Sequence[Any] | None]:
        self.calls.append("multiple")
        return 0, [element.get(name, "an error object") for name in names]

    def AXUIElementSetAttributeValue(self, element: Any, name: str, value: Any, /) -> int:
        element[name] = value
        if name in ("AXPosition", "AXSize") and element.get("shown"):
            keys = ("X", "Y") if name == "AXPosition" else ("Width", "Height")
            element["shown"]["kCGWindowBounds"].update(zip(keys, value[1], strict=True))
        return 0

    def AXUIElementPerformAction(self, element: Any, name: str, /) -> int:
        element.setdefault("did", []).append(name)
        return 0

    def AXValueCreate(self, kind: int, value: Any, /) -> Any:
        return kind, value

    def AXValueGetValue(self, value: Any, kind: int, into: None, /) -> tuple[bool, Any]:
        if not isinstance(value, tuple) or value[0] != kind:
            return False, None
        names = ("x", "y") if kind == 1 else ("width", "height")
        return True, SimpleNamespace(**dict(zip(names, value[1], strict=True)))


# A Retina laptop with a larger monitor above it, in AppKit's places: upwards from the laptop's lower left corner.
SCREENS = [
    (rect(0, 0, 1512, 982), rect(0, 70, 1512, 874), 2.0),
    (rect(-524, 982, 2560, 1440), rect(-524, 982, 2560, 1415), 1.0),
]


def screen(frame: Any, free: Any, scale: float) -> Any:
    return SimpleNamespace(frame=lambda: frame, visibleFrame=lambda: free, backingScaleFactor=lambda: scale)


def program(pid: int, name: str) -> Any:
    return SimpleNamespace(
        processIdentifier=lambda: pid,
        localizedName=lambda: name,
        activationPolicy=lambda: 0,
        activateWithOptions_=lambda options: True,
    )


NOTES = program(501, "Notes")


def line(**changes: Any) -> dict[str, Any]:
    return {
        "kCGWindowNumber": 42,
        "kCGWindowOwnerPID": 501,
        "kCGWindowOwnerName": "Notes",
        "kCGWindowName": "All notes",
        "kCGWindowBounds": {"X": -500.0, "Y": -1300.0, "Width": 800.0, "Height": 600.0},
        "kCGWindowLayer": 0,
        "kCGWindowAlpha": 1.0,
        "kCGWindowIsOnscreen": True,
        **changes,
    }


@pytest.fixture
def quartz() -> Quartz:
    return Quartz([line(kCGWindowNumber=7, kCGWindowLayer=101, kCGWindowName=""), line()])


@pytest.fixture
def accessible(quartz: Quartz) -> Accessible:
    shown = {"shown": quartz.listed[1], "AXTitle": "All notes", "AXMinimized": False}
    return Accessible({501: [{**shown, "AXPosition": (1, (-500.0, -1300.0)), "AXSize": (2, (800.0, 600.0))}]})


@pytest.fixture
def parts(quartz: Quartz, accessible: Accessible) -> MacFrameworks:
    workspace = SimpleNamespace(runningApplications=lambda: [NOTES], frontmostApplication=lambda: NOTES)
    appkit: Any = SimpleNamespace(
        NSScreen=SimpleNamespace(screens=lambda: [screen(*each) for each in SCREENS]),
        NSWorkspace=SimpleNamespace(sharedWorkspace=lambda: workspace),
        NSRunningApplication=SimpleNamespace(runningApplicationWithProcessIdentifier_=lambda pid: NOTES),
    )
    stubs: Any = (quartz, accessible, appkit)
    return MacFrameworks(*stubs)


def test_monitors_are_in_points_from_the_main_ones_corner_down(parts: MacFrameworks) -> None:
    assert MacWindows(parts).monitors() == [
        NativeMonitor(Rect(0, 0, 1512, 982), Rect(0, 38, 1512, 874), 2.0),
        NativeMonitor(Rect(-524, -1440, 2560, 1440), Rect(-524, -1415, 2560, 1415), 1.0),
    ]
    assert flip_rect(rect(10, 900, 100, 50), 982) == Rect(10, 32, 100, 50)


def test_a_window_is_what_the_list_and_its_program_tell_together(parts: MacFrameworks, accessible: Accessible) -> None:
    (window,) = build_system(parts).windowing.windows()
    assert (window.id, window.title, window.process, window.pid) == ("0x2a", "All notes", "Notes", 501)
    assert (window.rect, window.monitor, window.state, window.active) == (
        Rect(-500, -1300, 800, 600),
        1,
        "normal",
        True,
    )
    # All attributes of a window are one call, and no call waits for longer than a second.
    assert accessible.calls.count("multiple") == 2
    assert accessible.timeouts == [1.0]


def test_two_windows_at_the_same_place_are_told_by_their_titles() -> None:
    own = [AccessibleWindow(1, "a", title, Rect(0, 0, 9, 9), False, False) for title in ("one", "two")]
    listed = [ListedWindow(number, 1, "a", title, Rect(0, 0, 9, 9), 0, 1) for number, title in ((5, "two"), (6, "one"))]
    assert [(each.title, line.number) for each, line in match_windows(own, listed)] == [("two", 5), ("one", 6)]


def test_what_lies_over_windows_is_known_and_the_pointer_is_not(parts: MacFrameworks) -> None:
    assert [(each.id, each.state) for each in MacWindows(parts).surfaces()] == [("0x7", "popup"), ("0x2a", "normal")]
    assert build_surface(ListedWindow(1, 1, "Window Server", "Cursor", Rect(0, 0, 20, 20), 2147483630, 1)) is None
    assert build_surface(ListedWindow(1, 1, "Finder", "", Rect(0, 0, 20, 20), -2147483603, 1)) is None


def test_a_window_is_moved_and_filled_and_put_back_and_read_back(parts: MacFrameworks) -> None:
    windowing = MacWindows(parts)
    placed = window_control.place_window(windowing, "0x2a", WindowPlacement(100, 100, 640, 480))
    assert placed.done
    assert window_control.maximize_window(windowing, "0x2a")
    found = window_control.find_by_id(windowing, "0x2a")
    assert found is not None
    assert (found.state, found.rect) == ("maximized", Rect(0, 38, 1512, 874))
    assert window_control.restore_window(windowing, "0x2a")
    found = window_control.find_by_id(windowing, "0x2a")
    assert found is not None
    assert found.rect == Rect(100, 100, 640, 480)


def test_states(parts: MacFrameworks) -> None:
    monitors = MacWindows(parts).monitors()
    full = AccessibleWindow(1, "a", "", monitors[1].free, False, False)
    assert determine_state(full, monitors) == "maximized"
    assert determine_state(AccessibleWindow(1, "a", "", Rect(0, 0, 9, 9), True, False), monitors) == "minimized"
    assert determine_state(AccessibleWindow(1, "a", "", monitors[0].rect, False, True), monitors) == "fullscreen"


def test_the_wheel_turns_the_way_it_is_told(parts: MacFrameworks, quartz: Quartz) -> None:
    hands = MacInput(parts)
    for direction in ("up", "down", "left", "right"):
        hands.wheel(direction)
    assert [event["wheel"] for event in quartz.posted] == [(1, 0), (-1, 0), (0, 1), (0, -1)]


def test_a_double_click_is_counted_and_a_move_with_a_button_down_is_a_drag(
    parts: MacFrameworks, quartz: Quartz
) -> None:
    hands = MacInput(parts)
    hands.move(3, 4)
    for nth in (1, 2):
        hands.button("left", down=True, nth=nth)
        hands.button("left", down=False, nth=nth)
    hands.button("right", down=True)
    hands.move(5, 6)
    assert [event["mouse"] for event in quartz.posted] == [5, 1, 2, 1, 2, 3, 7]
    assert [event["nth"] for event in quartz.posted[1:5]] == [1, 1, 2, 2]


def test_a_chord_holds_its_modifiers_and_lets_all_go(parts: MacFrameworks, quartz: Quartz) -> None:
    MacInput(parts).chord(parse_chord("cmd+shift+s"))
    downs = [(event["code"], event["down"]) for event in quartz.posted]
    assert downs == [(56, True), (55, True), (1, True), (1, False), (55, False), (56, False)]
    assert quartz.posted[2]["flags"] == (1 << 17) + (1 << 20)
    assert quartz.posted[-1]["flags"] == 0
    with pytest.raises(InvalidArguments, match="no key of a Mac gives '漢'"):
        MacInput(parts).chord(parse_chord(["ctrl", "漢"]))


def test_every_letter_and_digit_has_a_key_of_its_own() -> None:
    letters = "abcdefghijklmnopqrstuvwxyz0123456789"
    assert len({KEY_CODES[letter] for letter in letters}) == len(letters)


def test_text_is_cut_into_events_between_characters(parts: MacFrameworks, quartz: Quartz) -> None:
    text = "😀" * 25 + "\nzwei\t漢"
    assert "".join(split_event_texts(text)) == text
    assert all(count_utf16_units(part) <= 20 for part in split_event_texts(text))
    MacInput(parts).type_text(text)
    typed = "".join(
        {36: "\n", 48: "\t"}.get(event["code"]) or event["text"] for event in quartz.posted if event["down"]
    )
    assert typed == text


def test_without_permission_input_and_windows_are_refused_with_the_cure(
    parts: MacFrameworks, accessible: Accessible, quartz: Quartz
) -> None:
    accessible.trusted, quartz.sees = False, False
    for act in (MacInput(parts).check_open, MacWindows(parts).windows):
        with pytest.raises(Downstream) as refused:
            act()
        assert refused.value.hint is not None
        assert "Accessibility" in refused.value.hint
    assert [(found.name, found.ok) for found in list_permission_findings(parts)] == [
        ("macOS: Accessibility", False),
        ("macOS: Screen Recording", False),
    ]
    assert all("System Settings" in found.cure for found in list_permission_findings(parts))


def test_a_locked_screen_takes_no_input(parts: MacFrameworks, quartz: Quartz) -> None:
    quartz.locked = True
    with pytest.raises(Downstream, match="locked"):
        MacInput(parts).check_open()


def test_elsewhere_the_adapter_says_that_it_is_for_macos() -> None:
    with pytest.raises(DesktopError, match="Quartz is a part of macOS"):
        open_mac_system()

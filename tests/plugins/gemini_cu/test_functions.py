"""Every function of Gemini's computer use tool in calls of Handrail's tools, none left out and none made up."""

from __future__ import annotations

import inspect
import time
from typing import Any, get_args

import numpy as np
import pytest
from google.adk.tools.computer_use import computer_use_toolset
from google.adk.tools.computer_use.base_computer import BaseComputer
from google.genai import types

from handrail import Frame, PlannedAction, Rect, Size
from handrail.desktop.key_chords import parse_chord
from handrail_gemini_cu.config import GeminiConfig
from handrail_gemini_cu.functions import FUNCTIONS, Environment, FunctionCall, HeldKeys, ModelSurface, map_call

from .documented import BROWSER, DESKTOP, LEGACY, MOBILE

# What Google's own toolset has for its own use, and the model never calls.
INTERNAL = {"current_state", "type_text", "screen_size", "environment", "close", "prepare", "initialize"}
SCREEN = Rect(100, 50, 2560, 1600)


def surface(
    environment: Environment = "desktop", *, platform: str = "linux", held: HeldKeys | None = None
) -> ModelSurface:
    """A screen of 2560 x 1600 pixels that begins at (100, 50), sent at half its size."""
    frame = Frame(SCREEN, np.zeros((1, 1, 3), np.uint8), time.monotonic())
    return ModelSurface(frame, Size(1280, 800), GeminiConfig(environment=environment), platform, held or HeldKeys())


def mapped(name: str, args: dict[str, Any], given: ModelSurface | None = None) -> tuple[PlannedAction, ...]:
    return map_call(FunctionCall("1", name, args), given or surface())


def told(name: str, args: dict[str, Any], given: ModelSurface | None = None) -> list[dict[str, Any]]:
    """The arguments of the calls that a function means."""
    return [{"tool": action.tool, **action.args} for action in mapped(name, args, given)]


def problem(name: str, args: dict[str, Any], given: ModelSurface | None = None) -> str:
    (action,) = mapped(name, args, given)
    assert action.problem is not None
    return action.problem


def test_the_functions_are_those_that_are_documented_each_once():
    assert set(FUNCTIONS) == {*DESKTOP, *BROWSER, *MOBILE, *LEGACY}


def test_no_function_that_the_installed_packages_of_google_know_is_left_out():
    names = {name for name, _ in inspect.getmembers(BaseComputer, inspect.isfunction) if not name.startswith("_")}
    exclusions = [
        getattr(computer_use_toolset, name) for name in ("_LEGACY_EXCLUSION_NAMES", "_MODERN_EXCLUSION_NAMES")
    ]
    known = names.union(*exclusions) - INTERNAL
    assert {"click", "click_at", "hotkey", "key_combination"} <= known
    assert known <= set(FUNCTIONS)


def test_the_environments_are_those_of_the_sdk():
    known = {environment.value for environment in types.Environment} - {"ENVIRONMENT_UNSPECIFIED"}
    assert known == {f"ENVIRONMENT_{word.upper()}" for word in get_args(Environment)}


@pytest.mark.parametrize(
    ("environment", "functions"),
    [("desktop", DESKTOP), ("browser", BROWSER), ("mobile", MOBILE), ("browser", LEGACY)],
    ids=["desktop", "browser", "mobile", "legacy"],
)
def test_every_function_of_an_environment_means_something(environment: Environment, functions: dict[str, Any]):
    held = HeldKeys()
    for name, args in functions.items():
        actions = mapped(name, args, surface(environment, held=held))
        assert not [action.problem for action in actions if action.problem]
        assert all(action.name == name and action.id == "1" for action in actions)


CLICK = {"tool": "execute_gui", "action": "click", "x": 1381, "y": 451}


@pytest.mark.parametrize(
    ("name", "args", "calls"),
    [
        ("click", {"x": 500, "y": 250}, [CLICK]),
        ("click_at", {"x": 500, "y": 250}, [CLICK]),
        ("click", {"x": 0, "y": 0}, [{**CLICK, "x": 101, "y": 51}]),
        ("click", {"x": 999, "y": 999}, [{**CLICK, "x": 2657, "y": 1649}]),
        ("hover_at", {"x": 500, "y": 250}, [{**CLICK, "action": "move_mouse"}]),
        ("move", {"x": 500, "y": 250}, [{**CLICK, "action": "move_mouse"}]),
        (
            "drag_and_drop",
            DESKTOP["drag_and_drop"],
            [{"tool": "execute_gui", "action": "drag", "x": 357, "y": 211, "to_x": 2405, "to_y": 851}],
        ),
        (
            "drag_and_drop",
            LEGACY["drag_and_drop"],
            [{"tool": "execute_gui", "action": "drag", "x": 357, "y": 211, "to_x": 2405, "to_y": 851}],
        ),
        # Lengths are thousandths of the screen: 0.3 x 1600 pixels are about five notches.
        ("scroll", DESKTOP["scroll"], [{**CLICK, "action": "scroll", "direction": "down", "clicks": 5}]),
        (
            "scroll",
            {"x": 500, "y": 250, "direction": "UP"},
            [{**CLICK, "action": "scroll", "direction": "up", "clicks": 5}],
        ),
        (
            "scroll_at",
            {"x": 500, "y": 250, "direction": "left"},
            [{**CLICK, "action": "scroll", "direction": "left", "clicks": 20}],
        ),
        (
            "scroll",
            {"x": 500, "y": 250, "direction": "down", "magnitude_in_wheel_clicks": 3},
            [{**CLICK, "action": "scroll", "direction": "down", "clicks": 3}],
        ),
        ("scroll_document", {"direction": "down"}, [{"tool": "execute_gui", "action": "press_key", "key": "pagedown"}]),
        ("type", {"text": "ab"}, [{"tool": "execute_gui", "action": "type", "text": "ab"}]),
        (
            "type",
            {"text": "ab", "press_enter": True},
            [
                {"tool": "execute_gui", "action": "type", "text": "ab"},
                {"tool": "execute_gui", "action": "press_key", "key": "enter"},
            ],
        ),
        (
            "type_text_at",
            {"x": 500, "y": 250, "text": "ab"},
            [
                CLICK,
                {"tool": "execute_gui", "action": "replace_text", "text": "ab"},
                {"tool": "execute_gui", "action": "press_key", "key": "enter"},
            ],
        ),
        (
            "type_text_at",
            {"x": 500, "y": 250, "text": "ab", "press_enter": False, "clear_before_typing": False},
            [CLICK, {"tool": "execute_gui", "action": "type", "text": "ab"}],
        ),
        (
            "type_text_at",
            {"x": 500, "y": 250, "text": "", "press_enter": False},
            [CLICK, {"tool": "execute_gui", "action": "replace_text", "text": ""}],
        ),
        (
            "type_text_at",
            {"x": 500, "y": 250, "text": "", "press_enter": False, "clear_before_typing": False},
            [CLICK],
        ),
        (
            "key_combination",
            {"keys": "Control+Shift+T"},
            [{"tool": "execute_gui", "action": "hotkey", "keys": ["Control+Shift+T"]}],
        ),
        ("key_combination", {"keys": "Enter"}, [{"tool": "execute_gui", "action": "press_key", "key": "Enter"}]),
        ("hotkey", {"keys": ["ctrl", "c"]}, [{"tool": "execute_gui", "action": "hotkey", "keys": ["ctrl", "c"]}]),
        ("press_key", {"key": "+"}, [{"tool": "execute_gui", "action": "press_key", "key": "+"}]),
        ("wait", {}, [{"tool": "wait", "seconds": 1}]),
        ("wait", {"seconds": 600}, [{"tool": "wait", "seconds": 60}]),
        ("wait_5_seconds", {}, [{"tool": "wait", "seconds": 5}]),
        ("take_screenshot", {}, []),
        ("open_app", {"app_name": "Maps"}, [{"tool": "launch_app", "app_name": "Maps"}]),
        ("list_apps", {}, [{"tool": "window_list"}]),
        (
            "long_press",
            {"x": 500, "y": 250},
            [{**CLICK, "action": "mouse_down"}, {"tool": "wait", "seconds": 2}, {**CLICK, "action": "mouse_up"}],
        ),
        ("go_back", {}, [{"tool": "execute_gui", "action": "hotkey", "keys": ["alt", "left"]}]),
    ],
)
def test_a_function_is_these_calls(name: str, args: dict[str, Any], calls: list[dict[str, Any]]):
    assert told(name, args) == calls


def test_in_a_browser_pages_are_opened_by_its_own_tool_and_by_hand_where_there_is_none():
    browser = surface("browser")
    (action,) = mapped("navigate", {"url": "https://example.org/"}, browser)
    assert (action.tool, action.args) == ("execute_browser", {"action": "navigate", "url": "https://example.org/"})
    assert [each.args["action"] for each in action.instead] == ["hotkey", "type", "press_key"]
    for name, wanted in (
        ("go_back", "back"),
        ("go_forward", "forward"),
        ("open_web_browser", "open_tab"),
        ("search", "navigate"),
    ):
        (action,) = mapped(name, {}, browser)
        assert action.args["action"] == wanted
        assert action.instead


@pytest.mark.parametrize(
    ("given", "address"),
    [
        ("https://example.org/a?b", "https://example.org/a?b"),
        ("example.org/a", "https://example.org/a"),
        ("//example.org", "https://example.org"),
        ("example.org:8080", "https://example.org:8080"),
        ("localhost:8080/x", "http://localhost:8080/x"),
        (" http://127.0.0.1:1/ ", "http://127.0.0.1:1/"),
    ],
)
def test_an_address_is_one_with_or_without_its_scheme(given: str, address: str):
    (action,) = mapped("navigate", {"url": given}, surface("browser"))
    assert action.args["url"] == address


@pytest.mark.parametrize(
    "given",
    ["file:///etc/passwd", "javascript:alert(1)", "chrome://settings", "https://", "a b.org", "https://u:p@x.org", ""],
)
def test_other_addresses_are_not_opened(given: str):
    assert problem("navigate", {"url": given}, surface("browser"))


@pytest.mark.parametrize(
    ("name", "args", "why"),
    [
        ("fly", {}, "no function 'fly'"),
        ("click", {"x": 1000, "y": 5}, "0 to 999"),
        ("click", {"x": -1, "y": 5}, "0 to 999"),
        ("click", {"x": 5}, "a number as y"),
        ("click", {"x": "5", "y": 5}, "a number as x"),
        ("click", {"x": True, "y": 5}, "a number as x"),
        ("click", {"x": float("nan"), "y": 5}, "a number as x"),
        ("scroll", {"x": 5, "y": 5, "direction": "diagonal"}, "up, down, left, right"),
        ("type", {}, "a text as text"),
        ("hotkey", {"keys": []}, "needs keys"),
        ("hotkey", {"keys": [1]}, "needs keys"),
        ("drag_and_drop", {"x": 5, "y": 5}, "destination_x"),
        ("open_app", {}, "app_name"),
        ("key_up", {"key": "shift"}, "not held"),
    ],
)
def test_what_cannot_be_carried_out_says_why(name: str, args: dict[str, Any], why: str):
    assert why in problem(name, args)


def test_shortcuts_are_those_of_the_platform():
    mac = surface(platform="darwin")
    assert told("go_back", {}, mac)[0]["keys"] == ["command", "["]
    assert told("go_back", {}, surface(platform="win32"))[0]["keys"] == ["alt", "left"]


def test_a_phone_goes_back_by_its_own_button():
    assert told("go_back", {}, surface("mobile")) == [{"tool": "execute_gui", "action": "press_key", "key": "esc"}]


def test_held_keys_are_pressed_with_the_next_key():
    given = surface()
    assert told("key_down", {"key": "Control"}, given) == []
    (pressed,) = told("press_key", {"key": "a"}, given)
    assert str(parse_chord(pressed["keys"])) == "ctrl+a"
    assert told("key_up", {"key": "control"}, given) == []
    assert told("press_key", {"key": "a"}, given) == [{"tool": "execute_gui", "action": "press_key", "key": "a"}]


def test_a_key_that_goes_down_and_up_is_pressed():
    given = surface()
    told("key_down", {"key": "Tab"}, given)
    assert told("key_up", {"key": "Tab"}, given) == [{"tool": "execute_gui", "action": "press_key", "key": "tab"}]


def test_the_mouse_is_not_used_with_keys_held():
    given = surface()
    told("key_down", {"key": "shift"}, given)
    for name in ("click", "drag_and_drop", "scroll", "type"):
        assert "shift is held" in problem(name, DESKTOP[name], given)


def test_a_safety_decision_is_a_question_before_the_first_call_only():
    decision = {"decision": "require_confirmation", "explanation": "It buys something."}
    first, *rest = mapped("type", {"text": "a", "press_enter": True, "safety_decision": decision})
    assert first.ask == "the model's safety check asks: It buys something."
    assert [action.ask for action in rest] == [None]
    assert mapped("click", {"x": 1, "y": 1, "safety_decision": {"decision": "regular"}})[0].ask is None
    assert "blocks it: Fraud." in problem(
        "click", {"x": 1, "y": 1, "safety_decision": {"decision": "block", "explanation": "Fraud."}}
    )


@pytest.mark.parametrize("decision", [{"decision": "brand_new"}, {"explanation": "?"}, "require_confirmation", []])
def test_a_safety_decision_that_nobody_knows_is_asked_about(decision: Any):
    assert mapped("click", {"x": 1, "y": 1, "safety_decision": decision})[0].ask


def test_a_look_with_a_safety_decision_is_asked_about_too():
    decision = {"decision": "require_confirmation", "explanation": "Private."}
    assert [action.ask for action in mapped("take_screenshot", {"safety_decision": decision})]

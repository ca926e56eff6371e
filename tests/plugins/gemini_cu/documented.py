"""The functions of the computer use tool as Google documents them, with arguments that a model gives.

https://cloud.google.com/vertex-ai/generative-ai/docs/computer-use#supported-actions
"""

from __future__ import annotations

from typing import Any

POINT = {"x": 500, "y": 250, "intent": "why"}
DRAG = {"start_x": 100, "start_y": 100, "end_x": 900, "end_y": 500, "intent": "why"}

DESKTOP: dict[str, dict[str, Any]] = {
    **dict.fromkeys(("click", "double_click", "triple_click", "middle_click", "right_click"), POINT),
    **dict.fromkeys(("mouse_down", "mouse_up", "move"), POINT),
    "type": {"text": "hello", "press_enter": True, "intent": "why"},
    "drag_and_drop": DRAG,
    "wait": {"seconds": 2, "intent": "why"},
    "press_key": {"key": "Enter", "intent": "why"},
    "key_down": {"key": "Shift", "intent": "why"},
    "key_up": {"key": "Shift", "intent": "why"},
    "hotkey": {"keys": ["Control", "A"], "intent": "why"},
    "take_screenshot": {"intent": "why"},
    "scroll": {**POINT, "direction": "down", "magnitude_in_pixels": 300},
}
BROWSER: dict[str, dict[str, Any]] = {
    **DESKTOP,
    "go_back": {"intent": "why"},
    "go_forward": {"intent": "why"},
    "navigate": {"url": "https://example.org/", "intent": "why"},
}
MOBILE: dict[str, dict[str, Any]] = {
    "open_app": {"app_name": "Camera", "intent": "why"},
    "click": POINT,
    "list_apps": {"intent": "why"},
    "wait": {"intent": "why"},
    "go_back": {"intent": "why"},
    "type": {"text": "hello", "intent": "why"},
    "drag_and_drop": DRAG,
    "long_press": {**POINT, "seconds": 2},
    "press_key": {"key": "Enter", "intent": "why"},
    "take_screenshot": {"intent": "why"},
}
# Gemini 3 Flash and what came before it.
LEGACY: dict[str, dict[str, Any]] = {
    "open_web_browser": {},
    "wait_5_seconds": {},
    "go_back": {},
    "go_forward": {},
    "search": {},
    "navigate": {"url": "https://example.org/"},
    "click_at": {"x": 500, "y": 250},
    "hover_at": {"x": 500, "y": 250},
    "type_text_at": {"x": 500, "y": 250, "text": "hello"},
    "key_combination": {"keys": "Control+A"},
    "scroll_document": {"direction": "down"},
    "scroll_at": {"x": 500, "y": 250, "direction": "down", "magnitude": 400},
    "drag_and_drop": {"x": 100, "y": 100, "destination_x": 900, "destination_y": 500},
}

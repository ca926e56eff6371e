"""What mouse and keyboard can be asked to do; apart from how, so that listing tools need not load it."""

from __future__ import annotations

from typing import Literal

GuiAction = Literal[
    "click",
    "double_click",
    "triple_click",
    "right_click",
    "middle_click",
    "type",
    "replace_text",
    "scroll",
    "hotkey",
    "press_key",
    "move_mouse",
    "drag",
    "mouse_down",
    "mouse_up",
]
ScrollDirection = Literal["up", "down", "left", "right"]
MouseButton = Literal["left", "middle", "right"]

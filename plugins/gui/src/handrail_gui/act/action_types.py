"""Mouse and keyboard actions that can be requested.

Separate from the code that carries them out, which listing tools need not load.
"""

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

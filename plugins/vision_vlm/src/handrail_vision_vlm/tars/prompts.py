"""Prompts for UI-TARS, in its training wording (https://github.com/bytedance/UI-TARS, Apache-2.0)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from handrail_vision_vlm.config import TarsVersion

AGENT_PROMPT = (
    "You are a GUI agent. You are given a task and your action history, with screenshots. "
    "You need to perform the next action to complete the task."
)
START_BOX = "start_box='<|box_start|>(x1,y1)<|box_end|>'"
END_BOX = "end_box='<|box_start|>(x3,y3)<|box_end|>'"
POINT_ARGUMENT = "point='<point>x1 y1</point>'"
# Version 2 is given functions, here with their texts: those of its own that a desktop can carry out
# (https://github.com/bytedance/UI-TARS-desktop, multimodal/omni-tars/core, environments/prompt_t5.ts, Apache-2.0).
PLACE_FORMAT = "The format is: <point>x y</point>"
FUNCTIONS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "click": ("Mouse left single click action.", {"point": f"Click coordinates. {PLACE_FORMAT}"}),
    "left_double": ("Mouse left double click action.", {"point": f"Click coordinates. {PLACE_FORMAT}"}),
    "right_single": ("Mouse right single click action.", {"point": f"Click coordinates. {PLACE_FORMAT}"}),
    "move_to": ("Mouse move action.", {"point": f"Target coordinates. {PLACE_FORMAT}"}),
    "drag": (
        "Mouse left button drag action.",
        {"start_point": f"Drag start point. {PLACE_FORMAT}", "end_point": f"Drag end point. {PLACE_FORMAT}"},
    ),
    "scroll": (
        "Scroll action.",
        {"point": f"Scroll start position. {PLACE_FORMAT}", "direction": "Scroll direction: up, down, left or right."},
    ),
    "hotkey": ("Press hotkey.", {"key": "Hotkeys you want to press. Split keys with a space and use lowercase."}),
    "press": ("Press key.", {"key": "Key you want to press. Only one key can be pressed at one time."}),
    "type": (
        "Type content.",
        {"content": "Type content. If you want to submit your input, use \\n at the end of content."},
    ),
    "wait": ("Wait for a while.", {"time": "Wait time in seconds."}),
    "finished": (
        "This function is used to indicate the completion of a task by providing the final answer or response.",
        {"content": "Provide the final answer or response to complete the task."},
    ),
    "call_user": (
        "This function is used to ask the user for input, feedback or guidance.",
        {"content": "Message or information displayed to the user."},
    ),
}
CALL_STRUCTURE = """- To call a function, use the following structure without any suffix:

<gui_think> reasoning process </gui_think>
<seed:tool_call><function=example_function_name><parameter=example_parameter_1>value_1</parameter>\
<parameter=example_parameter_2>
This is the value for the second parameter
that can span
multiple lines
</parameter></function></seed:tool_call>

## Important Notes
- Function calls must begin with <function= and end with </function>.
- All required parameters must be explicitly provided."""


def describe_answer_form(version: TarsVersion) -> str:
    """Describe briefly the form in which an answer must be written."""
    return "one function call" if version == "2" else "`Thought:` and one `Action:` of the action space"


def build_grounding_prompt(version: TarsVersion, intent: str) -> str:
    """Build the prompt for the one matching place."""
    if version == "2":
        return f"{AGENT_PROMPT}\n\n{_format_functions(['click'])}\n\n## User Instruction\n{intent}"
    return f"{AGENT_PROMPT}\n\n## Output Format\n\nAction: ...\n\n\n## Action Space\nclick({_format_place(version)})\n\n## User Instruction\n{intent}"


def build_task_prompt(version: TarsVersion, language: str, instruction: str) -> str:
    """Build the prompt for the next action of a task."""
    if version == "2":
        note = f"- Use {language} in your reasoning process."
        return f"{AGENT_PROMPT}\n\n{_format_functions(FUNCTIONS)}\n{note}\n\n## User Instruction\n{instruction}"
    at = _format_place(version)
    drag = (
        "start_point='<point>x1 y1</point>', end_point='<point>x2 y2</point>'"
        if version == "doubao"
        else f"{START_BOX}, {END_BOX}"
    )
    return f"""{AGENT_PROMPT}

## Output Format
```
Thought: ...
Action: ...
```

## Action Space

click({at})
left_double({at})
right_single({at})
drag({drag})
hotkey(key='ctrl c') # Split keys with a space and use lowercase. Also, do not use more than 3 keys in one hotkey action.
type(content='xxx') # Use escape characters \\', \\", and \\n in content part to ensure we can parse the content in normal python \
string format. If you want to submit your input, use \\n at the end of content.
scroll({at}, direction='down or up or right or left')
wait() # Sleep for 5s and take a screenshot to check for any changes.
finished(content='xxx')
call_user() # Submit the task and call the user when the task is unsolvable, or when you need the user's help.

## Note
- Use {language} in `Thought` part.
- Write a small plan and finally summarize your next action (with its target element) in one sentence in `Thought` part.

## User Instruction
{instruction}
"""


def _format_place(version: TarsVersion) -> str:
    return POINT_ARGUMENT if version == "doubao" else START_BOX


def _format_functions(names: Iterable[str]) -> str:
    declared = "\n".join(json.dumps(_declare_function(name, *FUNCTIONS[name])) for name in names)
    return f"## Function Definition\n\n- You have access to the following functions:\n{declared}\n\n{CALL_STRUCTURE}"


def _declare_function(name: str, what: str, parameters: Mapping[str, str]) -> Mapping[str, object]:
    properties = {each: {"type": "string", "description": told} for each, told in parameters.items()}
    schema = {"type": "object", "properties": properties, "required": list(parameters)}
    return {"type": "function", "name": name, "parameters": schema, "description": what}

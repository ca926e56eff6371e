"""What UI-TARS is asked, in the words that it was trained with (https://github.com/bytedance/UI-TARS, Apache-2.0)."""

from __future__ import annotations

from handrail_vision_vlm.config import Version

AGENT = (
    "You are a GUI agent. You are given a task and your action history, with screenshots. "
    "You need to perform the next action to complete the task."
)
BOX = "start_box='<|box_start|>(x1,y1)<|box_end|>'"
END = "end_box='<|box_start|>(x3,y3)<|box_end|>'"
POINT = "point='<point>x1 y1</point>'"


def ground(version: Version, intent: str) -> str:
    """For the one place that fits."""
    return f"{AGENT}\n\n## Output Format\n\nAction: ...\n\n\n## Action Space\nclick({_at(version)})\n\n## User Instruction\n{intent}"


def work(version: Version, language: str, instruction: str) -> str:
    """For the next action of a task."""
    at = _at(version)
    drag = (
        "start_point='<point>x1 y1</point>', end_point='<point>x2 y2</point>'"
        if version == "doubao"
        else f"{BOX}, {END}"
    )
    return f"""{AGENT}

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


def _at(version: Version) -> str:
    return POINT if version == "doubao" else BOX

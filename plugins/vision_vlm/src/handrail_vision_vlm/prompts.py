"""Prompts for models."""

from __future__ import annotations

from handrail import Size
from handrail_vision_vlm.config import CoordinateKind


def build_find_prompt(intent: str, coordinates: CoordinateKind, size: Size, *, box: str = "bbox") -> str:
    """Build the prompt to find what the caller describes, or everything.

    `box` is the key under which the model was trained to return boxes.
    """
    wanted = (
        f"Find this in the screenshot: {intent}\nList every place that fits, the best first."
        if intent
        else "List the controls in this screenshot that a person could click or type into, and the texts that say what they are, "
        "from top to bottom, at most 80."
    )
    return (
        f'{wanted}\nAnswer with a JSON array and nothing else, one object for each: {{"label": its text, or what it shows, '
        f'"role": "button", "field", "link", "icon", "text" or another word, "{box}": [x1, y1, x2, y2]}}. '
        f"The box is {_describe_coordinates(coordinates, size)}, left and top first. If there is none, answer []."
    )


RETRY_PROMPT = (
    "That could not be read. Answer again, with the JSON array and nothing else; [] if there is no such place."
)


def build_describe_prompt(intent: str) -> str:
    """Build the prompt for a description of the picture."""
    told = (
        "This is a screenshot of a computer. Describe it for somebody who has to work with it and cannot see it: which program and "
        "window is in front, what it shows and what state it is in, dialogs and messages word for word, and what could be done next. "
        "Say only what can be seen."
    )
    return f"{told}\nThey want to know: {intent}" if intent else told


def build_localize_prompt(intent: str) -> str:
    """Build the prompt for one place, as Holo models were trained.

    Source: https://hub.hcompany.ai/element-localization.
    """
    schema = (
        '{"type": "object", "properties": {"x": {"type": "integer", "minimum": 0, "maximum": 1000}, '
        '"y": {"type": "integer", "minimum": 0, "maximum": 1000}}, "required": ["x", "y"]}'
    )
    return (
        "Localize an element on the GUI image according to the provided target and output a click position.\n"
        f" * You must output a valid JSON following the format: {schema}\n Your target is:\n{intent}"
    )


def build_point_prompt(intent: str) -> str:
    """Build the prompt for points, as Molmo was trained."""
    return f"Point to {intent}." if intent else "Point to every button, field, link and icon."


def _describe_coordinates(coordinates: CoordinateKind, size: Size) -> str:
    match coordinates:
        case "pixels" | "resized":
            return f"in pixels of the picture, which is {size.width} wide and {size.height} high"
        case "unit":
            return "in fractions of the picture's width and height, from 0 to 1"
        case "percent":
            return "in percent of the picture's width and height, from 0 to 100"
        case "thousand":
            return "in thousandths of the picture's width and height, whole numbers from 0 to 1000"

"""Models on a server of this machine: they look at the picture that they are sent, and answer each in its own form.

`python -m tests.plugins.vision_vlm.models` serves all of them. Requests are held against the types of OpenAI's own client.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Mapping
from io import BytesIO
from typing import Any
from urllib.parse import unquote

import numpy as np
from openai.types.chat import ChatCompletion
from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming
from PIL import Image
from pydantic import TypeAdapter
from tests.plugins.vision_vlm.serving import Answer, Asked, serve_forever

from handrail import Size
from handrail.api.coordinates import compute_smart_size

REQUEST = TypeAdapter(CompletionCreateParamsNonStreaming)

# Left, upper, right and lower edge in the pixels of the picture.
Box = tuple[int, int, int, int]
Says = Callable[[Box, Size], str]


def completion(text: str | None, *, finish: str = "stop", **message: Any) -> Mapping[str, Any]:
    """An answer of chat/completions, as OpenAI's client reads it."""
    answer = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_795_000_000,
        "model": "m",
        "choices": [
            {
                "index": 0,
                "finish_reason": finish,
                "logprobs": None,
                "message": {"role": "assistant", "content": text, "refusal": None, **message},
            }
        ],
        "usage": {"prompt_tokens": 1000, "completion_tokens": 20, "total_tokens": 1020},
    }
    ChatCompletion.model_validate(answer)
    return answer


def checked(asked: Asked) -> Mapping[str, Any]:
    """The body of a request, which fits the vendor's types."""
    assert asked.method == "POST"
    assert asked.path.endswith("/chat/completions")
    REQUEST.validate_python(asked.body)
    return asked.body


def pictures(body: Mapping[str, Any]) -> list[Image.Image]:
    """All pictures of a request, in order."""
    urls = [
        part["image_url"]["url"]
        for message in body["messages"]
        if isinstance(message["content"], list)
        for part in message["content"]
        if part["type"] == "image_url"
    ]
    return [Image.open(BytesIO(base64.b64decode(url.partition(";base64,")[2]))).convert("RGB") for url in urls]


def dark(image: Image.Image) -> Box | None:
    """The box around what is dark; None where nothing is."""
    rows, columns = np.where(np.asarray(image).mean(axis=2) < 128)
    return (int(columns.min()), int(rows.min()), int(columns.max()) + 1, int(rows.max()) + 1) if rows.size else None


def scaled(box: Box, size: Size, wide: float, high: float) -> list[float]:
    x1, y1, x2, y2 = box
    return [x1 * wide / size.width, y1 * high / size.height, x2 * wide / size.width, y2 * high / size.height]


def in_json(box: Box, size: Size) -> str:
    numbers = [round(n) for n in scaled(box, size, 1000, 1000)]
    return f'```json\n[{{"bbox_2d": {numbers}, "label": "Save", "role": "button"}}]\n```'


def in_fractions(box: Box, size: Size) -> str:
    numbers = [round(n, 4) for n in scaled(box, size, 1, 1)]
    return f'<think>It is at (3, 4).</think>[{{"label": "Save", "role": "button", "bbox": {numbers}}}]'


def middle(box: Box, size: Size, wide: float, high: float) -> tuple[float, float]:
    x1, y1, x2, y2 = scaled(box, size, wide, high)
    return (x1 + x2) / 2, (y1 + y2) / 2


def as_molmo(box: Box, size: Size) -> str:
    x, y = middle(box, size, 1000, 1000)
    return f'<points coords="1 1 {round(x):03d} {round(y):03d}">Save</points>'


def as_molmo_1(box: Box, size: Size) -> str:
    x, y = middle(box, size, 100, 100)
    return f' <point x="{x:.1f}" y="{y:.1f}" alt="Save">Save</point>'


def as_holo(box: Box, size: Size) -> str:
    x, y = middle(box, size, 1000, 1000)
    return f'{{"x": {round(x)}, "y": {round(y)}}}'


def as_tars(box: Box, size: Size) -> str:
    seen = compute_smart_size(size)
    x, y = middle(box, size, seen.width, seen.height)
    return f"Action: click(start_box='<|box_start|>({round(x)},{round(y)})<|box_end|>')"


def as_tars_1_0(box: Box, size: Size) -> str:
    x, y = middle(box, size, 1000, 1000)
    return f"Thought: I see (2) buttons.\nAction: click(start_box='({round(x)},{round(y)})')"


def as_doubao(box: Box, size: Size) -> str:
    x, y = middle(box, size, 1000, 1000)
    return f"Action: click(point='<point>{round(x)} {round(y)}</point>')"


def as_tars_2(box: Box, size: Size) -> str:
    x, y = middle(box, size, 1000, 1000)
    point = f"<point>{round(x)} {round(y)}</point>"
    call = f"<function=click><parameter=point>{point}</parameter></function>"
    return f"<gui_think>There are (2, 3) of them.</gui_think>\n<seed:tool_call>{call}</seed:tool_call>"


MODELS: Mapping[str, Says] = {
    "ui_tars": as_tars,
    "ui_tars 1.0": as_tars_1_0,
    "ui_tars doubao": as_doubao,
    "ui_tars 2": as_tars_2,
    "kimi": in_fractions,
    "qwen": in_json,
    "phi": in_fractions,
    "molmo": as_molmo,
    "molmo 1": as_molmo_1,
    "holotron": as_holo,
    "openai_compatible": in_json,
}


async def answer(asked: Asked) -> Answer:
    """What the model that the address names, as in /qwen/v1, says of what is dark in the last picture."""
    body = checked(asked)
    shown = pictures(body)[-1]
    box = dark(shown)
    says = MODELS[unquote(asked.path.split("/")[1])]
    return Answer(completion("[]" if box is None else says(box, Size(shown.width, shown.height))))


if __name__ == "__main__":
    asyncio.run(serve_forever(answer))

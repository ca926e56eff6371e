"""OmniParser's server on this machine, as its documentation and source describe it, defects and all: no models, it finds what is dark.

`python -m tests.plugins.vision_omniparser.omni [PORT] [SECONDS]` serves it, after some seconds of loading.
"""

from __future__ import annotations

import asyncio
import base64
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from io import BytesIO
from typing import Any

import numpy as np
from PIL import Image
from tests.plugins.vision_vlm.serving import Answer, Asked, serve_forever

# So many changes between light and dark in one row of pixels are letters.
LETTERS = 8


def runs(lines: Any) -> list[tuple[int, int]]:
    """Where a row of truth values is true: from, to."""
    edges = np.flatnonzero(np.diff(np.concatenate(([0], lines.astype(np.int8), [0]))))
    return [(int(a), int(b)) for a, b in edges.reshape(-1, 2)]


def parsed(image: Image.Image) -> list[Mapping[str, Any]]:
    """Text first, then icons, with boxes as ratios; TypeError where there is no text, as in get_som_labeled_img."""
    dark = np.asarray(image.convert("L")) < 128
    height, width = dark.shape
    texts: list[Mapping[str, Any]] | None = None
    icons: list[Mapping[str, Any]] = []
    for top, bottom in runs(dark.any(axis=1)):
        columns = runs(dark[top:bottom].any(axis=0))
        box = [columns[0][0] / width, top / height, columns[-1][1] / width, bottom / height]
        if max(len(runs(row)) for row in dark[top:bottom]) >= LETTERS:
            found = {"type": "text", "bbox": box, "interactivity": False, "content": "words"}
            texts = [*(texts or []), {**found, "source": "box_ocr_content_ocr"}]
        else:
            found = {"type": "icon", "bbox": box, "interactivity": True, "content": "a button "}
            icons.append({**found, "source": "box_yolo_content_yolo"})
    if texts is None:
        raise TypeError("'NoneType' object is not iterable")
    return [*texts, *icons]


async def answer(asked: Asked) -> Answer:
    """FastAPI's answers; one picture at a time, and nothing else meanwhile, for nothing in it awaits."""
    match asked.method, asked.path:
        case "GET", "/probe/":
            return Answer({"message": "Omniparser API ready"})
        case "POST", "/parse/":
            if not isinstance(asked.body, dict) or not isinstance(asked.body.get("base64_image"), str):
                return Answer({"detail": [{"type": "missing", "loc": ["body", "base64_image"]}]}, status=422)
            image = Image.open(BytesIO(base64.b64decode(asked.body["base64_image"], validate=True)))
            try:
                found = parsed(image)
            except TypeError:
                return Answer(b"Internal Server Error", status=500, headers={"content-type": "text/plain"})
            drawn = base64.b64encode(b"\x89PNG drawn upon").decode()
            return Answer({"som_image_base64": drawn, "parsed_content_list": found, "latency": 0.6})
        case "GET" | "POST", "/parse" | "/probe":
            return Answer(b"", status=307, headers={"location": f"{asked.path}/"})
        case _:
            return Answer({"detail": "Not Found"}, status=404)


def load(seconds: float) -> None:
    # What a model's library may start and leave; it is in the same process group.
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    print("loading the models", file=sys.stderr, flush=True)
    time.sleep(seconds)
    if os.environ.get("OMNI_BROKEN"):
        sys.exit("CUDA error: out of memory")


if __name__ == "__main__":
    port, seconds = (*sys.argv[1:], "0", "0")[:2]
    if float(seconds):
        load(float(seconds))
    asyncio.run(serve_forever(answer, int(port)))

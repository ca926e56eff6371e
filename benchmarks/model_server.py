"""A server that answers at once what a model and an OmniParser would: `python -m benchmarks.model_server` prints its address."""

from __future__ import annotations

import asyncio
import json
import random
from contextlib import suppress

ELEMENTS = 60


def boxes(unit: int) -> list[list[float]]:
    """Return some boxes in a picture that is `unit` wide and high."""
    corners = [(random.random() * 0.8, random.random() * 0.8) for _ in range(ELEMENTS)]
    return [[round(side * unit, 3) for side in (x, y, x + 0.1, y + 0.02)] for x, y in corners]


PARSED = json.dumps(
    {
        "som_image_base64": "A" * 400_000,
        "parsed_content_list": [
            {
                "type": "icon",
                "bbox": box,
                "interactivity": True,
                "content": "a button",
                "source": "box_yolo_content_yolo",
            }
            for box in boxes(1)
        ],
        "latency": 0.0,
    }
).encode()
FOUND = [{"label": "Save", "role": "button", "bbox_2d": box} for box in boxes(1000)]


def said(text: str) -> bytes:
    """Return a chat/completions answer."""
    message = {"role": "assistant", "content": text, "refusal": None}
    return json.dumps(
        {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1_795_000_000,
            "model": "m",
            "choices": [{"index": 0, "finish_reason": "stop", "logprobs": None, "message": message}],
            "usage": {"prompt_tokens": 1000, "completion_tokens": 500, "total_tokens": 1500},
        }
    ).encode()


CLICK = json.dumps(
    {
        "candidates": [
            {
                "content": {
                    "role": "model",
                    "parts": [
                        {"text": "The button that saves is in the tool bar."},
                        {
                            "functionCall": {"name": "click", "args": {"x": 500, "y": 300}},
                            "thoughtSignature": "dGhvdWdodA==",
                        },
                    ],
                },
                "finishReason": "STOP",
                "index": 0,
            }
        ],
        "usageMetadata": {"promptTokenCount": 1500, "candidatesTokenCount": 60, "totalTokenCount": 1560},
    }
).encode()

# By paths in small letters.
ANSWERS = {
    "/plan/v1beta/models/gemini-3.5-flash:generatecontent": CLICK,
    "/probe/": b'{"message": "Omniparser API ready"}',
    "/parse/": PARSED,
    "/parse/chat/completions": said(json.dumps(FOUND)),
    "/understand/chat/completions": said("A text editor with a file of notes in it. " * 20),
}


async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError, asyncio.IncompleteReadError):
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            size = head.partition("content-length:")[2].partition("\r\n")[0].strip()
            await reader.readexactly(int(size or "0"))
            body = ANSWERS[head.split(" ")[1]]
            writer.write(
                f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n".encode()
            )
            writer.write(body)
            await writer.drain()
    writer.close()


async def main() -> None:
    server = await asyncio.start_server(talk, "127.0.0.1", 0, limit=2**26)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())

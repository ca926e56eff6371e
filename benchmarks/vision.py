"""Overhead of a request to a model or an OmniParser server beyond the request itself: the server answers at once."""

from __future__ import annotations

import base64
import json
import random
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from typing import Any

import httpx

from benchmarks.measure import Absent, Contender, Effort, take_turns
from benchmarks.report import Measurement, Row, compare
from handrail import Frame, Rect, VisionBackend
from handrail.testing.backend_contract import FakeBackendContext, open_backend

WIDTH, HEIGHT = 1280, 800
# Questions of one turn.
TURN = 4
LIMIT = "PNG, httpx and json alone"
SDK = "PNG and google-genai alone"


async def omniparser(effort: Effort) -> Row:
    """Measure `parse` of `omniparser`, with 60 elements and the picture that its server returns unasked."""
    from handrail_vision_omniparser.backend import OmniParser, OmniParserConfig

    def backend(url: str) -> VisionBackend:
        return OmniParser(OmniParserConfig(url=url))

    def asked(picture: str) -> Mapping[str, Any]:
        return {"base64_image": picture}

    return await _row("parse by omniparser, 60 elements", backend, "/parse/", asked, _parse, effort)


async def find(effort: Effort) -> Row:
    """Measure `parse` of a model that names 60 boxes."""
    return await _row(
        "parse by a model, 60 elements", _qwen("/parse"), "/parse/chat/completions", _chat, _parse, effort
    )


async def understand(effort: Effort) -> Row:
    """Measure `understand` of a model."""

    async def ask(backend: VisionBackend, frame: Frame) -> Any:
        return await backend.understand(frame, "what is open?")

    path = "/understand/chat/completions"
    return await _row("understand by a model", _qwen("/understand"), path, _chat, ask, effort)


async def plan(effort: Effort) -> Row:
    """Measure `plan` of `gemini_computer_use`: the next action, requested through the vendor's client.

    The vendor's client alone is the limit.
    """
    from google.genai import Client, types

    from handrail_gemini_cu.backend import GeminiComputerUse
    from handrail_gemini_cu.config import GeminiConfig

    model, key, task = "gemini-3.5-flash", "a-key", "Save the file."
    asked = types.GenerateContentConfig(
        system_instruction="You work on the desktop of a computer that runs linux.",
        tools=[types.Tool(computer_use=types.ComputerUse(environment=types.Environment.ENVIRONMENT_DESKTOP))],
        automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
    )
    surroundings = FakeBackendContext()
    surroundings.environment = {"GEMINI_API_KEY": key}
    with _server() as url:
        options = types.HttpOptions(base_url=f"{url}/plan", api_version="v1beta")
        client = Client(api_key=key, vertexai=False, http_options=options)
        backend = GeminiComputerUse(GeminiConfig.model_validate({"url": f"{url}/plan", "model": model}))
        async with open_backend(backend, surroundings) as ours:

            async def bare(frame: Frame) -> Any:
                picture = types.Part.from_bytes(data=_png(frame.pixels), mime_type="image/png")
                contents = [types.Content(role="user", parts=[types.Part(text=task), picture])]
                return await client.aio.models.generate_content(model=model, contents=contents, config=asked)

            contenders = {SDK: _timed(bare), "handrail": _timed(lambda frame: ours.plan(frame, task, ()))}
            timings = await take_turns(contenders, rounds=effort.rounds(25), warm_up=2)
        await client.aio.aclose()
    return compare("one step planned by gemini_computer_use", timings, limit=SDK, goal=1.1)


async def _parse(backend: VisionBackend, frame: Frame) -> Any:
    return await backend.parse(frame, "the button that saves")


def _qwen(path: str) -> Callable[[str], VisionBackend]:
    from handrail_vision_vlm.model_families import QwenBackend

    return lambda url: QwenBackend(QwenBackend.Config.model_validate({"url": f"{url}{path}"}))


def _chat(picture: str) -> Mapping[str, Any]:
    image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{picture}"}}
    content = [image, {"type": "text", "text": "Find the button that saves. " * 20}]
    return {"model": "m", "temperature": 0, "max_tokens": 4096, "messages": [{"role": "user", "content": content}]}


async def _row(
    job: str,
    backend: Callable[[str], VisionBackend],
    path: str,
    body: Callable[[str], Mapping[str, Any]],
    ask: Callable[[VisionBackend, Frame], Awaitable[Any]],
    effort: Effort,
) -> Row:
    with _server() as url:
        async with (
            open_backend(backend(url), FakeBackendContext()) as ours,
            httpx.AsyncClient(trust_env=False, timeout=30) as client,
        ):

            async def bare(frame: Frame) -> Any:
                content = json.dumps(body(_packed(frame.pixels))).encode()
                headers = {"content-type": "application/json"}
                return json.loads((await client.post(f"{url}{path}", content=content, headers=headers)).content)

            contenders = {LIMIT: _timed(bare), "handrail": _timed(lambda frame: ask(ours, frame))}
            timings = await take_turns(contenders, rounds=effort.rounds(25), warm_up=2)
    return compare(job, timings, limit=LIMIT, goal=1.1)


def _timed(ask: Callable[[Frame], Awaitable[Any]]) -> Contender:
    async def turn() -> float:
        frames = [_frame() for _ in range(TURN)]
        began = time.perf_counter()
        for frame in frames:
            await ask(frame)
        return (time.perf_counter() - began) / TURN

    return turn


def _packed(pixels: Any) -> str:
    return base64.b64encode(_png(pixels)).decode("ascii")


def _png(pixels: Any) -> bytes:
    from PIL import Image

    buffer = BytesIO()
    Image.fromarray(pixels[:, :, ::-1]).save(buffer, "PNG", compress_level=1)
    return buffer.getvalue()


def _frame() -> Frame:
    """Return a unique screen with windows, lines and buttons."""
    import numpy as np

    pixels = np.full((HEIGHT, WIDTH, 3), random.randrange(200, 256), np.uint8)
    for _ in range(1500):
        x, y, width = random.randrange(WIDTH), random.randrange(HEIGHT), random.randrange(2, 40)
        pixels[y : y + random.randrange(1, 9), x : x + width] = [random.randrange(256) for _ in range(3)]
    return Frame(Rect(0, 0, WIDTH, HEIGHT), pixels, time.monotonic())


@contextmanager
def _server() -> Iterator[str]:
    argv = [sys.executable, "-m", "benchmarks.model_server"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            url = process.stdout.readline().strip()
            if not url:
                raise Absent("the server does not start")
            yield url
        finally:
            process.kill()


ROWS: Mapping[str, Measurement] = {"omniparser": omniparser, "find": find, "understand": understand, "plan": plan}

"""A plugin for the tests of `handrail serve`: tools that need a yes, start children, get on slowly, show pictures, come and go."""

from __future__ import annotations

import base64
import os
import struct
import zlib
from pathlib import Path
from typing import Any

import anyio

from handrail import Input, Media, Read, Run, Send, ToolContext, VisionBackend, Write, hookimpl, tool

print("a plugin that prints when it is imported")


class Treeish(VisionBackend):
    name = "treeish"
    capabilities = frozenset({"accessibility_tree"})


class Planner(VisionBackend):
    name = "planner"
    capabilities = frozenset({"plan_actions"})


@tool(effects=[Run("code", arg="word")], title="Scribble")
async def scribble(word: str, *, context: ToolContext) -> dict[str, Any]:
    """Append a word to scribbled.txt; proof of how often it ran."""
    with (context.cwd / "scribbled.txt").open("a") as file:
        file.write(f"{word}\n")
    return {"wrote": word}


@tool(effects=[])
async def scribble_both(first: str, second: str, *, context: ToolContext) -> dict[str, Any]:
    """Scribble two words, one after the other; each is asked about on its own."""
    results = [await context.call("scribble", {"word": word}) for word in (first, second)]
    return {"statuses": [result.status for result in results]}


@tool(effects=[], timeout=None)
async def nurse(*, context: ToolContext) -> dict[str, Any]:
    """Start a child that sleeps, leave its process id in child.pid, and wait for it."""
    child = await anyio.open_process(["sleep", "600"], stdout=None, stderr=None)
    (context.cwd / "child.pid").write_text(str(child.pid))
    try:
        await child.wait()
    finally:
        child.kill()
        with anyio.CancelScope(shield=True):
            await child.wait()
    return {"exit_code": child.returncode}


@tool(effects=[])
async def count(to: int, *, context: ToolContext) -> dict[str, Any]:
    """Count, saying how far it is, and print in every way there is."""
    for number in range(to):
        context.progress(number / to, f"at {number}")
        context.output("stdout", f"{number}\n")
        await anyio.sleep(0.03)
    print("printed by a tool")
    os.write(1, b"written by a tool\n")
    await anyio.run_process(["echo", "said by a child"], stdout=None)
    return {"counted": to}


@tool(effects=[Read("screen")])
async def pictures(path: str | None = None, *, context: ToolContext) -> dict[str, Any]:
    """A picture as observe_screen gives it, and typed media of every kind."""
    kept = Path(path) if path else context.cwd / "kept.png"
    kept.write_bytes(png())
    return {
        "image_b64": base64.b64encode(png()).decode(),
        "media": [
            Media("image", "image/png", path=kept, text="a red dot"),
            Media("audio", "audio/wav", data=b"RIFF"),
            Media("document", "application/pdf", data=b"%PDF-1.7"),
        ],
    }


@tool(effects=[])
async def lines(to: int) -> str:
    """Many numbered lines."""
    return "".join(f"line {number} \u00e4\u20ac\U0001f600\n" for number in range(to))


@tool(effects=[])
async def surroundings(*, context: ToolContext) -> dict[str, Any]:
    """The names of the variables that children are given."""
    return {"names": sorted(context.host_environment)}


@tool(effects=[])
async def oddities() -> dict[str, Any]:
    """What JSON cannot say."""
    return {"name": "lone \udce4", "ratio": float("nan"), "list": [float("inf")]}


@tool(effects=[Read("tree")], requires={"accessibility_tree"})
async def see_tree() -> dict[str, Any]:
    """There only while the backend reads a tree."""
    return {"seen": True}


@tool(effects=[Input("desktop")], requires={"plan_actions"})
async def plan_it() -> dict[str, Any]:
    """There only while the backend plans."""
    return {"planned": True}


@tool(effects=[Send("network", arg="url")])
async def post(url: str) -> dict[str, Any]:
    """Nothing is sent."""
    return {"sent": url}


@tool(effects=[Write("windows")])
async def arrange() -> dict[str, Any]:
    """Nothing is moved."""
    return {}


def png() -> bytes:
    """One red pixel."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(b"\0\xff\0\0"))
        + chunk(b"IEND", b"")
    )


@hookimpl
def handrail_register_tools() -> list[Any]:
    return [
        scribble,
        scribble_both,
        nurse,
        count,
        pictures,
        lines,
        surroundings,
        oddities,
        see_tree,
        plan_it,
        post,
        arrange,
    ]


@hookimpl
def handrail_register_vision_backends() -> list[type[VisionBackend]]:
    return [Treeish, Planner]

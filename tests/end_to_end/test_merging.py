"""Tree and picture together, on real programs."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio

import handrail
from handrail import Session
from handrail.api.approval import yes

PATIENCE_S = 60.0


async def seen(session: Session, enough: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    with anyio.fail_after(PATIENCE_S):
        while True:
            result = await session.call("observe_screen", {"image": "none"})
            if result.ok and enough(result.wire()):
                return result.wire()
            await anyio.sleep(0.1)


async def start(session: Session, *argv: str) -> subprocess.Popen[bytes]:
    environment = {**os.environ, **(await session.desktop()).environment}
    return subprocess.Popen(  # noqa: ASYNC220 # it returns at once; what it started is ended by its id
        argv, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def texts(result: dict[str, Any]) -> str:
    return " ".join(element["text"] for element in result["ui_elements"])


async def test_a_program_without_a_tree_is_read_by_its_picture(tmp_path: Path):
    config = tmp_path / "handrail.toml"
    config.write_text('backend = "accessibility"\nbackend_fallback = ["ocr"]\n')
    async with handrail.open(desktop="private", confirm=yes, cwd=tmp_path, config=config) as session:
        program = await start(
            session, "xterm", "-fa", "DejaVu Sans Mono", "-fs", "20", "-e", "echo Quarterly; sleep 900"
        )
        try:
            found = await seen(session, lambda result: "Quarterly" in texts(result))
        finally:
            program.kill()
            program.wait()
        assert found["actual_backend"] == "accessibility+ocr"
        # The same backend makes out lines of text and boxes.
        assert "ocr" in {element["source"] for element in found["ui_elements"]} <= {"ocr", "vision"}


async def test_what_both_see_is_one_element_with_both_sources(tmp_path: Path):
    config = tmp_path / "handrail.toml"
    config.write_text('backend = "accessibility"\nbackend_merge = ["ocr"]\n')
    async with handrail.open(desktop="private", confirm=yes, cwd=tmp_path, config=config) as session:
        program = await start(session, "galculator")
        try:
            found = await seen(session, lambda result: any(element.get("also") for element in result["ui_elements"]))
        finally:
            program.kill()
            program.wait()
        (sqrt,) = [element for element in found["ui_elements"] if element["text"] == "sqrt"]
        assert (sqrt["source"], sqrt["role"]) == ("accessibility", "toggle button")
        assert "ocr" in sqrt["also"]

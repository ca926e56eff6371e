"""Results as hosts give them to a model: text, and media beside it."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from handrail import Media, ToolResult, tool
from handrail.artifacts.store import ArtifactStore
from handrail.sanitize.model_output import ModelOutput, build_instructions, build_model_output

PIXEL = b"\x89PNG\r\n\x1a\n" + bytes(16)


@pytest.fixture
def artifacts(tmp_path: Path) -> ArtifactStore:
    return ArtifactStore(tmp_path / "artifacts" / "s")


async def telling(artifacts: ArtifactStore, **keys: Any) -> ModelOutput:
    return await build_model_output(ToolResult(status="success", **keys), artifacts, inline=("image",))


async def test_a_picture_in_base64_is_taken_out_and_shown(artifacts: ArtifactStore) -> None:
    said = await telling(artifacts, image_b64=base64.b64encode(PIXEL).decode(), scale=2)
    assert json.loads(said.text) == said.structure == {"status": "success", "scale": 2}
    assert [(shown.mime_type, shown.data) for shown in said.media] == [("image/png", PIXEL)]


async def test_what_is_not_shown_is_in_a_file_that_the_text_names(artifacts: ArtifactStore) -> None:
    film = Media("video", "video/mp4", open=lambda: b"film", stash={"caption": "a cat"})
    said = await telling(artifacts, media=[film])
    (entry,) = said.structure["media"]
    assert (said.media, entry["text"]) == ((), "caption: a cat")
    assert Path(entry["path"]).read_bytes() == b"film"


async def test_what_cannot_be_read_or_said_is_data_too(artifacts: ArtifactStore, tmp_path: Path) -> None:
    gone = Media("image", "image/png", path=tmp_path / "gone.png")
    said = await telling(artifacts, media=[gone], image_b64="abcde", odd=[float("nan"), "\ud800", {1}])
    assert "is no file" in said.structure["media"][0]["note"]
    assert said.structure["image_b64"] == "abcde"
    assert said.structure["odd"] == [None, "?", [1]]
    assert json.loads(said.text) == said.structure


def test_instructions_have_the_advice_of_the_tools_of_the_platform_each_once() -> None:
    @tool(advice="Look first.")
    async def see() -> None:
        """See."""

    @tool(advice="Look first.")
    async def read() -> None:
        """Read."""

    @tool(advice={"linux": "Slashes.", "win32": "Drives."})
    async def open_path() -> None:
        """Open."""

    @tool(advice="Only there.", platforms=frozenset({"win32"}))
    async def registry() -> None:
        """Look."""

    added = build_instructions([see, read, open_path, registry], "linux").removeprefix(build_instructions([]))
    assert added == "- Look first.\n- Slashes.\n"
    assert build_instructions([registry], "win32").endswith("- Only there.\n")

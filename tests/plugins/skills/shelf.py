"""Skills as tests write them, and sessions that know them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import handrail_cli.hooks
import handrail_skills.hooks
from handrail import Session, Tool, tool
from handrail.testing import ScriptedConfirmer, open_test_session

PLUGINS = {"cli": handrail_cli.hooks, "skills": handrail_skills.hooks}
HANDRAIL = Path(sys.executable).with_name("handrail")
SHIPPED = Path(handrail_skills.hooks.__file__).parent / "shipped"
TOOL = """
from handrail import tool

@tool(description="Count the letters of a text.")
async def count_letters(text: str) -> dict[str, int]:
    return {"letters": len(text)}
"""


@tool(loadable=True)
async def pool_tool() -> str:
    """Waits in the pool."""
    return "from the pool"


def write(shelf: Path, name: str = "tidy", *, head: str = "", body: str = "Do it well.", **files: str) -> Path:
    """A skill on a shelf; `files` by their path, with two underscores for a slash."""
    folder = shelf / name
    folder.mkdir(parents=True, exist_ok=True)
    text = f"---\nname: {name}\ndescription: Tidies up.\n{head}---\n{body}\n"
    (folder / "SKILL.md").write_text(text, encoding="utf-8")
    for path, content in files.items():
        place = folder / path.replace("__", "/").replace("_dot_", ".")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(content, encoding="utf-8")
    return folder


def own(folder: Path) -> Path:
    """The person's own shelf of a test's folder."""
    return folder / "state" / "config" / "skills"


def enable(folder: Path, *names: str, verb: str = "enable") -> subprocess.CompletedProcess[str]:
    """As a person does it."""
    return run(folder, "skills", verb, *names)


def run(folder: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    """The program in the test's folder."""
    (folder / "work").mkdir(exist_ok=True)
    around = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder / "home"),
        "HANDRAIL_HOME": str(folder / "state"),
        "HANDRAIL_PLUGINS": "cli,skills",
    }
    return subprocess.run(
        [HANDRAIL, *words], cwd=folder / "work", env=around, capture_output=True, text=True, timeout=60
    )


def rows(folder: Path) -> Mapping[str, Any]:
    """What `handrail skills list` says, by name."""
    return {row["name"]: row for row in json.loads(run(folder, "skills", "list", "--json").stdout)}


@asynccontextmanager
async def session_in(
    folder: Path,
    *enabled: str,
    tools: tuple[Tool, ...] = (pool_tool,),
    confirm: ScriptedConfirmer | None = None,
    **more: Any,
) -> AsyncGenerator[Session]:
    """A session whose settings enable these skills by name; `more` are tables of settings."""
    settings = {"skills": {"enabled": list(enabled)}, "security": {"trust": ["cli"]}, **more}
    async with open_test_session(
        plugins=PLUGINS, folder=folder, tools=tools, settings=settings, confirm=confirm
    ) as session:
        yield session


async def names(session: Session) -> list[str]:
    return [tool.name for tool in await session.tools()]

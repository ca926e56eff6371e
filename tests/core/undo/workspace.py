"""A workspace with files in it, tools that change them, and what is there."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import anyio
import anyio.to_thread

from handrail import Delete, Run, Session, Tool, ToolContext, Write, tool

OpenSession = Callable[..., AbstractAsyncContextManager[Session]]


@tool(effects=[Write("file", arg="path")])
async def put(path: str, text: str, *, context: ToolContext) -> None:
    """Write a file."""
    target = context.cwd / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text)


@tool(effects=[Write("file", arg="path")])
async def put_and_wait(path: str, *, context: ToolContext) -> None:
    """Write a file, and be still at it for a minute."""
    (context.cwd / path).write_text("half")
    await anyio.sleep(60)


@tool(effects=[Delete("file", arg="path")])
async def take(path: str, *, context: ToolContext) -> None:
    """Delete a file or folder."""
    target = context.cwd / path
    shutil.rmtree(target) if target.is_dir() and not target.is_symlink() else target.unlink()


@tool(effects=[Run("code", arg="code")])
async def act(code: str, *, context: ToolContext) -> None:
    """Run Python code."""
    given = [sys.executable, "-c", code]
    done = await anyio.to_thread.run_sync(
        lambda: subprocess.run(given, cwd=context.cwd, capture_output=True, text=True)
    )
    assert done.returncode == 0, done.stderr


@tool(effects=[Run("steps")])
async def both(*, context: ToolContext) -> None:
    """Change two files by calls of another tool."""
    for path in ("one.txt", "two.txt"):
        assert (await context.call("put", {"path": path, "text": "by both"})).ok


TOOLS: tuple[Tool, ...] = (put, put_and_wait, take, act, both)


def seen(folder: Path) -> dict[str, object]:
    """Return the files of a folder by path: mode and contents, or the target of a link."""
    found: dict[str, object] = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        mode = stat.S_IMODE(status.st_mode)
        name = str(path.relative_to(folder))
        if stat.S_ISREG(status.st_mode):
            found[name] = (mode, path.read_bytes())
        else:
            found[name] = os.readlink(path) if path.is_symlink() else (mode, stat.S_IFMT(status.st_mode))
    return found


def make_repository(folder: Path) -> None:
    """Make the folder a repository of git."""
    subprocess.run(["git", "init", "-q", str(folder)], check=True)

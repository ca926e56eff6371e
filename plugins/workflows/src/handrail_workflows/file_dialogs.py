"""The tools `save_dialog` and `open_dialog`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from handrail import Downstream, InvalidArguments, NotFound, Read, Run, ToolContext, ToolError, Write, tool
from handrail.text import fold_text
from handrail_workflows import file_chooser
from handrail_workflows.steps import WorkflowSteps, wait_for_value
from handrail_workflows.windows import list_windows

LINUX_ONLY = frozenset({"linux"})
# Save as, then plain save where a program has no such key: a document that has a name keeps its own file.
SAVE_CHORDS = ("ctrl+shift+s", "ctrl+s")
OPEN_CHORDS = ("ctrl+o",)
# How long a program may take to write or read a file once its dialog is gone.
WRITE_TIMEOUT_S = 20.0
TITLE_TIMEOUT_S = 5.0


class _NamedFile(BaseModel):
    """A file, by its name and the folder it is in."""

    model_config = ConfigDict(extra="forbid", defer_build=True)

    filename: Annotated[str, Field(description="Name or path.")]
    directory: Annotated[str | None, Field(description="Its folder.")] = None

    @model_validator(mode="after")
    def _whole(self) -> Self:
        """Join the folder and the name into one path, which is then judged."""
        if self.directory is not None:
            self.filename, self.directory = os.path.join(self.directory, self.filename), None
        return self


class SaveRequest(_NamedFile):
    """File to save to."""

    overwrite: Annotated[bool, Field(description="Replace a file that is there.")] = False


class OpenRequest(_NamedFile):
    """File to open."""


@tool(
    layer="workflow",
    title="Save by dialog",
    effects=[Write("file", arg="filename"), Run("steps")],
    platforms=LINUX_ONLY,
    exclusive="desktop",
    timeout=120,
    describe=lambda given: f"Save what the active window shows as {given.filename}",
)
async def save_dialog(given: SaveRequest, context: ToolContext) -> Mapping[str, Any]:
    """Save the active window's document by its program's dialog, and check the file. Returns path, bytes, answered, steps_taken."""
    path = context.judged_path(given.filename, "write")
    if path.is_dir():
        raise InvalidArguments(f"{given.filename!r} is a folder", hint="give the file's name, too")
    before = _file_stamp(path)
    if before is not None and not given.overwrite:
        raise InvalidArguments(f"{given.filename!r} is there already", hint="choose another name, or set overwrite")
    if not path.parent.is_dir():
        raise NotFound(f"there is no folder {str(path.parent)!r}", hint="make it first")
    steps = WorkflowSteps(context)
    with steps.told():
        chooser = await file_chooser.open_file_chooser(steps, SAVE_CHORDS)
        beside = _stamp_neighbours(path)

        async def written() -> bool:
            return _file_stamp(path) not in (None, before)

        try:
            await chooser.name(str(path))
            # Not every program asks before it replaces a file.
            if before is None and _file_stamp(path) is not None:
                raise Downstream(
                    f"{given.filename!r} has come there meanwhile; nothing was saved", hint="choose another name"
                )
            await file_chooser.complete_file_dialog(chooser, replace=before is not None, done=written, spared=beside)
        except ToolError:
            await chooser.give_up()
            raise
        saved = await _wait_until_saved(path, before, beside)
    result: dict[str, Any] = {
        "path": str(saved),
        "bytes": saved.stat().st_size,
        "steps_taken": steps.taken,
        "effect": "confirmed",
        "description": f"saved {saved.name}",
    }
    if chooser.answered:
        result["answered"] = chooser.answered
    return result if saved == path else {**result, "note": f"the program has added an ending to {path.name!r}"}


@tool(
    layer="workflow",
    title="Open by dialog",
    effects=[Read("file", arg="filename"), Run("steps")],
    platforms=LINUX_ONLY,
    exclusive="desktop",
    timeout=90,
    describe=lambda given: f"Open {given.filename} in the active window's program",
)
async def open_dialog(given: OpenRequest, context: ToolContext) -> Mapping[str, Any]:
    """Open a file by the dialog of the active window's program. Returns path, window_title, effect, steps_taken."""
    path = context.judged_path(given.filename)
    if not path.exists():
        raise NotFound(f"there is no file {given.filename!r}", hint="see find_files")
    if path.is_dir():
        raise InvalidArguments(f"{given.filename!r} is a folder", hint="give a file in it")
    steps = WorkflowSteps(context)
    with steps.told():
        titles = {window.title for window in await list_windows(steps)}
        chooser = await file_chooser.open_file_chooser(steps, OPEN_CHORDS)

        async def named() -> str | None:
            return next((w.title for w in await list_windows(steps) if is_named_in_title(w.title, path)), None)

        async def done() -> bool:
            return await named() is not None

        try:
            await chooser.name(str(path))
            await file_chooser.complete_file_dialog(chooser, replace=False, done=done)
        except ToolError:
            await chooser.give_up()
            raise
        title = await wait_for_value(named, TITLE_TIMEOUT_S)
        if title is None:
            new = [w.title for w in await list_windows(steps) if w.title not in titles]
            title = new[0] if len(new) == 1 else None
            effect, note = "unverified", f"the dialog closed; no window names {path.name!r}"
        else:
            effect, note = "confirmed", f"the window {title!r} names it"
    return {
        "path": str(path),
        "window_title": title,
        "steps_taken": steps.taken,
        "effect": effect,
        "evidence": [note],
    }


def is_named_in_title(title: str, path: Path) -> bool:
    """Return True if a window's title contains the file's name, with or without its extension."""
    return fold_text(path.name) in fold_text(title) or fold_text(path.stem) in fold_text(title)


FileStamp = tuple[int, int, int]


def _file_stamp(path: Path) -> FileStamp | None:
    """Return the file's inode, modification time in nanoseconds and size; None if it does not exist.

    A new value means that the file was written.
    """
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def _stamp_neighbours(path: Path) -> dict[str, FileStamp | None]:
    """Return the stamps of the files whose name is this one with an extension added."""
    with os.scandir(path.parent) as entries:
        return {
            entry.name: _file_stamp(Path(entry.path)) for entry in entries if entry.name.startswith(f"{path.name}.")
        }


async def _wait_until_saved(path: Path, before: FileStamp | None, beside: Mapping[str, FileStamp | None]) -> Path:
    """Wait until the written file has stopped changing, and return its path.

    Raises `Downstream` if none was written.
    """
    last: list[FileStamp | None] = [None]

    async def steady() -> Path | None:
        found = path if _file_stamp(path) not in (None, before) else _find_added_file(path, beside)
        now = _file_stamp(found) if found is not None else None
        same, last[0] = now is not None and now == last[0], now
        return found if same else None

    found = await wait_for_value(steady, WRITE_TIMEOUT_S)
    if found is None:
        raise Downstream(
            f"the dialog closed, but {str(path)!r} was not written",
            hint="look at the window (observe_screen): the program may say why",
        )
    return found


def _find_added_file(path: Path, beside: Mapping[str, FileStamp | None]) -> Path | None:
    new = [name for name, stamp in _stamp_neighbours(path).items() if beside.get(name) != stamp]
    return path.with_name(new[0]) if len(new) == 1 else None

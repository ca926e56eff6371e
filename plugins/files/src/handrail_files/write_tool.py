"""The tool `write_file`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import anyio.to_thread
from pydantic import BaseModel, ConfigDict, Field

from handrail import Downstream, EditConfirmation, InvalidArguments, NotFound, ToolContext, Verdict, Write, tool
from handrail.fs import safe_open
from handrail_files.diffs import RenderedDiff, diff_contents, format_diff_name
from handrail_files.file_content import (
    MAX_FILE_BYTES,
    FileContent,
    TextEncoding,
    describe_hard_links,
    normalize_line_ends,
    read_if_exists,
    restore_line_ends,
)
from handrail_files.known_versions import KnownVersions
from handrail_files.omissions import find_placeholder
from handrail_files.read_permission import ReadPermission

TITLE = "Write a file"


class NewFile(BaseModel):
    """Parameters of a file write."""

    model_config = ConfigDict(extra="forbid", defer_build=True)

    file_path: Annotated[str, Field(min_length=1, description="Path of the file.")]
    content: Annotated[str, Field(description="The whole new content.")]
    create_dirs: Annotated[bool, Field(description="Make missing folders above it.")] = False
    overwrite: Annotated[bool, Field(description="Replace a file that is there.")] = True


@dataclass(frozen=True, slots=True)
class WritePlan:
    """Content to write, and the current one: text, the bytes of a binary file, or None if the file does not exist."""

    path: Path
    data: bytes
    before: FileContent | bytes | None
    encoding: TextEncoding
    diff: RenderedDiff


def _plan_write(new: NewFile, path: Path) -> WritePlan:
    if new.file_path.endswith("/"):
        raise Downstream(f"{new.file_path!r} is the name of a folder", hint="give the file a name in it")
    before = read_if_exists(path, new.file_path)
    if before is not None and not new.overwrite:
        raise Downstream(f"{new.file_path!r} is there already", hint="nothing was changed; overwrite=true replaces it")
    old = before.text if isinstance(before, FileContent) else ""
    if (found := find_placeholder(new.content, old)) is not None:
        raise InvalidArguments(
            f"write_file: line {found[0]} of content stands for text that was left out: {found[1]!r}; nothing was written",
            details={"line": found[0]},
        )
    encoding, text = _select_encoding(before), new.content
    if isinstance(before, FileContent):
        text = restore_line_ends(old, text)
        data = encoding.encode(text)
    else:
        data = _encode_utf8(text)
    if len(data) > MAX_FILE_BYTES:
        raise InvalidArguments(f"write_file: content has {len(data)} bytes; at most {MAX_FILE_BYTES} are written")
    return WritePlan(path, data, before, encoding, _build_diff(before, text, data, new.file_path))


def _select_encoding(before: FileContent | bytes | None) -> TextEncoding:
    return before.encoding if isinstance(before, FileContent) else TextEncoding()


def _encode_utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as exc:
        raise InvalidArguments(
            f"write_file: content holds {exc.object[exc.start]!r}, half of a character, at position {exc.start}"
        ) from exc


def _build_diff(before: FileContent | bytes | None, text: str, data: bytes, name: str) -> RenderedDiff:
    if isinstance(before, bytes):
        said = f"{len(before)} bytes that are no text are replaced by {len(data)} bytes of text"
        return RenderedDiff(said, f"{said}:\n{diff_contents('', text, format_diff_name(name)).asked}")
    return diff_contents(
        normalize_line_ends(before.text) if before is not None else "",
        normalize_line_ends(text),
        format_diff_name(name),
    )


def _build_confirmation(new: NewFile, verdict: Verdict) -> EditConfirmation:
    path = get_written_path(verdict)
    title = f"Write {new.file_path}"
    if path is None:
        return EditConfirmation(title, new.file_path, "")
    try:
        plan = _plan_write(new, path)
    except (Downstream, NotFound, InvalidArguments) as exc:
        if is_workspace_change_only(verdict):
            raise
        return EditConfirmation(title, str(path), f"(as things are, this cannot be done: {exc})")
    return EditConfirmation(title, str(path), plan.diff.asked)


def get_written_path(verdict: Verdict) -> Path | None:
    """Return the one real file that a judged call would write; None unless it is exactly one."""
    real = {touch.what for part in verdict.parts for touch in part.touches if touch.kind == "write"}
    return Path(real.pop()) if len(real) == 1 else None


def is_workspace_change_only(verdict: Verdict) -> bool:
    """Return True if the call needs approval only because it changes the workspace.

    It may read there without a prompt.
    """
    return all(reason.code == "write_inside" for reason in verdict.reasons)


def check_approved(verdict: Verdict, diff: RenderedDiff, text: str) -> None:
    """Raise `Downstream` if the user approved a change other than the one that would be made now."""
    shown = verdict.approved
    if isinstance(shown, EditConfirmation) and shown.diff and shown.diff != diff.asked:
        raise Downstream(
            f"{text!r} was changed by somebody else while a person was asked; nothing was written",
            hint="read it again and repeat the change",
            details={"reason": "stale"},
        )


def _describe_undo(new: NewFile, result: Mapping[str, Any]) -> str:
    if result["created"]:
        return f"remove {result['path']}, which was not there before"
    return f"take back in {result['path']} what the diff of this call's result says"


@tool(
    layer="file",
    title=TITLE,
    effects=[Write("file", arg="file_path")],
    timeout=60,
    describe=lambda new: f"Write {new.file_path} ({len(new.content)} characters)",
    confirmation=_build_confirmation,
    undo=_describe_undo,
)
async def write_file(new: NewFile, context: ToolContext) -> Mapping[str, Any]:
    """Write a whole file. Returns its real path, bytes and the diff.

    One that is there keeps its permissions, encoding and line ends. To change a part of a file use edit_file.
    """
    path = context.judged_path(new.file_path, "write")
    known: KnownVersions = await context.service("known_files")
    plan = await anyio.to_thread.run_sync(partial(_plan_write, new, path), abandon_on_cancel=True)
    before = plan.before
    if isinstance(before, FileContent):
        known.check(path, new.file_path, before.status, before.data)
    check_approved(context.verdict, plan.diff, new.file_path)
    context.checkpoint()
    expected = safe_open.ExpectedState(before.status) if isinstance(before, FileContent) else None
    write = partial(
        safe_open.replace_file,
        path,
        plan.data,
        overwrite=new.overwrite,
        create_dirs=new.create_dirs,
        expected=expected,
        within=context.workspace,
    )
    # It is not left alone when the call is stopped: what it does is done, or not, when the call ends.
    try:
        status = await anyio.to_thread.run_sync(write)
    except NotFound as exc:
        raise NotFound(str(exc), hint=f"{exc.hint}; create_dirs=true makes it") from exc
    known.note(path, new.file_path, status, plan.data)
    # What was there is only told to those who may read it.
    diff = {"diff": plan.diff.result} if before is None or await ReadPermission(context).is_open(str(path)) else {}
    return {
        "path": context.shown_path(path),
        "bytes": len(plan.data),
        "created": before is None,
        **diff,
        **_build_notes(plan, status),
    }


def _build_notes(plan: WritePlan, status: os.stat_result) -> Mapping[str, str]:
    told: list[str] = []
    if isinstance(plan.before, FileContent) and plan.before.data == plan.data:
        told.append("the file had this content already")
    if isinstance(plan.before, FileContent) and (names := describe_hard_links(plan.before.status, status)):
        told.append(names)
    return {"encoding": plan.encoding.name, **({"note": "; ".join(told)} if told else {})}

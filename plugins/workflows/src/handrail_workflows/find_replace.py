"""The tool `find_and_replace_in_files`."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePath
from typing import Annotated, Any

import anyio.to_thread
from pydantic import Field

from handrail import Downstream, InvalidArguments, Read, Run, ToolContext, ToolError, tool
from handrail_workflows.steps import FileTextService, WorkflowSteps

MAX_FILES = 1_000
# Letters of all diffs together.
MAX_DIFF_CHARS = 40_000
# What makes a pattern more than a name.
WILDCARD_PATTERN = re.compile(r"[*?\[{]")


@dataclass(frozen=True, slots=True)
class FileChange:
    """Planned change of a file: `old` in it becomes `new`, at `count` places."""

    path: str
    old: str
    new: str
    count: int
    diff: str


@tool(
    layer="workflow",
    title="Find and replace in files",
    effects=[Read("folder", arg="path"), Run("steps")],
    timeout=300,
    loadable=True,
    profiles=frozenset({"files", "desktop"}),
    describe=lambda given: (
        f"{'Show what it would be to replace' if given.dry_run else 'Replace'} {given.find!r} by {given.replace!r} in "
        f"{given.pattern} under {given.path}"
    ),
)
async def find_and_replace_in_files(
    pattern: Annotated[
        str, Field(min_length=1, description="Files by name: `*.py`, `src/**/*.md`; without `*` the whole name.")
    ],
    find: Annotated[str, Field(min_length=1, description="Text to find.")],
    replace: Annotated[str, Field(description=r"What takes its place; with regex, \1 is the first group.")],
    path: Annotated[str, Field(min_length=1, description="The folder.")] = ".",
    dry_run: Annotated[bool, Field(description="Only show what would change.")] = True,
    regex: Annotated[bool, Field(description="find is a regular expression (RE2).")] = False,
    *,
    context: ToolContext,
) -> Mapping[str, Any]:
    """Replace a text in many files. Returns changes (path, replacements, diff), skipped, total_replacements. Writes only with dry_run=false.

    Files that .gitignore names, hidden and binary ones are left out. Line ends, encodings, permissions and links stay as they are.
    """
    changed = _build_replacer(find, replace, regex=regex)
    steps = WorkflowSteps(context)
    with steps.told():
        texts: FileTextService = await context.service("file_texts")
        changes: list[FileChange] = []
        skipped: list[dict[str, str]] = []
        for each in await _find_files(steps, pattern, path, None if regex or "\n" in find else find):
            try:
                before = await texts.read(context.cwd / each, each)
            except ToolError as exc:
                skipped.append({"path": each, "reason": str(exc)})
                continue
            # A thread, so that no text is too long for the call to be stopped.
            made = partial(_compute_change, each, before, changed, texts.diff)
            if (change := await anyio.to_thread.run_sync(made, abandon_on_cancel=True)) is not None:
                changes.append(change)
        if not dry_run:
            for change in changes:
                context.checkpoint()
                file = str(Path(context.cwd, change.path))
                await steps.take("edit_file", file_path=file, old_string=change.old, new_string=change.new)
    return {
        "changes": _summarize_changes(changes),
        "skipped": skipped,
        "total_replacements": sum(change.count for change in changes),
        "dry_run": dry_run,
        "steps_taken": steps.taken,
    }


async def _find_files(steps: WorkflowSteps, pattern: str, path: str, text: str | None) -> list[str]:
    """Find the files with this name pattern, and with the text if one is given.

    A pattern without a wildcard is a complete name here: `find_files` would match it as a substring, and select more
    files than intended. Raises `Downstream` if too many files match.
    """
    pattern = pattern.removeprefix("./")
    named: dict[str, Any] = {"pattern": pattern, "path": path, "max_results": MAX_FILES}
    found = await steps.take("find_files", **named, **({"search_text": text} if text is not None else {}))
    if found["truncated"] and text is not None:
        # There may be more lines with the text than files.
        found = await steps.take("find_files", **named)
    if found["truncated"]:
        raise Downstream(f"more than {MAX_FILES} files fit", hint="narrow pattern or path")
    paths = dict.fromkeys(match["path"] for match in found["matches"])
    if WILDCARD_PATTERN.search(pattern) is not None:
        return list(paths)
    return [each for each in paths if f"/{PurePath(each).as_posix()}".endswith(f"/{pattern}")]


def _compute_change(
    path: str, before: str, changed: Callable[[str], tuple[str, int]], diff: Callable[[str, str, str], str]
) -> FileChange | None:
    """Compute the change of a file; None if it stays the same."""
    after, count = changed(before)
    return (
        FileChange(path, *_changed_lines(before, after), count, diff(before, after, path)) if after != before else None
    )


def _changed_lines(before: str, after: str) -> tuple[str, str]:
    """Return the old and the new lines from the first changed one to the last.

    Both complete texts are returned if the old lines also occur elsewhere, or if there are none.
    """
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    shorter = min(len(old), len(new))
    head = next((i for i in range(shorter) if old[i] != new[i]), shorter)
    tail = next((i for i in range(shorter - head) if old[-1 - i] != new[-1 - i]), shorter - head)
    was = "".join(old[head : len(old) - tail])
    if was and before.count(was) == 1:
        return was, "".join(new[head : len(new) - tail])
    return before, after


def _build_replacer(find: str, replace: str, *, regex: bool) -> Callable[[str], tuple[str, int]]:
    """Return a function that replaces in a text, and returns the new text and the number of replacements.

    Raises `InvalidArguments` for an invalid regular expression, or a replacement that names a missing group.
    """
    # Who writes a carriage return means the text as it is.
    in_ends = _apply_verbatim if "\r" in find or (regex and r"\r" in find) else _apply_keeping_line_ends
    if not regex:
        return lambda text: in_ends(text, lambda view: (view.replace(find, replace), view.count(find)))
    # Linear in time, whatever the pattern.
    re2: Any = importlib.import_module("re2")
    try:
        compiled: Any = re2.compile(f"(?m){find}")
        groups = int(compiled.groups)
    except re2.error as exc:
        raise InvalidArguments(f"find is no regular expression of RE2: {exc}") from exc
    for number in re.findall(r"\\(\d+)", replace):
        if int(number) > groups:
            raise InvalidArguments(f"replace names group {number}; find has {groups}")
    return lambda text: in_ends(text, lambda view: compiled.subn(replace, view))


def _apply_verbatim(text: str, change: Callable[[str], tuple[str, int]]) -> tuple[str, int]:
    return change(text)


def _apply_keeping_line_ends(text: str, change: Callable[[str], tuple[str, int]]) -> tuple[str, int]:
    """Apply the change, with CRLF as line feeds while it is applied if all line ends are CRLF.

    Patterns are usually written with line feeds.
    """
    if "\r\n" in text and text.count("\r\n") == text.count("\n"):
        after, count = change(text.replace("\r\n", "\n"))
        return after.replace("\r\n", "\n").replace("\n", "\r\n"), count
    return change(text)


def _summarize_changes(changes: list[FileChange]) -> list[dict[str, Any]]:
    told: list[dict[str, Any]] = []
    left = MAX_DIFF_CHARS
    for change in changes:
        diff = change.diff
        shown = diff if len(diff) <= left else f"{diff[:left]}\n… [cut]"
        left = max(0, left - len(diff))
        told.append({"path": change.path, "replacements": change.count, "diff": shown})
    return told

"""The tool `find_and_replace_in_files`."""

from __future__ import annotations

import difflib
import importlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from handrail import Downstream, InvalidArguments, Read, Run, ToolContext, ToolError, tool
from handrail_workflows.steps import Steps, Texts

MOST_FILES = 1_000
# Letters of all diffs together.
SHOWN = 40_000


@dataclass(frozen=True, slots=True)
class Change:
    """One file's text before and after, and how many places differ."""

    path: str
    before: str
    after: str
    count: int

    @property
    def diff(self) -> str:
        old, new = self.before.splitlines(), self.after.splitlines()
        return "\n".join(difflib.unified_diff(old, new, f"a/{self.path}", f"b/{self.path}", n=2, lineterm=""))

    @property
    def stretch(self) -> tuple[str, str]:
        """The lines from the first that differs to the last, before and after; the whole text where they occur elsewhere, too."""
        old, new = self.before.splitlines(keepends=True), self.after.splitlines(keepends=True)
        shorter = min(len(old), len(new))
        head = next((i for i in range(shorter) if old[i] != new[i]), shorter)
        tail = next((i for i in range(shorter - head) if old[-1 - i] != new[-1 - i]), shorter - head)
        was = "".join(old[head : len(old) - tail])
        if was and self.before.count(was) == 1:
            return was, "".join(new[head : len(new) - tail])
        return self.before, self.after


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
        str, Field(min_length=1, description="Files by name, as for find_files: `*.py`, `src/**/*.md`.")
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
    changed = _replacer(find, replace, regex=regex)
    steps = Steps(context)
    with steps.told():
        named: dict[str, Any] = {"pattern": pattern, "path": path, "max_results": MOST_FILES}
        if not regex and "\n" not in find:
            named["search_text"] = find
        found = await steps.take("find_files", **named)
        if found["truncated"]:
            raise Downstream(f"more than {MOST_FILES} places fit", hint="narrow pattern or path")
        texts: Texts = await context.service("file_texts")
        paths = list(dict.fromkeys(match["path"] for match in found["matches"]))
        changes: list[Change] = []
        skipped: list[dict[str, str]] = []
        for each in paths:
            try:
                before = await texts.read(context.cwd / each, each)
            except ToolError as exc:
                skipped.append({"path": each, "reason": str(exc)})
                continue
            after, count = changed(before)
            if after != before:
                changes.append(Change(each, before, after, count))
        if not dry_run:
            for change in changes:
                context.checkpoint()
                old, new = change.stretch
                await steps.take(
                    "edit_file", file_path=str(Path(context.cwd, change.path)), old_string=old, new_string=new
                )
    return {
        "changes": _told(changes),
        "skipped": skipped,
        "total_replacements": sum(change.count for change in changes),
        "dry_run": dry_run,
        "steps_taken": steps.taken,
    }


def _replacer(find: str, replace: str, *, regex: bool) -> Callable[[str], tuple[str, int]]:
    """What makes of a text the new one, and the number of places."""
    if not regex:
        return lambda text: _with_ends(text, lambda view: (view.replace(find, replace), view.count(find)))
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
    return lambda text: _with_ends(text, lambda view: compiled.subn(replace, view))


def _with_ends(text: str, change: Callable[[str], tuple[str, int]]) -> tuple[str, int]:
    """The change on a text whose lines all end alike is made as if they ended in a line feed, as people write patterns."""
    if "\r\n" in text and text.count("\r\n") == text.count("\n"):
        after, count = change(text.replace("\r\n", "\n"))
        return after.replace("\n", "\r\n"), count
    return change(text)


def _told(changes: list[Change]) -> list[dict[str, Any]]:
    told: list[dict[str, Any]] = []
    left = SHOWN
    for change in changes:
        diff = change.diff
        shown = diff if len(diff) <= left else f"{diff[:left]}\n… [cut]"
        left = max(0, left - len(diff))
        told.append({"path": change.path, "replacements": change.count, "diff": shown})
    return told

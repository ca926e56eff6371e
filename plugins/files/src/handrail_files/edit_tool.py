"""The tool `edit_file`."""

from __future__ import annotations

import os
import re
from array import array
from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import anyio.to_thread
from pydantic import BaseModel, ConfigDict, Field

from handrail import (
    EditConfirmation,
    InvalidArguments,
    NotFound,
    Read,
    ToolContext,
    ToolError,
    Variation,
    Verdict,
    Write,
    tool,
)
from handrail.fs import safe_open
from handrail.fs.name_suggestions import describe_similar_names
from handrail_files.diffs import ChangedSpan, RenderedDiff, diff_bytes_span, diff_text_span, format_diff_name
from handrail_files.file_content import (
    LINE_END,
    FileContent,
    TextEncoding,
    describe_hard_links,
    find_main_line_end,
    has_cr_line_ends,
    normalize_line_ends,
    read_content,
)
from handrail_files.known_versions import KnownVersions
from handrail_files.nearest_block import find_nearest_block
from handrail_files.omissions import find_placeholder
from handrail_files.text_match import MOST_SHOWN, MatchSet, TextMatch, check_length, find_matches
from handrail_files.text_reader import CUT_SUFFIX
from handrail_files.time_limit import TimeLimit
from handrail_files.write_tool import check_approved, get_written_path, is_workspace_change_only

NUMBERED_LINE = re.compile(r"\s*\d+\t")
# Seconds that finding what to change may take: in the call, and for the question about it.
PLANNING_S = 50.0
QUESTION_S = 8.0


class EditRequest(BaseModel):
    """Parameters of a text replacement in a file."""

    model_config = ConfigDict(extra="forbid", defer_build=True)

    file_path: Annotated[str, Field(min_length=1, description="Path of the file.")]
    old_string: Annotated[
        str, Field(description="The text to replace, without line numbers, with enough around it to be unique.")
    ]
    new_string: Annotated[str, Field(description="What takes its place.")]
    replace_all: Annotated[bool, Field(description="Replace every occurrence.")] = False
    expected_replacements: Annotated[int | None, Field(ge=1, description="Replace exactly so many, or none.")] = None


@dataclass(frozen=True, slots=True)
class EditPlan:
    """Change as it would be made now.

    `before` is None for a new file; `lines` are the first and last changed line after the change, counted from 1.
    """

    path: Path
    before: FileContent | None
    data: bytes
    diff: RenderedDiff
    strategy: str
    replacements: int
    lines: tuple[int, int]


def _plan_edit(edit: EditRequest, path: Path, limit: TimeLimit) -> EditPlan:
    if edit.old_string == edit.new_string:
        raise InvalidArguments("edit_file: old_string and new_string are equal; there is nothing to change")
    try:
        content = read_content(path, edit.file_path)
    except NotFound as exc:
        if not edit.old_string:
            return _plan_new_content(edit, path, None)
        raise NotFound(f"there is no file {edit.file_path!r}", hint=describe_similar_names(path)) from exc
    if not edit.old_string:
        if not content.text:
            return _plan_new_content(edit, path, content)
        raise InvalidArguments(
            f"edit_file: old_string is empty, which fits an empty or missing file only; {edit.file_path!r} has text in it"
        )
    return _plan_bytes_replacement(edit, path, content, limit) or _plan_text_replacement(edit, path, content, limit)


def _plan_new_content(edit: EditRequest, path: Path, before: FileContent | None) -> EditPlan:
    encoding = before.encoding if before else TextEncoding()
    text = edit.new_string
    diff = diff_text_span("", text, ChangedSpan(0, 0, len(text)), format_diff_name(edit.file_path))
    return EditPlan(path, before, encoding.encode(text), diff, "new_content", 1, (1, _count_lines(text)))


def _plan_bytes_replacement(edit: EditRequest, path: Path, content: FileContent, limit: TimeLimit) -> EditPlan | None:
    """Plan the change on the bytes alone, or return None if they do not suffice.

    They suffice if the file is UTF-8 with plain line ends and the text occurs exactly, as often as expected.
    """
    data = content.data
    if (
        content.encoding.codec != "utf-8"
        or "\r" in edit.old_string
        or (b"\r" in data and (b"\r\n" in data or b"\n" not in data))
    ):
        return None
    try:
        old, new = edit.old_string.encode(), edit.new_string.replace("\r\n", "\n").encode()
    except UnicodeEncodeError:
        return None
    expected = edit.expected_replacements
    several = edit.replace_all or (expected or 1) > 1
    mark = len(content.encoding.mark)
    start, count = data.find(old, mark), data.count(old, mark)
    # Where it occurs in itself, it is not clear how often.
    only = several or data.find(old, start + 1) < 0
    if start < 0 or not only or count != (expected or (count if several else 1)):
        return None
    if find_placeholder(edit.new_string, edit.old_string, limit=limit) is not None:
        return None
    check_length(len(data) + count * (len(new) - len(old)))
    old_end = start + len(old)
    for _ in range(count - 1):
        old_end = data.find(old, old_end) + len(old)
    changed = new if count == 1 else data[start:old_end].replace(old, new)
    after = b"".join((data[:start], changed, data[old_end:]))
    new_end = start + len(changed)
    first = data.count(b"\n", 0, start) + 1
    last = first + changed.removesuffix(b"\n").count(b"\n")
    diff = diff_bytes_span(
        data, after, ChangedSpan(start, old_end, new_end), format_diff_name(edit.file_path), first=first, mark=mark
    )
    return EditPlan(path, content, after, diff, "exact", count, (first, last))


def _plan_text_replacement(edit: EditRequest, path: Path, content: FileContent, limit: TimeLimit) -> EditPlan:
    returns = has_cr_line_ends(content.text)
    text = normalize_line_ends(content.text)
    pairs = "\r\n" in text
    view = text.replace("\r\n", "\n") if pairs else text
    old, new = edit.old_string.replace("\r\n", "\n"), edit.new_string.replace("\r\n", "\n")
    if returns:
        old, new = old.replace("\r", "\n"), new.replace("\r", "\n")
    if (stands := find_placeholder(new, old, view, limit=limit)) is not None:
        raise InvalidArguments(
            f"edit_file: line {stands[0]} of new_string stands for text that was left out: {stands[1]!r}; nothing was written",
            details={"line": stands[0]},
        )
    found = find_matches(view, old, new, limit, several=_changes_several(edit))
    if found is None:
        raise _no_match_error(edit, view, old)
    matches = _select_matches(edit, found, view)
    if pairs:
        matches = _map_to_file_text(text, view, matches, limit)
    after = _apply_matches(text, matches)
    start, old_end = matches[0].start, matches[-1].end
    new_end = len(after) - (len(text) - old_end)
    first = text.count("\n", 0, start) + 1
    last = first + max(_count_lines(after[start:new_end]) - 1, 0)
    diff = diff_text_span(text, after, ChangedSpan(start, old_end, new_end), format_diff_name(edit.file_path))
    data = content.encoding.encode(after.replace("\n", "\r") if returns else after)
    return EditPlan(path, content, data, diff, found.strategy, len(matches), (first, last))


def _changes_several(edit: EditRequest) -> bool:
    return edit.replace_all or (edit.expected_replacements or 1) > 1


def _select_matches(edit: EditRequest, found: MatchSet, view: str) -> tuple[TextMatch, ...]:
    """Return the occurrences to replace; `InvalidArguments` if it is ambiguous which ones are to be replaced."""
    expected = edit.expected_replacements
    if found.count == (expected or (found.count if _changes_several(edit) else 1)):
        return found.matches
    lines = [view.count("\n", 0, match.start) + 1 for match in found.matches[:MOST_SHOWN]]
    more = f" and {found.count - MOST_SHOWN} more" if found.count > MOST_SHOWN else ""
    how = "" if found.strategy == "exact" else f" (by {found.strategy})"
    wanted = f"{expected} were expected" if expected else "one was expected"
    raise InvalidArguments(
        f"edit_file: old_string occurs {found.count} times in {edit.file_path!r}{how}, on lines {', '.join(map(str, lines))}{more}; "
        f"{wanted}, nothing was written",
        hint="take more of the text around the one that is meant, or set replace_all",
        details={"reason": "ambiguous", "lines": lines, "count": found.count, "strategy": found.strategy},
    )


def _map_to_file_text(text: str, view: str, matches: tuple[TextMatch, ...], limit: TimeLimit) -> tuple[TextMatch, ...]:
    """Map matches to the file's own text, and give their new lines the line ends of the old ones."""
    # Where in `view` a line end is that has two letters in `text`.
    pairs = array("q", (found.start() - number for number, found in enumerate(re.finditer("\r\n", text))))
    main = find_main_line_end(text)
    made: list[TextMatch] = []
    for match in matches:
        limit.check()
        start, end = (at + bisect_left(pairs, at) for at in (match.start, match.end))
        made.append(TextMatch(start, end, _adapt_line_ends(match.new, text, start, end, main)))
    return tuple(made)


def _adapt_line_ends(new: str, text: str, start: int, end: int, main: str) -> str:
    if "\n" not in new:
        return new
    ends: list[str] = LINE_END.findall(text[start:end])
    if text[start:end][-1:] != "\n" and (behind := LINE_END.search(text, end)) is not None:
        # The end of the last line, which was not a part of what is replaced.
        ends.append(behind[0])
    further = ends[-1] if ends else main
    first, *rest = new.split("\n")
    return first + "".join((ends[n] if n < len(ends) else further) + line for n, line in enumerate(rest))


def _apply_matches(text: str, matches: tuple[TextMatch, ...]) -> str:
    pieces: list[str] = []
    at = 0
    for match in matches:
        pieces += (text[at : match.start], match.new)
        at = match.end
    return "".join([*pieces, text[at:]])


def _count_lines(text: str) -> int:
    return text.removesuffix("\n").count("\n") + 1


def _no_match_error(edit: EditRequest, view: str, old: str) -> NotFound:
    close = find_nearest_block(view, old)
    told = f"edit_file: old_string occurs nowhere in {edit.file_path!r}; nothing was written"
    details: dict[str, Any] = {"reason": "no_match"}
    hint = _find_hint(old) or "read the file again, and copy the text from there"
    if close is not None:
        details["closest"] = {"lines": [close.first, close.last], "diff": close.diff}
        told = (
            f"{told}. Closest are lines {close.first} to {close.last} (`-` old_string, `+` the file):\n{close.diff}\n"
        )
    return NotFound(told, hint=hint, details=details)


HINTS: tuple[tuple[Callable[[str], object], str], ...] = (
    (
        lambda old: all(NUMBERED_LINE.match(line) for line in old.removesuffix("\n").split("\n")),
        "leave out the line numbers that read_file puts before each line",
    ),
    (
        lambda old: CUT_SUFFIX in old,
        "a line that read_file has cut cannot be matched; take a part of it that is shown whole",
    ),
    (
        lambda old: "⟦U+" in old or "\ufffd" in old,
        "`⟦U+…⟧` and U+FFFD stand for what read_file cannot show as it is, and match nothing; take the text beside it",
    ),
)


def _find_hint(old: str) -> str | None:
    return next((hint for fits, hint in HINTS if fits(old)), None)


def _build_confirmation(edit: EditRequest, verdict: Verdict) -> EditConfirmation:
    path = get_written_path(verdict)
    title = f"Edit {edit.file_path}"
    if path is None:
        return EditConfirmation(title, edit.file_path, "")
    try:
        return EditConfirmation(title, str(path), _plan_edit(edit, path, TimeLimit(QUESTION_S)).diff.asked)
    except ToolError as exc:
        # What may not be read without a question is not told by the failure either.
        if is_workspace_change_only(verdict):
            raise
        return EditConfirmation(title, str(path), f"(as things are, this cannot be done: {exc})")


# Told to models that are known to write such texts otherwise.
FAMILY_VARIATIONS = {
    "gemini": Variation(
        parameters={
            "old_string": {
                "description": "The text to replace, without line numbers, with enough around it to be unique. Quotes, backslashes "
                "and line ends as they are in the file, not escaped once more."
            },
            "new_string": {"description": "What takes its place, letter by letter, not escaped once more."},
        }
    ),
    "gpt": Variation(
        parameters={
            "old_string": {
                "description": "The text to replace, as it is in the file: no patch, no line numbers; with enough around it to occur only once."
            },
        }
    ),
}


@tool(
    layer="file",
    title="Edit a file",
    families=FAMILY_VARIATIONS,
    advice="Read a file before you change it, and change it by edit_file: a shell's redirections are judged as commands, and show a person no diff.",
    effects=[Read("file", arg="file_path"), Write("file", arg="file_path")],
    timeout=60,
    describe=lambda edit: f"Edit {edit.file_path}",
    confirmation=_build_confirmation,
    undo=lambda edit, result: f"take back in {edit.file_path} what the diff of this call's result says",
)
async def edit_file(edit: EditRequest, context: ToolContext) -> Mapping[str, Any]:
    """Replace a text in a file. Returns replacements, diff, the changed lines as range, and strategy.

    Where old_string is nowhere exactly, whole lines that differ in whitespace only are taken. An empty one makes a new file.
    """
    path = context.judged_path(edit.file_path, "write")
    known: KnownVersions = await context.service("known_files")
    plan = await _run_in_thread(partial(_plan_edit, edit, path))
    before = plan.before
    if before is not None:
        known.check(path, edit.file_path, before.status, before.data)
    check_approved(context.verdict, plan.diff, edit.file_path)
    context.checkpoint()
    expected = safe_open.ExpectedState(before.status if before is not None else None)
    write = partial(
        safe_open.replace_file, path, plan.data, create_dirs=before is None, expected=expected, within=context.workspace
    )
    # It is not left alone when the call is stopped: what it does is done, or not, when the call ends.
    status = await anyio.to_thread.run_sync(write)
    known.note(path, edit.file_path, status, plan.data)
    return _build_result(plan, context.shown_path(plan.path), status)


async def _run_in_thread(work: Callable[[TimeLimit], EditPlan]) -> EditPlan:
    limit = TimeLimit(PLANNING_S)
    try:
        return await anyio.to_thread.run_sync(work, limit, abandon_on_cancel=True)
    finally:
        limit.stop()


def _build_result(plan: EditPlan, path: str, status: os.stat_result) -> Mapping[str, Any]:
    result: dict[str, Any] = {
        "replacements": plan.replacements,
        "file_path": path,
        "strategy": plan.strategy,
        "range": list(plan.lines),
        "diff": plan.diff.result,
    }
    if plan.before is not None and (names := describe_hard_links(plan.before.status, status)):
        result["note"] = names
    return result

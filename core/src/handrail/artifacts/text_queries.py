"""Queries of all artifacts, and of text artifacts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from io import FileIO
from itertools import islice
from typing import Annotated, Any

from pydantic import Field

from handrail.api.tool import tool
from handrail.artifacts.json_queries import JSON_QUERIES as JSON
from handrail.artifacts.line_paging import LinePage
from handrail.artifacts.line_search import LineMatch, LinePattern, iter_matches, read_line_at
from handrail.artifacts.markdown_queries import MARKDOWN_QUERIES as MARKDOWN
from handrail.artifacts.queries import ArtifactContext, artifact_query
from handrail.artifacts.store import Artifact, TextArtifact

# Bytes of one line that a search shows.
LONG_LINE = 1_000
MOST_LINES = 10_000
# So many hits that stand close together are shown or left for the next search as one.
MAX_GROUP_MATCHES = 20

LineCountArg = Annotated[int, Field(ge=1, le=MOST_LINES, description="How many lines.")]


@tool(title="List artifacts", layer="artifact", trusted=True)
async def list_artifacts(*, context: ArtifactContext) -> dict[str, Any]:
    """The results that were too long to show. Returns artifacts: id, kind, bytes, and the tool they come from."""
    return {"artifacts": [_describe_artifact(artifact) for artifact in context.artifacts]}


def _describe_artifact(artifact: Artifact) -> dict[str, Any]:
    told = {"id": artifact.id, "kind": artifact.kind, "bytes": artifact.size}
    return (
        told if artifact.source is None else {**told, "tool": artifact.source.tool, "call_id": artifact.source.call_id}
    )


@artifact_query("Artifact info")
def artifact_info(artifact: Artifact) -> dict[str, Any]:
    """What an artifact is. Returns kind, bytes, path, and lines of a text."""
    wire = artifact.wire()
    return {**wire, "lines": artifact.lines.count()} if isinstance(artifact, TextArtifact) else wire


@artifact_query("Beginning of an artifact")
def artifact_head(artifact: TextArtifact, lines: LineCountArg = 50) -> dict[str, Any]:
    """The first lines of an artifact. Returns content, first_line, last_line, and lines, the number of all."""
    return _format_page(artifact, artifact.lines.page(1, lines, limit=artifact.limit), wanted=lines)


@artifact_query("End of an artifact")
def artifact_tail(artifact: TextArtifact, lines: LineCountArg = 50) -> dict[str, Any]:
    """The last lines of an artifact. Returns content, first_line, last_line, and lines, the number of all."""
    count = artifact.lines.count()
    page = artifact.lines.tail(lines, all=count, limit=artifact.limit)
    return _format_page(artifact, page, count=count, wanted=min(lines, count))


@artifact_query("Lines of an artifact")
def artifact_lines(
    artifact: TextArtifact,
    start: Annotated[int, Field(ge=1, description="The first line wanted, from 1.")],
    lines: LineCountArg = 200,
    skip: Annotated[int, Field(ge=0, description="Bytes to leave out at the beginning of each line.")] = 0,
) -> dict[str, Any]:
    """Lines from anywhere in an artifact, as many as can be shown. Returns content, first_line, last_line, lines, and next_line when it was cut;
    of a line too long to show, skip_next: what to skip to see its rest.
    """
    page = artifact.lines.page(start, lines, skip=skip, limit=artifact.limit)
    return _format_page(artifact, page, wanted=lines, skip=skip)


def _format_page(
    artifact: TextArtifact, page: LinePage, *, count: int | None = None, wanted: int, skip: int = 0
) -> dict[str, Any]:
    count = artifact.lines.count() if count is None else count
    shown = page.last - page.first + 1
    result: dict[str, Any] = {"content": page.text, "first_line": page.first, "last_line": page.last, "lines": count}
    result["truncated"] = page.cut > 0 or (shown < wanted and page.last < count)
    if page.cut:
        result["skip_next"] = skip + len(page.text.encode())
    elif result["truncated"]:
        result["next_line"] = page.last + 1
    if page.first > count:
        result["note"] = f"It has {count} lines."
    return result


@artifact_query("Search an artifact")
def artifact_grep(
    artifact: TextArtifact,
    pattern: Annotated[str, Field(min_length=1, max_length=2_000, description="Regular expression (RE2).")],
    ignore_case: Annotated[bool, Field(description="Whether A fits a.")] = False,
    context: Annotated[int, Field(ge=0, le=20, description="Lines to show around each.")] = 0,
    max_matches: Annotated[int, Field(ge=1, le=1_000, description="Stop after so many.")] = 100,
    start: Annotated[int, Field(ge=1, description="The line to begin at.")] = 1,
) -> dict[str, Any]:
    """Find the lines of an artifact that a pattern fits. Returns content (`12: a line that fits`, `11- one around it`), matches (shown
    here), and next_line when there are more.
    """
    wanted = LinePattern(pattern, ignore_case=ignore_case)
    with artifact.open() as file:
        position = artifact.lines.start_of(start, file) if start > 1 else 0
        found = list(islice(iter_matches(file, wanted, artifact, first=start, position=position), max_matches + 1))
        shown: list[str] = []
        room, matches = artifact.limit, 0
        for group in _group_matches(found[:max_matches], context):
            lines = [*(["--"] if shown and context else []), *_iter_group_lines(file, group, artifact, context)]
            room -= sum(len(line.encode()) + 1 for line in lines)
            if room < 0 and shown:
                break
            shown += lines
            matches += len(group)
    result = {"content": "\n".join(shown), "matches": matches, "truncated": matches < len(found)}
    return {**result, "next_line": found[matches].line} if matches < len(found) else result


def _group_matches(found: Sequence[LineMatch], context: int) -> Iterator[list[LineMatch]]:
    """Yield groups of matches with adjacent context; without context, each match on its own."""
    group: list[LineMatch] = []
    for hit in found:
        if group and (not context or hit.line - group[-1].line > 2 * context + 1 or len(group) == MAX_GROUP_MATCHES):
            yield group
            group = []
        group.append(hit)
    if group:
        yield group


def _iter_group_lines(file: FileIO, group: Sequence[LineMatch], artifact: TextArtifact, context: int) -> Iterator[str]:
    """Yield the numbered lines of a group, from the context before its first match to that after its last."""
    places = {hit.line: hit.at for hit in group}
    first, last = max(1, group[0].line - context), group[-1].line + context
    position: int | None = group[0].start if first == group[0].line else artifact.lines.start_of(first, file)
    for number in range(first, last + 1):
        if position is None:
            return
        text, position = read_line_at(file, position, places.get(number, 0), artifact, limit=LONG_LINE)
        if text is not None:
            yield f"{number}{':' if number in places else '-'} {text}"


ARTIFACT_QUERIES = (artifact_info, artifact_head, artifact_tail, artifact_lines, artifact_grep, *JSON, *MARKDOWN)
LIST_TOOL = list_artifacts

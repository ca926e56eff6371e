"""Queries of Markdown artifacts. Line numbers start at 1; contents of fenced blocks are not headings or links."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import yaml
from pydantic import Field

from handrail.artifacts.line_search import LinePattern, iter_matches, read_line_at
from handrail.artifacts.queries import artifact_query
from handrail.artifacts.store import MarkdownArtifact
from handrail.errors import NotFound
from handrail.text import format_suggestion

MAX_ITEMS = 500
LONG_LINE = 2_000
MAX_FRONTMATTER_BYTES = 65_536

# What begins or ends a part: headings of both forms, and fences.
_BLOCK_PATTERN = r"^ {0,3}(?:#{1,6}(?:[ \t]|\r?$)|`{3,}|~{3,}|=+[ \t]*\r?$|-+[ \t]*\r?$)"
_LINK_LINE_PATTERN = r"\]\(|^ {0,3}(?:`{3,}|~{3,})|^ {0,3}\[[^\]]+\]:|<https?:"
_FENCE_LINE = re.compile(r" {0,3}(?P<fence>`{3,}|~{3,})[ \t]*(?P<info>[^`]*)$")
_HEADING_LINE = re.compile(r" {0,3}(?P<marks>#{1,6})(?:[ \t]+(?P<text>.*?))?(?:[ \t]+#+)?[ \t]*$")
_SETEXT_UNDERLINE = re.compile(r" {0,3}(?:(=)+|-+)[ \t]*$")
_NO_PARAGRAPH = re.compile(r"\s*$| {0,3}(?:#{1,6}[ \t]|[-*+>|]|\d+[.)])|(?: {4}|\t)")
_INLINE_LINK = re.compile(
    r"""(?P<image>!?)\[(?P<text>[^\[\]]{0,500})\]
        \([ \t]{0,9}<?(?P<url>[^\s()<>]{1,2000}(?:\([^\s()]{0,200}\))?[^\s()<>]{0,200})>?
        (?:[ \t]{1,9}["'(][^"')]{0,300}["')])?[ \t]{0,9}\)""",
    re.VERBOSE,
)
_LINK_DEFINITION = re.compile(r" {0,3}\[(?P<text>[^\]]{1,500})\]:\s*<?(?P<url>\S{1,2000}?)>?(?:\s|$)")
_AUTOLINK_URL = re.compile(r"<(?P<url>https?:[^\s<>]{1,2000})>")

DepthArg = Annotated[int | None, Field(ge=1, le=6, description="Only headings down to this depth.")]
StartLineArg = Annotated[int, Field(ge=1, description="The line to begin at.")]


@dataclass(frozen=True, slots=True)
class MarkdownHeading:
    """A heading: the line it stands on, its depth (1 to 6) and text."""

    line: int
    depth: int
    text: str


@dataclass(frozen=True, slots=True)
class FencedBlock:
    """Fenced block: its first and last line (the fences), 0 if it is not closed, and its declared language."""

    line: int
    last: int
    language: str


@artifact_query("Headings of Markdown")
def artifact_md_headings(artifact: MarkdownArtifact, depth: DepthArg = None, start: StartLineArg = 1) -> dict[str, Any]:
    """The headings of a Markdown artifact. Returns headings: line, depth, text; and next_line when there are more."""
    chosen = (h for h in _iter_headings(artifact) if h.line >= start and (depth is None or h.depth <= depth))
    return _paginate_items(
        "headings", ({"line": h.line, "depth": h.depth, "text": h.text} for h in chosen), artifact.limit
    )


@artifact_query("Section of Markdown")
def artifact_md_section(
    artifact: MarkdownArtifact,
    heading: Annotated[str, Field(description="The heading's text, or the line it stands on.")],
) -> dict[str, Any]:
    """One section with its subsections, from its heading on. Returns content, first_line, last_line, and next_line when it was cut."""
    found: MarkdownHeading | None = None
    last = 0
    seen: list[str] = []
    wanted = heading.strip().lstrip("#").strip().casefold()
    for each in _iter_headings(artifact):
        if found is None:
            seen.append(each.text)
            if each.text.casefold() == wanted or str(each.line) == wanted:
                found = each
        elif each.depth <= found.depth:
            last = each.line - 1
            break
    if found is None:
        raise NotFound(
            f"there is no heading {heading!r}{format_suggestion(heading, seen[:200])}", hint="see artifact_md_headings"
        )
    last = last or artifact.lines.count()
    page = artifact.lines.page(found.line, last - found.line + 1, limit=artifact.limit)
    cut = page.last < last or page.cut > 0
    result = {"content": page.text, "first_line": found.line, "last_line": last, "truncated": cut}
    return {**result, "next_line": page.last + 1} if cut else result


@artifact_query("Code in Markdown")
def artifact_md_code_blocks(
    artifact: MarkdownArtifact,
    language: Annotated[str | None, Field(description="Only blocks that say this after the fence.")] = None,
    start: StartLineArg = 1,
) -> dict[str, Any]:
    """The fenced blocks of a Markdown artifact. Returns blocks: first_line, last_line, language, content; and next_line when there are more."""
    fences = (
        part
        for part in _iter_blocks(artifact)
        if isinstance(part, FencedBlock) and part.line >= start and language in (None, part.language)
    )
    return _paginate_items("blocks", (_format_block(artifact, fence) for fence in fences), artifact.limit)


@artifact_query("Links in Markdown")
def artifact_md_links(artifact: MarkdownArtifact, start: StartLineArg = 1) -> dict[str, Any]:
    """The links and pictures of a Markdown artifact. Returns links: line, text, url, image; and next_line when there are more."""
    return _paginate_items("links", (link for link in _iter_links(artifact) if link["line"] >= start), artifact.limit)


@artifact_query("Front matter of Markdown")
def artifact_md_frontmatter(artifact: MarkdownArtifact) -> dict[str, Any]:
    """The YAML at the beginning of a Markdown artifact. Returns frontmatter (null when there is none) and last_line."""
    with artifact.open() as file:
        text = file.read(MAX_FRONTMATTER_BYTES).decode("utf-8", "replace").removeprefix("\ufeff")
    lines = text.split("\n")
    if lines[0].rstrip() != "---":
        return {"frontmatter": None}
    last = next((n for n, line in enumerate(lines[1:], 1) if line.rstrip() == "---"), None)
    if last is None:
        return {"frontmatter": None, "note": "It is opened on line 1 and not closed in the first 64 KiB."}
    try:
        found: Any = yaml.load("\n".join(lines[1:last]), _NoAliasLoader)  # a safe loader without aliases
    except (yaml.YAMLError, RecursionError) as exc:
        raise NotFound(
            f"the front matter is not YAML: {' '.join(str(exc).split())}", hint="use artifact_lines"
        ) from exc
    return {"frontmatter": found, "last_line": last + 1}


MARKDOWN_QUERIES = (
    artifact_md_headings,
    artifact_md_section,
    artifact_md_code_blocks,
    artifact_md_links,
    artifact_md_frontmatter,
)


class _NoAliasLoader(yaml.SafeLoader):
    """Without aliases, by which a few lines become gigabytes."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("it has aliases")
        return super().compose_node(parent, index)


def _iter_matching_lines(artifact: MarkdownArtifact, pattern: str) -> Iterator[tuple[int, int, str]]:
    """Yield the lines that match a pattern: number, position, text."""
    with artifact.open() as file:
        for hit in iter_matches(file, LinePattern(pattern), artifact):
            here = file.tell()
            text, _ = read_line_at(file, hit.start, 0, artifact, limit=LONG_LINE)
            file.seek(here)
            if text is not None:
                yield hit.line, hit.start, text


def _iter_blocks(artifact: MarkdownArtifact) -> Iterator[MarkdownHeading | FencedBlock]:
    """Yield headings and fenced blocks, in order; a block when it ends."""
    opened: tuple[int, str, str] | None = None
    matter = _find_frontmatter_end(artifact)
    for line, place, text in _iter_matching_lines(artifact, _BLOCK_PATTERN):
        fence = _FENCE_LINE.match(text)
        if opened is not None:
            if fence and not fence["info"].strip() and _is_closing_fence(fence["fence"], opened[1]):
                yield FencedBlock(opened[0], line, opened[2])
                opened = None
        elif line <= matter:
            continue
        elif fence:
            opened = line, fence["fence"], (fence["info"].split() or [""])[0]
        elif heading := _HEADING_LINE.match(text):
            yield MarkdownHeading(line, len(heading["marks"]), (heading["text"] or "").strip())
        elif (
            (under := _SETEXT_UNDERLINE.match(text))
            and (above := _read_line_above(artifact, line, place))
            and line - 1 > matter
        ):
            yield MarkdownHeading(line - 1, 1 if under[1] else 2, above.strip())
    if opened is not None:
        yield FencedBlock(opened[0], 0, opened[2])


def _iter_headings(artifact: MarkdownArtifact) -> Iterator[MarkdownHeading]:
    return (part for part in _iter_blocks(artifact) if isinstance(part, MarkdownHeading))


def _is_closing_fence(fence: str, opened: str) -> bool:
    return fence[0] == opened[0] and len(fence) >= len(opened)


def _read_line_above(artifact: MarkdownArtifact, line: int, place: int) -> str | None:
    """Return the line above if it is a paragraph that an underline turns into a heading, else None."""
    if line < 2:
        return None
    with artifact.open() as file:
        reach = min(place, LONG_LINE)
        file.seek(place - reach)
        above = file.read(reach).removesuffix(b"\n").rpartition(b"\n")[2].decode("utf-8", "replace")
    return None if _NO_PARAGRAPH.match(above) else above


def _find_frontmatter_end(artifact: MarkdownArtifact) -> int:
    with artifact.open() as file:
        head = file.read(MAX_FRONTMATTER_BYTES).removeprefix(b"\xef\xbb\xbf")
    lines = head.split(b"\n")
    if lines[0].rstrip() != b"---":
        return 0
    return next((n for n, text in enumerate(lines[1:], 2) if text.rstrip() == b"---"), 0)


def _format_block(artifact: MarkdownArtifact, fence: FencedBlock) -> dict[str, Any]:
    last = fence.last or artifact.lines.count() + 1
    page = artifact.lines.page(fence.line + 1, last - fence.line - 1, limit=artifact.limit // 2)
    block = {
        "first_line": fence.line,
        "last_line": fence.last or last - 1,
        "language": fence.language,
        "content": page.text,
    }
    return {**block, "truncated": True} if page.cut or page.last < last - 1 else block


def _iter_links(artifact: MarkdownArtifact) -> Iterator[dict[str, Any]]:
    opened: str | None = None
    for line, _, text in _iter_matching_lines(artifact, _LINK_LINE_PATTERN):
        if fence := _FENCE_LINE.match(text):
            if opened is None:
                opened = fence["fence"]
            elif not fence["info"].strip() and _is_closing_fence(fence["fence"], opened):
                opened = None
            continue
        if opened is not None:
            continue
        for found in _INLINE_LINK.finditer(text):
            yield {"line": line, "text": found["text"], "url": found["url"], "image": bool(found["image"])}
        for pattern in (_LINK_DEFINITION, _AUTOLINK_URL):
            for found in [pattern.match(text)] if pattern is _LINK_DEFINITION else pattern.finditer(text):
                if found is not None:
                    yield {"line": line, "text": found.groupdict().get("text", ""), "url": found["url"], "image": False}


def _paginate_items(key: str, items: Iterator[dict[str, Any]], limit: int) -> dict[str, Any]:
    """Return items while there is room; the first field of each is its line."""
    shown: list[dict[str, Any]] = []
    for item in items:
        limit -= sum(len(str(value).encode()) + len(name) + 6 for name, value in item.items())
        if shown and (limit < 0 or len(shown) == MAX_ITEMS):
            return {key: shown, "truncated": True, "next_line": next(iter(item.values()))}
        shown.append(item)
    return {key: shown, "truncated": False}

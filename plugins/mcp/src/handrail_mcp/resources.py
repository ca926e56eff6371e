"""MCP resources of a session: its artifacts, and its memory if a plugin provides one."""

from __future__ import annotations

import base64
import math
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import anyio
from mcp import types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError

from handrail import Memory, NotFound, Session, ToolUnavailable
from handrail.api.result import TextSource
from handrail.artifacts.store import Artifact
from handrail.sanitize.envelope import clean_text, wrap_untrusted

ARTIFACTS_URI = "handrail://artifacts/"
MEMORY_URI = "handrail://memory"
PAGE_TEMPLATE = "{?page}"
RESOURCE_URI = re.compile(
    r"(?P<uri>handrail://(?:artifacts/(?P<id>[A-Za-z0-9_-]{1,64})|memory))(?:\?page=(?P<page>[0-9]{1,9}))?"
)
# The key in `_meta` that says which page it is, of how many, and where the next one is.
PAGE_META = "handrail/page"
# Bytes of one page.
PAGE_BYTES = 51_200
# Resources of one listing.
MAX_LISTED = 200
MIME_TYPES = {
    "text": "text/plain",
    "json": "application/json",
    "jsonl": "application/jsonl",
    "markdown": "text/markdown",
    "xml": "application/xml",
    "yaml": "application/yaml",
    "csv": "text/csv",
}
BINARY_TYPE = "application/octet-stream"

RequestContext = ServerRequestContext[Any, Any]


@dataclass(frozen=True, slots=True)
class ResourcePage:
    """One page of bytes, and how many pages there are."""

    data: bytes
    page: int
    pages: int


class SessionResources:
    """The resources of one session, and of no other."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def __len__(self) -> int:
        return len(self._session.artifacts) + self._remembers

    @property
    def _remembers(self) -> bool:
        try:
            self._session.runtime.scope_of("memory")
        except ToolUnavailable:
            return False
        return True

    async def list(
        self, request: RequestContext, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        """Handle `resources/list`: up to `MAX_LISTED` at a time, oldest first."""
        cursor = params.cursor if params is not None else None
        if cursor is not None and not (cursor.isascii() and cursor.isdigit()):
            raise MCPError(types.INVALID_PARAMS, f"{cursor[:80]!r} is no cursor of this server")
        start = int(cursor or 0)
        found = list(self._all())
        more = str(start + MAX_LISTED) if len(found) > start + MAX_LISTED else None
        return types.ListResourcesResult(resources=found[start : start + MAX_LISTED], next_cursor=more)

    async def templates(
        self, request: RequestContext, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        """Handle `resources/templates/list`: the URI template for a page of an artifact."""
        template = types.ResourceTemplate(
            name="artifact",
            uri_template=f"{ARTIFACTS_URI}{{id}}{PAGE_TEMPLATE}",
            description=f"A page ({PAGE_BYTES:,} bytes) of a result that was too long to show, by its handle; pages count from 1.",
        )
        return types.ListResourceTemplatesResult(resource_templates=[template])

    async def read(self, request: RequestContext, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        """Handle `resources/read`: one page, the first unless the URI names another."""
        address = RESOURCE_URI.fullmatch(str(params.uri))
        if address is None:
            raise _unknown_resource_error(str(params.uri))
        page = int(address["page"] or 1)
        if address["id"] is None:
            return await self._read_memory(address["uri"], page)
        artifact = next((held for held in self._session.artifacts if held.id == address["id"]), None)
        if artifact is None:
            raise _unknown_resource_error(address["uri"])
        try:
            piece = await anyio.to_thread.run_sync(_read_page, artifact, page)
        except (NotFound, OSError) as exc:
            raise MCPError(types.INTERNAL_ERROR, f"the artifact {artifact.id!r} cannot be read any more") from exc
        return _build_result(address["uri"], piece, _get_mime_type(artifact), artifact.source)

    async def _read_memory(self, uri: str, page: int) -> types.ReadResourceResult:
        try:
            memory: Memory = await self._session.service("memory")
        except ToolUnavailable as exc:
            raise _unknown_resource_error(uri) from exc
        text = (await memory.text()).encode("utf-8", "replace")
        pages = _count_pages(len(text))
        _check_page(page, pages)
        return _build_result(
            uri, ResourcePage(_slice_page(text, page), page, pages), "text/markdown", TextSource("memory")
        )

    def _all(self) -> Iterator[types.Resource]:
        if self._remembers:
            yield types.Resource(name="memory", title="Memory", uri=MEMORY_URI, mime_type="text/markdown")
        for artifact in self._session.artifacts:
            yield types.Resource(
                name=artifact.id,
                title=f"Artifact {artifact.id}",
                description=f"What a tool gave: {artifact.kind}.",
                uri=f"{ARTIFACTS_URI}{artifact.id}",
                mime_type=_get_mime_type(artifact),
                size=_get_size(artifact),
            )


def _build_result(uri: str, piece: ResourcePage, mime_type: str, source: TextSource | None) -> types.ReadResourceResult:
    """Build the response with one page.

    Untrusted text is cleaned and wrapped in an envelope, as in results.
    """
    told: dict[str, Any] = {"page": piece.page, "pages": piece.pages}
    if piece.page < piece.pages:
        told["next"] = f"{uri}?page={piece.page + 1}"
    here = uri if piece.page == 1 else f"{uri}?page={piece.page}"
    meta: dict[str, Any] = {PAGE_META: told}
    contents: types.TextResourceContents | types.BlobResourceContents
    if mime_type == BINARY_TYPE:
        blob = base64.b64encode(piece.data).decode("ascii")
        contents = types.BlobResourceContents(uri=here, mime_type=mime_type, blob=blob, _meta=meta)
    else:
        text = piece.data.decode("utf-8", "replace")
        if source is not None:
            text = wrap_untrusted(clean_text(text, foreign=source.origin is not None).text, source=source).text
        contents = types.TextResourceContents(uri=here, mime_type=mime_type, text=text, _meta=meta)
    return types.ReadResourceResult(contents=[contents])


def _get_mime_type(artifact: Artifact) -> str:
    """Return the MIME type of the artifact's kind, or of the nearest parent kind that has one."""
    kinds = (getattr(cls, "kind", "") for cls in type(artifact).__mro__)
    return next((MIME_TYPES[kind] for kind in kinds if kind in MIME_TYPES), BINARY_TYPE)


def _get_size(artifact: Artifact) -> int | None:
    """Return the size in bytes; None if the file cannot be read, such as after its deletion."""
    try:
        return artifact.size
    except OSError:
        return None


def _read_page(artifact: Artifact, page: int) -> ResourcePage:
    """Read one page of a file, and not more of it."""
    with artifact.open() as file:
        pages = _count_pages(os.fstat(file.fileno()).st_size)
        _check_page(page, pages)
        file.seek((page - 1) * PAGE_BYTES)
        # As far as its last character may reach.
        data = file.read(PAGE_BYTES + 3)
    return ResourcePage(_trim_to_characters(data or b"", first=page == 1), page, pages)


def _slice_page(text: bytes, page: int) -> bytes:
    return _trim_to_characters(text[(page - 1) * PAGE_BYTES : page * PAGE_BYTES + 3], first=page == 1)


def _trim_to_characters(data: bytes, *, first: bool) -> bytes:
    """Trim a page so that it starts and ends at character boundaries.

    The joined pages are the complete content, whatever it contains.
    """
    start = 0 if first else _count_continuation_bytes(data, 0)
    return data[start : PAGE_BYTES + _count_continuation_bytes(data, PAGE_BYTES)]


def _count_continuation_bytes(data: bytes, at: int) -> int:
    """Return how many bytes from an offset on belong to a character that began before it, at most 3."""
    count = 0
    while count < 3 and at + count < len(data) and data[at + count] & 0xC0 == 0x80:
        count += 1
    return count


def _count_pages(size: int) -> int:
    return max(1, math.ceil(size / PAGE_BYTES))


def _check_page(page: int, pages: int) -> None:
    if not 1 <= page <= pages:
        raise MCPError(types.INVALID_PARAMS, f"there is no page {page}; it has {pages}")


def _unknown_resource_error(uri: str) -> MCPError:
    return MCPError(types.INVALID_PARAMS, f"this session holds no resource {uri[:200]!r}", data={"uri": uri[:200]})

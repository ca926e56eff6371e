"""PDFs among pages: their text, by the plugin that reads documents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from handrail import Downstream, ToolContext, ToolError, ToolUnavailable
from handrail.redaction import redact_text
from handrail_browser.web.content_types import UNSUPPORTED_HINTS
from handrail_browser.web.unnamed_file import create_unnamed_file

if TYPE_CHECKING:
    from handrail.workers.parser_pool import ParserPool

READING_S = 60.0
COUNT_KEYS = ("page_count", "pages_read", "scanned_pages")
REMAINING_PAGES_HINT = "for the pages that are left, save it with download_file and read it with read_pdf"


async def read_pdf_text(context: ToolContext, data: bytes, url: str) -> tuple[Mapping[str, Any], str]:
    """Return information about a PDF, and its text.

    Raises `Downstream`, with a remedy, if no plugin reads PDF files or reading takes too long. Errors of the parser
    name the URL.
    """
    try:
        parsers: ParserPool = await context.service("document_parsers")
    except ToolUnavailable as exc:
        raise Downstream(
            f"{redact_text(url)!r} is a PDF, and no plugin here reads it", hint=UNSUPPORTED_HINTS["pdf"]
        ) from exc
    with await anyio.to_thread.run_sync(create_unnamed_file, data) as file:
        try:
            with anyio.fail_after(READING_S):
                found, _ = await parsers.run("read_pdf", {"pages": None, "password": None}, fd=file.fileno())
        except TimeoutError as exc:
            raise Downstream(
                f"the PDF took longer than {READING_S:g} s to read", hint=UNSUPPORTED_HINTS["pdf"]
            ) from exc
        except ToolError as exc:
            raise type(exc)(f"{redact_text(url)!r}: {exc}", hint=exc.hint, details=exc.details) from exc
    told = {key: found[key] for key in COUNT_KEYS if key in found} | {"kind": "markdown"}
    notes = [found["note"]] if "note" in found else []
    notes += [REMAINING_PAGES_HINT] if found["truncated"] else []
    return told | ({"note": "; ".join(notes)} if notes else {}), f"{found['content']}\n"

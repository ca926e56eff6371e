"""PDFs among pages: their text, by the plugin that reads documents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from handrail import Downstream, ToolContext, ToolError, ToolUnavailable
from handrail.records.redaction import redact_text
from handrail_browser.web.forms import CURES
from handrail_browser.web.laying import laid_down

if TYPE_CHECKING:
    from handrail.parsing.process import Parsers

READING_S = 60.0
COUNTED = ("page_count", "pages_read", "scanned_pages")
THE_REST = "for the pages that are left, save it with download_file and read it with read_pdf"


async def read(context: ToolContext, data: bytes, url: str) -> tuple[Mapping[str, Any], str]:
    """What is to be said of a PDF, and its text. `Downstream`, with the cure, where it cannot be read."""
    try:
        parsers: Parsers = await context.service("document_parsers")
    except ToolUnavailable as exc:
        raise Downstream(f"{redact_text(url)!r} is a PDF, and no plugin here reads it", hint=CURES["pdf"]) from exc
    with await anyio.to_thread.run_sync(laid_down, data) as file:
        try:
            with anyio.fail_after(READING_S):
                found, _ = await parsers.run("read_pdf", {"pages": None, "password": None}, fd=file.fileno())
        except TimeoutError as exc:
            raise Downstream(f"the PDF took longer than {READING_S:g} s to read", hint=CURES["pdf"]) from exc
        except ToolError as exc:
            raise type(exc)(f"{redact_text(url)!r}: {exc}", hint=exc.hint, details=exc.details) from exc
    told = {key: found[key] for key in COUNTED if key in found} | {"kind": "markdown"}
    notes = [found["note"]] if "note" in found else []
    notes += [THE_REST] if found["truncated"] else []
    return told | ({"note": "; ".join(notes)} if notes else {}), f"{found['content']}\n"

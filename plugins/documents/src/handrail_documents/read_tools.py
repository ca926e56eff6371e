"""The tools of the document layer: each opens the judged file and has a worker parse it."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from handrail import Read, ToolContext, ToolError, tool
from handrail.fs import safe_open

if TYPE_CHECKING:
    from handrail.workers.parser_pool import ParserPool

PARSE_TIMEOUT_S = 60.0
WORKBOOK_SUFFIXES = (".xlsx", ".xlsm", ".xls")

DocumentPath = Annotated[str, Field(description="Path of the file.")]


async def _run_parser(
    context: ToolContext, job: str, path: str, args: Mapping[str, Any]
) -> tuple[dict[str, Any], bytes]:
    """Run a parser job on the file. Errors name the file as the call did."""
    parsers: ParserPool = await context.service("document_parsers")
    with safe_open.open_for_reading(context.judged_path(path)) as file:
        try:
            return await parsers.run(job, args, fd=file.fd)
        except ToolError as exc:
            raise type(exc)(f"{path!r}: {exc}", hint=exc.hint, details=exc.details) from exc


@tool(layer="document", title="Read a PDF", effects=[Read("file", arg="path")], timeout=PARSE_TIMEOUT_S)
async def read_pdf(
    path: DocumentPath,
    pages: Annotated[
        str | None, Field(description='Pages from 1: "3", "1-5", "7-" or "1,4-6". Default: all.', max_length=1_000)
    ] = None,
    password: Annotated[
        str | None, Field(description="For an encrypted file that takes one to be opened.", max_length=127)
    ] = None,
    *,
    context: ToolContext,
) -> Mapping[str, Any]:
    """Read the text of a PDF as content, with page_count, pages_read and the values of a form's fields.

    At most 200,000 characters; `truncated` says that pages are left. Pages that are only pictures are named in scanned_pages.
    """
    result, _ = await _run_parser(context, "read_pdf", path, {"pages": pages, "password": password})
    return result


@tool(layer="document", title="Look at a picture", effects=[Read("file", arg="path")], timeout=PARSE_TIMEOUT_S)
async def read_image(path: DocumentPath, *, context: ToolContext) -> Mapping[str, Any]:
    """Show a picture (PNG, JPEG, BMP, GIF, TIFF, WebP), upright and fitted to 2,000 pixels.

    Returns image_b64, width, height and mime_type of what is shown.
    """
    result, data = await _run_parser(context, "read_image", path, {})
    return {"image_b64": b64encode(data).decode("ascii"), **result}


@tool(layer="document", title="Read a spreadsheet", effects=[Read("file", arg="path")], timeout=PARSE_TIMEOUT_S)
async def read_excel(
    path: DocumentPath,
    sheet: Annotated[str | None, Field(description="Name of the sheet. Default: the one in front.")] = None,
    range: Annotated[
        str | None, Field(description='Cells to read: "B2:D10", "A:C" or "201:400". Default: the first 200 rows.')
    ] = None,
    *,
    context: ToolContext,
) -> Mapping[str, Any]:
    """Read cells of an .xlsx, .xls or .csv as a Markdown table with column letters and row numbers.

    What is empty is left out. Formulas show their last value and are listed in `formulas`; dates are ISO 8601.
    """
    result, _ = await _run_parser(context, "read_excel", path, {"sheet": sheet, "range": range})
    if "delimiter" in result and path.lower().endswith(WORKBOOK_SUFFIXES):
        told = "it is no workbook but text, and was read as CSV"
        return {**result, "note": f"{told}; {result['note']}" if "note" in result else told}
    return result

"""The tool `convert_document`."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from handrail import Downstream, InvalidArguments, NotFound, Read, Tool, ToolContext, ToolError, Write, tool
from handrail.fs import safe_open
from handrail.fs.safe_open import ExpectedState, OpenedFile
from handrail.workers.host_programs import HostPrograms

if TYPE_CHECKING:
    from handrail.workers.parser_pool import ParserPool

CONVERT_TIMEOUT_S = 120.0
MAX_INPUT = 268_435_456
InputKind = Literal["picture", "pdf", "table", "text", "slides"]
OutputFormat = Literal["pdf", "csv", "png", "jpg", "html"]

INPUT_SUFFIXES: Mapping[InputKind, tuple[str, ...]] = {
    "picture": (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp"),
    "pdf": (".pdf",),
    "table": (".xlsx", ".xlsm", ".xls", ".ods", ".csv", ".tsv"),
    "text": (".docx", ".doc", ".odt", ".rtf", ".txt", ".html", ".htm"),
    "slides": (".pptx", ".ppt", ".odp"),
}
OUTPUT_FORMATS: Mapping[InputKind, tuple[OutputFormat, ...]] = {
    "picture": ("pdf", "png", "jpg"),
    "pdf": ("png", "jpg"),
    "table": ("pdf", "csv", "png", "jpg", "html"),
    "text": ("pdf", "png", "jpg", "html"),
    "slides": ("pdf", "png", "jpg", "html"),
}
SUFFIX_ALIASES = {".jpeg": ".jpg", ".htm": ".html"}
DELIMITED_SUFFIXES = (".csv", ".tsv")
# What Python reads without LibreOffice.
PYTHON_READABLE = (".xlsx", ".xlsm", ".xls", *DELIMITED_SUFFIXES)
NEW_WORKBOOKS = (".xlsx", ".xlsm")
# Comma, quotation mark, UTF-8, from the first line on. The last word for reading: formulas are text. For writing: cells as they are shown, and
# the number of the sheet.
READ_CSV = "Text - txt - csv (StarCalc):44,34,76,1,,0,false,false,false,false,false,0,false"
WRITE_CSV = "csv:Text - txt - csv (StarCalc):44,34,76,1,,0,false,true,false,false,false,{}"
WRITE_HTML: Mapping[InputKind, str] = {
    "table": "html:HTML (StarCalc):EmbedImages",
    "text": "html:HTML (StarWriter):EmbedImages",
    "slides": "html",
}
INSTALL_HINT = (
    "install it; on Debian: apt install libreoffice-calc libreoffice-writer (and libreoffice-impress for slides)"
)


class ConversionRequest(BaseModel):
    """Request for a conversion: the input file, and the format and path of the output."""

    model_config = ConfigDict(extra="forbid", defer_build=True)

    input_path: Annotated[str, Field(min_length=1, description="Path of a document, spreadsheet, PDF or picture.")]
    output_format: Annotated[OutputFormat, Field(description="What to make of it.")]
    output_path: Annotated[
        str | None, Field(min_length=1, description="Path of the new file. Default: beside the old one, with its name.")
    ] = None
    sheet_name: Annotated[str | None, Field(description="Only this sheet of a spreadsheet.")] = None

    @model_validator(mode="after")
    def _named(self) -> Self:
        # What is written has a name before it is judged.
        if self.output_path is None:
            path = PurePath(self.input_path)
            if not path.name:
                raise ValueError("input_path names no file")
            self.output_path = str(path.with_suffix(f".{self.output_format}"))
        return self

    @property
    def suffix(self) -> str:
        """Suffix of the input's name, in lower case."""
        return PurePath(self.input_path).suffix.lower()


class DocumentConverter(Protocol):
    """An office suite that is ready for one conversion."""

    async def convert(self, source: bytes, suffix: str, wanted: str, *, reading: str | None = None) -> dict[str, bytes]:
        """Convert a file, and return the files made, by name.

        `wanted` is a suffix, or `suffix:filter:options`; `reading` is the filter that reads the file.
        """
        ...


@dataclass(frozen=True, slots=True)
class ConversionResult:
    """A finished conversion: the new file's bytes, and how they came about."""

    data: bytes
    method: Literal["office", "libreoffice", "python"]
    sheet: str | None = None
    notes: Sequence[str] = ()


# Where LibreOffice is, of the programs that may be started; None where it is not installed.
SuiteFinder = Callable[[HostPrograms], str | None]


def _find_libreoffice(programs: HostPrograms) -> str | None:
    from handrail_documents import libreoffice

    return libreoffice.find_libreoffice(programs)


def create_convert_tool(suite: SuiteFinder = _find_libreoffice) -> Tool:
    """Create `convert_document` with the LibreOffice that `suite` finds.

    No setting changes that parameter: only code can pass another one, as tests do.
    """

    @tool(
        layer="document",
        title="Convert a document",
        effects=[Read("file", arg="input_path"), Write("file", arg="output_path")],
        timeout=CONVERT_TIMEOUT_S,
        loadable=True,
        describe=lambda asked: f"Convert {asked.input_path} to {asked.output_format.upper()}, as {asked.output_path}",
    )
    async def convert_document(asked: ConversionRequest, context: ToolContext) -> Mapping[str, Any]:
        """Convert a document, spreadsheet or picture to pdf, csv, png, jpg or html, and return output_path and method (office, libreoffice, python).

        Of several pages png and jpg show the first; csv holds one sheet. A file that is there already is replaced.
        """
        kind = _classify_input(asked)
        output = asked.output_path or ""
        source, target = context.judged_path(asked.input_path), context.judged_path(output, "write")
        if source == target:
            raise InvalidArguments(f"convert_document: output_path {output!r} is the file that is to be converted")
        before = _stat_existing(target)
        with safe_open.open_for_reading(source) as file:
            try:
                made = await _ConversionJob(
                    asked, kind, file, context, await context.service("document_parsers"), suite
                ).made()
            except ToolError as exc:
                raise type(exc)(f"{asked.input_path!r}: {exc}", hint=exc.hint, details=exc.details) from exc
        context.checkpoint()
        safe_open.replace_file(target, made.data, expected=ExpectedState(before))
        result: dict[str, Any] = {
            "output_path": context.shown_path(target),
            "method": made.method,
            "input_format": asked.suffix.removeprefix("."),
            "output_format": asked.output_format,
            "size_bytes": len(made.data),
        }
        if made.sheet is not None:
            result["sheet_name"] = made.sheet
        return {**result, "note": "; ".join(made.notes)} if made.notes else result

    return convert_document


def _classify_input(asked: ConversionRequest) -> InputKind:
    """Return the kind of the input. Raises `InvalidArguments` for a conversion that is not possible."""
    kind: InputKind | None = next((kind for kind, suffixes in INPUT_SUFFIXES.items() if asked.suffix in suffixes), None)
    if kind is None:
        known = " ".join(suffix for suffixes in INPUT_SUFFIXES.values() for suffix in suffixes)
        raise InvalidArguments(f"convert_document: {asked.input_path!r} is of no kind that is converted", hint=known)
    if asked.output_format not in OUTPUT_FORMATS[kind]:
        hint = f"it can become {', '.join(OUTPUT_FORMATS[kind])}"
        hint += "; read_pdf gives its text" if kind == "pdf" else ""
        raise InvalidArguments(f"convert_document: {asked.suffix} cannot become {asked.output_format}", hint=hint)
    if asked.sheet_name and kind != "table":
        raise InvalidArguments(f"convert_document: sheet_name is given, and {asked.input_path!r} is no spreadsheet")
    suffix = PurePath(asked.output_path or "").suffix.lower()
    if SUFFIX_ALIASES.get(suffix, suffix) != f".{asked.output_format}":
        raise InvalidArguments(
            f"convert_document: output_path ends with {suffix!r}, and the format is {asked.output_format!r}"
        )
    return kind


def _stat_existing(path: Path) -> os.stat_result | None:
    try:
        with safe_open.open_for_reading(path) as file:
            return file.status
    except NotFound:
        return None


class _ConversionJob:
    """One conversion of an open file."""

    def __init__(
        self,
        asked: ConversionRequest,
        kind: InputKind,
        file: OpenedFile,
        context: ToolContext,
        parsers: ParserPool,
        suite: SuiteFinder,
    ) -> None:
        self._asked = asked
        self._kind: InputKind = kind
        self._file = file
        self._context = context
        self._parsers = parsers
        self._suite = suite

    async def made(self) -> ConversionResult:
        """Return the new file. Raises `ToolError` with the reason if it cannot be made."""
        to, suffix = self._asked.output_format, self._asked.suffix
        if self._kind in ("picture", "pdf"):
            job = "convert_image" if self._kind == "picture" else "render_first_page"
            result, data = await self._parsers.run(job, {"to": to}, fd=self._file.fd)
            return ConversionResult(data, "python", notes=result["notes"])
        from handrail_documents import libreoffice, office_com

        if (application := office_com.find_application(suffix, to)) is not None:
            with office_com.open_workspace(application) as com:
                return await self._by_office(com, "office")
        program = None if to == "csv" and suffix in DELIMITED_SUFFIXES else self._suite(self._context.programs)
        if program is None:
            return await self._by_python()
        with libreoffice.open_workspace(program, self._context.programs.environment) as prepared:
            return await self._by_office(prepared, "libreoffice")

    async def _by_python(self) -> ConversionResult:
        to = self._asked.output_format
        if self._asked.suffix not in PYTHON_READABLE or to not in ("csv", "html"):
            raise Downstream(
                f"to make {to} of it takes LibreOffice, which is not installed",
                hint=INSTALL_HINT,
                details={"reason": "no_libreoffice"},
            )
        result, data = await self._parsers.run(
            "convert_table", {"sheet": self._asked.sheet_name, "to": to}, fd=self._file.fd
        )
        return ConversionResult(data, "python", result["sheet_name"])

    async def _by_office(self, office: DocumentConverter, method: Literal["office", "libreoffice"]) -> ConversionResult:
        to, suffix, sheet = self._asked.output_format, self._asked.suffix, self._asked.sheet_name
        reading, number = None, 1
        if suffix in DELIMITED_SUFFIXES:
            # Read as `read_excel` does, whatever stands between its fields and however it is encoded.
            result, data = await self._parsers.run("convert_table", {"sheet": sheet, "to": "csv"}, fd=self._file.fd)
            suffix, reading, sheet = ".csv", READ_CSV, result["sheet_name"]
        else:
            data = _read_whole_file(self._file)
        if self._kind == "table" and reading is None and (sheet or to == "csv"):
            if suffix not in NEW_WORKBOOKS:
                data, suffix = _select_main_output(await office.convert(data, suffix, "xlsx"), "xlsx")[0], ".xlsx"
            sheet, number, data = await self._only(sheet, data)
        wanted = {"csv": WRITE_CSV.format(number), "html": WRITE_HTML.get(self._kind, "html")}.get(to, "pdf")
        data, beside = _select_main_output(
            await office.convert(data, suffix, wanted, reading=reading), wanted.partition(":")[0]
        )
        notes = [f"{beside} files that belong to it, such as pictures, are left out"] if beside else []
        if to in ("png", "jpg"):
            with _create_unnamed_file(data) as file:
                result, data = await self._parsers.run("render_first_page", {"to": to}, fd=file.fileno())
            notes += result["notes"]
        return ConversionResult(data, method, sheet, notes)

    async def _only(self, sheet: str | None, data: bytes) -> tuple[str, int, bytes]:
        """Return the name and number of the requested sheet, and the workbook with all other sheets hidden."""
        with _create_unnamed_file(data) as file:
            result, shown = await self._parsers.run("isolate_sheet", {"sheet": sheet}, fd=file.fileno())
        return result["sheet_name"], result["number"], shown


def _read_whole_file(file: OpenedFile) -> bytes:
    if file.size > MAX_INPUT:
        raise Downstream(f"it has {file.size:,} bytes, and at most {MAX_INPUT:,} are converted")
    with ExitStack() as stack:
        return stack.enter_context(os.fdopen(os.dup(file.fd), "rb")).read(MAX_INPUT + 1)


def _select_main_output(made: Mapping[str, bytes], suffix: str) -> tuple[bytes, int]:
    """Select the requested file from those that were made, and return it with the number of the others."""
    name = next((name for name in sorted(made) if name.endswith(f".{suffix}")), None)
    if name is None:
        raise Downstream(f"no {suffix} was made of it, but {', '.join(sorted(made))[:200]}")
    return made[name], len(made) - 1


def _create_unnamed_file(data: bytes) -> Any:
    """Create an open file without a name that has this content."""
    file = tempfile.TemporaryFile()
    file.write(data)
    file.flush()
    file.seek(0)
    return file


convert_document = create_convert_tool()

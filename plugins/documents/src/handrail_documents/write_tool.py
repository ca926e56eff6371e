"""The tool `write_excel`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

import anyio.to_thread
from pydantic import BaseModel, ConfigDict, Field, model_validator
from typing_extensions import TypeAliasType

from handrail import InfoConfirmation, InvalidArguments, NotFound, ToolContext, ToolError, Verdict, Write, tool
from handrail.fs import safe_open
from handrail.fs.safe_open import ExpectedState

if TYPE_CHECKING:
    from handrail.workers.parser_pool import ParserPool

WRITE_TIMEOUT_S = 60.0
WRITABLE_SUFFIXES = (".xlsx", ".xlsm")
SHOWN_ROWS = 10
MAX_SHOWN_CHARS = 200


class FormulaValue(BaseModel):
    """A formula, asked for as one."""

    model_config = ConfigDict(extra="forbid", defer_build=True)
    formula: Annotated[str, Field(min_length=1, max_length=8_192)]


# Named, so that its schema is declared once.
Cell = TypeAliasType("Cell", bool | int | float | str | FormulaValue | None)


# What each action needs, and may be given beside it.
REQUIRED_FIELDS: Mapping[str, tuple[str, ...]] = {
    "set_cell": ("cell", "value"),
    "append_rows": ("rows",),
    "add_sheet": ("name",),
}


class WorkbookEdit(BaseModel):
    """Operation applied to the workbook after `data` has been written."""

    model_config = ConfigDict(extra="forbid", defer_build=True)

    action: Literal["set_cell", "append_rows", "add_sheet"]
    sheet: str | None = None
    cell: str | None = None
    value: Cell = None
    rows: list[list[Cell]] | None = None
    name: str | None = None

    @model_validator(mode="after")
    def _whole(self) -> Self:
        needed = REQUIRED_FIELDS[self.action]
        if missing := [name for name in needed if name not in self.model_fields_set]:
            raise ValueError(f"{self.action} needs {' and '.join(missing)}")
        allowed = {"action", *needed, *(() if self.action == "add_sheet" else ("sheet",))}
        if strange := sorted(self.model_fields_set - allowed):
            raise ValueError(f"{self.action} takes no {' and '.join(strange)}")
        return self


class WriteExcel(BaseModel):
    """Parameters of a workbook write."""

    path: Annotated[str, Field(description="The .xlsx or .xlsm, new or to be changed.")]
    data: Annotated[
        list[list[Cell]],
        Field(description='Rows from A1 on; null leaves a cell. A formula is {"formula": "=A1+1"}.'),
    ]
    sheet: Annotated[str | None, Field(description="Added when missing. Default: the one in front.")] = None
    operations: Annotated[
        list[WorkbookEdit],
        Field(description="Afterwards, in order: set_cell (cell, value), append_rows (rows), add_sheet (name)."),
    ] = []


def _describe_changes(new: WriteExcel) -> Iterator[str]:
    """Yield the lines that describe the pending changes to the user."""
    where = f" of sheet {new.sheet!r}" if new.sheet else ""
    if new.data:
        columns = max(map(len, new.data))
        yield f"write {len(new.data)} rows x {columns} columns over the cells from A1 on{where}:"
        yield from _preview_rows(new.data)
    for operation in new.operations:
        match operation:
            case WorkbookEdit(action="set_cell"):
                yield f"set {operation.cell}{_format_sheet_suffix(operation.sheet) or where} to {_preview_value(operation.value)}"
            case WorkbookEdit(action="append_rows", rows=list(rows)):
                yield f"append {len(rows)} rows{_format_sheet_suffix(operation.sheet) or where}:"
                yield from _preview_rows(rows)
            case _:
                yield f"add the sheet {operation.name!r}"
    yield "all other cells, sheets, styles and charts stay"


def _format_sheet_suffix(sheet: str | None) -> str:
    return f" of sheet {sheet!r}" if sheet else ""


def _preview_rows(rows: list[list[Cell]]) -> Iterator[str]:
    for row in rows[:SHOWN_ROWS]:
        yield "  " + " | ".join(map(_preview_value, row))
    if len(rows) > SHOWN_ROWS:
        yield f"  … and {len(rows) - SHOWN_ROWS} more rows"


def _preview_value(value: Cell) -> str:
    if isinstance(value, FormulaValue):
        text = f"the formula {value.formula}"
    else:
        text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= MAX_SHOWN_CHARS else f"{text[:MAX_SHOWN_CHARS]}…"


def _build_confirmation(new: WriteExcel, _verdict: Verdict) -> InfoConfirmation:
    return InfoConfirmation(f"Write the workbook {new.path}", "\n".join(_describe_changes(new)))


def _describe_call(new: WriteExcel) -> str:
    return f"Write the workbook {new.path} ({len(new.data)} rows, {len(new.operations)} operations)"


@tool(
    layer="document",
    title="Write a spreadsheet",
    effects=[Write("file", arg="path")],
    timeout=WRITE_TIMEOUT_S,
    describe=_describe_call,
    confirmation=_build_confirmation,
)
async def write_excel(new: WriteExcel, context: ToolContext) -> Mapping[str, Any]:
    """Write cells of an .xlsx; everything else in it stays. Returns path and rows_written."""
    if not new.path.lower().endswith(WRITABLE_SUFFIXES):
        raise InvalidArguments(
            f"write_excel: {new.path!r} is no name of an .xlsx or .xlsm",
            hint="for CSV use write_file; an old .xls is not written",
        )
    path = context.judged_path(new.path, "write")
    parsers: ParserPool = await context.service("document_parsers")
    args = new.model_dump(mode="json", exclude={"path"})
    with ExitStack() as stack:
        try:
            file = stack.enter_context(safe_open.open_for_reading(path))
        except NotFound:
            if not path.parent.is_dir() or path.suffix.lower() != ".xlsx":
                raise
            file = None
        try:
            result, data = await parsers.run("write_excel", args, fd=file and file.fd)
        except ToolError as exc:
            raise type(exc)(f"{new.path!r}: {exc}", hint=exc.hint, details=exc.details) from exc
        expected = ExpectedState(file and file.status)
    context.checkpoint()
    replaced = partial(safe_open.replace_file, path, data, expected=expected, within=context.workspace)
    await anyio.to_thread.run_sync(replaced)
    return {"path": context.shown_path(path), **result}

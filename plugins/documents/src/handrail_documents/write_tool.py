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
from handrail.files import opened
from handrail.files.opened import Expected

if TYPE_CHECKING:
    from handrail.parsing.process import Parsers

WRITE_S = 60.0
SUFFIXES = (".xlsx", ".xlsm")
SHOWN_ROWS = 10
SHOWN = 200


class Formula(BaseModel):
    """A formula, asked for as one."""

    model_config = ConfigDict(extra="forbid", defer_build=True)
    formula: Annotated[str, Field(min_length=1, max_length=8_192)]


# Named, so that its schema is declared once.
Cell = TypeAliasType("Cell", bool | int | float | str | Formula | None)


# What each action needs, and may be given beside it.
NEEDS: Mapping[str, tuple[str, ...]] = {"set_cell": ("cell", "value"), "append_rows": ("rows",), "add_sheet": ("name",)}


class Operation(BaseModel):
    """What is done to the workbook afterwards."""

    model_config = ConfigDict(extra="forbid", defer_build=True)

    action: Literal["set_cell", "append_rows", "add_sheet"]
    sheet: str | None = None
    cell: str | None = None
    value: Cell = None
    rows: list[list[Cell]] | None = None
    name: str | None = None

    @model_validator(mode="after")
    def _whole(self) -> Self:
        needed = NEEDS[self.action]
        if missing := [name for name in needed if name not in self.model_fields_set]:
            raise ValueError(f"{self.action} needs {' and '.join(missing)}")
        allowed = {"action", *needed, *(() if self.action == "add_sheet" else ("sheet",))}
        if strange := sorted(self.model_fields_set - allowed):
            raise ValueError(f"{self.action} takes no {' and '.join(strange)}")
        return self


class WriteExcel(BaseModel):
    """What is to be written."""

    path: Annotated[str, Field(description="The .xlsx or .xlsm, new or to be changed.")]
    data: Annotated[
        list[list[Cell]],
        Field(description='Rows from A1 on; null leaves a cell. A formula is {"formula": "=A1+1"}.'),
    ]
    sheet: Annotated[str | None, Field(description="Added when missing. Default: the one in front.")] = None
    operations: Annotated[
        list[Operation],
        Field(description="Afterwards, in order: set_cell (cell, value), append_rows (rows), add_sheet (name)."),
    ] = []


def _lines(new: WriteExcel) -> Iterator[str]:
    """What will change, for a person."""
    where = f" of sheet {new.sheet!r}" if new.sheet else ""
    if new.data:
        columns = max(map(len, new.data))
        yield f"write {len(new.data)} rows x {columns} columns over the cells from A1 on{where}:"
        yield from _rows(new.data)
    for operation in new.operations:
        match operation:
            case Operation(action="set_cell"):
                yield f"set {operation.cell}{_of(operation.sheet) or where} to {_told(operation.value)}"
            case Operation(action="append_rows", rows=list(rows)):
                yield f"append {len(rows)} rows{_of(operation.sheet) or where}:"
                yield from _rows(rows)
            case _:
                yield f"add the sheet {operation.name!r}"
    yield "all other cells, sheets, styles and charts stay"


def _of(sheet: str | None) -> str:
    return f" of sheet {sheet!r}" if sheet else ""


def _rows(rows: list[list[Cell]]) -> Iterator[str]:
    for row in rows[:SHOWN_ROWS]:
        yield "  " + " | ".join(map(_told, row))
    if len(rows) > SHOWN_ROWS:
        yield f"  … and {len(rows) - SHOWN_ROWS} more rows"


def _told(value: Cell) -> str:
    if isinstance(value, Formula):
        text = f"the formula {value.formula}"
    else:
        text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def _confirmation(new: WriteExcel, _verdict: Verdict) -> InfoConfirmation:
    return InfoConfirmation(f"Write the workbook {new.path}", "\n".join(_lines(new)))


def _described(new: WriteExcel) -> str:
    return f"Write the workbook {new.path} ({len(new.data)} rows, {len(new.operations)} operations)"


@tool(
    layer="document",
    title="Write a spreadsheet",
    effects=[Write("file", arg="path")],
    timeout=WRITE_S,
    describe=_described,
    confirmation=_confirmation,
)
async def write_excel(new: WriteExcel, context: ToolContext) -> Mapping[str, Any]:
    """Write cells of an .xlsx; everything else in it stays. Returns path and rows_written."""
    if not new.path.lower().endswith(SUFFIXES):
        raise InvalidArguments(
            f"write_excel: {new.path!r} is no name of an .xlsx or .xlsm",
            hint="for CSV use write_file; an old .xls is not written",
        )
    path = context.judged_path(new.path, "write")
    parsers: Parsers = await context.service("document_parsers")
    args = new.model_dump(mode="json", exclude={"path"})
    with ExitStack() as stack:
        try:
            file = stack.enter_context(opened.reading(path))
        except NotFound:
            if not path.parent.is_dir() or path.suffix.lower() != ".xlsx":
                raise
            file = None
        try:
            result, data = await parsers.run("write_excel", args, fd=file and file.fd)
        except ToolError as exc:
            raise type(exc)(f"{new.path!r}: {exc}", hint=exc.hint, details=exc.details) from exc
        expected = Expected(file and file.status)
    context.checkpoint()
    replaced = partial(opened.replace, path, data, expected=expected, within=context.workspace)
    await anyio.to_thread.run_sync(replaced)
    return {"path": context.shown_path(path), **result}

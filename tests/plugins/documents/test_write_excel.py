"""Workbooks written by `write_excel`, read back by openpyxl, python-calamine and `read_excel`."""

from __future__ import annotations

import io
import os
import re
import shutil
import zipfile
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from openpyxl.workbook import Workbook
from openpyxl.worksheet.datavalidation import DataValidation
from openpyxl.worksheet.table import Table
from openpyxl.worksheet.worksheet import Worksheet
from python_calamine import CalamineWorkbook
from tests.plugins.documents.conftest import Call
from tests.plugins.documents.test_read_excel import workbook

import handrail
from handrail import InfoConfirmation
from handrail.testing import ScriptedConfirmer
from handrail_documents.sheet_patcher import SheetLayout, patch_sheet
from handrail_documents.workbook_writer import write_excel

pytestmark = pytest.mark.usefixtures("without_undo")

MADE = Path(__file__).parent / "libreoffice"


def cells(path: Path, sheet: str | None = None) -> list[list[Any]]:
    book = openpyxl.load_workbook(path)
    found = book[sheet] if sheet else book.active
    assert isinstance(found, Worksheet)
    return [list(row) for row in found.iter_rows(values_only=True)]


async def test_a_new_workbook_holds_what_was_given(call: Call, folder: Path) -> None:
    data = [["name", "n", "ok"], ["é漢😀 <&>", 0, False], [" x\ny ", -1.5, True], [None, 1e300, "=1+1"]]
    result = await call("write_excel", "a.xlsx", data=data, sheet="Mine")
    assert (result["path"], result["rows_written"]) == (str(folder / "a.xlsx"), 4)
    assert cells(folder / "a.xlsx", "Mine") == data
    book = CalamineWorkbook.from_path(str(folder / "a.xlsx"))
    assert book.get_sheet_by_name("Mine").to_python()[1] == ["é漢😀 <&>", 0, False]
    assert "| 2 | é漢😀 <&> | 0 | False |" in (await call("read_excel", "a.xlsx"))["content"]


@pytest.mark.parametrize("text", ["=1+1", "+1", "-cmd|' /C calc'!A0", "@SUM(A1)", '=HYPERLINK("http://x")', "\t=1"])
async def test_text_that_looks_like_a_formula_stays_text(call: Call, folder: Path, text: str) -> None:
    result = await call("write_excel", "a.xlsx", data=[[text]])
    sheet = openpyxl.load_workbook(folder / "a.xlsx").active
    assert isinstance(sheet, Worksheet)
    assert (sheet["A1"].value, sheet["A1"].data_type) == (text, "s")
    assert "stored as text" in result["note"]


async def test_a_formula_that_is_asked_for_is_one(call: Call, folder: Path) -> None:
    await call("write_excel", "a.xlsx", data=[[1, 2, {"formula": "=A1<B1"}]])
    sheet = openpyxl.load_workbook(folder / "a.xlsx").active
    assert isinstance(sheet, Worksheet)
    assert (sheet["C1"].value, sheet["C1"].data_type) == ("=A1<B1", "f")


async def test_operations_are_done_in_order(call: Call, folder: Path) -> None:
    workbook(folder, lambda _, sheet: [sheet.append(row) for row in ([1, 2], [3, 4])])
    result = await call(
        "write_excel",
        "a.xlsx",
        data=[],
        operations=[
            {"action": "append_rows", "rows": [[5, 6], [7]]},
            {"action": "set_cell", "cell": "B1", "value": "two"},
            {"action": "set_cell", "cell": "A2", "value": None},
            {"action": "set_cell", "cell": "D2", "value": 9},
            {"action": "add_sheet", "name": "More & more"},
            {"action": "set_cell", "cell": "A1", "value": "x", "sheet": "More & more"},
        ],
    )
    assert cells(folder / "a.xlsx", "Sheet") == [
        [1, "two", None, None],
        [None, 4, None, 9],
        [5, 6, None, None],
        [7, None, None, None],
    ]
    assert cells(folder / "a.xlsx", "More & more") == [["x"]]
    assert (result["rows_written"], result["sheets_added"]) == (2, ["More & more"])


async def test_null_in_data_leaves_a_cell_as_it_is(call: Call, folder: Path) -> None:
    workbook(folder, lambda _, sheet: [sheet.append(row) for row in ([1, 2], [3, 4])])
    await call("write_excel", "a.xlsx", data=[[None, "new"]])
    assert cells(folder / "a.xlsx") == [[1, "new"], [3, 4]]


def parts(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as packed:
        return {name: packed.read(name) for name in packed.namelist()}


async def test_everything_else_in_a_workbook_of_libreoffice_stays(call: Call, folder: Path) -> None:
    shutil.copy(MADE / "book.xlsx", folder)
    before = parts(folder / "book.xlsx")
    result = await call(
        "write_excel", "book.xlsx", data=[], operations=[{"action": "set_cell", "cell": "C2", "value": 8}]
    )
    assert result.ok, result
    after = parts(folder / "book.xlsx")
    changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    assert changed == {"xl/worksheets/sheet1.xml", "xl/worksheets/sheet2.xml", "xl/workbook.xml"}
    sheet = after["xl/worksheets/sheet1.xml"]
    kept = (b"<conditionalFormatting", b"<dataValidation ", b"<drawing ", b"<mergeCell ", b"<cols>")
    assert [mark in before["xl/worksheets/sheet1.xml"] for mark in kept] == [mark in sheet for mark in kept]
    assert b"<drawing " in sheet
    book = openpyxl.load_workbook(folder / "book.xlsx")
    rates = book["Rates"]
    assert (rates["C2"].value, rates["C4"].value, rates["A1"].font.bold) == (8, "=SUM(C2:C3)", True)
    assert (book["Notes"].sheet_state, book["Notes"]["B1"].value) == ("hidden", "=Rates!C4*2")


def with_rules(folder: Path, *rules: DataValidation) -> None:
    """A workbook whose cells A1, A2 … are each held to one rule."""

    def fill(_: Workbook, sheet: Worksheet) -> None:
        for row, rule in enumerate(rules, start=1):
            rule.add(f"A{row}")
            sheet.add_data_validation(rule)

    workbook(folder, fill)


def rule(
    kind: str, operator: str | None = None, *formulas: str, strict: bool = True, style: Any = None
) -> DataValidation:
    return DataValidation(kind, *formulas, operator=operator, showErrorMessage=strict, errorStyle=style)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("asked", "good", "bad", "told"),
    [
        (rule("list", None, '"low, high"'), "high", "middle", "takes one of 'low', 'high'"),
        (rule("list", None, '"1,2"'), 2, 3, "takes one of '1', '2'"),
        (rule("whole", "between", "1", "10"), 10, 2.5, "takes whole numbers from 1 to 10"),
        (rule("whole", None, "1", "10"), 1, 11, "and is to hold '11'"),
        (rule("decimal", "greaterThan", "0.5"), 0.75, "0.75", "takes numbers above 0.5"),
        (rule("decimal", "notBetween", "1", "2"), 3, 1.5, "outside 1 to 2"),
        (rule("date", "greaterThanOrEqual", "45000"), 45_000, "2024-01-01", "takes dates, as numbers from 45000 on"),
        (rule("textLength", "lessThanOrEqual", "3"), "abc", "abcd", "length is up to 3"),
        (rule("decimal", "notEqual", "0"), 1, True, "other than 0"),
    ],
)
async def test_a_value_that_the_sheet_does_not_take_is_refused_with_what_it_takes(
    call: Call, folder: Path, asked: DataValidation, good: Any, bad: Any, told: str
) -> None:
    with_rules(folder, asked)
    before = (folder / "a.xlsx").read_bytes()
    result = await call("write_excel", "a.xlsx", data=[[bad]])
    assert result.error_code == "invalid_arguments"
    assert told in result["error"]["message"]
    assert (folder / "a.xlsx").read_bytes() == before
    for fitting in (good, {"formula": "=1"}):
        assert (await call("write_excel", "a.xlsx", data=[[fitting], ["beside"]])).ok


async def test_what_a_sheet_only_warns_of_or_a_formula_decides_is_told(call: Call, folder: Path) -> None:
    silent, warning = rule("whole", "lessThan", "5", strict=False), rule("list", None, '"a,b"', style="warning")
    with_rules(folder, silent, warning, rule("custom", None, "ISTEXT(A3)"), rule("list", None, "$B$1:$B$9"))
    result = await call("write_excel", "a.xlsx", data=[[7], ["c"], [1], ["x"]])
    assert "A1 of 'Sheet' takes whole numbers below 5, and is to hold '7'" in result["note"]
    assert "A2 of 'Sheet' takes one of 'a', 'b', and is to hold 'c'" in result["note"]
    assert result["note"].endswith("which other cells or a formula decide: A3, A4")
    assert cells(folder / "a.xlsx") == [[7], ["c"], [1], ["x"]]


async def test_values_of_formulas_that_may_be_wrong_now_are_taken_away(call: Call, folder: Path) -> None:
    shutil.copy(MADE / "book.xlsx", folder)
    assert "12.5" in (await call("read_excel", "book.xlsx", range="C4"))["content"]
    result = await call(
        "write_excel", "book.xlsx", data=[], operations=[{"action": "set_cell", "cell": "C2", "value": 8}]
    )
    assert "=SUM(C2:C3)" in (await call("read_excel", "book.xlsx", range="C4"))["content"]
    assert "when a spreadsheet program opens the file" in result["note"]
    assert b'fullCalcOnLoad="1"' in parts(folder / "book.xlsx")["xl/workbook.xml"]


def merged(_: Workbook, sheet: Worksheet) -> None:
    sheet["A1"] = "head"
    sheet.merge_cells("A1:C1")


def table(_: Workbook, sheet: Worksheet) -> None:
    sheet.append(["name", "n"])
    sheet.append(["a", 1])
    sheet.add_table(Table(displayName="T", ref="A1:B2"))


def protected(_: Workbook, sheet: Worksheet) -> None:
    sheet.append(["x"])
    sheet.protection.enable()


@pytest.mark.parametrize(
    ("fill", "cell", "told"),
    [(merged, "B1", "merged cells A1:C1"), (table, "B1", "heads are A1:B1"), (protected, "A1", "is protected")],
)
async def test_what_would_be_damaged_is_named_and_nothing_written(
    call: Call, folder: Path, fill: Any, cell: str, told: str
) -> None:
    workbook(folder, fill)
    before = (folder / "a.xlsx").read_bytes()
    result = await call("write_excel", "a.xlsx", data=[], operations=[{"action": "set_cell", "cell": cell, "value": 1}])
    assert told in result["error"]["message"]
    assert (folder / "a.xlsx").read_bytes() == before


SHARED = b'<c r="A1"><f t="shared" ref="A1:A3" si="0">B1</f></c>'
ARRAY = b'<c r="A1"><f t="array" ref="A1:A3">B1:B3</f></c>'


@pytest.mark.parametrize(
    ("xml", "cell", "told"), [(SHARED, "A1", "A1:A3 share"), (ARRAY, "A2", "array formula of A1:A3")]
)
async def test_formulas_for_several_cells_are_not_torn_apart(
    call: Call, folder: Path, xml: bytes, cell: str, told: str
) -> None:
    await call("write_excel", "a.xlsx", data=[])
    held = parts(folder / "a.xlsx")
    held["xl/worksheets/sheet1.xml"] = b'<worksheet><sheetData><row r="1">' + xml + b"</row></sheetData></worksheet>"
    with zipfile.ZipFile(folder / "a.xlsx", "w") as packed:
        for name, data in held.items():
            packed.writestr(name, data)
    result = await call("write_excel", "a.xlsx", data=[], operations=[{"action": "set_cell", "cell": cell, "value": 1}])
    assert told in result["error"]["message"]


@pytest.mark.parametrize(
    ("path", "args", "code"),
    [
        ("a.xls", {}, "invalid_arguments"),
        ("a.csv", {}, "invalid_arguments"),
        ("none/a.xlsx", {}, "not_found"),
        ("none.xlsm", {}, "not_found"),
        ("a.xlsx", {"sheet": "a/b"}, "invalid_arguments"),
        ("a.xlsx", {"sheet": "x" * 32}, "invalid_arguments"),
        ("a.xlsx", {"operations": [{"action": "set_cell", "cell": "ZZZZ1", "value": 1}]}, "invalid_arguments"),
        ("a.xlsx", {"operations": [{"action": "paint", "cell": "A1"}]}, "invalid_arguments"),
        ("a.xlsx", {"operations": [{"action": "set_cell", "cell": "A1", "value": 1, "sheet": "No"}]}, "not_found"),
        ("a.xlsx", {"data": [["x" * 32_768]]}, "invalid_arguments"),
    ],
)
async def test_what_cannot_be_written_is_refused(call: Call, folder: Path, path: str, args: Any, code: str) -> None:
    result = await call("write_excel", path, **{"data": [[1]], **args})
    assert result.error_code == code
    assert not (folder / path).exists()


@pytest.mark.parametrize(
    ("formula", "told"),
    [
        ("=SUM(A1", "'(' that is not closed"),
        ("=A1)", "closes ')'"),
        ("=SUM({1,2)", "closes ')'"),
        ('=IF(A1="x, 1, 2)', "quotation mark"),
        ("='My sheet!A1", "quotation mark"),
        ("=A1+", "ends with '+'"),
        ("=", "is empty"),
    ],
)
async def test_a_formula_that_would_pass_for_damage_is_refused(
    call: Call, folder: Path, formula: str, told: str
) -> None:
    await call("write_excel", "a.xlsx", data=[[1]])
    before = (folder / "a.xlsx").read_bytes()
    result = await call("write_excel", "a.xlsx", data=[[{"formula": formula}]])
    assert result.error_code == "invalid_arguments"
    assert told in result["error"]["message"]
    assert (folder / "a.xlsx").read_bytes() == before


@pytest.mark.parametrize(
    "formula",
    [
        '=IF(A1="(""", "it\'s", {1,2;3,4})',
        "='it''s (a) sheet'!A1%",
        "=SUM(Table1[[#This Row],[a'[b]])",
        "=A1:B2 B1:C2",
        "SUM(1,)",
    ],
)
async def test_quotes_and_brackets_of_sound_formulas_are_written_as_they_are(
    call: Call, folder: Path, formula: str
) -> None:
    await call("write_excel", "a.xlsx", data=[[{"formula": formula}]])
    assert openpyxl.load_workbook(folder / "a.xlsx").active["A1"].value == f"={formula.removeprefix('=')}"  # type: ignore[index]


async def test_a_workbook_that_takes_a_password_is_said_to(call: Call, folder: Path) -> None:
    # By [MS-OFFCRYPTO] (2.3.1) it is an old container with a stream of this name.
    data = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(2_000) + "EncryptedPackage".encode("utf-16-le")
    (folder / "a.xlsx").write_bytes(data)
    result = await call("write_excel", "a.xlsx", data=[[1]])
    assert "it is protected by a password" in result["error"]["message"]
    assert (folder / "a.xlsx").read_bytes() == data


async def test_rows_are_added_below_merged_cells(call: Call, folder: Path) -> None:
    book = Workbook()
    sheet = book.active
    assert isinstance(sheet, Worksheet)
    sheet["A2"] = "merged"
    sheet.merge_cells("A2:B4")
    sheet.merge_cells("A20:B20")
    book.save(folder / "a.xlsx")
    assert (
        await call("write_excel", "a.xlsx", data=[], operations=[{"action": "append_rows", "rows": [["end", 5]]}])
    ).ok
    assert cells(folder / "a.xlsx")[4][:2] == ["end", 5]


async def test_what_is_no_workbook_is_not_written_over(call: Call, folder: Path) -> None:
    (folder / "a.xlsx").write_text("my notes")
    assert not (await call("write_excel", "a.xlsx", data=[[1]])).ok
    assert (folder / "a.xlsx").read_text() == "my notes"


async def test_a_person_is_shown_what_will_change(folder: Path) -> None:
    confirmer = ScriptedConfirmer("deny")
    async with handrail.open(cwd=folder, confirm=confirmer) as session:
        operations = [
            {"action": "append_rows", "rows": [["a"]]},
            {"action": "set_cell", "cell": "B2", "value": {"formula": "=A1"}},
        ]
        args = {"path": "a.xlsx", "data": [["name", 1]], "sheet": "S", "operations": operations}
        result = await session.call("write_excel", args)
    (asked,) = confirmer.asked
    assert isinstance(asked.confirmation, InfoConfirmation)
    shown = asked.confirmation.text
    for part in ("1 rows x 2 columns", "sheet 'S'", '"name" | 1', "append 1 rows", "set B2", "the formula =A1"):
        assert part in shown
    assert result.error_code == "denied_by_user"
    assert not (folder / "a.xlsx").exists()


def patched_by_hand(data: list[list[Any]], before: bytes, folder: Path) -> list[list[Any]]:
    (folder / "before.xlsx").write_bytes(before)
    fd = os.open(folder / "before.xlsx", os.O_RDONLY)
    try:
        _, after = write_excel(fd, {"data": data, "sheet": None, "operations": []})
    finally:
        os.close(fd)
    (folder / "after.xlsx").write_bytes(after)
    return cells(folder / "after.xlsx")


VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-(10**14), 10**14), st.floats(-1e12, 1e12).map(lambda x: float(f"{x:.10g}")),
    st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Cn")), min_size=1, max_size=20),
)  # fmt: skip
GRIDS = st.lists(st.lists(VALUES, min_size=1, max_size=6), min_size=1, max_size=8)


ODD = {
    "no-cells": b"<worksheet><sheetData/><pageMargins/></worksheet>",
    "empty-rows": b'<worksheet><sheetData><row r="1"/><row r="3" spans="1:2" ht="9"/></sheetData></worksheet>',
    "empty-cells": b'<worksheet><sheetData><row r="1"><c r="A1" s="0"/><c r="B1" s="0"/></row></sheetData></worksheet>',
    "no-names": b"<worksheet><sheetData><row><c><v>1</v></c><c><v>2</v></c></row></sheetData></worksheet>",
    "prefixes": b'<x:worksheet xmlns:x="X"><x:sheetData><x:row r="1"><x:c r="B1"><x:v>2</x:v></x:c></x:row></x:sheetData></x:worksheet>',
    "spaces": b"<worksheet >\n<sheetData >\n<row r='1' x='a>b' >\n<c r='B1' >\n<v >2</v >\n</c >\n</row >\n</sheetData >\n</worksheet >",
}


@pytest.mark.parametrize("name", ODD)
def test_cells_find_their_place_in_any_form_of_xml(name: str) -> None:
    layout = SheetLayout(ODD[name])
    edits = {1: {1: "first", 4: 9}, 2: {2: True}, 5: {1: {"formula": "=1"}}}
    changed = patch_sheet(layout, edits)
    names = re.findall(rb"""<(?:x:)?c r=["'](\w+)["']""", changed)
    assert [each for each in names if each != b"B1"] == [b"A1", b"D1", b"B2", b"A5"]
    rows = re.findall(rb"""<(?:x:)?row r=["'](\d)["']""", changed)
    assert [each for each in rows if each != b"3"] in ([b"1", b"2", b"5"], [b"2", b"5"])
    again = SheetLayout(changed)
    assert (again.last_used, again.data_end > again.data_close) == (5, True)
    assert patch_sheet(again, edits) == changed


@given(old=GRIDS, new=GRIDS)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_cells_over_any_others_are_as_openpyxl_reads_them(folder: Path, old: Any, new: Any) -> None:
    book = openpyxl.Workbook()
    sheet = book.active
    assert isinstance(sheet, Worksheet)
    for at, row in enumerate(old, start=1):
        for column, value in enumerate(row, start=1):
            cell = sheet.cell(at, column)
            cell.value = value
            if isinstance(value, str):
                cell.data_type = "s"
    out = io.BytesIO()
    book.save(out)
    found = patched_by_hand(new, out.getvalue(), folder)
    for at in range(max(len(old), len(new))):
        for column in range(6):
            wanted = (new[at][column : column + 1] or [None])[0] if at < len(new) else None
            if wanted is None:
                wanted = (old[at][column : column + 1] or [None])[0] if at < len(old) else None
            seen = found[at][column] if at < len(found) and column < len(found[at]) else None
            assert seen == wanted

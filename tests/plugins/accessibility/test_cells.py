"""Cells of real tables are not written by `execute_accessible`, and no key reaches the cells around them."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from handrail import Session
from handrail_accessibility.tree.protocol import AccessibilityController

from .conftest import Drawn, Launch, Use, begin, until

pytestmark = pytest.mark.anyio

QT_FORM = str(Path(__file__).with_name("qt_form.py"))
FILLED = {"A1": "alpha", "B2": "beta", "D3": "delta", "F9": "foxtrot"}
SHEET = """<?xml version="1.0" encoding="UTF-8"?>
<office:document xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0"
 xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0" xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"
 office:version="1.2" office:mimetype="application/vnd.oasis.opendocument.spreadsheet"><office:body><office:spreadsheet>
<table:table table:name="Sheet1">{rows}</table:table></office:spreadsheet></office:body></office:document>"""


def sheet_text(cells: dict[str, str]) -> str:
    """Return a flat OpenDocument spreadsheet of cells named "A1" to "F9"."""
    rows = ""
    for row in "123456789":
        texts = [cells.get(column + row) for column in "ABCDEF"]
        each = (f"<table:table-cell><text:p>{text or ''}</text:p></table:table-cell>" for text in texts)
        rows += f"<table:table-row>{''.join(each)}</table:table-row>"
    return SHEET.format(rows=rows)


async def cells(control: AccessibilityController) -> dict[str, str]:
    """Return all filled cells of the active window's sheet."""
    shown = (await control.tree(full=True, budget=2_000, deadline=30)).elements
    return {element.text: element.value for element in shown if element.role == "cell" and element.value}


async def refused(session: Session, tool: str, **args: Any) -> dict[str, Any]:
    """Return the error of a call that must fail."""
    result = await session.call(tool, args)
    assert not result.ok, result
    return result["error"]


@pytest.mark.parametrize("value", ["x", ""])
async def test_a_cell_of_gtk_is_refused(session: Session, launch: Launch, use: Use, value: str) -> None:
    await launch("gtk3-demo", "--run=editable_cells", title="Editable Cells")
    order = {"element_name": "bottles of coke", "window": "Editable Cells"}
    error = await refused(session, "execute_accessible", action="set_value", value=value, **order)
    assert "cannot be written" in error["message"]
    assert (await use(action="read", **order))["status"] == "success"


async def test_a_cell_of_qt_is_refused_and_written_in_the_way_that_the_refusal_names(
    session: Session, control: AccessibilityController, launch: Launch, use: Use
) -> None:
    await launch(sys.executable, QT_FORM, title="Qt form")
    for value in ("x", ""):
        error = await refused(session, "execute_accessible", action="set_value", element_name="Pear", value=value)
        assert "cannot be written" in error["message"]
    pear = (await use(action="read", element_name="Pear"))["element_id"]
    for args in (
        {"action": "double_click", "element_id": pear},
        {"action": "type", "text": "Quince"},
        {"action": "press_key", "key": "enter"},
    ):
        assert (await session.call("execute_gui", args)).ok
    shown = [e.text for e in (await control.tree(full=True)).elements if e.role == "cell"]
    assert shown == ["Apple", "1", "Quince", "2", "Plum", "3"]


# From here on Calc stays on the desktop.


@pytest.fixture(scope="module")
async def calc(
    control: AccessibilityController, environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[None]:
    """LibreOffice Calc with a sheet that has four filled cells."""
    folder = tmp_path_factory.mktemp("calc")
    (folder / "stock.fods").write_text(sheet_text(FILLED))
    process = begin(("soffice", "--norestore", "--nologo", "stock.fods"), environment, folder)

    async def filled() -> bool:
        return await cells(control) == FILLED

    try:
        await until(Drawn(control, "stock.fods"), "Calc's window")
        await until(filled, "the sheet")
        yield
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize(
    ("cell", "action", "value"),
    [("D3", "set_value", "x"), ("D3", "set_value", ""), ("D3", "type", "x"), ("E5", "set_value", "")],
)
async def test_a_cell_of_a_sheet_is_refused_and_the_whole_sheet_is_as_before(
    session: Session, control: AccessibilityController, calc: None, use: Use, cell: str, action: str, value: str
) -> None:
    before = await use(action="read", element_name=cell)
    error = await refused(session, "execute_accessible", action=action, element_name=cell, value=value)
    assert error["code"] == "invalid_arguments", error
    assert "write_excel" in error["message"]
    assert await cells(control) == FILLED
    after = await use(action="read", element_name=cell)
    assert after["text"] == FILLED.get(cell, "")
    # It was neither clicked nor selected.
    assert after["states"] == before["states"]


@pytest.mark.parametrize("text", ["x", ""])
async def test_no_text_is_replaced_while_a_sheet_has_the_focus(
    session: Session, control: AccessibilityController, calc: None, use: Use, text: str
) -> None:
    clicked = await use(action="click", element_name="D3")
    for where in ({}, {"element_id": clicked["element_id"]}):
        error = await refused(session, "execute_gui", action="replace_text", text=text, **where)
        assert error["message"].startswith("the focus is in table"), error
    assert await cells(control) == FILLED


async def test_a_cell_that_is_being_edited_is_no_text_field_either(
    session: Session, control: AccessibilityController, calc: None, use: Use
) -> None:
    await use(action="click", element_name="B2")
    await session.call("execute_gui", {"action": "press_key", "key": "f2"})
    await refused(session, "execute_gui", action="replace_text", text="x")
    await session.call("execute_gui", {"action": "press_key", "key": "escape"})
    assert await cells(control) == FILLED


async def test_a_cell_is_written_in_the_way_that_the_refusal_names(
    session: Session, control: AccessibilityController, calc: None, use: Use
) -> None:
    await use(action="click", element_name="C7")
    assert (await session.call("execute_gui", {"action": "type", "text": "seven"})).ok
    assert (await session.call("execute_gui", {"action": "press_key", "key": "enter"})).ok

    async def written() -> bool:
        return await cells(control) == {**FILLED, "C7": "seven"}

    await until(written, "the cell")
    assert (await session.call("execute_gui", {"action": "hotkey", "key": "ctrl+z"})).ok

    async def as_before() -> bool:
        return await cells(control) == FILLED

    await until(as_before, "the sheet as it was")

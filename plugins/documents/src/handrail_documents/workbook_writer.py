"""The job `write_excel`: a new workbook, or an old one with some of its parts changed and all others kept. Runs in the worker."""

from __future__ import annotations

import io
import os
import re
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any, cast
from xml.sax.saxutils import quoteattr

from handrail.workers.parse_refusal import ParseRefused
from handrail_documents.cell_ranges import CellRange, parse_cell_name, parse_cell_range
from handrail_documents.csv_and_xls import check_not_encrypted
from handrail_documents.data_validation import check_values, parse_validation_rules
from handrail_documents.sheet_patcher import CellValue, SheetLayout, check_edits, classify_value, patch_sheet
from handrail_documents.workbook_reader import CONVERT_HINT, OLE_SIGNATURE, select_sheet
from handrail_documents.workbook_template import EMPTY_SHEET, NEW_WORKBOOK
from handrail_documents.xlsx_package import MAX_SMALL_PART, SheetEntry, XlsxPackage, iter_xml_elements

MAX_TOTAL_BYTES = 1_073_741_824
INVALID_SHEET_NAME = re.compile(r"[\[\]:*?/\\\x00-\x1f]|^'|'$")
RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
SHEET_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"
ROOT = re.compile(rb"<((?:\w+:)?)(?:workbook|worksheet|Types|Relationships)\b[^>]*>")
# A formula with the value that it last had.
COMPUTED = re.compile(
    rb"(<(?:\w+:)?f\b[^<>]*(?:/>|>[^<]*</(?:\w+:)?f>))\s*<(?:\w+:)?v\b[^<>]*(?:/>|>[^<]*</(?:\w+:)?v>)"
)
FORMULA = re.compile(rb"<(?:\w+:)?f[\s/>]")
CALC = re.compile(rb"<((?:\w+:)?)calcPr\b([^>]*?)/?>(?:\s*</(?:\w+:)?calcPr>)?")
ON_LOAD = re.compile(rb"\s+fullCalcOnLoad=(\"[^\"]*\"|'[^']*')")
CALC_CHAIN = re.compile(
    rb"<(?:\w+:)?(?:Override|Relationship)\b[^>]*calcChain[^>]*?(?:/>|>\s*</(?:\w+:)?(?:Override|Relationship)>)"
)


def write_excel(fd: int | None, args: Mapping[str, Any]) -> tuple[dict[str, Any], bytes]:
    """Return the summary for the model and the complete bytes of the changed workbook.

    `args` holds `data`, `sheet` and `operations` as the tool received them; without `fd`, a new file is created.
    """
    if fd is None:
        first = args["sheet"] or next(
            (each["name"] for each in args["operations"] if each["action"] == "add_sheet"), "Sheet1"
        )
        change = _WorkbookEditor(XlsxPackage(io.BytesIO(_create_workbook(first))))
    else:
        with os.fdopen(os.dup(fd), "rb") as file:
            data = file.read(MAX_TOTAL_BYTES)
        if data.startswith(OLE_SIGNATURE):
            check_not_encrypted(data)
            raise ParseRefused(
                "unreadable",
                "it is an old .xls, and only .xlsx and .xlsm are written",
                hint=CONVERT_HINT,
            )
        change = _WorkbookEditor(XlsxPackage(io.BytesIO(data)))
    change.made(args["data"], args["sheet"], args["operations"], new=fd is None)
    return change.result(), change.packed()


def _create_workbook(sheet: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, text in NEW_WORKBOOK.items():
            packed.writestr(name, text.replace("{name}", quoteattr(_check_sheet_name(sheet, ()))))
    return out.getvalue()


def _check_sheet_name(name: str, others: Sequence[str]) -> str:
    if not name or len(name) > 31 or INVALID_SHEET_NAME.search(name):
        raise ParseRefused(
            "arguments", f"{name[:80]!r} is no name for a sheet", hint=r"1 to 31 characters without [ ] : * ? / \ "
        )
    if name.casefold() in (other.casefold() for other in others):
        raise ParseRefused("arguments", f"there is a sheet {name!r} already")
    return name


class _WorkbookEditor:
    """The edits to be made, by sheet, and the parts that they change."""

    def __init__(self, package: XlsxPackage) -> None:
        self._package = package
        self._parts: dict[str, bytes] = {}
        self._dropped: set[str] = set()
        self._sheets = list(package.sheets)
        self._edits: dict[str, dict[int, dict[int, CellValue]]] = {}
        self._layouts: dict[str, SheetLayout] = {}
        self._rows = self._formula_like = self._too_long = 0
        self._added: list[str] = []
        # What has to be said of values by what the sheets ask of them.
        self._validation: list[str] = []
        if any(name.startswith("_xmlsignatures/") for name in package.names):
            raise ParseRefused(
                "loss", "it is signed, and a change would make the signature void", hint="work on a copy without one"
            )
        if sum(info.file_size for info in package.zip.infolist()) > MAX_TOTAL_BYTES:
            raise ParseRefused("limit", f"it unpacks to more than {MAX_TOTAL_BYTES:,} bytes")
        if package.workbook.endswith(".bin") or "mimetype" in package.names:
            raise ParseRefused("unreadable", "it is a workbook, but no .xlsx", hint=CONVERT_HINT)

    def made(
        self, data: list[list[CellValue]], sheet: str | None, operations: list[Mapping[str, Any]], *, new: bool
    ) -> None:
        """Take over everything that is asked for, in order, and make it."""
        if data or not operations:
            target = self._sheet(sheet, add=True)
            for row, values in enumerate(data, start=1):
                # What is given as null stays as it is.
                self._put(target, row, {at: value for at, value in enumerate(values, start=1) if value is not None})
            self._rows += len(data)
        for operation in operations:
            self._operate(operation, sheet, new=new)
        for entry in self._sheets:
            if entry.name in self._edits:
                self._patch(entry)
        if self._edits:
            self._recompute()

    def _operate(self, operation: Mapping[str, Any], sheet: str | None, *, new: bool) -> None:
        match operation["action"]:
            case "add_sheet":
                only = [each.name for each in self._sheets]
                if not (new and only == [operation["name"]] and not self._edits):
                    self._add_sheet(operation["name"])
            case "append_rows":
                target = self._sheet(operation["sheet"] or sheet)
                used = max((self._layout(target).last_row, *self._edits.get(target.name, ())))
                for row, values in enumerate(cast("list[list[CellValue]]", operation["rows"]), start=used + 1):
                    self._put(target, row, dict(enumerate(values, start=1)))
                self._rows += len(operation["rows"])
            case _:
                row, column = parse_cell_name(operation["cell"])
                self._put(self._sheet(operation["sheet"] or sheet), row, {column: operation["value"]})

    def _sheet(self, name: str | None, *, add: bool = False) -> SheetEntry:
        if name and add and name.casefold() not in (each.name.casefold() for each in self._sheets):
            return self._add_sheet(name)
        sheets = [each for each in self._sheets if each.part is not None]
        return select_sheet(sheets, name, self._sheets[self._package.active : self._package.active + 1])

    def _put(self, sheet: SheetEntry, row: int, values: Mapping[int, CellValue]) -> None:
        if not values:
            return
        self._edits.setdefault(sheet.name, {}).setdefault(row, {}).update(values)
        for value in values.values():
            formula_like, too_long = classify_value(value)
            self._formula_like += formula_like
            self._too_long += too_long

    def _part(self, name: str) -> bytes:
        return self._parts[name] if name in self._parts else self._package.whole(name)

    def _layout(self, sheet: SheetEntry) -> SheetLayout:
        if sheet.name not in self._layouts:
            self._layouts[sheet.name] = SheetLayout(self._part(cast("str", sheet.part)))
        return self._layouts[sheet.name]

    def _patch(self, sheet: SheetEntry) -> None:
        layout, edits = self._layout(sheet), self._edits[sheet.name]
        check_edits(layout, edits, self._table_heads(cast("str", sheet.part)), sheet.name)
        self._validation += check_values(parse_validation_rules(layout.xml), edits, sheet.name)
        self._parts[cast("str", sheet.part)] = patch_sheet(layout, edits)

    def _table_heads(self, part: str) -> list[CellRange]:
        heads: list[CellRange] = []
        for _, kind, target in self._package.relations(part):
            if kind == "table" and target in self._package.names:
                for tag, attributes in iter_xml_elements(self._package.whole(target)):
                    if tag == "table" and attributes.get("headerRowCount", "1") != "0":
                        area = parse_cell_range(attributes.get("ref", ""))
                        heads.append(CellRange(area.first_row, area.first_row, area.first_column, area.last_column))
        return heads

    def _add_sheet(self, name: str) -> SheetEntry:
        _check_sheet_name(name, [each.name for each in self._sheets])
        number = 1
        while (
            f"xl/worksheets/sheet{number}.xml" in self._package.names
            or f"xl/worksheets/sheet{number}.xml" in self._parts
        ):
            number += 1
        part = f"xl/worksheets/sheet{number}.xml"
        workbook = self._package.workbook
        folder, _, file = workbook.rpartition("/")
        relations = f"{folder}/_rels/{file}.rels".lstrip("/")
        id_ = f"rIdSheet{number}x{len(self._sheets)}"
        listing = self._part(workbook)
        namespace = re.search(rb'xmlns(?::\w+)?="(http://(?:schemas|purl)[^"]*spreadsheetml[^"]*)"', listing)
        main = namespace[1].decode() if namespace else ""
        relation = (
            RELATIONS if "purl.oclc.org" not in main else "http://purl.oclc.org/ooxml/officeDocument/relationships"
        )
        ids = [int(each) for each in re.findall(rb"\ssheetId=[\"'](\d+)", listing)]
        entry = f'sheet name={quoteattr(name)} sheetId="{max(ids, default=0) + 1}" xmlns:r="{relation}" r:id="{id_}"/>'
        self._insert(workbook, rb"</((?:\w+:)?)sheets\s*>", entry)
        self._insert(
            relations,
            rb"</((?:\w+:)?)Relationships\s*>",
            f'Relationship Id="{id_}" Type="{relation}/worksheet" Target="/{part}"/>',
        )
        self._insert(
            "[Content_Types].xml",
            rb"</((?:\w+:)?)Types\s*>",
            f'Override PartName="/{part}" ContentType="{SHEET_TYPE}"/>',
        )
        self._parts[part] = EMPTY_SHEET.replace("{main}", main).encode()
        self._sheets.append(SheetEntry(name, hidden=False, part=part))
        self._added.append(name)
        return self._sheets[-1]

    def _insert(self, part: str, before: bytes, element: str) -> None:
        """Put an element before an end tag, with that tag's prefix."""
        xml = self._part(part)
        match = re.search(before, xml)
        if match is None:
            raise ParseRefused("unreadable", f"its part {part!r} is not as in other workbooks")
        self._parts[part] = xml[: match.start()] + b"<" + match[1] + element.encode() + xml[match.start() :]

    def _recompute(self) -> None:
        """Take away values of formulas, which may be wrong by now, and have them computed when the file is opened."""
        for entry in self._sheets:
            if entry.part is not None and (
                entry.part in self._parts or self._package.names[entry.part].file_size <= MAX_SMALL_PART
            ):
                xml = self._part(entry.part)
                if (bare := COMPUTED.sub(rb"\1", xml)) != xml:
                    self._parts[entry.part] = bare
        workbook = self._package.workbook
        xml = self._part(workbook)
        if (match := CALC.search(xml)) is not None:
            kept = ON_LOAD.sub(b"", match[2]).rstrip()
            new = b'<%bcalcPr%b fullCalcOnLoad="1"/>' % (match[1], kept)
            self._parts[workbook] = xml[: match.start()] + new + xml[match.end() :]
        else:
            for tag in (b"definedNames", b"externalReferences", b"functionGroups", b"sheets"):
                if (match := re.search(rb"</((?:\w+:)?)%b\s*>" % tag, xml)) is not None:
                    self._parts[workbook] = (
                        xml[: match.end()] + b'<%bcalcPr fullCalcOnLoad="1"/>' % match[1] + xml[match.end() :]
                    )
                    break
        self._drop_chain()

    def _drop_chain(self) -> None:
        """Drop the calculation chain (the order in which cells were computed).

        Spreadsheet programs rebuild it, but treat one that does not match the cells as damage.
        """
        chain = self._package.part_of_kind("calcChain")
        if chain is None:
            return
        folder, _, file = self._package.workbook.rpartition("/")
        for part in ("[Content_Types].xml", f"{folder}/_rels/{file}.rels".lstrip("/")):
            self._parts[part] = CALC_CHAIN.sub(b"", self._part(part))
        self._dropped.add(chain)

    def result(self) -> dict[str, Any]:
        """Return the summary of the changes, for the model."""
        notes: list[str] = []
        if self._formula_like:
            notes.append(
                f'{self._formula_like} texts that begin like formulas were stored as text; for a formula give {{"formula": "=…"}}'
            )
        if self._too_long:
            notes.append(f"{self._too_long} numbers of more than 15 digits were stored as text, which keeps all digits")
        notes += self._validation
        if any(FORMULA.search(xml) for part, xml in self._parts.items() if "worksheets/" in part):
            notes.append("formulas get their values when a spreadsheet program opens the file")
        changed = {name: sum(map(len, edits.values())) for name, edits in self._edits.items()}
        result: dict[str, Any] = {"rows_written": self._rows, "cells_written": changed}
        if self._added:
            result["sheets_added"] = self._added
        return {**result, "note": "; ".join(notes)} if notes else result

    def packed(self) -> bytes:
        """Return the bytes of the file with its changed parts; all other parts keep their content."""
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
            old = {info.filename for info in self._package.zip.infolist()}
            for info in self._package.zip.infolist():
                if info.filename not in self._dropped:
                    data = self._parts[info.filename] if info.filename in self._parts else self._package.zip.read(info)
                    packed.writestr(info, data)
            for name in self._parts.keys() - old:
                packed.writestr(name, self._parts[name])
        return out.getvalue()

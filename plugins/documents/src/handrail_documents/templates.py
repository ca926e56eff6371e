"""The parts of a workbook with one empty sheet, as ECMA-376 wants them at least."""

from __future__ import annotations

HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
TYPES = "application/vnd.openxmlformats-officedocument.spreadsheetml"
KINDS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"

EMPTY_SHEET = HEAD + '<worksheet xmlns="{main}"><dimension ref="A1"/><sheetData/></worksheet>'

NEW_WORKBOOK = {
    "[Content_Types].xml": HEAD + f'<Types xmlns="{PACKAGE}/content-types">'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    '<Default Extension="xml" ContentType="application/xml"/>'
    f'<Override PartName="/xl/workbook.xml" ContentType="{TYPES}.sheet.main+xml"/>'
    f'<Override PartName="/xl/worksheets/sheet1.xml" ContentType="{TYPES}.worksheet+xml"/>'
    f'<Override PartName="/xl/styles.xml" ContentType="{TYPES}.styles+xml"/></Types>',
    "_rels/.rels": HEAD + f'<Relationships xmlns="{PACKAGE}/relationships">'
    f'<Relationship Id="rId1" Type="{KINDS}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
    "xl/workbook.xml": HEAD + f'<workbook xmlns="{MAIN}" xmlns:r="{KINDS}"><sheets>'
    '<sheet name={name} sheetId="1" r:id="rId1"/></sheets></workbook>',
    "xl/_rels/workbook.xml.rels": HEAD + f'<Relationships xmlns="{PACKAGE}/relationships">'
    f'<Relationship Id="rId1" Type="{KINDS}/worksheet" Target="worksheets/sheet1.xml"/>'
    f'<Relationship Id="rId2" Type="{KINDS}/styles" Target="styles.xml"/></Relationships>',
    "xl/worksheets/sheet1.xml": EMPTY_SHEET.replace("{main}", MAIN),
    "xl/styles.xml": HEAD
    + f'<styleSheet xmlns="{MAIN}"><fonts count="1"><font><sz val="11"/><name val="Calibri"/></font></fonts>'
    '<fills count="2"><fill><patternFill patternType="none"/></fill><fill><patternFill patternType="gray125"/></fill></fills>'
    '<borders count="1"><border><left/><right/><top/><bottom/><diagonal/></border></borders>'
    '<cellStyleXfs count="1"><xf numFmtId="0" fontId="0" fillId="0" borderId="0"/></cellStyleXfs>'
    '<cellXfs count="1"><xf numFmtId="0" fontId="0" fillId="0" borderId="0" xfId="0"/></cellXfs>'
    '<cellStyles count="1"><cellStyle name="Normal" xfId="0" builtinId="0"/></cellStyles></styleSheet>',
}

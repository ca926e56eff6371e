"""The parts of a workbook with one empty sheet, as ECMA-376 wants them at least."""

from __future__ import annotations

XML_HEADER = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
MAIN_NAMESPACE = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
CONTENT_TYPE_PREFIX = "application/vnd.openxmlformats-officedocument.spreadsheetml"
RELATIONSHIP_NAMESPACE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE_NAMESPACE = "http://schemas.openxmlformats.org/package/2006"

EMPTY_SHEET = XML_HEADER + '<worksheet xmlns="{main}"><dimension ref="A1"/><sheetData/></worksheet>'

NEW_WORKBOOK = {
    "[Content_Types].xml": XML_HEADER + f'<Types xmlns="{PACKAGE_NAMESPACE}/content-types">'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    '<Default Extension="xml" ContentType="application/xml"/>'
    f'<Override PartName="/xl/workbook.xml" ContentType="{CONTENT_TYPE_PREFIX}.sheet.main+xml"/>'
    f'<Override PartName="/xl/worksheets/sheet1.xml" ContentType="{CONTENT_TYPE_PREFIX}.worksheet+xml"/>'
    f'<Override PartName="/xl/styles.xml" ContentType="{CONTENT_TYPE_PREFIX}.styles+xml"/></Types>',
    "_rels/.rels": XML_HEADER + f'<Relationships xmlns="{PACKAGE_NAMESPACE}/relationships">'
    f'<Relationship Id="rId1" Type="{RELATIONSHIP_NAMESPACE}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
    "xl/workbook.xml": XML_HEADER + f'<workbook xmlns="{MAIN_NAMESPACE}" xmlns:r="{RELATIONSHIP_NAMESPACE}"><sheets>'
    '<sheet name={name} sheetId="1" r:id="rId1"/></sheets></workbook>',
    "xl/_rels/workbook.xml.rels": XML_HEADER + f'<Relationships xmlns="{PACKAGE_NAMESPACE}/relationships">'
    f'<Relationship Id="rId1" Type="{RELATIONSHIP_NAMESPACE}/worksheet" Target="worksheets/sheet1.xml"/>'
    f'<Relationship Id="rId2" Type="{RELATIONSHIP_NAMESPACE}/styles" Target="styles.xml"/></Relationships>',
    "xl/worksheets/sheet1.xml": EMPTY_SHEET.replace("{main}", MAIN_NAMESPACE),
    "xl/styles.xml": XML_HEADER
    + f'<styleSheet xmlns="{MAIN_NAMESPACE}"><fonts count="1"><font><sz val="11"/><name val="Calibri"/></font></fonts>'
    '<fills count="2"><fill><patternFill patternType="none"/></fill><fill><patternFill patternType="gray125"/></fill></fills>'
    '<borders count="1"><border><left/><right/><top/><bottom/><diagonal/></border></borders>'
    '<cellStyleXfs count="1"><xf numFmtId="0" fontId="0" fillId="0" borderId="0"/></cellStyleXfs>'
    '<cellXfs count="1"><xf numFmtId="0" fontId="0" fillId="0" borderId="0" xfId="0"/></cellXfs>'
    '<cellStyles count="1"><cellStyle name="Normal" xfId="0" builtinId="0"/></cellStyles></styleSheet>',
}

"""Documents: a part of a large one, without the rest, in a session whose parser is warm."""

from __future__ import annotations

import random
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from time import perf_counter

from benchmarks.measure import Effort, take_turns
from benchmarks.report import OURS, Row
from benchmarks.sessions import session_with, succeed

ROWS_IN_SHEET, COLUMNS = 100_000, 10
PAGES = 200

WORKBOOK = {
    "_rels/.rels": '<Relationships><Relationship Id="r1" Type="x/officeDocument" Target="xl/workbook.xml"/></Relationships>',
    "xl/workbook.xml": '<workbook><sheets><sheet name="Large" sheetId="1" r:id="r1"/></sheets></workbook>',
    "xl/_rels/workbook.xml.rels": '<Relationships><Relationship Id="r1" Type="x/worksheet" Target="sheet1.xml"/>'
    '<Relationship Id="r2" Type="x/sharedStrings" Target="strings.xml"/></Relationships>',
}


async def first_rows(effort: Effort) -> Row:
    """Measure reading the first 200 rows of a sheet of 100,000 x 10, half numbers and half texts."""
    args = {"path": "large.xlsx"}
    return await _timed(
        "read_excel, first 200 of 100,000 x 10", "read_excel", _write_workbook, lambda: args, 15, effort
    )


async def one_page(effort: Effort) -> Row:
    """Any one page of a PDF of 200 pages."""

    def args() -> Mapping[str, str]:
        return {"path": "large.pdf", "pages": str(random.randint(1, PAGES))}

    return await _timed("read_pdf, one page of 200", "read_pdf", _write_pdf, args, None, effort)


async def _timed(
    job: str,
    tool: str,
    write: Callable[[Path], None],
    args: Callable[[], Mapping[str, str]],
    goal: float | None,
    effort: Effort,
) -> Row:
    with tempfile.TemporaryDirectory(prefix="handrail-bench-") as folder:
        write(Path(folder))
        async with session_with("documents", cwd=Path(folder)) as session:

            async def ours() -> float:
                given = args()
                began = perf_counter()
                await succeed(session, tool, given)
                return perf_counter() - began

            timings = await take_turns({OURS: ours}, rounds=effort.rounds(40), warm_up=3)
    took = timings[OURS].median * 1_000
    return Row(job, value=took, goal=goal, unit="ms", ours=f"{took:.1f} ms", timings=timings)


def _write_workbook(folder: Path) -> None:
    """Write the workbook. Texts are shared strings, as spreadsheet programs write them, and all differ."""
    half = COLUMNS // 2
    rows = (
        f'<row r="{row}">'
        + "".join(f'<c r="{"ABCDE"[at]}{row}"><v>{random.random() * 1e4:.2f}</v></c>' for at in range(half))
        + "".join(f'<c r="{"FGHIJ"[at]}{row}" t="s"><v>{(row - 1) * half + at}</v></c>' for at in range(half))
        + "</row>"
        for row in range(1, ROWS_IN_SHEET + 1)
    )
    texts = (f"<si><t>text {number}</t></si>" for number in range(ROWS_IN_SHEET * half))
    with zipfile.ZipFile(folder / "large.xlsx", "w", zipfile.ZIP_DEFLATED) as packed:
        for name, text in WORKBOOK.items():
            packed.writestr(name, text)
        packed.writestr("xl/sheet1.xml", f"<worksheet><sheetData>{''.join(rows)}</sheetData></worksheet>")
        packed.writestr("xl/strings.xml", f"<sst>{''.join(texts)}</sst>")


def _write_pdf(folder: Path) -> None:
    objects = [b"<</Type/Catalog/Pages 2 0 R>>", b"", b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"]
    kids: list[bytes] = []
    for page in range(1, PAGES + 1):
        kids.append(b"%d 0 R" % (len(objects) + 1))
        text = b"".join(
            b"BT /F1 9 Tf 50 %d Td (line %d of page %d) Tj ET\n" % (800 - 12 * at, at, page) for at in range(60)
        )
        objects.append(
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 850]/Resources<</Font<</F1 3 0 R>>>>/Contents %d 0 R>>"
            % (len(objects) + 2)
        )
        objects.append(b"<</Length %d>>stream\n%s\nendstream" % (len(text), text))
    objects[1] = b"<</Type/Pages/Kids[%s]/Count %d>>" % (b" ".join(kids), PAGES)
    data, places = b"%PDF-1.7\n", list[int]()
    for number, content in enumerate(objects, start=1):
        places.append(len(data))
        data += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    end = b"trailer\n<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, len(data))
    (folder / "large.pdf").write_bytes(data + b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1) + table + end)


ROWS = {"read_excel": first_rows, "read_pdf": one_page}

"""PDF files, written object by object."""

from __future__ import annotations

from collections.abc import Sequence

FIRST_PAGE = 4


def line(text: str, x: int, y: int, size: int = 10) -> bytes:
    """Drawing instructions for a line of text at a place in points."""
    return f"BT /F1 {size} Tf 1 0 0 1 {x} {y} Tm ({text}) Tj ET\n".encode("latin-1")


def pdf(pages: Sequence[bytes], *, resources: bytes = b"", more: Sequence[bytes] = (), root: bytes = b"") -> bytes:
    """A file with a page for each piece of drawing instructions; `more` are objects numbered from 4 + 2 * pages."""
    kids = b" ".join(b"%d 0 R" % (FIRST_PAGE + 2 * at) for at in range(len(pages)))
    objects = [
        b"<</Type/Catalog/Pages 2 0 R%s>>" % root,
        b"<</Type/Pages/Kids[%s]/Count %d>>" % (kids, len(pages)),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    for at, drawn in enumerate(pages):
        objects += [
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Resources<</Font<</F1 3 0 R>>%s>>/Contents %d 0 R>>"
            % (resources, FIRST_PAGE + 1 + 2 * at),
            b"<</Length %d>>stream\n%s\nendstream" % (len(drawn), drawn),
        ]
    return numbered([*objects, *more])


def numbered(objects: Sequence[bytes]) -> bytes:
    """A file with these objects, the first of them its catalogue."""
    data, places = b"%PDF-1.7\n", list[int]()
    for number, content in enumerate(objects, start=1):
        places.append(len(data))
        data += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    size = len(objects) + 1
    end = b"trailer\n<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n" % (size, len(data))
    return data + b"xref\n0 %d\n0000000000 65535 f \n" % size + table + end

"""Repair of PDF files whose end, which holds the index of their objects, is missing. Runs in the worker."""

from __future__ import annotations

import re
from io import BytesIO
from typing import IO

from pypdf import PdfReader
from pypdf.errors import PdfReadError

MAX_REPAIR_BYTES = 256 * 1_048_576
# How long before its kind the catalogue may begin.
MAX_CATALOGUE = 20_000
CATALOGUE = re.compile(rb"/Type\s*/Catalog\b")
OBJECT = re.compile(rb"(\d{1,10})\s+(\d{1,5})\s+obj\b")
# Without the end nothing says how to decrypt.
ENCRYPTED = re.compile(rb"/Filter\s*/Standard\b")


def recover_truncated_pdf(file: IO[bytes]) -> PdfReader | None:
    """Return the file up to its last complete object, with a new trailer that names its catalog.

    None if there is no catalog or it has no pages, if the file is encrypted, or if it is too large.
    """
    file.seek(0)
    data = file.read(MAX_REPAIR_BYTES + 1)
    end = data.rfind(b"endobj")
    root = _find_catalog(data[:end]) if end > 0 else None
    if len(data) > MAX_REPAIR_BYTES or root is None or ENCRYPTED.search(data):
        return None
    trailer = b"\ntrailer<</Root %b %b R>>\nstartxref\n0\n%%%%EOF\n" % root
    try:
        reader = PdfReader(BytesIO(data[: end + len(b"endobj")] + trailer))
        return reader if reader.pages else None
    except PdfReadError:
        return None


def _find_catalog(data: bytes) -> tuple[bytes, bytes] | None:
    """Number and generation of the last catalogue."""
    at = max((match.start() for match in CATALOGUE.finditer(data)), default=0)
    heads = OBJECT.findall(data, max(0, at - MAX_CATALOGUE), at)
    return heads[-1] if heads else None

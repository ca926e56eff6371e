"""What parsers of documents do, and where; each module is imported with the first job of its kind."""

from __future__ import annotations

JOBS = {
    "read_pdf": "handrail_documents.pdf",
    "read_image": "handrail_documents.pictures",
    "read_excel": "handrail_documents.workbooks",
    "write_excel": "handrail_documents.writing",
    "table": "handrail_documents.converting",
    "only_sheet": "handrail_documents.converting",
    "redraw": "handrail_documents.converting",
    "first_page": "handrail_documents.converting",
}

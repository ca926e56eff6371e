"""Jobs of the document parsers, with their modules; each is imported with the first job of its kind."""

from __future__ import annotations

JOBS = {
    "read_pdf": "handrail_documents.pdf_reader",
    "read_image": "handrail_documents.image_loader",
    "read_excel": "handrail_documents.workbook_reader",
    "write_excel": "handrail_documents.workbook_writer",
    "convert_table": "handrail_documents.format_conversion",
    "isolate_sheet": "handrail_documents.format_conversion",
    "convert_image": "handrail_documents.format_conversion",
    "render_first_page": "handrail_documents.format_conversion",
}

"""What parsers of pages do, and where."""

from __future__ import annotations

JOBS = {"convert_page": "handrail_browser.web.page_markdown"}

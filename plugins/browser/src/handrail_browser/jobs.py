"""What parsers of pages do, and where."""

from __future__ import annotations

JOBS = {"page": "handrail_browser.web.reading"}

"""Jobs of the page parsers, with the modules that contain them."""

from __future__ import annotations

JOBS = {"convert_page": "handrail_browser.web.page_markdown"}

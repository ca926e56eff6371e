"""Nodes from what the page reports about its elements, with handles for finding them again."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from handrail.redaction import redact_text
from handrail_browser.driver import PageNode

if TYPE_CHECKING:
    from handrail_browser.chromium.frames import PageFrame
    from handrail_browser.chromium.tabs import ChromiumPage


@dataclass(frozen=True, slots=True)
class NodeHandle:
    """Handle for finding an element again: its tab, its frame and number there, and how many were alike when seen."""

    page: str
    frame: str
    number: int
    print: str
    nth: int = 0
    of: int = 1


def build_node(page: ChromiumPage, frame: PageFrame, line: Mapping[str, Any], depth: int) -> PageNode:
    """Convert a line of a snapshot to a node."""
    if "text" in line:
        return PageNode("text", line["text"], depth=depth)
    if "n" not in line:
        return PageNode(line["role"], line["name"], depth=depth)
    options = tuple(line.get("options", ())) + ((f"… {line['more']} more",) if line.get("more") else ())
    # The same thing on another page, or in another frame, is another thing.
    place = page.url.partition("#")[0].partition("?")[0] if frame.id == page.main else frame.url.partition("#")[0]
    handle = NodeHandle(page.id, frame.id, line["n"], line.get("print", ""), line.get("nth", 0), line.get("of", 1))
    fingerprint = f"{page.id}\x1f{place}\x1f{line.get('print', '')}"
    box = line.get("box")
    return PageNode(
        line["role"], line["name"], value=line.get("value"), states=tuple(line.get("states", ())), options=options, url=line.get("url", ""),
        depth=depth, level=line.get("level", 0), box=tuple(box) if box else None, handle=handle, fingerprint=fingerprint,
    )  # fmt: skip


def find_frame_numbers(html: str) -> list[int]:
    """Return the numbers of the frames that have placeholders in the markup."""
    return [int(number) for number in re.findall(r'<section data-frame="(\d+)">', html)]


def get_host_and_port(url: str) -> str:
    """Host and port of an address."""
    return urlsplit(url).netloc.rpartition("@")[2]


def redact_url(url: str) -> str:
    """Return the address for a result, with secrets redacted, at most 300 characters."""
    return redact_text(url)[:300]

"""RSS and Atom as Markdown. Runs in the worker."""

from __future__ import annotations

import re
from typing import Any

from handrail.net.urls import join_url
from handrail_browser.web.markup_trees import parse_xml

MAX_ENTRIES = 100
HTML_TAG = re.compile(r"<[^>]{0,2000}>")
MAX_SUMMARY = 500


def read_feed(text: str, url: str) -> tuple[dict[str, Any], str] | None:
    """Convert a feed to a list of its entries; None if the XML is not a feed."""
    root = parse_xml(text)
    if root is None or _get_local_name(root) not in ("rss", "feed", "RDF"):
        return None
    entries = [each for each in root.iter() if _get_local_name(each) in ("item", "entry")]
    title = _get_child_text(root, "title") or _get_child_text(
        next((e for e in root if _get_local_name(e) == "channel"), root), "title"
    )
    lines = [f"# {title or url}", ""]
    for entry in entries[:MAX_ENTRIES]:
        lines += _format_entry(entry, url)
    if len(entries) > MAX_ENTRIES:
        lines.append(f"and {len(entries) - MAX_ENTRIES} more")
    return {"kind": "markdown", "title": title, "entries": len(entries)}, "\n".join(lines) + "\n"


def _format_entry(entry: Any, url: str) -> list[str]:
    title = _get_child_text(entry, "title") or "(no title)"
    links = [each for each in entry if _get_local_name(each) == "link"]
    found = next((each for each in links if each.get("rel", "alternate") == "alternate"), None)
    target = (found.get("href") or (found.text or "").strip()) if found is not None else ""
    when = (
        _get_child_text(entry, "pubDate")
        or _get_child_text(entry, "published")
        or _get_child_text(entry, "updated")
        or _get_child_text(entry, "date")
    )
    heading = f"[{title}]({join_url(url, target)})" if target else title
    summary = _get_child_text(entry, "description") or _get_child_text(entry, "summary")
    return [f"- {heading}" + (f" ({when})" if when else "") + (f": {summary}" if summary else "")]


def _get_child_text(element: Any, name: str) -> str:
    for each in element:
        if _get_local_name(each) == name:
            text = HTML_TAG.sub(" ", "".join(each.itertext()))
            return " ".join(text.split())[:MAX_SUMMARY]
    return ""


def _get_local_name(element: Any) -> str:
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""

"""RSS and Atom as Markdown. Runs in the worker."""

from __future__ import annotations

import re
from typing import Any

from handrail.net.urls import joined
from handrail_browser.web.trees import xml_tree

MOST = 100
TAG = re.compile(r"<[^>]{0,2000}>")
SUMMARY = 500


def read(text: str, url: str) -> tuple[dict[str, Any], str] | None:
    """A feed as a list of what it announces; None when the XML is none."""
    root = xml_tree(text)
    if root is None or _name(root) not in ("rss", "feed", "RDF"):
        return None
    entries = [each for each in root.iter() if _name(each) in ("item", "entry")]
    title = _text(root, "title") or _text(next((e for e in root if _name(e) == "channel"), root), "title")
    lines = [f"# {title or url}", ""]
    for entry in entries[:MOST]:
        lines += _entry(entry, url)
    if len(entries) > MOST:
        lines.append(f"and {len(entries) - MOST} more")
    return {"kind": "markdown", "title": title, "entries": len(entries)}, "\n".join(lines) + "\n"


def _entry(entry: Any, url: str) -> list[str]:
    title = _text(entry, "title") or "(no title)"
    links = [each for each in entry if _name(each) == "link"]
    found = next((each for each in links if each.get("rel", "alternate") == "alternate"), None)
    target = (found.get("href") or (found.text or "").strip()) if found is not None else ""
    when = _text(entry, "pubDate") or _text(entry, "published") or _text(entry, "updated") or _text(entry, "date")
    heading = f"[{title}]({joined(url, target)})" if target else title
    summary = _text(entry, "description") or _text(entry, "summary")
    return [f"- {heading}" + (f" ({when})" if when else "") + (f": {summary}" if summary else "")]


def _text(element: Any, name: str) -> str:
    for each in element:
        if _name(each) == name:
            text = TAG.sub(" ", "".join(each.itertext()))
            return " ".join(text.split())[:SUMMARY]
    return ""


def _name(element: Any) -> str:
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""

"""Markup as element trees, by lxml, which has no type annotations. Runs in the worker."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def parse_html(text: str) -> Any | None:
    """Parse a page; None if there is no content."""
    etree, html = import_module("lxml.etree"), import_module("lxml.html")
    parser = html.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True)
    try:
        return html.document_fromstring(text.encode("utf-8", "replace"), parser=parser)
    except (etree.ParserError, ValueError):
        return None


def parse_xml(text: str) -> Any | None:
    """Parse a document as far as possible; None if it cannot be read. Nothing is fetched or expanded for it."""
    etree = import_module("lxml.etree")
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, recover=True, huge_tree=False, encoding="utf-8"
    )
    try:
        return etree.fromstring(text.encode("utf-8", "replace"), parser)
    except (etree.XMLSyntaxError, ValueError):
        return None


def wrap_body(body: Any) -> Any:
    """Create a page that contains only this body."""
    document = import_module("lxml.html").Element("html")
    document.append(body)
    return document


def serialize_html(element: Any) -> str:
    """Serialize the element as markup."""
    return import_module("lxml.html").tostring(element, encoding="unicode", with_tail=False)

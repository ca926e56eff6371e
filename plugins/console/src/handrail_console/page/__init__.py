"""The page: HTML, style and script of our own, in one piece, and what a browser is told about it."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files


def _read(name: str) -> str:
    return (files(__name__) / name).read_text(encoding="utf-8")


def _source(text: str) -> str:
    """How a policy names a script or a style that stands in the page."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


_STYLE, _DOOR, _SCRIPT = _read("console.css"), _read("door.js"), _read("console.js")
_PLACES = {"/*STYLE*/": _STYLE, "/*DOOR*/": _DOOR, "/*SCRIPT*/": _SCRIPT}


def _filled(text: str) -> str:
    for place, content in _PLACES.items():
        text = text.replace(place, content)
    return text


DOOR = _filled(_read("door.html"))
PAGE = _filled(_read("console.html"))

# Nothing but our own script and style, no address but our own, and no text is ever taken for HTML: what the door writes is the one exception.
_POLICY = "; ".join(
    (
        "default-src 'none'",
        f"script-src {_source(_DOOR)} {_source(_SCRIPT)}",
        f"style-src {_source(_STYLE)}",
        "img-src blob: data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types handrail-door",
    )
)
HEADERS = {
    "content-security-policy": _POLICY,
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}

"""Page of the console: HTML, style and script of our own in one piece, and its response headers."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files


def _read_resource(name: str) -> str:
    return (files(__name__) / name).read_text(encoding="utf-8")


def _hash_source(text: str) -> str:
    """Return the source expression by which a content security policy allows an inline script or style."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


_STYLE, _ENTRY_SCRIPT, _SCRIPT = _read_resource("console.css"), _read_resource("door.js"), _read_resource("console.js")
_PLACEHOLDERS = {"/*STYLE*/": _STYLE, "/*DOOR*/": _ENTRY_SCRIPT, "/*SCRIPT*/": _SCRIPT}


def _fill_placeholders(text: str) -> str:
    for place, content in _PLACEHOLDERS.items():
        text = text.replace(place, content)
    return text


ENTRY_PAGE = _fill_placeholders(_read_resource("door.html"))
CONSOLE_PAGE = _fill_placeholders(_read_resource("console.html"))

# Nothing but our own script and style, no address but our own, and no text is ever taken for HTML: what the door writes is the one exception.
_POLICY = "; ".join(
    (
        "default-src 'none'",
        f"script-src {_hash_source(_ENTRY_SCRIPT)} {_hash_source(_SCRIPT)}",
        f"style-src {_hash_source(_STYLE)}",
        "img-src blob: data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types handrail-door",
    )
)
RESPONSE_HEADERS = {
    "content-security-policy": _POLICY,
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}

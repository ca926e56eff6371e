"""Format of a response, from what the server declares and, if that says nothing, from its first bytes."""

from __future__ import annotations

import re
from dataclasses import dataclass

from handrail import Downstream
from handrail.redaction import redact_text

CHARSET = re.compile(r"charset\s{0,9}=\s{0,9}\"?([A-Za-z0-9_:.-]{1,40})", re.IGNORECASE)
HTML_TYPES = frozenset(("text/html", "application/xhtml+xml"))
UNSPECIFIED_TYPES = frozenset(
    ("", "application/octet-stream", "binary/octet-stream", "application/unknown", "unknown/unknown")
)
JSON_TYPE = re.compile(r"(application|text)/([\w.-]+\+)?json(-seq)?|application/(x-)?ndjson")
XML_TYPE = re.compile(r"(application|text)/([\w.-]+\+)?xml")
TEXT_TYPE = re.compile(
    r"text/.+|application/(x-)?(javascript|ecmascript|typescript|yaml|toml|sh|sql|tex|x-httpd-php|rtf|graphql)|message/rfc822"
)
# How a page begins, by https://mimesniff.spec.whatwg.org/
PAGE = re.compile(
    rb"\s*(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)*<(?:!doctype html|html|head|body|title|div|p|h1|table)\b",
    re.IGNORECASE | re.DOTALL,
)
PDF = b"%PDF-"
MAGIC_BYTES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"PK\x03\x04", "application/zip"),
    (b"\x1f\x8b", "application/gzip"),
)  # fmt: skip
UNSUPPORTED_HINTS = {
    "pdf": "download it with download_file, then read it with read_pdf",
    "image": "download it with download_file, then look at it with read_image",
    "other": "download it with download_file",
}
HEAD_BYTES = 1_024


@dataclass(frozen=True, slots=True)
class ContentFormat:
    """Format in which content is read: `html`, `xml`, `json`, `text` or `pdf`.

    `charset` is the one that the server names, if any.
    """

    name: str
    media_type: str
    charset: str | None


def detect_format(content_type: str, data: bytes, url: str) -> ContentFormat:
    """Return the format in which to read content. Raises `Downstream`, with a remedy, if it is not text."""
    media_type = content_type.partition(";")[0].strip().lower()
    found = CHARSET.search(content_type)
    charset = found[1] if found else None
    head = data[:HEAD_BYTES]
    if head.startswith(PDF):
        return ContentFormat("pdf", "application/pdf", None)
    for begin, kind in MAGIC_BYTES:
        if head.startswith(begin):
            return _raise_unsupported(kind, url)
    if media_type in UNSPECIFIED_TYPES:
        media_type = _guess_media_type(head)
    name = _classify_media_type(media_type)
    if name is None or (charset is None and name != "html" and _is_binary(head)):
        return _raise_unsupported(media_type, url)
    return ContentFormat(name, media_type, charset)


def _guess_media_type(head: bytes) -> str:
    if PAGE.match(head):
        return "text/html"
    if head.lstrip().startswith(b"<?xml"):
        return "text/xml"
    return "application/octet-stream" if _is_binary(head) else "text/plain"


def _classify_media_type(media_type: str) -> str | None:
    if media_type in HTML_TYPES:
        return "html"
    for pattern, name in ((JSON_TYPE, "json"), (XML_TYPE, "xml"), (TEXT_TYPE, "text")):
        if pattern.fullmatch(media_type) and media_type != "image/svg+xml":
            return name
    return None


def _is_binary(head: bytes) -> bool:
    return b"\0" in head and not head.startswith((b"\xff\xfe", b"\xfe\xff"))


def _raise_unsupported(media_type: str, url: str) -> ContentFormat:
    kind = "image" if media_type.startswith("image/") else "other"
    raise Downstream(
        f"{redact_text(url)!r} is no page but {media_type or 'something unknown'}",
        hint=UNSUPPORTED_HINTS[kind],
        details={"content_type": media_type, "url": redact_text(url)},
    )

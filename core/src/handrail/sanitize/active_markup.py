"""Active markup: pictures that are fetched, and links that carry data or lead elsewhere than they claim.

A host displays what a model repeats. Nothing is removed here: a character breaks the markup, which keeps the full URL
visible.
"""

from __future__ import annotations

import re
from collections import Counter
from urllib.parse import urlsplit

# How a target begins that is no plain path beside the text: browsers take `https:x`, `/\x` and `&sol;/x` for other hosts, too.
_REMOTE_START = r"[A-Za-z0-9+.-]{0,40}[:\\&]|/\s{0,9}[/\\&]"
_LINK_TARGET = re.compile(rf"\]\((?=\s{{0,9}}<?(?P<url>(?:{_REMOTE_START})[^\s()\[\]<>]{{0,4000}}))")
_LINK_DEFINITION = re.compile(
    rf"^(?P<label>[ ]{{0,3}}\[[^\]\n]{{1,200}}\]):(?=\s{{0,9}}<?(?P<url>(?:{_REMOTE_START})[^\s<>]{{0,4000}}))",
    re.MULTILINE,
)
# A tag that makes a browser fetch or send something. It ends at the next one, so that no text is looked at twice.
_FETCHING_TAG = re.compile(
    rf"""<(?=[a-z][^<]{{0,4000}}?\b(?:
          (?:src|srcset|poster|background|data|action|formaction|ping|xlink:href)\s{{0,9}}=\s{{0,9}}["']?\s{{0,9}}(?:{_REMOTE_START}|[a-z\s]{{1,40}}:)
        | url\(\s{{0,9}}["']?(?:{_REMOTE_START})
        | (?:(?<=<link)|(?<=<base)|(?<=<image)|(?<=<use))[^<]{{0,4000}}?\bhref | (?<=<meta)[^<]{{0,4000}}?\burl\s{{0,9}}=
      ))""",
    re.IGNORECASE | re.VERBOSE,
)
_ANCHOR_TAG = re.compile(
    rf"""<(?=(?:a|area)\s[^<]{{0,4000}}?\bhref\s{{0,9}}=\s{{0,9}}["']?\s{{0,9}}(?P<url>(?:{_REMOTE_START})[^\s"'<>]*))""",
    re.IGNORECASE | re.VERBOSE,
)
_WEB_SCHEME = re.compile(r"\A(https?|ftps?):/*", re.IGNORECASE)
# Schemes of addresses that run something or carry it in themselves.
_ACTIVE_SCHEMES = frozenset(("javascript", "vbscript", "data", "file", "ftp", "ftps"))
_PICTURE_START = "!["
# How far before its target the text of a link may begin.
_MAX_LABEL_CHARS = 300
_OPAQUE_PATH = re.compile(r"/[A-Za-z0-9+=_%]{32,}")
_NAMES_A_HOST = re.compile(r"(?:https?://)?((?:[a-z0-9-]{1,63}\.)+[a-z]{2,24})(?:[/:\s]|$)", re.IGNORECASE)


def neutralize_markup(text: str, removed: Counter[str]) -> str:
    """Return the text with pictures, deceptive links and fetching tags made inert.

    Counts `images` and `links` in `removed`.
    """
    if "](" in text:
        text = _LINK_TARGET.sub(lambda match: _separate_link(match, removed), text)
    if "]:" in text:
        pictured = _PICTURE_START in text
        text = _LINK_DEFINITION.sub(lambda match: _neutralize_definition(match, removed, pictured=pictured), text)
    if "<" in text:
        text = _FETCHING_TAG.sub(lambda match: _break_tag(removed, "images"), text)
        text = _ANCHOR_TAG.sub(
            lambda match: _break_tag(removed, "links") if _is_hiding_url(match["url"]) else match[0], text
        )
    return text


def _separate_link(match: re.Match[str], removed: Counter[str]) -> str:
    """Return `](` if the link may stay, else with a space between the two, which breaks the link."""
    before = match.string[max(0, match.start() - _MAX_LABEL_CHARS) : match.start()].rpartition("\n")[2]
    if _PICTURE_START in before:
        removed["images"] += 1
        return "] ("
    if _is_hiding_url(match["url"], label=before.rpartition("[")[2]):
        removed["links"] += 1
        return "] ("
    return match[0]


def _neutralize_definition(match: re.Match[str], removed: Counter[str], *, pictured: bool) -> str:
    if not pictured and not _is_hiding_url(match["url"]):
        return match[0]
    removed["images" if pictured else "links"] += 1
    return f"{match['label']} :"


def _break_tag(removed: Counter[str], code: str) -> str:
    """Return the start of an inert tag: a space follows the bracket."""
    removed[code] += 1
    return "< "


def _is_hiding_url(url: str, *, label: str = "") -> bool:
    """Return True if a URL carries data, runs something, or differs from the one that the link text shows."""
    if "&" in url:
        # Its table of names takes a while to load.
        from html import unescape

        url = unescape(url)
    # As browsers do: tabs are dropped, a backslash is a slash, and of slashes behind the scheme there may be any number.
    url = _WEB_SCHEME.sub(r"\1://", url.replace("\t", "").replace("\\", "/"), count=1)
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return True
    if parts.scheme.lower() in _ACTIVE_SCHEMES or "@" in parts.netloc:
        return True
    if not host:
        return False
    if parts.query or "=" in parts.fragment or _OPAQUE_PATH.search(parts.path):
        return True
    said = _NAMES_A_HOST.match(label.strip())
    return said is not None and not _is_same_host(said[1].lower(), host)


def _is_same_host(said: str, host: str) -> bool:
    return said.removeprefix("www.") == host.removeprefix("www.")

"""Conversion of a page to Markdown: the job `convert_page`, which runs in the worker.

A page often declares which part is its text (`main`, `article`). Otherwise trafilatura finds it; if that finds less
than half of the words or of the headings, the complete page is used without its frame.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from handrail.net.urls import join_url
from handrail_browser.web import feeds, hidden_content
from handrail_browser.web.charset_decoder import decode_text
from handrail_browser.web.markup_trees import parse_html, serialize_html, wrap_body

# Characters that a page has to have before it is found to be empty.
MIN_TEXT = 200
# Of the words of a page, so much must be in what was found to be its text.
ENOUGH, ALMOST = 0.5, 0.9
WORD_PATTERN = re.compile(r"\w+")
FRAME_TAGS = frozenset(("nav", "aside", "footer"))
FRAME_ROLES = frozenset(
    ("navigation", "complementary", "banner", "contentinfo", "search", "dialog", "alertdialog", "menu", "menubar", "toolbar", "tooltip")
)  # fmt: skip
# What such parts are called, as whole words of a class or an id.
FRAME_NAMES = re.compile(
    r"(?:^|[-_ ])(?:cookies?|consent|gdpr|newsletter|breadcrumbs?|sidebar|share|sharing|social|related|recommended|recommendations|promo|"
    r"ads?|advert|advertisement|sponsored|modal|skip|skip-?link|pagination|pager|toolbar|subscribe|signup|paywall|toc|editsection|"
    r"mw-editsection|navbar|navbox|masthead|site-?header|site-?footer|footer|menu|headerlink|catlinks|printfooter|signature|login)(?:$|[-_ ])"
    # On a map, what is told of a place is a popup of that library.
    r"|(?:^| )popup(?:$|[-_ ])",
    re.IGNORECASE,
)
# Parts of addresses that only tell where a reader came from.
TRACKING = re.compile(r"(?<=[?&])(?:utm_\w+|fbclid|gclid|mc_[ce]id|ref_src|igshid)=[^&#]*&?")
BLANKS = re.compile(r"\n{3,}")
REFRESH = re.compile(r"\s*[\d.]*\s*[;,]\s*url\s*=\s*[\"']?([^\"'\s]+)", re.IGNORECASE)


def convert_page(fd: int | None, args: Mapping[str, Any]) -> tuple[dict[str, Any], bytes]:
    """Return the text of fetched content: `{title?, kind, hidden?, leads_to?, scripted?}`, and the text in UTF-8.

    A feed also has `entries`. `args`: `url`, `form` (html, xml, json or text) and `charset`, if the server named one.
    """
    assert fd is not None
    with os.fdopen(os.dup(fd), "rb") as file:
        data = file.read()
    form = args["form"]
    text = decode_text(data, args.get("charset"), markup=form in ("html", "xml"))
    if form == "xml" and (feed := feeds.read_feed(text, args["url"])) is not None:
        told, markdown = feed
    elif form == "html" or (form == "xml" and "<html" in text[:1_000].lower()):
        told, markdown = convert_html(text, args["url"])
    else:
        told, markdown = {"kind": form}, text
    return told, markdown.encode("utf-8", "replace")


def convert_html(text: str, url: str) -> tuple[dict[str, Any], str]:
    """Return information about a page, and its main text as Markdown."""
    tree = parse_html(text)
    if tree is None:
        return {"kind": "markdown"}, ""
    scripted = len(tree.xpath("//script"))
    told: dict[str, Any] = {"kind": "markdown", "title": _find_title(tree)}
    base = join_url(url, next(iter(tree.xpath("//base/@href")), ""))
    if (refresh := _find_refresh_target(tree, base)) is not None:
        told["leads_to"] = refresh
    gone = hidden_content.remove_hidden(tree)
    _fix_links(tree, base, url)
    _replace_images_with_text(tree)
    body = tree.find("body")
    markdown = _extract_main_text(tree if body is None else body, url)
    if told["title"] and not markdown.lstrip().startswith("# "):
        markdown = f"# {told['title']}\n\n{markdown}"
    if gone:
        told["hidden"] = gone
    if scripted and len(markdown) < MIN_TEXT:
        told["scripted"] = True
    return {key: value for key, value in told.items() if value}, markdown


def _find_title(tree: Any) -> str:
    named = tree.xpath("//meta[@property='og:title']/@content") or [
        *(each.text_content() for each in tree.xpath("//head//title | //body/title"))
    ]
    first = " ".join(named[0].split()) if named else ""
    if not first and (headings := tree.xpath("//h1")):
        first = " ".join(headings[0].text_content().split())
    return first[:300]


def _find_refresh_target(tree: Any, base: str) -> str | None:
    for content in tree.xpath("//meta[translate(@http-equiv, 'REFSH', 'refsh')='refresh']/@content"):
        if (found := REFRESH.match(content)) is not None:
            return join_url(base, found[1])[:2_000]
    return None


def _fix_links(tree: Any, base: str, url: str) -> None:
    """Make links absolute, without tracking parameters.

    Links to the page itself, or of schemes other than http, https and mailto, become plain text.
    """
    here = url.partition("#")[0]
    for link in list(tree.iter("a")):
        try:
            target = join_url(base, (link.get("href") or "").strip())
            scheme = urlsplit(target).scheme
        except ValueError:
            target, scheme = "", ""
        if scheme not in ("http", "https", "mailto") or target.partition("#")[0] == here:
            link.tag = "span"
            link.attrib.pop("href", None)
        else:
            link.set("href", TRACKING.sub("", target).rstrip("?&"))
            link.attrib.pop("title", None)


def _replace_images_with_text(tree: Any) -> None:
    """Replace each image with its alternative text."""
    for picture in list(tree.iter("img")):
        said = " ".join((picture.get("alt") or "").split())[:200]
        if said:
            picture.tail = f"[picture: {said}]{picture.tail or ''}"
        hidden_content.remove_element(picture)


def _extract_main_text(body: Any, url: str) -> str:
    declared = _find_declared_main(body)
    if declared is not None:
        return _render_markdown(_strip_frame(declared, whole=False))
    from trafilatura import extract

    framed = _strip_frame(body, whole=True)
    whole = _render_markdown(framed)
    found: str | None = extract(
        wrap_body(framed), url=url, output_format="markdown", include_links=True, include_tables=True, include_formatting=True,
        include_comments=True, favor_recall=True, with_metadata=False,
    )  # fmt: skip
    # Where there is nothing else beside the text, it is given as it stands: more of its form is kept.
    if (
        found
        and ENOUGH * _count_words(whole) <= _count_words(found) < ALMOST * _count_words(whole)
        and _has_headings(framed, found)
    ):
        return _tidy_markdown(found)
    return whole


def _has_headings(part: Any, found: str) -> bool:
    """Return True if at least half of the headings were found.

    A list of answers or of search results is useless without them.
    """
    headings = [" ".join(each.text_content().split()) for each in part.xpath(".//h1 | .//h2 | .//h3")]
    told = [each for each in headings if each and each in found]
    return len(told) >= ENOUGH * len(headings)


def _find_declared_main(body: Any) -> Any | None:
    """Return the part that the page declares to be its text; None if it declares none, or one that is nearly empty."""
    for path in ("//main | //*[@role='main']", "//article | //*[@role='article']"):
        found = [each for each in body.xpath(path) if not any(above.tag == "article" for above in each.iterancestors())]
        if len(found) == 1 and _text_length(found[0]) >= min(MIN_TEXT, _text_length(body) / 3):
            return found[0]
    return None


def _strip_frame(root: Any, *, whole: bool) -> Any:
    """Return the part without the frame of its text: menus, notices, links to other pages."""
    total = max(_text_length(root), 1)
    for form in list(root.iter("form", "fieldset")):
        # Old pages stand in one as a whole.
        form.tag = "div"
    for element in list(root.iter()):
        if element is root or not isinstance(element.tag, str) or element.getparent() is None:
            continue
        framing = (
            element.tag in FRAME_TAGS or element.get("role", "") in FRAME_ROLES or element.get("aria-modal") == "true"
        )
        if whole and element.tag == "header":
            framing = framing or not element.xpath(".//h1")
        named = f"{element.get('class', '')} {element.get('id', '')}".strip()
        framing = framing or (
            bool(named) and element.tag not in ("body", "main", "article") and FRAME_NAMES.search(named) is not None
        )
        if framing and _text_length(element) < total / 2 and not element.xpath("self::h1 | .//h1"):
            hidden_content.remove_element(element)
    return root


def _render_markdown(part: Any) -> str:
    from html_to_markdown import ConversionOptions, convert

    options = ConversionOptions(extract_metadata=False, autolinks=False, bullets="-", compact_tables=True)
    converted: Any = convert(serialize_html(part), options)
    return _tidy_markdown(converted.content or "")


def _tidy_markdown(text: str) -> str:
    lines = (line.rstrip() for line in text.splitlines())
    return BLANKS.sub("\n\n", "\n".join(lines)).strip() + "\n"


def _count_words(text: str) -> int:
    return len(WORD_PATTERN.findall(re.sub(r"\]\([^)]*\)", "]", text)))


def _text_length(element: Any) -> int:
    return len(" ".join(element.text_content().split()))

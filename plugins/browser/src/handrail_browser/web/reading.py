"""A page as Markdown: the job `page`, which runs in the worker.

Which part of a page is its text, it often says itself (`main`, `article`). Where it does not, trafilatura finds it; and where that finds less
than half of what there is, or of its headings, the whole page is taken without its frame.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from handrail.net.urls import joined
from handrail_browser.web import feeds, hidden
from handrail_browser.web.decoding import decode
from handrail_browser.web.trees import as_html, document_of, html_tree

# Characters that a page has to have before it is found to be empty.
LITTLE = 200
# Of the words of a page, so much must be in what was found to be its text.
ENOUGH, ALMOST = 0.5, 0.9
WORD = re.compile(r"\w+")
FRAME = frozenset(("nav", "aside", "footer"))
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


def page(fd: int | None, args: Mapping[str, Any]) -> tuple[dict[str, Any], bytes]:
    """The text of what was fetched: `{title?, kind, hidden?, leads_to?, scripted?}`, and the text itself in UTF-8.

    `args`: `url`, `form` (html, xml, json or text) and `charset`, if the server named one.
    """
    assert fd is not None
    with os.fdopen(os.dup(fd), "rb") as file:
        data = file.read()
    form = args["form"]
    text = decode(data, args.get("charset"), markup=form in ("html", "xml"))
    if form == "xml" and (feed := feeds.read(text, args["url"])) is not None:
        told, markdown = feed
    elif form == "html" or (form == "xml" and "<html" in text[:1_000].lower()):
        told, markdown = of_html(text, args["url"])
    else:
        told, markdown = {"kind": form}, text
    return told, markdown.encode("utf-8", "replace")


def of_html(text: str, url: str) -> tuple[dict[str, Any], str]:
    """The main text of a page as Markdown, and what is to be said of it."""
    tree = html_tree(text)
    if tree is None:
        return {"kind": "markdown"}, ""
    scripted = len(tree.xpath("//script"))
    told: dict[str, Any] = {"kind": "markdown", "title": _title(tree)}
    base = joined(url, next(iter(tree.xpath("//base/@href")), ""))
    if (refresh := _refresh(tree, base)) is not None:
        told["leads_to"] = refresh
    gone = hidden.take_out(tree)
    _mend_links(tree, base, url)
    _tell_pictures(tree)
    body = tree.find("body")
    markdown = _main(tree if body is None else body, url)
    if told["title"] and not markdown.lstrip().startswith("# "):
        markdown = f"# {told['title']}\n\n{markdown}"
    if gone:
        told["hidden"] = gone
    if scripted and len(markdown) < LITTLE:
        told["scripted"] = True
    return {key: value for key, value in told.items() if value}, markdown


def _title(tree: Any) -> str:
    named = tree.xpath("//meta[@property='og:title']/@content") or [
        *(each.text_content() for each in tree.xpath("//head//title | //body/title"))
    ]
    first = " ".join(named[0].split()) if named else ""
    if not first and (headings := tree.xpath("//h1")):
        first = " ".join(headings[0].text_content().split())
    return first[:300]


def _refresh(tree: Any, base: str) -> str | None:
    for content in tree.xpath("//meta[translate(@http-equiv, 'REFSH', 'refsh')='refresh']/@content"):
        if (found := REFRESH.match(content)) is not None:
            return joined(base, found[1])[:2_000]
    return None


def _mend_links(tree: Any, base: str, url: str) -> None:
    """Links as whole addresses; those that lead nowhere else become plain text."""
    here = url.partition("#")[0]
    for link in list(tree.iter("a")):
        try:
            target = joined(base, (link.get("href") or "").strip())
            scheme = urlsplit(target).scheme
        except ValueError:
            target, scheme = "", ""
        if scheme not in ("http", "https", "mailto") or target.partition("#")[0] == here:
            link.tag = "span"
            link.attrib.pop("href", None)
        else:
            link.set("href", TRACKING.sub("", target).rstrip("?&"))
            link.attrib.pop("title", None)


def _tell_pictures(tree: Any) -> None:
    """A picture as what it is said to show."""
    for picture in list(tree.iter("img")):
        said = " ".join((picture.get("alt") or "").split())[:200]
        if said:
            picture.tail = f"[picture: {said}]{picture.tail or ''}"
        hidden.remove(picture)


def _main(body: Any, url: str) -> str:
    declared = _declared_main(body)
    if declared is not None:
        return _markdown(_without_frame(declared, whole=False))
    from trafilatura import extract

    framed = _without_frame(body, whole=True)
    whole = _markdown(framed)
    found: str | None = extract(
        document_of(framed), url=url, output_format="markdown", include_links=True, include_tables=True, include_formatting=True,
        include_comments=True, favor_recall=True, with_metadata=False,
    )  # fmt: skip
    # Where there is nothing else beside the text, it is given as it stands: more of its form is kept.
    if found and ENOUGH * _words(whole) <= _words(found) < ALMOST * _words(whole) and _headed(framed, found):
        return _tidy(found)
    return whole


def _headed(part: Any, found: str) -> bool:
    """Whether what was found has the headings: a list of answers or of hits is nothing without them."""
    headings = [" ".join(each.text_content().split()) for each in part.xpath(".//h1 | .//h2 | .//h3")]
    told = [each for each in headings if each and each in found]
    return len(told) >= ENOUGH * len(headings)


def _declared_main(body: Any) -> Any | None:
    """What the page itself says its text is; None when it does not, or says it of next to nothing."""
    for path in ("//main | //*[@role='main']", "//article | //*[@role='article']"):
        found = [each for each in body.xpath(path) if not any(above.tag == "article" for above in each.iterancestors())]
        if len(found) == 1 and _length(found[0]) >= min(LITTLE, _length(body) / 3):
            return found[0]
    return None


def _without_frame(root: Any, *, whole: bool) -> Any:
    """The part without what frames its text: menus, notices, what leads elsewhere."""
    total = max(_length(root), 1)
    for form in list(root.iter("form", "fieldset")):
        # Old pages stand in one as a whole.
        form.tag = "div"
    for element in list(root.iter()):
        if element is root or not isinstance(element.tag, str) or element.getparent() is None:
            continue
        framing = element.tag in FRAME or element.get("role", "") in FRAME_ROLES or element.get("aria-modal") == "true"
        if whole and element.tag == "header":
            framing = framing or not element.xpath(".//h1")
        named = f"{element.get('class', '')} {element.get('id', '')}".strip()
        framing = framing or (
            bool(named) and element.tag not in ("body", "main", "article") and FRAME_NAMES.search(named) is not None
        )
        if framing and _length(element) < total / 2 and not element.xpath("self::h1 | .//h1"):
            hidden.remove(element)
    return root


def _markdown(part: Any) -> str:
    from html_to_markdown import ConversionOptions, convert

    options = ConversionOptions(extract_metadata=False, autolinks=False, bullets="-", compact_tables=True)
    converted: Any = convert(as_html(part), options)
    return _tidy(converted.content or "")


def _tidy(text: str) -> str:
    lines = (line.rstrip() for line in text.splitlines())
    return BLANKS.sub("\n\n", "\n".join(lines)).strip() + "\n"


def _words(text: str) -> int:
    return len(WORD.findall(re.sub(r"\]\([^)]*\)", "]", text)))


def _length(element: Any) -> int:
    return len(" ".join(element.text_content().split()))

"""What is made of whole pages: their text without what frames it, and without what nobody would see."""

from __future__ import annotations

import pytest
from tests.plugins.browser.pages import HIDDEN, PAGES, SECRET, SEEN, TEXT, Page

from handrail_browser.web import feeds
from handrail_browser.web.page_markdown import convert_html

URL = "http://good.example/dir/page"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_is_its_text_without_its_frame(page: Page) -> None:
    _, text = convert_html(page.html, URL)
    assert [each for each in page.must if each not in text] == [], text
    assert [each for each in page.must_not if each in text] == [], text


@pytest.mark.parametrize("markup", HIDDEN)
def test_what_nobody_would_see_is_left_out(markup: str) -> None:
    told, text = convert_html(f"<title>t</title><main><h1>T</h1><p>{TEXT}</p>{markup}</main>", URL)
    assert SECRET not in text
    assert "mend the old bridge" in text
    if "style='" in markup or "class='" in markup or "hidden>" in markup:
        assert told["hidden"] == len(SECRET)


@pytest.mark.parametrize("markup", SEEN)
def test_what_is_seen_stays(markup: str) -> None:
    _, text = convert_html(f"<title>t</title><main><h1>T</h1><p>{TEXT}</p>{markup}</main>", URL)
    assert "Seen text" in text


def test_a_page_that_only_scripts_fill_says_so() -> None:
    told, _ = convert_html("<title>App</title><div id=root></div><script src=app.js></script>", URL)
    assert told["scripted"]


def test_an_address_that_is_none_takes_nothing_from_the_page() -> None:
    broken = "<base href='http://['><meta http-equiv=refresh content='0; url=http://[::1'>"
    told, text = convert_html(f"<head><title>t</title>{broken}</head><main><p>{TEXT}</p></main>", URL)
    assert TEXT.split(".")[0] in text
    assert told["leads_to"] == "http://[::1"
    feed = feeds.read_feed("<rss><channel><item><title>News</title><link>http://[</link></item></channel></rss>", URL)
    assert feed is not None
    assert "News" in feed[1]

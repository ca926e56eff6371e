"""Search engines by their documented interfaces, behind one of ours."""

from __future__ import annotations

import html
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar
from urllib.parse import quote, urlencode, urlsplit

from handrail.json_types import is_list

HTML_TAG = re.compile(r"</?[a-zA-Z][^>]{0,200}>")
LONGEST_TITLE, LONGEST_SNIPPET, LONGEST_ANSWER = 200, 500, 4_000
LONGEST_URL = 2_000
# What Brave takes of a query.
CHARACTERS = 400


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """One request to an engine."""

    url: str
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    content: bytes | None = None


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A page that was found."""

    title: str
    url: str
    snippet: str


@dataclass(frozen=True, slots=True)
class SearchAnswer:
    """Response of a search engine: pages, best first, and its answer in prose, if it gives one."""

    hits: tuple[SearchHit, ...]
    answer: str = ""
    note: str = ""


class SearchProvider(ABC):
    """Interface to one search engine: how to query it and read its responses.

    `variables` are the environment variables that may hold its key if the configuration names none.
    """

    name: ClassVar[str]
    home: ClassVar[str] = ""
    variables: ClassVar[tuple[str, ...]] = ()
    # What a person does about an answer that refuses.
    refused: ClassVar[str] = "plugins.browser.search.key names the key; see whether it is valid"

    def __init__(self, *, url: str | None, key: str, model: str) -> None:
        self._url = (url or self.home).rstrip("/")
        self._key = key
        self._model = model

    @abstractmethod
    def ask(self, query: str, limit: int) -> SearchRequest:
        """Return the request for a query."""

    @abstractmethod
    def read(self, answer: Mapping[str, Any]) -> SearchAnswer:
        """Read a JSON response."""


class SearXNGProvider(SearchProvider):
    """https://docs.searxng.org/dev/search_api.html"""

    name = "searxng"
    refused = "the instance may not allow JSON: its settings.yml needs `json` among search.formats"

    def ask(self, query: str, limit: int) -> SearchRequest:
        return SearchRequest(f"{self._url}/search?{urlencode({'q': query, 'format': 'json'})}")

    def read(self, answer: Mapping[str, Any]) -> SearchAnswer:
        hits = _collect_hits(_require_list(answer["results"]), "content")
        silent = [str(each[0]) for each in _require_list(answer.get("unresponsive_engines")) if each]
        note = f"These engines did not answer: {', '.join(silent)[:200]}." if silent else ""
        return SearchAnswer(hits, note=note)


class BraveProvider(SearchProvider):
    """https://api-dashboard.search.brave.com/app/documentation/web-search/get-started"""

    name = "brave"
    home = "https://api.search.brave.com/res/v1"
    variables = ("BRAVE_API_KEY", "BRAVE_SEARCH_API_KEY")

    def ask(self, query: str, limit: int) -> SearchRequest:
        asked = urlencode({"q": query[:CHARACTERS], "count": min(limit, 20), "text_decorations": "false"})
        return SearchRequest(f"{self._url}/web/search?{asked}", headers={"x-subscription-token": self._key})

    def read(self, answer: Mapping[str, Any]) -> SearchAnswer:
        # Where it finds nothing, it leaves the part out.
        if answer.get("type") != "search":
            raise KeyError("type")
        return SearchAnswer(_collect_hits(_require_list(answer.get("web", {}).get("results")), "description"))


class GeminiProvider(SearchProvider):
    """https://ai.google.dev/gemini-api/docs/google-search: a model searches, and names where its answer comes from."""

    name = "gemini"
    home = "https://generativelanguage.googleapis.com/v1beta"
    variables = ("GEMINI_API_KEY", "GOOGLE_API_KEY")

    def ask(self, query: str, limit: int) -> SearchRequest:
        body: dict[str, Any] = {
            "contents": [{"role": "user", "parts": [{"text": query}]}],
            "tools": [{"google_search": {}}],
        }
        headers = {"x-goog-api-key": self._key, "content-type": "application/json"}
        url = f"{self._url}/models/{quote(self._model, safe='')}:generateContent"
        return SearchRequest(url, "POST", headers, json.dumps(body).encode())

    def read(self, answer: Mapping[str, Any]) -> SearchAnswer:
        candidate = answer["candidates"][0]
        grounding = candidate.get("groundingMetadata", {})
        said: dict[int, list[str]] = {}
        for support in _require_list(grounding.get("groundingSupports")):
            for index in _require_list(support.get("groundingChunkIndices")):
                said.setdefault(index, []).append(str(support.get("segment", {}).get("text", "")))
        pages = [
            {**chunk.get("web", {}), "said": " … ".join(said.get(index, ()))}
            for index, chunk in enumerate(_require_list(grounding.get("groundingChunks")))
        ]
        hits = _collect_hits(
            ({"url": page.get("uri"), "title": page.get("title"), "said": page["said"]} for page in pages), "said"
        )
        parts = _require_list(candidate.get("content", {}).get("parts"))
        answered = "".join(str(part.get("text", "")) for part in parts if not part.get("thought"))
        return SearchAnswer(hits, answer=answered[:LONGEST_ANSWER])


PROVIDERS: Mapping[str, type[SearchProvider]] = {
    each.name: each for each in (SearXNGProvider, BraveProvider, GeminiProvider)
}


def _collect_hits(found: Iterable[Mapping[str, Any]], snippet: str) -> tuple[SearchHit, ...]:
    """Return each page once. Results without a web address are left out."""
    hits: dict[str, SearchHit] = {}
    for each in found:
        url = str(each.get("url") or "")[:LONGEST_URL]
        if urlsplit(url).scheme not in ("http", "https") or url in hits:
            continue
        hits[url] = SearchHit(
            _strip_markup(each.get("title"), LONGEST_TITLE) or url,
            url,
            _strip_markup(each.get(snippet), LONGEST_SNIPPET),
        )
    return tuple(hits.values())


def _strip_markup(text: object, most: int) -> str:
    words = " ".join(html.unescape(HTML_TAG.sub("", str(text or "")[: most * 8])).split())
    return words if len(words) <= most else f"{words[: most - 1]}…"


def _require_list(value: object) -> list[Any]:
    if value is None:
        return []
    if not is_list(value):
        raise TypeError("no list")
    return value

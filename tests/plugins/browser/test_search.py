"""Searches over real sockets, from a server on this machine that speaks the protocols of search engines."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Any

import pytest
from google.genai import types as gemini
from tests.plugins.browser.opened import opened
from tests.plugins.system.serving import Answer, Served, file, head, in_turn, says, serving

from handrail import ToolResult
from handrail_browser.search.providers import GeminiProvider

KEY = "k-123456789"
SEARXNG = {
    "query": "q",
    "number_of_results": 2,
    "results": [
        {
            "url": "https://a.example/",
            "title": "A",
            "content": "About <b>a</b> &amp; more",
            "engine": "x",
            "score": 1.0,
        },
        {"url": "https://a.example/", "title": "A again", "content": "", "engine": "y"},
        {"url": "javascript:alert(1)", "title": "evil", "content": ""},
        {"url": "https://b.example/", "title": "", "content": None},
    ],
    "answers": [],
    "suggestions": [],
    "unresponsive_engines": [["z", "timeout"]],
}
BRAVE = {
    "type": "search",
    "web": {"type": "search", "results": [{"title": "A", "url": "https://a.example/", "description": "About a"}]},
}
GEMINI = {
    "candidates": [
        {
            "content": {"role": "model", "parts": [{"text": "A is b."}]},
            "groundingMetadata": {
                "webSearchQueries": ["q"],
                "groundingChunks": [{"web": {"uri": "https://a.example/", "title": "A"}}],
                "groundingSupports": [{"segment": {"text": "A is b."}, "groundingChunkIndices": [0]}],
            },
        }
    ]
}  # fmt: skip
PATHS = {
    "searxng": "/search?q=what+is+a&format=json",
    "brave": "/web/search?q=what+is+a&count=10&text_decorations=false",
    "gemini": "/models/gemini-2.5-flash:generateContent",
}
ANSWERS: Mapping[str, Any] = {"searxng": SEARXNG, "brave": BRAVE, "gemini": GEMINI}
EVERY = pytest.mark.parametrize("provider", list(PATHS))


@pytest.fixture
async def server() -> AsyncGenerator[Served, None]:
    async with serving() as served:
        yield served


def says_json(value: object) -> Answer:
    return file(json.dumps(value).encode(), content_type="application/json")


async def search(folder: Path, server: Served, provider: str, answer: Answer, **args: Any) -> ToolResult:
    server.answers[PATHS[provider]] = answer
    config = {"provider": provider, "url": server.url(""), "key": "secret:engine", "timeout": 2}
    if provider == "searxng":
        config.pop("key")
    async with opened(folder, {"HANDRAIL_SECRET_ENGINE": KEY}, search=config) as session:
        return await session.call("web_search", {"query": "what is a", **args})


@EVERY
async def test_every_engine_gives_title_address_and_snippet(tmp_path: Path, server: Served, provider: str) -> None:
    result = await search(tmp_path, server, provider, says_json(ANSWERS[provider]))
    assert result["status"] == "success", result
    first = result["results"][0]
    assert (first["title"], first["url"]) == ("A", "https://a.example/")
    assert first["snippet"] in ("About a & more", "About a", "A is b.")
    assert result.source is not None
    assert result.source.origin == "the network"


async def test_what_searxng_finds_twice_or_what_is_no_page_is_left_out(tmp_path: Path, server: Served) -> None:
    result = await search(tmp_path, server, "searxng", says_json(SEARXNG))
    assert [hit["url"] for hit in result["results"]] == ["https://a.example/", "https://b.example/"]
    assert "z" in result["note"]


@pytest.mark.parametrize(("provider", "header"), [("brave", "x-subscription-token"), ("gemini", "x-goog-api-key")])
async def test_a_key_goes_to_the_engine_and_nowhere_else(
    tmp_path: Path, server: Served, provider: str, header: str
) -> None:
    result = await search(tmp_path, server, provider, says_json({**ANSWERS[provider], "echo": KEY}))
    assert server.asked[0].headers[header] == KEY
    assert KEY not in json.dumps(result.wire())


async def test_no_more_is_told_than_was_asked_for(tmp_path: Path, server: Served) -> None:
    many = [{"url": f"https://a.example/{n}", "title": "t", "content": "c" * 5_000} for n in range(100)]
    result = await search(tmp_path, server, "searxng", says_json({"results": many}), limit=3)
    assert len(result["results"]) == 3
    assert len(result["results"][0]["snippet"]) == 500


@EVERY
async def test_nothing_found_is_no_error(tmp_path: Path, server: Served, provider: str) -> None:
    empty = {"searxng": {"results": []}, "brave": {"type": "search"}, "gemini": {"candidates": [{}]}}[provider]
    result = await search(tmp_path, server, provider, says_json(empty))
    assert (result["status"], result["results"], result["note"]) == ("success", [], "Nothing was found.")


@EVERY
@pytest.mark.parametrize(
    ("answer", "told", "again", "tries"),
    [
        pytest.param(says(head(401, content_length=0)), "401 (Unauthorized)", False, 1, id="401"),
        pytest.param(says(head(403, content_length=0)), "403 (Forbidden)", False, 1, id="403"),
        pytest.param(says(head(429, content_length=0, retry_after="30")), "try again in 30 s", True, 1, id="429-long"),
        pytest.param(says(head(500, content_length=0)), "500 (Internal Server Error)", True, 3, id="500"),
        pytest.param(file(b"<html>no json</html>"), "not its protocol", False, 1, id="malformed"),
        pytest.param(file(b'{"results": 1, "candidates": 2}'), "not its protocol", False, 1, id="other-shape"),
        pytest.param(file(b" " * 2_100_000), "more than 2,000,000 bytes", False, 1, id="huge"),
    ],
)
async def test_an_engine_that_fails_is_told_truly(
    tmp_path: Path, server: Served, provider: str, answer: Answer, told: str, again: bool, tries: int
) -> None:
    result = await search(tmp_path, server, provider, answer)
    assert result["status"] == "error"
    assert told in result["error"]["message"]
    assert result["error"]["retryable"] is again
    assert len(server.asked) == tries
    assert KEY not in json.dumps(result.wire())


async def test_an_engine_that_is_busy_is_asked_again(tmp_path: Path, server: Served) -> None:
    busy = says(head(429, content_length=0, retry_after="1"))
    result = await search(tmp_path, server, "brave", in_turn(busy, says_json(BRAVE)))
    assert result["status"] == "success"
    assert len(server.asked) == 2


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({}, "[plugins.browser.search]"),
        ({"provider": "searxng"}, "plugins.browser.search.url"),
        ({"provider": "brave"}, "BRAVE_API_KEY"),
        ({"provider": "gemini", "key": "secret:nobody"}, "there is no secret 'nobody'"),
    ],
)
async def test_what_is_not_configured_is_said_with_the_cure(tmp_path: Path, config: dict[str, str], told: str) -> None:
    async with opened(tmp_path, {}, search=config) as session:
        result = await session.call("web_search", {"query": "q"})
    assert result["error"]["code"] == "not_found"
    assert told in result["error"]["message"]


def test_what_gemini_is_asked_and_answers_is_what_its_sdk_knows() -> None:
    ask = GeminiProvider(url=None, key=KEY, model="gemini-2.5-flash").ask("q", 5)
    assert ask.content is not None
    body = json.loads(ask.content)
    assert gemini.Tool.model_validate(body["tools"][0]).google_search is not None
    assert gemini.Content.model_validate(body["contents"][0]).parts
    known = gemini.GenerateContentResponse.model_validate(GEMINI)
    assert known.candidates is not None
    grounding = known.candidates[0].grounding_metadata
    assert grounding is not None
    assert grounding.grounding_chunks is not None
    assert grounding.grounding_supports is not None
    assert grounding.grounding_supports[0].grounding_chunk_indices == [0]

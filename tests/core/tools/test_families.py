"""Families of models by their names, and what a tool tells one of them otherwise."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from pydantic import Field

from handrail import PluginError, Tool, Variation, declare, family_of, tool


@pytest.mark.parametrize(
    ("model", "family"),
    [
        ("gemini-3-pro-preview", "gemini-3"),
        ("models/gemini-3-pro", "gemini-3"),
        ("google-gla:gemini-3.1-flash", "gemini-3"),
        ("projects/p/locations/global/publishers/google/models/gemini-3-flash", "gemini-3"),
        ("gemini-3", "gemini-3"),
        ("gemini-30", "gemini"),
        ("gemini-2.5-flash", "gemini"),
        ("gemini", "gemini"),
        ("claude-opus-4-1", "claude"),
        ("anthropic/claude-sonnet-4.5", "claude"),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude"),
        ("arn:aws:bedrock:us-east-1::foundation-model/anthropic.claude-3-5-haiku-20241022-v1:0", "claude"),
        ("claude-opus-4@20250514", "claude"),
        ("Claude-Opus-4", "claude"),
        ("gpt-5", "gpt"),
        ("openai/gpt-5-mini", "gpt"),
        ("ft:gpt-4o-mini:acme::id", "gpt"),
        ("openai.gpt-oss-120b-1:0", "gpt"),
        ("openai:o3", "gpt"),
        ("o4-mini", "gpt"),
        ("chatgpt-4o-latest", "gpt"),
        (" gpt-5 ", "gpt"),
        ("default", "default"),
        ("", "default"),
        (None, "default"),
        ("llama-4", "default"),
        ("my-gpt-5-clone", "default"),
        ("notclaude-3", "default"),
        ("claudette", "default"),
        ("o3x", "default"),
        ("ollama/qwen3", "default"),
    ],
)
def test_a_model_is_of_the_family_that_its_name_says(model: str | None, family: str) -> None:
    assert family_of(model) == family


def search(families: dict[str, Variation]) -> Tool:
    @tool(families=families)
    async def search(
        query: Annotated[str, Field(description="Words.")], limit: Annotated[int, Field(description="At most.")] = 3
    ) -> None:
        """Search. Returns hits."""

    return search


def told(found: Tool, family: str) -> tuple[str, dict[str, Any]]:
    declared = declare(found, dialect="anthropic", family=family)
    properties = declared["input_schema"]["properties"]
    return declared["description"], {name: value.get("description") for name, value in properties.items()}


def test_a_family_is_told_what_is_said_for_it_and_else_what_everybody_is() -> None:
    found = search(
        {
            "gemini": Variation(description="Look up.", parameters={"limit": None}),
            "gpt": Variation(parameters={"query": {"description": "Terms."}}),
        }
    )
    plain = ("Search. Returns hits.", {"query": "Words.", "limit": "At most."})
    assert told(found, "default") == told(found, "claude") == told(found, "nobody") == plain
    assert told(found, "gpt") == ("Search. Returns hits.", {"query": "Terms.", "limit": "At most."})
    assert told(found, "gemini") == told(found, "gemini-3") == ("Look up.", {"query": "Words."})
    assert declare(found, dialect="anthropic")["input_schema"]["properties"]["limit"]["default"] == 3


def test_the_narrower_family_counts_alone() -> None:
    found = search({"gemini": Variation(description="Old."), "gemini-3": Variation(description="New.")})
    assert [told(found, name)[0] for name in ("gemini", "gemini-3")] == ["Old.", "New."]


@pytest.mark.parametrize(
    ("families", "said"),
    [
        ({"gemni": Variation()}, "did you mean 'gemini'"),
        ({"gpt": Variation(parameters={"lmit": None})}, "'lmit'"),
        ({"gpt": Variation(parameters={"query": None})}, "'query', which is required"),
    ],
)
def test_a_variation_that_fits_nothing_is_an_error(families: dict[str, Variation], said: str) -> None:
    with pytest.raises(PluginError, match=said):
        search(families)

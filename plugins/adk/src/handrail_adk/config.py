"""The settings of `handrail run`."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict, Field


class ModelPrice(BaseModel):
    """`[plugins.adk.prices."MODEL"]`: dollars for a million tokens."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    input: float = Field(ge=0, description="Dollars for a million tokens that the model reads.")
    output: float = Field(ge=0, description="Dollars for a million tokens that it writes, thoughts among them.")


class RunConfig(BaseModel):
    """`[plugins.adk]`"""

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: str = Field(default="gemini-3-pro-preview", min_length=1, description="The model where --model names none.")
    url: str | None = Field(
        default=None, pattern=r"^https?://", description="Where the Gemini API is; unset, where Google's client looks."
    )
    key: str | None = Field(
        default=None,
        pattern=r"^secret:[A-Za-z][A-Za-z0-9_-]{0,63}$",
        description="The key of the Gemini API, as secret:NAME; unset, GEMINI_API_KEY counts.",
    )
    steps: int = Field(default=50, ge=1, description="Answers of the model, at most.")
    seconds: float = Field(default=600, gt=0, description="Seconds that a run takes at most.")
    tokens: int = Field(default=2_000_000, ge=1, description="Tokens, read and written, that a run spends at most.")
    dollars: float | None = Field(
        default=None, gt=0, description="Dollars that a run spends at most; needs the model's price."
    )
    prices: Mapping[str, ModelPrice] = Field(
        default_factory=dict[str, ModelPrice], description="What models cost, by the name that --model is given."
    )
    pictures: int = Field(
        default=3, ge=0, le=20, description="How many of the newest results keep their pictures in what is sent."
    )
    thoughts: bool = Field(default=False, description="Ask the model for its thoughts, and show them.")
    thumbnails: bool = Field(default=True, description="Show pictures of results, where the terminal can.")
    attempts: int = Field(default=5, ge=1, le=20, description="How often the model is asked until it answers.")
    pause: float = Field(default=1.0, gt=0, le=60, description="Seconds before the second attempt; doubled with each.")
    longest_pause: float = Field(
        default=60.0, gt=0, description="Seconds that are waited at most, also where the service asks for more."
    )
    answer_seconds: float = Field(default=120, gt=0, description="Seconds of silence after which an attempt is over.")

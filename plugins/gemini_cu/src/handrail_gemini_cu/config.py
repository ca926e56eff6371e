"""The settings of the backend and of the tool."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from handrail.text import format_suggestion
from handrail_gemini_cu.functions import FUNCTIONS, Environment


def _check_function_name(name: str) -> str:
    if name not in FUNCTIONS:
        raise ValueError(f"there is no function {name!r}{format_suggestion(name, FUNCTIONS)}")
    return name


class GeminiConfig(BaseModel):
    """`[backends.gemini_computer_use]`"""

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: str = Field(default="gemini-3.5-flash", min_length=1, description="The model's name, as the API takes it.")
    environment: Environment = Field(default="desktop", description="What the model is told that it works on.")
    url: str = Field(
        default="https://generativelanguage.googleapis.com",
        pattern=r"^https?://",
        description="Where the Gemini API is.",
    )
    key: str | None = Field(
        default=None, pattern=r"^secret:[A-Za-z][A-Za-z0-9_-]{0,63}$", description="The API key, as secret:NAME."
    )
    key_variable: str = Field(
        default="GEMINI_API_KEY",
        min_length=1,
        description="The environment variable that has the key where key is unset.",
    )
    excluded: tuple[Annotated[str, AfterValidator(_check_function_name)], ...] = Field(
        default=(), description="Functions of the model that it shall not have, such as open_app."
    )
    injection_check: bool = Field(
        default=False,
        description="Whether Google looks for instructions that are hidden in pictures; from Gemini 3.5 on.",
    )
    entries: int = Field(
        default=30, ge=4, le=200, description="Entries of the conversation that are sent, the task among them."
    )
    pictures: int = Field(default=3, ge=1, le=20, description="How many of the newest pictures are sent.")
    longest_side: int = Field(default=1440, ge=320, le=4096, description="Pixels of the longer side of what is sent.")
    attempts: int = Field(
        default=3, ge=1, le=10, description="How often a request is made that is refused for the moment."
    )
    pause: float = Field(default=1.0, gt=0, le=60, description="Seconds before the second attempt; doubled with each.")
    deadline: float = Field(default=120, gt=0, le=600, description="Seconds for one answer, all attempts together.")
    input_price: float = Field(
        default=0, ge=0, description="Dollars for a million tokens of input; 0 where it is not known."
    )
    output_price: float = Field(default=0, ge=0, description="Dollars for a million tokens of output.")
    search_url: str = Field(
        default="https://www.google.com/", pattern=r"^https?://", description="What the function search opens."
    )
    browser: str = Field(
        default="chromium",
        min_length=1,
        description="The program that open_web_browser starts where no tool has a browser.",
    )


class ComputerUseConfig(BaseModel):
    """`[plugins.gemini_cu]`"""

    model_config = ConfigDict(extra="forbid", frozen=True)

    max_steps: int = Field(default=15, ge=1, le=15, description="Functions of the model that one call carries out.")
    max_seconds: float = Field(default=600, gt=0, le=3500, description="Seconds that one call takes at most.")
    max_tokens: int = Field(
        default=1_000_000, ge=1, description="Tokens, read and written, that one call spends at most."
    )
    max_dollars: float | None = Field(
        default=None, gt=0, description="Dollars that one call spends at most; needs the backend's prices."
    )

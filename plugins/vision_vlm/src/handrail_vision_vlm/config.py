"""The settings of the backends."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from handrail import PIXELS, TO_1000, UNIT, Dialect, Size
from handrail.api.coordinates import build_smart_dialect, compute_smart_size, fit_size

CoordinateKind = Literal["pixels", "resized", "unit", "percent", "thousand"]
TarsVersion = Literal["1.0", "1.5", "doubao", "2"]

PERCENT = Dialect("0 to 100", lambda size: (100.0, 100.0))
PLAIN_DIALECTS = {"pixels": PIXELS, "unit": UNIT, "percent": PERCENT, "thousand": TO_1000}


class VlmConfig(BaseModel):
    """`[backends.NAME]` of each of them."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    url: Annotated[str, Field(pattern=r"^https?://[^\s]+$")] | None = Field(
        default=None, description="The address under which chat/completions is; it often ends in /v1."
    )
    model: Annotated[str, Field(min_length=1)] | None = Field(
        default=None, description="The model's name there; unset: its name on Hugging Face."
    )
    key: Annotated[str, Field(pattern=r"^secret:[A-Za-z][A-Za-z0-9_-]{0,63}$")] | None = Field(
        default=None, description="The key, as secret:NAME; a server of your own may need none."
    )
    key_variable: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")] | None = Field(
        default=None, description="Or the variable of the environment that holds it."
    )
    coordinates: CoordinateKind | None = Field(
        default=None,
        description="How the model counts: pixels, resized (as it resizes the picture), unit (0 to 1), percent, thousand; unset: as its family does.",
    )
    factor: Annotated[int, Field(ge=1, le=256)] = Field(
        default=28, description="For resized: the sides of its pictures are multiples of this."
    )
    least_pixels: Annotated[int, Field(ge=1)] = Field(
        default=100 * 28 * 28, description="For resized: the smallest picture that it looks at."
    )
    most_pixels: Annotated[int, Field(ge=1_024, le=100_000_000)] = Field(
        default=2_700 * 28 * 28, description="Larger pictures are made smaller before they are sent."
    )
    temperature: Annotated[float, Field(ge=0, le=2)] | None = Field(
        default=None, description="Unset: 0 for models that are known to take it, else not sent."
    )
    max_tokens: Annotated[int, Field(ge=16)] | None = Field(default=4_096, description="Tokens of one answer.")
    body: dict[str, Any] = Field(default_factory=dict[str, Any], description="Further fields of each request.")
    tries: Annotated[int, Field(ge=1, le=10)] = Field(
        default=3, description="How often a request is sent while the server is busy or fails."
    )
    deadline: Annotated[float, Field(gt=0, le=600)] = Field(default=60, description="Seconds for one question.")

    @model_validator(mode="after")
    def _one_key(self) -> Self:
        if self.key is not None and self.key_variable is not None:
            raise ValueError("give key or key_variable, not both")
        return self


class UiTarsConfig(VlmConfig):
    """`[backends.ui_tars]`"""

    version: TarsVersion = Field(
        default="1.5", description="Of the model: it decides how it is asked, answers and counts."
    )
    language: Annotated[str, Field(min_length=1, max_length=40)] = Field(
        default="English", description="The language that it thinks in."
    )
    pictures: Annotated[int, Field(ge=1, le=20)] = Field(
        default=5, description="How many of the latest pictures it is shown of a task."
    )


def compute_sent_size(size: Size, coordinates: CoordinateKind, config: VlmConfig) -> Size:
    """Return the size in which a picture is sent; raise `OutOfRange` if the model cannot process the picture."""
    if coordinates == "resized":
        return compute_smart_size(
            size, factor=config.factor, min_pixels=config.least_pixels, max_pixels=_get_max_pixels(config)
        )
    return fit_size(size, pixels=config.most_pixels)


def select_dialect(coordinates: CoordinateKind, config: VlmConfig) -> Dialect:
    """Return the conversion from the model's coordinates to pixels of the picture that was sent."""
    if coordinates == "resized":
        return build_smart_dialect(
            factor=config.factor, min_pixels=config.least_pixels, max_pixels=_get_max_pixels(config)
        )
    return PLAIN_DIALECTS[coordinates]


def _get_max_pixels(config: VlmConfig) -> int:
    return max(config.most_pixels, config.least_pixels, config.factor**2)

"""`[plugins.mcp]`"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class ServerSettings(BaseModel):
    """How `handrail serve` behaves."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    answer_timeout: float = Field(default=300, gt=0, le=3600, description="Seconds that a person has for an answer.")

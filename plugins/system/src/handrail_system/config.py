"""The settings of this plugin, `[plugins.system]`."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class SystemConfig(BaseModel):
    """Limits on the size and duration of downloads."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    download_max_bytes: int = Field(default=500_000_000, ge=1, description="Bytes that a downloaded file may have.")
    download_timeout: float = Field(default=3_600, gt=0, description="Seconds that a download may take in all.")
    download_silence: float = Field(
        default=30, gt=0, description="Seconds that a server may take for its first lines, and then without a byte."
    )
    download_slowest: int = Field(
        default=1_000, ge=0, description="Bytes a second below which a download is given up; 0: never."
    )

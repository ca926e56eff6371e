"""The settings of this plugin, `[plugins.browser]`."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

SECRET_PATTERN = "^secret:[A-Za-z][A-Za-z0-9_-]{0,63}$"


class SearchConfig(BaseModel):
    """Configuration of the search engine that `web_search` uses."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    provider: Literal["searxng", "brave", "gemini"] | None = Field(default=None, description="The search engine.")
    url: str | None = Field(
        default=None, pattern="^https?://", description="Where it is, if not at its usual address; SearXNG has none."
    )
    key: str | None = Field(default=None, pattern=SECRET_PATTERN, description="Its key, as secret:NAME.")
    model: str = Field(default="gemini-2.5-flash", description="The model that Gemini searches with.")
    timeout: float = Field(default=20, gt=0, description="Seconds that one answer may take.")


class PinchTabConfig(BaseModel):
    """Configuration of a PinchTab: one that the user runs, or the program for one that a session starts."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    url: str | None = Field(
        default=None,
        pattern=r"^http://(127\.0\.0\.1|localhost|\[::1\]):[0-9]{1,5}/?$",
        description="A PinchTab that you run on this machine; its browser is not held to the rules by a proxy.",
    )
    token: str | None = Field(
        default=None, pattern=SECRET_PATTERN, description="The token of that PinchTab, as secret:NAME."
    )
    auth: Literal["token", "session"] = Field(
        default="token", description="Whether that is its server token, or the token of an agent session."
    )
    executable: Path | None = Field(
        default=None, description="The program to start; unset: the pinned release, which is fetched after a yes."
    )


class BrowserConfig(BaseModel):
    """Configuration of fetching pages, of the browser and of web search."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    fetch_max_bytes: int = Field(default=10_000_000, ge=1, description="Bytes that a page may have, unpacked.")
    fetch_timeout: float = Field(default=30, gt=0, description="Seconds that one page may take to come.")
    fetch_silence: float = Field(
        default=15, gt=0, description="Seconds that a server may take for its first lines, and then without a byte."
    )
    fetch_per_minute: int = Field(
        default=10, ge=0, description="Pages of one host in a minute; 0: as many as asked for."
    )
    fetch_shown: int = Field(
        default=8_000, ge=200, description="Characters of a page that a result shows; the rest is in an artifact."
    )
    respect_robots: bool = Field(default=False, description="Whether what a host's robots.txt forbids is not fetched.")
    cache_bytes: int = Field(default=50_000_000, ge=0, description="Bytes of pages that are kept; 0: none is kept.")
    cache_days: float = Field(default=7, gt=0, description="Days that a page is kept.")
    driver: Literal["auto", "chromium", "pinchtab"] = Field(
        default="auto",
        description="What works the browser; auto: the PinchTab that pinchtab.url names if it answers, else Chromium.",
    )
    pinchtab: PinchTabConfig = Field(default=PinchTabConfig(), description="PinchTab.")
    executable: Path | None = Field(
        default=None, description="The Chromium to run; unset: the first that is installed."
    )
    profile: Path | None = Field(
        default=None, description="A browser profile of your own; unset: an empty one, which is removed."
    )
    headless: bool = Field(default=True, description="Whether the browser has no window.")
    window: tuple[int, int] = Field(default=(1280, 900), description="Width and height of the browser's window.")
    allowed_domains: tuple[str, ...] = Field(
        default=(), description="The only sites a browser may reach, each with all below it."
    )
    denied_domains: tuple[str, ...] = Field(
        default=(), description="Sites that a browser may not reach, each with all below it."
    )
    download_max_bytes: int = Field(
        default=500_000_000, ge=1, description="Bytes of a file that a browser may download."
    )
    search: SearchConfig = Field(default=SearchConfig(), description="The search engine.")

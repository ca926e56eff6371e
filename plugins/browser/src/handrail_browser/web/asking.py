"""What a call asks for: the addresses, as they are judged and fetched."""

from __future__ import annotations

import re
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema, model_validator

from handrail.plain import is_mapping

MOST = 20
ADDRESS = re.compile(r"https?://[^\s<>\"'`|\\^{}]+", re.IGNORECASE)
# What ends a sentence, and no address.
ENDS = ".,;:!?*_"
PAIRS = {")": "(", "]": "["}
# https://github.com/OWNER/REPOSITORY/blob/REVISION/PATH shows a file; the host below gives the file itself.
BLOB = re.compile(r"/([^/]+)/([^/]+)/(?:blob|raw)/(.+)")
GITHUB, RAW = ("github.com", "www.github.com"), "https://raw.githubusercontent.com"


def _required_or_not_at_all(schema: dict[str, Any]) -> None:
    """An empty list is what stands for a missing address here, and is no value of a text."""
    schema.pop("default", None)


class WebFetchParams(BaseModel):
    """One address, or a text with several. `url` holds all of them, each once, as they will be asked for."""

    model_config = ConfigDict(extra="forbid", defer_build=True)

    url: Annotated[tuple[str, ...], WithJsonSchema({"type": "string"})] = Field(
        default=(), description="Address of a page, http or https.", json_schema_extra=_required_or_not_at_all
    )
    prompt: str | None = Field(default=None, max_length=100_000, description=f"A text with up to {MOST} addresses.")

    @model_validator(mode="before")
    @classmethod
    def _found(cls, data: Any) -> Any:
        if not is_mapping(data):
            return data
        given = dict(data)
        url, prompt = given.get("url"), given.get("prompt")
        if url is None and "url" in given:
            given.pop("url")
        if (url is None) == (prompt is None):
            raise ValueError("give either url or prompt")
        if isinstance(url, str):
            given["url"] = (unwrapped(url),)
        elif url is not None:
            raise ValueError("url is one address; several go into prompt")
        elif isinstance(prompt, str):
            given["url"] = _several(prompt)
        return given


def _several(text: str) -> tuple[str, ...]:
    found = addresses_in(text)
    if not found:
        raise ValueError("prompt holds no address that begins with https:// or http://")
    if len(found) > MOST:
        raise ValueError(f"prompt holds {len(found)} addresses; at most {MOST} are fetched in one call")
    return found


def addresses_in(text: str) -> tuple[str, ...]:
    """The addresses of the web in a text, each once, in order."""
    return tuple(dict.fromkeys(unwrapped(_trimmed(match[0])) for match in ADDRESS.finditer(text)))


def _trimmed(address: str) -> str:
    """Without what belongs to the sentence around it."""
    while address:
        last = address[-1]
        if last in ENDS or (last in PAIRS and address.count(last) > address.count(PAIRS[last])):
            address = address[:-1]
        else:
            break
    return address


def unwrapped(url: str) -> str:
    """The address of a file itself, where `url` is that of a page of GitHub that shows it; without the part behind #, which no server is told."""
    plain = url.partition("#")[0]
    try:
        parts = urlsplit(plain)
    except ValueError:
        return url
    found = BLOB.fullmatch(parts.path)
    if parts.scheme == "https" and parts.netloc in GITHUB and found is not None and not parts.query:
        return f"{RAW}/{found[1]}/{found[2]}/{found[3]}"
    # What browsers and others read differently is for the judge to see.
    return plain if parts.netloc and "@" not in url and "\\" not in url else url

"""Params of `web_fetch`: the addresses, in the form in which they are checked and fetched."""

from __future__ import annotations

import re
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema, model_validator

from handrail.json_types import is_mapping

MAX_ADDRESSES = 20
URL_PATTERN = re.compile(r"https?://[^\s<>\"'`|\\^{}]+", re.IGNORECASE)
# What ends a sentence, and no address.
SENTENCE_ENDS = ".,;:!?*_"
BRACKET_PAIRS = {")": "(", "]": "["}
# https://github.com/OWNER/REPOSITORY/blob/REVISION/PATH shows a file; the host below gives the file itself.
GITHUB_BLOB = re.compile(r"/([^/]+)/([^/]+)/(?:blob|raw)/(.+)")
GITHUB_HOSTS, RAW_BASE = ("github.com", "www.github.com"), "https://raw.githubusercontent.com"


def _drop_default(schema: dict[str, Any]) -> None:
    """Remove the default: an empty list marks a missing address here, but is not a valid text."""
    schema.pop("default", None)


class WebFetchParams(BaseModel):
    """One address, or a text with several. `url` holds all of them, each once, as they will be asked for."""

    model_config = ConfigDict(extra="forbid", defer_build=True)

    url: Annotated[tuple[str, ...], WithJsonSchema({"type": "string"})] = Field(
        default=(), description="Address of a page, http or https.", json_schema_extra=_drop_default
    )
    prompt: str | None = Field(
        default=None, max_length=100_000, description=f"A text with up to {MAX_ADDRESSES} addresses."
    )

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
            given["url"] = (resolve_raw_url(url),)
        elif url is not None:
            raise ValueError("url is one address; several go into prompt")
        elif isinstance(prompt, str):
            given["url"] = _parse_prompt_addresses(prompt)
        return given


def _parse_prompt_addresses(text: str) -> tuple[str, ...]:
    found = find_addresses(text)
    if not found:
        raise ValueError("prompt holds no address that begins with https:// or http://")
    if len(found) > MAX_ADDRESSES:
        raise ValueError(f"prompt holds {len(found)} addresses; at most {MAX_ADDRESSES} are fetched in one call")
    return found


def find_addresses(text: str) -> tuple[str, ...]:
    """Return the web addresses in a text, each once, in order."""
    return tuple(dict.fromkeys(resolve_raw_url(_trim_address(match[0])) for match in URL_PATTERN.finditer(text)))


def _trim_address(address: str) -> str:
    """Remove the punctuation of the sentence around an address."""
    while address:
        last = address[-1]
        if last in SENTENCE_ENDS or (
            last in BRACKET_PAIRS and address.count(last) > address.count(BRACKET_PAIRS[last])
        ):
            address = address[:-1]
        else:
            break
    return address


def resolve_raw_url(url: str) -> str:
    """Return the address of the file itself if `url` is that of a GitHub page that shows it.

    The fragment, which is not sent to a server, is removed.
    """
    plain = url.partition("#")[0]
    try:
        parts = urlsplit(plain)
    except ValueError:
        return url
    found = GITHUB_BLOB.fullmatch(parts.path)
    if parts.scheme == "https" and parts.netloc in GITHUB_HOSTS and found is not None and not parts.query:
        return f"{RAW_BASE}/{found[1]}/{found[2]}/{found[3]}"
    # What browsers and others read differently is for the judge to see.
    return plain if parts.netloc and "@" not in url and "\\" not in url else url

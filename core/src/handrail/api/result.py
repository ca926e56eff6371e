"""Result of a call: a mapping with `status` and the tool's own keys, and typed media."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Literal, Self, cast

import anyio
from pydantic import BaseModel

from handrail.errors import Denied, Downstream, HandrailError, Stopped, TimedOut, ToolError
from handrail.json_types import MAPPING_TYPES, count_values, is_list, is_mapping, is_sequence, iter_texts

__all__ = ["TextSource", "ToolResult"]

ResultStatus = Literal["success", "error", "denied", "cancelled", "timeout"]
RESULT_STATUSES: frozenset[str] = frozenset(("success", "error", "denied", "cancelled", "timeout"))

# How pictures begin, in base64.
PICTURE_SIGNATURES = {
    "iVBORw0KGgo": "image/png",
    "/9j/": "image/jpeg",
    "UklGR": "image/webp",
    "R0lGOD": "image/gif",
    "Qk": "image/bmp",
}

NON_TEXT_TYPES = frozenset((int, float, bool, type(None)))

# Letters of an error's message, and values and letters of its details.
MAX_MESSAGE = 50_000
MAX_DETAILS = 5_000
MAX_DETAIL_LETTERS = 200_000
# Letters of a tool's title that are spoken.
MAX_TITLE = 200

# What a listener is told, after the tool's title.
SPOKEN_ENDINGS = {
    "error": "did not work.",
    "denied": "was not allowed.",
    "cancelled": "was stopped.",
    "timeout": "took too long and was stopped.",
}
ERRORS_BY_STATUS: Mapping[str, type[ToolError]] = {
    kind.status: kind for kind in (Downstream, Denied, Stopped, TimedOut)
}


@dataclass(frozen=True, slots=True)
class TextSource:
    """Source of a text: the tool, the host's id of the call, and `origin`, which describes a third-party source."""

    tool: str = ""
    call_id: str = ""
    origin: str | None = None


class ToolResult(dict[str, Any]):
    """A dict whose only universal key is `status`; failures have `error` {code, message, retryable, details} and `voice_message`."""

    __slots__ = ("_source",)

    @property
    def source(self) -> TextSource | None:
        """Source of untrusted texts, which a host encloses in an envelope; None if the texts are Handrail's own."""
        return getattr(self, "_source", None)

    def come_from(self, source: TextSource) -> Self:
        """Mark this result as untrusted, with its source, and return it."""
        self._source = source
        return self

    @property
    def status(self) -> str:
        return self["status"]

    @property
    def ok(self) -> bool:
        return self["status"] == "success"

    @property
    def error_code(self) -> str | None:
        """The code of the error, None on success."""
        error = self.get("error")
        return error["code"] if error else None

    @classmethod
    def failure(cls, error: HandrailError, *, title: str) -> Self:
        """Build the result of a call that raised `error`; `voice_message` starts with the tool's `title` by default."""
        message = f"{error}; {error.hint}" if error.hint else str(error)
        return cls(
            status=error.status,
            error={
                "code": error.code,
                "message": _cut(message),
                "retryable": error.retryable,
                "details": _bounded(error.details),
            },
            voice_message=error.voice or f"{title[:MAX_TITLE]} {SPOKEN_ENDINGS.get(error.status, 'did not work.')}",
        )

    def add_note(self, note: str) -> None:
        """Say something more to whoever reads it."""
        self["note"] = f"{self['note']} {note}" if self.get("note") else note

    def wire(self) -> dict[str, Any]:
        """Return the result as plain JSON types, media as `{type, mime_type, data_b64 | path}`."""
        return {key: _to_json_types(value) for key, value in self.items()}


def _cut(text: str) -> str:
    left_out = len(text) - MAX_MESSAGE
    half = MAX_MESSAGE // 2
    return f"{text[:half]} … [{left_out} characters more] … {text[-half:]}" if left_out > 0 else text


def _bounded(details: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the details of an error without those that are too large; `left_out` names them."""
    large = [key for key, value in details.items() if _is_large(value)]
    if not large:
        return details
    return {**{key: value for key, value in details.items() if key not in large}, "left_out": large}


def _is_large(value: Any) -> bool:
    return count_values(value, MAX_DETAILS) > MAX_DETAILS or sum(map(len, iter_texts(value))) > MAX_DETAIL_LETTERS


# Whose a picture or document is: Handrail's own, anybody's who publishes, or of somebody whom the person deals with.
MediaTrust = Literal["first_party", "third_party_public", "third_party_private"]


@dataclass(frozen=True, slots=True)
class Media:
    """Picture, sound, video or document that a host may render natively.

    Its bytes are `data`, the contents of the file `path`, or what `open` returns on each call; the last two are read
    only when the result leaves Handrail. `text` is for hosts that cannot render it; `stash` holds further text forms,
    by name (`ocr`, `caption`, `transcript`). `trust`: the trust level of its source; if unset, that of the enclosing
    result.
    """

    type: Literal["image", "audio", "video", "document"]
    mime_type: str
    data: bytes | None = field(default=None, repr=False)
    path: Path | None = None
    text: str | None = None
    open: Callable[[], bytes | BinaryIO] | None = field(default=None, repr=False)
    stash: Mapping[str, str] = field(default_factory=dict[str, str])
    trust: MediaTrust | None = None

    @property
    def words(self) -> str | None:
        """Text for hosts that cannot render the media: `text`, else the contents of `stash`; None without either."""
        if self.text is not None or not self.stash:
            return self.text
        return "\n".join(f"{name}: {form}" for name, form in self.stash.items())

    async def read(self, most: int | None = None) -> bytes | None:
        """Return the bytes, or None if there are more than `most`. Raises OSError if they cannot be read."""
        if self.data is not None:
            return self.data if most is None or len(self.data) <= most else None
        return await anyio.to_thread.run_sync(self._read, most)

    def wire(self) -> dict[str, Any]:
        """Return `{type, mime_type, data_b64 | path, text?}`."""
        wire: dict[str, Any] = {"type": self.type, "mime_type": self.mime_type}
        if self.data is not None or self.path is None:
            wire["data_b64"] = base64.b64encode(self._read() or b"").decode("ascii")
        else:
            wire["path"] = str(self.path)
        return wire if self.words is None else {**wire, "text": self.words}

    def _read(self, most: int | None = None) -> bytes | None:
        found = self.data if self.data is not None else self.open() if self.open is not None else None
        if found is None and self.path is not None:
            if not self.path.is_file():
                raise OSError(f"{self.path} is no file")
            found = self.path.open("rb")
        if found is None:
            return b""
        if not isinstance(found, bytes):
            with found:
                found = found.read(-1 if most is None else most + 1)
        return found if most is None or len(found) <= most else None


@dataclass(frozen=True, slots=True)
class TailCall:
    """Value a handler returns to delegate its result to another call, bound, judged and run under the same call id.

    It counts as a call of the handler, not of the host: the tool need not be visible.
    """

    name: str
    args: Mapping[str, Any]


def convert_to_result(returned: Any) -> ToolResult:
    """Convert a handler's return value to a result.

    A mapping or a model provides its keys, text becomes `content`, media `media`; None adds nothing. Raises TypeError
    for anything else, and ValueError for an invalid status.
    """
    if returned is None:
        return ToolResult(status="success")
    if isinstance(returned, MAPPING_TYPES):
        result = ToolResult(status="success")
        result.update(cast("Mapping[str, Any]", returned))
        if result["status"] not in RESULT_STATUSES:
            raise ValueError(f"status {result['status']!r} is none of {', '.join(sorted(RESULT_STATUSES))}")
        return result
    if isinstance(returned, str):
        return ToolResult(status="success", content=returned)
    if isinstance(returned, Media):
        return ToolResult(status="success", media=[returned])
    if media := _list_media(returned):
        return ToolResult(status="success", media=media)
    if isinstance(returned, BaseModel):
        return convert_to_result(returned.model_dump(mode="json", by_alias=True))
    raise TypeError(f"a handler returns a mapping, a model, text, bytes, media or None, not {type(returned).__name__}")


def complete_failure(result: ToolResult, *, title: str) -> ToolResult:
    """Add the standard error keys to a failure that a handler reported only by its status.

    The handler's own keys take precedence.
    """
    kind = ERRORS_BY_STATUS[result.status]
    return ToolResult(
        {
            **ToolResult.failure(
                kind(str(result.get("note") or f"{title} {SPOKEN_ENDINGS[result.status]}")), title=title
            ),
            **result,
        }
    )


def has_text(result: ToolResult) -> bool:
    """Return True if there may be text to clean: any value other than a number, bool or None besides `status`."""
    # Every call comes through here: a generator would cost as much as all the rest.
    for key, value in result.items():  # noqa: SIM110
        if type(value) not in NON_TEXT_TYPES and key != "status":
            return True
    return False


def detect_picture_type(data_b64: str) -> str:
    """Return the MIME type of a picture under one of the keys `PICTURE_KEYS`."""
    return next(
        (mime_type for start, mime_type in PICTURE_SIGNATURES.items() if data_b64.startswith(start)), "image/png"
    )


def is_picture(data: bytes) -> bool:
    """Return True if the data starts with the signature of a known picture type."""
    return base64.b64encode(data[:12]).decode("ascii").startswith(tuple(PICTURE_SIGNATURES))


def _list_media(returned: Any) -> list[Media]:
    """Return the items of a list that contains only media; empty for anything else."""
    items = returned if is_list(returned) else []
    return items if all(isinstance(item, Media) for item in items) else []


def _to_json_types(value: Any) -> Any:
    if isinstance(value, str | int | float | bool) or value is None:
        return value
    if isinstance(value, Media):
        return value.wire()
    if is_mapping(value):
        return {str(key): _to_json_types(item) for key, item in value.items()}
    if is_sequence(value):
        return [_to_json_types(item) for item in value]
    if isinstance(value, set | frozenset):
        return sorted(_to_json_types(item) for item in cast("set[Any]", value))
    return str(value)

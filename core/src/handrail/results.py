"""What a call gives: a mapping with `status` and the tool's own keys, and typed media."""

from __future__ import annotations

import base64
import re
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, Self, cast

from handrail import untrusted
from handrail.errors import Denied, Downstream, HandrailError, Stopped, TimedOut, ToolError
from handrail.untrusted import Source

Status = Literal["success", "error", "denied", "cancelled", "timeout"]
STATUSES: frozenset[str] = frozenset(("success", "error", "denied", "cancelled", "timeout"))

# `dict` first: the check for any other mapping is slow.
MAPPINGS: tuple[type[Mapping[str, Any]], ...] = (dict, Mapping)
NESTED = (*MAPPINGS, list, tuple)

# Keys whose values are pictures in base64, the one to look at first.
PICTURES = ("image_b64", "raw_image_b64")

NO_TEXT = frozenset((int, float, bool, type(None)))
# Keys whose values are no text at all.
BASE64 = frozenset({*PICTURES, "data_b64"})
# What a third party's text may hold that acts when it is shown.
MARKUP = re.compile(r"\]\(|\]:|<")
# So many times the usual size may have what a tool has measured itself.
MEASURED = 4
# Data that is nested deeper, or holds itself, is not shown.
DEEPEST = 60
TOO_DEEP = "[left out: nested too deep]"

# What a listener is told, after the tool's title.
SPOKEN = {
    "error": "did not work.",
    "denied": "was not allowed.",
    "cancelled": "was stopped.",
    "timeout": "took too long and was stopped.",
}
FAILURES: Mapping[str, type[ToolError]] = {kind.status: kind for kind in (Downstream, Denied, Stopped, TimedOut)}


class ToolResult(dict[str, Any]):
    """A dict whose only universal key is `status`; failures have `error` {code, message, retryable, details} and `voice_message`."""

    __slots__ = ("_source",)

    @property
    def source(self) -> Source | None:
        """Where its texts come from, when nobody vouches for them: a host puts them into an envelope. None for what is Handrail's own."""
        return getattr(self, "_source", None)

    def come_from(self, source: Source) -> Self:
        """The same result, marked as untrusted."""
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
        """The result of a call that raised `error`; the tool's `title` opens the sentence for a listener."""
        message = f"{error}; {error.hint}" if error.hint else str(error)
        return cls(
            status=error.status,
            error={
                "code": error.code,
                "message": message,
                "retryable": error.retryable,
                "details": error.details,
            },
            voice_message=error.voice or f"{title} {SPOKEN.get(error.status, 'did not work.')}",
        )

    def wire(self) -> dict[str, Any]:
        """The same as plain JSON types, media as `{type, mime_type, data_b64 | path}`."""
        return {key: _plain(value) for key, value in self.items()}


@dataclass(frozen=True, slots=True)
class Media:
    """A picture, sound, video or document that a host may render natively; `text` is for hosts that cannot."""

    type: Literal["image", "audio", "video", "document"]
    mime_type: str
    data: bytes | None = field(default=None, repr=False)
    path: Path | None = None
    text: str | None = None

    def wire(self) -> dict[str, Any]:
        """`{type, mime_type, data_b64 | path, text?}`."""
        wire: dict[str, Any] = {"type": self.type, "mime_type": self.mime_type}
        if self.data is not None:
            wire["data_b64"] = base64.b64encode(self.data).decode("ascii")
        else:
            wire["path"] = str(self.path)
        if self.text is not None:
            wire["text"] = self.text
        return wire


def as_result(returned: Any) -> ToolResult:
    """What a handler returned as a result: a mapping gives its keys, text becomes `content`, media `media`, None nothing.

    Raises TypeError for anything else, and ValueError for a status that is none.
    """
    if returned is None:
        return ToolResult(status="success")
    if isinstance(returned, MAPPINGS):
        result = ToolResult(status="success")
        result.update(cast("Mapping[str, Any]", returned))
        if result["status"] not in STATUSES:
            raise ValueError(f"status {result['status']!r} is none of {', '.join(sorted(STATUSES))}")
        return result
    if isinstance(returned, str):
        return ToolResult(status="success", content=returned)
    if isinstance(returned, Media):
        return ToolResult(status="success", media=[returned])
    if media := _media(returned):
        return ToolResult(status="success", media=media)
    raise TypeError(f"a handler returns a mapping, text, media or None, not {type(returned).__name__}")


def completed(result: ToolResult, *, title: str) -> ToolResult:
    """A failure that a handler reported by its status alone, with what every failure has; its own keys stay."""
    kind = FAILURES[result.status]
    return ToolResult(
        {
            **ToolResult.failure(kind(str(result.get("note") or f"{title} {SPOKEN[result.status]}")), title=title),
            **result,
        }
    )


class _Cleaning:
    """One pass over the texts of a result. What needs no change is given back as it is."""

    def __init__(self, *, limit: int, foreign: bool) -> None:
        self._limit = limit
        self._foreign = foreign
        self._above: set[int] = set()
        self.removed: Counter[str] = Counter()

    def text(self, text: str) -> str:
        # An honest short text is told at once: most are.
        if len(text) * 4 <= self._limit and not (self._foreign and MARKUP.search(text)) and untrusted.plain(text):
            return text
        shown = untrusted.shown(text, limit=self._limit, foreign=self._foreign)
        self.removed.update(shown.removed)
        return shown.text

    def value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, int | float) or value is None:
            return value
        if isinstance(value, Media):
            return value if value.text is None else replace(value, text=self.text(value.text))
        return self._nested(cast("object", value)) if isinstance(value, NESTED) else value

    def _nested(self, value: object) -> object:
        place = id(value)
        if place in self._above or len(self._above) >= DEEPEST:
            return TOO_DEEP
        self._above.add(place)
        try:
            if isinstance(value, Mapping):
                return self._mapping(cast("Mapping[Any, Any]", value))
            old = cast("list[Any] | tuple[Any, ...]", value)
            new = [self.value(item) for item in old]
            return value if all(a is b for a, b in zip(new, old, strict=True)) else new
        finally:
            self._above.remove(place)

    def _mapping(self, value: Mapping[Any, Any]) -> Mapping[Any, Any]:
        items = {
            self.text(key) if isinstance(key, str) else key: item if key in BASE64 else self.value(item)
            for key, item in value.items()
        }
        same = len(items) == len(value) and all(key in value and items[key] is value[key] for key in items)
        return value if same else items


def holds_text(result: ToolResult) -> bool:
    """Whether there is anything to clean: values other than numbers beside `status`."""
    # Every call comes through here: a generator would cost as much as all the rest.
    for key, value in result.items():  # noqa: SIM110
        if type(value) not in NO_TEXT and key != "status":
            return True
    return False


def cleaned(result: ToolResult, *, limit: int, foreign: bool, keep: Callable[[str], Mapping[str, Any]]) -> ToolResult:
    """The result with every text in it cleaned and within `limit` bytes; `removed` says what was taken out, where something was.

    `foreign`: it speaks for a third party. `keep` puts a text that is cut into an artifact whole, once a result. Pictures stay as they are.
    """
    # A tool that says whether it left something out has measured its text by itself, and says where to go on.
    cleaning = _Cleaning(limit=limit * MEASURED if "truncated" in result else limit, foreign=foreign)
    changed: dict[str, Any] = {}
    for key, value in result.items():
        if key in BASE64:
            continue
        cut = cleaning.removed["truncated"]
        new = cleaning.value(value)
        if new is not value:
            changed[key] = new
        kept = "artifact" in result or "artifact" in changed
        if cleaning.removed["truncated"] > cut and isinstance(value, str) and not kept:
            with suppress(OSError):
                changed["artifact"] = keep(value)
    if not changed:
        return result
    result = ToolResult({**result, **changed})
    result.setdefault("removed", dict(sorted((+cleaning.removed).items())))
    return result


def _media(returned: Any) -> list[Media]:
    """The items of a list that holds nothing but media; empty for anything else."""
    items = cast("list[Any]", returned) if isinstance(returned, list) else []
    return items if all(isinstance(item, Media) for item in items) else []


def _plain(value: Any) -> Any:
    if isinstance(value, str | int | float | bool) or value is None:
        return value
    if isinstance(value, Media):
        return value.wire()
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in cast("list[Any]", value)]
    if isinstance(value, set | frozenset):
        return sorted(_plain(item) for item in cast("set[Any]", value))
    return str(value)

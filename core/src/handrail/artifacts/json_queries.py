"""What can be asked of JSON, and of JSON lines as an array of them.

A path names a value in it: `$.users[0].name`, `users[-1]["first name"]`; empty or `$` is the whole.
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Annotated, Any, Literal, cast

from pydantic import Field
from pydantic_core import from_json

from handrail.artifacts.paging import BLOCK
from handrail.artifacts.queries import query
from handrail.artifacts.store import Json, JsonLines
from handrail.errors import InvalidArguments, NotFound, OutOfRange
from handrail.plain import is_list, is_mapping, is_object

# Bytes of a JSON value that are taken into memory; JSON lines are read one at a time.
LARGEST = 32 * 2**20
# Items of an array that are looked at for the keys they have.
LOOKED_AT = 1_000
MOST = 1_000

_STEP = re.compile(r"\.?([^.\[\]\"']+)|\[(-?\d+)\]|\[\"((?:[^\"\\]|\\.)*)\"\]|\['([^']*)'\]|\.?\"((?:[^\"\\]|\\.)*)\"")
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))

Key = str | int
Path = Annotated[str, Field(max_length=1_000, description="Where: users[0].name; the whole when left out.")]
Keys = Annotated[list[str], Field(min_length=1, max_length=50, description="Paths in each item.")]
Start = Annotated[int, Field(ge=0, description="The first item, from 0.")]
Most = Annotated[int, Field(ge=1, le=MOST, description="At most so many items.")]
Is = Literal["equals", "not_equals", "contains", "greater", "less", "exists"]
Wanted = Annotated[str | int | float | bool | None, Field(description="The value to compare with.")]


@query("JSON value")
def artifact_json_get(artifact: Json, path: Path = "") -> dict[str, Any]:
    """One value of a JSON artifact. Returns value, or, of one too large to show, its type, length and the beginning of its text as content."""
    return _told(_at(artifact, path), artifact.limit)


@query("JSON keys")
def artifact_json_keys(artifact: Json, path: Path = "") -> dict[str, Any]:
    """The keys of an object, or of the objects in an array (of its first 1,000 items). Returns keys with the type of each value."""
    value = _at(artifact, path)
    if is_mapping(value):
        return _keys([value], artifact.limit)
    items = cast("Iterable[Mapping[str, Any]]", islice(_items(value, path), LOOKED_AT))
    objects = [item for item in items if isinstance(item, dict)]
    return {**_keys(objects, artifact.limit), "of_items": len(objects)}


@query("JSON length")
def artifact_json_length(artifact: Json, path: Path = "") -> dict[str, Any]:
    """How many items an array has, keys an object, characters a text. Returns type and length."""
    value = _at(artifact, path)
    if isinstance(value, _Lines):
        return {"type": "array", "length": sum(1 for _ in value)}
    if not isinstance(value, str | list | dict):
        raise InvalidArguments(f"the value at {path!r} is {_type(value)}, which has no length")
    return {"type": _type(value), "length": len(cast("Sequence[Any]", value))}


@query("Items of JSON that fit")
def artifact_json_filter(
    artifact: Json,
    key: Annotated[str, Field(description="Path in each item; empty for the item itself.")],
    is_: Annotated[Is, Field(alias="is", description="How to compare.")] = "equals",
    value: Wanted = None,
    path: Path = "",
    start: Start = 0,
    max_items: Most = 100,
) -> dict[str, Any]:
    """The items of an array for which a key compares as wanted. Returns items, each with its index, and next_start when there are more."""
    steps = _steps(key)
    fits = COMPARED[is_]
    chosen = (
        {"index": index, "value": item}
        for index, item in enumerate(_items(_at(artifact, path), path))
        if index >= start and fits(_below(item, steps), value)
    )
    return _listed(chosen, max_items, artifact.limit)


@query("Slice of JSON")
def artifact_json_slice(artifact: Json, start: Start = 0, max_items: Most = 20, path: Path = "") -> dict[str, Any]:
    """Items of an array, one after another. Returns items, each with its index, and next_start when there are more."""
    items = enumerate(_items(_at(artifact, path), path))
    return _listed(({"index": i, "value": item} for i, item in items if i >= start), max_items, artifact.limit)


@query("Columns of JSON")
def artifact_json_pluck(
    artifact: Json, keys: Keys, path: Path = "", start: Start = 0, max_items: Most = 100
) -> dict[str, Any]:
    """Some keys of every item of an array, as a table. Returns items, each with its index, and next_start when there are more."""
    columns = {key: _steps(key) for key in keys}
    plucked = (
        {"index": index, "value": {key: _or_none(_below(item, steps)) for key, steps in columns.items()}}
        for index, item in enumerate(_items(_at(artifact, path), path))
        if index >= start
    )
    return _listed(plucked, max_items, artifact.limit)


QUERIES = (
    artifact_json_get,
    artifact_json_keys,
    artifact_json_length,
    artifact_json_filter,
    artifact_json_slice,
    artifact_json_pluck,
)


class _Missing:
    """No value at all."""


MISSING = _Missing()


class _Lines:
    """The values of JSON lines, read one at a time."""

    def __init__(self, artifact: JsonLines) -> None:
        self._artifact = artifact

    def __iter__(self) -> Iterator[Any]:
        for number, line in enumerate(_raw_lines(self._artifact), 1):
            if line.strip():
                yield _parsed(line, f"line {number}")


def _raw_lines(artifact: JsonLines) -> Iterator[bytes]:
    rest = b""
    with artifact.open() as file:
        while data := file.read(BLOCK):
            artifact.checkpoint()
            *lines, rest = (rest + data).split(b"\n")
            yield from lines
            if len(rest) > LARGEST:
                raise OutOfRange(f"a line of {artifact.id} is longer than {LARGEST} bytes", hint="use artifact_lines")
    if rest:
        yield rest


def _whole(artifact: Json) -> Any:
    if isinstance(artifact, JsonLines):
        return _Lines(artifact)
    if (size := artifact.size) > LARGEST:
        raise OutOfRange(
            f"{artifact.id} has {size} bytes, and JSON up to {LARGEST} bytes is taken apart",
            hint="use artifact_grep and artifact_lines, or let a program like jq make a smaller one of it",
        )
    with artifact.open() as file:
        return _parsed(file.readall(), artifact.id)


def _parsed(data: bytes, what: str) -> Any:
    try:
        return from_json(data.removeprefix(b"\xef\xbb\xbf"), cache_strings="keys")
    except ValueError as exc:
        raise NotFound(f"{what} is not JSON: {exc}", hint="use artifact_grep and artifact_lines") from exc


def _steps(path: str) -> list[Key]:
    """A path as keys and indexes. Raises `InvalidArguments`."""
    rest = path.strip().removeprefix("$")
    steps: list[Key] = []
    at = 0
    while at < len(rest):
        step = _STEP.match(rest, at)
        if step is None:
            raise InvalidArguments(
                f"the path {path!r} cannot be read from {rest[at:][:40]!r} on",
                hint='write it like users[0]["first name"]',
            )
        plain, index, *quoted = step.groups()
        if index is not None:
            steps.append(int(index))
        else:
            steps.append(plain if plain is not None else next(word for word in quoted if word is not None))
        at = step.end()
    return steps


def _below(value: Any, steps: Sequence[Key]) -> Any:
    """The value under the keys; `MISSING` where there is none."""
    for step in steps:
        if is_object(value):
            value = value.get(str(step), MISSING)
        elif is_list(value) and (index := _index(step)) is not None:
            value = value[index] if -len(value) <= index < len(value) else MISSING
        else:
            return MISSING
    return value


def _index(step: Key) -> int | None:
    return step if isinstance(step, int) else int(step) if step.isdecimal() else None


def _at(artifact: Json, path: str) -> Any:
    """The value at the path. `NotFound` says how far the path leads."""
    steps, value = _steps(path), _whole(artifact)
    if isinstance(value, _Lines) and steps:
        index = _index(steps[0])
        if index is None or index < 0:
            raise NotFound(f"there is nothing at {path!r}", hint="JSON lines are an array: begin with [0]")
        value = next(islice(iter(value), index, None), MISSING)
        steps = steps[1:]
    found = _below(value, steps)
    if found is not MISSING:
        return found
    good = next(n for n in range(len(steps), -1, -1) if n == 0 or _below(value, steps[:n]) is not MISSING)
    there = _below(value, steps[:good])
    known = list(there)[:20] if is_object(there) else []
    raise NotFound(
        f"there is nothing at {path!r}: {steps[good] if good < len(steps) else path!r} is not in {_type(there)}",
        hint=f"it has the keys {', '.join(known)}" if known else "see artifact_json_keys and artifact_json_length",
    )


def _items(value: Any, path: str) -> Iterable[Any]:
    if isinstance(value, list | _Lines):
        return cast("Iterable[Any]", value)
    raise InvalidArguments(f"the value at {path!r} is {_type(value)}, not an array")


def _type(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return "text"
        case list() | _Lines():
            return "array"
        case dict():
            return "object"
        case _:
            return "nothing"


def _told(value: Any, limit: int) -> dict[str, Any]:
    if isinstance(value, _Lines):
        value = list(islice(iter(value), 20))
        return {
            **_told(value, limit),
            "type": "array",
            "note": "These are the first of JSON lines; artifact_json_slice shows others.",
        }
    text = _ENCODER.encode(value)
    if len(text.encode("utf-8", "replace")) <= limit:
        return {"value": value, "truncated": False}
    told: dict[str, Any] = {"type": _type(value), "content": text[: limit // 4], "truncated": True}
    if isinstance(value, str | list | dict):
        told["length"] = len(cast("Sequence[Any]", value))
    return told


def _keys(objects: Sequence[Mapping[str, Any]], limit: int) -> dict[str, Any]:
    types: dict[str, list[str]] = {}
    for each in objects:
        for key, value in each.items():
            known = types.setdefault(key, [])
            if _type(value) not in known:
                known.append(_type(value))
    keys = [{"key": key, "type": " or ".join(known)} for key, known in types.items()]
    shown = list(_within(keys, limit))
    return {"keys": shown, "count": len(keys), "truncated": len(shown) < len(keys)}


def _listed(items: Iterator[dict[str, Any]], most: int, limit: int) -> dict[str, Any]:
    found = list(islice(items, most + 1))
    shown = list(_within(found[:most], limit))
    result: dict[str, Any] = {"items": shown, "truncated": len(shown) < len(found)}
    if found and not shown:
        first = found[0]
        result["items"] = shown = [{"index": first["index"], **_told(first["value"], limit)}]
        result["truncated"] = True
    if len(shown) < len(found):
        result["next_start"] = found[len(shown)]["index"]
    return result


def _within(items: Iterable[dict[str, Any]], limit: int) -> Iterator[dict[str, Any]]:
    room = limit
    for item in items:
        room -= len(_ENCODER.encode(item).encode("utf-8", "replace")) + 1
        if room < 0:
            return
        yield item


def _or_none(value: Any) -> Any:
    return None if value is MISSING else value


def _contains(found: Any, wanted: Any) -> bool:
    if isinstance(found, str):
        return str(wanted).casefold() in found.casefold()
    return isinstance(found, list | dict) and wanted in found


def _ordered(by: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def compare(found: Any, wanted: Any) -> bool:
        if _is_number(found) and isinstance(wanted, str):
            wanted = _number(wanted)
        texts = isinstance(found, str) and isinstance(wanted, str)
        return (texts or (_is_number(found) and _is_number(wanted))) and by(found, wanted)

    return compare


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _equal(found: Any, wanted: Any) -> bool:
    if isinstance(found, bool) is not isinstance(wanted, bool):
        return False
    return found is not MISSING and found == wanted


COMPARED: Mapping[str, Callable[[Any, Any], bool]] = {
    "equals": _equal,
    "not_equals": lambda found, wanted: not _equal(found, wanted),
    "contains": _contains,
    "greater": _ordered(operator.gt),
    "less": _ordered(operator.lt),
    "exists": lambda found, wanted: found is not MISSING,
}

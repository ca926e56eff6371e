"""Queries of JSON artifacts, and of JSON lines as an array.

A path names a value: `$.users[0].name`, `users[-1]["first name"]`; empty or `$` is the entire document.
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

from handrail.artifacts.line_paging import BLOCK_BYTES
from handrail.artifacts.queries import artifact_query
from handrail.artifacts.store import JsonArtifact, JsonLinesArtifact
from handrail.errors import InvalidArguments, NotFound, OutOfRange
from handrail.json_types import is_list, is_mapping, is_object

# Bytes of a JSON value that are taken into memory; JSON lines are read one at a time.
MAX_JSON_BYTES = 32 * 2**20
# Items of an array that are looked at for the keys they have.
MAX_SAMPLED_ITEMS = 1_000
MAX_ITEMS = 1_000

_PATH_STEP = re.compile(
    r"\.?([^.\[\]\"']+)|\[(-?\d+)\]|\[\"((?:[^\"\\]|\\.)*)\"\]|\['([^']*)'\]|\.?\"((?:[^\"\\]|\\.)*)\""
)
_JSON_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))

PathKey = str | int
JsonPathArg = Annotated[str, Field(max_length=1_000, description="Where: users[0].name; the whole when left out.")]
KeysArg = Annotated[list[str], Field(min_length=1, max_length=50, description="Paths in each item.")]
StartIndexArg = Annotated[int, Field(ge=0, description="The first item, from 0.")]
MaxItemsArg = Annotated[int, Field(ge=1, le=MAX_ITEMS, description="At most so many items.")]
ComparisonName = Literal["equals", "not_equals", "contains", "greater", "less", "exists"]
ComparedValueArg = Annotated[str | int | float | bool | None, Field(description="The value to compare with.")]


@artifact_query("JSON value")
def artifact_json_get(artifact: JsonArtifact, path: JsonPathArg = "") -> dict[str, Any]:
    """One value of a JSON artifact. Returns value, or, of one too large to show, its type, length and the beginning of its text as content."""
    return _format_value(_resolve_path(artifact, path), artifact.limit)


@artifact_query("JSON keys")
def artifact_json_keys(artifact: JsonArtifact, path: JsonPathArg = "") -> dict[str, Any]:
    """The keys of an object, or of the objects in an array (of its first 1,000 items). Returns keys with the type of each value."""
    value = _resolve_path(artifact, path)
    if is_mapping(value):
        return _summarize_keys([value], artifact.limit)
    items = cast("Iterable[Mapping[str, Any]]", islice(_require_array(value, path), MAX_SAMPLED_ITEMS))
    objects = [item for item in items if isinstance(item, dict)]
    return {**_summarize_keys(objects, artifact.limit), "of_items": len(objects)}


@artifact_query("JSON length")
def artifact_json_length(artifact: JsonArtifact, path: JsonPathArg = "") -> dict[str, Any]:
    """How many items an array has, keys an object, characters a text. Returns type and length."""
    value = _resolve_path(artifact, path)
    if isinstance(value, _JsonLineValues):
        return {"type": "array", "length": sum(1 for _ in value)}
    if not isinstance(value, str | list | dict):
        raise InvalidArguments(f"the value at {path!r} is {_type_name(value)}, which has no length")
    return {"type": _type_name(value), "length": len(cast("Sequence[Any]", value))}


@artifact_query("Items of JSON that fit")
def artifact_json_filter(
    artifact: JsonArtifact,
    key: Annotated[str, Field(description="Path in each item; empty for the item itself.")],
    is_: Annotated[ComparisonName, Field(alias="is", description="How to compare.")] = "equals",
    value: ComparedValueArg = None,
    path: JsonPathArg = "",
    start: StartIndexArg = 0,
    max_items: MaxItemsArg = 100,
) -> dict[str, Any]:
    """The items of an array for which a key compares as wanted. Returns items, each with its index, and next_start when there are more."""
    steps = _parse_path(key)
    fits = COMPARISON_FUNCTIONS[is_]
    chosen = (
        {"index": index, "value": item}
        for index, item in enumerate(_require_array(_resolve_path(artifact, path), path))
        if index >= start and fits(_get_at_keys(item, steps), value)
    )
    return _paginate_items(chosen, max_items, artifact.limit)


@artifact_query("Slice of JSON")
def artifact_json_slice(
    artifact: JsonArtifact, start: StartIndexArg = 0, max_items: MaxItemsArg = 20, path: JsonPathArg = ""
) -> dict[str, Any]:
    """Items of an array, one after another. Returns items, each with its index, and next_start when there are more."""
    items = enumerate(_require_array(_resolve_path(artifact, path), path))
    return _paginate_items(({"index": i, "value": item} for i, item in items if i >= start), max_items, artifact.limit)


@artifact_query("Columns of JSON")
def artifact_json_pluck(
    artifact: JsonArtifact,
    keys: KeysArg,
    path: JsonPathArg = "",
    start: StartIndexArg = 0,
    max_items: MaxItemsArg = 100,
) -> dict[str, Any]:
    """Some keys of every item of an array, as a table. Returns items, each with its index, and next_start when there are more."""
    columns = {key: _parse_path(key) for key in keys}
    plucked = (
        {"index": index, "value": {key: _or_none(_get_at_keys(item, steps)) for key, steps in columns.items()}}
        for index, item in enumerate(_require_array(_resolve_path(artifact, path), path))
        if index >= start
    )
    return _paginate_items(plucked, max_items, artifact.limit)


JSON_QUERIES = (
    artifact_json_get,
    artifact_json_keys,
    artifact_json_length,
    artifact_json_filter,
    artifact_json_slice,
    artifact_json_pluck,
)


class _MissingType:
    """No value at all."""


MISSING_VALUE = _MissingType()


class _JsonLineValues:
    """The values of JSON lines, read one at a time."""

    def __init__(self, artifact: JsonLinesArtifact) -> None:
        self._artifact = artifact

    def __iter__(self) -> Iterator[Any]:
        for number, line in enumerate(_iter_raw_lines(self._artifact), 1):
            if line.strip():
                yield _parse_json(line, f"line {number}")


def _iter_raw_lines(artifact: JsonLinesArtifact) -> Iterator[bytes]:
    rest = b""
    with artifact.open() as file:
        while data := file.read(BLOCK_BYTES):
            artifact.checkpoint()
            *lines, rest = (rest + data).split(b"\n")
            yield from lines
            if len(rest) > MAX_JSON_BYTES:
                raise OutOfRange(
                    f"a line of {artifact.id} is longer than {MAX_JSON_BYTES} bytes", hint="use artifact_lines"
                )
    if rest:
        yield rest


def _load_document(artifact: JsonArtifact) -> Any:
    if isinstance(artifact, JsonLinesArtifact):
        return _JsonLineValues(artifact)
    if (size := artifact.size) > MAX_JSON_BYTES:
        raise OutOfRange(
            f"{artifact.id} has {size} bytes, and JSON up to {MAX_JSON_BYTES} bytes is taken apart",
            hint="use artifact_grep and artifact_lines, or let a program like jq make a smaller one of it",
        )
    with artifact.open() as file:
        return _parse_json(file.readall(), artifact.id)


def _parse_json(data: bytes, what: str) -> Any:
    try:
        return from_json(data.removeprefix(b"\xef\xbb\xbf"), cache_strings="keys")
    except ValueError as exc:
        raise NotFound(f"{what} is not JSON: {exc}", hint="use artifact_grep and artifact_lines") from exc


def _parse_path(path: str) -> list[PathKey]:
    """Return a path as keys and indexes. Raises `InvalidArguments`."""
    rest = path.strip().removeprefix("$")
    steps: list[PathKey] = []
    at = 0
    while at < len(rest):
        step = _PATH_STEP.match(rest, at)
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


def _get_at_keys(value: Any, steps: Sequence[PathKey]) -> Any:
    """Return the value under the keys, or `MISSING_VALUE` if there is none."""
    for step in steps:
        if is_object(value):
            value = value.get(str(step), MISSING_VALUE)
        elif is_list(value) and (index := _parse_index(step)) is not None:
            value = value[index] if -len(value) <= index < len(value) else MISSING_VALUE
        else:
            return MISSING_VALUE
    return value


def _parse_index(step: PathKey) -> int | None:
    return step if isinstance(step, int) else int(step) if step.isdecimal() else None


def _resolve_path(artifact: JsonArtifact, path: str) -> Any:
    """Return the value at the path. Raises `NotFound`, which says how far the path resolves."""
    steps, value = _parse_path(path), _load_document(artifact)
    if isinstance(value, _JsonLineValues) and steps:
        index = _parse_index(steps[0])
        if index is None or index < 0:
            raise NotFound(f"there is nothing at {path!r}", hint="JSON lines are an array: begin with [0]")
        value = next(islice(iter(value), index, None), MISSING_VALUE)
        steps = steps[1:]
    found = _get_at_keys(value, steps)
    if found is not MISSING_VALUE:
        return found
    good = next(n for n in range(len(steps), -1, -1) if n == 0 or _get_at_keys(value, steps[:n]) is not MISSING_VALUE)
    there = _get_at_keys(value, steps[:good])
    known = list(there)[:20] if is_object(there) else []
    raise NotFound(
        f"there is nothing at {path!r}: {steps[good] if good < len(steps) else path!r} is not in {_type_name(there)}",
        hint=f"it has the keys {', '.join(known)}" if known else "see artifact_json_keys and artifact_json_length",
    )


def _require_array(value: Any, path: str) -> Iterable[Any]:
    if isinstance(value, list | _JsonLineValues):
        return cast("Iterable[Any]", value)
    raise InvalidArguments(f"the value at {path!r} is {_type_name(value)}, not an array")


def _type_name(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return "text"
        case list() | _JsonLineValues():
            return "array"
        case dict():
            return "object"
        case _:
            return "nothing"


def _format_value(value: Any, limit: int) -> dict[str, Any]:
    if isinstance(value, _JsonLineValues):
        value = list(islice(iter(value), 20))
        return {
            **_format_value(value, limit),
            "type": "array",
            "note": "These are the first of JSON lines; artifact_json_slice shows others.",
        }
    text = _JSON_ENCODER.encode(value)
    if len(text.encode("utf-8", "replace")) <= limit:
        return {"value": value, "truncated": False}
    told: dict[str, Any] = {"type": _type_name(value), "content": text[: limit // 4], "truncated": True}
    if isinstance(value, str | list | dict):
        told["length"] = len(cast("Sequence[Any]", value))
    return told


def _summarize_keys(objects: Sequence[Mapping[str, Any]], limit: int) -> dict[str, Any]:
    types: dict[str, list[str]] = {}
    for each in objects:
        for key, value in each.items():
            known = types.setdefault(key, [])
            if _type_name(value) not in known:
                known.append(_type_name(value))
    keys = [{"key": key, "type": " or ".join(known)} for key, known in types.items()]
    shown = list(_take_within_limit(keys, limit))
    return {"keys": shown, "count": len(keys), "truncated": len(shown) < len(keys)}


def _paginate_items(items: Iterator[dict[str, Any]], most: int, limit: int) -> dict[str, Any]:
    found = list(islice(items, most + 1))
    shown = list(_take_within_limit(found[:most], limit))
    result: dict[str, Any] = {"items": shown, "truncated": len(shown) < len(found)}
    if found and not shown:
        first = found[0]
        result["items"] = shown = [{"index": first["index"], **_format_value(first["value"], limit)}]
        result["truncated"] = True
    if len(shown) < len(found):
        result["next_start"] = found[len(shown)]["index"]
    return result


def _take_within_limit(items: Iterable[dict[str, Any]], limit: int) -> Iterator[dict[str, Any]]:
    room = limit
    for item in items:
        room -= len(_JSON_ENCODER.encode(item).encode("utf-8", "replace")) + 1
        if room < 0:
            return
        yield item


def _or_none(value: Any) -> Any:
    return None if value is MISSING_VALUE else value


def _is_containing(found: Any, wanted: Any) -> bool:
    if isinstance(found, str):
        return str(wanted).casefold() in found.casefold()
    return isinstance(found, list | dict) and wanted in found


def _make_ordering(by: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def compare(found: Any, wanted: Any) -> bool:
        if _is_number(found) and isinstance(wanted, str):
            wanted = _parse_number(wanted)
        texts = isinstance(found, str) and isinstance(wanted, str)
        return (texts or (_is_number(found) and _is_number(wanted))) and by(found, wanted)

    return compare


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _parse_number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _is_equal(found: Any, wanted: Any) -> bool:
    if isinstance(found, bool) is not isinstance(wanted, bool):
        return False
    return found is not MISSING_VALUE and found == wanted


COMPARISON_FUNCTIONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "equals": _is_equal,
    "not_equals": lambda found, wanted: not _is_equal(found, wanted),
    "contains": _is_containing,
    "greater": _make_ordering(operator.gt),
    "less": _make_ordering(operator.lt),
    "exists": lambda found, wanted: found is not MISSING_VALUE,
}

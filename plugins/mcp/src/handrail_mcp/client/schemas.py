"""JSON Schemas that servers wrote: shown cleaned, and checked with bounds, since neither the schema nor the data is ours."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import islice
from time import perf_counter
from typing import Any, cast

from handrail.plain import is_list, is_object
from handrail.untrusted.envelope import clean
from handrail_mcp.client.matching import Untellable, matcher

# Of one schema: letters of its JSON, and how deep it may be nested.
LONGEST = 100_000
DEEPEST = 64
# Steps of one check: one for a keyword that is looked at, and more for one that takes longer. The first many are some tenths of a second, which a
# check of arguments may keep everything else waiting; the others are for a thread.
STEPS = 10_000
STEPS_BESIDE = 50_000
# What counts as one more step: seconds of a pattern, letters that are compared or told.
STEP_S = 20e-6
STEP_LETTERS = 200
# Items that are told apart.
ITEMS = 2_000
PROBLEMS = 10
TOLD = 300
# Words for the model; everything else in a schema is compared letter by letter.
WORDS = frozenset({"title", "description", "$comment"})
SHOWN = 1_000


class Unusable(ValueError):
    """A schema that nothing can be checked against."""


class _Steps(threading.local):
    """How many steps the check has left that a thread is at."""

    left = 0

    def take(self, number: float = 1) -> None:
        self.left -= int(number)
        if self.left <= 0:
            raise Untellable("it takes too many steps")


class Schema:
    """One schema, with a check that always ends."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        self._given = dict(given)
        if self._given.setdefault("type", "object") != "object":
            raise Unusable(f"it is of type {self._given['type']!r}, not object")
        self._steps = _Steps()
        _bounded(self._given)
        self.json = cast("dict[str, Any]", _cleaned(self._given))
        self.json.setdefault("properties", {})
        self._check_references()
        for pattern in _patterns(self._given):
            matcher(pattern)
        # What refers to itself without end shows at once.
        self.problems({})
        if self._steps.left <= 0:
            raise Unusable("it refers to itself without end")

    def problems(self, args: Mapping[str, Any], *, steps: int = STEPS) -> Sequence[Mapping[str, str]]:
        """`{field, problem}` for each value that does not fit; what cannot be checked within bounds does not fit."""
        self._steps.left = steps
        try:
            return [
                each for error in islice(self._validator.iter_errors(dict(args)), PROBLEMS) for each in _told(error)
            ]
        except (Untellable, RecursionError) as exc:
            self._steps.left = 0
            why = str(exc) if isinstance(exc, Untellable) else "it is nested without end"
            return [{"field": "arguments", "problem": f"they cannot be checked: {why}"}]

    @cached_property
    def _validator(self) -> Any:
        from jsonschema import validators
        from jsonschema.exceptions import SchemaError
        from referencing import Registry

        dialect = _dialect(self._given.get("$schema"))
        try:
            dialect.check_schema(self._given)
        except SchemaError as exc:
            raise Unusable(f"it is no JSON Schema: {_short(str(exc.message))}") from exc
        rules: dict[str, Any] = {**dialect.VALIDATORS, **_linear(self._steps)}
        counted: Any = cast("Any", validators).extend(
            dialect, {word: self._counted(rule) for word, rule in rules.items()}
        )
        # An empty registry: nothing is ever fetched for a reference.
        return counted(self._given, registry=cast("Any", Registry)())

    def _counted(self, rule: Callable[..., Any]) -> Callable[..., Iterator[Any]]:
        def check(*given: Any) -> Iterator[Any]:
            self._steps.take()
            for error in rule(*given) or ():
                # The words of an error repeat what was checked, which may be long.
                self._steps.take(len(error.message) / STEP_LETTERS)
                yield error

        return check

    def _check_references(self) -> None:
        from referencing import Registry, Resource
        from referencing.exceptions import Unresolvable

        resource: Any = Resource(self._given, _specification(self._validator))
        base: Any = cast("Any", Registry)().with_resource("", resource)
        for reference in _references(self._given):
            seen: set[str] = set()
            resolver = base.resolver("")
            while reference not in seen:
                seen.add(reference)
                try:
                    if not reference.startswith("#"):
                        raise Unusable(f"it refers to another document, {_short(reference)!r}")
                    found = resolver.lookup(reference).contents
                except Unresolvable as exc:
                    raise Unusable(f"{_short(reference)!r} leads nowhere in it") from exc
                following = found.get("$ref") if is_object(found) else None
                if not isinstance(following, str):
                    break
                if following in seen:
                    raise Unusable(f"{_short(following)!r} refers to itself")
                reference = following


@lru_cache(maxsize=512)
def _compiled(text: str) -> Schema:
    return Schema(json.loads(text))


def schema(given: Mapping[str, Any]) -> Schema:
    """The schema, made once for all sessions that are given the same; `Unusable` says what is wrong with it."""
    try:
        return _compiled(json.dumps(given, ensure_ascii=False))
    except RecursionError as exc:
        raise Unusable("it is nested without end") from exc


def _dialect(name: object) -> Any:
    from jsonschema import validators

    known: dict[str, Any] = {
        "https://json-schema.org/draft/2020-12/schema": validators.Draft202012Validator,
        "https://json-schema.org/draft/2019-09/schema": validators.Draft201909Validator,
        "http://json-schema.org/draft-07/schema": validators.Draft7Validator,
        "http://json-schema.org/draft-06/schema": validators.Draft6Validator,
        "http://json-schema.org/draft-04/schema": validators.Draft4Validator,
    }
    if name is None:
        return validators.Draft202012Validator
    found = known.get(
        str(name).removesuffix("#").replace("https://json-schema.org/draft-", "http://json-schema.org/draft-")
    )
    if found is None:
        raise Unusable(f"its dialect {_short(str(name))!r} is not known")
    return found


def _specification(validator: Any) -> Any:
    from referencing.jsonschema import specification_with

    return specification_with(validator.META_SCHEMA["$schema" if "$schema" in validator.META_SCHEMA else "id"])


def _bounded(node: Any, depth: int = DEEPEST) -> None:
    if depth == DEEPEST and len(json.dumps(node, ensure_ascii=False)) > LONGEST:
        raise Unusable(f"it has more than {LONGEST:,} letters")
    if not depth:
        raise Unusable(f"it is nested more than {DEEPEST} deep")
    for item in _items(node):
        _bounded(item, depth - 1)


def _items(node: Any) -> Sequence[Any]:
    if is_object(node):
        return list(node.values())
    return node if is_list(node) else ()


def _cleaned(node: Any, key: str = "") -> Any:
    """The same for a model's eyes: words cleaned and cut; what is compared must have nothing in it that nobody sees."""
    if isinstance(node, str):
        if key in WORDS:
            return clean(node).text[:SHOWN]
        if clean(node, foreign=False).text != node:
            raise Unusable(f"{_short(repr(node))} in it is not what it looks like")
        return node
    if is_object(node):
        items = node.items()
        return {_cleaned(name): _cleaned(value, name) for name, value in items}
    return [_cleaned(item, key) for item in node] if is_list(node) else node


def _references(node: Any) -> Iterator[str]:
    if is_object(node):
        for key in ("$ref", "$dynamicRef", "$recursiveRef"):
            value = node.get(key)
            if isinstance(value, str):
                yield value
    for item in _items(node):
        yield from _references(item)


def _patterns(node: Any) -> Iterator[str]:
    if is_object(node):
        if isinstance(node.get("pattern"), str):
            yield node["pattern"]
        by_pattern = node.get("patternProperties")
        if is_object(by_pattern):
            yield from by_pattern
    for item in _items(node):
        yield from _patterns(item)


# --- keywords that could take for ever -----------------------------------------------------------------------------------------------------


def _linear(steps: _Steps) -> Mapping[str, Callable[..., Iterator[Any]]]:
    """The rules for them, which take from `steps` as they take time."""
    from jsonschema.exceptions import ValidationError

    def match(pattern: str, text: str) -> bool:
        began = perf_counter()
        found = matcher(pattern)(text)
        steps.take(1 + (perf_counter() - began) / STEP_S)
        return found

    def pattern(validator: Any, pattern: str, instance: Any, schema: Any) -> Iterator[Any]:
        if validator.is_type(instance, "string") and not match(pattern, instance):
            yield ValidationError(f"it does not match the pattern {pattern!r}")

    def pattern_properties(validator: Any, patterns: Mapping[str, Any], instance: Any, schema: Any) -> Iterator[Any]:
        if validator.is_type(instance, "object"):
            for pattern, below in patterns.items():
                for key, value in instance.items():
                    if match(pattern, key):
                        yield from validator.descend(value, below, path=key, schema_path=pattern)

    def additional_properties(validator: Any, allowed: Any, instance: Any, schema: Any) -> Iterator[Any]:
        if not validator.is_type(instance, "object"):
            return
        known, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
        extra = [key for key in instance if key not in known and not any(match(each, key) for each in patterns)]
        for key in extra:
            if allowed is False:
                yield ValidationError("there is no such argument", path=[key])
            elif validator.is_type(allowed, "object"):
                yield from validator.descend(instance[key], allowed, path=key)

    def unique_items(validator: Any, wanted: Any, instance: Any, schema: Any) -> Iterator[Any]:
        if not wanted or not validator.is_type(instance, "array"):
            return
        if len(instance) > ITEMS:
            raise Untellable(f"a list has more than {ITEMS:,} items")
        # JSON tells true from 1, as Python does not.
        told = [json.dumps(item, sort_keys=True) for item in instance]
        steps.take(sum(map(len, told)) / STEP_LETTERS)
        if len(set(told)) < len(told):
            yield ValidationError("its items are not all different")

    return {
        "pattern": pattern,
        "patternProperties": pattern_properties,
        "additionalProperties": additional_properties,
        "uniqueItems": unique_items,
    }


def _told(error: Any) -> Iterator[Mapping[str, str]]:
    place = ".".join(map(str, error.absolute_path))
    if error.validator == "required":
        there = cast("dict[str, Any]", error.instance)
        missing = [name for name in error.validator_value if name not in there]
        name = next((name for name in missing if repr(name) in error.message), "")
        yield {"field": ".".join(filter(None, (place, name))) or "arguments", "problem": "it is missing"}
        return
    yield {"field": _short(place) or "arguments", "problem": _short(clean(str(error.message)).text)}


def _short(text: str) -> str:
    return text if len(text) <= TOLD else f"{text[:TOLD]}…"

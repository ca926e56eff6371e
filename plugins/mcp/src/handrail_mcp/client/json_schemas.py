"""JSON Schemas that servers wrote: shown cleaned, and checked with bounds, since neither the schema nor the data is ours."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import islice
from time import perf_counter
from typing import Any, cast

from handrail.json_types import is_list, is_object
from handrail.sanitize.envelope import clean_text
from handrail_mcp.client.bounded_regex import UndecidableMatch, compile_pattern

# Of one schema: letters of its JSON, and how deep it may be nested.
MAX_SCHEMA = 100_000
MAX_SCHEMA_DEPTH = 64
# Steps of one check: one for a keyword that is looked at, and more for one that takes longer. The first many are some tenths of a second, which a
# check of arguments may keep everything else waiting; the others are for a thread.
MAX_CHECK_STEPS = 10_000
STEPS_BESIDE = 50_000
# What counts as one more step: seconds of a pattern, letters that are compared or told.
STEP_S = 20e-6
STEP_LETTERS = 200
# Items that are told apart.
MAX_UNIQUE_ITEMS = 2_000
MAX_PROBLEMS = 10
MAX_PROBLEM = 300
# Words for the model; everything else in a schema is compared letter by letter.
TEXT_KEYS = frozenset({"title", "description", "$comment"})
MAX_KEYWORD_TEXT = 1_000


class UnusableSchema(ValueError):
    """A schema that nothing can be checked against."""


class _StepBudget(threading.local):
    """Steps that the current thread's check has left."""

    left = 0

    def take(self, number: float = 1) -> None:
        self.left -= int(number)
        if self.left <= 0:
            raise UndecidableMatch("it takes too many steps")


class BoundedSchema:
    """One schema, with a check that always ends."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        self._given = dict(given)
        if self._given.setdefault("type", "object") != "object":
            raise UnusableSchema(f"it is of type {self._given['type']!r}, not object")
        self._steps = _StepBudget()
        _check_bounds(self._given)
        self.json = cast("dict[str, Any]", _clean_node(self._given))
        self.json.setdefault("properties", {})
        self._check_references()
        for pattern in _iter_patterns(self._given):
            compile_pattern(pattern)
        # What refers to itself without end shows at once.
        self.problems({})
        if self._steps.left <= 0:
            raise UnusableSchema("it refers to itself without end")

    def problems(self, args: Mapping[str, Any], *, steps: int = MAX_CHECK_STEPS) -> Sequence[Mapping[str, str]]:
        """Return `{field, problem}` for each value that does not fit.

        Arguments that cannot be checked within bounds are reported as a problem, too.
        """
        self._steps.left = steps
        try:
            return [
                each
                for error in islice(self._validator.iter_errors(dict(args)), MAX_PROBLEMS)
                for each in _describe_problem(error)
            ]
        except (UndecidableMatch, RecursionError) as exc:
            self._steps.left = 0
            why = str(exc) if isinstance(exc, UndecidableMatch) else "it is nested without end"
            return [{"field": "arguments", "problem": f"they cannot be checked: {why}"}]

    @cached_property
    def _validator(self) -> Any:
        from jsonschema import validators
        from jsonschema.exceptions import SchemaError
        from referencing import Registry

        dialect = _find_validator(self._given.get("$schema"))
        try:
            dialect.check_schema(self._given)
        except SchemaError as exc:
            raise UnusableSchema(f"it is no JSON Schema: {_truncate_text(str(exc.message))}") from exc
        rules: dict[str, Any] = {**dialect.VALIDATORS, **_build_bounded_rules(self._steps)}
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

        resource: Any = Resource(self._given, _find_specification(self._validator))
        base: Any = cast("Any", Registry)().with_resource("", resource)
        for reference in _iter_references(self._given):
            seen: set[str] = set()
            resolver = base.resolver("")
            while reference not in seen:
                seen.add(reference)
                try:
                    if not reference.startswith("#"):
                        raise UnusableSchema(f"it refers to another document, {_truncate_text(reference)!r}")
                    found = resolver.lookup(reference).contents
                except Unresolvable as exc:
                    raise UnusableSchema(f"{_truncate_text(reference)!r} leads nowhere in it") from exc
                following = found.get("$ref") if is_object(found) else None
                if not isinstance(following, str):
                    break
                if following in seen:
                    raise UnusableSchema(f"{_truncate_text(following)!r} refers to itself")
                reference = following


@lru_cache(maxsize=512)
def _compile_schema(text: str) -> BoundedSchema:
    return BoundedSchema(json.loads(text))


def parse_schema(given: Mapping[str, Any]) -> BoundedSchema:
    """Compile the schema, shared by all sessions with an equal one; `UnusableSchema` says what is wrong with it."""
    try:
        return _compile_schema(json.dumps(given, ensure_ascii=False))
    except RecursionError as exc:
        raise UnusableSchema("it is nested without end") from exc


def _find_validator(name: object) -> Any:
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
        raise UnusableSchema(f"its dialect {_truncate_text(str(name))!r} is not known")
    return found


def _find_specification(validator: Any) -> Any:
    from referencing.jsonschema import specification_with

    return specification_with(validator.META_SCHEMA["$schema" if "$schema" in validator.META_SCHEMA else "id"])


def _check_bounds(node: Any, depth: int = MAX_SCHEMA_DEPTH) -> None:
    if depth == MAX_SCHEMA_DEPTH and len(json.dumps(node, ensure_ascii=False)) > MAX_SCHEMA:
        raise UnusableSchema(f"it has more than {MAX_SCHEMA:,} letters")
    if not depth:
        raise UnusableSchema(f"it is nested more than {MAX_SCHEMA_DEPTH} deep")
    for item in _list_children(node):
        _check_bounds(item, depth - 1)


def _list_children(node: Any) -> Sequence[Any]:
    if is_object(node):
        return list(node.values())
    return node if is_list(node) else ()


def _clean_node(node: Any, key: str = "") -> Any:
    """Return the schema node as shown to the model: descriptive text cleaned and truncated.

    Raises `UnusableSchema` if any other string contains characters that are not visible.
    """
    if isinstance(node, str):
        if key in TEXT_KEYS:
            return clean_text(node).text[:MAX_KEYWORD_TEXT]
        if clean_text(node, foreign=False).text != node:
            raise UnusableSchema(f"{_truncate_text(repr(node))} in it is not what it looks like")
        return node
    if is_object(node):
        items = node.items()
        return {_clean_node(name): _clean_node(value, name) for name, value in items}
    return [_clean_node(item, key) for item in node] if is_list(node) else node


def _iter_references(node: Any) -> Iterator[str]:
    if is_object(node):
        for key in ("$ref", "$dynamicRef", "$recursiveRef"):
            value = node.get(key)
            if isinstance(value, str):
                yield value
    for item in _list_children(node):
        yield from _iter_references(item)


def _iter_patterns(node: Any) -> Iterator[str]:
    if is_object(node):
        if isinstance(node.get("pattern"), str):
            yield node["pattern"]
        by_pattern = node.get("patternProperties")
        if is_object(by_pattern):
            yield from by_pattern
    for item in _list_children(node):
        yield from _iter_patterns(item)


# --- keywords that could take for ever -----------------------------------------------------------------------------------------------------


def _build_bounded_rules(steps: _StepBudget) -> Mapping[str, Callable[..., Iterator[Any]]]:
    """Build validators for the keywords that could take unbounded time.

    They take steps from `steps` according to the time they need.
    """
    from jsonschema.exceptions import ValidationError

    def match(pattern: str, text: str) -> bool:
        began = perf_counter()
        found = compile_pattern(pattern)(text)
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
        if len(instance) > MAX_UNIQUE_ITEMS:
            raise UndecidableMatch(f"a list has more than {MAX_UNIQUE_ITEMS:,} items")
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


def _describe_problem(error: Any) -> Iterator[Mapping[str, str]]:
    place = ".".join(map(str, error.absolute_path))
    if error.validator == "required":
        there = cast("dict[str, Any]", error.instance)
        missing = [name for name in error.validator_value if name not in there]
        name = next((name for name in missing if repr(name) in error.message), "")
        yield {"field": ".".join(filter(None, (place, name))) or "arguments", "problem": "it is missing"}
        return
    yield {
        "field": _truncate_text(place) or "arguments",
        "problem": _truncate_text(clean_text(str(error.message)).text),
    }


def _truncate_text(text: str) -> str:
    return text if len(text) <= MAX_PROBLEM else f"{text[:MAX_PROBLEM]}…"

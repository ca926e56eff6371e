"""Texts with variables, values at paths of a result, and what is expected of them: the small language of plans."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, cast

from handrail.errors import ConfigError, InvalidArguments
from handrail.json_types import is_list, is_mapping
from handrail.text import format_suggestion

# With two dollar signs it is no variable: the text with one of them is meant.
VARIABLE_REFERENCE = re.compile(r"(?<!\$)\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_FILL_PATTERN = re.compile(rf"\$(\$+\{{[A-Za-z_][A-Za-z0-9_]*\}})|{VARIABLE_REFERENCE.pattern}")
_LITERAL_PATTERN = re.compile(r"(\$+\{[A-Za-z_][A-Za-z0-9_]*\})")
# Of one step, and of all variables of a plan.
MAX_FILLED = 1_048_576
# Expectations whose name is long enough to be told from a key of a value that is meant as it is.
_EXPECTATION_FORMS = ("contains", "matches", "one_of")


def fill_variables(value: Any, variables: Mapping[str, Any]) -> Any:
    """Return the value with every `${variable}` in its texts filled in, once.

    Raises `ConfigError` for a variable that is not known, and for a value that would have more than `MAX_FILLED` characters.
    """
    return _VariableFiller(variables).fill(value)


class _VariableFiller:
    """One value that is filled in, and how many more characters it may have."""

    def __init__(self, variables: Mapping[str, Any]) -> None:
        self._variables = variables
        self._left = MAX_FILLED

    def fill(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._fill_text(value)
        if is_mapping(value):
            return {key: self.fill(item) for key, item in value.items()}
        if is_list(value):
            return [self.fill(item) for item in value]
        return value

    def _fill_text(self, text: str) -> Any:
        for name in VARIABLE_REFERENCE.findall(text):
            if name not in self._variables:
                raise ConfigError(f"there is no variable {name!r}{format_suggestion(name, self._variables)}")
        if whole := VARIABLE_REFERENCE.fullmatch(text):
            value = self._variables[whole[1]]
            self._take(measure_value(value, MAX_FILLED))
            return value
        self._take(len(text))
        return _FILL_PATTERN.sub(lambda found: found[1] or self._part(found[2]), text)

    def _part(self, name: str) -> str:
        try:
            text = str(self._variables[name])
        except ValueError as exc:
            raise ConfigError(f"the variable {name!r} holds an integer that is too long to be written out") from exc
        self._take(len(text))
        return text

    def _take(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise ConfigError(f"with its variables filled in, the step has more than {MAX_FILLED:,} characters")


def measure_value(value: Any, most: int) -> int:
    """Return the number of characters of a value plus one for each value in it.

    If that is more than `most`, some number above `most` is returned. What occurs in several places is counted in each.
    """
    size, waiting = 0, [value]
    while waiting and size <= most:
        item = waiting.pop()
        size += 1
        if isinstance(item, (str, bytes)):
            size += len(item)
        elif isinstance(item, int):
            # A decimal digit has more than three bits.
            size += item.bit_length() // 3
        elif is_mapping(item):
            waiting.extend(item.keys())
            waiting.extend(item.values())
        elif isinstance(item, (list, tuple, set, frozenset)):
            waiting.extend(cast("Sequence[Any]", item))
    return size


def escape_variables(text: str) -> str:
    """Escape the text for use in a plan: nothing in it is filled in."""
    return _LITERAL_PATTERN.sub(r"$\1", text)


def iter_variables(value: Any) -> Iterator[str]:
    """Yield the names of the variables that the texts of a value need."""
    if isinstance(value, str):
        yield from VARIABLE_REFERENCE.findall(value)
    elif is_mapping(value):
        for item in value.values():
            yield from iter_variables(item)
    elif is_list(value):
        for item in value:
            yield from iter_variables(item)


def get_at_path(result: Any, path: str) -> Any:
    """Return the value at a dotted path (`elements.0.text`, `ui_elements.text=OK.id`), or None."""
    node = result
    for part in path.split("."):
        if is_mapping(node):
            node = node.get(part)
        elif is_list(node):
            node = _get_list_item(node, part)
        else:
            return None
    return node


def _get_list_item(items: list[Any], part: str) -> Any:
    """Return the item at an index, or the first item that has the value of `key=value`."""
    if part.lstrip("-").isdigit():
        return items[int(part)] if -len(items) <= int(part) < len(items) else None
    key, _, value = part.partition("=")
    mappings = (item for item in items if is_mapping(item))
    return next((item for item in mappings if str(item.get(key)) == value), None)


def find_unmet_expectation(expected: Mapping[str, Any], found: Mapping[str, Any]) -> str | None:
    """Return the first expectation that does not hold, as a sentence, or None if all hold.

    A value is compared for equality. Other forms are `{contains: x}`, `{matches: regex}`, `{any: {…}}` (some item of a
    list meets these), `{one_of: […]}` and `{not: …}`.
    """
    for path, wanted in expected.items():
        value = get_at_path(found, path)
        if not _is_expectation_met(value, wanted):
            return f"{path} is {_shorten_repr(value)}, expected {_shorten_repr(wanted)}{_format_error_suffix(found)}"
    return None


def find_expectation_error(wanted: Any) -> str | None:
    """Return why an expectation is invalid, regardless of the value it is compared with, or None."""
    match wanted:
        case {"matches": pattern, **rest} if not rest:
            try:
                _compile_pattern(str(pattern))
            except InvalidArguments as exc:
                return f"'matches' is no regular expression: {exc}"
        case {"one_of": choices, **rest} if not rest and not isinstance(choices, list):
            return f"'one_of' takes a list, not {_shorten_repr(choices)}"
        case {"any": inner, **rest} if not rest and not isinstance(inner, Mapping):
            return f"'any' takes a mapping of what an item must fulfil, not {_shorten_repr(inner)}"
        case {"not": inner, **rest} if not rest:
            return find_expectation_error(inner)
        case {**rest} if len(rest) == 1 and (near := _suggest_expectation(next(iter(rest)))) is not None:
            return f"{next(iter(rest))!r} is no expectation; did you mean {near!r}?"
        case _:
            pass
    return None


def _suggest_expectation(name: object) -> str | None:
    """Return the form of expectation that was probably meant by a word.

    None for a correct form, and for a word that resembles none.
    """
    import difflib

    if not isinstance(name, str) or name in _EXPECTATION_FORMS:
        return None
    return next(iter(difflib.get_close_matches(name, _EXPECTATION_FORMS, n=1, cutoff=0.83)), None)


def _is_expectation_met(found: Any, wanted: Any) -> bool:
    match wanted:
        case {"contains": part, **rest} if not rest:
            return str(part) in found if isinstance(found, str) else is_list(found) and part in found
        case {"matches": pattern, **rest} if not rest:
            return isinstance(found, str) and _is_pattern_match(str(pattern), found)
        case {"any": inner, **rest} if not rest:
            items = found if is_list(found) else []
            return any(find_unmet_expectation(inner, item) is None for item in items if is_mapping(item))
        case {"one_of": choices, **rest} if not rest:
            return found in cast("Sequence[Any]", choices)
        case {"not": inner, **rest} if not rest:
            return not _is_expectation_met(found, inner)
        case _:
            return found == wanted


def _is_pattern_match(pattern: str, text: str) -> bool:
    """Return True if a pattern matches somewhere in a text; `$` also matches before a final line feed."""
    search, data = _compile_pattern(pattern).search, text.encode("utf-8", "surrogatepass")
    return search(data) is not None or (data.endswith(b"\n") and search(data[:-1]) is not None)


@lru_cache(maxsize=64)
def _compile_pattern(pattern: str) -> Any:
    """Compile a regular expression in RE2's syntax, which takes time linear in the text for any pattern.

    Raises `InvalidArguments` for an invalid pattern.
    """
    # It has no types, and plans without patterns have no use for it.
    re2: Any = importlib.import_module("re2")
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern.encode("utf-8", "surrogatepass"), options)
    except re2.error as exc:
        told = exc.args[0].decode("utf-8", "replace") if isinstance(exc.args[0], bytes) else str(exc)
        raise InvalidArguments(f"{told} (the syntax is RE2's: no backreferences, no lookaround)") from exc


def _format_error_suffix(result: Mapping[str, Any]) -> str:
    error = result.get("error")
    return f" ({error['message']})" if isinstance(error, Mapping) and "message" in error else ""


def _shorten_repr(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}…"

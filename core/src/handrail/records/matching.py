"""Texts with variables, values at paths of a result, and what is expected of them: the small language of plans."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, cast

from handrail.errors import ConfigError, InvalidArguments
from handrail.plain import is_list, is_mapping
from handrail.words import nearest

# With two dollar signs it is no variable: the text with one of them is meant.
VARIABLE = re.compile(r"(?<!\$)\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_FILLED = re.compile(rf"\$(\$+\{{[A-Za-z_][A-Za-z0-9_]*\}})|{VARIABLE.pattern}")
_LITERAL = re.compile(r"(\$+\{[A-Za-z_][A-Za-z0-9_]*\})")
# Expectations whose name is long enough to be told from a key of a value that is meant as it is.
_FORMS = ("contains", "matches", "one_of")


def fill(value: Any, variables: Mapping[str, Any]) -> Any:
    """The value with every `${variable}` in its texts filled in, once; `ConfigError` for one that is not known."""
    if isinstance(value, str):
        return _fill_text(value, variables)
    if is_mapping(value):
        return {key: fill(item, variables) for key, item in value.items()}
    if is_list(value):
        return [fill(item, variables) for item in value]
    return value


def _fill_text(text: str, variables: Mapping[str, Any]) -> Any:
    for name in VARIABLE.findall(text):
        if name not in variables:
            raise ConfigError(f"there is no variable {name!r}{nearest(name, variables)}")
    if whole := VARIABLE.fullmatch(text):
        return variables[whole[1]]
    return _FILLED.sub(lambda found: found[1] or str(variables[found[2]]), text)


def literal(text: str) -> str:
    """The text as a plan writes it so that nothing is filled in."""
    return _LITERAL.sub(r"$\1", text)


def variables_in(value: Any) -> Iterator[str]:
    """The names of the variables that its texts need."""
    if isinstance(value, str):
        yield from VARIABLE.findall(value)
    elif is_mapping(value):
        for item in value.values():
            yield from variables_in(item)
    elif is_list(value):
        for item in value:
            yield from variables_in(item)


def look_up(result: Any, path: str) -> Any:
    """The value at a dotted path (`elements.0.text`, `ui_elements.text=OK.id`); None where there is none."""
    node = result
    for part in path.split("."):
        if is_mapping(node):
            node = node.get(part)
        elif is_list(node):
            node = _item(node, part)
        else:
            return None
    return node


def _item(items: list[Any], part: str) -> Any:
    """The item at an index, or the first one that has the value of `key=value`."""
    if part.lstrip("-").isdigit():
        return items[int(part)] if -len(items) <= int(part) < len(items) else None
    key, _, value = part.partition("=")
    mappings = (item for item in items if is_mapping(item))
    return next((item for item in mappings if str(item.get(key)) == value), None)


def unmet(expected: Mapping[str, Any], found: Mapping[str, Any]) -> str | None:
    """The first expectation that does not hold, as a sentence; None when all do.

    A value is compared for equality. `{contains: x}`, `{matches: regex}`, `{any: {…}}` (some item of a list fulfils these), `{one_of: […]}`
    and `{not: …}` say more.
    """
    for path, wanted in expected.items():
        value = look_up(found, path)
        if not _holds(value, wanted):
            return f"{path} is {_brief(value)}, expected {_brief(wanted)}{_told(found)}"
    return None


def unsound(wanted: Any) -> str | None:
    """What is wrong with an expectation whatever it is held against; None when nothing is."""
    match wanted:
        case {"matches": pattern, **rest} if not rest:
            try:
                _compiled(str(pattern))
            except InvalidArguments as exc:
                return f"'matches' is no regular expression: {exc}"
        case {"one_of": choices, **rest} if not rest and not isinstance(choices, list):
            return f"'one_of' takes a list, not {_brief(choices)}"
        case {"any": inner, **rest} if not rest and not isinstance(inner, Mapping):
            return f"'any' takes a mapping of what an item must fulfil, not {_brief(inner)}"
        case {"not": inner, **rest} if not rest:
            return unsound(inner)
        case {**rest} if len(rest) == 1 and (near := _misspelled(next(iter(rest)))) is not None:
            return f"{next(iter(rest))!r} is no expectation; did you mean {near!r}?"
        case _:
            pass
    return None


def _misspelled(name: object) -> str | None:
    """The expectation that somebody meant who wrote this; None for one of them, and for any other word."""
    import difflib

    if not isinstance(name, str) or name in _FORMS:
        return None
    return next(iter(difflib.get_close_matches(name, _FORMS, n=1, cutoff=0.83)), None)


def _holds(found: Any, wanted: Any) -> bool:
    match wanted:
        case {"contains": part, **rest} if not rest:
            return str(part) in found if isinstance(found, str) else is_list(found) and part in found
        case {"matches": pattern, **rest} if not rest:
            return isinstance(found, str) and _fits(str(pattern), found)
        case {"any": inner, **rest} if not rest:
            items = found if is_list(found) else []
            return any(unmet(inner, item) is None for item in items if is_mapping(item))
        case {"one_of": choices, **rest} if not rest:
            return found in cast("Sequence[Any]", choices)
        case {"not": inner, **rest} if not rest:
            return not _holds(found, inner)
        case _:
            return found == wanted


def _fits(pattern: str, text: str) -> bool:
    """Return True if a pattern matches somewhere in a text; `$` also matches before a final line feed."""
    search, data = _compiled(pattern).search, text.encode("utf-8", "surrogatepass")
    return search(data) is not None or (data.endswith(b"\n") and search(data[:-1]) is not None)


@lru_cache(maxsize=64)
def _compiled(pattern: str) -> Any:
    """A regular expression in RE2's syntax, which takes time linear in the text, whatever the pattern. Raises `InvalidArguments` for another."""
    # It has no types, and plans without patterns have no use for it.
    re2: Any = importlib.import_module("re2")
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern.encode("utf-8", "surrogatepass"), options)
    except re2.error as exc:
        told = exc.args[0].decode("utf-8", "replace") if isinstance(exc.args[0], bytes) else str(exc)
        raise InvalidArguments(f"{told} (the syntax is RE2's: no backreferences, no lookaround)") from exc


def _told(result: Mapping[str, Any]) -> str:
    error = result.get("error")
    return f" ({error['message']})" if isinstance(error, Mapping) and "message" in error else ""


def _brief(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}…"

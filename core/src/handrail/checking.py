"""What is wrong with a configuration, told by its source, its line and its key."""

from __future__ import annotations

import tomllib
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from handrail.errors import ConfigError
from handrail.settings import PluginSettings, RuleSettings, Section, Settings
from handrail.words import nearest

# Where a key stands, for the beginning of a message.
Where = Callable[[tuple[int | str, ...]], str]


def check(values: dict[str, Any], *, where: Where) -> None:
    """Raise `ConfigError` for the first value that does not fit."""
    for key in _stray(values):
        raise _unknown(key, where)
    try:
        Settings.model_validate(values)
    except ValidationError as exc:
        errors = exc.errors(include_url=False)
        # A key that is misspelt is the cause where another is then missing.
        raise _explained(next((e for e in errors if e["type"] == "extra_forbidden"), errors[0]), where) from exc


def _stray(values: dict[str, Any]) -> Iterator[tuple[int | str, ...]]:
    """Keys that the model would take and a file may not have: what a rule has by where it stands, and in `[plugins]` what is no table."""
    plugins = values.get("plugins")
    if isinstance(plugins, dict):
        for name, value in cast("dict[str, Any]", plugins).items():
            if name not in PluginSettings.model_fields and not isinstance(value, dict):
                yield ("plugins", name)
    policy = values.get("policy")
    rules: Any = cast("dict[str, Any]", policy).get("rules") if isinstance(policy, dict) else None
    if isinstance(rules, list):
        for index, rule in enumerate(cast("list[Any]", rules)):
            for key in SET_BY_PLACE & set(cast("dict[str, Any]", rule) if isinstance(rule, dict) else ()):
                yield ("policy", "rules", index, key)


# What a rule has by where it stands, and no file may say.
SET_BY_PLACE = frozenset(name for name, info in RuleSettings.model_fields.items() if info.exclude)


def _explained(error: ErrorDetails, where: Where) -> ConfigError:
    key = error["loc"]
    match error["type"]:
        case "extra_forbidden":
            return _unknown(key, where)
        case "rule":
            about = error.get("ctx", {})
            key = (*key, about["key"])
            return ConfigError(f"{where(key)}: {_dotted(key)}: {about['problem']}")
        case "missing":
            return ConfigError(f"{where(key[:-1])}: {_dotted(key[:-1])} lacks the key {key[-1]!r}")
        case "tuple_type":
            accepted = 'it should be a list, as in ["one", "two"]'
        case "dict_type" | "model_type":
            accepted = "it should be a table"
        case _:
            accepted = f"{error['msg'][:1].lower()}{error['msg'][1:]}".replace("input should be", "it should be")
    return ConfigError(f"{where(key)}: {_dotted(key)} is {error['input']!r}; {accepted}")


def _unknown(key: tuple[int | str, ...], where: Where) -> ConfigError:
    return ConfigError(f"{where(key)}: unknown key {_dotted(key)!r}{nearest(str(key[-1]), _known(key[:-1]))}")


def _known(table: tuple[int | str, ...]) -> list[str]:
    """The keys that a table of the configuration may have."""
    model: Any = Settings
    for part in table:
        if isinstance(part, str):
            annotation = model.model_fields[part].annotation
            model = next(
                kind
                for kind in (*get_args(annotation), annotation)
                if isinstance(kind, type) and issubclass(kind, BaseModel)
            )
    return [name for name, info in cast("type[Section]", model).model_fields.items() if not info.exclude]


def _dotted(key: tuple[int | str, ...]) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in key).lstrip(".")


def line_of(key: tuple[int | str, ...], text: str) -> int:
    """The line, from 1, on which the statement stands that sets `key`: what comes before it lacks the key, what ends with it has it."""
    lines = [f"{line}\n" for line in text.split("\n")]
    last = bisect_left(range(len(lines)), True, key=lambda count: _has(_whole(lines, count)[1], key))
    return _whole(lines, max(last - 1, 0))[0] + 1


def _whole(lines: Sequence[str], count: int) -> tuple[int, dict[str, Any]]:
    """The longest beginning of at most `count` lines that is TOML: how many lines, and what it says."""
    while True:
        try:
            return count, tomllib.loads("".join(lines[:count]))
        except tomllib.TOMLDecodeError:
            count -= 1


def _has(values: Any, key: tuple[int | str, ...]) -> bool:
    # One where several may stand counts as a list of it.
    if key and key[-1] == 0 and _is_text(values, key[:-1]):
        return True
    for part in key:
        try:
            values = values[part]
        except (KeyError, IndexError, TypeError):
            return False
    return True


def _is_text(values: Any, key: tuple[int | str, ...]) -> bool:
    try:
        for part in key:
            values = values[part]
    except (KeyError, IndexError, TypeError):
        return False
    return isinstance(values, str)

"""What is wrong with a configuration, told by its source, its line and its key."""

from __future__ import annotations

import tomllib
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from handrail.config.rule_settings import RuleSettings
from handrail.config.settings import PluginSettings, Settings
from handrail.errors import ConfigError
from handrail.plain import is_list, is_object
from handrail.tools import mistakes

# Where a key stands, for the beginning of a message.
Where = Callable[[tuple[int | str, ...]], str]


def check(values: dict[str, Any], *, where: Where) -> None:
    """Raise `ConfigError` for the first value that does not fit."""
    for key in _with_nul(values):
        raise ConfigError(
            f"{where(key)}: {mistakes.dotted(key)} holds the character U+0000, which no path or name can have"
        )
    for key in _stray(values):
        raise ConfigError(f"{where(key)}: {mistakes.unknown(key, Settings)}")
    try:
        Settings.model_validate(values)
    except ValidationError as exc:
        raise _explained(mistakes.first(exc), where) from exc


def _with_nul(value: Any, key: tuple[int | str, ...] = ()) -> Iterator[tuple[int | str, ...]]:
    """Texts with a NUL in them: every program takes them for something else."""
    if isinstance(value, str) and "\0" in value:
        yield key
    elif is_object(value):
        for name, each in value.items():
            yield from _with_nul(each, (*key, name))
    elif is_list(value):
        for index, each in enumerate(value):
            yield from _with_nul(each, (*key, index))


def _stray(values: dict[str, Any]) -> Iterator[tuple[int | str, ...]]:
    """Keys that the model would take and a file may not have: what a rule has by where it stands, and in `[plugins]` what is no table."""
    plugins = values.get("plugins")
    if is_object(plugins):
        for name, value in plugins.items():
            if name not in PluginSettings.model_fields and not isinstance(value, dict):
                yield ("plugins", name)
    policy = values.get("policy")
    rules: Any = policy.get("rules") if is_object(policy) else None
    if is_list(rules):
        for index, rule in enumerate(rules):
            for key in SET_BY_PLACE & set(rule if is_object(rule) else ()):
                yield ("policy", "rules", index, key)


# What a rule has by where it stands, and no file may say.
SET_BY_PLACE = frozenset(name for name, info in RuleSettings.model_fields.items() if info.exclude)


def _explained(error: ErrorDetails, where: Where) -> ConfigError:
    key = error["loc"]
    if error["type"] == "rule":
        about = error.get("ctx", {})
        key = (*key, about["key"])
        return ConfigError(f"{where(key)}: {mistakes.dotted(key)}: {about['problem']}")
    at = key[:-1] if error["type"] == "missing" else key
    return ConfigError(f"{where(at)}: {mistakes.told(error, Settings)}")


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

"""Configuration errors, reported with source, line and key."""

from __future__ import annotations

import tomllib
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from handrail import validation_messages
from handrail.config.rule_settings import RuleSettings
from handrail.config.settings import PluginSettings, Settings
from handrail.errors import ConfigError
from handrail.json_types import is_list, is_object

# Where a key stands, for the beginning of a message.
KeyLocator = Callable[[tuple[int | str, ...]], str]


def validate_values(values: dict[str, Any], *, where: KeyLocator) -> None:
    """Raise `ConfigError` for the first value that does not fit."""
    for key in _find_nul_keys(values):
        raise ConfigError(
            f"{where(key)}: {validation_messages.format_key_path(key)} holds the character U+0000, which no path or name can have"
        )
    for key in _find_stray_keys(values):
        raise ConfigError(f"{where(key)}: {validation_messages.describe_unknown_key(key, Settings)}")
    try:
        Settings.model_validate(values)
    except ValidationError as exc:
        raise _explain_error(validation_messages.select_error(exc), where) from exc


def _find_nul_keys(value: Any, key: tuple[int | str, ...] = ()) -> Iterator[tuple[int | str, ...]]:
    """Yield the keys of texts that contain a NUL, which every program interprets differently."""
    if isinstance(value, str) and "\0" in value:
        yield key
    elif is_object(value):
        for name, each in value.items():
            yield from _find_nul_keys(each, (*key, name))
    elif is_list(value):
        for index, each in enumerate(value):
            yield from _find_nul_keys(each, (*key, index))


def _find_stray_keys(values: dict[str, Any]) -> Iterator[tuple[int | str, ...]]:
    """Yield keys that the model would accept but a file may not contain.

    These are rule keys that are derived from a rule's location, and entries of `[plugins]` that are not tables.
    """
    plugins = values.get("plugins")
    if is_object(plugins):
        for name, value in plugins.items():
            if name not in PluginSettings.model_fields and not isinstance(value, dict):
                yield ("plugins", name)
    policy = values.get("policy")
    rules: Any = policy.get("rules") if is_object(policy) else None
    if is_list(rules):
        for index, rule in enumerate(rules):
            for key in DERIVED_RULE_KEYS & set(rule if is_object(rule) else ()):
                yield ("policy", "rules", index, key)


# What a rule has by where it stands, and no file may say.
DERIVED_RULE_KEYS = frozenset(name for name, info in RuleSettings.model_fields.items() if info.exclude)


def _explain_error(error: ErrorDetails, where: KeyLocator) -> ConfigError:
    key = error["loc"]
    if error["type"] == "rule":
        about = error.get("ctx", {})
        key = (*key, about["key"])
        return ConfigError(f"{where(key)}: {validation_messages.format_key_path(key)}: {about['problem']}")
    at = key[:-1] if error["type"] == "missing" else key
    return ConfigError(f"{where(at)}: {validation_messages.describe_error(error, Settings)}")


def find_key_line(key: tuple[int | str, ...], text: str) -> int:
    """Return the line, from 1, of the statement that sets `key`.

    The text before that statement lacks the key, the text up to its end has it.
    """
    lines = [f"{line}\n" for line in text.split("\n")]
    last = bisect_left(range(len(lines)), True, key=lambda count: _has_key(_parse_longest_prefix(lines, count)[1], key))
    return _parse_longest_prefix(lines, max(last - 1, 0))[0] + 1


def _parse_longest_prefix(lines: Sequence[str], count: int) -> tuple[int, dict[str, Any]]:
    """Return the longest prefix of at most `count` lines that is valid TOML, as the number of lines and its content."""
    while True:
        try:
            return count, tomllib.loads("".join(lines[:count]))
        except tomllib.TOMLDecodeError:
            count -= 1


def _has_key(values: Any, key: tuple[int | str, ...]) -> bool:
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


def validate_table(model: type[BaseModel], values: Mapping[str, Any], *, table: str) -> BaseModel:
    """Validate the values of a plugin's or backend's table with its model.

    Raises `ConfigError` naming the first key that does not fit.
    """
    try:
        return model.model_validate(dict(values))
    except ValidationError as exc:
        error = validation_messages.select_error(exc)
        raise ConfigError(
            validation_messages.describe_error(error, model, table=table), key=(*table.split("."), *error["loc"])
        ) from exc

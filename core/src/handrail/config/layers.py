"""Layers of settings: what each file, the environment and the flags set. Reading writes nothing."""

from __future__ import annotations

import os
import re
import stat
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, cast, get_origin

from pydantic import BaseModel

from handrail.config.settings import Settings
from handrail.config.source_text import read_source_text
from handrail.config.trust import is_trusted_text
from handrail.config.validation import find_key_line, validate_values
from handrail.errors import ConfigError
from handrail.fs.app_dirs import MARKER_PREFIX, AppDirs
from handrail.json_types import is_nested_deeper, is_object, iter_integers
from handrail.text import format_suggestion

VARIABLE_PREFIX = "HANDRAIL_"
SECRET_PREFIX = f"{VARIABLE_PREFIX}SECRET_"
# Tables and lists in one another that a file may have.
MAX_TABLE_DEPTH = 50
# A dotted key with more parts: reading one takes tomllib time with the square of their number.
DEEP_KEY = re.compile(
    r"""(?:\.[ \t]*+(?:"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+'|[\w-]++)[ \t]*+){%d}""" % MAX_TABLE_DEPTH  # noqa: UP031
)
# What TOML asks of every program that reads it, and no more.
MAX_INTEGER_BITS = 64
RESERVED_VARIABLES = frozenset({"HANDRAIL_HOME", "HANDRAIL_CONFIG", "HANDRAIL_PLUGINS"})

ConfigKey = tuple[str, ...]
LayerKind = Literal["admin", "user", "project", "untrusted", "named", "environment", "flag"]

MODE_KEY: ConfigKey = ("mode",)
RULES_KEY: ConfigKey = ("policy", "rules")
OBSERVERS_KEY: ConfigKey = ("observers",)
# Of these lists, what all files say that set them.
INTERSECTED_KEYS: frozenset[ConfigKey] = frozenset({("security", "trust"), ("network", "allow_private")})
# What only the person's own files may set.
USER_ONLY_KEYS: frozenset[ConfigKey] = INTERSECTED_KEYS | {
    ("network", "proxy"),
    ("secrets", "keyring"),
    ("secrets", "sites"),
    ("secrets", "variables"),
    ("audit", "keep_days"),
    ("audit", "keep_bytes"),
    # It is one store for all workspaces.
    ("undo", "max_bytes"),
    ("undo", "keep_days"),
}


@dataclass(frozen=True, slots=True)
class ConfigLayer:
    """Settings from one source, by key."""

    kind: LayerKind
    source: str
    values: Mapping[ConfigKey, Any]


@cache
def list_value_keys(model: type[BaseModel] = Settings, under: ConfigKey = ()) -> tuple[ConfigKey, ...]:
    """Return every configuration key with a value, without the tables of plugins, backends, sandboxes and servers."""
    found: list[ConfigKey] = []
    for name, info in model.model_fields.items():
        annotation: Any = info.annotation
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            found += list_value_keys(annotation, (*under, name))
        elif get_origin(annotation) is not dict:
            found.append((*under, name))
    return tuple(found)


@cache
def map_variables() -> Mapping[str, ConfigKey]:
    """Map the environment variables for settings to their keys: HANDRAIL_TOOLS_PROFILE to `tools.profile`."""
    return {
        VARIABLE_PREFIX + "_".join(key).upper(): key
        for key in list_value_keys()
        if key not in (RULES_KEY, OBSERVERS_KEY) and key not in USER_ONLY_KEYS
    }


def read_admin_layer(file: Path, ignored: list[str]) -> Iterator[ConfigLayer]:
    """Yield the administrator's file if only root can have written it; otherwise add a sentence to `ignored`."""
    try:
        real = file.resolve(strict=True)
        safe = all(_is_root_only_writable(path) for path in (real, *real.parents))
    except OSError:
        return
    if safe:
        yield from read_file_layer(file, "admin")
    else:
        ignored.append(
            f"{file} is ignored: it and the folders above it must belong to root and be writable by nobody else"
        )


def _is_root_only_writable(path: Path) -> bool:
    found = path.stat()
    # In a sticky folder others can add files, and change none that is not theirs.
    sticky = stat.S_ISDIR(found.st_mode) and found.st_mode & stat.S_ISVTX
    return found.st_uid == 0 and (bool(sticky) or not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH))


def read_project_layer(candidates: Sequence[Path], *, named: bool, places: AppDirs) -> Iterator[ConfigLayer]:
    """Yield the nearest project file, or the named file.

    Raises `ConfigError` if the named file does not exist.
    """
    if named:
        if not candidates[0].exists():
            raise ConfigError(
                f"there is no configuration file {str(candidates[0])!r}", hint="--config or HANDRAIL_CONFIG names it"
            )
        yield from read_file_layer(candidates[0], "named")
        return
    for file in candidates:
        if os.path.lexists(file):
            # What is judged is what counts, even if a command of an agent exchanges the file meanwhile.
            text = read_source_text(file)
            trusted = is_trusted_text(file.parent, text, places=places)
            yield parse_layer(text, file, "project" if trusted else "untrusted")
            return


def read_file_layer(file: Path, kind: LayerKind) -> Iterator[ConfigLayer]:
    """Return the settings of a file, empty when it does not exist. Raises what `parse_layer` raises."""
    if os.path.lexists(file):
        yield parse_layer(read_source_text(file), file, kind)


def parse_layer(text: str, file: Path, kind: LayerKind) -> ConfigLayer:
    """Return the settings in the text of a file, with absolute paths and the source of each rule. Raises `ConfigError` for invalid ones."""
    values = parse_toml(text, file)
    validate_values(values, where=lambda key: f"{file}:{find_key_line(key, text)}")
    flat = dict(_flatten_values(values))
    if kind in ("project", "untrusted") and ("workspace",) in flat:
        flat["workspace",] = [str(file.parent / Path(root).expanduser()) for root in flat["workspace",]]
    if RULES_KEY in flat:
        start = file.parent if kind in ("project", "untrusted") else None
        flat[RULES_KEY] = [add_rule_location(rule, file, index, start) for index, rule in enumerate(flat[RULES_KEY])]
    if OBSERVERS_KEY in flat:
        flat[OBSERVERS_KEY] = [
            {**observer, "command": _resolve_program(observer["command"], file)} for observer in flat[OBSERVERS_KEY]
        ]
    return ConfigLayer(kind, str(file), flat)


def _resolve_program(command: Sequence[str], file: Path) -> list[str]:
    """Return the command with a program given as a path resolved from the directory of `file`, which names it."""
    program, *arguments = command
    named = "/" in program or os.sep in program or program.startswith("~")
    return [str(file.parent.absolute() / Path(program).expanduser()) if named else program, *arguments]


def add_rule_location(rule: dict[str, Any], file: Path, index: int, start: Path | None) -> dict[str, Any]:
    """Return a rule with its location; relative paths in it are resolved from `start`, if given."""
    placed = {**rule, "source": str(file), "index": index}
    if start is not None and "paths" in rule:
        given = [rule["paths"]] if isinstance(rule["paths"], str) else rule["paths"]
        placed["paths"] = [path if path.startswith("~") else str(start / path) for path in given]
    return placed


def parse_toml(text: str, file: Path) -> dict[str, Any]:
    """Return the tables of a configuration file."""
    if DEEP_KEY.search(text):
        raise _depth_error(file)
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as exc:
        at = re.search(r"\(at line (\d+), column (\d+)\)", str(exc))
        place = f"{at[1]}:{at[2]}" if at else str(len(text.splitlines()) or 1)
        said = re.sub(r"\s*\(at [^)]*\)$", "", str(exc))
        raise ConfigError(
            f"{file}:{place}: this is not TOML: {said[:1].lower()}{said[1:]}",
            hint='text stands in quotes, as in mode = "plan"; a list in brackets, as in workspace = ["."]',
        ) from exc
    except RecursionError as exc:
        raise ConfigError(f"{file}: it is nested too deep") from exc
    # Python reads no decimal integer of more than 4,300 digits, and tomllib leaves that to whoever calls it.
    except ValueError as exc:
        raise _integer_error(file) from exc
    # Dotted keys nest without recursion while they are parsed, but not where the values are read.
    if is_nested_deeper(values, MAX_TABLE_DEPTH):
        raise _depth_error(file)
    if any(number.bit_length() > MAX_INTEGER_BITS for number in iter_integers(values)):
        raise _integer_error(file)
    return values


def _depth_error(file: Path) -> ConfigError:
    return ConfigError(f"{file}: it is nested too deep; at most {MAX_TABLE_DEPTH} levels are read")


def _integer_error(file: Path) -> ConfigError:
    return ConfigError(f"{file}: an integer in it has more than {MAX_INTEGER_BITS} bits")


def read_environment_layers(environment: Mapping[str, str]) -> Iterator[ConfigLayer]:
    """Yield each setting made by a `HANDRAIL_…` variable."""
    known = map_variables()
    for variable in sorted(environment):
        if (
            not variable.startswith(VARIABLE_PREFIX)
            or variable in RESERVED_VARIABLES
            or variable.startswith((MARKER_PREFIX, SECRET_PREFIX))
        ):
            continue
        key = known.get(variable)
        if key is None:
            raise _unknown_variable_error(variable)
        if text := environment[variable].strip():
            value = [word.strip() for word in text.split(",") if word.strip()] if _is_list_key(key) else text
            validate_values(nest_values({key: value}), where=lambda _, variable=variable: f"environment {variable}")
            yield ConfigLayer("environment", f"environment {variable}", {key: value})


def _unknown_variable_error(variable: str) -> ConfigError:
    for key in USER_ONLY_KEYS:
        if variable == VARIABLE_PREFIX + "_".join(key).upper():
            hint = f"{'.'.join(key)} is set in the user's config.toml only"
            return ConfigError(f"{variable} does not count", hint=hint)
    known = (*map_variables(), *RESERVED_VARIABLES)
    return ConfigError(
        f"unknown environment variable {variable!r}{format_suggestion(variable, known)}",
        hint=f"unset it; {MARKER_PREFIX}… is free for your own use",
    )


def read_flag_layers(flags: Mapping[str, Any], *, arguments: bool) -> Iterator[ConfigLayer]:
    """Yield each flag that was given, by its dotted key.

    It is described as what it is: with `arguments`, as an argument of a Python function, else as a flag of a command.
    """
    for dotted, value in flags.items():
        if value is not None:
            key = tuple(dotted.split("."))
            name = f"argument {dotted}" if arguments else f"--{key[-1].replace('_', '-')}"
            plain = list(cast("tuple[Any, ...]", value)) if isinstance(value, tuple) else value
            validate_values(nest_values({key: plain}), where=lambda _, name=name: name)
            source = name if arguments else f"flag {name}"
            yield from (
                ConfigLayer("flag", source, {part: item}) for part, item in _flatten_values(nest_values({key: plain}))
            )


def _flatten_values(values: Mapping[str, Any], under: ConfigKey = ()) -> Iterator[tuple[ConfigKey, Any]]:
    """Yield values by key; a named table such as `[plugins.NAME]` or `[mcp.servers.NAME]` counts as one value."""
    for name, value in values.items():
        key = (*under, name)
        if is_object(value) and len(key) < 3:
            yield from _flatten_values(value, key)
        else:
            yield key, value


def nest_values(values: Mapping[ConfigKey, Any]) -> dict[str, Any]:
    """Return values by key as nested tables."""
    root: dict[str, Any] = {}
    for key, value in values.items():
        table = root
        for part in key[:-1]:
            table = table.setdefault(part, {})
        table[key[-1]] = value
    return root


def _is_list_key(key: ConfigKey) -> bool:
    model: Any = Settings
    for part in key[:-1]:
        model = model.model_fields[part].annotation
    return str(model.model_fields[key[-1]].annotation).startswith("tuple[")

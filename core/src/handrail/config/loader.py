"""Loading of settings from files, environment and flags, each value with its source.

default < /etc/handrail/config.toml < the user's config.toml < the project's handrail.toml < environment < flags. Later
beats earlier, except for settings that guard: there the stricter value wins or all of them count
(`handrail.config.merge`). A project file that is not trusted with its present content may only tighten. Loading never
writes.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import platformdirs
from pydantic import BaseModel

from handrail.config.layers import (
    add_rule_location,
    list_value_keys,
    nest_values,
    parse_toml,
    read_admin_layer,
    read_environment_layers,
    read_file_layer,
    read_flag_layers,
    read_project_layer,
)
from handrail.config.merge import MergedSettings, decide_mode, describe_ignored, merge_layer
from handrail.config.rule_settings import RuleSettings
from handrail.config.settings import PluginSettings, Settings
from handrail.config.source_text import read_source_text
from handrail.config.trust import PROJECT_FILE, is_trusted
from handrail.config.validation import DERIVED_RULE_KEYS, find_key_line, validate_values
from handrail.errors import ConfigError
from handrail.fs.app_dirs import AppDirs, find_home_folder
from handrail.json_types import is_list, is_object
from handrail.validation_messages import format_key_path

__all__ = ["LoadedConfig"]

# The platform's own place for all users; on Linux `/etc` itself, where an administrator looks first.
ADMIN_FOLDER = (
    Path("/etc/handrail") if sys.platform == "linux" else platformdirs.site_config_path("handrail", appauthor=False)
)
ADMIN_FILE = ADMIN_FOLDER / "config.toml"
# Tables with a table for each of what plugins register.
NAMED_TABLES = ("backends", "sandboxes")


@dataclass(frozen=True, slots=True)
class LoadedConfig:
    """The settings and where each came from.

    `sources`: dotted key to "default", the path of a file, "environment HANDRAIL_X" or "flag --x". `ignored`: a sentence for each thing that
    a source wanted and did not get. `files`: every file that was looked for, there or not; when one changes, load again.
    """

    settings: Settings
    sources: Mapping[str, str]
    ignored: tuple[str, ...]
    files: tuple[Path, ...]

    @contextmanager
    def locating(self) -> Generator[None]:
        """Add to a `ConfigError` raised in the block the file and line, variable or flag that its key comes from."""
        try:
            yield
        except ConfigError as exc:
            if not (source := self._source(exc.key)):
                raise
            raise ConfigError(f"{source}: {exc}", hint=exc.hint, key=()) from exc

    def _source(self, key: tuple[int | str, ...]) -> str:
        """Return what sets a key, a key inside it, or a table that contains it."""
        set_here = {name: source for name, source in self.sources.items() if source != "default"}
        for length in range(len(key), 1, -1):
            name = format_key_path(key[:length])
            for each, source in set_here.items():
                if each == name or each.startswith(f"{name}."):
                    return _locate_key(source, key)
        return ""


def _locate_key(source: str, key: tuple[int | str, ...]) -> str:
    """Return `FILE:LINE` if the source is a file that still sets the key."""
    try:
        return f"{source}:{find_key_line(key, read_source_text(Path(source)))}" if Path(source).is_file() else source
    except ConfigError:
        return source


def load_config(
    *,
    places: AppDirs,
    folder: Path,
    environment: Mapping[str, str],
    flags: Mapping[str, Any] | None = None,
    arguments: Mapping[str, Any] | None = None,
    file: Path | None = None,
    admin: Path = ADMIN_FILE,
) -> LoadedConfig:
    """Load every setting for a session that starts in `folder`.

    `flags` of a command, or `arguments` of a function, are given by dotted key; None means not given. `file` (or
    HANDRAIL_CONFIG) replaces the project's file and is trusted. Raises `ConfigError` with the source, line and key of
    the first error.
    """
    named = file or environment.get("HANDRAIL_CONFIG")
    candidates = (
        [folder.absolute() / Path(named).expanduser()]
        if named
        else list_project_files(folder, home=find_home_folder(environment))
    )
    merge = MergedSettings()
    layers = [
        *read_admin_layer(admin, merge.ignored),
        *read_file_layer(places.config_file, "user"),
        *read_project_layer(candidates, named=bool(named), places=places),
        *read_environment_layers(environment),
        *read_flag_layers(flags or {}, arguments=False),
        *read_flag_layers(arguments or {}, arguments=True),
    ]
    for layer in layers:
        merge_layer(layer, merge, places=places)
    decide_mode(layers, merge)
    if merge.left:
        file = next(file for file in candidates if os.path.lexists(file))
        merge.ignored.append(describe_ignored(merge.left, file, changed=is_trusted(file.parent, places=places)))
    return LoadedConfig(
        settings=Settings.model_validate(nest_values(merge.values)),
        sources={
            ".".join(key): merge.sources.get(key, "default")
            for key in dict.fromkeys((*list_value_keys(), *merge.sources))
        },
        ignored=tuple(merge.ignored),
        files=(admin, places.config_file, *candidates, places.trusted_folders),
    )


def read_rules(file: Path) -> tuple[list[RuleSettings], list[ConfigError]]:
    """Return the rules of one file, and the errors of those that cannot be used.

    The first error elsewhere in the file is included.
    """
    text = read_source_text(file)
    values = parse_toml(text, file)
    policy = values.get("policy", {})
    given: Any = policy.get("rules", []) if is_object(policy) else []
    good: list[RuleSettings] = []
    wrong: list[ConfigError] = []
    for index, rule in enumerate(given if is_list(given) else []):
        # Each for itself and in its place, so that one mistake does not hide the next.
        others = [{"tool": "*", "decision": "deny"}] * index
        try:
            validate_values(
                {"policy": {"rules": [*others, rule]}}, where=lambda key: f"{file}:{find_key_line(key, text)}"
            )
        except ConfigError as exc:
            wrong.append(exc)
        else:
            good.append(RuleSettings.model_validate(add_rule_location(rule, file, index, None)))
    if not wrong:
        try:
            validate_values(values, where=lambda key: f"{file}:{find_key_line(key, text)}")
        except ConfigError as exc:
            wrong.append(exc)
    return good, wrong


def remove_rules(config: LoadedConfig) -> LoadedConfig:
    """Return a copy without policy rules, to look at the other settings."""
    policy = config.settings.policy.model_copy(update={"rules": ()})
    return replace(config, settings=config.settings.model_copy(update={"policy": policy}))


def list_project_files(folder: Path, *, home: Path) -> list[Path]:
    """Return where a project's file is looked for, nearest first.

    That is in `folder` and its parents, up to the root of a git repository or `home`. If neither is above it, only
    `folder` is searched, because others may be able to write to its parents (as in /tmp).
    """
    folder = folder.absolute()
    for depth, parent in enumerate((folder, *folder.parents), start=1):
        if (parent / ".git").exists() or parent == home:
            return [above / PROJECT_FILE for above in (folder, *folder.parents)[:depth]]
    return [folder / PROJECT_FILE]


def find_project_folder(folder: Path, *, environment: Mapping[str, str]) -> Path:
    """Return the directory of the project file that applies in `folder`, or `folder` itself if none exists."""
    candidates = list_project_files(folder, home=find_home_folder(environment))
    return next((file.parent for file in candidates if os.path.lexists(file)), folder)


def build_config_schema(
    *,
    plugins: Mapping[str, type[BaseModel]] | None = None,
    backends: Mapping[str, type[BaseModel]] | None = None,
    sandboxes: Mapping[str, type[BaseModel]] | None = None,
) -> dict[str, Any]:
    """Return a JSON Schema of the configuration file, for editors.

    It contains a table for the model of each of these plugins, backends and sandboxes.
    """
    from pydantic.json_schema import models_json_schema

    models = {("plugins", name): model for name, model in (plugins or {}).items()}
    models |= {("backends", name): model for name, model in (backends or {}).items()}
    models |= {("sandboxes", name): model for name, model in (sandboxes or {}).items()}
    all_models: list[type[BaseModel]] = [Settings, PluginSettings, RuleSettings, *models.values()]
    references, made = models_json_schema([(model, "validation") for model in dict.fromkeys(all_models)])
    definitions = cast("dict[str, Any]", made["$defs"])

    def name_of(model: type[BaseModel]) -> str:
        return references[model, "validation"]["$ref"].rpartition("/")[2]

    root = definitions.pop(name_of(Settings))
    for key in DERIVED_RULE_KEYS:
        del definitions[name_of(RuleSettings)]["properties"][key]
    section = definitions[name_of(PluginSettings)]
    section["additionalProperties"] = {"type": "object"}
    tables = {kind: root["properties"][kind].setdefault("properties", {}) for kind in NAMED_TABLES}
    tables["plugins"] = section["properties"]
    for (kind, name), model in models.items():
        tables[kind][name] = references[model, "validation"]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **root,
        "title": "handrail.toml",
        "$defs": definitions,
    }

"""Where settings come from: files, environment and flags, each value with its source.

default < /etc/handrail/config.toml < the user's config.toml < the project's handrail.toml < environment < flags. Later beats earlier, save
that for what guards (`mode`, `tools.disabled`, `plugins.disabled`, `plugins.require`, `policy.rules`, `audit.enabled`,
`serve.approvals`, most of `sandbox` and `limits`) the stricter value wins or all of them count.
A project file in a folder that nobody trusted may only tighten. Loading reads, and never writes.
"""

from __future__ import annotations

import os
import re
import shlex
import stat
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal, cast, get_origin

import platformdirs
from pydantic import BaseModel

from handrail.checking import SET_BY_PLACE, check, line_of
from handrail.errors import ConfigError
from handrail.judging import MODES, Mode
from handrail.places import MARK, Places, home_folder
from handrail.settings import NO_SANDBOXES, PluginSettings, RuleSettings, Settings
from handrail.trust import is_trusted
from handrail.words import nearest

PROJECT_FILE = "handrail.toml"
# The platform's own place for all users; on Linux `/etc` itself, where an administrator looks first.
ADMIN_FOLDER = (
    Path("/etc/handrail") if sys.platform == "linux" else platformdirs.site_config_path("handrail", appauthor=False)
)
ADMIN_FILE = ADMIN_FOLDER / "config.toml"
PREFIX = "HANDRAIL_"
SECRET = f"{PREFIX}SECRET_"
RESERVED = frozenset({"HANDRAIL_HOME", "HANDRAIL_CONFIG", "HANDRAIL_PLUGINS"})
MAX_BYTES = 1_000_000

Key = tuple[str, ...]
Kind = Literal["admin", "user", "project", "untrusted", "named", "environment", "flag"]

MODE: Key = ("mode",)
RULES: Key = ("policy", "rules")
OBSERVERS: Key = ("observers",)
TRUST: Key = ("security", "trust")
ALLOW_PRIVATE: Key = ("network", "allow_private")
PROXY: Key = ("network", "proxy")
# Of these lists, what all files say that set them.
COMMON: frozenset[Key] = frozenset({TRUST, ALLOW_PRIVATE})
KEYRING: Key = ("secrets", "keyring")
SECRETS: Key = ("secrets", "variables")
# What only the person's own files may set.
PERSONAL: frozenset[Key] = COMMON | {PROXY, KEYRING, SECRETS, ("audit", "keep_days"), ("audit", "keep_bytes")}
AUDIT: Key = ("audit", "enabled")
APPROVALS: Key = ("serve", "approvals")
# Tables with a table for each of what plugins register.
NAMED_TABLES = ("backends", "sandboxes")
DISABLED_TOOLS: Key = ("tools", "disabled")
USE: Key = ("sandbox", "use")
NETWORK: Key = ("sandbox", "network")
# The smaller of these wins, whoever says it.
CEILINGS: frozenset[Key] = frozenset(
    {
        *(("sandbox", name) for name in ("memory", "processes", "cpu_seconds", "file_size")),
        *(("limits", name) for name in ("seconds", "calls", "output_tokens")),
    }
)
UNIONS: frozenset[Key] = frozenset({DISABLED_TOOLS, ("plugins", "disabled"), ("plugins", "require"), RULES, OBSERVERS})


@dataclass(frozen=True, slots=True)
class Config:
    """The settings and where each came from.

    `sources`: dotted key to "default", the path of a file, "environment HANDRAIL_X" or "flag --x". `ignored`: a sentence for each thing that
    a source wanted and did not get. `files`: every file that was looked for, there or not; when one changes, load again.
    """

    settings: Settings
    sources: Mapping[str, str]
    ignored: tuple[str, ...]
    files: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class Layer:
    """What one source sets, by key."""

    kind: Kind
    source: str
    values: Mapping[Key, Any]


@dataclass(slots=True)
class _Merge:
    """Settings in the making."""

    values: dict[Key, Any] = field(default_factory=dict[Key, Any])
    sources: dict[Key, str] = field(default_factory=dict[Key, str])
    ignored: list[str] = field(default_factory=list[str])
    # What a file that nobody trusts set in vain.
    left: list[str] = field(default_factory=list[str])


def load(
    *,
    places: Places,
    folder: Path,
    environment: Mapping[str, str],
    flags: Mapping[str, Any] | None = None,
    file: Path | None = None,
    admin: Path = ADMIN_FILE,
) -> Config:
    """Every setting for a session that starts in `folder`.

    `flags` by dotted key; None is "not given". `file` (or HANDRAIL_CONFIG) stands in for the project's file and is trusted. Raises
    `ConfigError` naming source, line and key of the first thing that is wrong.
    """
    named = file or environment.get("HANDRAIL_CONFIG")
    candidates = (
        [folder.absolute() / Path(named).expanduser()]
        if named
        else project_files(folder, home=home_folder(environment))
    )
    merge = _Merge()
    layers = [
        *_admin(admin, merge.ignored),
        *_file(places.config_file, "user"),
        *_project(candidates, named=bool(named), places=places),
        *_environment(environment),
        *_flags(flags or {}),
    ]
    for layer in layers:
        _add(layer, merge, places=places)
    _decide_mode(layers, merge)
    if merge.left:
        merge.ignored.append(_left(merge.left, candidates))
    return Config(
        settings=_settings(merge.values),
        sources={".".join(key): merge.sources.get(key, "default") for key in (*leaves(), *_extra(merge.sources))},
        ignored=tuple(merge.ignored),
        files=(admin, places.config_file, *candidates, places.trusted_folders),
    )


def rules_of(file: Path) -> tuple[list[RuleSettings], list[ConfigError]]:
    """The rules of one file, and what is wrong with those that cannot be used; the first mistake elsewhere in it counts, too."""
    text = _read(file)
    values = _parse(text, file)
    policy = values.get("policy", {})
    given: Any = cast("dict[str, Any]", policy).get("rules", []) if isinstance(policy, dict) else []
    good: list[RuleSettings] = []
    wrong: list[ConfigError] = []
    for index, rule in enumerate(cast("list[Any]", given) if isinstance(given, list) else []):
        # Each for itself and in its place, so that one mistake does not hide the next.
        others = [{"tool": "*", "decision": "deny"}] * index
        try:
            check({"policy": {"rules": [*others, rule]}}, where=lambda key: f"{file}:{line_of(key, text)}")
        except ConfigError as exc:
            wrong.append(exc)
        else:
            good.append(RuleSettings.model_validate(_placed(rule, file, index, None)))
    if not wrong:
        try:
            check(values, where=lambda key: f"{file}:{line_of(key, text)}")
        except ConfigError as exc:
            wrong.append(exc)
    return good, wrong


def without_rules(config: Config) -> Config:
    """The same without policy rules, for a look at what is around them."""
    policy = config.settings.policy.model_copy(update={"rules": ()})
    return replace(config, settings=config.settings.model_copy(update={"policy": policy}))


def project_files(folder: Path, *, home: Path) -> list[Path]:
    """Where a project's file is looked for: in `folder` and its parents up to a git repository's root or `home`, nearest first.

    In the folder alone when neither is above it, since others may write to what is (as in /tmp).
    """
    folder = folder.absolute()
    for depth, parent in enumerate((folder, *folder.parents), start=1):
        if (parent / ".git").exists() or parent == home:
            return [above / PROJECT_FILE for above in (folder, *folder.parents)[:depth]]
    return [folder / PROJECT_FILE]


def project_folder(folder: Path, *, environment: Mapping[str, str]) -> Path:
    """The folder of the project's file that counts in `folder`; `folder` itself when there is none."""
    candidates = project_files(folder, home=home_folder(environment))
    return next((file.parent for file in candidates if os.path.lexists(file)), folder)


def schema(
    *,
    plugins: Mapping[str, type[BaseModel]] | None = None,
    backends: Mapping[str, type[BaseModel]] | None = None,
    sandboxes: Mapping[str, type[BaseModel]] | None = None,
) -> dict[str, Any]:
    """A JSON Schema of the configuration file, for editors; with a table for each of these plugins', backends' and sandboxes' own models."""
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
    for key in SET_BY_PLACE:
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


@cache
def leaves(model: type[BaseModel] = Settings, under: Key = ()) -> tuple[Key, ...]:
    """Every key of the configuration that holds a value, without the tables of plugins, backends, sandboxes and servers."""
    found: list[Key] = []
    for name, info in model.model_fields.items():
        annotation: Any = info.annotation
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            found += leaves(annotation, (*under, name))
        elif get_origin(annotation) is not dict:
            found.append((*under, name))
    return tuple(found)


@cache
def variables() -> Mapping[str, Key]:
    """The environment variables that set something, each with its key: HANDRAIL_TOOLS_PROFILE for `tools.profile`."""
    return {
        PREFIX + "_".join(key).upper(): key for key in leaves() if key not in (RULES, OBSERVERS) and key not in PERSONAL
    }


# --- one layer each ------------------------------------------------------------------------------------------------------------------------


def _admin(file: Path, ignored: list[str]) -> Iterator[Layer]:
    try:
        real = file.resolve(strict=True)
        safe = all(_only_root_writes(path) for path in (real, *real.parents))
    except OSError:
        return
    if safe:
        yield from _file(file, "admin")
    else:
        ignored.append(
            f"{file} is ignored: it and the folders above it must belong to root and be writable by nobody else"
        )


def _only_root_writes(path: Path) -> bool:
    found = path.stat()
    # In a sticky folder others can add files, and change none that is not theirs.
    sticky = stat.S_ISDIR(found.st_mode) and found.st_mode & stat.S_ISVTX
    return found.st_uid == 0 and (bool(sticky) or not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH))


def _project(candidates: Sequence[Path], *, named: bool, places: Places) -> Iterator[Layer]:
    if named:
        if not candidates[0].exists():
            raise ConfigError(
                f"there is no configuration file {str(candidates[0])!r}", hint="see --config and HANDRAIL_CONFIG"
            )
        yield from _file(candidates[0], "named")
        return
    for file in candidates:
        if os.path.lexists(file):
            yield from _file(file, "project" if is_trusted(file.parent, places=places) else "untrusted")
            return


def _file(file: Path, kind: Kind) -> Iterator[Layer]:
    if not os.path.lexists(file):
        return
    text = _read(file)
    values = _parse(text, file)
    check(values, where=lambda key: f"{file}:{line_of(key, text)}")
    flat = dict(_flatten(values))
    if kind in ("project", "untrusted") and ("workspace",) in flat:
        flat["workspace",] = [str(file.parent / Path(root).expanduser()) for root in flat["workspace",]]
    if RULES in flat:
        start = file.parent if kind in ("project", "untrusted") else None
        flat[RULES] = [_placed(rule, file, index, start) for index, rule in enumerate(flat[RULES])]
    if OBSERVERS in flat:
        flat[OBSERVERS] = [{**observer, "command": _program(observer["command"], file)} for observer in flat[OBSERVERS]]
    yield Layer(kind, str(file), flat)


def _program(command: Sequence[str], file: Path) -> list[str]:
    """A command whose program, where it is named by a path, is found from the folder of the file that names it."""
    program, *arguments = command
    named = "/" in program or os.sep in program or program.startswith("~")
    return [str(file.parent.absolute() / Path(program).expanduser()) if named else program, *arguments]


def _placed(rule: dict[str, Any], file: Path, index: int, start: Path | None) -> dict[str, Any]:
    """A rule with where it stands; the paths in it that are relative begin at `start`, if there is one."""
    placed = {**rule, "source": str(file), "index": index}
    if start is not None and "paths" in rule:
        given = [rule["paths"]] if isinstance(rule["paths"], str) else rule["paths"]
        placed["paths"] = [path if path.startswith("~") else str(start / path) for path in given]
    return placed


def _read(file: Path) -> str:
    try:
        found = file.stat()
        if not stat.S_ISREG(found.st_mode) or found.st_size > MAX_BYTES:
            raise ConfigError(f"{file} is not a file of at most {MAX_BYTES:,} bytes")
        # Editors on Windows put a mark first.
        return file.read_bytes().decode("utf-8-sig")
    except OSError as exc:
        raise ConfigError(f"{file} cannot be read: {exc.strerror}") from exc
    except UnicodeDecodeError as exc:
        line = exc.object[: exc.start].count(b"\n") + 1
        raise ConfigError(f"{file}:{line}: this is not UTF-8 text") from exc


def _parse(text: str, file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as exc:
        at = re.search(r"\(at line (\d+), column (\d+)\)", str(exc))
        line = at[1] if at else len(text.splitlines()) or 1
        said = re.sub(r"\s*\(at [^)]*\)$", "", str(exc))
        raise ConfigError(f"{file}:{line}: this is not TOML: {said}") from exc
    except RecursionError as exc:
        raise ConfigError(f"{file}: it is nested too deep") from exc


def _environment(environment: Mapping[str, str]) -> Iterator[Layer]:
    known = variables()
    for variable in sorted(environment):
        if not variable.startswith(PREFIX) or variable in RESERVED or variable.startswith((MARK, SECRET)):
            continue
        key = known.get(variable)
        if key is None:
            raise _unknown_variable(variable)
        if text := environment[variable].strip():
            value = [word.strip() for word in text.split(",") if word.strip()] if _is_list(key) else text
            check(_nested({key: value}), where=lambda _, variable=variable: f"environment {variable}")
            yield Layer("environment", f"environment {variable}", {key: value})


def _unknown_variable(variable: str) -> ConfigError:
    for key in PERSONAL:
        if variable == PREFIX + "_".join(key).upper():
            hint = f"{'.'.join(key)} is set in the user's config.toml only"
            return ConfigError(f"{variable} does not count", hint=hint)
    known = (*variables(), *RESERVED)
    return ConfigError(
        f"unknown environment variable {variable!r}{nearest(variable, known)}",
        hint=f"unset it; {MARK}… is free for your own use",
    )


def _flags(flags: Mapping[str, Any]) -> Iterator[Layer]:
    for dotted, value in flags.items():
        if value is not None:
            key = tuple(dotted.split("."))
            name = f"--{dotted.replace('.', '-').replace('_', '-')}"
            plain = list(cast("tuple[Any, ...]", value)) if isinstance(value, tuple) else value
            check(_nested({key: plain}), where=lambda _, name=name: name)
            yield from (Layer("flag", f"flag {name}", {part: item}) for part, item in _flatten(_nested({key: plain})))


# --- merging -------------------------------------------------------------------------------------------------------------------------------


def _add(layer: Layer, merge: _Merge, *, places: Places) -> None:
    """Lay one source over those before it; `mode` is decided when all are known."""
    for key, value in layer.values.items():
        if key == MODE:
            continue
        if (key in PERSONAL or key[:-1] in PERSONAL) and layer.kind not in ("admin", "user", "named"):
            merge.ignored.append(
                f"{'.'.join(key)} in {layer.source} is ignored: only {places.config_file} or a file named by --config may set it"
            )
        elif layer.kind == "untrusted":
            _tighten(key, value, layer, merge)
        elif key in UNIONS:
            _unite(key, _tiered(key, value, layer), layer, merge)
        elif key in COMMON and key in merge.values:
            merge.values[key] = [name for name in merge.values[key] if name in value]
            merge.sources[key] += f", {layer.source}"
        elif not _looser(key, value, merge.values.get(key)):
            merge.values[key], merge.sources[key] = value, layer.source


def _tighten(key: Key, value: Any, layer: Layer, merge: _Merge) -> None:
    """Take of a file that nobody trusts what forbids, and say what was left."""
    if key == DISABLED_TOOLS:
        _unite(key, value, layer, merge)
    elif (
        (key == AUDIT and value is True)
        or (key == APPROVALS and value == "local")
        or (key == USE and NO_SANDBOXES in value)
        or (key in (NETWORK, *CEILINGS) and not _looser(key, value, merge.values.get(key, _typed(key, None))))
    ):
        merge.values[key], merge.sources[key] = value, layer.source
    elif key == RULES:
        rules = cast("list[dict[str, Any]]", value)
        strict: list[dict[str, Any]] = [{**rule, "lifts": []} for rule in rules if rule["decision"] != "allow"]
        _unite(key, _tiered(key, strict, layer), layer, merge)
        if any(rule["decision"] == "allow" or rule.get("lifts") for rule in rules):
            merge.left.append("what policy.rules allow")
    else:
        merge.left.append(".".join(key))


def _looser(key: Key, value: Any, held: Any) -> bool:
    """Whether a value guards less than the one that was set before it; False for what does not guard."""
    if held is None:
        return False
    if key == AUDIT:
        return held is True and _is_off(value)
    if key == APPROVALS:
        return held == "local" and value != "local"
    if key == USE:
        return NO_SANDBOXES in held and NO_SANDBOXES not in value
    if key == NETWORK:
        return not _typed(key, held) and bool(_typed(key, value))
    return key in CEILINGS and _typed(key, value) > _typed(key, held)


def _typed(key: Key, value: Any) -> Any:
    """The value of a key as the settings have it; None: the default."""
    found: Any = Settings.model_validate({} if value is None else _nested({key: value}))
    for part in key:
        found = getattr(found, part)
    return found


def _left(what: Sequence[str], candidates: Sequence[Path]) -> str:
    file = next(file for file in candidates if os.path.lexists(file))
    return (
        f"{file} is in a folder that is not trusted, so these are ignored: {', '.join(what)}; "
        f"read the file, then run: handrail trust {shlex.quote(str(file.parent))}"
    )


def _unite(key: Key, value: Sequence[Any], layer: Layer, merge: _Merge) -> None:
    if value:
        before: list[Any] = merge.values.get(key, [])
        merge.values[key] = [*before, *(item for item in value if item not in before)]
        merge.sources[key] = ", ".join(filter(None, (merge.sources.get(key), layer.source)))


def _tiered(key: Key, value: Sequence[Any], layer: Layer) -> Sequence[Any]:
    """Rules with the tier of where they stand."""
    if key != RULES:
        return value
    tier = {"admin": "admin", "project": "workspace", "untrusted": "workspace"}.get(layer.kind, "user")
    return [{**rule, "tier": tier, "tightening": layer.kind == "untrusted"} for rule in value]


def _decide_mode(layers: Sequence[Layer], merge: _Merge) -> None:
    """The strictest mode that was set. One that an untrusted file sets counts when it is stricter than what holds without it."""
    wanted = [(Mode(layer.values[MODE]), layer) for layer in layers if MODE in layer.values]
    for mode, layer in sorted(wanted, key=lambda each: each[1].kind == "untrusted"):
        held = merge.values.get(MODE)
        stricter = MODES.index(mode) > MODES.index(held if held is not None else Mode.DEFAULT)
        if stricter or (held is None and layer.kind != "untrusted"):
            merge.values[MODE], merge.sources[MODE] = mode, layer.source
    held = merge.values.get(MODE, Mode.DEFAULT)
    for mode, layer in wanted:
        if mode is held:
            continue
        if layer.kind == "untrusted":
            merge.left.append(f"mode {mode}")
        elif layer.kind in ("environment", "flag"):
            merge.ignored.append(f"mode {mode} ({layer.source}) is ignored: {held} ({merge.sources[MODE]}) is stricter")


def _settings(values: Mapping[Key, Any]) -> Settings:
    return Settings.model_validate(_nested(values))


def _extra(sources: Mapping[Key, str]) -> Iterator[Key]:
    return (key for key in sources if key not in leaves())


# --- shape ---------------------------------------------------------------------------------------------------------------------------------


def _flatten(values: Mapping[str, Any], under: Key = ()) -> Iterator[tuple[Key, Any]]:
    """Values by key; a table with a name of its own, as `[plugins.NAME]` or `[mcp.servers.NAME]`, is one value."""
    for name, value in values.items():
        key = (*under, name)
        if isinstance(value, dict) and len(key) < 3:
            yield from _flatten(cast("dict[str, Any]", value), key)
        else:
            yield key, value


def _nested(values: Mapping[Key, Any]) -> dict[str, Any]:
    root: dict[str, Any] = {}
    for key, value in values.items():
        table = root
        for part in key[:-1]:
            table = table.setdefault(part, {})
        table[key[-1]] = value
    return root


def _is_list(key: Key) -> bool:
    model: Any = Settings
    for part in key[:-1]:
        model = model.model_fields[part].annotation
    return str(model.model_fields[key[-1]].annotation).startswith("tuple[")


def _is_off(value: Any) -> bool:
    return not Settings.model_validate({"audit": {"enabled": value}}).audit.enabled

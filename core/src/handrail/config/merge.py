"""Merging of settings layers: later beats earlier; for settings that guard, the stricter value wins from any source."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from handrail.api.verdict import MODES, Mode
from handrail.config.layers import (
    INTERSECTED_KEYS,
    MODE_KEY,
    OBSERVERS_KEY,
    RULES_KEY,
    USER_ONLY_KEYS,
    ConfigKey,
    ConfigLayer,
    nest_values,
)
from handrail.config.settings import NO_SANDBOXES, Settings
from handrail.fs.app_dirs import AppDirs

AUDIT_KEY: ConfigKey = ("audit", "enabled")
APPROVALS_KEY: ConfigKey = ("serve", "approvals")
DISABLED_TOOLS_KEY: ConfigKey = ("tools", "disabled")
SANDBOX_USE_KEY: ConfigKey = ("sandbox", "use")
SANDBOX_NETWORK_KEY: ConfigKey = ("sandbox", "network")
# The smaller of these wins, whoever says it.
CEILING_KEYS: frozenset[ConfigKey] = frozenset(
    {
        *(("sandbox", name) for name in ("memory", "processes", "cpu_seconds", "file_size")),
        *(("limits", name) for name in ("seconds", "calls", "output_tokens")),
    }
)
UNION_KEYS: frozenset[ConfigKey] = frozenset(
    {DISABLED_TOOLS_KEY, ("plugins", "disabled"), ("plugins", "require"), RULES_KEY, OBSERVERS_KEY}
)


@dataclass(slots=True)
class MergedSettings:
    """Settings in the making."""

    values: dict[ConfigKey, Any] = field(default_factory=dict[ConfigKey, Any])
    sources: dict[ConfigKey, str] = field(default_factory=dict[ConfigKey, str])
    ignored: list[str] = field(default_factory=list[str])
    # What a file that nobody trusts set in vain.
    left: list[str] = field(default_factory=list[str])


def merge_layer(layer: ConfigLayer, merge: MergedSettings, *, places: AppDirs) -> None:
    """Lay one source over those before it; `mode` is decided when all are known."""
    for key, value in layer.values.items():
        if key == MODE_KEY:
            continue
        if (key in USER_ONLY_KEYS or key[:-1] in USER_ONLY_KEYS) and layer.kind not in ("admin", "user", "named"):
            merge.ignored.append(
                f"{'.'.join(key)} in {layer.source} is ignored: only {places.config_file} or a file named by --config may set it"
            )
        elif layer.kind == "untrusted":
            _merge_untrusted(key, value, layer, merge)
        elif key in UNION_KEYS:
            _merge_union(key, _add_rule_tiers(key, value, layer), layer, merge)
        elif key in INTERSECTED_KEYS and key in merge.values:
            merge.values[key] = [name for name in merge.values[key] if name in value]
            merge.sources[key] += f", {layer.source}"
        elif not _is_looser(key, value, merge.values.get(key)):
            merge.values[key], merge.sources[key] = value, layer.source


def _merge_untrusted(key: ConfigKey, value: Any, layer: ConfigLayer, merge: MergedSettings) -> None:
    """Take over from an untrusted file what forbids something, and record what was ignored."""
    if key == DISABLED_TOOLS_KEY:
        _merge_union(key, value, layer, merge)
    elif (
        (key == AUDIT_KEY and value is True)
        or (key == APPROVALS_KEY and value == "local")
        or (key == SANDBOX_USE_KEY and NO_SANDBOXES in value)
        or (
            key in (SANDBOX_NETWORK_KEY, *CEILING_KEYS)
            and not _is_looser(key, value, merge.values.get(key, _parse_value(key, None)))
        )
    ):
        merge.values[key], merge.sources[key] = value, layer.source
    elif key == RULES_KEY:
        rules = cast("list[dict[str, Any]]", value)
        strict: list[dict[str, Any]] = [{**rule, "lifts": []} for rule in rules if rule["decision"] != "allow"]
        _merge_union(key, _add_rule_tiers(key, strict, layer), layer, merge)
        if any(rule["decision"] == "allow" or rule.get("lifts") for rule in rules):
            merge.left.append("what policy.rules allow")
    else:
        merge.left.append(".".join(key))


def _is_looser(key: ConfigKey, value: Any, held: Any) -> bool:
    """Return True if a value guards less than the one set before it; False for settings that do not guard."""
    if held is None:
        return False
    if key == AUDIT_KEY:
        return held is True and _is_audit_off(value)
    if key == APPROVALS_KEY:
        return held == "local" and value != "local"
    if key == SANDBOX_USE_KEY:
        return NO_SANDBOXES in held and NO_SANDBOXES not in value
    if key == SANDBOX_NETWORK_KEY:
        return not _parse_value(key, held) and bool(_parse_value(key, value))
    return key in CEILING_KEYS and _parse_value(key, value) > _parse_value(key, held)


def _parse_value(key: ConfigKey, value: Any) -> Any:
    """Return the value of a key as the settings parse it; None gives the default."""
    found: Any = Settings.model_validate({} if value is None else nest_values({key: value}))
    for part in key:
        found = getattr(found, part)
    return found


def describe_ignored(what: Sequence[str], file: Path, *, changed: bool) -> str:
    """Return the sentence that reports what such a file set in vain.

    `changed`: the directory is trusted, but with other content of the file.
    """
    why = "is not as it was when its folder was trusted" if changed else "is in a folder that is not trusted"
    return (
        f"{file} {why}, so these are ignored: {', '.join(what)}; "
        f"read the file, then run: handrail trust {shlex.quote(str(file.parent))}"
    )


def _merge_union(key: ConfigKey, value: Sequence[Any], layer: ConfigLayer, merge: MergedSettings) -> None:
    if value:
        before: list[Any] = merge.values.get(key, [])
        merge.values[key] = [*before, *(item for item in value if item not in before)]
        merge.sources[key] = ", ".join(filter(None, (merge.sources.get(key), layer.source)))


def _add_rule_tiers(key: ConfigKey, value: Sequence[Any], layer: ConfigLayer) -> Sequence[Any]:
    """Return rules with the tier of the layer they come from."""
    if key != RULES_KEY:
        return value
    tier = {"admin": "admin", "project": "workspace", "untrusted": "workspace"}.get(layer.kind, "user")
    return [{**rule, "tier": tier, "tightening": layer.kind == "untrusted"} for rule in value]


def decide_mode(layers: Sequence[ConfigLayer], merge: MergedSettings) -> None:
    """Set the strictest mode of all layers.

    A mode from an untrusted file counts if it is stricter than the mode that applies without it.
    """
    wanted = [(Mode(layer.values[MODE_KEY]), layer) for layer in layers if MODE_KEY in layer.values]
    for mode, layer in sorted(wanted, key=lambda each: each[1].kind == "untrusted"):
        held = merge.values.get(MODE_KEY)
        stricter = MODES.index(mode) > MODES.index(held if held is not None else Mode.DEFAULT)
        if stricter or (held is None and layer.kind != "untrusted"):
            merge.values[MODE_KEY], merge.sources[MODE_KEY] = mode, layer.source
    held = merge.values.get(MODE_KEY, Mode.DEFAULT)
    for mode, layer in wanted:
        if mode is held:
            continue
        if layer.kind == "untrusted":
            merge.left.append(f"mode {mode}")
        elif layer.kind in ("environment", "flag"):
            merge.ignored.append(
                f"mode {mode} ({layer.source}) is ignored: {held} ({merge.sources[MODE_KEY]}) is stricter"
            )


def _is_audit_off(value: Any) -> bool:
    return not Settings.model_validate({"audit": {"enabled": value}}).audit.enabled

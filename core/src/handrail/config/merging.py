"""How the layers of settings become one: later beats earlier, and of what guards the stricter value wins, whoever says it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from handrail.config.layers import COMMON, MODE, OBSERVERS, PERSONAL, RULES, Key, Layer, nested
from handrail.config.places import Places
from handrail.config.settings import NO_SANDBOXES, Settings
from handrail.judging.verdicts import MODES, Mode

AUDIT: Key = ("audit", "enabled")
APPROVALS: Key = ("serve", "approvals")
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


@dataclass(slots=True)
class Merge:
    """Settings in the making."""

    values: dict[Key, Any] = field(default_factory=dict[Key, Any])
    sources: dict[Key, str] = field(default_factory=dict[Key, str])
    ignored: list[str] = field(default_factory=list[str])
    # What a file that nobody trusts set in vain.
    left: list[str] = field(default_factory=list[str])


def add(layer: Layer, merge: Merge, *, places: Places) -> None:
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


def _tighten(key: Key, value: Any, layer: Layer, merge: Merge) -> None:
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
    found: Any = Settings.model_validate({} if value is None else nested({key: value}))
    for part in key:
        found = getattr(found, part)
    return found


def left_out(what: Sequence[str], file: Path, *, changed: bool) -> str:
    """The sentence for what such a file set in vain. `changed`: its folder is trusted, with another content of it."""
    why = "is not as it was when its folder was trusted" if changed else "is in a folder that is not trusted"
    return (
        f"{file} {why}, so these are ignored: {', '.join(what)}; "
        f"read the file, then run: handrail trust {shlex.quote(str(file.parent))}"
    )


def _unite(key: Key, value: Sequence[Any], layer: Layer, merge: Merge) -> None:
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


def decide_mode(layers: Sequence[Layer], merge: Merge) -> None:
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


def _is_off(value: Any) -> bool:
    return not Settings.model_validate({"audit": {"enabled": value}}).audit.enabled

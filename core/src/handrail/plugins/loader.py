"""Loading of plugins: one at a time, each completely or not at all, with the reason for each that is not loaded."""

from __future__ import annotations

import importlib.metadata
import logging
import operator
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, Literal, Protocol

import pluggy

from handrail.errors import PluginError
from handrail.plugins import hookspecs
from handrail.plugins.known_plugins import format_install_hint
from handrail.text import format_suggestion

__all__ = ["load_plugins_from_environment"]

log = logging.getLogger(__name__)

ENTRY_POINT_GROUP = "handrail"
CORE_DISTRIBUTION = "handrail-core"
# The distribution and the version of what does not say.
UNKNOWN_VALUE = "?"
PluginState = Literal["loaded", "disabled", "failed"]

RELEASE_PATTERN = re.compile(r"\d+(?:\.\d+)*")
# A requirement of core: its versions, and the condition under which it counts.
CORE_REQUIREMENT = re.compile(
    r"handrail[-_.]core\s*(?:\[[^\]]*\])?\s*(?P<ranges>[(<>=!~][^;]*)?(?:;(?P<marker>.*))?", re.IGNORECASE | re.DOTALL
)
VERSION_BOUND = re.compile(rf"(>=|<=|>|<)\s*({RELEASE_PATTERN.pattern})")
VERSION_COMPARISONS: Mapping[str, Callable[[tuple[int, ...], tuple[int, ...]], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}


class PluginEntryPoint(Protocol):
    """Entry point of a plugin.

    Its `load`, called by `load_plugins`, returns the plugin's module, or any object with its hooks.
    """

    def load(self) -> Any: ...


@dataclass(frozen=True, slots=True)
class FoundPlugin:
    """A plugin: its entry point, and the distribution it comes from."""

    name: str
    entry_point: PluginEntryPoint
    distribution: str
    version: str
    requires: tuple[str, ...] = ()


@dataclass(slots=True)
class PluginRecord:
    """Outcome for one plugin.

    `reason` says why it is not loaded; `seconds` is the duration of its import.
    """

    name: str
    distribution: str
    version: str
    state: PluginState
    reason: str = ""
    seconds: float = 0.0
    hooks: tuple[str, ...] = ()
    tools: list[str] = field(default_factory=list[str])
    backends: list[str] = field(default_factory=list[str])
    sandboxes: list[str] = field(default_factory=list[str])


@dataclass(slots=True)
class PluginSet:
    """All installed plugins and the hooks of those that loaded, in the order of their names."""

    manager: pluggy.PluginManager
    listed: list[PluginRecord]

    @property
    def loaded(self) -> list[PluginRecord]:
        return [plugin for plugin in self.listed if plugin.state == "loaded"]

    def get(self, name: str) -> PluginRecord | None:
        return next((plugin for plugin in self.listed if plugin.name == name), None)

    def call(self, plugin: str, hook: str) -> Any:
        """Return one plugin's answer to a registration hook, or None if it does not implement it.

        Raises `PluginError` if its code fails.
        """
        caller = self.manager.subset_hook_caller(hook, [m for n, m in self.manager.list_name_plugin() if n != plugin])
        try:
            answers = caller()
        # Hook implementations are plugin code.
        except Exception as exc:
            log.debug("plugin %s failed in %s", plugin, hook, exc_info=True)
            raise PluginError(f"{hook} failed: {type(exc).__name__}: {exc}") from exc
        return answers[0] if answers else None

    def answers(self, plugin: str, hook: str, *, fits: Callable[[Any], bool]) -> list[Any]:
        """Everything one plugin registers by a hook. Raises `PluginError` for what does not fit, and when its code fails."""
        given = self.call(plugin, hook)
        try:
            items: list[Any] = list(given or ())
        # What is given may be a generator: plugin code, too.
        except Exception as exc:
            raise PluginError(f"{hook} failed: {type(exc).__name__}: {exc}") from exc
        for item in items:
            if not fits(item):
                kind = f"the class {item.__name__}" if isinstance(item, type) else f"a {type(item).__name__}"
                raise PluginError(f"{hook} gave {kind}", hint="its return type says what it takes")
        return items

    def warn(self) -> None:
        """Say of each that failed why it did: what it judges is not judged, and nothing else tells."""
        for plugin in self.listed:
            if plugin.state == "failed":
                log.warning("plugin %r did not load: %s", plugin.name, plugin.reason)

    def fail(self, name: str, reason: str) -> None:
        """Remove a plugin completely, because of `reason`."""
        for plugin in self.listed:
            if plugin.name == name and plugin.state == "loaded":
                plugin.state, plugin.reason = "failed", reason
                plugin.tools, plugin.backends, plugin.sandboxes = [], [], []
        if self.manager.has_plugin(name):
            self.manager.unregister(name=name)


def find_installed_plugins() -> list[FoundPlugin]:
    """Return the installed plugins by their entry points, sorted by name."""
    found = [_read_entry_point(point) for point in importlib.metadata.entry_points(group=ENTRY_POINT_GROUP)]
    return sorted(found, key=lambda plugin: (plugin.name, plugin.distribution))


def _read_entry_point(point: importlib.metadata.EntryPoint) -> FoundPlugin:
    if point.dist is None:
        return FoundPlugin(point.name, point, UNKNOWN_VALUE, UNKNOWN_VALUE)
    # Parsed whenever it is asked for, with the whole README in it: once is enough.
    told = point.dist.metadata
    return FoundPlugin(point.name, point, told["Name"], told["Version"], tuple(told.get_all("Requires-Dist") or ()))


def load_plugins(
    found: Iterable[FoundPlugin] | None = None,
    *,
    only: Collection[str] | None = None,
    disabled: Collection[str] = (),
    require: Sequence[str] = (),
) -> PluginSet:
    """Load what is installed, or just `only` those, except the disabled.

    Raises `PluginError` when a required plugin is not loaded; every other failure is kept in the list.
    """
    manager = pluggy.PluginManager(ENTRY_POINT_GROUP)
    manager.add_hookspecs(hookspecs)
    plugins = PluginSet(manager, [])
    candidates = find_installed_plugins() if found is None else list(found)
    for candidate in candidates:
        plugins.listed.append(_load_plugin(candidate, plugins, only=only, disabled=disabled))
    for name in sorted(set(only or ()) - {candidate.name for candidate in candidates}):
        near = format_suggestion(name, {candidate.name for candidate in candidates})
        reason = f"it is named (HANDRAIL_PLUGINS), and not installed{near}"
        plugins.listed.append(PluginRecord(name, UNKNOWN_VALUE, UNKNOWN_VALUE, "failed", reason))
    check_required_plugins(plugins, require)
    return plugins


def load_plugins_from_environment(environment: Mapping[str, str], *, disabled: Collection[str]) -> PluginSet:
    """Load what is installed, or just what HANDRAIL_PLUGINS names in this environment, except the disabled."""
    named = environment.get("HANDRAIL_PLUGINS")
    only = None if named is None else {name.strip() for name in named.split(",") if name.strip()}
    return load_plugins(only=only, disabled=disabled)


def check_required_plugins(plugins: PluginSet, require: Sequence[str], *, by: str = "`require` in [plugins]") -> None:
    """Raise `PluginError` for the first required plugin that is not loaded; `by` is what requires it."""
    for name in require:
        plugin = plugins.get(name)
        if plugin is None or plugin.state != "loaded":
            reason = plugin.reason or plugin.state if plugin else "it is not installed"
            cure = "mend it (`handrail plugins` shows all)" if plugin else format_install_hint(name)
            raise PluginError(
                f"the plugin {name!r} is required and did not load: {reason}", hint=f"{cure}, or take it out of {by}"
            )


def _load_plugin(
    found: FoundPlugin, plugins: PluginSet, *, only: Collection[str] | None, disabled: Collection[str]
) -> PluginRecord:
    plugin = PluginRecord(found.name, found.distribution, found.version, "disabled")
    if only is not None and found.name not in only:
        plugin.reason = "not named by HANDRAIL_PLUGINS"
    elif found.name in disabled:
        plugin.reason = "disabled in the configuration"
    else:
        _register_plugin(found, plugin, plugins)
    return plugin


def _register_plugin(found: FoundPlugin, plugin: PluginRecord, plugins: PluginSet) -> None:
    started = perf_counter()
    plugin.state = "failed"
    if (other := plugins.get(found.name)) is not None:
        plugin.reason = f"its name is taken by {other.distribution}"
        return
    if wrong := _find_core_mismatch(found):
        plugin.reason = wrong
        return
    try:
        module = found.entry_point.load()
        plugins.manager.register(module, name=found.name)
        plugin.hooks = _list_hooks(plugins.manager, module)
    # Importing a plugin runs its code; nothing it does may keep the others from working.
    except BaseException as exc:
        if isinstance(exc, KeyboardInterrupt):
            raise
        log.debug("plugin %s did not load", found.name, exc_info=True)
        plugin.reason = f"{type(exc).__name__}: {exc}"
        if plugins.manager.has_plugin(found.name):
            plugins.manager.unregister(name=found.name)
        return
    finally:
        plugin.seconds = perf_counter() - started
    plugin.state = "loaded"


def _list_hooks(manager: pluggy.PluginManager, module: Any) -> tuple[str, ...]:
    """Return the hooks that a plugin implements.

    Raises `PluginError` for a hook that does not exist, naming the nearest that does.
    """
    specs = {name for name in dir(hookspecs) if name.startswith("handrail_register_")}
    callers = manager.get_hookcallers(module) or []
    implemented = [caller.name for caller in callers]
    unmarked = [name for name in dir(module) if name.startswith("handrail_") and callable(getattr(module, name))]
    for name in [*implemented, *unmarked]:
        if name not in specs:
            raise PluginError(f"there is no hook {name!r}{format_suggestion(name, specs)}")
        if name not in implemented:
            raise PluginError(f"{name!r} is not marked with @hookimpl")
    if not implemented:
        raise PluginError("it implements no hook")
    return tuple(sorted(implemented))


def _find_core_mismatch(found: FoundPlugin) -> str | None:
    """Return why a plugin does not fit this version of the core; None if it fits or does not say."""
    for requirement in found.requires:
        match = CORE_REQUIREMENT.fullmatch(requirement.strip())
        if (
            match is None
            or not (ranges := (match["ranges"] or "").strip(" ()"))
            or not _is_marker_true(requirement, match["marker"])
        ):
            continue
        version = importlib.metadata.version(CORE_DISTRIBUTION)
        try:
            fits = _is_version_in_ranges(version, ranges)
        except ValueError:
            return f"its requirement {requirement!r} cannot be read"
        if not fits:
            return f"it needs handrail-core{ranges}, and this is {_describe_core_version(version)}"
    return None


def _describe_core_version(version: str) -> str:
    """Return the version of the core.

    If several are installed, for example because an old one was not removed, all of them and their locations are
    listed.
    """
    copies = {
        found.version: str(found.locate_file("")) for found in importlib.metadata.distributions(name=CORE_DISTRIBUTION)
    }
    if len(copies) < 2:
        return f"{version}; install versions that fit each other"
    told = " and ".join(f"{copy} in {folder!r}" for copy, folder in sorted(copies.items()))
    return f"{version}, since there are two: {told}; remove one"


def _is_marker_true(requirement: str, marker: str | None) -> bool:
    """Return True if a requirement applies here, judging by a marker such as `; python_version < "3"`."""
    if marker is None:
        return True
    from packaging.markers import InvalidMarker, Marker

    try:
        return Marker(marker).evaluate({"extra": ""})
    except InvalidMarker:
        log.warning("the marker of the requirement %r cannot be read; it is taken to hold", requirement)
        return True


def _is_version_in_ranges(version: str, ranges: str) -> bool:
    bounds = [VERSION_BOUND.fullmatch(part.strip()) for part in ranges.split(",")]
    # Plain numbers, as nearly every plugin has them, are compared here: `packaging` takes a tenth of a start to import.
    if RELEASE_PATTERN.fullmatch(version) and None not in bounds:
        return all(
            VERSION_COMPARISONS[bound[1]](_parse_release(version), _parse_release(bound[2]))
            for bound in bounds
            if bound
        )
    from packaging.specifiers import SpecifierSet

    return SpecifierSet(ranges).contains(version, prereleases=True)


def _parse_release(version: str) -> tuple[int, ...]:
    """Return the numbers of a version without trailing zeros: 0.1 and 0.1.0 are the same."""
    numbers = [int(number) for number in version.split(".")]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)

"""Loading plugins: one at a time, each whole or not at all, with the reason where it is not."""

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

from handrail import hookspecs
from handrail.errors import PluginError
from handrail.plugins.supplied import install
from handrail.words import nearest

log = logging.getLogger(__name__)

GROUP = "handrail"
DISTRIBUTION = "handrail-core"
# The distribution and the version of what does not say.
UNKNOWN = "?"
State = Literal["loaded", "disabled", "failed"]

RELEASE = re.compile(r"\d+(?:\.\d+)*")
# A requirement of core: its versions, and the condition under which it counts.
CORE_REQUIREMENT = re.compile(
    r"handrail[-_.]core\s*(?:\[[^\]]*\])?\s*(?P<ranges>[(<>=!~][^;]*)?(?:;(?P<marker>.*))?", re.IGNORECASE | re.DOTALL
)
BOUND = re.compile(rf"(>=|<=|>|<)\s*({RELEASE.pattern})")
COMPARE: Mapping[str, Callable[[tuple[int, ...], tuple[int, ...]], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}


class Loads(Protocol):
    """What an entry point does: `load` gives the plugin's module, or any object with its hooks."""

    def load(self) -> Any: ...


@dataclass(frozen=True, slots=True)
class Found:
    """A plugin: its entry point, and the distribution it comes from."""

    name: str
    entry_point: Loads
    distribution: str
    version: str
    requires: tuple[str, ...] = ()


@dataclass(slots=True)
class Plugin:
    """What became of one plugin. `reason` says why it is not loaded; `seconds` is what its import took."""

    name: str
    distribution: str
    version: str
    state: State
    reason: str = ""
    seconds: float = 0.0
    hooks: tuple[str, ...] = ()
    tools: list[str] = field(default_factory=list[str])
    backends: list[str] = field(default_factory=list[str])
    sandboxes: list[str] = field(default_factory=list[str])


@dataclass(slots=True)
class Plugins:
    """All installed plugins and the hooks of those that loaded, in the order of their names."""

    manager: pluggy.PluginManager
    listed: list[Plugin]

    @property
    def loaded(self) -> list[Plugin]:
        return [plugin for plugin in self.listed if plugin.state == "loaded"]

    def get(self, name: str) -> Plugin | None:
        return next((plugin for plugin in self.listed if plugin.name == name), None)

    def call(self, plugin: str, hook: str) -> Any:
        """What one plugin answers to one registration hook; None when it does not implement it.

        Raises `PluginError` when its code fails.
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
        """Take a plugin out again, whole, because of `reason`."""
        for plugin in self.listed:
            if plugin.name == name and plugin.state == "loaded":
                plugin.state, plugin.reason = "failed", reason
                plugin.tools, plugin.backends, plugin.sandboxes = [], [], []
        if self.manager.has_plugin(name):
            self.manager.unregister(name=name)


def installed() -> list[Found]:
    """The plugins of this environment by their entry points, in the order of their names."""
    found = [_found(point) for point in importlib.metadata.entry_points(group=GROUP)]
    return sorted(found, key=lambda plugin: (plugin.name, plugin.distribution))


def _found(point: importlib.metadata.EntryPoint) -> Found:
    if point.dist is None:
        return Found(point.name, point, UNKNOWN, UNKNOWN)
    # Parsed whenever it is asked for, with the whole README in it: once is enough.
    told = point.dist.metadata
    return Found(point.name, point, told["Name"], told["Version"], tuple(told.get_all("Requires-Dist") or ()))


def load(
    found: Iterable[Found] | None = None,
    *,
    only: Collection[str] | None = None,
    disabled: Collection[str] = (),
    require: Sequence[str] = (),
) -> Plugins:
    """Load what is installed, or just `only` those, except the disabled.

    Raises `PluginError` when a required plugin is not loaded; every other failure is kept in the list.
    """
    manager = pluggy.PluginManager(GROUP)
    manager.add_hookspecs(hookspecs)
    plugins = Plugins(manager, [])
    candidates = installed() if found is None else list(found)
    for candidate in candidates:
        plugins.listed.append(_load_one(candidate, plugins, only=only, disabled=disabled))
    for name in sorted(set(only or ()) - {candidate.name for candidate in candidates}):
        near = nearest(name, {candidate.name for candidate in candidates})
        reason = f"it is named (HANDRAIL_PLUGINS), and not installed{near}"
        plugins.listed.append(Plugin(name, UNKNOWN, UNKNOWN, "failed", reason))
    check_required(plugins, require)
    return plugins


def load_here(environment: Mapping[str, str], *, disabled: Collection[str]) -> Plugins:
    """Load what is installed, or just what HANDRAIL_PLUGINS names in this environment, except the disabled."""
    named = environment.get("HANDRAIL_PLUGINS")
    only = None if named is None else {name.strip() for name in named.split(",") if name.strip()}
    return load(only=only, disabled=disabled)


def check_required(plugins: Plugins, require: Sequence[str], *, by: str = "`require` in [plugins]") -> None:
    """Raise `PluginError` for the first required plugin that is not loaded; `by` is what requires it."""
    for name in require:
        plugin = plugins.get(name)
        if plugin is None or plugin.state != "loaded":
            reason = plugin.reason or plugin.state if plugin else "it is not installed"
            cure = "mend it (`handrail plugins` shows all)" if plugin else install(name)
            raise PluginError(
                f"the plugin {name!r} is required and did not load: {reason}", hint=f"{cure}, or take it out of {by}"
            )


def _load_one(found: Found, plugins: Plugins, *, only: Collection[str] | None, disabled: Collection[str]) -> Plugin:
    plugin = Plugin(found.name, found.distribution, found.version, "disabled")
    if only is not None and found.name not in only:
        plugin.reason = "not named by HANDRAIL_PLUGINS"
    elif found.name in disabled:
        plugin.reason = "disabled in the configuration"
    else:
        _register(found, plugin, plugins)
    return plugin


def _register(found: Found, plugin: Plugin, plugins: Plugins) -> None:
    started = perf_counter()
    plugin.state = "failed"
    if (other := plugins.get(found.name)) is not None:
        plugin.reason = f"its name is taken by {other.distribution}"
        return
    if wrong := _wrong_core(found):
        plugin.reason = wrong
        return
    try:
        module = found.entry_point.load()
        plugins.manager.register(module, name=found.name)
        plugin.hooks = _implemented(plugins.manager, module)
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


def _implemented(manager: pluggy.PluginManager, module: Any) -> tuple[str, ...]:
    """The hooks a plugin implements; `PluginError` names one that does not exist, with the nearest that does."""
    specs = {name for name in dir(hookspecs) if name.startswith("handrail_register_")}
    callers = manager.get_hookcallers(module) or []
    implemented = [caller.name for caller in callers]
    unmarked = [name for name in dir(module) if name.startswith("handrail_") and callable(getattr(module, name))]
    for name in [*implemented, *unmarked]:
        if name not in specs:
            raise PluginError(f"there is no hook {name!r}{nearest(name, specs)}")
        if name not in implemented:
            raise PluginError(f"{name!r} is not marked with @hookimpl")
    if not implemented:
        raise PluginError("it implements no hook")
    return tuple(sorted(implemented))


def _wrong_core(found: Found) -> str | None:
    """Why the plugin was made for another core; None when it fits or does not say."""
    for requirement in found.requires:
        match = CORE_REQUIREMENT.fullmatch(requirement.strip())
        if (
            match is None
            or not (ranges := (match["ranges"] or "").strip(" ()"))
            or not _holds(requirement, match["marker"])
        ):
            continue
        version = importlib.metadata.version(DISTRIBUTION)
        try:
            fits = _fits(version, ranges)
        except ValueError:
            return f"its requirement {requirement!r} cannot be read"
        if not fits:
            return f"it needs handrail-core{ranges}, and this is {_told(version)}"
    return None


def _told(version: str) -> str:
    """The version of the core; where several are installed, as after one that was not removed, all of them and where they are."""
    copies = {
        found.version: str(found.locate_file("")) for found in importlib.metadata.distributions(name=DISTRIBUTION)
    }
    if len(copies) < 2:
        return f"{version}; install versions that fit each other"
    told = " and ".join(f"{copy} in {folder!r}" for copy, folder in sorted(copies.items()))
    return f"{version}, since there are two: {told}; remove one"


def _holds(requirement: str, marker: str | None) -> bool:
    """Whether a requirement counts here: `; python_version < "3"` and the like."""
    if marker is None:
        return True
    from packaging.markers import InvalidMarker, Marker

    try:
        return Marker(marker).evaluate({"extra": ""})
    except InvalidMarker:
        log.warning("the marker of the requirement %r cannot be read; it is taken to hold", requirement)
        return True


def _fits(version: str, ranges: str) -> bool:
    bounds = [BOUND.fullmatch(part.strip()) for part in ranges.split(",")]
    # Plain numbers, as nearly every plugin has them, are compared here: `packaging` takes a tenth of a start to import.
    if RELEASE.fullmatch(version) and None not in bounds:
        return all(COMPARE[bound[1]](_release(version), _release(bound[2])) for bound in bounds if bound)
    from packaging.specifiers import SpecifierSet

    return SpecifierSet(ranges).contains(version, prereleases=True)


def _release(version: str) -> tuple[int, ...]:
    """The numbers of a version, without the zeros at its end: 0.1 and 0.1.0 are the same."""
    numbers = [int(number) for number in version.split(".")]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)

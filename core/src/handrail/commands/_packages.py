"""Installing, upgrading and removing packages in the environment that this program runs from, by what made that environment."""

from __future__ import annotations

import importlib
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from handrail.commands._installers import Command, Installer, installer, normal
from handrail.errors import HandrailError
from handrail.plugins.loading import DISTRIBUTION, UNKNOWN, installed
from handrail.words import nearest

METAPACKAGE = "handrail"
WHY = "it says why above"
NO_INDEX = "what no index has is named by its file, as in dist/handrail_mcp-*.whl"


def install(packages: Sequence[str], *, editable: bool = False) -> list[str]:
    """Install packages, as `editable` folders where they stand; the names of the plugins that came."""
    chosen = _checked(packages)
    appeared, _ = _change(chosen.installing(packages, editable=editable), chosen, hint=f"{WHY}; {NO_INDEX}")
    return appeared


def uninstall(names: Sequence[str]) -> list[str]:
    """Remove the packages of plugins, named by either; the names of the plugins that went. Nothing goes unless all are plugins."""
    chosen = _checked(names)
    packages = list(dict.fromkeys(map(_plugin_package, names)))
    _, gone = _change(chosen.uninstalling(packages), chosen)
    return gone


def upgrade(packages: Sequence[str]) -> list[str]:
    """Bring packages to their newest versions, or core and all plugins; what has another version then, with that version."""
    before, chosen = _versions(), _checked(packages)
    _change(chosen.upgrading(packages or sorted(before), everything=not packages), chosen)
    return [f"{name} {version}" for name, version in _versions().items() if before.get(name) != version]


def removal() -> str:
    """The command that removes core and all plugins."""
    try:
        chosen = installer(Path(sys.prefix), find=shutil.which)
    except HandrailError as exc:
        return f"what made the environment {sys.prefix} ({exc})"
    return shlex.join(map(str, chosen.removing(sorted(_versions()))))


def distribution_of(name: str) -> str:
    """The package of that plugin, whichever way the name of either is spelled; `name` itself when there is no such plugin."""
    return _spelled().get(normal(name), name)


def _spelled() -> Mapping[str, str]:
    """The packages of the installed plugins, by the names of both."""
    found = [plugin for plugin in installed() if plugin.distribution != UNKNOWN]
    by_name = {normal(plugin.name): plugin.distribution for plugin in reversed(found)}
    return by_name | {normal(plugin.distribution): plugin.distribution for plugin in found}


def _plugin_package(name: str) -> str:
    """The package of an installed plugin. Raises `HandrailError` for the program itself, and for what is no plugin."""
    if normal(name).partition("[")[0] in (DISTRIBUTION, METAPACKAGE):
        raise HandrailError(f"{name} is this program itself", hint=f"`handrail uninstall`, then {removal()}")
    package = _spelled().get(normal(name))
    if package is None:
        wrong = f"{name!r} is no plugin of Handrail" if _is_installed(name) else f"there is no plugin {name!r}"
        whole = normal(name).startswith(f"{METAPACKAGE}-")
        known = {plugin.distribution if whole else plugin.name for plugin in installed()}
        raise HandrailError(f"{wrong}{nearest(name, known)}", hint="nothing was removed; `handrail plugins` shows all")
    return package


def _is_installed(package: str) -> bool:
    try:
        distribution(package)
    # The second is for an empty name.
    except (PackageNotFoundError, ValueError):
        return False
    return True


def _versions() -> dict[str, str]:
    """Core, what its extras are named at, and every plugin's package, with their versions."""
    found = {plugin.distribution: plugin.version for plugin in installed()}
    for name in (DISTRIBUTION, METAPACKAGE):
        try:
            found[name] = distribution(name).version
        except PackageNotFoundError:
            continue
    return found


def _change(command: Command, chosen: Installer, *, hint: str = WHY) -> tuple[list[str], list[str]]:
    """Run the installer; gives the names of the plugins that came and of those that went. What it says goes to stderr."""
    before = {plugin.name for plugin in installed()}
    environment = {**os.environ, **chosen.variables}
    done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, stdout=sys.stderr, check=False)
    if done.returncode:
        raise HandrailError(f"the installer did not succeed: it ended with {done.returncode}", hint=hint)
    importlib.invalidate_caches()
    after = {plugin.name for plugin in installed()}
    return sorted(after - before), sorted(before - after)


def _checked(packages: Sequence[str]) -> Installer:
    for package in packages:
        if not package.strip() or package.startswith("-"):
            raise HandrailError(f"{package!r} is not a package", hint="name one, as for `pip install`")
    marker = Path(sysconfig.get_path("stdlib")) / "EXTERNALLY-MANAGED"
    if sys.prefix == sys.base_prefix and marker.is_file():
        raise HandrailError(
            f"the environment {sys.prefix} is managed by the system's own package manager",
            hint="install Handrail into an environment of its own: python3 -m venv ~/handrail, or `uv tool install` or `pipx`",
        )
    return installer(Path(sys.prefix), find=shutil.which)

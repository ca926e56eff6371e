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

from handrail.cli._installers import InstallerCommand, PackageInstaller, normalize_package_name, select_installer
from handrail.errors import HandrailError
from handrail.plugins.loader import CORE_DISTRIBUTION, UNKNOWN_VALUE, find_installed_plugins
from handrail.text import format_suggestion

METAPACKAGE_NAME = "handrail"
INSTALLER_FAILED_HINT = "it says why above"
NO_INDEX = "what no index has is named by its file, as in dist/handrail_mcp-*.whl"


def install_packages(packages: Sequence[str], *, editable: bool = False) -> list[str]:
    """Install packages, as `editable` folders where they stand; the names of the plugins that came."""
    chosen = _check_packages(packages)
    appeared, _ = _run_installer(
        chosen.installing(packages, editable=editable), chosen, hint=f"{INSTALLER_FAILED_HINT}; {NO_INDEX}"
    )
    return appeared


def uninstall_plugins(names: Sequence[str]) -> list[str]:
    """Remove the packages of plugins, named by either; the names of the plugins that went. Nothing goes unless all are plugins."""
    chosen = _check_packages(names)
    packages = list(dict.fromkeys(map(_find_plugin_package, names)))
    _, gone = _run_installer(chosen.uninstalling(packages), chosen)
    return gone


def upgrade_packages(packages: Sequence[str]) -> list[str]:
    """Bring packages to their newest versions, or core and all plugins; what has another version then, with that version."""
    before, chosen = _read_versions(), _check_packages(packages)
    _run_installer(chosen.upgrading(packages or sorted(before), everything=not packages), chosen)
    return [f"{name} {version}" for name, version in _read_versions().items() if before.get(name) != version]


def format_removal_command() -> str:
    """Return the command that removes core and all plugins."""
    try:
        chosen = select_installer(Path(sys.prefix), find=shutil.which)
    except HandrailError as exc:
        return f"what made the environment {sys.prefix} ({exc})"
    return shlex.join(map(str, chosen.removing(sorted(_read_versions()))))


def find_distribution(name: str) -> str:
    """Return the package of a plugin, in any spelling of either name; `name` itself if no such plugin is installed."""
    return _index_distributions().get(normalize_package_name(name), name)


def _index_distributions() -> Mapping[str, str]:
    """Map the names of installed plugins and of their packages to the packages."""
    found = [plugin for plugin in find_installed_plugins() if plugin.distribution != UNKNOWN_VALUE]
    by_name = {normalize_package_name(plugin.name): plugin.distribution for plugin in reversed(found)}
    return by_name | {normalize_package_name(plugin.distribution): plugin.distribution for plugin in found}


def _find_plugin_package(name: str) -> str:
    """Return the package of an installed plugin.

    Raises `HandrailError` for the program itself, and for a name that is not a plugin's.
    """
    if normalize_package_name(name).partition("[")[0] in (CORE_DISTRIBUTION, METAPACKAGE_NAME):
        raise HandrailError(
            f"{name} is this program itself", hint=f"`handrail uninstall`, then {format_removal_command()}"
        )
    package = _index_distributions().get(normalize_package_name(name))
    if package is None:
        wrong = f"{name!r} is no plugin of Handrail" if _is_installed(name) else f"there is no plugin {name!r}"
        whole = normalize_package_name(name).startswith(f"{METAPACKAGE_NAME}-")
        known = {plugin.distribution if whole else plugin.name for plugin in find_installed_plugins()}
        raise HandrailError(
            f"{wrong}{format_suggestion(name, known)}", hint="nothing was removed; `handrail plugins` shows all"
        )
    return package


def _is_installed(package: str) -> bool:
    try:
        distribution(package)
    # The second is for an empty name.
    except (PackageNotFoundError, ValueError):
        return False
    return True


def _read_versions() -> dict[str, str]:
    """Core, what its extras are named at, and every plugin's package, with their versions."""
    found = {plugin.distribution: plugin.version for plugin in find_installed_plugins()}
    for name in (CORE_DISTRIBUTION, METAPACKAGE_NAME):
        try:
            found[name] = distribution(name).version
        except PackageNotFoundError:
            continue
    return found


def _run_installer(
    command: InstallerCommand, chosen: PackageInstaller, *, hint: str = INSTALLER_FAILED_HINT
) -> tuple[list[str], list[str]]:
    """Run the installer; gives the names of the plugins that came and of those that went. What it says goes to stderr."""
    before = {plugin.name for plugin in find_installed_plugins()}
    environment = {**os.environ, **chosen.variables}
    done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, stdout=sys.stderr, check=False)
    if done.returncode:
        raise HandrailError(f"the installer did not succeed: it ended with {done.returncode}", hint=hint)
    importlib.invalidate_caches()
    after = {plugin.name for plugin in find_installed_plugins()}
    return sorted(after - before), sorted(before - after)


def _check_packages(packages: Sequence[str]) -> PackageInstaller:
    for package in packages:
        if not package.strip() or package.startswith("-"):
            raise HandrailError(f"{package!r} is not a package", hint="name one, as for `pip install`")
    marker = Path(sysconfig.get_path("stdlib")) / "EXTERNALLY-MANAGED"
    if sys.prefix == sys.base_prefix and marker.is_file():
        raise HandrailError(
            f"the environment {sys.prefix} is managed by the system's own package manager",
            hint="install Handrail into an environment of its own: python3 -m venv ~/handrail, or `uv tool install` or `pipx`",
        )
    return select_installer(Path(sys.prefix), find=shutil.which)

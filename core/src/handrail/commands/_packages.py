"""Installing and removing packages in the environment that this program runs from, by pip or, where that is not there, by uv."""

from __future__ import annotations

import importlib
import importlib.util
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path

from handrail.errors import HandrailError
from handrail.plugins.loading import DISTRIBUTION, installed


def change(action: str, packages: Sequence[str]) -> tuple[list[str], list[str]]:
    """Install or uninstall; gives the names of the plugins that came and of those that went.

    Raises `HandrailError` when the environment belongs to somebody else, and when pip fails; what pip says goes to stderr.
    """
    _refuse(action, packages)
    before = {plugin.name for plugin in installed()}
    done = subprocess.run([*_installer(action), *packages], stdin=subprocess.DEVNULL, stdout=sys.stderr, check=False)
    if done.returncode:
        raise HandrailError(
            f"{action} did not succeed: the installer ended with {done.returncode}", hint="it says why above"
        )
    importlib.invalidate_caches()
    after = {plugin.name for plugin in installed()}
    return sorted(after - before), sorted(before - after)


def distribution_of(name: str) -> str:
    """The package that supplies the plugin of that name; `name` itself when there is no such plugin."""
    return next((plugin.distribution for plugin in installed() if plugin.name == name), name)


def _refuse(action: str, packages: Sequence[str]) -> None:
    for package in packages:
        if package.startswith("-"):
            raise HandrailError(f"{package!r} is not a package", hint="name one, as for `pip install`")
        if action == "uninstall" and re.sub(r"[-_.]+", "-", package).lower() in (DISTRIBUTION, "handrail"):
            raise HandrailError(f"{package} is this program itself", hint="remove its environment, or use pip")
    marker = Path(sysconfig.get_path("stdlib")) / "EXTERNALLY-MANAGED"
    if sys.prefix == sys.base_prefix and marker.is_file():
        raise HandrailError(
            f"the environment {sys.prefix} is managed by the system's own package manager",
            hint="install Handrail into an environment of its own: python3 -m venv ~/handrail, or `uv tool install` or `pipx`",
        )


def _installer(action: str) -> list[str]:
    if importlib.util.find_spec("pip") is not None:
        return [
            sys.executable,
            "-m",
            "pip",
            "--disable-pip-version-check",
            action,
            *(["-y"] if action == "uninstall" else []),
        ]
    uv = shutil.which("uv")
    if uv is None:
        raise HandrailError("neither pip nor uv is here", hint=f"{sys.executable} -m ensurepip")
    return [uv, "pip", action, "--python", sys.executable]

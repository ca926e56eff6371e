"""Programs that create environments, and how to call them.

They are called in a way that lets them know the plugins afterwards and keep them in an upgrade.
"""

from __future__ import annotations

import importlib.util
import json
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, cast

from handrail.errors import HandrailError
from handrail.workers.host_programs import START_FOLDER

InstallerCommand = Sequence[str | Path]
# What stands before another package in `uv tool install`.
WITH_OPTION, WITH_EDITABLE_OPTION = "--with", "--with-editable"


class PackageInstaller(Protocol):
    """The commands that change an environment, and the variables under which its program finds it."""

    @property
    def variables(self) -> Mapping[str, str]: ...
    def installing(self, packages: Sequence[str], *, editable: bool = False) -> InstallerCommand: ...
    def uninstalling(self, packages: Sequence[str]) -> InstallerCommand: ...
    def upgrading(self, packages: Sequence[str], *, everything: bool) -> InstallerCommand: ...
    def removing(self, packages: Sequence[str]) -> InstallerCommand: ...


def select_installer(prefix: Path, *, find: Callable[[str], str | None]) -> PackageInstaller:
    """Return the installer that created the environment, if it is available; else pip, else uv.

    Raises `HandrailError` if the environment is one of uv's tools and uv is missing, or if neither pip nor uv is
    available.
    """
    receipt = prefix / "uv-receipt.toml"
    if receipt.is_file():
        uv = find("uv")
        if uv is None:
            raise HandrailError("this environment is uv's, and uv is not on PATH", hint="add uv's folder to PATH")
        return UvToolInstaller(uv, prefix, tomllib.loads(receipt.read_text(encoding="utf-8"))["tool"])
    metadata = prefix / "pipx_metadata.json"
    if metadata.is_file() and (pipx := find("pipx")) is not None:
        return PipxInstaller(pipx, prefix, json.loads(metadata.read_text(encoding="utf-8")))
    if importlib.util.find_spec("pip") is not None:
        return PipInstaller((sys.executable, "-P", "-m", "pip", "--disable-pip-version-check"), (), ("-y",))
    if (uv := find("uv")) is not None:
        return PipInstaller((uv, "pip"), ("--python", sys.executable), ())
    raise HandrailError("neither pip nor uv is here", hint=f"{sys.executable} -m ensurepip")


@dataclass(frozen=True, slots=True)
class PipInstaller:
    """pip, or uv in its place: an environment has what was put into it, and keeps it."""

    program: Sequence[str]
    options: Sequence[str]
    unasked: Sequence[str]

    @property
    def variables(self) -> Mapping[str, str]:
        return {}

    def installing(self, packages: Sequence[str], *, editable: bool = False) -> InstallerCommand:
        mark = ("-e",) if editable else ()
        return [*self.program, "install", *self.options, *(word for package in packages for word in (*mark, package))]

    def uninstalling(self, packages: Sequence[str]) -> InstallerCommand:
        return [*self.program, "uninstall", *self.unasked, *self.options, *packages]

    def upgrading(self, packages: Sequence[str], *, everything: bool) -> InstallerCommand:
        return self.installing(["--upgrade", *packages])

    def removing(self, packages: Sequence[str]) -> InstallerCommand:
        """Return the command that removes all of Handrail, which consists of these packages."""
        return self.uninstalling(packages)


@dataclass(frozen=True, slots=True)
class PipxInstaller:
    """pipx, which writes down what was added to an environment, and tells pip of where the first package came from only when asked to."""

    program: str
    prefix: Path
    metadata: Mapping[str, Any]

    @property
    def variables(self) -> Mapping[str, str]:
        return {"PIPX_HOME": str(self.prefix.parents[1])}

    def installing(self, packages: Sequence[str], *, editable: bool = False) -> InstallerCommand:
        options = (f"--pip-args={shlex.join(self._options)}",) if self._options else ()
        mark = ("--editable",) if editable else ()
        return [self.program, "inject", *options, *mark, self.prefix.name, *packages]

    def uninstalling(self, packages: Sequence[str]) -> InstallerCommand:
        if self._uninjects():
            return [self.program, "uninject", self.prefix.name, *packages]
        return self._pip("uninstall", "-y", *packages)

    def upgrading(self, packages: Sequence[str], *, everything: bool) -> InstallerCommand:
        # `pipx upgrade` leaves core as it is for as long as it fits, and older ones forget where the packages came from.
        return self._pip("install", "--upgrade", *self._options, *packages)

    def removing(self, packages: Sequence[str]) -> InstallerCommand:
        """Return the command that removes the environment with everything in it."""
        return [self.program, "uninstall", self.prefix.name]

    def _pip(self, *words: str) -> InstallerCommand:
        return [self.program, "runpip", self.prefix.name, *words]

    def _uninjects(self) -> bool:
        told = subprocess.run([self.program, "--help"], cwd=START_FOLDER, capture_output=True, text=True, check=False)
        return "uninject" in told.stdout

    @property
    def _options(self) -> Sequence[str]:
        return self.metadata["main_package"].get("pip_args", ())


@dataclass(frozen=True, slots=True)
class UvToolInstaller:
    """`uv tool`: an upgrade leaves what its receipt names, so a plugin is installed by naming it beside the rest of the receipt."""

    program: str
    prefix: Path
    receipt: Mapping[str, Any]

    @property
    def variables(self) -> Mapping[str, str]:
        programs = Path(self.receipt["entrypoints"][0]["install-path"]).parent
        return {"UV_TOOL_DIR": str(self.prefix.parent), "UV_TOOL_BIN_DIR": str(programs)}

    def installing(self, packages: Sequence[str], *, editable: bool = False) -> InstallerCommand:
        option = WITH_EDITABLE_OPTION if editable else WITH_OPTION
        return self._with([*self._beside.values(), *((option, package) for package in packages)])

    def uninstalling(self, packages: Sequence[str]) -> InstallerCommand:
        gone = {normalize_package_name(package) for package in packages}
        if unnamed := sorted(gone - self._beside.keys()):
            raise HandrailError(
                f"{', '.join(unnamed)} came with {_format_requirement(self._main)}, and goes only with it",
                hint="turn the plugin off by `disabled` in [plugins], or install with another extra",
            )
        return self._with([words for name, words in self._beside.items() if name not in gone])

    def upgrading(self, packages: Sequence[str], *, everything: bool) -> InstallerCommand:
        if everything:
            return [self.program, "tool", "upgrade", self.prefix.name]
        upgraded = [word for package in packages for word in ("--upgrade-package", package)]
        return [*self._with(list(self._beside.values())), *upgraded]

    def removing(self, packages: Sequence[str]) -> InstallerCommand:
        """Return the command that removes the environment with everything in it."""
        return [self.program, "tool", "uninstall", self.prefix.name]

    def _with(self, beside: Sequence[tuple[str, str]]) -> InstallerCommand:
        return [
            self.program,
            "tool",
            "install",
            *self._options,
            _format_requirement(self._main),
            *(word for words in beside for word in words),
        ]

    @property
    def _requirements(self) -> Sequence[Mapping[str, Any]]:
        return self.receipt["requirements"]

    @property
    def _main(self) -> Mapping[str, Any]:
        return next(each for each in self._requirements if each["name"] == self.prefix.name)

    @property
    def _beside(self) -> dict[str, tuple[str, str]]:
        """The options for the requirements that were added, by name."""
        return {
            each["name"]: _format_requirement_option(each)
            for each in self._requirements
            if each["name"] != self.prefix.name
        }

    @property
    def _options(self) -> list[str]:
        python = self.receipt.get("python")
        links = cast("Sequence[str]", self.receipt.get("options", {}).get("find-links", ()))
        return [*(("--python", python) if python else ()), *(word for link in links for word in ("--find-links", link))]


def normalize_package_name(package: str) -> str:
    """Return the name in the form in which package indexes compare names."""
    return re.sub(r"[-_.]+", "-", package).lower()


def _format_requirement_option(told: Mapping[str, Any]) -> tuple[str, str]:
    """Return the option and its value for a requirement that a receipt lists beside the main one."""
    if (folder := told.get("editable")) is not None:
        return WITH_EDITABLE_OPTION, f"{folder}{_format_extras(told)}"
    return WITH_OPTION, _format_requirement(told)


def _format_extras(told: Mapping[str, Any]) -> str:
    return f"[{','.join(told['extras'])}]" if told.get("extras") else ""


def _format_requirement(told: Mapping[str, Any]) -> str:
    """Return a receipt's requirement as written on a command line."""
    extras = _format_extras(told)
    name = f"{told['name']}{extras}"
    marker = f" ; {told['marker']}" if told.get("marker") else ""
    where = told.get("url") or told.get("path") or told.get("directory") or told.get("editable")
    if told.get("git"):
        where = f"git+{told['git']}"
    if where is None:
        return f"{name}{told.get('specifier', '')}{marker}"
    return f"{name} @ {where if '://' in where else Path(where).as_uri()}{marker}"

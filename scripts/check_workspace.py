"""Consistency check of the workspace's files.

Every package must be listed wherever packages are, and every requirement pinned. Prints each fault with its file and
exits 1; prints nothing and exits 0 without faults.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
PINS = {("dev", "docs"): ROOT / "constraints.txt", ("bench",): ROOT / "benchmarks" / "constraints.txt"}
PIN = re.compile(r"([a-z0-9-]+)==[^\s;]+( ; [^\\]+)? \\|    --hash=sha256:[0-9a-f]{64}( \\)?")


def load(folder: Path) -> dict[str, Any]:
    return tomllib.loads((folder / "pyproject.toml").read_text())


def names(requirements: Sequence[str | dict[str, str]]) -> set[str]:
    """Return the names in requirements, without those of included groups."""
    return {canonicalize_name(Requirement(each).name) for each in requirements if isinstance(each, str)}


def contract_faults(root: dict[str, Any], packages: set[str], plugins: set[str]) -> Iterator[str]:
    linter = root["tool"]["importlinter"]
    contracts = {each["id"]: each for each in linter["contracts"]}
    for where, found, wanted in [
        ("root_packages", set(linter["root_packages"]), packages),
        ("contract core", set(contracts["core"]["forbidden_modules"]), plugins),
        ("contract plugins", set(contracts["plugins"]["modules"]), plugins),
    ]:
        for package in sorted(wanted - found):
            yield f"pyproject.toml: tool.importlinter, {where}: {package} is missing"


def metapackage_faults(root: dict[str, Any], distributions: set[str]) -> Iterator[str]:
    extras: dict[str, list[str]] = root["project"]["optional-dependencies"]
    reached = names(root["project"]["dependencies"]).union(*(names(each) for each in extras.values()))
    if root["project"]["scripts"] != load(ROOT / "core")["project"]["scripts"]:
        yield "pyproject.toml: project.scripts differs from core's"
    everything = {extra for each in extras["all"] for extra in Requirement(each).extras}
    for extra in sorted(extras.keys() - everything - {"all"}):
        yield f"pyproject.toml: extra 'all' leaves out {extra!r}"
    for distribution in sorted(distributions - reached):
        yield f"pyproject.toml: no extra picks {distribution}"
    for distribution in sorted(distributions - root["tool"]["uv"]["sources"].keys()):
        yield f"pyproject.toml: tool.uv.sources: {distribution} is missing"


def member_faults(root: dict[str, Any], folder: Path) -> Iterator[str]:
    member, where = load(folder), folder.relative_to(ROOT)
    project = member["project"]
    for key in ("requires-python", "license", "license-files", "dynamic", "classifiers"):
        if project.get(key) != root["project"][key]:
            yield f"{where}/pyproject.toml: project.{key} differs from the root's"
    if (folder / "LICENSE").read_bytes() != (ROOT / "LICENSE").read_bytes():
        yield f"{where}/LICENSE: differs from the root's"
    if "test" not in member.get("dependency-groups", {}):
        yield f"{where}/pyproject.toml: dependency-groups.test is missing"
    for package in (folder / "src").glob("handrail*"):
        if not (package / "py.typed").is_file():
            yield f"{package.relative_to(ROOT)}: py.typed is missing"
    if folder.parent.name == "plugins":
        yield from plugin_faults(member, folder)


def plugin_faults(member: dict[str, Any], folder: Path) -> Iterator[str]:
    name, where = folder.name, folder.relative_to(ROOT)
    project = member["project"]
    if project["name"] != f"handrail-{name.replace('_', '-')}":
        yield f"{where}/pyproject.toml: project.name is {project['name']!r}"
    if project.get("entry-points", {}).get("handrail") != {name: f"handrail_{name}.hooks"}:
        yield f"{where}/pyproject.toml: the entry point {name} = handrail_{name}.hooks is missing"
    if "handrail-core" not in names(project["dependencies"]):
        yield f"{where}/pyproject.toml: it does not depend on handrail-core"


def pin_faults(root: dict[str, Any], members: list[dict[str, Any]], groups: tuple[str, ...]) -> Iterator[str]:
    pins, where = PINS[groups], PINS[groups].relative_to(ROOT)
    pinned: set[str] = set()
    for number, line in enumerate(pins.read_text().splitlines(), start=1):
        match = PIN.fullmatch(line)
        if match is None:
            yield f"{where}:{number}: neither a name with a version nor a sha256"
        elif match[1]:
            pinned.add(match[1])
    wanted = {name for group in groups for name in names(root["dependency-groups"][group])}
    for member in members:
        wanted |= names(member["project"]["dependencies"])
        if "dev" in groups:
            wanted |= names(member.get("dependency-groups", {}).get("test", []))
    own = {member["project"]["name"] for member in members}
    for name in sorted(wanted - own - pinned):
        yield f"{where}: {name} is not pinned; run `make constraints`"


def faults() -> Iterator[str]:
    root = load(ROOT)
    foreign = {ROOT / folder for folder in root["tool"]["uv"]["workspace"].get("exclude", [])}
    plugins = {path.parent for path in ROOT.glob("plugins/*/pyproject.toml")} - foreign
    folders = [ROOT / "core", *sorted(plugins)]
    members = [load(folder) for folder in folders]
    packages = {path.name for folder in folders for path in (folder / "src").glob("handrail*")}
    version = (ROOT / "VERSION").read_text().strip()
    if f'__version__ = "{version}"\n' not in (ROOT / "core/src/handrail/version.py").read_text():
        yield f"core/src/handrail/version.py: __version__ is not {version!r}, which VERSION says"
    yield from contract_faults(root, packages, packages - {"handrail"})
    yield from metapackage_faults(root, {member["project"]["name"] for member in members})
    for folder in folders:
        yield from member_faults(root, folder)
    for groups in PINS:
        yield from pin_faults(root, members, groups)


def main() -> int:
    found = list(faults())
    for fault in found:
        print(fault, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

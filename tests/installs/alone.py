"""Runs each package's tests in an environment that holds its wheel, what it depends on and what its group `test` names: nothing else.

`make alone PACKAGES="core files" PYTHONS="3.11 3.13"`; all packages, and every interpreter that is found, when none is named.
It ends with a line for each, and with 0 when all of them passed, 1 when one did not, 2 when a name is unknown.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from tests.installs.environments import ROOT, Environment, build, interpreters

PACKAGES = ["core", *sorted(path.parent.name for path in ROOT.glob("plugins/*/src") if path.parent.name != "example")]


@dataclass(frozen=True)
class Outcome:
    """How the tests of a package ended; counted as pytest's report counts, empty where it came to none."""

    package: str
    version: str
    passed: bool
    counted: Mapping[str, int]
    seconds: float

    def __str__(self) -> str:
        failed = self.counted.get("failures", 0) + self.counted.get("errors", 0)
        skipped = self.counted.get("skipped", 0)
        counts = (self.counted.get("tests", 0) - failed - skipped, failed, skipped, round(self.seconds))
        return _row("" if self.passed else "FAILED", self.package, self.version, *counts)


def _row(mark: str, package: str, version: str, *counts: object) -> str:
    return f"{mark:<7}{package:<20}{version:<7}" + "".join(f"{count:>9}" for count in counts)


def main(words: list[str]) -> int:
    found = interpreters()
    if unknown := [word for word in words if word not in PACKAGES and word not in found]:
        print(f"Error: unknown {', '.join(map(repr, unknown))}", file=sys.stderr)
        print(f"Hint: packages: {' '.join(PACKAGES)}; Pythons found here: {' '.join(found)}", file=sys.stderr)
        return 2
    packages = [word for word in words if word in PACKAGES] or PACKAGES
    versions = [word for word in words if word in found] or list(found)
    with tempfile.TemporaryDirectory() as folder:
        pins = build(Path(folder))
        outcomes = [
            _run(package, version, found[version], pins, Path(folder) / f"{package}-{version}")
            for version in versions
            for package in packages
        ]
    print(_row("", "package", "Python", "passed", "failed", "skipped", "seconds"))
    print(*outcomes, sep="\n")
    return 0 if all(outcome.passed for outcome in outcomes) else 1


def _run(package: str, version: str, python: Path, pins: Path, folder: Path) -> Outcome:
    print(f"== {package} on {version} ({python})", flush=True)
    sources = Path("core") if package == "core" else Path("plugins", package)
    tests, report = ROOT / "tests" / sources, folder / "report.xml"
    folder.mkdir()
    started = time.monotonic()
    try:
        made = Environment(folder, python, pins)
        made.install(
            f"handrail-{package.replace('_', '-')}",
            *("--no-sources", "--group", "pyproject.toml:test", "--group", sources / "pyproject.toml:test"),
        )
        for requirements in tests.glob("*.txt"):
            made.install_beside(requirements)
    # One that cannot be installed says why, and the others still run.
    except AssertionError as told:
        print(told, flush=True)
        return Outcome(package, version, False, {}, time.monotonic() - started)
    pytest = [made.folder / "bin" / "python", "-m", "pytest", "-q", f"--junitxml={report}", tests]
    done = subprocess.run(pytest, cwd=ROOT)
    return Outcome(package, version, done.returncode == 0, _counted(report), time.monotonic() - started)


def _counted(report: Path) -> Mapping[str, int]:
    """The numbers in pytest's report; none where it ended before it wrote one."""
    if not report.exists():
        return {}
    (suite,) = ElementTree.parse(report).getroot()
    return {name: int(suite.get(name, "0")) for name in ("tests", "failures", "errors", "skipped")}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Runs each package's tests in an environment that holds its wheel, what it depends on and what its group `test` names: nothing else.

`make alone PACKAGES="core files" PYTHONS="3.11 3.13"`; all packages, and every interpreter that is found, when none is named.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.installs.environments import ROOT, Environment, build, interpreters

PACKAGES = ["core", *sorted(path.name for path in (ROOT / "tests" / "plugins").iterdir() if path.is_dir())]


def main(packages: list[str], versions: list[str]) -> int:
    found = interpreters()
    print(f"interpreters found: {', '.join(f'{version} ({path})' for version, path in found.items())}")
    with tempfile.TemporaryDirectory() as folder:
        pins = build(Path(folder))
        ran = [
            _run(package, found[version], pins, Path(folder) / f"{package}-{version}", version)
            for version in versions or found
            for package in packages or PACKAGES
        ]
    return 0 if all(ran) else 1


def _run(package: str, python: Path, pins: Path, folder: Path, version: str) -> bool:
    folder.mkdir()
    made = Environment(folder, python, pins)
    sources = Path("core") if package == "core" else Path("plugins", package)
    made.install(
        f"handrail-{package.replace('_', '-')}",
        *("--no-sources", "--group", "pyproject.toml:test", "--group", sources / "pyproject.toml:test"),
    )
    tests = Path("tests", sources)
    started = time.monotonic()
    done = subprocess.run(
        [made.folder / "bin" / "python", "-m", "pytest", "-q", tests], cwd=ROOT, stdout=subprocess.PIPE
    )
    lines = done.stdout.decode(errors="replace").splitlines()
    print(
        "\n".join(
            [
                f"== {package} on {version}: {time.monotonic() - started:.0f} s",
                *(lines if done.returncode else lines[-1:]),
            ]
        )
    )
    sys.stdout.flush()
    return done.returncode == 0


if __name__ == "__main__":
    given = sys.argv[1:]
    sys.exit(main([each for each in given if not each[0].isdigit()], [each for each in given if each[0].isdigit()]))

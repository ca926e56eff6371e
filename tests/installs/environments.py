"""The wheels as a release has them, and environments that they are installed into as users do."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
UV = Path(sys.executable).with_name("uv")
PATIENCE_S = 500
# Those that Handrail is made for.
VERSIONS = ("3.11", "3.12", "3.13")
ASKED = "import sys; print(f'{sys.version_info[0]}.{sys.version_info[1]}')"


def output(*words: str | Path, cwd: Path | None = None, **environment: str) -> str:
    """What the program prints; it must end well. uv trusts what the system trusts, as in scripts/setup.sh."""
    variables = {"UV_SYSTEM_CERTS": "1", **os.environ, **environment}
    done = subprocess.run(words, capture_output=True, text=True, cwd=cwd, env=variables, timeout=PATIENCE_S)
    assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def interpreters() -> Mapping[str, Path]:
    """A Python of each minor version that Handrail is made for, as far as this machine has them: this one, those on the path, uv's, pyenv's."""
    found = {f"3.{sys.version_info[1]}": Path(sys.executable)}
    for candidate in _candidates():
        try:
            asked = subprocess.run([candidate, "-I", "-c", ASKED], capture_output=True, text=True, timeout=60)
        except OSError:
            continue
        # A shim of pyenv is there also where it runs nothing.
        if asked.returncode == 0 and (version := asked.stdout.strip()) in VERSIONS:
            found.setdefault(version, candidate)
    return dict(sorted(found.items()))


def _candidates() -> Iterator[Path]:
    for folder in os.environ["PATH"].split(os.pathsep):
        yield from (Path(folder) / f"python{version}" for version in VERSIONS)
    yield from sorted(_folder_of_uv().glob("cpython-3.*/bin/python3"))
    yield from sorted(Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")).glob("versions/3.*/bin/python3"))


def _folder_of_uv() -> Path:
    """Where uv keeps those that it has fetched."""
    given = os.environ.get("UV_PYTHON_INSTALL_DIR")
    data = Path(os.environ.get("XDG_DATA_HOME", Path.home() / ".local" / "share"))
    return Path(given) if given else data / "uv" / "python"


def build(dist: Path) -> Path:
    """Have `make build` fill a folder with a wheel and a source archive of each package; gives the constraints for installing them.

    Our packages come from that folder and from nowhere else, the others in the versions that setup has fetched before.
    """
    output("make", "build", f"DIST={dist}", cwd=ROOT)
    theirs = re.findall(r"(?m)^[a-z0-9-]+==[^\\]+", (ROOT / "constraints.txt").read_text())
    ours = [f"{wheel.name.split('-')[0].replace('_', '-')} @ {wheel.as_uri()}" for wheel in dist.glob("*.whl")]
    file = dist / "pins.txt"
    file.write_text("\n".join([*ours, *theirs]))
    return file


class Environment:
    """A virtual environment with what was installed into it, and a home of its own."""

    def __init__(self, folder: Path, python: Path, pins: Path) -> None:
        self.folder = folder / "venv"
        self._home = folder / "home"
        self._home.mkdir()
        self._pins = pins
        output(UV, "-q", "venv", "--python", python, self.folder)

    def install(self, *packages: str | Path) -> None:
        output(
            UV,
            "-q",
            "pip",
            "install",
            "--python",
            self.folder / "bin" / "python",
            "--constraint",
            self._pins,
            *packages,
        )

    def install_beside(self, requirements: Path) -> None:
        """Install into a folder of the environment, called as the file is, what the tests put before its own packages; as setup does."""
        target = self.folder / requirements.stem
        python = self.folder / "bin" / "python"
        words = ("--python", python, "--target", target, "--no-deps", "--require-hashes", "-r", requirements)
        output(UV, "-q", "pip", "install", *words)

    def handrail(self, *words: str, **more: str) -> str:
        """What the installed program prints."""
        bare = {"HOME": str(self._home), "HANDRAIL_HOME": str(self._home / "state"), "PATH": "/usr/bin:/bin"}
        return output(self.folder / "bin" / "handrail", *words, cwd=self._home, **{**bare, **more})

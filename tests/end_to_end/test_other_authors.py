"""Plugins of other authors: from their own wheels, in an environment that has nothing of this one, as the documentation says."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from handrail.cli.new import PLUGIN_KINDS

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "plugins" / "example"
UV = Path(sys.executable).with_name("uv")


@dataclass(frozen=True)
class Environment:
    """A virtual environment, and the wheels that it was made from."""

    folder: Path
    wheels: Path

    def install(self, *what: str | Path) -> None:
        python = self.folder / "bin" / "python"
        pins = ("-c", ROOT / "constraints.txt")
        words = [UV, "pip", "install", "-q", "--python", python, "--find-links", self.wheels, *pins, *what]
        # As scripts/setup.sh does: whoever stands between here and an index is known to the system, not to uv.
        run(words, cwd=ROOT, env={"UV_SYSTEM_CERTS": "1", **os.environ})

    def run(self, program: str, *words: str, cwd: Path, **more: str) -> str:
        environment = {
            "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
            "HOME": str(cwd),
            "HANDRAIL_HOME": str(cwd / "state"),
            **more,
        }
        return run([self.folder / "bin" / program, *words], cwd=cwd, env=environment)


def run(argv: list[Any], *, cwd: Path, env: Mapping[str, str] | None = None) -> str:
    done = subprocess.run(argv, cwd=cwd, env=env, capture_output=True, text=True, timeout=110)
    assert done.returncode == 0, f"{argv}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    folder = tmp_path_factory.mktemp("own")
    made = Environment(folder / "venv", folder / "wheels")
    run([UV, "-q", "venv", "--python", sys.executable, made.folder], cwd=folder)
    for package in (ROOT / "core", ROOT / "plugins" / "gui", EXAMPLE):
        wheel = ("--wheel", "--no-build-isolation", "--python", sys.executable, "--out-dir", made.wheels)
        run([UV, "build", "-q", *wheel, package], cwd=folder)
    made.install(*made.wheels.glob("*.whl"), "handrail-core[new,testing]")
    return made


def test_the_example_is_at_most_forty_lines_as_ruff_formats_them() -> None:
    (code,) = (EXAMPLE / "src").rglob("*.py")
    run([Path(sys.executable).with_name("ruff"), "format", "--check", code], cwd=ROOT)
    assert len(code.read_text().splitlines()) <= 40


def test_the_example_sees_a_real_screen_once_the_configuration_names_it(own: Environment, tmp_path: Path) -> None:
    (tmp_path / "handrail.toml").write_text(
        'backend = "example"\ndesktop = "private"\n[backends.example]\ncolour = "#000000"\n'
    )
    config = {"HANDRAIL_CONFIG": str(tmp_path / "handrail.toml")}
    asked = ("call", "observe_screen", "--args", '{"image": "none"}', "--json")
    seen = json.loads(own.run("handrail", *asked, cwd=tmp_path, **config))
    assert (seen["status"], seen["actual_backend"]) == ("success", "example")
    # An empty desktop is black.
    assert [(e["role"], e["text"], e["source"]) for e in seen["ui_elements"]] == [("patch", "#000000", "vision")]


def test_the_example_keeps_the_contract(own: Environment, tmp_path: Path) -> None:
    for file in (EXAMPLE / "tests").glob("*.py"):
        (tmp_path / file.name).write_text(file.read_text())
    told = own.run("python", "-m", "pytest", "-q", "-o", "anyio_mode=auto", ".", cwd=tmp_path)
    assert re.search(r"^\d\d passed", told, re.MULTILINE), told


@pytest.mark.parametrize("kind", PLUGIN_KINDS)
def test_what_handrail_new_makes_installs_loads_and_passes_its_tests(
    own: Environment, tmp_path: Path, kind: str
) -> None:
    own.run("handrail", "new", kind, f"first_{kind}", cwd=tmp_path)
    made = tmp_path / f"handrail-first-{kind}"
    own.install(f"{made}[test]")
    told = own.run("python", "-m", "pytest", "-q", cwd=made)
    assert re.search(r"^\d+ passed", told, re.MULTILINE), told
    (plugin,) = (
        plugin
        for plugin in json.loads(own.run("handrail", "plugins", "--json", cwd=tmp_path))
        if plugin["name"] == f"first_{kind}"
    )
    assert plugin["state"] == "loaded", plugin


def test_the_example_is_what_handrail_new_makes(own: Environment, tmp_path: Path) -> None:
    own.run("handrail", "new", "backend", "example", cwd=tmp_path)
    made = tmp_path / "handrail-example"
    for file in ("src/handrail_example/__init__.py", "tests/test_example.py"):
        assert (made / file).read_text() == (EXAMPLE / file).read_text()

"""The plugins of tests/fixtures/plugins, installed as anyone's plugins are."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PLUGINS = Path(__file__).parent.parent / "fixtures" / "plugins"


@pytest.fixture(scope="session")
def plugin_wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a wheel of each fixture plugin."""
    wheels = tmp_path_factory.mktemp("wheels")
    for source in sorted(PLUGINS.iterdir()):
        _uv("build", "--wheel", "--no-build-isolation", "--out-dir", str(wheels), str(source))
    return wheels


@pytest.fixture(scope="session")
def plugin_site(plugin_wheels: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for the path, in which all of them are installed. `HANDRAIL_PLUGINS` says which of them count."""
    site = tmp_path_factory.mktemp("site")
    _uv("pip", "install", "--no-deps", "--target", str(site), *map(str, sorted(plugin_wheels.glob("*.whl"))))
    return site


def _uv(*words: str) -> None:
    uv = Path(sys.executable).with_name("uv")
    done = subprocess.run([uv, "-q", "--offline", *words, "--python", sys.executable], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr

"""`[sandbox]`: who may loosen it, and who may only tighten."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from handrail import ConfigError
from handrail.config.loader import load_config
from handrail.config.settings import SandboxSettings
from handrail.fs.app_dirs import AppDirs


def loaded(tmp_path: Path, *, user: str = "", project: str = "", **environment: str) -> tuple[SandboxSettings, str]:
    """The settings of a folder that nobody trusts, and what was ignored."""
    around = {"HANDRAIL_HOME": str(tmp_path / "state"), "HOME": str(tmp_path), **environment}
    places = AppDirs.of(around)
    places.config.mkdir(parents=True)
    places.config_file.write_text(user)
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "handrail.toml").write_text(project)
    config = load_config(places=places, folder=folder, environment=around)
    return config.settings.sandbox, " ".join(config.ignored)


@pytest.mark.parametrize(
    ("project", "key", "expected"),
    [
        pytest.param("memory = 128", "memory", 128, id="less-memory"),
        pytest.param("processes = 16", "processes", 16, id="fewer-processes"),
        pytest.param("cpu_seconds = 10", "cpu_seconds", 10, id="less-time"),
        pytest.param('use = ["none"]', "use", ("none",), id="no-sandbox"),
        pytest.param("network = false", "network", False, id="no-network"),
    ],
)
def test_a_file_that_nobody_trusts_can_tighten(tmp_path: Path, project: str, key: str, expected: Any) -> None:
    found, ignored = loaded(tmp_path, user="[sandbox]\nnetwork = true\n", project=f"[sandbox]\n{project}\n")
    assert getattr(found, key) == expected
    assert "sandbox" not in ignored


@pytest.mark.parametrize(
    "project",
    [
        "memory = 9999999",
        "processes = 99999",
        "network = true",
        'use = ["docker"]',
        'writable = ["/"]',
        'readable = ["/"]',
    ],
)
def test_a_file_that_nobody_trusts_cannot_loosen(tmp_path: Path, project: str) -> None:
    found, ignored = loaded(tmp_path, project=f"[sandbox]\n{project}\n")
    assert found == SandboxSettings()
    assert f"sandbox.{project.split()[0]}" in ignored


def test_the_stricter_value_wins_whoever_says_it(tmp_path: Path) -> None:
    user = '[sandbox]\nnetwork = false\nmemory = 1000\nuse = ["none"]\n'
    given = {"HANDRAIL_SANDBOX_NETWORK": "true", "HANDRAIL_SANDBOX_MEMORY": "2000", "HANDRAIL_SANDBOX_USE": "docker"}
    found, _ = loaded(tmp_path, user=user, **given)
    assert (found.network, found.memory, found.use) == (False, 1000, ("none",))


def test_an_unknown_key_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"sandbox\.netwerk.*did you mean 'network'"):
        loaded(tmp_path, user="[sandbox]\nnetwerk = true\n")

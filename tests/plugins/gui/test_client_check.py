"""An environment in which pyautogui's X client has taken the place of ours."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the X client is Linux's")


@pytest.fixture(scope="module")
def overwritten(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a program that finds both packages, the one of pyautogui installed last."""
    folder = tmp_path_factory.mktemp("overwritten")
    uv = Path(sys.executable).with_name("uv")
    for package in ("python-xlib", "python3-xlib"):
        words = [uv, "pip", "install", "-q", "--python", sys.executable, "--target", folder, package]
        subprocess.run(words, check=True, capture_output=True)
    return {**os.environ, "PYTHONPATH": str(folder), "HANDRAIL_HOME": str(folder / "home")}


def _answer(code: str, environment: dict[str, str]) -> str:
    words = [sys.executable, "-c", code]
    return subprocess.run(words, env=environment, check=True, capture_output=True, text=True).stdout


CHECK = "from handrail_gui.platforms.x11.client_check import find_overwritten_client; print(find_overwritten_client())"


def test_an_overwritten_client_is_named_with_its_repair(overwritten: dict[str, str]) -> None:
    told = _answer(CHECK, overwritten)
    assert "python3-xlib, which pyautogui brings, has overwritten python-xlib" in told
    assert "pip uninstall -y python3-xlib && pip install --force-reinstall python-xlib" in told


def test_the_client_of_this_environment_is_its_own() -> None:
    assert _answer(CHECK, {**os.environ}) == "None\n"


def test_doctor_names_the_repair(overwritten: dict[str, str]) -> None:
    words = [Path(sys.executable).with_name("handrail"), "doctor", "--desktop", "private"]
    told = subprocess.run(words, env=overwritten, check=False, capture_output=True, text=True).stdout
    assert "cure: pip uninstall -y python3-xlib" in told

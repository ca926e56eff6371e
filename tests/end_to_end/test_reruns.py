"""What a test that failed starts from when it runs once more."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SHARED = """
import pytest

STARTED = []

@pytest.fixture(scope="session")
def desktop():
    STARTED.append("desktop")
    yield []
    STARTED.append("its end")

@pytest.fixture(scope="module")
def page(desktop):
    yield []

def test_leaves_something(desktop, page):
    desktop.append("a window")
    page.append("a question")
    assert (desktop, page) == (["a window"], ["a question"])
    assert STARTED != ["desktop"], "it fails the first time"

def test_comes_after_it(desktop, page):
    assert (desktop, page) == (["a window"], ["a question"]), "what passes leaves what it shares"
    assert STARTED == ["desktop", "its end", "desktop"]

@pytest.fixture
def clean(desktop):
    yield
    assert STARTED != ["desktop", "its end", "desktop"], "its end fails the first time"

def test_fails_at_its_end(desktop, clean):
    desktop.append("a window")

def test_comes_last(desktop):
    assert desktop == ["a window"]
"""


def test_a_test_that_failed_runs_again_on_new_programs(tmp_path: Path):
    (tmp_path / "pytest.ini").write_text(f"[pytest]\npythonpath = {ROOT}\n")
    (tmp_path / "conftest.py").write_text(
        "from tests.conftest import pytest_runtest_makereport, pytest_runtest_teardown\n"
    )
    (tmp_path / "test_shared.py").write_text(SHARED)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", "--reruns", "1", tmp_path]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "2 rerun" in ran.stdout

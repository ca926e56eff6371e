"""The same tests of the backend with the newest google-genai, which cannot be installed beside Google ADK."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

NEWEST = Path(sys.prefix) / "newest"
ROOT = Path(__file__).parents[3]


def run(*words: str) -> subprocess.CompletedProcess[str]:
    """Python with the newest packages before the environment's own."""
    environment = {**os.environ, "PYTHONPATH": str(NEWEST)}
    return subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, cwd=ROOT, env=environment, timeout=170
    )


@pytest.mark.timeout(180)
def test_the_backend_works_with_google_genai_3() -> None:
    version = run("-c", "import google.genai; print(google.genai.__version__)")
    assert version.stdout.startswith("3."), "If this fails, run `make setup`."
    done = run("-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/plugins/gemini_cu/test_backend.py")
    assert done.returncode == 0, done.stdout

"""The README and the tutorials, followed word by word by somebody who has a checkout, another home and nothing else."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.end_to_end.walk import Walk
from tests.gemini_server import KEY, call, say, serving

ROOT = Path(__file__).parents[2]
# Packages are built and installed, as a user does.
pytestmark = pytest.mark.timeout(600)
# What test_demo.py tries; two of them at once would be in each other's way.
DEMO = "make demo\n"


def beginner(folder: Path) -> Walk:
    """Somebody new: of this machine's person they have the program's way to packages, and the versions that setup has fetched."""
    home, notes, pins = folder / "home", folder / "notes", folder / "pins.txt"
    home.mkdir()
    notes.mkdir()
    pins.write_text("\n".join(re.findall(r"(?m)^[a-z0-9-]+==[^\\]+", (ROOT / "constraints.txt").read_text())))
    uv = [Path(sys.executable).with_name("uv"), "cache", "dir"]
    cache = subprocess.run(uv, capture_output=True, text=True, check=True).stdout.strip()
    own = {name: value for name, value in os.environ.items() if not name.startswith(("HANDRAIL_", "XDG_", "VIRTUAL_"))}
    packages = {
        "UV_CACHE_DIR": cache,
        "UV_SYSTEM_CERTS": "1",
        "UV_CONSTRAINT": str(pins),
        "UV_BUILD_CONSTRAINT": str(pins),
    }
    return Walk(notes, ROOT, {**own, **packages, "HOME": str(home)})


def test_the_readme_and_the_tutorials_lead_from_a_checkout_to_a_tool_of_ones_own(tmp_path: Path) -> None:
    with serving([call("list_directory", path=".")], [say("It is hello.txt.")]) as gemini:
        walk = beginner(tmp_path)
        walk.variables = {**walk.variables, "GEMINI_API_KEY": KEY, "GOOGLE_GEMINI_BASE_URL": gemini.url}
        for page in ("README.md", "docs/tutorial.md", "docs/plugins/tutorial.md"):
            walk.follow(ROOT / page, leave_out=(DEMO,))
    assert [request.model for request in gemini.requests] == ["gemini-3-pro-preview"] * 2
    assert gemini.requests[-1].told[0]["status"] == "success"
    assert len(walk.done) >= 14

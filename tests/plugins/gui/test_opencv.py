"""Reading the screen leaves the environment of this process as it was."""

from __future__ import annotations

import subprocess
import sys


def test_no_program_started_later_searches_other_folders_for_its_libraries() -> None:
    code = (
        "import os; before = dict(os.environ); import handrail_gui.observe.model_image, handrail_gui.platforms.x11.capture; "
        "assert dict(os.environ) == before, set(os.environ.items()) ^ set(before.items())"
    )
    subprocess.run([sys.executable, "-c", code], check=True)

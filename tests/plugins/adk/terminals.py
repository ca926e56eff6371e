"""`handrail run` at a terminal of its own."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from tests.terminals import Terminal

HANDRAIL = Path(sys.executable).with_name("handrail")


def run_at_terminal(
    folder: Path, steps: Any, *words: str, kind: bytes = b"\x1b[?62;22c", stdout: int | None = None, **environment: str
) -> Terminal:
    """A run whose model follows the script `steps`."""
    script = folder / "script.yaml"
    script.write_text(json.dumps(steps))
    command = [HANDRAIL, "run", "do it", "--model", f"script:{script}", *words]
    around = {**os.environ, "HANDRAIL_PLUGINS": "adk,files", "TERM": "xterm-256color", "COLUMNS": "150", **environment}
    return Terminal(command, folder, around, kind=kind, stdout=stdout)

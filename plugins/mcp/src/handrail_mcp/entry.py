"""What a client is told so that it can start the server."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any


def client_entry(
    *,
    desktop: str | None = "private",
    backend: str | None = None,
    mode: str | None = None,
    workspace: tuple[str, ...] = (),
    config: Path | None = None,
    command: str | None = None,
) -> dict[str, Any]:
    """The `mcpServers` entry for a client's configuration: `{"mcpServers": {"handrail": {"command": …, "args": […]}}}`.

    Files and folders are written absolute, since a client starts servers in a folder of its own. `command` defaults to the `handrail`
    beside this Python.
    """
    options = [
        *(("--desktop", desktop) if desktop else ()),
        *(("--backend", backend) if backend else ()),
        *(("--mode", mode) if mode else ()),
        *(word for folder in workspace for word in ("--workspace", str(Path(folder).absolute()))),
        *(("--config", str(config.absolute())) if config else ()),
    ]
    return {"mcpServers": {"handrail": {"command": command or _own_command(), "args": ["serve", *options]}}}


def _own_command() -> str:
    beside = Path(sys.executable).with_name("handrail.exe" if sys.platform == "win32" else "handrail")
    return str(beside) if beside.exists() else "handrail"

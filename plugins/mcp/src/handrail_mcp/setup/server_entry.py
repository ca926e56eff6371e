"""Configuration entry with which a client starts the server."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from handrail.cli import SessionOptions
    from handrail_mcp.setup.clients import ServerCommand


def client_entry(
    *,
    desktop: str | None = "private",
    backend: str | None = None,
    mode: str | None = None,
    profile: str | None = None,
    workspace: tuple[str, ...] = (),
    config: Path | None = None,
    command: str | None = None,
) -> dict[str, Any]:
    """Return the entry that most clients use: `{"mcpServers": {"handrail": {"command": …, "args": […]}}}`.

    Paths are absolute, since a client starts servers in a folder of its own. `command` defaults to the `handrail` of
    this Python environment; raises `HandrailError` if there is none.
    """
    from handrail.cli import SessionOptions
    from handrail_mcp.setup.clients import GENERIC_CLIENT

    server = build_own_server(SessionOptions(desktop, backend, mode, profile, workspace, config), command=command)
    return {GENERIC_CLIENT.key: {"handrail": GENERIC_CLIENT.entry("handrail", server)}}


def build_own_server(
    choices: SessionOptions,
    *,
    command: str | None = None,
    environment: Mapping[str, str] | None = None,
    passed: tuple[str, ...] = (),
) -> ServerCommand:
    """Build the command with which a client starts `handrail serve` with these options.

    `environment` holds variables to set, `passed` the names of variables to pass on.
    """
    from handrail_mcp.setup.clients import ServerCommand

    options = [
        *(("--desktop", choices.desktop) if choices.desktop else ()),
        *(("--backend", choices.backend) if choices.backend else ()),
        *(("--mode", choices.mode) if choices.mode else ()),
        *(("--profile", choices.profile) if choices.profile else ()),
        *(word for folder in choices.workspace for word in ("--workspace", str(Path(folder).absolute()))),
        *(("--config", str(choices.config.absolute())) if choices.config else ()),
    ]
    return ServerCommand(command or find_own_command(), ("serve", *options), environment or {}, passed)


def find_own_command() -> str:
    """Return the absolute path of the running `handrail`, because clients have their own PATH.

    Raises `HandrailError` if it is not found.
    """
    import shutil

    from handrail.errors import HandrailError

    beside = Path(sys.executable).with_name("handrail.exe" if sys.platform == "win32" else "handrail")
    started = Path(sys.argv[0])
    for found in (beside, started):
        if found.stem == "handrail" and found.is_file():
            return str(found.absolute())
    if found := shutil.which("handrail"):
        return str(Path(found).absolute())
    raise HandrailError(
        f"there is no program handrail beside {sys.executable}",
        hint="install handrail-core into an environment of its own, and call its handrail",
    )

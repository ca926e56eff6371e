"""Registration hooks of this plugin; lightweight because it is imported at every startup."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from handrail import hookimpl

if TYPE_CHECKING:
    from handrail import Tool
    from handrail_system.config import SystemConfig


@hookimpl
def handrail_register_tools() -> Iterable[Tool]:
    """Return `process_info`, `system_info` and `download_file`."""
    from handrail_system.download import download_file
    from handrail_system.machine_info import system_info
    from handrail_system.processes import process_info

    return [process_info, system_info, download_file]


@hookimpl
def handrail_register_config() -> type[SystemConfig]:
    """Return the schema of `[plugins.system]`."""
    from handrail_system.config import SystemConfig

    return SystemConfig

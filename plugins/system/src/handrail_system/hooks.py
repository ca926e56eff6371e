"""What this plugin registers. Light: it is imported at every start."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from handrail import hookimpl

if TYPE_CHECKING:
    from handrail import Tool


@hookimpl
def handrail_register_tools() -> Iterable[Tool]:
    """`process_info`, `system_info`."""
    from handrail_system.machine import system_info
    from handrail_system.processes import process_info

    return [process_info, system_info]

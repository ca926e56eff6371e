"""What this plugin registers. Light: it is imported at every start."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from handrail import hookimpl

if TYPE_CHECKING:
    from handrail import Tool


@hookimpl
def handrail_register_tools() -> Iterable[Tool]:
    """`read_file`."""
    from handrail_files.read import read_file

    return [read_file]

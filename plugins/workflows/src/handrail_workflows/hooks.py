"""What this plugin registers. Light: it is imported at every start."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from handrail import hookimpl

if TYPE_CHECKING:
    from handrail import Tool


@hookimpl
def handrail_register_tools() -> Iterable[Tool]:
    """File dialogs."""
    from handrail_workflows.dialogs import open_dialog, save_dialog

    return [save_dialog, open_dialog]

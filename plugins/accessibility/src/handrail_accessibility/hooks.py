"""What this plugin registers. Light: it is imported at every start."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from handrail import hookimpl

if TYPE_CHECKING:
    from handrail import Service, ServiceContext, Tool, VisionBackend
    from handrail_accessibility.atspi.service import AtSpiService
    from handrail_accessibility.native.service import NativeTreeService


async def open_accessibility(context: ServiceContext) -> AtSpiService | NativeTreeService:
    """The accessibility tree of one desktop."""
    if sys.platform != "linux":
        from handrail_accessibility.native.service import open_native_tree

        return open_native_tree(context)
    # dbus-fast takes a tenth of a second to import.
    from handrail_accessibility.atspi.service import AtSpiService

    return AtSpiService(context.desktop, context.service)


@hookimpl
def handrail_register_tools() -> list[Tool]:
    """The tools that read and use the tree."""
    from handrail_accessibility.tools import execute_accessible, get_ui_context

    return [get_ui_context, execute_accessible]


@hookimpl
def handrail_register_services() -> list[Service]:
    """The tree itself, for these tools and for other plugins."""
    from handrail import Service
    from handrail_accessibility.backend import explain_unavailability

    return [Service("accessibility", open_accessibility, "desktop", explain_unavailability)]


@hookimpl
def handrail_register_vision_backends() -> list[type[VisionBackend]]:
    """The backend that sees by the tree."""
    from handrail_accessibility.backend import AccessibilityBackend

    return [AccessibilityBackend]

"""Registration hooks of this plugin; lightweight because it is imported at every startup."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from handrail import hookimpl

if TYPE_CHECKING:
    from handrail import Service, ServiceContext, Tool, VisionBackend
    from handrail_accessibility.atspi.service import AtSpiService
    from handrail_accessibility.native.service import NativeTreeService
    from handrail_accessibility.native.tree import TreeProvider


async def open_accessibility(context: ServiceContext) -> AtSpiService | NativeTreeService:
    """Open the accessibility tree of one desktop."""
    if sys.platform != "linux":
        from handrail.desktop.thread_worker import ThreadWorker
        from handrail_accessibility.native.service import NativeTreeService

        worker = ThreadWorker("a program's tree", open_tree_provider, lambda provider: provider.end())
        return NativeTreeService(worker, context.service)
    # dbus-fast takes a tenth of a second to import.
    from handrail_accessibility.atspi.service import AtSpiService

    return AtSpiService(context.desktop, context.service)


def open_tree_provider() -> TreeProvider:
    """Open the tree of this platform, for the calling thread; `ToolUnavailable` where there is none, or no permission."""
    if sys.platform == "win32":
        from handrail_accessibility.uia.client import open_uia_provider

        return open_uia_provider()
    from handrail_accessibility.ax.provider import open_ax_provider

    return open_ax_provider()


@hookimpl
def handrail_register_tools() -> list[Tool]:
    """Return the tools that read and use the tree."""
    from handrail_accessibility.tools import execute_accessible, get_ui_context

    return [get_ui_context, execute_accessible]


@hookimpl
def handrail_register_services() -> list[Service]:
    """Return the service for the tree, used by these tools and by other plugins."""
    from handrail import Service
    from handrail_accessibility.backend import explain_unavailability

    return [Service("accessibility", open_accessibility, "desktop", explain_unavailability)]


@hookimpl
def handrail_register_vision_backends() -> list[type[VisionBackend]]:
    """Return the vision backend that reads the tree."""
    from handrail_accessibility.backend import AccessibilityBackend

    return [AccessibilityBackend]

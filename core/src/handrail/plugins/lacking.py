"""What to say of a tool, command or backend whose plugin is not here."""

from __future__ import annotations

from handrail.plugins.loading import installed
from handrail.plugins.supplied import Kind, install, supplier


def lacking(kind: Kind, name: str) -> tuple[str, str] | None:
    """What to say of a name that is not here since its plugin is not, and the cure; None when no plugin of this project has it."""
    if (plugin := supplier(kind, name)) is None:
        return None
    if any(found.name == plugin for found in installed()):
        return f"; the plugin {plugin!r} supplies it, and is not loaded", "`handrail plugins` says why"
    return f"; the plugin {plugin!r} supplies it, and is not installed", install(plugin)

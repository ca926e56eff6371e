"""What to say of a tool, command or backend whose plugin is not here."""

from __future__ import annotations

from handrail.plugins.known_plugins import SuppliedKind, find_supplier, format_install_hint
from handrail.plugins.loader import find_installed_plugins


def describe_missing_plugin(kind: SuppliedKind, name: str) -> tuple[str, str] | None:
    """What to say of a name that is not here since its plugin is not, and the cure; None when no plugin of this project has it."""
    if (plugin := find_supplier(kind, name)) is None:
        return None
    if any(found.name == plugin for found in find_installed_plugins()):
        return f"; the plugin {plugin!r} supplies it, and is not loaded", "`handrail plugins` says why"
    return f"; the plugin {plugin!r} supplies it, and is not installed", format_install_hint(plugin)

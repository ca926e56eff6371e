"""Messages about a tool, command or backend whose plugin is missing."""

from __future__ import annotations

from handrail.plugins.known_plugins import SuppliedKind, find_supplier, format_install_hint
from handrail.plugins.loader import find_installed_plugins


def describe_missing_plugin(kind: SuppliedKind, name: str) -> tuple[str, str] | None:
    """Return a message for a name whose plugin is missing, and the remedy.

    None if no plugin of this project supplies the name.
    """
    if (plugin := find_supplier(kind, name)) is None:
        return None
    if any(found.name == plugin for found in find_installed_plugins()):
        return f"; the plugin {plugin!r} supplies it, and is not loaded", "`handrail plugins` says why"
    return f"; the plugin {plugin!r} supplies it, and is not installed", format_install_hint(plugin)

"""Plugins."""

from __future__ import annotations

from tests.end_to_end.troubles.place import Met, Place


def a_required_plugin_is_not_installed(place: Place) -> Met:
    """A plugin that the configuration requires is not installed."""
    return place.handrail("tools", config='[plugins]\nrequire = ["tesseract"]\n')


def a_plugin_is_made_for_another_core(place: Place) -> Met:
    """A plugin is made for another version of the core."""
    site = place.plugin("old", "handrail-old", "1.0", requires="handrail-core>=0.0.1,<0.0.2")
    return place.handrail("tools", config='[plugins]\nrequire = ["old"]\n', plugins="old", PYTHONPATH=site)


def a_plugin_needs_a_newer_core(place: Place) -> Met:
    """A plugin needs a newer core."""
    site = place.plugin("new", "handrail-new", "1.0", requires="handrail-core>=99")
    return place.handrail("tools", config='[plugins]\nrequire = ["new"]\n', plugins="new", PYTHONPATH=site)


def a_plugin_cannot_be_imported(place: Place) -> Met:
    """A plugin cannot be imported."""
    site = place.plugin("broken", "handrail-broken", "1.0", code="import a_package_that_is_not_here\n")
    return place.handrail("tools", config='[plugins]\nrequire = ["broken"]\n', plugins="broken", PYTHONPATH=site)


def a_plugin_has_a_hook_that_is_none(place: Place) -> Met:
    """A plugin's hook is misspelled."""
    code = "from handrail import hookimpl\n\n\n@hookimpl\ndef handrail_register_tool():\n    return []\n"
    site = place.plugin("slip", "handrail-slip", "1.0", code=code)
    return place.handrail("tools", config='[plugins]\nrequire = ["slip"]\n', plugins="slip", PYTHONPATH=site)


def two_copies_of_the_core(place: Place) -> Met:
    """Two versions of Handrail are in one environment."""
    site = place.distribution("handrail-core", "0.0.1")
    return place.handrail("tools", config='[plugins]\nrequire = ["files"]\n', plugins="files", PYTHONPATH=site)


def a_plugin_is_named_that_is_not_installed(place: Place) -> Met:
    """HANDRAIL_PLUGINS names a plugin that is not installed."""
    return place.handrail("tools", HANDRAIL_PLUGINS="fils")

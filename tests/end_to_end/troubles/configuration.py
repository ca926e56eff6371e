"""Configuration."""

from __future__ import annotations

from tests.end_to_end.troubles.place import Met, Place


def a_key_is_misspelled(place: Place) -> Met:
    """A key is misspelled."""
    return place.handrail("config", config='modee = "plan"\n')


def a_value_is_misspelled(place: Place) -> Met:
    """A value is misspelled."""
    return place.handrail("config", config='mode = "defalt"\n')


def a_value_is_of_another_type(place: Place) -> Met:
    """A value has the wrong type."""
    return place.handrail("config", config='workspace = "."\n')


def the_file_is_no_toml(place: Place) -> Met:
    """The file is not TOML."""
    return place.handrail("config", config='mode = "plan\n')


def a_key_of_a_plugin_is_misspelled(place: Place) -> Met:
    """A key of a plugin is misspelled."""
    return place.handrail("tools", config="[plugins.cli]\noutput_limmit = 8\n", plugins="cli")


def a_table_is_of_no_plugin(place: Place) -> Met:
    """A table belongs to a plugin that is not installed."""
    return place.handrail("tools", config='[plugins.clii]\nprompt = "x"\n', plugins="cli")


def a_backend_is_misspelled(place: Place) -> Met:
    """A vision backend is misspelled."""
    return place.handrail("tools", config='backend = "omnparser"\n', plugins="vision_omniparser,vision_ocr")


def a_rule_names_no_tool(place: Place) -> Met:
    """A rule names a tool that does not exist."""
    return place.handrail("tools", config='[[policy.rules]]\ntool = "execute_cl"\ndecision = "deny"\n', plugins="cli")


def the_file_is_not_there(place: Place) -> Met:
    """The configuration file does not exist."""
    return place.handrail("config", "--config", "mine.toml")


def the_file_cannot_be_read(place: Place) -> Met:
    """The configuration file cannot be read."""
    place.file("handrail.toml", "").chmod(0)
    # Root may read all; a user in a namespace may not, whoever runs this.
    user = (
        "bwrap",
        "--dev-bind",
        "/",
        "/",
        "--unshare-user",
        "--uid",
        "1000",
        "--gid",
        "1000",
        "--cap-drop",
        "ALL",
        "--",
    )
    return place.handrail("config", inside=user)


def a_variable_is_misspelled(place: Place) -> Met:
    """An environment variable is misspelled."""
    return place.handrail("config", HANDRAIL_MOD="plan")


def the_folder_is_not_trusted(place: Place) -> Met:
    """A project's configuration is ignored.

    A project's `handrail.toml` cannot relax security settings until a person trusts its folder, because the author of the project wrote the file.
    """
    place.file("handrail.toml", 'mode = "permissive"\n')
    return place.handrail("call", "get_action_history")

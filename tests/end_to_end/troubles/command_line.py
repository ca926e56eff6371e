"""The command line."""

from __future__ import annotations

from tests.end_to_end.troubles.place import Met, Place


def a_command_is_misspelled(place: Place) -> Met:
    """A command is misspelled."""
    return place.handrail("sesion")


def a_plugin_is_not_there_for_a_command(place: Place) -> Met:
    """A command comes from a plugin that is not loaded."""
    return place.handrail("serve", plugins="files")


def an_option_is_misspelled(place: Place) -> Met:
    """An option is misspelled."""
    return place.handrail("call", "wait", "--jsn")


def a_name_is_left_out(place: Place) -> Met:
    """An argument of a command is missing."""
    return place.handrail("call")


def arguments_are_no_json(place: Place) -> Met:
    """Arguments of a tool are not JSON."""
    return place.handrail("call", "wait", "--args", "{seconds: 1}")


def a_tool_is_misspelled(place: Place) -> Met:
    """A tool is misspelled."""
    return place.handrail("call", "read_fil", plugins="files")


def a_tool_is_not_there(place: Place) -> Met:
    """A tool comes from a plugin that is not loaded."""
    return place.handrail("call", "read_file", plugins="cli")


def an_argument_is_misspelled(place: Place) -> Met:
    """An argument of a tool is misspelled."""
    return place.handrail("call", "read_file", "--args", '{"path": "notes.txt"}', plugins="files")


def nobody_can_be_asked(place: Place) -> Met:
    """Nobody can answer the approval prompt."""
    given = '{"file_path": ".envrc", "content": "hello"}'
    return place.handrail("call", "write_file", "--args", given, plugins="files")

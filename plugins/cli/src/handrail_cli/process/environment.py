"""Environment variables of commands: which desktop they use, and that no user is available to answer prompts."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from handrail import Desktop
from handrail.api.desktop import remove_screen_variables
from handrail_cli.shell.bash.variable_rules import is_tame_variable

# What git and others are told when they want an editor: it fails, and says what to do. Where words are only split, it fails all the same.
# What it says stands in no quotes of its own: it holds nothing that a shell takes for more than text.
NO_EDITOR = (
    "sh -c 'echo handrail: there is no editor here. Give the text as an option, as in git commit -m TEXT. GIT_EDITOR=true keeps it as it is."
    " >&2; exit 1' editor"
)
# Programs that would wait for a person are told that there is none. A terminal that was asked for is for such programs.
UNATTENDED_VARIABLES: Mapping[str, str] = {
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "MANPAGER": "cat",
    "SYSTEMD_PAGER": "cat",
    "EDITOR": NO_EDITOR,
    "VISUAL": NO_EDITOR,
    "GIT_EDITOR": NO_EDITOR,
    "GIT_SEQUENCE_EDITOR": NO_EDITOR,
    "GIT_TERMINAL_PROMPT": "0",
    "GCM_INTERACTIVE": "never",
    "GH_PROMPT_DISABLED": "1",
    "SSH_ASKPASS_REQUIRE": "never",
    "DEBIAN_FRONTEND": "noninteractive",
}
# Variables that a program needs to inspect the system: who the user is, how to write, and where the user's services and screens are.
INSPECTING_VARIABLES = re.compile(
    r"HOME|USER|LOGNAME|SHELL|LANG|LANGUAGE|LC_[A-Z]+|TZ|NO_COLOR|XDG_RUNTIME_DIR|XDG_SESSION_ID|DBUS_SESSION_BUS_ADDRESS"
    r"|DISPLAY|XAUTHORITY|WAYLAND_DISPLAY"
)
SYSTEM_FOLDERS = ("/usr/", "/bin", "/sbin", "/nix/store/", "/gnu/store/", "/run/current-system/")
# What programs are told that their terminal is like.
TERMINAL_TYPE = "xterm-256color"
# git asks with it where it may not ask in a terminal.
ASKPASS_VARIABLE = "SSH_ASKPASS"


def make_unattended(environment: dict[str, str], *, unset: frozenset[str] = frozenset()) -> dict[str, str]:
    """Set up `environment` such that pagers, editors and git do not prompt the user, and return it.

    Variables that an earlier command has `unset` are removed.
    """
    environment.pop(ASKPASS_VARIABLE, None)
    environment.update(UNATTENDED_VARIABLES)
    for name in unset & UNATTENDED_VARIABLES.keys():
        del environment[name]
    return environment


def create_system_environment(host: Mapping[str, str], session: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a program that inspects the system: what leads it to this user's services, and tame variables of the session.

    Programs are looked for in directories of the system only.
    """
    found = {name: value for name, value in host.items() if INSPECTING_VARIABLES.fullmatch(name)}
    folders = [folder for folder in host.get("PATH", "").split(":") if folder.startswith(SYSTEM_FOLDERS)]
    given = {name: value for name, value in session.items() if is_tame_variable(name, value)}
    # Such programs obey no settings of the user, and create none (`top` makes a directory for its own).
    own = {"XDG_CONFIG_HOME": "/nonexistent", "PATH": ":".join(folders) or os.defpath}
    return {**found, **UNATTENDED_VARIABLES, **given, **own}


def add_terminal(environment: dict[str, str]) -> dict[str, str]:
    """Return the environment for a command in a terminal, with the user's own pager and editor."""
    return {**environment, "TERM": TERMINAL_TYPE}


def point_to_desktop(environment: dict[str, str], desktop: Desktop | None) -> dict[str, str]:
    """Return the environment with the variables that direct programs to `desktop`; None means no desktop."""
    if desktop is None or desktop.private:
        environment = remove_screen_variables(environment)
    if desktop is not None:
        environment.update(desktop.environment)
    return environment

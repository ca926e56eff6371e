"""Stop switches and started desktops, without configuration and plugins.

The user's commands that need them cannot fail because of a broken configuration or plugin.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from handrail.cli._common import create_completion

if TYPE_CHECKING:
    from pathlib import Path

    from handrail.desktop.stop_switches import StopSwitches

desktop_option = click.option(
    "--desktop",
    metavar="NAME",
    help="Only this one: current, private (every private one), or a started one's name.",
    shell_complete=create_completion("desktops"),
)


def open_stop_switches() -> StopSwitches:
    """Open the stop switches of this user."""
    from handrail.desktop.stop_switches import StopSwitches

    return StopSwitches(_state_folder() / "stops")


def list_started_desktops() -> list[str]:
    """Return the names of the desktops that `handrail desktop start` left running."""
    from handrail.workers.registry import DESKTOP_KIND, ProcessRegistry

    return [running.name for running in ProcessRegistry(_state_folder()).all(DESKTOP_KIND) if running.alive]


def _state_folder() -> Path:
    from handrail.fs.app_dirs import AppDirs

    return AppDirs.of(os.environ).state

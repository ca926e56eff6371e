"""What a person's commands know without configuration and plugins, so that they do not fail: stop switches, and started desktops."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from handrail.commands._common import completed_by

if TYPE_CHECKING:
    from pathlib import Path

    from handrail.desktops.stops import Stops

desktop_option = click.option(
    "--desktop",
    metavar="NAME",
    help="Only this one: current, private (every private one), or a started one's name.",
    shell_complete=completed_by("desktops"),
)


def switches() -> Stops:
    """The switches of this user."""
    from handrail.desktops.stops import Stops

    return Stops(_state() / "stops")


def started() -> list[str]:
    """The names of the desktops that `handrail desktop start` left running."""
    from handrail.running.ledger import DESKTOP, Ledger

    return [running.name for running in Ledger(_state()).all(DESKTOP) if running.alive]


def _state() -> Path:
    from handrail.config.places import Places

    return Places.of(os.environ).state

"""The stop switch of `handrail stop` and `handrail resume`. It reads no configuration and loads no plugin: it must not fail."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from handrail.commands._common import completed_by

if TYPE_CHECKING:
    from handrail.desktops.stops import Stops

desktop_option = click.option(
    "--desktop",
    metavar="NAME",
    help="Only this one: current, private (every private one), or a started one's name.",
    shell_complete=completed_by("desktops"),
)


def switches() -> Stops:
    """The switches of this user."""
    from handrail.config.places import Places
    from handrail.desktops.stops import Stops

    return Stops(Places.of(os.environ).state / "stops")

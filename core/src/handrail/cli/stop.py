"""`handrail stop`"""

from __future__ import annotations

import click

from handrail.cli._stop_switches import desktop_option, list_started_desktops, open_stop_switches
from handrail.errors import DesktopError


@click.command("stop")
@desktop_option
def command(desktop: str | None) -> None:
    """Stop every agent at once, until `resume`.

    Calls that run are cancelled within a second; until `handrail resume` nothing but reading is done, in any process of yours.

    Example: handrail stop
    """
    open_stop_switches().engage(desktop)
    # On before anything is looked at: whatever comes of that, it stops what bears the name.
    if desktop is not None:
        _check_desktop_exists(desktop)
    click.echo(f"stopped: {desktop or 'every desktop'}")


def _check_desktop_exists(name: str) -> None:
    """`DesktopError` where no desktop bears the name: a slip must not be taken for a stop."""
    from handrail.text import format_suggestion

    there = ["current", "private", *list_started_desktops()]
    # The switch of one private desktop, as `Desktop.switch` names it, is told by doctor and the console.
    if name not in there and not name.startswith("private."):
        raise DesktopError(
            f"no desktop {name!r} is running{format_suggestion(name, there)}; one that is started with that name will be stopped",
            hint=f"`handrail stop` stops every desktop; `handrail resume --desktop {name}` takes this back",
        )

"""`handrail stop`"""

from __future__ import annotations

import click

from handrail.commands._stops import desktop_option, switches


@click.command("stop")
@desktop_option
def command(desktop: str | None) -> None:
    """Stop every agent at once, until `resume`.

    Calls that run are cancelled within a second; until `handrail resume` nothing but reading is done, in any process of yours.

    Example: handrail stop
    """
    switches().engage(desktop)
    click.echo(f"stopped: {desktop or 'every desktop'}")

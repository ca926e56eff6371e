"""`handrail resume`"""

from __future__ import annotations

import click

from handrail.cli._stop_switches import desktop_option, open_stop_switches


@click.command("resume")
@desktop_option
def command(desktop: str | None) -> None:
    """Let agents go on after `stop`.

    Example: handrail resume
    """
    stops = open_stop_switches()
    names = stops.all() if desktop is None else [desktop]
    released = [name for name in names if stops.release(name)]
    click.echo("resumed" if released else "nothing was stopped")
    if desktop is not None and stops.all():
        click.echo(f"Note: still stopped: {', '.join(stops.all())}; `handrail resume` alone ends that", err=True)

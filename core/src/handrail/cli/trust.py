"""`handrail trust`"""

from __future__ import annotations

import os

import click


@click.command("trust")
@click.argument("folder", required=False, type=click.Path())
@click.option("--revoke", is_flag=True, help="Trust it no longer.")
@click.option("--list", "listing", is_flag=True, help="Print the folders that are trusted.")
def command(folder: str | None, revoke: bool, listing: bool) -> None:
    """Let a folder's handrail.toml loosen things, too.

    FOLDER is by default the one whose handrail.toml counts here. Read that file first: what is in it now is trusted, and
    nothing that is written into it later.

    Example: handrail trust ~/work/shop
    """
    from pathlib import Path

    from handrail.cli._common import get_current_folder
    from handrail.config import trust
    from handrail.config.loader import find_project_folder
    from handrail.fs.app_dirs import AppDirs

    places = AppDirs.of(os.environ)
    if listing:
        for known in trust.list_trusted_folders(places):
            click.echo(known)
        return
    chosen = Path(folder).expanduser() if folder else find_project_folder(get_current_folder(), environment=os.environ)
    if not revoke:
        real = trust.trust_folder(chosen, places=places)
        click.echo(f"trusted: {real}")
        if not os.path.lexists(real / trust.PROJECT_FILE):
            click.echo(
                f"Note: {trust.PROJECT_FILE} is not there; once you have made it, trust the folder again", err=True
            )
    elif trust.untrust_folder(chosen, places=places):
        click.echo(f"no longer trusted: {chosen.resolve()}")
    else:
        click.echo(f"was not trusted: {chosen.resolve()}")

"""`handrail uninstall`"""

from __future__ import annotations

from collections.abc import Sequence

import click

from handrail.commands._common import completed_by


@click.command("uninstall")
@click.argument("packages", nargs=-1, required=True, metavar="PKG...", shell_complete=completed_by("plugins"))
def command(packages: Sequence[str]) -> None:
    """Remove plugins from the environment that runs this.

    PKG is a package's name, or a plugin's as `handrail plugins` prints it.

    Example: handrail uninstall handrail-vision-ocr
    """
    from handrail.commands import _packages

    gone = _packages.uninstall([_packages.distribution_of(package) for package in packages])
    for plugin in gone:
        click.echo(f"removed the plugin {plugin}")
    if not gone:
        click.echo("no plugin was removed")

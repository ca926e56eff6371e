"""`handrail uninstall`"""

from __future__ import annotations

from collections.abc import Sequence

import click


@click.command("uninstall")
@click.argument("packages", nargs=-1, required=True, metavar="PKG...")
def command(packages: Sequence[str]) -> None:
    """Remove plugins from the environment that runs this.

    PKG is a package's name, or a plugin's as `handrail plugins` prints it.

    Example: handrail uninstall handrail-vision-ocr
    """
    from handrail.commands._packages import change, distribution_of

    _, gone = change("uninstall", [distribution_of(package) for package in packages])
    for plugin in gone:
        click.echo(f"removed the plugin {plugin}")
    if not gone:
        click.echo("no plugin was removed")

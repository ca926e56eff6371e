"""`handrail install`"""

from __future__ import annotations

from collections.abc import Sequence

import click


@click.command("install")
@click.argument("packages", nargs=-1, required=True, metavar="PKG...")
def command(packages: Sequence[str]) -> None:
    """Install plugins into the environment that runs this.

    PKG is what pip takes: a name, a version range, a folder, a wheel.

    Example: handrail install handrail-vision-ocr
    """
    from handrail.commands._packages import change

    appeared, _ = change("install", packages)
    for plugin in appeared:
        click.echo(f"installed the plugin {plugin}; see `handrail plugins`")
    if not appeared:
        click.echo("installed; no new plugin came with it")

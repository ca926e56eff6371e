"""`handrail install`"""

from __future__ import annotations

from collections.abc import Sequence

import click


@click.command("install")
@click.argument("packages", nargs=-1, metavar="[PKG...]")
@click.option("-U", "--upgrade", is_flag=True, help="Bring PKG to the newest version; without PKG, all of Handrail.")
@click.option("-e", "--editable", is_flag=True, help="PKG is a folder, used as it stands: changes in it count at once.")
def command(packages: Sequence[str], upgrade: bool, editable: bool) -> None:
    """Install plugins into the environment that runs this.

    PKG is what pip takes: a name, a version range, a folder, a wheel. No plugin goes in an upgrade.

    Example: handrail install handrail-vision-ocr
    """
    from handrail.cli import _package_manager

    if upgrade and editable:
        raise click.UsageError("--editable and --upgrade exclude each other")
    if upgrade:
        upgraded = _package_manager.upgrade_packages(
            [_package_manager.find_distribution(package) for package in packages]
        )
        click.echo("\n".join(f"upgraded {each}" for each in upgraded) or "everything is up to date")
        return
    if not packages:
        raise click.UsageError("name what to install, or give --upgrade")
    appeared = _package_manager.install_packages(packages, editable=editable)
    for plugin in appeared:
        click.echo(f"installed the plugin {plugin}; see `handrail plugins`")
    if not appeared:
        click.echo("installed; no new plugin came with it")

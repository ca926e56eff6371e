"""`handrail uninstall`"""

from __future__ import annotations

from collections.abc import Sequence

import click

from handrail.cli._common import create_completion


@click.command("uninstall")
@click.argument("packages", nargs=-1, metavar="[PKG...]", shell_complete=create_completion("plugins"))
@click.option("-y", "--yes", is_flag=True, help="Without PKG: end what runs, and do not ask.")
@click.option("--dry-run", is_flag=True, help="Without PKG: say what there is, and end nothing.")
def command(packages: Sequence[str], yes: bool, dry_run: bool) -> None:
    """Remove plugins, or end all that runs before Handrail goes.

    PKG is a plugin's name as `handrail plugins` prints it, or its package's; it is removed from the environment that
    runs this. Anything that is not a plugin is refused, and then nothing is removed.

    Without PKG, what was started from this environment and still runs is shown, and ended with all its descendants:
    sessions, servers, consoles, private desktops, commands that were left running. Then the remaining parts are listed
    with how to remove each: entries in files of MCP clients, directories with their sizes, the program itself.

    Example: handrail uninstall --dry-run
    """
    if packages:
        if yes or dry_run:
            raise click.UsageError(
                "--yes and --dry-run go without PKG: leave them out to remove the plugin, which asks nothing, "
                "or leave PKG out to end what runs"
            )
        _remove_plugins(packages)
        return
    from handrail.cli._leftovers import report_and_end_leftovers

    report_and_end_leftovers(ask=not yes, dry=dry_run)


def _remove_plugins(packages: Sequence[str]) -> None:
    from handrail.cli import _package_manager

    gone = _package_manager.uninstall_plugins(packages)
    for plugin in gone:
        click.echo(f"removed the plugin {plugin}")
    if not gone:
        click.echo("no plugin was removed")

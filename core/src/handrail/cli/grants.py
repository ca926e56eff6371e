"""`handrail grants`"""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from handrail.cli._common import escape_for_terminal, json_option, print_json

if TYPE_CHECKING:
    from handrail.policy.grant_store import GrantStore
    from handrail.policy.grants import Grant


@click.group("grants")
def command() -> None:
    """Show and take back what was allowed for always."""


@command.command("list")
@json_option
def list_grants_command(as_json: bool) -> None:
    """Print the grants that hold.

    Each holds in its workspace, and in the mode it was given in and looser ones. Running sessions follow the list.

    Example: handrail grants list
    """
    grants = _open_grant_store().read()
    if as_json:
        print_json([_grant_wire(grant) for grant in grants])
        return
    for grant in grants:
        until = f"until {grant.expires:%Y-%m-%d}" if grant.expires else "for good"
        click.echo(escape_for_terminal(f"{grant.id}  {grant.option.label}"))
        click.echo(
            escape_for_terminal(
                f"           {grant.option.tool} in {', '.join(grant.workspace)} (mode {grant.mode}), since "
                f"{grant.created:%Y-%m-%d} {until}, used {grant.uses} times"
            )
        )
    if not grants:
        click.echo("there are no grants", err=True)


@command.command("revoke")
@click.argument("id", required=False)
@click.option("--all", "everything", is_flag=True, help="Take back all of them.")
@click.pass_context
def revoke_command(context: click.Context, id: str | None, everything: bool) -> None:
    """Take back a grant by its ID, or all.

    Example: handrail grants revoke g1f0c22ab
    """
    if (id is None) != everything:
        raise click.UsageError("give the ID of one grant, or --all")
    gone = _open_grant_store().revoke(id)
    for grant in gone:
        click.echo(escape_for_terminal(f"revoked: {grant.id}  {grant.option.label}"))
    if not gone and id is not None:
        click.echo(f"there is no grant {id!r}; see `handrail grants list`", err=True)
        context.exit(1)


def _open_grant_store() -> GrantStore:
    from handrail.fs.app_dirs import AppDirs
    from handrail.policy.grant_store import GrantStore

    return GrantStore.of(AppDirs.of(os.environ))


def _grant_wire(grant: Grant) -> dict[str, Any]:
    option = asdict(grant.option)
    return {
        "id": grant.id,
        "label": option.pop("label"),
        **option,
        "mode": grant.mode,
        "workspace": grant.workspace,
        "cwd": grant.cwd,
        "created": grant.created.isoformat(),
        "expires": grant.expires.isoformat() if grant.expires else None,
        "uses": grant.uses,
    }

"""`handrail memory`"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from handrail_session.shelves import Scope, Shelf

SCOPE = click.option(
    "--scope",
    type=click.Choice(["user", "project"]),
    default="user",
    help="The user's facts (default), or this folder's.",
)


@click.group("memory")
def command() -> None:
    """Show and change what agents remember."""


@command.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def listing(as_json: bool) -> None:
    """Print what is remembered of the user, and of the project in this folder.

    Example: handrail memory list
    """
    from handrail.commands import print_json
    from handrail.words import visible

    shelves = _shelves()
    if as_json:
        print_json([{"scope": s.scope, "file": str(s.file), "facts": s.facts()} for s in shelves])
        return
    for shelf in shelves:
        click.echo(f"{shelf.scope}: {shelf.file}")
        for number, fact in enumerate(shelf.facts(), 1):
            click.echo(f"  {number}. {visible(fact)}")


@command.command("edit")
@SCOPE
def edit(scope: Scope) -> None:
    """Open the facts in your editor. Each item of a list is one.

    Example: handrail memory edit --scope project
    """
    shelf = _shelf(scope)
    shelf.begin()
    click.edit(filename=str(shelf.file))


@command.command("forget")
@click.argument("number", type=int)
@SCOPE
def forget(number: int, scope: Scope) -> None:
    """Take out the fact with the NUMBER that `list` shows.

    Example: handrail memory forget 3
    """
    from handrail.words import visible

    click.echo(f"forgotten: {visible(_shelf(scope).forget(number))}")


def _shelf(scope: Scope) -> Shelf:
    from handrail import HandrailError

    for shelf in _shelves():
        if shelf.scope == scope:
            return shelf
    raise HandrailError(f"there is no {scope} here", hint="`workspace` names no folder")


def _shelves() -> tuple[Shelf, ...]:
    from pathlib import Path

    from handrail.commands import Choices, read_config
    from handrail.config.places import Places
    from handrail_session.shelves import shelves

    roots = read_config(Choices()).settings.workspace
    workspace = [(Path.cwd() / Path(root).expanduser()).resolve() for root in roots]
    return shelves(Places.of(os.environ).data, workspace)

"""`handrail memory`"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from handrail_session.memory_store import FactFile, MemoryScope

SCOPE_OPTION = click.option(
    "--scope",
    type=click.Choice(["user", "project"]),
    default="user",
    help="The user's facts (default), or this folder's.",
)


@click.group("memory")
def memory_group() -> None:
    """Show and change what agents remember."""


@memory_group.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_memories_command(as_json: bool) -> None:
    """Print what is remembered of the user, and of the project in this folder.

    Example: handrail memory list
    """
    from handrail.cli import print_json
    from handrail.text import make_visible

    shelves = _open_fact_files()
    if as_json:
        print_json([{"scope": s.scope, "file": str(s.file), "facts": s.facts()} for s in shelves])
        return
    for shelf in shelves:
        click.echo(f"{shelf.scope}: {shelf.file}")
        for number, fact in enumerate(shelf.facts(), 1):
            click.echo(f"  {number}. {make_visible(fact)}")


@memory_group.command("edit")
@SCOPE_OPTION
def edit_command(scope: MemoryScope) -> None:
    """Open the facts in your editor. Each item of a list is one.

    Example: handrail memory edit --scope project
    """
    shelf = _find_fact_file(scope)
    shelf.begin()
    click.edit(filename=str(shelf.file))


@memory_group.command("forget")
@click.argument("number", type=int)
@SCOPE_OPTION
def forget_command(number: int, scope: MemoryScope) -> None:
    """Take out the fact with the NUMBER that `list` shows.

    Example: handrail memory forget 3
    """
    from handrail.text import make_visible

    click.echo(f"forgotten: {make_visible(_find_fact_file(scope).forget(number))}")


def _find_fact_file(scope: MemoryScope) -> FactFile:
    from handrail import HandrailError

    for shelf in _open_fact_files():
        if shelf.scope == scope:
            return shelf
    raise HandrailError(f"there is no {scope} here", hint="`workspace` names no folder")


def _open_fact_files() -> tuple[FactFile, ...]:
    from pathlib import Path

    from handrail.cli import SessionOptions, read_config
    from handrail.fs.app_dirs import AppDirs
    from handrail_session.memory_store import list_fact_files

    roots = read_config(SessionOptions()).settings.workspace
    workspace = [(Path.cwd() / Path(root).expanduser()).resolve() for root in roots]
    return list_fact_files(AppDirs.of(os.environ).data, workspace)

"""`handrail skills`"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from handrail import Tool
    from handrail.config.places import Places
    from handrail_skills.enabling import Enabling
    from handrail_skills.library import Library
    from handrail_skills.skill import Skill


@click.group("skills")
def command() -> None:
    """Show, check and enable what agents may load."""


@command.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def listing(as_json: bool) -> None:
    """Print every skill that is here, and whether agents may load it.

    Example: handrail skills list
    """
    from handrail.commands import print_json
    from handrail.words import visible

    here = _here()
    rows = [_row(skill, here.enabling) for skill in here.library.skills().values()]
    if as_json:
        print_json(rows)
        return
    for row in rows:
        click.echo(f"{row['name']}  [{'enabled' if row['enabled'] else 'not enabled'}, {row['origin']} {row['of']}]")
        click.echo(f"  {visible(str(row['description']))}")
        if row["reason"]:
            click.echo(f"  {row['reason']}")
    for hidden, counting in here.library.shadowed():
        click.echo(f"{_path_line(hidden.folder)} is left out: {_path_line(counting.folder)} has the same name")
    for broken in here.library.broken():
        click.echo(f"{_path_line(broken.folder)} cannot be used: {visible(broken.why)}")


@command.command("show")
@click.argument("name")
def show(name: str) -> None:
    """Print all that an agent is given of the skill NAME, and where it lies.

    Example: handrail skills show cli-command-patterns
    """
    from handrail.words import visible

    skill = _here().library.get(name)
    click.echo(f"{_path_line(skill.folder)}\nfingerprint {skill.fingerprint()}\n")
    click.echo(f"description: {visible(skill.description)}\n")
    click.echo("\n".join(map(visible, skill.document.body.splitlines())))
    for file in skill.files:
        click.echo(f"file: {_path_line(file)}")


@command.command("enable")
@click.argument("names", nargs=-1, required=True)
def enable(names: tuple[str, ...]) -> None:
    """Let agents load the skills NAMES as they are now. Read them first.

    Example: handrail skills enable pdf-forms
    """
    here = _here()
    for skill in [here.library.get(name) for name in names]:
        here.enabling.enable(skill)
        code = ", with code that runs once it is loaded" if skill.modules else ""
        click.echo(f"agents may load {skill.name} ({', '.join(skill.kinds)}){code}")


@command.command("disable")
@click.argument("names", nargs=-1, required=True)
def disable(names: tuple[str, ...]) -> None:
    """Keep agents from loading the skills NAMES, whatever the settings say.

    Example: handrail skills disable pdf-forms
    """
    here = _here()
    for skill in [here.library.get(name) for name in names]:
        here.enabling.withhold(skill.name)
        click.echo(f"agents may not load {skill.name}")


@command.command("check")
@click.argument("folders", nargs=-1, type=click.Path(exists=True, file_okay=False, path_type=Path))
def check(folders: tuple[Path, ...]) -> None:
    """Say what is wrong with the skills in FOLDERS, or with all that are here.

    Exits with 1 when something is. No code of a skill is run.

    Example: handrail skills check my-skills/pdf-forms
    """
    from handrail import HandrailError
    from handrail.words import visible
    from handrail_skills.checking import faults, remarks
    from handrail_skills.skill import read_skill

    here = _here()
    wrong = 0
    for folder in folders or _folders(here.library):
        try:
            skill = read_skill(folder.resolve(), "user", "you")
            found, noted = faults(skill, here.tools), remarks(skill)
        except HandrailError as exc:
            found, noted = [str(exc)], []
        wrong += bool(found)
        click.echo(f"{_path_line(folder)}: {'wrong' if found else 'good'}")
        for line in (*found, *(f"remark: {each}" for each in noted)):
            click.echo(f"  {visible(line)}")
    if wrong:
        raise SystemExit(1)


@command.command("copy")
@click.argument("name")
def copy(name: str) -> None:
    """Copy the skill NAME of a plugin to your own folder, to edit it there.

    Example: handrail skills copy web-research
    """
    from handrail_skills.copies import Copies

    here = _here()
    click.echo(str(Copies(here.places).make(here.library.get(name))))


@command.command("update")
def update() -> None:
    """Bring copies of plugins' skills up to date, but none that you have edited.

    Example: handrail skills update
    """
    from handrail_skills.copies import Copies

    here = _here()
    copies = Copies(here.places)
    for skill in (*here.library.skills().values(), *(hidden for hidden, _ in here.library.shadowed())):
        if skill.origin == "plugin" and (outcome := copies.update(skill)) is not None:
            said = {"updated": "brought up to date", "current": "is as it was", "edited": "is yours and stays as it is"}
            click.echo(f"{skill.name} {said[outcome]}")


def _path_line(path: Path | str) -> str:
    """Return a path as one line, with everything written out that a person would not see."""
    from handrail.undo.states import shown_path

    return shown_path(str(path))


def _row(skill: Skill, enabling: Enabling) -> dict[str, object]:
    reason = enabling.refusal(skill)
    return {
        "name": skill.name,
        "description": skill.description,
        "origin": skill.origin,
        "of": skill.of,
        "folder": str(skill.folder),
        "kinds": list(skill.kinds) if reason is None else [],
        "enabled": reason is None,
        "reason": reason,
    }


@dataclass(frozen=True, slots=True)
class Here:
    """What there is for this person in this folder."""

    library: Library
    enabling: Enabling
    places: Places
    tools: Mapping[str, Tool]


def _here() -> Here:
    from handrail.commands import Choices, read_config
    from handrail.config.places import Places
    from handrail.plugins.loading import load_here
    from handrail.plugins.registering import register_all
    from handrail_skills.enabling import Enabling
    from handrail_skills.library import Library, shelves

    settings = read_config(Choices()).settings
    places = Places.of(os.environ)
    workspace = [(Path.cwd() / Path(root).expanduser()).resolve() for root in settings.workspace]
    plugins = load_here(os.environ, disabled=settings.plugins.disabled)
    registered = register_all(plugins, settings)
    return Here(
        Library(shelves(places, workspace, registered.skills)),
        Enabling.of(places, settings.skills.enabled),
        places,
        {owned.tool.name: owned.tool for owned in registered.registry},
    )


def _folders(library: Library) -> list[Path]:
    return [*(skill.folder for skill in library.skills().values()), *(broken.folder for broken in library.broken())]

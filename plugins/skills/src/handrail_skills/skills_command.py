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
    from handrail.fs.app_dirs import AppDirs
    from handrail_skills.enabled_skills import EnabledSkills
    from handrail_skills.skill import Skill
    from handrail_skills.skill_library import SkillLibrary


@click.group("skills")
def skills_group() -> None:
    """Show, check and enable what agents may load."""


@skills_group.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_skills_command(as_json: bool) -> None:
    """Print every skill that is here, and whether agents may load it.

    Example: handrail skills list
    """
    from handrail.cli import print_json
    from handrail.text import make_visible

    here = _read_context()
    rows = [_build_row(skill, here.enabling) for skill in here.library.skills().values()]
    if as_json:
        print_json(rows)
        return
    for row in rows:
        click.echo(f"{row['name']}  [{'enabled' if row['enabled'] else 'not enabled'}, {row['origin']} {row['of']}]")
        click.echo(f"  {make_visible(str(row['description']))}")
        if row["reason"]:
            click.echo(f"  {row['reason']}")
    for hidden, counting in here.library.shadowed():
        click.echo(f"{_format_path(hidden.folder)} is left out: {_format_path(counting.folder)} has the same name")
    for broken in here.library.broken():
        click.echo(f"{_format_path(broken.folder)} cannot be used: {make_visible(broken.why)}")


@skills_group.command("show")
@click.argument("name")
def show_command(name: str) -> None:
    """Print all that an agent is given of the skill NAME, and where it lies.

    Example: handrail skills show cli-command-patterns
    """
    from handrail.text import make_visible

    skill = _read_context().library.get(name)
    click.echo(f"{_format_path(skill.folder)}\nfingerprint {skill.fingerprint()}\n")
    click.echo(f"description: {make_visible(skill.description)}\n")
    click.echo("\n".join(map(make_visible, skill.document.body.splitlines())))
    for file in skill.files:
        click.echo(f"file: {_format_path(file)}")


@skills_group.command("enable")
@click.argument("names", nargs=-1, required=True)
def enable_command(names: tuple[str, ...]) -> None:
    """Let agents load the skills NAMES as they are now. Read them first.

    Example: handrail skills enable pdf-forms
    """
    here = _read_context()
    for skill in [here.library.get(name) for name in names]:
        here.enabling.enable(skill)
        code = ", with code that runs once it is loaded" if skill.modules else ""
        click.echo(f"agents may load {skill.name} ({', '.join(skill.kinds)}){code}")


@skills_group.command("disable")
@click.argument("names", nargs=-1, required=True)
def disable_command(names: tuple[str, ...]) -> None:
    """Keep agents from loading the skills NAMES.

    This takes precedence over the settings.

    Example: handrail skills disable pdf-forms
    """
    here = _read_context()
    for skill in [here.library.get(name) for name in names]:
        here.enabling.withhold(skill.name)
        click.echo(f"agents may not load {skill.name}")


@skills_group.command("check")
@click.argument("folders", nargs=-1, type=click.Path(exists=True, file_okay=False, path_type=Path))
def check_command(folders: tuple[Path, ...]) -> None:
    """Say what is wrong with the skills in FOLDERS, or with all that are here.

    Exits with 1 when something is. No code of a skill is run.

    Example: handrail skills check my-skills/pdf-forms
    """
    from handrail import HandrailError
    from handrail.text import make_visible
    from handrail_skills.skill import read_skill
    from handrail_skills.skill_check import find_faults, find_remarks

    here = _read_context()
    wrong = 0
    for folder in folders or _list_folders(here.library):
        try:
            skill = read_skill(folder.resolve(), "user", "you")
            found, noted = find_faults(skill, here.tools), find_remarks(skill)
        except HandrailError as exc:
            found, noted = [str(exc)], []
        wrong += bool(found)
        click.echo(f"{_format_path(folder)}: {'wrong' if found else 'good'}")
        for line in (*found, *(f"remark: {each}" for each in noted)):
            click.echo(f"  {make_visible(line)}")
    if wrong:
        raise SystemExit(1)


@skills_group.command("copy")
@click.argument("name")
def copy_command(name: str) -> None:
    """Copy the skill NAME of a plugin to your own folder, to edit it there.

    Example: handrail skills copy web-research
    """
    from handrail_skills.skill_copies import SkillCopies

    here = _read_context()
    click.echo(str(SkillCopies(here.places).make(here.library.get(name))))


@skills_group.command("update")
def update_command() -> None:
    """Bring copies of plugins' skills up to date, but none that you have edited.

    Example: handrail skills update
    """
    from handrail_skills.skill_copies import SkillCopies

    here = _read_context()
    copies = SkillCopies(here.places)
    for skill in (*here.library.skills().values(), *(hidden for hidden, _ in here.library.shadowed())):
        if skill.origin == "plugin" and (outcome := copies.update(skill)) is not None:
            said = {"updated": "brought up to date", "current": "is as it was", "edited": "is yours and stays as it is"}
            click.echo(f"{skill.name} {said[outcome]}")


def _format_path(path: Path | str) -> str:
    """Return a path on one line, with invisible characters escaped."""
    from handrail.undo.path_states import format_path

    return format_path(str(path))


def _build_row(skill: Skill, enabling: EnabledSkills) -> dict[str, object]:
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
class SkillContext:
    """Skills and tools available to the user in the current folder."""

    library: SkillLibrary
    enabling: EnabledSkills
    places: AppDirs
    tools: Mapping[str, Tool]


def _read_context() -> SkillContext:
    from handrail.cli import SessionOptions, read_config
    from handrail.fs.app_dirs import AppDirs
    from handrail.plugins.loader import load_plugins_from_environment
    from handrail.plugins.registration import register_plugins
    from handrail_skills.enabled_skills import EnabledSkills
    from handrail_skills.skill_library import SkillLibrary, list_skill_folders

    settings = read_config(SessionOptions()).settings
    places = AppDirs.of(os.environ)
    workspace = [(Path.cwd() / Path(root).expanduser()).resolve() for root in settings.workspace]
    plugins = load_plugins_from_environment(os.environ, disabled=settings.plugins.disabled)
    registered = register_plugins(plugins, settings)
    return SkillContext(
        SkillLibrary(list_skill_folders(places, workspace, registered.skills)),
        EnabledSkills.of(places, settings.skills.enabled),
        places,
        {owned.tool.name: owned.tool for owned in registered.registry},
    )


def _list_folders(library: SkillLibrary) -> list[Path]:
    return [*(skill.folder for skill in library.skills().values()), *(broken.folder for broken in library.broken())]

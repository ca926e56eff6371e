"""What this plugin registers. Light: it is imported at every start."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from handrail import hookimpl

if TYPE_CHECKING:
    import click

    from handrail import Service, ServiceContext, Session, Tool, Toolset
    from handrail.plugins.services import Closable


class SkillTools:
    """The tools that load and use skills, where a person has enabled any, and the own tools of those that are loaded."""

    async def tools(self, session: Session) -> Iterable[Tool]:
        """As it is now."""
        from handrail_skills.active import skills_of
        from handrail_skills.using import TOOLS

        skills = await skills_of(session)
        return [*TOOLS, *skills.tools()] if skills.any_enabled or skills.loaded else []


@hookimpl
def handrail_register_tools() -> Iterable[Tool | Toolset]:
    """`create_skill` and `edit_skill`, and while a skill is enabled `list_skills`, `load_skill` and what goes with them."""
    from handrail_skills.writing import create_skill, edit_skill

    return [create_skill, edit_skill, SkillTools()]


@hookimpl
def handrail_register_skills() -> Iterable[Path]:
    """The skills that come with Handrail."""
    return [Path(__file__).parent / "shipped"]


@hookimpl
def handrail_register_services() -> Iterable[Service]:
    """`skills`: what of them is enabled and loaded in a session."""
    from handrail import Service

    return [Service("skills", _open, scope="session")]


@hookimpl
def handrail_register_commands() -> Iterable[click.Command]:
    """`handrail skills`"""
    from handrail_skills.command import command

    return [command]


async def _open(context: ServiceContext) -> Closable:
    from handrail_skills.active import open_skills

    return await open_skills(context)

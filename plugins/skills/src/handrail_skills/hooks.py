"""Registration hooks of this plugin; lightweight because it is imported at every startup."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from handrail import hookimpl

if TYPE_CHECKING:
    import click

    from handrail import Service, ServiceContext, Session, Tool, Toolset
    from handrail.api.service import ClosableService


class SkillTools:
    """Toolset that loads and uses skills, if the user has enabled any, with the tools of the loaded skills."""

    async def tools(self, session: Session) -> Iterable[Tool]:
        """Return the tools that are available now."""
        from handrail_skills.session_skills import get_session_skills
        from handrail_skills.skill_tools import SKILL_TOOLS

        skills = await get_session_skills(session)
        return [*SKILL_TOOLS, *skills.tools()] if skills.any_enabled or skills.loaded else []


@hookimpl
def handrail_register_tools() -> Iterable[Tool | Toolset]:
    """Return `create_skill` and `edit_skill`, and a toolset.

    While a skill is enabled, the toolset provides `list_skills`, `load_skill` and related tools.
    """
    from handrail_skills.write_tools import create_skill, edit_skill

    return [create_skill, edit_skill, SkillTools()]


@hookimpl
def handrail_register_skills() -> Iterable[Path]:
    """Return the folder of the skills that come with Handrail."""
    return [Path(__file__).parent / "shipped"]


@hookimpl
def handrail_register_services() -> Iterable[Service]:
    """Return `skills`: the enabled and loaded skills of a session."""
    from handrail import Service

    return [Service("skills", _open_service, scope="session")]


@hookimpl
def handrail_register_commands() -> Iterable[click.Command]:
    """Return `handrail skills`."""
    from handrail_skills.skills_command import skills_group

    return [skills_group]


async def _open_service(context: ServiceContext) -> ClosableService:
    from handrail_skills.session_skills import open_skills

    return await open_skills(context)

"""Tools with which an agent writes skills; the user must enable a skill before it can be loaded."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import anyio.to_thread
import yaml
from pydantic import BaseModel, ConfigDict, Field

from handrail import EditConfirmation, InvalidArguments, ToolContext, Verdict, Write, tool
from handrail.fs.app_dirs import write_private_file
from handrail.line_diffs import format_unified_diff
from handrail_skills.session_skills import SessionSkills, get_session_skills
from handrail_skills.skill import Skill, read_limited
from handrail_skills.skill_document import MAX_DOCUMENT_BYTES, MAX_NAME, SKILL_FILE, parse_document
from handrail_skills.skill_library import get_user_folder

ENABLE_NOTE = "An agent can load it once a person has run: handrail skills enable {name}"


class NewSkill(BaseModel):
    """A skill to be written."""

    model_config = ConfigDict(extra="forbid", defer_build=True)

    name: Annotated[str, Field(max_length=MAX_NAME, description="Lower-case words with hyphens.")]
    description: Annotated[str, Field(min_length=1, max_length=1024, description="What it does and when to use it.")]
    instructions: Annotated[
        str, Field(max_length=MAX_DOCUMENT_BYTES // 4, description="Markdown: how the work is done.")
    ] = ""


class ChangedSkill(BaseModel):
    """A skill whose text is replaced."""

    model_config = ConfigDict(extra="forbid", defer_build=True)

    skill_name: Annotated[str, Field(max_length=MAX_NAME, description="A skill in the person's own folder.")]
    content: Annotated[str, Field(max_length=MAX_DOCUMENT_BYTES // 4, description="The whole new SKILL.md.")]


def _build_new_confirmation(params: NewSkill, verdict: Verdict) -> EditConfirmation:
    return EditConfirmation(
        f"Write the skill {params.name}", f"{params.name}/{SKILL_FILE}", _format_diff("", _format_document(params))
    )


def _build_edit_confirmation(params: ChangedSkill, verdict: Verdict) -> EditConfirmation:
    return EditConfirmation(
        f"Replace the whole text of the skill {params.skill_name}",
        f"{params.skill_name}/{SKILL_FILE}",
        _format_diff("", params.content),
    )


@tool(
    layer="skill",
    title="Write a skill",
    effects=[Write("skill", arg="name")],
    trusted=True,
    confirmation=_build_new_confirmation,
)
async def create_skill(params: NewSkill, context: ToolContext) -> dict[str, Any]:
    """Write down how work is done, for later sessions; a person is asked, and enables it. Returns skill_name, path."""
    skills = await get_session_skills(context.session)
    path = await anyio.to_thread.run_sync(_write_new_skill, params, skills, context)
    return {
        "skill_name": params.name,
        "path": str(path),
        "enabled": False,
        "note": ENABLE_NOTE.format(name=params.name),
    }


@tool(
    layer="skill",
    title="Change a skill",
    effects=[Write("skill", arg="skill_name")],
    trusted=True,
    confirmation=_build_edit_confirmation,
)
async def edit_skill(params: ChangedSkill, context: ToolContext) -> dict[str, Any]:
    """Replace a skill's SKILL.md; a person is asked, and enables it again. Returns skill_name, path, diff."""
    skills = await get_session_skills(context.session)
    path, diff = await anyio.to_thread.run_sync(_write_changed_skill, params, skills)
    note = ENABLE_NOTE.format(name=params.skill_name)
    return {"skill_name": params.skill_name, "path": str(path), "diff": diff, "enabled": False, "note": note}


def _write_new_skill(params: NewSkill, skills: SessionSkills, context: ToolContext) -> Path:
    text = _format_document(params)
    # The name is checked before it becomes a path.
    parse_document(text.encode())
    if skills.library.has(params.name):
        raise InvalidArguments(
            f"there is a skill {params.name!r} already", hint="edit_skill changes it, or take another name"
        )
    path = get_user_folder(context.session.runtime.places) / params.name / SKILL_FILE
    skills.enabling.withhold(params.name)
    write_private_file(path, text)
    return path


def _write_changed_skill(params: ChangedSkill, skills: SessionSkills) -> tuple[Path, str]:
    skill = _require_user_skill(skills.library.get(params.skill_name))
    path = skill.folder / SKILL_FILE
    before = read_limited(path, MAX_DOCUMENT_BYTES).decode("utf-8-sig")
    if params.content == before:
        raise InvalidArguments(f"the skill {skill.name!r} says exactly that already")
    named = parse_document(params.content.encode()).frontmatter.name
    if named != skill.name:
        raise InvalidArguments(f"the new text calls the skill {named!r}, and it is {skill.name!r}")
    skills.enabling.withhold(skill.name)
    write_private_file(path, params.content)
    return path, _format_diff(before, params.content)


def _require_user_skill(skill: Skill) -> Skill:
    if skill.origin == "user":
        return skill
    cure = (
        f"a person copies it to their own folder: handrail skills copy {skill.name}"
        if skill.origin == "plugin"
        else "change its files as any others of the project; a person enables it again"
    )
    raise InvalidArguments(f"the skill {skill.name!r} belongs to the {skill.origin} {skill.of}", hint=cure)


def _format_document(params: NewSkill) -> str:
    head = yaml.safe_dump(
        {"name": params.name, "description": params.description}, allow_unicode=True, sort_keys=False, width=10_000
    )
    return f"---\n{head}---\n\n{params.instructions.strip()}\n"


def _format_diff(before: str, after: str) -> str:
    return "\n".join(format_unified_diff(before.splitlines(), after.splitlines(), f"a/{SKILL_FILE}", f"b/{SKILL_FILE}"))

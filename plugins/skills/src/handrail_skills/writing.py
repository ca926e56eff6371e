"""The tools by which an agent writes skills. What it wrote waits for a person to enable it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import anyio.to_thread
import yaml
from pydantic import BaseModel, ConfigDict, Field

from handrail import EditConfirmation, InvalidArguments, ToolContext, Verdict, Write, tool
from handrail.config.places import write_private
from handrail.line_diffs import unified_lines
from handrail_skills.active import Skills, skills_of
from handrail_skills.document import FILE, LONGEST_NAME, MAX_BYTES, parse
from handrail_skills.library import user_shelf
from handrail_skills.skill import Skill, read

WAITS = "An agent can load it once a person has run: handrail skills enable {name}"


class NewSkill(BaseModel):
    """A skill to be written."""

    model_config = ConfigDict(extra="forbid", defer_build=True)

    name: Annotated[str, Field(max_length=LONGEST_NAME, description="Lower-case words with hyphens.")]
    description: Annotated[str, Field(min_length=1, max_length=1024, description="What it does and when to use it.")]
    instructions: Annotated[str, Field(max_length=MAX_BYTES // 4, description="Markdown: how the work is done.")] = ""


class ChangedSkill(BaseModel):
    """A skill whose text is replaced."""

    model_config = ConfigDict(extra="forbid", defer_build=True)

    skill_name: Annotated[str, Field(max_length=LONGEST_NAME, description="A skill in the person's own folder.")]
    content: Annotated[str, Field(max_length=MAX_BYTES // 4, description="The whole new SKILL.md.")]


def _of_new(params: NewSkill, verdict: Verdict) -> EditConfirmation:
    return EditConfirmation(f"Write the skill {params.name}", f"{params.name}/{FILE}", _diff("", _text(params)))


def _of_changed(params: ChangedSkill, verdict: Verdict) -> EditConfirmation:
    return EditConfirmation(
        f"Replace the whole text of the skill {params.skill_name}",
        f"{params.skill_name}/{FILE}",
        _diff("", params.content),
    )


@tool(layer="skill", title="Write a skill", effects=[Write("skill", arg="name")], trusted=True, confirmation=_of_new)
async def create_skill(params: NewSkill, context: ToolContext) -> dict[str, Any]:
    """Write down how work is done, for later sessions; a person is asked, and enables it. Returns skill_name, path."""
    skills = await skills_of(context.session)
    path = await anyio.to_thread.run_sync(_create, params, skills, context)
    return {"skill_name": params.name, "path": str(path), "enabled": False, "note": WAITS.format(name=params.name)}


@tool(
    layer="skill",
    title="Change a skill",
    effects=[Write("skill", arg="skill_name")],
    trusted=True,
    confirmation=_of_changed,
)
async def edit_skill(params: ChangedSkill, context: ToolContext) -> dict[str, Any]:
    """Replace a skill's SKILL.md; a person is asked, and enables it again. Returns skill_name, path, diff."""
    skills = await skills_of(context.session)
    path, diff = await anyio.to_thread.run_sync(_edit, params, skills)
    note = WAITS.format(name=params.skill_name)
    return {"skill_name": params.skill_name, "path": str(path), "diff": diff, "enabled": False, "note": note}


def _create(params: NewSkill, skills: Skills, context: ToolContext) -> Path:
    text = _text(params)
    # The name is checked before it becomes a path.
    parse(text.encode())
    if skills.library.has(params.name):
        raise InvalidArguments(
            f"there is a skill {params.name!r} already", hint="edit_skill changes it, or take another name"
        )
    path = user_shelf(context.session.runtime.places) / params.name / FILE
    skills.enabling.withhold(params.name)
    write_private(path, text)
    return path


def _edit(params: ChangedSkill, skills: Skills) -> tuple[Path, str]:
    skill = _own(skills.library.get(params.skill_name))
    path = skill.folder / FILE
    before = read(path, MAX_BYTES).decode("utf-8-sig")
    if params.content == before:
        raise InvalidArguments(f"the skill {skill.name!r} says exactly that already")
    named = parse(params.content.encode()).frontmatter.name
    if named != skill.name:
        raise InvalidArguments(f"the new text calls the skill {named!r}, and it is {skill.name!r}")
    skills.enabling.withhold(skill.name)
    write_private(path, params.content)
    return path, _diff(before, params.content)


def _own(skill: Skill) -> Skill:
    if skill.origin == "user":
        return skill
    cure = (
        f"a person copies it to their own folder: handrail skills copy {skill.name}"
        if skill.origin == "plugin"
        else "change its files as any others of the project; a person enables it again"
    )
    raise InvalidArguments(f"the skill {skill.name!r} belongs to the {skill.origin} {skill.of}", hint=cure)


def _text(params: NewSkill) -> str:
    head = yaml.safe_dump(
        {"name": params.name, "description": params.description}, allow_unicode=True, sort_keys=False, width=10_000
    )
    return f"---\n{head}---\n\n{params.instructions.strip()}\n"


def _diff(before: str, after: str) -> str:
    return "\n".join(unified_lines(before.splitlines(), after.splitlines(), f"a/{FILE}", f"b/{FILE}"))

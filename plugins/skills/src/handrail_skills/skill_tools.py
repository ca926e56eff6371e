"""The tools that list, load and use skills."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import anyio.to_thread
from pydantic import Field

from handrail import (
    Downstream,
    InvalidArguments,
    Media,
    NotFound,
    Read,
    Run,
    Tool,
    ToolContext,
    ToolResult,
    tool,
)
from handrail.api.service import ShellService
from handrail.fs.app_dirs import ensure_private_folder
from handrail.text import format_suggestion, make_visible
from handrail_skills.session_skills import LoadedSkill, SessionSkills, get_session_skills
from handrail_skills.skill import Skill, SkillFile

if TYPE_CHECKING:
    from handrail.plans.element_finder import StepCaller
    from handrail.plans.plan_file import ReplayPlan
    from handrail.plans.replay import StepResult

SkillName = Annotated[str, Field(max_length=64, description="Its name.")]
SkillPath = Annotated[str, Field(max_length=1_024, description="As load_skill lists it.")]

SCRIPT_TIMEOUT_S = 300.0
# What a closing call needs beside the script's own time.
CLOSING_S = 15.0
# What runs a script that does not say so itself.
INTERPRETERS: Mapping[str, str] = {".py": "python3", ".sh": "bash", ".bash": "bash", ".js": "node", ".mjs": "node"}
IMAGE_TYPES: Mapping[str, str] = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
}


@tool(layer="skill", title="List skills", effects=[Read("session")], trusted=True)
async def list_skills(*, context: ToolContext) -> dict[str, Any]:
    """Skills: instructions and tools for kinds of work, to be loaded. Returns skills (name, description, enabled, active)."""
    skills = await get_session_skills(context.session)
    return {"skills": await anyio.to_thread.run_sync(_describe_skills, skills)}


def _describe_skills(skills: SessionSkills) -> list[dict[str, Any]]:
    enabling = skills.enabling
    told: list[dict[str, Any]] = []
    for skill in skills.library.skills().values():
        refusal = enabling.refusal(skill)
        told.append(
            {
                "name": skill.name,
                "description": make_visible(skill.description),
                "enabled": refusal is None,
                "active": skill.name in skills.loaded,
                **({} if refusal is None else {"reason": refusal}),
            }
        )
    return told


@tool(
    layer="skill",
    title="Load a skill",
    effects=[Read("session")],
    exclusive="skills",
    trusted=True,
    advice="Before work that a skill describes, load the skill; its tools are there from the next step on.",
)
async def load_skill(skill_name: SkillName, *, context: ToolContext) -> dict[str, Any]:
    """Load a skill before work of its kind. Returns its instructions, and what it brings: workflows, scripts, resources, and tools, which
    are there from the next step on.
    """
    skills = await get_session_skills(context.session)
    loaded = await skills.load(skill_name)
    return await anyio.to_thread.run_sync(_describe_contents, loaded)


def _describe_contents(loaded: LoadedSkill) -> dict[str, Any]:
    skill = loaded.skill
    lists = {
        "tools": list(loaded.names),
        "workflows": [_describe_workflow(skill, name) for name in skill.workflows],
        "scripts": list(skill.scripts),
        "resources": list(skill.resources),
    }
    return {
        "skill_name": skill.name,
        "instructions": skill.document.body,
        **{key: each for key, each in lists.items() if each},
    }


def _describe_workflow(skill: Skill, name: str) -> dict[str, Any]:
    plan = skill.workflow(name)
    params = {key: parameter.model_dump(exclude_defaults=True) for key, parameter in plan.parameters.items()}
    return {"workflow": name, "description": plan.description or plan.name, **({"params": params} if params else {})}


@tool(layer="skill", title="Unload a skill", effects=[Read("session")], exclusive="skills", trusted=True)
async def unload_skill(skill_name: SkillName, *, context: ToolContext) -> dict[str, Any]:
    """Take back a skill's tools. Returns them."""
    skills = await get_session_skills(context.session)
    unloaded = await skills.unload(skill_name)
    return {"skill_name": skill_name, "tools": list(unloaded.names)}


@tool(layer="skill", title="Read of a skill", effects=[Read("skill", arg="file_path")], trusted=True)
async def load_skill_resource(skill_name: SkillName, file_path: SkillPath, *, context: ToolContext) -> Any:
    """Read a file that a skill's instructions name. Returns its content."""
    skills = await get_session_skills(context.session)
    skill = await anyio.to_thread.run_sync(skills.enabled, skill_name)
    file = _check_file(skill, file_path, skill.files)
    data = skill.held[file].data
    if (picture := IMAGE_TYPES.get(PurePosixPath(file).suffix.lower())) is not None:
        return {"file_path": file_path, "media": [Media("image", picture, data=data)]}
    try:
        return {"file_path": file_path, "content": data.decode("utf-8-sig")}
    except UnicodeDecodeError as exc:
        raise Downstream(f"{file_path!r} is no text; it lies at {str(skill.folder / file)!r}") from exc


@tool(
    layer="skill",
    title="Run a script of a skill",
    effects=[Run("script"), Read("skill", arg="file_path")],
    timeout=SCRIPT_TIMEOUT_S + CLOSING_S,
    live=True,
    confinable=True,
)
async def run_skill_script(
    skill_name: SkillName,
    file_path: SkillPath,
    args: Annotated[Sequence[str], Field(max_length=200, description="Its arguments.")] = (),
    *,
    context: ToolContext,
) -> Mapping[str, Any]:
    """Run a skill's script in the session's folder, in a sandbox. Returns stdout, stderr and exit_code."""
    skills = await get_session_skills(context.session)
    skill = await anyio.to_thread.run_sync(skills.enabled, skill_name)
    file = _check_file(skill, file_path, skill.scripts)
    shell: ShellService = await context.service("shell")
    kept = ensure_private_folder(context.session.runtime.places.cache / "skill-scripts")
    # What lies in the skill's folder may be another script by the time it runs.
    with TemporaryDirectory(dir=kept) as folder:
        copy = Path(folder, skill.name)
        await anyio.to_thread.run_sync(skill.put, copy)
        runner = _build_command(copy / file, skill.held[file])
        return await shell.run([*runner, *args], context, timeout=SCRIPT_TIMEOUT_S, readable=(copy,))


def _build_command(path: Path, held: SkillFile) -> list[str]:
    if held.data.startswith(b"#!") and held.runs:
        return [str(path)]
    if (interpreter := INTERPRETERS.get(path.suffix.lower())) is None:
        raise InvalidArguments(
            f"nothing here runs {path.name!r}",
            hint=f"it begins with #! and may be executed, or ends in {', '.join(INTERPRETERS)}",
        )
    return [interpreter, str(path)]


@tool(layer="skill", title="Run a workflow of a skill", effects=[Run("steps")], timeout=None)
async def execute_skill(
    skill_name: SkillName,
    params: Annotated[dict[str, Any] | None, Field(description="Its parameters.")] = None,
    workflow: Annotated[str | None, Field(max_length=255, description="Needed where there are several.")] = None,
    *,
    context: ToolContext,
) -> dict[str, Any]:
    """Run a skill's workflow, call by call, to the first that does not do what is expected. Returns steps with their results."""
    from handrail.plans.replay import run_plan

    skills = await get_session_skills(context.session)
    skill = await anyio.to_thread.run_sync(skills.enabled, skill_name)
    plan = await anyio.to_thread.run_sync(skill.workflow, _select_workflow(skill, workflow))
    done = await run_plan(
        plan,
        context.session,
        params=params,
        call=_create_caller(context),
        told=_create_progress_callback(plan, context),
    )
    steps = [_describe_step(each) for each in done]
    report = {"skill_name": skill.name, "steps": steps, "steps_executed": sum(not each.skipped for each in done)}
    failed = next((each for each in done if each.failure is not None), None)
    if failed is None:
        return report
    error = Downstream(f"step {failed.number} ({failed.step.title}) is not as expected: {failed.failure}")
    return {**report, **ToolResult.failure(error, title="Run a workflow of a skill")}


def _select_workflow(skill: Skill, workflow: str | None) -> str:
    if workflow is not None:
        return workflow
    if len(skill.workflows) == 1:
        return skill.workflows[0]
    known = ", ".join(skill.workflows) or "none"
    raise InvalidArguments(f"say which workflow of {skill.name!r}; there are: {known}")


def _create_caller(context: ToolContext) -> StepCaller:
    async def call(name: str, args: Mapping[str, Any], call_id: str, /) -> ToolResult:
        context.checkpoint()
        return await context.call(name, args)

    return call


def _create_progress_callback(plan: ReplayPlan, context: ToolContext) -> Callable[[StepResult], None]:
    finished = 0

    def told(done: StepResult) -> None:
        nonlocal finished
        finished += 1
        context.progress(finished / plan.count, done.step.title)

    return told


def _describe_step(done: StepResult) -> dict[str, Any]:
    if done.skipped:
        return {"step": done.number, "name": done.step.title, "skipped": True}
    said = {"step": done.number, "name": done.step.title}
    if done.failure is not None:
        said["failure"] = done.failure
    return said if done.result is None else {**said, "tool": done.step.tool, "result": done.result}


def _check_file(skill: Skill, text: str, known: Sequence[str]) -> str:
    """Return the normalized path of one of the skill's files; `NotFound` for anything but the `known` ones."""
    named = PurePosixPath(text).as_posix()
    if named not in known:
        raise NotFound(f"the skill {skill.name!r} has no {text!r} there{format_suggestion(named, known)}")
    return named


SKILL_TOOLS: Sequence[Tool] = (
    list_skills,
    load_skill,
    load_skill_resource,
    run_skill_script,
    execute_skill,
    unload_skill,
)

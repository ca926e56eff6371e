"""Check of a skill for faults, without running any of it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from handrail import HandrailError, Tool
from handrail.plans.plan_file import find_plan_faults as plan_faults
from handrail_skills.skill import MAX_SKILL_BYTES, Skill, read_limited

# The specification recommends less; all of it is in the context of a model once the skill is loaded.
MAX_INSTRUCTION_LINES = 500


def find_faults(skill: Skill, tools: Mapping[str, Tool]) -> list[str]:
    """Return the faults, one sentence each; `tools` are the tools registered here."""
    return list(_iter_faults(skill, tools))


def find_remarks(skill: Skill) -> list[str]:
    """Return remarks on what is unusual in the skill without being wrong."""
    lines = skill.document.body.count("\n")
    long = [f"its instructions have {lines} lines; put some into resources"] if lines > MAX_INSTRUCTION_LINES else []
    return [*skill.document.remarks, *long]


def _iter_faults(skill: Skill, tools: Mapping[str, Tool]) -> Iterator[str]:
    defined = set[str]()
    for file in skill.modules:
        try:
            defined |= _find_async_functions(read_limited(skill.folder / file, MAX_SKILL_BYTES))
        except (SyntaxError, ValueError) as exc:
            yield f"{file}: {exc}"
    for name in skill.document.frontmatter.tools:
        if name not in tools and name not in defined:
            yield f"its frontmatter names the tool {name!r}, which is not here"
    known = {**tools, **dict.fromkeys(defined - tools.keys())}
    for name in skill.workflows:
        try:
            plan = skill.workflow(name)
        except HandrailError as exc:
            yield str(exc)
            continue
        yield from (f"workflow {name!r}, {fault}" for fault in plan_faults(plan, known))


def _find_async_functions(source: bytes) -> set[str]:
    """Return the names of the async functions in the source, which are the default names of its tools."""
    return {node.name for node in ast.walk(ast.parse(source)) if isinstance(node, ast.AsyncFunctionDef)}

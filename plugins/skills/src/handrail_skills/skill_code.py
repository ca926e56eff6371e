"""The tools that a skill brings as Python: imported once it is loaded, never before."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType

from handrail import Run, Tool
from handrail_skills.skill import Skill
from handrail_skills.skill_document import SkillError


def load_skill_tools(skill: Skill) -> tuple[Tool, ...]:
    """Return the skill's tools, each marked with the skill's name.

    Importing runs the skill's code: call this in a thread, and only for an enabled skill. Code that does not come from
    a plugin has its declared effects and that of running code, so that the user is prompted before it runs.
    """
    found = [tool for file in skill.modules for tool in _iter_tools(_import_module(skill, file))]
    effects = () if skill.origin == "plugin" else (Run(f"code of the skill {skill.name}"),)
    return tuple(
        tool.changed(
            skill=skill.name,
            # It is loaded with the skill.
            loadable=False,
            trusted=tool.trusted and skill.origin == "plugin",
            effects=(*tool.effects, *effects),
        )
        for tool in found
    )


def _import_module(skill: Skill, file: str) -> ModuleType:
    path = skill.folder / file
    module = ModuleType(f"_handrail_skill_{skill.name}_{path.stem}".replace("-", "_"))
    module.__file__ = str(path)
    # Dataclasses and type hints look their module up; the name stays taken by the newest.
    replaced, sys.modules[module.__name__] = sys.modules.get(module.__name__), module
    try:
        # What the fingerprint stands for, whatever lies there by now.
        exec(compile(skill.held[file].data, path, "exec"), vars(module))
    # Code of the skill: whatever goes wrong in it, and where it ends the program, the skill is not loaded and the session goes on.
    except (Exception, SystemExit) as exc:
        if replaced is None:
            del sys.modules[module.__name__]
        else:
            sys.modules[module.__name__] = replaced
        raise SkillError(f"{file} of the skill {skill.name!r} does not import: {type(exc).__name__}: {exc}") from exc
    return module


def _iter_tools(module: ModuleType) -> Iterator[Tool]:
    for name, value in vars(module).items():
        if isinstance(value, Tool) and not name.startswith("_"):
            yield value

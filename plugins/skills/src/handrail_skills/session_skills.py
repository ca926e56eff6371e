"""The skills of one session: what may be loaded, and what is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import anyio.to_thread

from handrail import NotFound, ServiceContext, Session, Tool, ToolUnavailable
from handrail.api.events import ToolsChanged
from handrail_skills.enabled_skills import EnabledSkills
from handrail_skills.skill import Skill
from handrail_skills.skill_code import load_skill_tools
from handrail_skills.skill_document import SKILL_FILE, SkillError, parse_document
from handrail_skills.skill_library import SkillLibrary, list_skill_folders

CAPABILITY = "skills"


@dataclass(frozen=True, slots=True)
class LoadedSkill:
    """A skill that is loaded: its own tools, and those of the session that came with it."""

    skill: Skill
    tools: tuple[Tool, ...]
    others: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return (*(tool.name for tool in self.tools), *self.others)


class SessionSkills:
    """Service `skills`, scope session. `loaded` holds what is loaded, by name, in the order it was."""

    def __init__(self, session: Session) -> None:
        self._session = session
        runtime = session.runtime
        self.library = SkillLibrary(list_skill_folders(runtime.places, session.workspace, runtime.skills))
        self.loaded: dict[str, LoadedSkill] = {}
        # One skill at a time: its code runs while it is imported.
        self._loading = anyio.Lock()

    @property
    def active(self) -> Mapping[str, str]:
        """Loaded skills by name, in load order, with the source that holds their tools in the session."""
        return {name: each.skill.source for name, each in self.loaded.items()}

    @property
    def enabling(self) -> EnabledSkills:
        return EnabledSkills.of(self._session.runtime.places, self._session.settings.skills.enabled)

    @property
    def any_enabled(self) -> bool:
        """True if there is an enabled skill to load, judged by name and folder alone."""
        return any(self.library.has(name) for name in self.enabling.names())

    def enabled(self, name: str) -> Skill:
        """Return the skill with that name; `ToolUnavailable` if the user has not enabled it in its current form."""
        skill = self.library.get(name)
        if (why := self.enabling.refusal(skill)) is not None:
            raise ToolUnavailable(f"the skill {name!r} cannot be used: {why}")
        # The fingerprint stands for the files as they are held; its text was read before them.
        if parse_document(skill.held[SKILL_FILE].data) != skill.document:
            raise ToolUnavailable(f"the skill {name!r} cannot be used: it has changed while it was read")
        return skill

    async def load(self, name: str) -> LoadedSkill:
        """Load a skill with its tools, all or nothing; a loaded skill is reloaded in its current form."""
        async with self._loading:
            skill = await anyio.to_thread.run_sync(self.enabled, name)
            tools = await anyio.to_thread.run_sync(load_skill_tools, skill)
            self._check(skill, tools)
            own = {tool.name for tool in tools}
            others = tuple(each for each in skill.document.frontmatter.tools if each not in own)
            try:
                await self._session.load_tools(others, source=skill.source)
            except NotFound as exc:
                raise SkillError(f"the skill {name!r} was not loaded: {exc}") from exc
            before = self.loaded.get(name)
            if before is not None and not set(before.others) <= set(others):
                await self._session.unload_tools(skill.source)
                await self._session.load_tools(others, source=skill.source)
            loaded = self.loaded[name] = LoadedSkill(skill, tools, others)
            await self._told(f"{skill.source} was loaded")
            return loaded

    async def unload(self, name: str) -> LoadedSkill:
        """Take back a skill's tools; `NotFound` when it is not loaded."""
        async with self._loading:
            if name not in self.loaded:
                known = ", ".join(self.loaded) or "none"
                raise NotFound(f"the skill {name!r} is not loaded; loaded are: {known}")
            loaded = self.loaded.pop(name)
            await self._session.unload_tools(loaded.skill.source)
            await self._told(f"{loaded.skill.source} was unloaded")
            return loaded

    def tools(self) -> Iterable[Tool]:
        """Return the tools of the loaded skills, most recently loaded last."""
        return (tool for each in self.loaded.values() for tool in each.tools)

    async def close(self) -> None:
        """Do nothing: no resources are held open."""

    async def _told(self, why: str) -> None:
        """Own tools of skills come from this plugin's toolset, which is asked again before hosts ask for the list."""
        await self._session.all_tools()
        self._session.bus.publish(ToolsChanged("", why))

    def _check(self, skill: Skill, tools: Sequence[Tool]) -> None:
        names = [tool.name for tool in tools]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise SkillError(f"the skill {skill.name!r} was not loaded: it defines the tool {twice!r} twice")
        for name in names:
            known = self._session.listing.known(name)
            if known is not None and known.skill != skill.name:
                raise SkillError(f"the skill {skill.name!r} was not loaded: the tool name {name!r} is taken")


async def open_skills(context: ServiceContext) -> SessionSkills:
    """Open the skills of the session."""
    assert context.session is not None
    return SessionSkills(context.session)


async def get_session_skills(session: Session) -> SessionSkills:
    """Return the skills of a session, from any of its tools."""
    found: SessionSkills = await session.service(CAPABILITY)
    return found

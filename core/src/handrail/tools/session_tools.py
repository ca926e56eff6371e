"""Tools of a session: those that may be called at present, and the reasons for the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from handrail.api.events import EventBus, ToolsChanged
from handrail.api.tool import Tool, Toolset
from handrail.config.settings import Settings
from handrail.errors import ToolUnavailable, UnknownTool
from handrail.policy.session_policy import SessionPolicy
from handrail.text import format_suggestion
from handrail.tools.registry import OwnedTool, ToolRegistry
from handrail.tools.tool_pool import ToolPool


@dataclass(frozen=True, slots=True)
class ListedTool:
    """Known tool with the reason why it cannot be called now; `reason` is None if it can.

    `source` is its origin besides the plugin: "server:docs", "skill:pdf", or None.
    """

    tool: Tool
    plugin: str
    source: str | None
    reason: str | None

    @property
    def available(self) -> bool:
        return self.reason is None


class ToolRuntime(Protocol):
    """Runtime of a session as its tools use it."""

    @property
    def platform(self) -> str: ...
    @property
    def registry(self) -> ToolRegistry: ...
    @property
    def toolsets(self) -> Sequence[tuple[Toolset, str]]: ...
    def desktop_missing(self, choice: str) -> str | None: ...


class ToolSession(Protocol):
    """A session, as far as its tools depend on it."""

    @property
    def runtime(self) -> ToolRuntime: ...
    @property
    def settings(self) -> Settings: ...
    @property
    def bus(self) -> EventBus: ...
    @property
    def court(self) -> SessionPolicy: ...
    @property
    def by_hand(self) -> bool: ...
    @property
    def planning(self) -> bool: ...
    @property
    def backend(self) -> str | None: ...
    @property
    def capabilities(self) -> frozenset[str]: ...


class SessionTools:
    """The tools of one session. One predicate says what is listed and what may be called; whoever changes a part of it says `look_again`.

    `describe_missing` says of a tool that is not here which plugin supplies it, and the cure; None when no known plugin does.
    """

    def __init__(self, session: ToolSession, describe_missing: Callable[[str], tuple[str, str] | None]) -> None:
        self._session = session
        self._describe_missing = describe_missing
        self.pool = ToolPool(session.runtime.registry, session.runtime.toolsets)
        self._reasons: dict[str, str | None] = {}
        # Tools of no toolset that a host may call, as far as they have been called since something changed.
        self.ready: dict[str, Tool] = {}

    # What is there

    async def begin_step(self) -> list[ListedTool]:
        """Begin a model step and return `all`; ephemeral tools of the previous step are removed."""
        if self.pool.end_step():
            self.look_again()
        await self._read_toolsets()
        self.pool.begin_step([owned.tool for owned in self.pool if self._reason(owned) is None])
        return self._listed()

    async def all(self) -> list[ListedTool]:
        """Return every known tool, with the reason if it cannot be called."""
        await self._read_toolsets()
        return self._listed()

    def _listed(self) -> list[ListedTool]:
        return [
            ListedTool(owned.tool, owned.plugin, self._source(owned.tool), self._reason(owned)) for owned in self.pool
        ]

    def _source(self, tool: Tool) -> str | None:
        """Return the tool's origin besides its plugin: a server, a skill, or the source that loaded it."""
        return tool.source or next(iter(self.pool.loaders(tool)), None)

    async def find(self, name: str, *, nested: bool, by_hand: bool = False) -> Tool:
        """Return the tool of that name if it may be called, by the same criteria as for listing.

        In a nested call, or one that the user makes `by_hand`, the tool must be enabled, permitted and able to run
        here, but need not be visible. Raises `UnknownTool` or `ToolUnavailable`.
        """
        owned = self.pool.get(name)
        if owned is None or owned is not self.pool.fixed(name):
            await self._read_toolsets()
            owned = self.pool.get(name)
        if owned is None:
            listed = [entry.tool.name for entry in self.pool if self._reason(entry) is None]
            said, hint = self._describe_missing(name) or (format_suggestion(name, listed), None)
            raise UnknownTool(f"there is no tool {name!r}{said}", hint=hint, details={"available": listed})
        reason = self._barred(owned, by_hand=by_hand) if nested or by_hand else self._reason(owned)
        if reason is not None:
            raise ToolUnavailable(f"{name} cannot be called now: {reason}")
        if not nested and not by_hand and owned is self.pool.fixed(name):
            self.ready[name] = owned.tool
        return owned.tool

    def known(self, name: str) -> Tool | None:
        """Return the known tool of that name, even if it may not be called, or None."""
        owned = self.pool.get(name) if isinstance(name, str) else None  # pyright: ignore[reportUnnecessaryIsInstance] # hosts pass what a model wrote
        return owned.tool if owned is not None else None

    def plugin_of(self, name: str) -> str:
        """Return the plugin that owns a tool; empty if unknown."""
        owned = self.pool.get(name)
        return owned.plugin if owned else ""

    # What changes it

    def offer(self, toolset: Toolset, *, owner: str) -> None:
        """Add tools of the session's host to those of plugins. A name already in use keeps its owner."""
        self.pool.add(toolset, owner)
        self.changed(f"{owner} offers more tools")

    async def load(self, names: Iterable[str], *, source: str) -> None:
        """Hold loadable tools for `source`. Raises `NotFound` for a name that no tool has, and loads nothing then."""
        await self._read_toolsets()
        if self.pool.load(names, source):
            self.changed(f"{source} was loaded")

    def unload(self, source: str) -> None:
        """Release the tools held by `source`."""
        if self.pool.unload(source):
            self.changed(f"{source} was unloaded")

    def changed(self, why: str) -> None:
        """Other tools may be called from now on."""
        self.look_again()
        self._session.bus.publish(ToolsChanged("", why))

    def look_again(self) -> None:
        """Clear the cache of which tools may be called."""
        self._reasons.clear()
        self.ready.clear()

    async def _read_toolsets(self) -> None:
        """Take over what toolsets offer now."""
        if await self.pool.refresh(self._session):
            self.look_again()
            self._session.court.seat_anew()

    # Why not

    def _reason(self, owned: OwnedTool) -> str | None:
        """Return why a host cannot call a tool, or None; cached until something changes."""
        name = owned.tool.name
        if name not in self._reasons:
            self._reasons[name] = self._barred(owned) or self._unseen(owned.tool)
        return self._reasons[name]

    def _barred(self, owned: OwnedTool, *, by_hand: bool = False) -> str | None:
        """Return why a tool cannot be called at all, or not by an agent; None if it can.

        It may be disabled, denied, or unable to run here.
        """
        session, tool = self._session, owned.tool
        if session.settings.tools.disables(tool):
            return "it is disabled by tools.disabled"
        if denied := session.court.policy.hides(tool, session.court.judging):
            return denied
        if tool.by_hand and not (session.by_hand or by_hand):
            return "it is a person's, and no agent's"
        if tool.loosens and not session.planning:
            return "the agent has not entered plan mode"
        platform = session.runtime.platform
        if tool.platforms and platform not in tool.platforms:
            return f"it works on {', '.join(sorted(tool.platforms))}, and this is {platform}"
        if tool.exclusive == "desktop":
            return session.runtime.desktop_missing(session.settings.desktop)
        return None

    def _unseen(self, tool: Tool) -> str | None:
        """Return why a tool is not declared to the agent, or None if it is.

        The reason may be a missing backend capability, a tool that is not loaded, or the profile. Loaded tools were
        requested and are declared in every profile.
        """
        if unseeing := self.unseeing(tool):
            return unseeing
        if withheld := self.pool.withheld(tool):
            return withheld
        if tool.loadable:
            return None
        profile = self._session.settings.tools.profile
        if profile != "all" and profile not in tool.profiles:
            return f"it is not in the profile {profile!r} (tools.profile)"
        return None

    def unseeing(self, tool: Tool) -> str | None:
        """Return why the chosen backend lacks what the tool needs, or None.

        Only the host can choose another, not a call.
        """
        if not tool.requires or tool.requires & self._session.capabilities:
            return None
        needed = " or ".join(sorted(tool.requires))
        chosen = self._session.backend or "none"
        return f"it needs a vision backend with {needed}, and {chosen} is chosen; set `backend` to another one"

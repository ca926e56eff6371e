"""The tools that one session knows: those that plugins registered, those that toolsets offer now, and what of both is there just now."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence

from handrail.api.tool import Tool, Toolset
from handrail.errors import NotFound
from handrail.text import format_suggestion
from handrail.tools.registry import OwnedTool, ToolRegistry

# Seconds that a toolset may take to say what it offers; longer than any of ours waits for what is starting.
OFFER_TIMEOUT_S = 150.0

log = logging.getLogger(__name__)


class ToolPool:
    """Tools by name, in a stable order: newly shown tools are appended, which preserves a model's prompt cache."""

    def __init__(self, registry: ToolRegistry, toolsets: Sequence[tuple[Toolset, str]] = ()) -> None:
        self.patience = OFFER_TIMEOUT_S
        self._registry = registry
        self._toolsets = toolsets
        self._known = registry
        # By name, the toolset that a tool came from.
        self._holders: Mapping[str, Toolset] = {}
        # What was loaded, by who loaded it.
        self._loaded: dict[str, frozenset[str]] = {}
        # What the last step of the model was shown, by name.
        self._shown: Mapping[str, Tool] | None = None
        self._spent: frozenset[Tool] = frozenset()
        self._warned: set[tuple[str, str, str]] = set()

    def __iter__(self) -> Iterator[OwnedTool]:
        return iter(self._known)

    def get(self, name: str) -> OwnedTool | None:
        """Return the tool of that name as of the last refresh, currently available or not."""
        return self._known.get(name)

    def fixed(self, name: str) -> OwnedTool | None:
        """Return the tool of that name if it is not from a toolset and thus stays for the entire session."""
        return self._registry.get(name)

    def add(self, toolset: Toolset, plugin: str) -> None:
        """Ask this toolset, too, from the next refresh on."""
        self._toolsets = (*self._toolsets, (toolset, plugin))

    async def refresh(self, session: object) -> bool:
        """Ask the toolsets anew; whether anything changed. A name that is taken stays whose it is, and that is said once."""
        if not self._toolsets:
            return False
        offers = [
            (toolset, plugin, await self._offered(toolset, plugin, session)) for toolset, plugin in self._toolsets
        ]
        known, holders = self._settled(offers)
        changed = [entry.tool for entry in known] != [entry.tool for entry in self._known]
        self._known, self._holders = known, holders
        return changed

    async def _offered(self, toolset: Toolset, plugin: str, session: object) -> list[Tool]:
        """Return the tools a toolset offers now; none if it fails or takes too long."""
        try:
            async with asyncio.timeout(self.patience):
                return list(await toolset.tools(session))
        # A toolset is plugin code; its failure must not take the other tools away.
        except Exception:
            log.exception("a toolset of plugin %s failed", plugin)
            return []

    def _settled(
        self, offers: Iterable[tuple[Toolset, str, Sequence[Tool]]]
    ) -> tuple[ToolRegistry, Mapping[str, Toolset]]:
        known, holders = self._registry.copy(), dict[str, Toolset]()
        # Who had a name before is asked first.
        for mine in (True, False):
            for toolset, plugin, tools in offers:
                for tool in tools:
                    if (self._holders.get(tool.name) is toolset) is mine:
                        self._take(known, holders, OwnedTool(tool, plugin), toolset)
        return known.in_order_of(self._known), holders

    def _take(self, known: ToolRegistry, holders: dict[str, Toolset], owned: OwnedTool, toolset: Toolset) -> None:
        for taken in known.taken(owned.tool):
            if owned.tool.on_collision != "replace" or holders.get(taken.tool.name) is not toolset:
                self._warn(owned, taken)
                return
        known.add(owned.tool, plugin=owned.plugin, on_collision="keep")
        holders[owned.tool.name] = toolset

    def _warn(self, newcomer: OwnedTool, incumbent: OwnedTool) -> None:
        collision = (newcomer.tool.name, newcomer.origin, incumbent.origin)
        if newcomer.tool.on_collision != "keep" and collision not in self._warned:
            self._warned.add(collision)
            log.warning("the tool %r of %s is left out: the name belongs to %s", newcomer.tool.name, *collision[1:])

    # What is there just now

    def withheld(self, tool: Tool) -> str | None:
        """Return why a known tool is not declared, or None: it is not loaded, or its single step is over."""
        if tool in self._spent:
            return "it was there for one step"
        if tool.loadable and not self.loaders(tool):
            return "it is not loaded; a skill or the host (`session.load_tools`) loads it"
        return None

    def loaders(self, tool: Tool) -> tuple[str, ...]:
        """Return the sources that have loaded the tool and still hold it."""
        return tuple(source for source, names in self._loaded.items() if tool.name in names)

    @property
    def loaded(self) -> Mapping[str, frozenset[str]]:
        """The names that each source has loaded and still holds."""
        return self._loaded

    def load(self, names: Iterable[str], source: str) -> bool:
        """Hold these tools for `source`; whether that changes anything. `NotFound` for a name that no tool has: then nothing is loaded."""
        tools = [self._named(name) for name in names]
        revived = self._spent.intersection(tools)
        self._spent -= revived
        held = self._loaded.get(source, frozenset()) | {tool.name for tool in tools}
        return self._hold({**self._loaded, source: held}) or bool(revived)

    def unload(self, source: str) -> bool:
        """Release the tools held by `source`; return True if that changes anything."""
        return self._hold({other: names for other, names in self._loaded.items() if other != source})

    def _hold(self, loaded: dict[str, frozenset[str]]) -> bool:
        changed, self._loaded = loaded != self._loaded, loaded
        return changed

    def _named(self, name: str) -> Tool:
        owned = self.get(name)
        if owned is None:
            raise NotFound(f"there is no tool {name!r} to load{format_suggestion(name, self._known.names())}")
        return owned.tool

    # Steps of the model

    def end_step(self) -> bool:
        """End a model step and its ephemeral tools; return True if there were any."""
        passing = frozenset(tool for tool in (self._shown or {}).values() if tool.ephemeral)
        here = {owned.tool for owned in self}
        self._spent = frozenset(tool for tool in self._spent | passing if tool in here)
        return bool(passing)

    def begin_step(self, shown: Sequence[Tool]) -> None:
        """Begin a model step with the tools shown; those that are new since the last step move to the end."""
        before, self._shown = self._shown, {tool.name: tool for tool in shown}
        if before is not None:
            self._known = self._known.with_last(name for name in self._shown if name not in before)

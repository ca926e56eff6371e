"""Tools by their names, each with the plugin that owns it, in an order that only grows at its end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from handrail.api.tool import Tool
from handrail.errors import PluginError

MergePolicy = Literal["error", "replace", "keep"]


@dataclass(frozen=True, slots=True)
class OwnedTool:
    """A tool and the plugin it comes from."""

    tool: Tool
    plugin: str

    @property
    def origin(self) -> str:
        """Origin of the tool, for the user: `plugin 'mcp' (server:docs)`."""
        return f"plugin {self.plugin!r}" + (f" ({self.tool.source})" if self.tool.source else "")


class ToolRegistry:
    """Tools by name and alias, in the order they came; new ones are appended."""

    def __init__(self, owned: Iterable[OwnedTool] = ()) -> None:
        self._owned: dict[str, OwnedTool] = {}
        # The name of the tool for each alias.
        self._aliases: dict[str, str] = {}
        for entry in owned:
            self.add(entry.tool, plugin=entry.plugin)

    def add(self, tool: Tool, *, plugin: str, on_collision: MergePolicy = "error") -> None:
        """Register a tool. A name or alias that is taken is settled by the newcomer's own `on_collision`, else by the one given here.

        Raises `PluginError` naming both owners when that is "error". "replace" takes out every tool that has one of its names.
        """
        settled = on_collision if tool.on_collision == "error" else tool.on_collision
        taken = self.taken(tool)
        if taken and settled == "error":
            raise _collision_error(tool, plugin, taken[0])
        if taken and settled == "keep":
            return
        for entry in taken:
            if entry.tool.name != tool.name:
                del self._owned[entry.tool.name]
            for alias in entry.tool.aliases:
                del self._aliases[alias]
        self._owned[tool.name] = OwnedTool(tool, plugin)
        self._aliases.update(dict.fromkeys(tool.aliases, tool.name))

    def taken(self, tool: Tool) -> list[OwnedTool]:
        """Return the registered tools that already use one of the tool's names."""
        found = (self.get(name) for name in tool.names)
        return list({entry.tool.name: entry for entry in found if entry is not None}.values())

    def merged(self, other: ToolRegistry, *, on_collision: MergePolicy = "error") -> ToolRegistry:
        """Return a new registry with the tools of both, this one's first; neither is changed."""
        result = self.copy()
        for entry in other:
            result.add(entry.tool, plugin=entry.plugin, on_collision=on_collision)
        return result

    def copy(self) -> ToolRegistry:
        """Another registry with the same tools."""
        return self._with(self._owned)

    def in_order_of(self, before: ToolRegistry) -> ToolRegistry:
        """Return a new registry with the same tools: those also in `before` first, in that order, then the others."""
        return self._with([*(name for name in before._owned if name in self._owned), *self._owned])

    def with_last(self, names: Iterable[str]) -> ToolRegistry:
        """Return a new registry with the same tools, those in `names` moved to the end in their current order."""
        last = set(names)
        return self._with(sorted(self._owned, key=last.__contains__))

    def _with(self, names: Iterable[str]) -> ToolRegistry:
        result = ToolRegistry()
        result._owned = {name: self._owned[name] for name in names}
        result._aliases = dict(self._aliases)
        return result

    def get(self, name: str) -> OwnedTool | None:
        """Return the tool with that name or alias, or None."""
        return self._owned.get(name) or self._owned.get(self._aliases.get(name, ""))

    def names(self) -> Mapping[str, OwnedTool]:
        """Return a copy of the registered tools by name, in order."""
        return dict(self._owned)

    def __iter__(self) -> Iterator[OwnedTool]:
        return iter(tuple(self._owned.values()))

    def __len__(self) -> int:
        return len(self._owned)


def _collision_error(tool: Tool, plugin: str, taken: OwnedTool) -> PluginError:
    shared = next(name for name in tool.names if name in taken.tool.names)
    what = f"the tool {tool.name!r}" if shared == tool.name else f"the tool {tool.name!r} with the alias {shared!r}"
    whose = "which belongs" if shared == taken.tool.name else f"an alias of {taken.tool.name!r}, which belongs"
    return PluginError(
        f"plugin {plugin!r} registers {what}, {whose} to plugin {taken.plugin!r}",
        hint='rename one of them, or declare on_collision="replace" or "keep"',
    )

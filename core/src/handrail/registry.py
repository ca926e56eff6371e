"""All tools that are known, each with the plugin that owns it, in an order that never changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from handrail.errors import PluginError
from handrail.tools import Tool

Merge = Literal["error", "replace", "keep"]


@dataclass(frozen=True, slots=True)
class Owned:
    """A tool and the plugin it comes from."""

    tool: Tool
    plugin: str


class Registry:
    """Tools by name, in the order they came; new ones are appended, so that prompt caches of a model survive."""

    def __init__(self, owned: Iterable[Owned] = ()) -> None:
        self._owned: dict[str, Owned] = {}
        self._hidden: set[str] = set()
        for entry in owned:
            self.add(entry.tool, plugin=entry.plugin)

    def add(self, tool: Tool, *, plugin: str, on_collision: Merge = "error") -> None:
        """Register a tool. A name that is taken is settled by the newcomer's own `on_collision`, else by the one given here.

        Raises `PluginError` naming both owners when that is "error".
        """
        settled = on_collision if tool.on_collision == "error" else tool.on_collision
        taken = self._owned.get(tool.name)
        if taken is not None and settled == "error":
            raise PluginError(
                f"plugin {plugin!r} registers the tool {tool.name!r}, which belongs to plugin {taken.plugin!r}",
                hint='rename one of them, or declare on_collision="replace" or "keep"',
            )
        if taken is None or settled == "replace":
            self._owned[tool.name] = Owned(tool, plugin)

    def merged(self, other: Registry, *, on_collision: Merge = "error") -> Registry:
        """A new registry with the tools of both, this one's first; neither is changed."""
        result = Registry()
        result._owned = dict(self._owned)
        result._hidden = self._hidden | other._hidden
        for entry in other:
            result.add(entry.tool, plugin=entry.plugin, on_collision=on_collision)
        return result

    def in_order_of(self, before: Registry) -> Registry:
        """A new registry with the same tools: those that were there before first and in their order, then the new ones."""
        names = [*(name for name in before._owned if name in self._owned), *self._owned]
        result = Registry()
        result._owned = {name: self._owned[name] for name in names}
        result._hidden = self._hidden | before._hidden
        return result

    def remove_plugin(self, plugin: str) -> None:
        """Take out everything of one plugin; nothing when it has none."""
        self._owned = {name: entry for name, entry in self._owned.items() if entry.plugin != plugin}

    def without_ephemeral(self) -> Registry:
        """A new registry without the tools that live for one model step."""
        result = Registry(entry for entry in self if not entry.tool.ephemeral)
        result._hidden = set(self._hidden)
        return result

    def hide(self, name: str) -> None:
        """Leave a tool out of listings; it stays known."""
        self._hidden.add(name)

    def unhide(self, name: str) -> None:
        """List it again."""
        self._hidden.discard(name)

    def hidden(self, name: str) -> bool:
        """Whether it is left out of listings."""
        return name in self._hidden

    def get(self, name: str) -> Owned | None:
        """The tool of that name, hidden or not."""
        return self._owned.get(name)

    def names(self) -> Mapping[str, Owned]:
        """A copy by name, in order."""
        return dict(self._owned)

    def __iter__(self) -> Iterator[Owned]:
        return iter(tuple(self._owned.values()))

    def __len__(self) -> int:
        return len(self._owned)

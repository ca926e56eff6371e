"""YAML that people write by hand: what it takes, and a reader would not expect."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import yaml


def traps(text: str, *, aliases: bool) -> Iterator[tuple[int, str]]:
    """A key that stands there twice, of which YAML takes the last, and an alias, unless `aliases` are taken; with the line of each, from 1.

    Raises what PyYAML raises for text that is no YAML.
    """
    import yaml

    yield from _traps(yaml.compose(text, yaml.SafeLoader), set(), aliases)


def _traps(node: yaml.Node | None, seen: set[int], aliases: bool) -> Iterator[tuple[int, str]]:
    import yaml

    if node is None:
        return
    if id(node) in seen:
        if not aliases:
            yield node.start_mark.line + 1, "aliases are not taken"
        return
    seen.add(id(node))
    if isinstance(node, yaml.MappingNode):
        names = set[str]()
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value in names:
                yield key.start_mark.line + 1, f"the key {key.value!r} is there twice"
            names.add(key.value if isinstance(key, yaml.ScalarNode) else "")
            yield from _traps(value, seen, aliases)
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _traps(item, seen, aliases)

"""YAML that people write by hand: what it takes, and a reader would not expect."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import yaml

__all__ = ["find_yaml_traps", "load_yaml"]

# What a text may come to once its aliases are replaced: characters, and one for each value. More than any text of 1 MB without aliases has.
MAX_EXPANDED = 4 * 2**20
# Of an integer as it is written: Python makes no text of one with more than 4,300 decimal digits.
MAX_DIGITS = 1_000
INTEGER_TAG = "tag:yaml.org,2002:int"


def find_yaml_traps(text: str, *, aliases: bool) -> Iterator[tuple[int, str]]:
    """Yield the YAML traps in a text, each with its line (from 1).

    These are a key that occurs twice, of which YAML takes the last; an alias, unless `aliases` are accepted; an integer
    with too many digits; and, if aliases are accepted, a value that contains itself or that its aliases make too large.
    Raises what PyYAML raises for invalid YAML.
    """
    import yaml

    root = yaml.compose(text, yaml.SafeLoader)
    yield from _find_node_traps(root, set(), aliases)
    if aliases and root is not None and _compute_expanded_size(root, {}) > MAX_EXPANDED:
        yield root.start_mark.line + 1, "it contains itself, or is too large once its aliases are replaced"


def load_yaml(text: str) -> Any:
    """Return the content of a YAML text. Raises `yaml.YAMLError` for all that PyYAML raises for a value that is not what its tag says, too."""
    import yaml

    try:
        return yaml.safe_load(text)
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError) as exc:
        raise yaml.YAMLError(f"a value cannot be read: {exc}") from exc


def _compute_expanded_size(node: yaml.Node, known: dict[int, int]) -> int:
    """Return the size of a node whose aliases are replaced: each node is visited once, and is too large while it is being visited."""
    import yaml

    if id(node) in known:
        return known[id(node)]
    if isinstance(node, yaml.ScalarNode):
        return 1 + len(node.value)
    known[id(node)] = MAX_EXPANDED + 1
    parts: list[yaml.Node] = []
    if isinstance(node, yaml.MappingNode):
        parts = [each for pair in node.value for each in pair]
    elif isinstance(node, yaml.SequenceNode):
        parts = list(node.value)
    known[id(node)] = size = 1 + sum(_compute_expanded_size(part, known) for part in parts)
    return size


def _find_node_traps(node: yaml.Node | None, seen: set[int], aliases: bool) -> Iterator[tuple[int, str]]:
    import yaml

    if node is None:
        return
    if id(node) in seen:
        if not aliases:
            yield node.start_mark.line + 1, "aliases are not taken"
        return
    seen.add(id(node))
    if isinstance(node, yaml.ScalarNode) and node.tag == INTEGER_TAG and len(node.value) > MAX_DIGITS:
        yield node.start_mark.line + 1, f"an integer has more than {MAX_DIGITS:,} digits"
    if isinstance(node, yaml.MappingNode):
        names = set[str]()
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value in names:
                yield key.start_mark.line + 1, f"the key {key.value!r} is there twice"
            names.add(key.value if isinstance(key, yaml.ScalarNode) else "")
            yield from _find_node_traps(key, seen, aliases)
            yield from _find_node_traps(value, seen, aliases)
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _find_node_traps(item, seen, aliases)

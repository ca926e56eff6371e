"""Tools by name: who owns them, in which order, and what happens when two want one name."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from handrail import PluginError, Tool, tool
from handrail.tools.registry import OwnedTool, ToolRegistry


def made(name: str, **declared: Any) -> Tool:
    async def handler() -> None: ...

    return tool(name=name, description=f"Do {name}.", **declared)(handler)


def registry(plugin: str, *names: str, **declared: Any) -> ToolRegistry:
    filled = ToolRegistry()
    for name in names:
        filled.add(made(name, **declared), plugin=plugin)
    return filled


def owners(filled: ToolRegistry) -> list[tuple[str, str]]:
    return [(entry.tool.name, entry.plugin) for entry in filled]


def test_a_name_that_is_taken_is_an_error_naming_both_owners() -> None:
    filled = registry("files", "read")
    with pytest.raises(PluginError, match=r"'notes'.*'read'.*'files'"):
        filled.add(made("read"), plugin="notes")
    assert owners(filled) == [("read", "files")]


@pytest.mark.parametrize(
    ("merge", "own", "winner"),
    [
        ("replace", "error", "late"),
        ("keep", "error", "early"),
        ("error", "replace", "late"),
        ("error", "keep", "early"),
        ("replace", "keep", "early"),
        ("keep", "replace", "late"),
    ],
)
def test_the_newcomers_own_policy_beats_the_merges(merge: Any, own: Any, winner: str) -> None:
    early, late = registry("early", "a", "b"), registry("late", "b", "c", on_collision=own)
    merged = early.merged(late, on_collision=merge)
    assert owners(merged) == [("a", "early"), ("b", winner), ("c", "late")]


def test_a_merge_changes_neither_side() -> None:
    early, late = registry("early", "a", "b"), registry("late", "b")
    with pytest.raises(PluginError):
        early.merged(late)
    early.merged(late, on_collision="replace")
    assert owners(early) == [("a", "early"), ("b", "early")]
    assert owners(late) == [("b", "late")]


def test_two_tools_of_one_plugin_with_one_name_are_an_error() -> None:
    with pytest.raises(PluginError):
        registry("twice", "a", "a")


def test_listing_gives_copies() -> None:
    filled = registry("p", "a")
    names = dict(filled.names())
    names.clear()
    assert len(filled) == 1
    for entry in filled:
        filled.add(made(f"{entry.tool.name}_again"), plugin="p")
    assert owners(filled) == [("a", "p"), ("a_again", "p")]


def aliased(name: str, *aliases: str, **declared: Any) -> Tool:
    return made(name, aliases=aliases, **declared)


def test_a_tool_is_found_by_its_old_names() -> None:
    filled = ToolRegistry()
    filled.add(aliased("read_file", "read", "cat"), plugin="files")
    for name in ("read_file", "read", "cat"):
        assert filled.get(name) == OwnedTool(filled.names()["read_file"].tool, "files")
    assert filled.get("write") is None
    assert list(filled.names()) == ["read_file"]


@pytest.mark.parametrize("newcomer", [made("cat"), aliased("show", "cat"), aliased("show", "read_file")])
def test_an_alias_that_is_taken_is_an_error_naming_both_owners(newcomer: Tool) -> None:
    filled = ToolRegistry()
    filled.add(aliased("read_file", "cat"), plugin="files")
    with pytest.raises(PluginError, match=r"'notes'.*'files'"):
        filled.add(newcomer, plugin="notes")
    filled.add(newcomer, plugin="notes", on_collision="keep")
    assert owners(filled) == [("read_file", "files")]
    filled.add(newcomer, plugin="notes", on_collision="replace")
    assert owners(filled) == [(newcomer.name, "notes")]
    assert filled.get("cat") is (filled.get(newcomer.name) if "cat" in newcomer.names else None)


@pytest.mark.parametrize("aliases", [["read"], ["cat", "cat"], ["Cat"], [""]])
def test_an_alias_is_a_name_of_its_own(aliases: list[str]) -> None:
    with pytest.raises(PluginError):
        aliased("read", *aliases)


names = st.lists(st.sampled_from("abcdef"), unique=True)


@given(before=names, after=names)
def test_what_was_listed_keeps_its_order_and_new_tools_come_last(before: list[str], after: list[str]) -> None:
    ordered = [name for name, _ in owners(registry("p", *after).in_order_of(registry("p", *before)))]
    assert ordered == [n for n in before if n in after] + [n for n in after if n not in before]


@given(left=names, right=names)
def test_a_merge_keeps_the_left_order_and_appends(left: list[str], right: list[str]) -> None:
    merged = registry("l", *left).merged(registry("r", *right), on_collision="keep")
    assert [name for name, _ in owners(merged)] == left + [name for name in right if name not in left]

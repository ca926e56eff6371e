"""What is in a folder, by `list_directory`."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from handrail import Session, ToolResult

List = Callable[..., Awaitable[ToolResult]]


@pytest.fixture
def listed(session: Session) -> List:
    async def call(path: str = ".", **args: Any) -> ToolResult:
        return await session.call("list_directory", {"path": path, **args})

    return call


def names(result: ToolResult) -> list[str]:
    return [entry["name"] for entry in result["entries"]]


async def test_entries_come_by_name_with_kind_size_and_time(listed: List, folder: Path) -> None:
    (folder / "b.txt").write_text("four")
    os.utime(folder / "b.txt", (0, 86_400))
    (folder / ".hidden").mkdir()
    result = await listed()
    assert names(result) == [".hidden", "b.txt"]
    assert result["entries"][1] == {"name": "b.txt", "kind": "file", "size": 4, "modified": "1970-01-02T00:00:00+00:00"}
    assert (result["total"], result["truncated"]) == (2, False)


async def test_links_are_shown_and_not_followed(listed: List, folder: Path) -> None:
    (folder / "up").symlink_to("..")
    (folder / "loop").symlink_to("loop")
    result = await listed(depth=5)
    assert [(e["name"], e["kind"], e["target"]) for e in result["entries"]] == [
        ("loop", "link", "loop"),
        ("up", "link", ".."),
    ]


async def test_depth_and_ignored_names(listed: List, folder: Path) -> None:
    for name in ("a/b/c", "a/node_modules/x", "d.pyc"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    result = await listed(depth=2, ignore=["node_modules", "*.pyc"])
    assert names(result) == ["a", "a/b"]
    assert names(await listed("a", depth=3)) == ["b", "node_modules", "b/c", "node_modules/x"]


async def test_a_huge_folder_is_cut_and_counted(listed: List, folder: Path) -> None:
    for number in range(1_500):
        (folder / f"{number:04}").touch()
    result = await listed()
    assert (len(result["entries"]), result["total"], result["truncated"]) == (1_000, 1_500, True)
    assert names(result)[-1] == "0999"


async def test_what_may_not_be_read_is_withheld(listed: List, folder: Path) -> None:
    (folder / ".ssh").mkdir()
    (folder / ".ssh/id_rsa").touch()
    result = await listed(depth=2)
    assert names(result) == [".ssh"]
    assert result["withheld"] == 1
    assert (await listed(".ssh")).error_code == "denied_by_policy"


async def test_names_that_are_no_text_are_said(listed: List, folder: Path) -> None:
    (folder / os.fsdecode(b"caf\xe9")).touch()
    result = await listed()
    assert names(result) == ["caf\ufffd"]
    assert "UTF-8" in result["note"]


async def test_a_file_is_no_folder_and_nothing_is_nothing(listed: List, folder: Path) -> None:
    (folder / "a").touch()
    assert "no folder" in (await listed("a"))["error"]["message"]
    assert (await listed("b")).error_code == "not_found"


@pytest.mark.parametrize(
    "ignore", [["*a" * 60 + "b"], ["{a,aa}" * 40 + "b"], ["[" * 1_000] * 100, ["[a-c/!]?*"], ["\\*", "[!a]"]]
)
async def test_patterns_of_names_take_no_long_time(session: Session, folder: Path, ignore: list[str]) -> None:
    (folder / ("a" * 240)).touch()
    with anyio.fail_after(10):
        assert (await session.call("list_directory", {"path": str(folder), "ignore": ignore})).ok


async def test_a_pattern_of_names_that_is_too_long_is_refused(session: Session, folder: Path) -> None:
    result = await session.call("list_directory", {"path": str(folder), "ignore": ["*a" * 600]})
    assert "at most 1,000" in result["error"]["message"]

"""Places that are closed to the user whom Handrail runs as, and folders that lead back into themselves."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HOST = """
import asyncio, json, sys
import handrail
from handrail.api.approval import yes
async def main():
    async with handrail.open(cwd=sys.argv[1], confirm=yes, plugins=["files"]) as session:
        for name, args in json.loads(sys.argv[2]):
            print(json.dumps(dict(await session.call(name, args)), default=str))
asyncio.run(main())
"""
# Root without the powers that open everything to it is a user like any other.
ORDINARY = ("setpriv", "--bounding-set=-dac_override,-dac_read_search") if os.geteuid() == 0 else ()


def results(folder: Path, *calls: tuple[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """What the calls give, one after the other, in a session of a process that may open only what its user may."""
    host = [*ORDINARY, sys.executable, "-c", HOST, str(folder), json.dumps(calls)]
    done = subprocess.run(host, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture
def closed(folder: Path) -> Path:
    """A folder and a file that nobody may open, beside one that all may."""
    (folder / "closed").mkdir()
    (folder / "closed/a.txt").write_text("word")
    (folder / "b.txt").write_text("word")
    (folder / "b.txt").chmod(0)
    (folder / "c.txt").write_text("word")
    (folder / "closed").chmod(0)
    return folder


def test_what_is_closed_is_named_and_hinders_nothing_else(closed: Path) -> None:
    listed, named, found = results(
        closed,
        ("list_directory", {"path": ".", "depth": 2}),
        ("find_files", {"pattern": "*.txt"}),
        ("find_files", {"search_text": "word"}),
    )
    assert listed["unreadable"] == ["closed"]
    assert {match["path"] for match in named["matches"]} == {"b.txt", "c.txt"}
    assert [match["path"] for match in found["matches"]] == ["c.txt"]


def test_what_is_closed_is_a_clear_error_and_stays_as_it_is(closed: Path) -> None:
    read, inside, edited, written, many = results(
        closed,
        ("read_file", {"file_path": "b.txt"}),
        ("read_file", {"file_path": "closed/a.txt"}),
        ("edit_file", {"file_path": "b.txt", "old_string": "word", "new_string": "x"}),
        ("write_file", {"file_path": "closed/new", "content": "x"}),
        ("read_many_files", {"paths": ["b.txt", "c.txt"]}),
    )
    for result in (read, inside, edited, written):
        assert result["status"] == "error"
        assert "permission" in result["error"]["message"].lower(), result
    assert ([file["path"] for file in many["files"]], [file["path"] for file in many["skipped"]]) == (
        ["c.txt"],
        ["b.txt"],
    )
    (closed / "b.txt").chmod(0o600)
    assert (closed / "b.txt").read_text() == "word"


def test_a_folder_that_leads_back_into_itself_is_searched_once(folder: Path) -> None:
    (folder / "sub").mkdir()
    (folder / "sub/a.txt").write_text("word")
    (folder / "sub/again").symlink_to("..")
    named, found, listed = results(
        folder,
        ("find_files", {"pattern": "a.txt"}),
        ("find_files", {"search_text": "word"}),
        ("list_directory", {"path": ".", "depth": 5}),
    )
    assert [match["path"] for match in named["matches"]] == ["sub/a.txt"]
    assert [match["path"] for match in found["matches"]] == ["sub/a.txt"]
    assert [entry["name"] for entry in listed["entries"]] == ["sub", "sub/a.txt", "sub/again"]

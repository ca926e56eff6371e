"""What is kept of past sessions."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from handrail import tool
from handrail.artifacts.retention import DAY_S, prune_artifacts, prune_audit
from handrail.artifacts.store import ArtifactStore
from handrail.testing import open_test_runtime

LONG = "x" * 100_000


@tool()
async def shout() -> str:
    """Much."""
    return LONG


def left(folder: Path, name: str, *, days: float, size: int = 10) -> Path:
    """What a session left that is over, so many days ago."""
    artifacts = ArtifactStore(folder / name)
    path = Path(artifacts.keep("x" * size)["path"])
    artifacts.close()
    then = time.time() - days * DAY_S
    for file in path.parent.iterdir():
        os.utime(file, (then, then))
    return path


def test_what_is_older_than_is_kept_goes(tmp_path: Path) -> None:
    old, new = left(tmp_path, "old", days=8), left(tmp_path, "new", days=6)
    assert prune_artifacts(tmp_path, days=7, most=10**9) == 1
    assert (old.parent.exists(), new.exists()) == (False, True)


def test_of_too_much_the_oldest_goes(tmp_path: Path) -> None:
    paths = [left(tmp_path, f"s{n}", days=n, size=1_000) for n in (1, 2, 3)]
    assert prune_artifacts(tmp_path, days=7, most=2_500) == 1
    assert [path.exists() for path in paths] == [True, True, False]


def test_what_a_living_session_holds_stays(tmp_path: Path) -> None:
    artifacts = ArtifactStore(tmp_path / "mine")
    path = Path(artifacts.keep("text")["path"])
    for file in path.parent.iterdir():
        os.utime(file, (0, 0))
    assert prune_artifacts(tmp_path, days=7, most=0) == 0
    assert path.exists()
    artifacts.close()
    assert prune_artifacts(tmp_path, days=7, most=0) == 1


def test_a_session_of_another_process_is_living_until_that_ends(tmp_path: Path) -> None:
    held = f"from handrail.artifacts.store import ArtifactStore; from pathlib import Path; ArtifactStore(Path({str(tmp_path)!r}) / 's').keep('x')"
    script = f"import sys; {held}; print('held', flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", script], stdin=-1, stdout=-1, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        for file in (tmp_path / "s").iterdir():
            os.utime(file, (0, 0))
        assert prune_artifacts(tmp_path, days=0, most=0) == 0
        other.kill()
    assert prune_artifacts(tmp_path, days=0, most=0) == 1


def test_links_are_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_text("x")
    os.utime(outside / "precious", (0, 0))
    kept = tmp_path / "kept"
    path = left(kept, "old", days=9)
    (path.parent / "link").symlink_to(outside)
    (kept / "linked").symlink_to(outside)
    prune_artifacts(kept, days=7, most=0)
    assert (outside / "precious").read_text() == "x"
    assert not path.exists()


@pytest.mark.parametrize("folder", ["missing", "file"])
def test_a_folder_that_is_none_is_no_trouble(tmp_path: Path, folder: str) -> None:
    (tmp_path / "file").write_text("x")
    assert prune_artifacts(tmp_path / folder, days=0, most=0) == 0


async def test_a_session_that_begins_takes_out_what_past_ones_left(tmp_path: Path) -> None:
    state: dict[str, Any] = {"folder": tmp_path, "tools": [shout]}
    async with open_test_runtime(**state) as runtime, runtime.session() as session:
        path = Path((await session.call("shout"))["artifact"]["path"])
        audit = runtime.places.audit / f"{session.id}.jsonl"
    for file in (*path.parent.iterdir(), audit):
        os.utime(file, (0, 0))
    async with open_test_runtime(**state) as runtime, runtime.session() as session:
        mine = Path((await session.call("shout"))["artifact"]["path"])
        await runtime.settle()
        assert (path.parent.exists(), audit.exists(), mine.exists()) == (False, False, True)


def test_audit_files_go_by_age_and_those_in_use_stay(tmp_path: Path) -> None:
    from handrail.audit.writer import AuditWriter

    audit = AuditWriter(tmp_path / "now.jsonl", session="now")
    (tmp_path / "past.jsonl").write_text("{}\n")
    for file in tmp_path.iterdir():
        os.utime(file, (0, 0))
    assert prune_audit(tmp_path, days=90, most=0) == 1
    assert [file.name for file in tmp_path.iterdir()] == ["now.jsonl"]
    audit.close()

"""The private folder of sandboxed commands: made, found again when its owner was killed, and removed without touching anything else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from handrail.sandbox.scratch_folder import FOLDER_PREFIX, ScratchFolder


@pytest.fixture
def parent(tmp_path: Path) -> Path:
    """The folder that temporary folders are made in."""
    tmp_path.chmod(0o1777)
    return tmp_path


def test_it_is_private_and_goes(parent: Path) -> None:
    scratch = ScratchFolder(parent)
    assert scratch.temporary.stat().st_mode & 0o777 == 0o700
    scratch.close()
    assert list(parent.iterdir()) == []


def test_what_is_hard_to_remove_goes_too(parent: Path) -> None:
    scratch = ScratchFolder(parent)
    deep = scratch.temporary / "a/b"
    deep.mkdir(parents=True)
    (deep / "file").touch()
    deep.chmod(0o000)
    scratch.close()
    assert list(parent.iterdir()) == []


def test_the_folder_around_it_is_left_as_it_is(parent: Path) -> None:
    outside = parent / "outside"
    outside.mkdir()
    outside.chmod(0o755)
    scratch = ScratchFolder(parent)
    (scratch.temporary / "link").symlink_to(outside)
    scratch.close()
    # Gone already: another process has seen to it.
    scratch.close()
    assert parent.stat().st_mode & 0o7777 == 0o1777
    assert outside.stat().st_mode & 0o777 == 0o755


def test_one_that_was_left_behind_is_removed_by_the_next_and_one_in_use_is_not(parent: Path) -> None:
    code = "import os\nfrom pathlib import Path\nfrom handrail.sandbox.scratch_folder import ScratchFolder\n"
    code += f"ScratchFolder(Path({str(parent)!r})); os._exit(1)"
    subprocess.run([sys.executable, "-c", code], check=False)
    (left,) = parent.glob(f"{FOLDER_PREFIX}*")
    first = ScratchFolder(parent)
    second = ScratchFolder(parent)
    assert not left.exists()
    assert first.temporary.exists()
    for scratch in (first, second):
        scratch.close()
    assert os.listdir(parent) == []


def test_those_made_at_the_same_time_leave_each_other_alone(parent: Path) -> None:
    """If this fails, a session loses its private folder when another one starts at the same moment."""
    code = (
        f"from pathlib import Path\nfrom handrail.sandbox.scratch_folder import ScratchFolder\n"
        f"made = [ScratchFolder(Path({str(parent)!r})) for _ in range(60)]\n"
        f"assert all(one.temporary.is_dir() for one in made)\n[one.close() for one in made]"
    )
    running = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(4)]
    assert [one.wait(60) for one in running] == [0, 0, 0, 0]

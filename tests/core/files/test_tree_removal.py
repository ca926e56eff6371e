"""Directory trees that are removed, however deep and closed they are."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import pytest

from handrail.fs.tree_removal import remove_tree
from handrail.sandbox.scratch_folder import FOLDER_PREFIX, ScratchFolder

DEPTH = 3_000
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="paths on Windows are never that deep")


def make_deep(folder: Path, depth: int = DEPTH) -> None:
    """Make directories in one another, each with a file; no path is as long."""
    at = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    for _ in range(depth):
        os.mkdir("d", dir_fd=at)
        below = os.open("d", os.O_RDONLY | os.O_DIRECTORY, dir_fd=at)
        os.close(os.open("file", os.O_WRONLY | os.O_CREAT, dir_fd=below))
        os.close(at)
        at = below
    os.close(at)


@pytest.mark.parametrize("force", [False, True])
def test_a_tree_of_any_depth_is_removed(tmp_path: Path, force: bool) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").touch()
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "link").symlink_to(outside)
    make_deep(tree)
    for wide in range(20):
        (tree / f"wide{wide}" / "below").mkdir(parents=True)
        (tree / f"wide{wide}" / "below" / "link").symlink_to(outside)
    remove_tree(tree, force=force)
    assert [path.name for path in tmp_path.iterdir()] == ["outside"]
    assert (outside / "kept").exists()


def test_closed_directories_are_removed_where_that_is_wanted(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    closed = tree / "a" / "closed"
    (closed / "below").mkdir(parents=True)
    (closed / "file").touch()
    closed.chmod(0)
    remove_tree(tree, force=True)
    assert not tree.exists()


def test_a_link_in_the_place_of_the_tree_is_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir(mode=0o755)
    (outside / "kept").touch()
    (tmp_path / "tree").symlink_to(outside)
    with pytest.raises(OSError, match="tree"):
        remove_tree(tmp_path / "tree", force=True)
    assert (outside / "kept").exists()
    assert stat.S_IMODE(outside.stat().st_mode) == 0o755


def test_a_deep_private_folder_goes_with_its_session_and_with_the_next(tmp_path: Path) -> None:
    scratch = ScratchFolder(tmp_path)
    make_deep(scratch.temporary)
    scratch.close()
    assert not list(tmp_path.iterdir())
    left = tmp_path / f"{FOLDER_PREFIX}left"
    left.mkdir()
    (left / "owner").touch()
    make_deep(left)
    ScratchFolder(tmp_path).close()
    assert not list(tmp_path.iterdir())

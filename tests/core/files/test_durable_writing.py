"""What is left when writing is cut short: the old file, whole."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from handrail import Downstream
from handrail.fs import safe_open

OLD = b"old\n" * 1_000
NEW = 8 * 1_048_576


@pytest.fixture
def small_disk(tmp_path: Path, mount: Callable[..., Path]) -> Path:
    """A file system with room for about 1 MB."""
    place = tmp_path / "disk"
    place.mkdir()
    return mount(place, "-t", "tmpfs", "-o", "size=1m", "tmpfs")


@pytest.mark.parametrize("names", [1, 2])
def test_a_full_disk_leaves_the_old_file(small_disk: Path, names: int) -> None:
    file = small_disk / "a"
    file.write_bytes(OLD)
    if names > 1:
        os.link(file, small_disk / "b")
    with pytest.raises(Downstream, match="No space left"):
        safe_open.replace_file(file, bytes(NEW), within=[small_disk])
    assert file.read_bytes() == OLD
    assert len(os.listdir(small_disk)) == names


@pytest.mark.parametrize("names", [1, 2])
def test_a_limit_of_size_leaves_the_old_file(tmp_path: Path, names: int) -> None:
    file = tmp_path / "a"
    file.write_bytes(OLD)
    if names > 1:
        os.link(file, tmp_path / "b")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        with pytest.raises(Downstream, match="too large"):
            safe_open.replace_file(file, bytes(1_000_000), within=[tmp_path])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert file.read_bytes() == OLD
    assert len(os.listdir(tmp_path)) == names


WRITER = """
import sys
from pathlib import Path
from handrail.fs import safe_open
print("ready", flush=True)
for letter in b"ab" * 1_000:
    file = Path(sys.argv[1])
    safe_open.replace_file(file, bytes([letter]) * 4_000_000, within=[file.parent])
"""


@pytest.mark.parametrize("seconds", [0.002, 0.01, 0.03, 0.05])
def test_a_kill_leaves_one_whole_content(tmp_path: Path, seconds: float) -> None:
    file = tmp_path / "a"
    file.write_bytes(b"z" * 4_000_000)
    writer = subprocess.Popen([sys.executable, "-c", WRITER, file], stdout=subprocess.PIPE)
    assert writer.stdout is not None
    with writer.stdout:
        writer.stdout.readline()
        time.sleep(seconds)
        writer.send_signal(signal.SIGKILL)
        writer.wait()
    content = file.read_bytes()
    assert len(content) == 4_000_000
    assert len(set(content)) == 1


def test_a_kill_while_several_names_are_written_leaves_the_old_content_beside(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_bytes(b"z" * 4_000_000)
    os.link(file, tmp_path / "b")
    writer = subprocess.Popen([sys.executable, "-c", WRITER, file], stdout=subprocess.PIPE)
    assert writer.stdout is not None
    with writer.stdout:
        writer.stdout.readline()
        time.sleep(0.03)
        writer.send_signal(signal.SIGKILL)
        writer.wait()
    contents = [path.read_bytes() for path in tmp_path.iterdir()]
    assert any(len(content) == 4_000_000 and len(set(content)) == 1 for content in contents)


STOPPED = """
import os, signal, sys
from pathlib import Path
from handrail.fs import safe_open
with safe_open.open_new_file(Path(sys.argv[1])) as file:
    file.write(b"new" * 100_000)
    file.settle()
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("there", [True, False])
def test_a_killed_process_leaves_nothing_beside_the_file(there: bool) -> None:
    # Every Linux has files without a name there.
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        file = Path(folder, "a")
        if there:
            file.write_bytes(OLD)
        done = subprocess.run([sys.executable, "-c", STOPPED, file], check=False)
        assert done.returncode == -signal.SIGKILL
        assert [(path.name, path.read_bytes()) for path in Path(folder).iterdir()] == [("a", OLD)] * there


WITHOUT = """
import os, sys
from pathlib import Path
from handrail.fs import safe_open
folder = Path(sys.argv[1])
safe_open.replace_file(folder / "new", b"one", overwrite=False)
safe_open.replace_file(folder / "new", b"two")
try:
    safe_open.replace_file(folder / "new", b"three", overwrite=False)
except safe_open.Downstream as refused:
    print(refused)
with safe_open.open_new_file(folder / "new") as file:
    file.write(b"four")
    print(len(os.listdir(folder)))
try:
    with safe_open.open_new_file(folder / "new") as file:
        file.write(b"five")
        raise KeyError
except KeyError:
    print(sorted(os.listdir(folder)), (folder / "new").read_bytes())
"""


def test_without_nameless_files_hidden_ones_serve_and_go(tmp_path: Path) -> None:
    # They are given their names through /proc.
    shut = ["bwrap", "--bind", "/", "/", "--dev-bind", "/dev", "/dev", "--tmpfs", "/proc", "--"]
    done = subprocess.run([*shut, sys.executable, "-c", WITHOUT, tmp_path], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [f"'{tmp_path}/new' is there already", "2", "['new'] b'four'"]


def test_a_file_that_is_mounted_on_is_written_in_place(tmp_path: Path, mount: Callable[..., Path]) -> None:
    source, place = tmp_path / "source", tmp_path / "place"
    source.write_bytes(OLD)
    place.touch()
    mount(place, "--bind", source)
    safe_open.replace_file(place, b"new")
    assert source.read_bytes() == b"new"
    assert sorted(os.listdir(tmp_path)) == ["place", "source"]


def test_what_is_not_as_expected_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_bytes(b"one")
    before = file.stat()
    file.write_bytes(b"three")
    with pytest.raises(Downstream, match="somebody else"):
        safe_open.replace_file(file, b"new", expected=safe_open.ExpectedState(before))
    with pytest.raises(Downstream, match="somebody else"):
        safe_open.replace_file(file, b"new", expected=safe_open.ExpectedState(None))
    assert file.read_bytes() == b"three"


def test_a_long_name_is_written(tmp_path: Path) -> None:
    file = tmp_path / ("漢" * 85)
    safe_open.replace_file(file, b"1")
    safe_open.replace_file(file, b"2")
    assert file.read_bytes() == b"2"

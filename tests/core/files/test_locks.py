"""Locks on files: who waits, who does not, and that they end with the process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from handrail.fs.file_locks import is_held, lock_open_file, try_lock

HOLDING = """
import os, sys
from handrail.fs.file_locks import lock_open_file
lock_open_file(os.open(sys.argv[1], os.O_RDWR | os.O_CREAT), shared=sys.argv[2] == "shared")
print("held", flush=True)
sys.stdin.read()
"""
# Every module of core, where what only POSIX has is not there.
IMPORTING = """
import importlib, pkgutil, sys
for name in ("fcntl", "grp", "pty", "pwd", "resource", "termios", "tty"):
    sys.modules[name] = None
import handrail
for module in pkgutil.walk_packages(handrail.__path__, "handrail."):
    importlib.import_module(module.name)
"""


@contextmanager
def held(file: Path, how: str) -> Generator[subprocess.Popen[str]]:
    """Another process that holds the file's lock."""
    argv = [sys.executable, "-c", HOLDING, str(file), how]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process


@pytest.fixture
def descriptor(tmp_path: Path) -> Generator[int]:
    opened = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
    yield opened
    os.close(opened)


@pytest.mark.parametrize("how", ["alone", "shared"])
def test_what_another_process_holds_is_not_taken(tmp_path: Path, descriptor: int, how: str):
    with held(tmp_path / "file", how):
        assert not try_lock(descriptor)
    assert try_lock(descriptor)


@pytest.mark.parametrize("how", ["alone", "shared"])
def test_a_file_is_held_for_as_long_as_its_lock(tmp_path: Path, how: str):
    with held(tmp_path / "file", how):
        assert is_held(tmp_path / "file")
    assert not is_held(tmp_path / "file")


def test_what_is_no_file_is_not_held(tmp_path: Path):
    (tmp_path / "link").symlink_to(tmp_path / "file")
    os.mkfifo(tmp_path / "pipe")
    with held(tmp_path / "file", "alone"):
        assert not any(is_held(tmp_path / name) for name in ("link", "pipe", "none"))


def test_shared_locks_are_held_together(tmp_path: Path, descriptor: int):
    with held(tmp_path / "file", "shared"):
        lock_open_file(descriptor, shared=True)


def test_a_lock_ends_with_its_process_however_it_ends(tmp_path: Path, descriptor: int):
    with held(tmp_path / "file", "alone") as process:
        process.kill()
        lock_open_file(descriptor)


def test_core_is_imported_where_there_is_no_posix():
    run = subprocess.run([sys.executable, "-c", IMPORTING], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr

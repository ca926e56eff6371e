"""Directories for configuration, data, cache and state."""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import platformdirs

from handrail.errors import ConfigError
from handrail.fs.atomic_write import create_sibling_name
from handrail.fs.dirfd_walk import NO_FOLLOW
from handrail.fs.file_locks import lock_open_file
from handrail.json_types import is_object

__all__ = [
    "DESKTOP_DIRS_VARIABLE",
    "AppDirs",
    "ensure_private_folder",
    "find_home_folder",
    "hold_file_lock",
    "write_private_file",
]

# How the variables begin that mark processes of ours, so that they can be found again. They are settings of nobody.
MARKER_PREFIX = "HANDRAIL_MARK_"
# Set on private desktops: the folders config, data, cache and state, joined by `os.pathsep`.
DESKTOP_DIRS_VARIABLE = f"{MARKER_PREFIX}DESKTOP_PLACES"


@dataclass(frozen=True, slots=True)
class AppDirs:
    """The folders of one user: `config` (config.toml), `data` (audit, sessions), `cache` (artifacts), `state` (trust, leases, desktops)."""

    config: Path
    data: Path
    cache: Path
    state: Path

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> AppDirs:
        """Return `$HANDRAIL_HOME/{config,data,cache,state}` if that is set, else the platform's standard directories.

        Raises `ConfigError` for a `HANDRAIL_HOME` that is not an absolute path, or that other users can write: they
        could put a configuration there. A private desktop has separate directories for its programs; a marker variable
        gives the user's.
        """
        if home := environment.get("HANDRAIL_HOME"):
            root = _parse_own_root(home)
            return cls(root / "config", root / "data", root / "cache", root / "state")
        if marked := environment.get(DESKTOP_DIRS_VARIABLE):
            return cls(*(Path(folder) for folder in marked.split(os.pathsep)))
        own = platformdirs.PlatformDirs("handrail", appauthor=False)
        return cls(own.user_config_path, own.user_data_path, own.user_cache_path, own.user_state_path)

    @property
    def config_file(self) -> Path:
        return self.config / "config.toml"

    @property
    def audit(self) -> Path:
        return self.data / "audit"

    @property
    def artifacts(self) -> Path:
        return self.cache / "artifacts"

    @property
    def undo(self) -> Path:
        """The undo store, which no tool may read or write."""
        return self.state / "undo"

    @property
    def trusted_folders(self) -> Path:
        return self.state / "trusted.json"

    @property
    def all(self) -> tuple[Path, ...]:
        return (self.config, self.data, self.cache, self.state)


def _parse_own_root(text: str) -> Path:
    """Return the directory that `HANDRAIL_HOME` names, which may not exist yet."""
    cure = "name a folder of your own, from / or ~ on"
    root = Path(text).expanduser() if "\0" not in text else Path()
    if not root.is_absolute():
        raise ConfigError(f"HANDRAIL_HOME is {text!r}, which is no whole path", hint=cure)
    try:
        found = root.stat()
    except FileNotFoundError:
        return root
    except OSError as exc:
        raise ConfigError(f"HANDRAIL_HOME is {text!r}: {exc.strerror}", hint=cure) from exc
    if not stat.S_ISDIR(found.st_mode):
        raise ConfigError(f"HANDRAIL_HOME is {text!r}, which is no folder", hint=cure)
    if sys.platform != "win32" and found.st_mode & stat.S_IWOTH:
        raise ConfigError(f"HANDRAIL_HOME is {text!r}, which every user can write", hint=f"chmod o-w {text}, or {cure}")
    return root


def find_home_folder(environment: Mapping[str, str]) -> Path:
    """Return the absolute home directory that an environment names, or that of the process's user."""
    return Path(environment.get("HOME") or Path.home()).absolute()


def ensure_private_folder(path: Path) -> Path:
    """Return the directory, after creating it and its missing parents with mode 0700."""
    if not path.is_dir():
        for folder in (*reversed(path.parents), path):
            folder.mkdir(exist_ok=True, mode=0o700)
    return path


@contextmanager
def hold_file_lock(file: Path) -> Generator[None]:
    """Hold a file of ours against other processes; the kernel gives the lock up when this one ends."""
    descriptor = os.open(ensure_private_folder(file.parent) / f".{file.name}.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        lock_open_file(descriptor)
        yield
    finally:
        os.close(descriptor)


def write_private_file(path: Path, text: str) -> None:
    """Atomically replace a file, or a symlink, with a file that only its owner can read."""
    ensure_private_folder(path.parent)
    # A name that was known before could be a link by now: an agent may write in the folder that a person names.
    partial = create_sibling_name(path)
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_FOLLOW, 0o600)
    try:
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(descriptor)
        partial.replace(path)
    except OSError:
        # Half a file is worth nothing on a full disk.
        partial.unlink(missing_ok=True)
        raise


def read_private_json(file: Path, *, most: int) -> Mapping[str, Any] | None:
    """Return the content of a private JSON file, or None if it does not exist.

    The result is empty if the file cannot be read as a JSON object, is not a regular file of this user, or has more
    than `most` bytes.
    """
    try:
        descriptor = os.open(file, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except FileNotFoundError:
        return None
    except OSError:
        return {}
    with open(descriptor, "rb") as opened:
        found = os.fstat(descriptor)
        ours = not hasattr(os, "getuid") or found.st_uid == os.getuid()
        if not stat.S_ISREG(found.st_mode) or not ours or found.st_size > most:
            return {}
        try:
            value = json.loads(opened.read(most))
        except (ValueError, RecursionError):
            return {}
    return value if is_object(value) else {}

"""Directories that the user trusts.

Only there may a project's `handrail.toml` loosen anything, and only with the content it had when the user trusted it.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from handrail.config.source_text import read_source_text
from handrail.errors import ConfigError
from handrail.fs.app_dirs import AppDirs, write_private_file
from handrail.json_types import is_list, is_object

__all__ = ["is_trusted"]

PROJECT_FILE = "handrail.toml"


def list_trusted_folders(places: AppDirs) -> tuple[Path, ...]:
    """Return the real paths of all trusted directories, sorted; raises `ConfigError` if the list is unreliable."""
    return tuple(sorted(_read_trusted(places)))


def is_trusted(folder: Path, *, places: AppDirs) -> bool:
    """Return True if exactly this folder is trusted. That covers neither the folders inside it nor the content of its `handrail.toml`."""
    return folder.resolve() in _read_trusted(places)


def is_trusted_text(folder: Path, text: str, *, places: AppDirs) -> bool:
    """Return True if the directory was trusted with a `handrail.toml` of exactly this text."""
    return _read_trusted(places).get(folder.resolve()) == _hash_text(text)


def trust_folder(folder: Path, *, places: AppDirs) -> Path:
    """Trust a directory with its present `handrail.toml`, and return its real path.

    Raises `ConfigError` if the directory does not exist, or its `handrail.toml` cannot be read.
    """
    real = folder.resolve()
    if not real.is_dir():
        raise ConfigError(f"there is no folder {str(folder)!r}", hint="name one that is there, or none for this one")
    file = real / PROJECT_FILE
    fingerprint = _hash_text(read_source_text(file)) if os.path.lexists(file) else ""
    _write_trusted({**_read_trusted(places), real: fingerprint}, places)
    return real


def untrust_folder(folder: Path, *, places: AppDirs) -> bool:
    """Take trust back; False when the folder was not trusted."""
    known = dict(_read_trusted(places))
    if known.pop(folder.resolve(), None) is None:
        return False
    _write_trusted(known, places)
    return True


def _hash_text(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _read_trusted(places: AppDirs) -> Mapping[Path, str]:
    """Return the trusted directories, each with the fingerprint of its `handrail.toml` at that time.

    The fingerprint is empty if it had no such file.
    """
    file = places.trusted_folders
    try:
        mode = file.stat().st_mode
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as exc:
        raise _unusable_list_error(file, f"cannot be read ({exc})") from exc
    if mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise _unusable_list_error(file, "can be changed by other users")
    return _parse_trusted(text, file)


def _parse_trusted(text: str, file: Path) -> Mapping[Path, str]:
    try:
        listed: Any = json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise _unusable_list_error(file, f"is not JSON ({exc})") from exc
    # Earlier versions kept a list of folders, without what is in them.
    known: Any = dict.fromkeys(listed, "") if is_list(listed) and all(isinstance(i, str) for i in listed) else listed
    if not is_object(known) or not all(isinstance(item, str) for item in known.values()):
        raise _unusable_list_error(file, "is not a list of folders with fingerprints")
    return {Path(folder): str(fingerprint) for folder, fingerprint in known.items()}


def _write_trusted(known: Mapping[Path, str], places: AppDirs) -> None:
    listed = {str(folder): known[folder] for folder in sorted(known)}
    write_private_file(places.trusted_folders, json.dumps(listed, indent=2) + "\n")


def _unusable_list_error(file: Path, why: str) -> ConfigError:
    return ConfigError(
        f"the list of trusted folders, {file}, {why}",
        hint="delete it, and trust your folders again with `handrail trust`",
    )

"""Folders that a person trusts: only there may a project's `handrail.toml` loosen anything."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

from handrail.config.places import Places, write_private
from handrail.errors import ConfigError
from handrail.plain import is_list


def folders(places: Places) -> tuple[Path, ...]:
    """Every trusted folder, as it is really called, sorted. Raises `ConfigError` when the list cannot be relied on."""
    file = places.trusted_folders
    try:
        mode = file.stat().st_mode
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ()
    except (OSError, UnicodeDecodeError) as exc:
        raise _unusable(file, f"cannot be read ({exc})") from exc
    if mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise _unusable(file, "can be changed by other users")
    return _parse(text, file)


def is_trusted(folder: Path, *, places: Places) -> bool:
    """Whether exactly this folder is trusted; the trust of a folder says nothing of those inside it."""
    return folder.resolve() in folders(places)


def trust(folder: Path, *, places: Places) -> Path:
    """Trust a folder from now on; gives its real path. Raises `ConfigError` when there is no such folder."""
    real = folder.resolve()
    if not real.is_dir():
        raise ConfigError(f"there is no folder {str(folder)!r}", hint="name one that is there, or none for this one")
    _write({*folders(places), real}, places)
    return real


def untrust(folder: Path, *, places: Places) -> bool:
    """Take trust back; False when the folder was not trusted."""
    known = set(folders(places))
    real = folder.resolve()
    if real not in known:
        return False
    _write(known - {real}, places)
    return True


def _parse(text: str, file: Path) -> tuple[Path, ...]:
    try:
        listed: Any = json.loads(text)
    except ValueError as exc:
        raise _unusable(file, f"is not JSON ({exc})") from exc
    if not is_list(listed) or not all(isinstance(item, str) for item in listed):
        raise _unusable(file, "is not a list of folders")
    return tuple(sorted(Path(item) for item in listed))


def _write(known: set[Path], places: Places) -> None:
    write_private(places.trusted_folders, json.dumps(sorted(map(str, known)), indent=2) + "\n")


def _unusable(file: Path, why: str) -> ConfigError:
    return ConfigError(
        f"the list of trusted folders, {file}, {why}",
        hint="delete it, and trust your folders again with `handrail trust`",
    )

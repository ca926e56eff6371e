"""The pictures of results that a session keeps beside its artifacts, for whoever looks at its record."""

from __future__ import annotations

import re
from pathlib import Path

__all__ = ["read_picture"]

# How the store names them.
_PICTURE_NAME = re.compile(r"p[0-9]{1,9}\.(jpg|png)")


def read_picture(folder: Path, name: object) -> bytes | None:
    """Return a picture (JPEG or PNG) in a session's folder by its recorded name, or None if it was deleted."""
    if not isinstance(name, str) or not _PICTURE_NAME.fullmatch(name):
        return None
    file = folder / name
    try:
        return None if file.is_symlink() else file.read_bytes()
    except OSError:
        return None

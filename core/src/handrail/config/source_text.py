"""Text of files that people write: configuration files and plans."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from handrail.errors import ConfigError
from handrail.fs.dirfd_walk import SAFE_OPEN_FLAGS

MAX_SOURCE_BYTES = 1_000_000


def read_source_text(file: Path) -> str:
    """Return the text of a configuration file.

    Raises `ConfigError` if it is missing, too large or not UTF-8 text.
    """
    try:
        # Editors on Windows put a mark first.
        return read_regular_file(file, MAX_SOURCE_BYTES).decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        line = exc.object[: exc.start].count(b"\n") + 1
        raise ConfigError(f"{file}:{line}: this is not UTF-8 text", hint="save it as UTF-8") from exc


def read_regular_file(file: Path, most: int, *, kind: str = "file") -> bytes:
    """Return the content of a regular file without blocking on a pipe.

    Raises `ConfigError` if it is missing, of another kind, or larger than `most` bytes. `kind` is what the error
    message says is missing.
    """
    try:
        # Opened before it is looked at: a pipe that came in between would be waited for.
        with open(os.open(file, os.O_RDONLY | SAFE_OPEN_FLAGS), "rb") as opened:
            found = os.fstat(opened.fileno())
            if not stat.S_ISREG(found.st_mode) or found.st_size > most:
                raise ConfigError(f"{file} is not a file of at most {most:,} bytes", hint="put a text file there")
            return opened.read(most)
    except FileNotFoundError as exc:
        from handrail.fs.name_suggestions import describe_similar_names

        raise ConfigError(f"there is no {kind} {str(file)!r}", hint=describe_similar_names(file)) from exc
    except OSError as exc:
        raise ConfigError(f"{file} cannot be read: {exc.strerror}", hint=f"ls -l {file} shows whose it is") from exc

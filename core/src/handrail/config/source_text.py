"""The text of a configuration file."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from handrail.errors import ConfigError
from handrail.files.holding import QUIET

MAX_BYTES = 1_000_000


def read_source(file: Path) -> str:
    """Return the text of a configuration file. Raises `ConfigError` for one that is missing, too large or no text."""
    try:
        # Opened before it is looked at: a pipe that came in between would be waited for.
        with open(os.open(file, os.O_RDONLY | QUIET), "rb") as text:
            found = os.fstat(text.fileno())
            if not stat.S_ISREG(found.st_mode) or found.st_size > MAX_BYTES:
                raise ConfigError(f"{file} is not a file of at most {MAX_BYTES:,} bytes", hint="put a text file there")
            # Editors on Windows put a mark first.
            return text.read(MAX_BYTES).decode("utf-8-sig")
    except FileNotFoundError as exc:
        from handrail.files.naming import near

        raise ConfigError(f"there is no file {str(file)!r}", hint=near(file)) from exc
    except OSError as exc:
        raise ConfigError(f"{file} cannot be read: {exc.strerror}", hint=f"ls -l {file} shows whose it is") from exc
    except UnicodeDecodeError as exc:
        line = exc.object[: exc.start].count(b"\n") + 1
        raise ConfigError(f"{file}:{line}: this is not UTF-8 text", hint="save it as UTF-8") from exc

"""Variables of a session that a command on the host is not given: those that lead programs to files which sandboxed commands can write."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from handrail.files.place_kinds import SHARED_TEMPORARY
from handrail_cli.variables import is_tame

# What a value may join paths by, or put around them.
PIECE = re.compile(r"[^\s:;,=|\"'()<>@]+")
# Folders beside the workspace in which sandboxed commands, or what they started, can have put a file. Below /proc are folders of processes.
SHARED = (*SHARED_TEMPORARY, "/dev/shm", "/proc")


def withheld_variables(
    session: Mapping[str, str],
    host: Mapping[str, str],
    *,
    command: str,
    folder: Path,
    roots: Sequence[Path],
) -> frozenset[str]:
    """Return the session's variables that a command in `folder` on the host is not given, unless its text uses them (`$NAME`).

    These name files in the workspace (`roots`), among temporary files, or by a relative path, and are not the user's own. Any sandboxed command
    may have set them and written the files, and programs obey more variables than a list could hold (`GNUPGHOME`, `LEFTHOOK_BIN`, `ZDOTDIR`).
    """
    temporary = host.get("TMPDIR", "")
    written = (*map(str, roots), *SHARED, *([temporary] if temporary.startswith("/") else []))
    return frozenset(
        name
        for name, value in session.items()
        if host.get(name) != value
        and not is_tame(name, value)
        and _leads_into(value, folder, written)
        and re.search(rf"\$\{{?[!#]?{re.escape(name)}(?!\w)", command) is None
    )


def _leads_into(value: str, folder: Path, written: Sequence[str]) -> bool:
    """Return True if a value holds a relative path, or one into the `written` folders."""
    if "file:" in value.lower() or any(place in value for place in written if not PIECE.fullmatch(place)):
        return True
    real = tuple(map(os.path.realpath, written))
    return any(_is_relative(piece, folder) or _is_below(piece, real) for piece in PIECE.findall(value))


def _is_relative(piece: str, folder: Path) -> bool:
    if os.path.isabs(piece):
        return False
    return "/" in piece or piece.startswith(("~", "..")) or os.path.lexists(folder / piece)


def _is_below(piece: str, roots: Sequence[str]) -> bool:
    if not os.path.isabs(piece):
        return False
    path = os.path.normpath(f"/{piece.lstrip('/')}")
    places = (path, os.path.realpath(path))
    return any(place == root or place.startswith(f"{root.rstrip('/')}/") for place in places for root in roots)

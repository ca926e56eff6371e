"""Ignore files that are links. A search that follows one leaves out the names that are in the file behind it, and so tells what is in a secret.

Git follows none, either. They are looked for before the search, by their names; Python and ripgrep would open them with it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import anyio.to_thread

from handrail import Downstream, ToolContext
from handrail.sandbox.toolchains import resolve_named_folders
from handrail_files.read_permission import ReadPermission

IGNORE_FILES = frozenset((".gitignore", ".ignore", ".rgignore"))
# Seconds that a look through all folders may take.
LOOK_TIMEOUT_S = 5.0


async def check_ignore_links(folder: Path, context: ToolContext, permitted: ReadPermission) -> None:
    """Raise `Downstream` if an ignore file for a search of the folder is a link to a file that may not be read without a question.

    Looked at are those that sandboxed commands can have made.
    """
    roots = _list_written_roots(context)
    # Not abandoned when the call is cancelled: it takes no longer than this.
    for link in await anyio.to_thread.run_sync(_find_linked_files, folder, roots, time.monotonic() + LOOK_TIMEOUT_S):
        real = os.path.realpath(link)
        if os.path.exists(real) and not await permitted.is_open(real):
            raise Downstream(
                f"{link!r} is a link to a file that may not be read, so what it leaves out of a search is not looked up",
                hint="delete it, or search with ignore = false",
            )


def _list_written_roots(context: ToolContext) -> Sequence[Path]:
    session = context.session
    home = session.runtime.judging.home
    opened = resolve_named_folders(session.settings.sandbox.writable, workspace=session.workspace, home=Path(home))
    own = session.temporary
    return [Path(os.path.realpath(root)) for root in (*session.workspace, *opened, *((own,) if own else ()))]


def _find_linked_files(folder: Path, roots: Sequence[Path], until: float) -> list[str]:
    """Return the symlinked ignore files inside the roots that apply to a search of the folder.

    `until`: the deadline of the scan, in monotonic time.
    """
    if any(folder.is_relative_to(root) for root in roots):
        above = [parent for parent in folder.parents if any(parent.is_relative_to(root) for root in roots)]
        starts = [folder]
    else:
        above, starts = [], [root for root in roots if root.is_relative_to(folder)]
    found = [path for parent in above for name in IGNORE_FILES if os.path.islink(path := os.path.join(parent, name))]
    for start in starts:
        found += _walk_linked_files(str(start), until)
    return found


def _walk_linked_files(start: str, until: float) -> Iterator[str]:
    waiting = [start]
    while waiting:
        if time.monotonic() > until:
            raise Downstream(
                f"{start!r} holds too many folders to look through for ignore files that are links",
                hint="search a smaller folder, or with ignore = false",
            )
        with suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                # On some file systems the case of a name does not count.
                elif entry.name.startswith(".") and entry.name.lower() in IGNORE_FILES and entry.is_symlink():
                    yield entry.path

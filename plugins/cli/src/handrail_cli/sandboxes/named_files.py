"""Access to the files a command names if no sandbox is usable: a directory of links to files opened in advance.

The program sees the names it was given, and nothing else of the workspace. If a file is replaced in the meantime, the
program still reads the file that was judged.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from handrail import SubCommand, ToolContext
from handrail.fs import path_resolution, safe_open


class NamedFileView:
    """The directory, until it is closed. Works where the system shows a process's descriptors as files (Linux)."""

    def __init__(self, context: ToolContext) -> None:
        self._held = contextlib.ExitStack()
        try:
            folder = self._held.enter_context(tempfile.TemporaryDirectory(prefix="handrail-files-"))
            self.directory = Path(os.path.realpath(folder))
            for name, real in dict(_find_named_files(context.verdict.parts, context)).items():
                self._show(name, real)
        except BaseException:
            self._held.close()
            raise

    def _show(self, name: str, real: Path) -> None:
        file = self._held.enter_context(safe_open.open_for_reading(real))
        link = self.directory / name
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(f"/proc/{os.getpid()}/fd/{file.fd}")

    def close(self) -> None:
        """Close the files and remove the directory."""
        self._held.close()


def is_path_below(text: str) -> bool:
    """Return True for a relative path that, as written, stays below its starting directory."""
    path = PurePosixPath(text)
    return bool(path.parts) and not path.is_absolute() and ".." not in path.parts and not text.startswith("~")


def _find_named_files(parts: Sequence[SubCommand], context: ToolContext) -> Iterator[tuple[str, Path]]:
    """Yield the words of each subcommand that refer to a file it was judged to read, with the file's path."""
    home = context.session.court.judging.home
    for part in parts:
        reads = {touch.what for touch in part.touches if touch.kind == "read"}
        for word in part.argv[1:]:
            if (
                is_path_below(word)
                and (real := path_resolution.resolve_path(word, cwd=context.cwd, home=home).real) in reads
            ):
                yield word, Path(real)

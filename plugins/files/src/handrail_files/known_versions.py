"""Record of what a session has read and written, to detect outside changes before such a file is overwritten."""

from __future__ import annotations

import os
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path

from handrail import Downstream, ServiceContext
from handrail.fs.safe_open import is_unchanged
from handrail_files.file_content import compute_digest

MAX_VERSIONS = 10_000
# Bytes whose digest takes no time to speak of.
CHEAP = 262_144


@dataclass(frozen=True, slots=True)
class FileVersion:
    """File as it was read.

    `digest` covers all of its bytes; it is None unless the file was read completely and has at most `CHEAP` bytes.
    """

    status: os.stat_result
    digest: bytes | None


class KnownVersions:
    """The versions that one session knows, by real paths and by the names that were given; the newest of them, at most 10,000.

    A service of scope session.
    """

    def __init__(self) -> None:
        self._versions: OrderedDict[Path | str, FileVersion] = OrderedDict()

    @classmethod
    async def open(cls, context: ServiceContext) -> KnownVersions:
        return cls()

    async def close(self) -> None:
        self._versions.clear()

    def note(self, path: Path, text: str, status: os.stat_result, data: bytes | None = None) -> None:
        """Remember what the session has seen under the name `text`; `data` where that was all of it."""
        version = FileVersion(status, compute_digest(data) if data is not None and len(data) <= CHEAP else None)
        for key in (path, text):
            self._versions[key] = version
            self._versions.move_to_end(key)
        while len(self._versions) > MAX_VERSIONS:
            self._versions.popitem(last=False)

    def check(self, path: Path, text: str, status: os.stat_result, data: bytes) -> None:
        """Raise `Downstream` if the file, whose content is now `data`, differs from what the session has read.

        A file whose real path was never read, such as the target of a name that has become a symlink since, is compared
        with what was read under the name `text`.
        """
        version = self._versions.get(path) or self._versions.get(text)
        if version is None:
            return
        same = (
            is_unchanged(status, version.status) if version.digest is None else compute_digest(data) == version.digest
        )
        if not same:
            raise Downstream(
                f"{text!r} has changed since it was read here",
                hint="nothing was written; read it again with read_file, then change what is there now",
                details={"reason": "stale"},
            )

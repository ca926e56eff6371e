"""What a session has read and written: a change of such a file by somebody else is noticed before it is written over."""

from __future__ import annotations

import os
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path

from handrail import Downstream
from handrail.files.opened import unchanged
from handrail.plugins.services import ServiceContext
from handrail_files.content import digest

MOST = 10_000
# Bytes whose digest takes no time to speak of.
CHEAP = 262_144


@dataclass(frozen=True, slots=True)
class Version:
    """A file as it was read: what the system said of it and, where it was read whole, a digest of its bytes."""

    status: os.stat_result
    digest: bytes | None


class Known:
    """The versions that one session knows, by real paths and by the names that were given; the newest of them, at most 10,000.

    A service of scope session.
    """

    def __init__(self) -> None:
        self._versions: OrderedDict[Path | str, Version] = OrderedDict()

    @classmethod
    async def open(cls, context: ServiceContext) -> Known:
        return cls()

    async def close(self) -> None:
        self._versions.clear()

    def note(self, path: Path, text: str, status: os.stat_result, data: bytes | None = None) -> None:
        """Remember what the session has seen under the name `text`; `data` where that was all of it."""
        version = Version(status, digest(data) if data is not None and len(data) <= CHEAP else None)
        for key in (path, text):
            self._versions[key] = version
            self._versions.move_to_end(key)
        while len(self._versions) > MOST:
            self._versions.popitem(last=False)

    def check(self, path: Path, text: str, status: os.stat_result, data: bytes) -> None:
        """Raise `Downstream` when the file, which is now `data`, is not what the session has read.

        What was never read itself, as what a name leads to since it became a link, is held against what was read under that name.
        """
        version = self._versions.get(path) or self._versions.get(text)
        if version is None:
            return
        same = unchanged(status, version.status) if version.digest is None else digest(data) == version.digest
        if not same:
            raise Downstream(
                f"{text!r} has changed since it was read here",
                hint="nothing was written; read it again with read_file, then change what is there now",
                details={"reason": "stale"},
            )

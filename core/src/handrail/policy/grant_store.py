"""The grants that hold for always: one private file of the user's, that sessions read and answers are added to."""

from __future__ import annotations

import logging
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from handrail.fs.app_dirs import AppDirs, hold_file_lock, write_private_file
from handrail.policy.grants import Grant

if TYPE_CHECKING:
    from pydantic import TypeAdapter

log = logging.getLogger(__name__)

# Beyond it, the oldest are given up: each call is held against all of them. A file that is larger was not written here.
MAX_GRANTS = 1_000
MAX_BYTES = 4_194_304


@dataclass(frozen=True, slots=True)
class GrantStore:
    """The file of one user. Reading and changing it is safe beside other processes that do. Of more than `most` the oldest are given up."""

    file: Path
    most: int = MAX_GRANTS

    @classmethod
    def of(cls, places: AppDirs) -> GrantStore:
        return cls(places.data / "grants.json")

    def read(self) -> tuple[Grant, ...]:
        """Return the valid grants, oldest first; none from an unreliable file, which is set aside and reported."""
        try:
            return self._read()
        except FileNotFoundError:
            return ()
        except (OSError, ValueError):
            # It may have been mended meanwhile.
            with hold_file_lock(self.file):
                return self._reliable()

    def add(self, grant: Grant) -> Grant:
        """Keep a grant; one for the same is renewed and keeps its id."""

        def added(known: Sequence[Grant]) -> Sequence[Grant]:
            before = next((each for each in known if each.same(grant)), None)
            if before is None:
                return [*known, grant]
            renewed = replace(grant, id=before.id, uses=before.uses)
            return [renewed if each is before else each for each in known]

        return next(each for each in self._change(added) if each.same(grant))

    def revoke(self, id: str | None = None) -> tuple[Grant, ...]:
        """Take back one grant by its id, or all; those that were taken back."""
        gone: list[Grant] = []

        def left(known: Sequence[Grant]) -> Sequence[Grant]:
            gone.extend(each for each in known if id in (None, each.id))
            return [each for each in known if each not in gone]

        self._change(left)
        return tuple(gone)

    def used(self, uses: Mapping[str, int]) -> None:
        """Add to the uses of grants, by their id."""
        self._change(lambda known: [replace(each, uses=each.uses + uses.get(each.id, 0)) for each in known])

    def _read(self) -> tuple[Grant, ...]:
        found = self.file.stat()
        mode = found.st_mode
        if not stat.S_ISREG(mode):
            raise PermissionError("it is no ordinary file")
        if mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise PermissionError("other users can change it")
        if found.st_size > MAX_BYTES:
            raise PermissionError(f"it has {found.st_size:,} bytes, and at most {MAX_BYTES:,} are read")
        text = self.file.read_bytes()
        return tuple(grant for grant in _grant_adapter().validate_json(text) if not grant.expired())[-self.most :]

    def _change(self, change: Callable[[Sequence[Grant]], Sequence[Grant]]) -> Sequence[Grant]:
        with hold_file_lock(self.file):
            known = self._reliable()
            after = tuple(change(known))[-self.most :]
            if after != known:
                write_private_file(self.file, _grant_adapter().dump_json(list(after), indent=2).decode() + "\n")
            return after

    def _reliable(self) -> tuple[Grant, ...]:
        try:
            return self._read()
        except FileNotFoundError:
            return ()
        except (OSError, ValueError) as exc:
            self._set_aside(exc)
            return ()

    def _set_aside(self, why: Exception) -> None:
        kept = self.file.with_name(f"{self.file.name}.broken-{datetime.now(UTC):%Y%m%d-%H%M%S}")
        try:
            self.file.replace(kept)
        except FileNotFoundError:
            return
        said = why.args[-1] if isinstance(why, PermissionError) and why.args else "it is not what was written there"
        log.error("the file of grants cannot be relied on (%s); it is kept as %s, and nothing is granted", said, kept)


def _grant_adapter() -> TypeAdapter[list[Grant]]:
    # Built when a grant is read or written, which most sessions never do.
    from pydantic import TypeAdapter

    return TypeAdapter(list[Grant])

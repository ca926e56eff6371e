"""Results too long to show: kept whole in a file, shown as a handle."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from handrail.places import private_folder


class Artifact:
    """A file that grows while a tool writes it, then stays. `id` is its handle in the session."""

    def __init__(self, id: str, kind: str, path: Path) -> None:
        self.id = id
        self.kind = kind
        self.path = path
        self.size = 0
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        # Not buffered: what is written comes in large pieces, and is there when the process is killed.
        self._file = open(descriptor, "wb", buffering=0)

    def write(self, data: bytes | memoryview) -> None:
        """Append bytes. Raises OSError when the disk is full."""
        while len(data):
            written = self._file.write(data)
            self.size += written
            data = data[written:]

    def close(self) -> None:
        """No more will be written."""
        self._file.close()

    def wire(self) -> dict[str, Any]:
        """How a result names it: `{id, kind, path, bytes}`."""
        return {"id": self.id, "kind": self.kind, "path": str(self.path), "bytes": self.size}


class Artifacts:
    """The artifacts of one session, in a folder of its own that is made on first use."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._held: dict[str, Artifact] = {}

    def create(self, kind: str = "text") -> Artifact:
        """A new, empty artifact."""
        private_folder(self._folder)
        id = f"a{len(self._held) + 1}"
        self._held[id] = Artifact(id, kind, self._folder / f"{id}.{kind}")
        return self._held[id]

    def keep(self, text: str) -> dict[str, Any]:
        """Keep a text whole; how a result names it. Raises OSError when the disk is full."""
        artifact = self.create()
        artifact.write(text.encode("utf-8", "replace"))
        artifact.close()
        return artifact.wire()

    def close(self) -> None:
        """No artifact will be written any more."""
        for artifact in self._held.values():
            artifact.close()

    def __iter__(self) -> Iterator[Artifact]:
        return iter(self._held.values())

    def __len__(self) -> int:
        return len(self._held)

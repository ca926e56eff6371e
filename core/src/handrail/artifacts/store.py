"""Store of results too long to show: saved in full to a file, shown as a handle, and read with query tools.

See `queries`. A file is written through an `ArtifactSpool`; when that is closed, the session holds an `Artifact` of the
declared or detected kind.
"""

from __future__ import annotations

import contextlib
import copy
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from io import FileIO
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from handrail.api.result import TextSource
from handrail.errors import NotFound, Stopped
from handrail.fs.app_dirs import ensure_private_folder
from handrail.fs.file_locks import lock_open_file

if TYPE_CHECKING:
    from handrail.api.tool import Tool
    from handrail.artifacts.line_paging import ArtifactLines
    from handrail.artifacts.queries import ArtifactQuery

__all__ = ["Artifact", "ArtifactStore"]

# A living session holds a lock on this file in its folder.
LOCK_FILE = ".lock"
PNG_SIGNATURE = b"\x89PNG"
# A file up to this size is looked through for its number of lines when it is kept; of a larger one they are counted when asked for.
MAX_COUNTED_BYTES = 8 * 2**20


class Artifact:
    """A file that a session holds under the handle `id`. Subclasses are kinds; queries of a class fit its subclasses too.

    `source` says whose text it is; None for what is Handrail's own. `limit`: bytes of it that one result may show.
    """

    kind: ClassVar[str] = "binary"
    # What can be asked of this kind beside what fits every one.
    queries: ClassVar[Sequence[ArtifactQuery]] = ()

    def __init__(self, id: str, path: Path, *, limit: int, source: TextSource | None = None) -> None:
        self.id = id
        self.path = path
        self.limit = limit
        self.source = source
        self._stopped = threading.Event()
        self._cache: dict[str, Any] = {}

    @property
    def size(self) -> int:
        """Bytes."""
        return os.stat(self.path, follow_symlinks=False).st_size

    def open(self) -> FileIO:
        """Open the file for reading, unbuffered. Raises `NotFound` if it is gone."""
        try:
            return FileIO(os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC))
        except OSError as exc:
            raise NotFound(
                f"the artifact {self.id!r} cannot be read any more ({exc.strerror})", hint="make the call again"
            ) from exc

    @property
    def cache(self) -> dict[str, Any]:
        """Data that queries keep between calls: an index, never content."""
        return self._cache

    def reader(self) -> Self:
        """Return the same artifact for one query, which `stop` cancels."""
        reader = copy.copy(self)
        reader._stopped = threading.Event()
        return reader

    def stop(self) -> None:
        """Whoever reads in another thread is to end."""
        self._stopped.set()

    def checkpoint(self) -> None:
        """Raise `Stopped` if the answer is no longer needed; call it periodically while reading."""
        if self._stopped.is_set():
            raise Stopped("the call was cancelled")

    def wire(self) -> dict[str, Any]:
        """Return the form of the artifact in a result: `{id, kind, path, bytes, lines?}`."""
        return {"id": self.id, "kind": self.kind, "path": str(self.path), "bytes": self.size}


class TextArtifact(Artifact):
    """Text of any form, in UTF-8."""

    kind = "text"

    @property
    def lines(self) -> ArtifactLines:
        """Its lines by number."""
        from handrail.artifacts.line_paging import ArtifactLines, LineIndex

        return ArtifactLines(self, self._cache.setdefault("marks", LineIndex()))

    def wire(self) -> dict[str, Any]:
        wire = super().wire()
        return {**wire, "lines": self.lines.count()} if wire["bytes"] <= MAX_COUNTED_BYTES else wire


class JsonArtifact(TextArtifact):
    """One JSON value."""

    kind = "json"


class JsonLinesArtifact(JsonArtifact):
    """A JSON value on each line: for queries, an array of them."""

    kind = "jsonl"


class MarkdownArtifact(TextArtifact):
    """Markdown."""

    kind = "markdown"


class XmlArtifact(TextArtifact):
    """XML."""

    kind = "xml"


class YamlArtifact(TextArtifact):
    """YAML."""

    kind = "yaml"


class CsvArtifact(TextArtifact):
    """Rows of values between commas, semicolons or tabs."""

    kind = "csv"


ARTIFACT_KINDS: Mapping[str, type[Artifact]] = {
    each.kind: each
    for each in (
        TextArtifact,
        JsonArtifact,
        JsonLinesArtifact,
        MarkdownArtifact,
        XmlArtifact,
        YamlArtifact,
        CsvArtifact,
        Artifact,
    )
}


class ArtifactSpool:
    """A file that is written. Once it is closed, the session holds it as an artifact, and `wire` names it."""

    def __init__(
        self, id: str, path: Path, owner: ArtifactStore, *, kind: type[Artifact] | None, source: TextSource | None
    ) -> None:
        self.id = id
        self.path = path
        self.size = 0
        self.declared = kind
        self._source = source
        self._owner = owner
        self._kept: Artifact | None = None
        # What may be the beginning of a secret.
        self._held = b""
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        # Not buffered: what is written comes in large pieces, and is there when the process is killed.
        self._file = open(descriptor, "wb", buffering=0)

    @property
    def kind(self) -> str:
        """Kind that was declared, or detected on closing; text until then."""
        kind = type(self._kept) if self._kept is not None else self.declared
        return (kind or TextArtifact).kind

    @property
    def source(self) -> TextSource | None:
        """Whose text it is; None for what is Handrail's own."""
        return self._source

    @source.setter
    def source(self, source: TextSource | None) -> None:
        self._source = source
        if self._kept is not None:
            self._kept.source = source

    def write(self, data: bytes | memoryview) -> None:
        """Append bytes, without secrets that calls were given. Raises OSError when the disk is full."""
        if self._owner.strained is not None:
            data, self._held = self._owner.strained(self._held + bytes(data))
        self._append(data)

    def _append(self, data: bytes | memoryview) -> None:
        while len(data):
            written = self._file.write(data)
            self.size += written
            data = data[written:]

    def close(self) -> Artifact:
        """Finish writing and return the artifact."""
        if self._kept is None:
            held, self._held = self._held, b""
            try:
                self._append(held)
            finally:
                self._file.close()
            self._kept = self._owner.hold(self)
        return self._kept

    def put(self, data: str | bytes) -> dict[str, Any]:
        """Write all of it and close; how a result names it. Raises OSError when the disk is full, and leaves nothing behind then."""
        try:
            self.write(data.encode("utf-8", "replace") if isinstance(data, str) else data)
        except OSError:
            self.discard()
            raise
        return self.wire()

    def discard(self) -> None:
        """Leave nothing behind of what was not closed yet: it becomes no artifact."""
        self._file.close()
        self.path.unlink(missing_ok=True)
        self._owner.drop(self)

    def wire(self) -> dict[str, Any]:
        """Close the file and return the form of the artifact in a result."""
        return self.close().wire()


class ArtifactStore:
    """Artifacts of one session, in a private folder that is created on first use and locked while the session lives.

    `changed` is called whenever an artifact is added. `limit`: bytes of an artifact that one result may show.
    """

    def __init__(self, folder: Path, *, limit: int = 51_200, changed: Callable[[], None] = lambda: None) -> None:
        self.limit = limit
        # Takes secrets out of a piece that is written, and tells what is to be held back of it; None as long as there are none.
        self.strained: Callable[[bytes], tuple[bytes, bytes]] | None = None
        # What calls that are under way have made: whose text it is, is known when they are over.
        self.unclaimed: list[tuple[str, ArtifactSpool]] = []
        self._folder = folder
        self._changed = changed
        self._held: dict[str, Artifact] = {}
        self._writing: list[ArtifactSpool] = []
        self._made = 0
        self._pictures = count(1)
        self._tools: Sequence[Tool] | None = None
        self._lock: int | None = None

    def of_call(self, call_id: str, tool: str, *, trusted: bool) -> CallArtifacts:
        """Return the artifacts for one call; unless the tool is `trusted`, its text is untrusted until it is over."""
        return CallArtifacts(
            self, call_id, None if trusted else TextSource(tool, call_id, f"{tool}, which is not over")
        )

    def create(self, kind: str | type[Artifact] | None = None, *, source: TextSource | None = None) -> ArtifactSpool:
        """Create an empty file for an artifact of that kind, or of a kind detected on closing.

        Raises OSError if space runs out.
        """
        wanted = ARTIFACT_KINDS[kind] if isinstance(kind, str) else kind
        path = self._new(f".{wanted.kind}" if wanted is not None else ".txt")
        spool = ArtifactSpool(path.stem, path, self, kind=wanted, source=source)
        self._writing.append(spool)
        return spool

    def keep(
        self, data: str | bytes, kind: str | type[Artifact] | None = None, *, source: TextSource | None = None
    ) -> dict[str, Any]:
        """Store a text or bytes in full, and return the form of the artifact in a result.

        Raises OSError if the disk is full, and leaves nothing behind then.
        """
        return self.create(kind, source=source).put(data)

    def store(self, data: bytes, suffix: str) -> Path:
        """Save bytes to a file that is not an artifact: a picture or document for a client that accepts files.

        Raises OSError if there is no space.
        """
        path = self._new(suffix)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with open(descriptor, "wb") as file:
            file.write(data)
        return path

    def picture(self, data: bytes) -> str:
        """Keep a picture of a result beside them, for whoever looks at the session's record; the name of its file. Raises OSError when there is
        no room.
        """
        path = self._in_folder(f"p{next(self._pictures)}.{'png' if data.startswith(PNG_SIGNATURE) else 'jpg'}")
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with open(descriptor, "wb") as file:
            file.write(data)
        return path.name

    def claim(self, call_id: str, source: TextSource | None) -> None:
        """Assign a source to what a call made, once the call is over."""
        for _, spool in (made for made in self.unclaimed if made[0] == call_id):
            spool.source = source
        self.unclaimed = [made for made in self.unclaimed if made[0] != call_id]

    def withdraw(self, call_id: str) -> frozenset[str]:
        """Delete what a call that has just ended made, and return the handles removed."""
        made = [spool for made_by, spool in self.unclaimed if made_by == call_id]
        for spool in made:
            spool.close()
            spool.path.unlink(missing_ok=True)
            del self._held[spool.id]
        self.unclaimed = [each for each in self.unclaimed if each[0] != call_id]
        if made:
            self._tools = None
            self._changed()
        return frozenset(spool.id for spool in made)

    def get(self, id: str) -> Artifact | None:
        """Return the artifact with that handle, or None."""
        return self._held.get(id)

    def source_of(self, id: str) -> TextSource | None:
        """Whose text the artifact is; None for what is Handrail's own, and for none."""
        held = self._held.get(id)
        return held.source if held is not None else None

    def forged(self, forge: Callable[[Sequence[Artifact]], Sequence[Tool]]) -> Sequence[Tool]:
        """Return the tools that `forge` builds for the held artifacts, cached until these change."""
        if self._tools is None:
            self._tools = forge(tuple(self._held.values()))
        return self._tools

    def close(self) -> None:
        """Close all files and release the lock; artifacts can no longer be written."""
        self._changed = lambda: None
        for spool in list(self._writing):
            spool.close()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def drop(self, spool: ArtifactSpool) -> None:
        """Discard a file that was being written."""
        self._writing = [each for each in self._writing if each is not spool]
        self.unclaimed = [made for made in self.unclaimed if made[1] is not spool]

    def hold(self, spool: ArtifactSpool) -> Artifact:
        """Return a completed file as an artifact, and hold it."""
        from handrail.artifacts.kind_detection import detect_file_kind

        self._writing = [each for each in self._writing if each is not spool]
        kind = spool.declared or ARTIFACT_KINDS[detect_file_kind(spool.path)]
        artifact = self._held[spool.id] = kind(spool.id, spool.path, limit=self.limit, source=spool.source)
        self._tools = None
        self._changed()
        return artifact

    def _new(self, suffix: str) -> Path:
        self._made += 1
        return self._in_folder(f"a{self._made}{suffix}")

    def _in_folder(self, name: str) -> Path:
        if self._lock is None:
            self._lock = _lock_session_folder(self._folder)
        return self._folder / name

    def __iter__(self) -> Iterator[Artifact]:
        return iter(tuple(self._held.values()))

    def __len__(self) -> int:
        return len(self._held)


class CallArtifacts:
    """Storage of one call for what is too long to show."""

    def __init__(self, artifacts: ArtifactStore, call_id: str, source: TextSource | None) -> None:
        self._artifacts = artifacts
        self._call_id = call_id
        self._source = source

    def create(self, kind: str | type[Artifact] | None = None) -> ArtifactSpool:
        """Create an empty file for an artifact of that kind, or of a kind detected on closing.

        Raises OSError if space runs out.
        """
        spool = self._artifacts.create(kind, source=self._source)
        self._artifacts.unclaimed.append((self._call_id, spool))
        return spool

    def keep(self, data: str | bytes, kind: str | type[Artifact] | None = None) -> dict[str, Any]:
        """Store a text or bytes in full; return the form of the artifact in a result.

        Raises OSError if the disk is full.
        """
        return self.create(kind).put(data)

    def get(self, id: str) -> Artifact | None:
        """Return the session's artifact with that handle, or None."""
        return self._artifacts.get(id)

    def __iter__(self) -> Iterator[Artifact]:
        return iter(self._artifacts)

    def __len__(self) -> int:
        return len(self._artifacts)


def _lock_session_folder(folder: Path) -> int:
    """Create the session's folder if needed, and lock it until the process ends; return the lock's descriptor.

    Raises OSError if the path is a symlink or not a folder.
    """
    ensure_private_folder(folder.parent)
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        held = os.open(LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=descriptor)
    finally:
        os.close(descriptor)
    lock_open_file(held, shared=True)
    return held

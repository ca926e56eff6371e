"""Latest output of running calls for watchers in other processes; kept only while watched, and removed with the call.

A watcher holds a lock on a file of the session. While a streaming call runs, the session checks periodically for a
watcher; without one it receives, stores and writes nothing.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from itertools import takewhile
from pathlib import Path

from handrail.api.events import Event, EventBus, Output
from handrail.fs.app_dirs import AppDirs, ensure_private_folder, read_private_json
from handrail.fs.file_locks import is_held, lock_open_file
from handrail.redaction import redact_text

__all__ = ["watch_live_output"]

log = logging.getLogger(__name__)

LIVE_OUTPUT_FOLDER = "onlookers"
# Seconds between two looks at whether somebody is there, and between two writings.
WATCHER_POLL_S = 0.5
# Letters and lines that are shown of one call, and calls. As many letters before them are kept: a secret is known by its beginning.
MAX_OUTPUT_CHARS = 8_000
MAX_OUTPUT_LINES = 60
MAX_SHOWN_CALLS = 16
# A file that is longer is none of ours.
MAX_LIVE_OUTPUT_BYTES = 2**20


class LiveOutputWriter:
    """The session's side: told which streaming calls run, it shows what they put out."""

    def __init__(self, places: AppDirs, *, session: str, bus: EventBus) -> None:
        self._watched, self._shown = _live_output_files(places, session)
        self._bus = bus
        # What each call has put out last.
        self._ends: dict[str, str] = {}
        self._looking: asyncio.Task[None] | None = None
        self._stop: Callable[[], None] | None = None
        self._news = False

    def began(self, call_id: str) -> None:
        """Register a streaming call that starts."""
        self._ends[call_id] = ""
        if self._looking is None:
            self._looking = asyncio.get_running_loop().create_task(self._look())

    def ended(self, call_id: str) -> None:
        """Remove a streaming call that has ended."""
        self._ends.pop(call_id, None)
        self._news = True
        if not self._ends and self._looking is not None:
            self._looking.cancel()
            self._looking = None
            self._turn_away()

    async def _look(self) -> None:
        try:
            while True:
                await asyncio.sleep(WATCHER_POLL_S)
                if not is_held(self._watched):
                    self._turn_away()
                    continue
                if self._stop is None:
                    self._stop = self._bus.subscribe(self._hear)
                if self._news:
                    self._write()
        except OSError as exc:
            log.warning("what calls put out cannot be shown at this machine: %s", exc)
            self._turn_away()

    def _turn_away(self) -> None:
        """Stop collecting output and remove what was shown: there is no watcher, or no streaming call."""
        if self._stop is not None:
            self._stop()
            self._stop = None
            self._ends = dict.fromkeys(self._ends, "")
            try:
                self._shown.unlink(missing_ok=True)
            # The call that ends here has done what it has done, whatever became of the folder.
            except OSError as exc:
                log.warning("what calls put out stays in %s: %s", self._shown, exc)

    def _hear(self, event: Event) -> None:
        if isinstance(event, Output) and event.call_id in self._ends:
            self._ends[event.call_id] = (self._ends[event.call_id] + event.text)[-2 * MAX_OUTPUT_CHARS :]
            self._news = True

    def _write(self) -> None:
        self._news = False
        shown = {id: _last_lines(text) for id, text in list(self._ends.items())[-MAX_SHOWN_CALLS:] if text}
        partial = self._shown.with_suffix(".partial")
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0), 0o600)
        with open(descriptor, "w", encoding="utf-8", errors="replace") as file:
            json.dump(shown, file)
        partial.replace(self._shown)


def _last_lines(text: str) -> str:
    """Return the last lines as a terminal would show them: of overwritten text, the newest."""
    # Where a secret begins further above, these two differ in what is left of it.
    pairs = zip(reversed(redact_text(text)), reversed(redact_text(text[-MAX_OUTPUT_CHARS:])), strict=False)
    end = [one for one, _ in takewhile(lambda pair: pair[0] == pair[1], pairs)]
    lines = "".join(reversed(end)).split("\n")[-MAX_OUTPUT_LINES:]
    return "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in lines)


@contextmanager
def watch_live_output(places: AppDirs, session: str) -> Generator[Callable[[], Mapping[str, str]]]:
    """Watch a session of any process within the block.

    Yields a function that returns the last lines of each call that streams now, by its id.
    """
    watched, shown = _live_output_files(places, session)
    descriptor = _open_locked(watched)

    def seen() -> Mapping[str, str]:
        told = read_private_json(shown, most=MAX_LIVE_OUTPUT_BYTES) or {}
        return {id: text for id, text in told.items() if isinstance(text, str)}

    try:
        yield seen
    finally:
        os.close(descriptor)
        if not is_held(watched):
            watched.unlink(missing_ok=True)
            # Of a session that was killed.
            shown.unlink(missing_ok=True)


def _live_output_files(places: AppDirs, session: str) -> tuple[Path, Path]:
    folder = places.state / LIVE_OUTPUT_FOLDER
    return folder / f"{session}.watched", folder / f"{session}.json"


def _open_locked(file: Path) -> int:
    """Open the file and lock it jointly with other watchers; return the descriptor."""
    ensure_private_folder(file.parent)
    while True:
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
        lock_open_file(descriptor, shared=True)
        # Another onlooker who left meanwhile may have taken it away.
        if file.exists() and os.path.samestat(os.fstat(descriptor), file.stat()):
            return descriptor
        os.close(descriptor)

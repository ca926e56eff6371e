"""What running calls put out, for onlookers in other processes: the end of it, as long as somebody looks on, and gone with the call.

An onlooker holds a file of the session's locked. A session looks for one now and then while a call that streams runs; where there is none it
hears, keeps and writes nothing.
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

from handrail.config.places import Places, private_folder, read_private
from handrail.files.locks import is_held, lock
from handrail.records.redaction import redact_text
from handrail.watching.events import Bus, Event, Output

log = logging.getLogger(__name__)

FOLDER = "onlookers"
# Seconds between two looks at whether somebody is there, and between two writings.
LOOK_S = 0.5
# Letters and lines that are shown of one call, and calls. As many letters before them are kept: a secret is known by its beginning.
LETTERS = 8_000
LINES = 60
CALLS = 16
# A file that is longer is none of ours.
MOST_BYTES = 2**20


class Onlookers:
    """The session's side: told which streaming calls run, it shows what they put out."""

    def __init__(self, places: Places, *, session: str, bus: Bus) -> None:
        self._watched, self._shown = _files(places, session)
        self._bus = bus
        # What each call has put out last.
        self._ends: dict[str, str] = {}
        self._looking: asyncio.Task[None] | None = None
        self._stop: Callable[[], None] | None = None
        self._news = False

    def began(self, call_id: str) -> None:
        """A call that streams runs now."""
        self._ends[call_id] = ""
        if self._looking is None:
            self._looking = asyncio.get_running_loop().create_task(self._look())

    def ended(self, call_id: str) -> None:
        """It is over."""
        self._ends.pop(call_id, None)
        self._news = True
        if not self._ends and self._looking is not None:
            self._looking.cancel()
            self._looking = None
            self._turn_away()

    async def _look(self) -> None:
        try:
            while True:
                await asyncio.sleep(LOOK_S)
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
        """Nobody looks on, or there is nothing to see."""
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
            self._ends[event.call_id] = (self._ends[event.call_id] + event.text)[-2 * LETTERS :]
            self._news = True

    def _write(self) -> None:
        self._news = False
        shown = {id: _last_lines(text) for id, text in list(self._ends.items())[-CALLS:] if text}
        partial = self._shown.with_suffix(".partial")
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0), 0o600)
        with open(descriptor, "w", encoding="utf-8", errors="replace") as file:
            json.dump(shown, file)
        partial.replace(self._shown)


def _last_lines(text: str) -> str:
    """The last lines as a terminal would show them: of what was written over, the newest."""
    # Where a secret begins further above, these two differ in what is left of it.
    pairs = zip(reversed(redact_text(text)), reversed(redact_text(text[-LETTERS:])), strict=False)
    end = [one for one, _ in takewhile(lambda pair: pair[0] == pair[1], pairs)]
    lines = "".join(reversed(end)).split("\n")[-LINES:]
    return "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in lines)


@contextmanager
def looking_on(places: Places, session: str) -> Generator[Callable[[], Mapping[str, str]]]:
    """Look on at a session, in whatever process, within the block. What is given tells the last lines of each call that streams now, by its id."""
    watched, shown = _files(places, session)
    descriptor = _held(watched)

    def seen() -> Mapping[str, str]:
        told = read_private(shown, most=MOST_BYTES) or {}
        return {id: text for id, text in told.items() if isinstance(text, str)}

    try:
        yield seen
    finally:
        os.close(descriptor)
        if not is_held(watched):
            watched.unlink(missing_ok=True)
            # Of a session that was killed.
            shown.unlink(missing_ok=True)


def _files(places: Places, session: str) -> tuple[Path, Path]:
    folder = places.state / FOLDER
    return folder / f"{session}.watched", folder / f"{session}.json"


def _held(file: Path) -> int:
    """The file, open and locked together with other onlookers."""
    private_folder(file.parent)
    while True:
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
        lock(descriptor, shared=True)
        # Another onlooker who left meanwhile may have taken it away.
        if file.exists() and os.path.samestat(os.fstat(descriptor), file.stat()):
            return descriptor
        os.close(descriptor)

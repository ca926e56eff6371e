"""What goes on in every session of this user, read from what the sessions themselves leave: their audits, their questions, the stop switches.

The sessions are the truth, and the console only shows it: nothing here has to be kept in step with them.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import AsyncGenerator, Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from handrail.asking.inquiries import question_wire
from handrail.asking.pending import PendingApproval, PendingInquiry, pending
from handrail.config.places import Places
from handrail.desktops.stops import Stops
from handrail.records.reading import Telling, audits, outline_of, page_of
from handrail.watching.onlookers import looking_on

Open = PendingApproval | PendingInquiry

LOOK_S = 0.25
# A line now and then tells the page that we are still there.
BEAT_S = 10.0
# Calls of a running session that a page is told first.
FIRST = 100
# Past calls on one page.
PAGE = 100


@dataclass(slots=True)
class Told:
    """What one page has been told."""

    sessions: dict[str, int] = field(default_factory=dict[str, int])
    questions: list[dict[str, Any]] | None = None
    stops: list[str] | None = None


class Watch:
    """Looks again and again as long as `run` runs. `own`: the console's own sessions, which are not shown among those of agents."""

    def __init__(self, places: Places, *, own: Callable[[], Collection[str]]) -> None:
        self.ended = anyio.Event()
        self._places = places
        self._own = own
        self._running: dict[str, Telling] = {}
        # Files of sessions that are over.
        self._over: set[str] = set()
        self._questions: list[Open] = []
        self._stops: list[str] = []
        self._news = anyio.Event()

    def end(self) -> None:
        """Tell every page that this is the end."""
        self.ended.set()
        self._tell()

    async def run(self) -> None:
        """Look until it is cancelled."""
        while True:
            if await anyio.to_thread.run_sync(self._look):
                self._tell()
            await anyio.sleep(LOOK_S)

    def running(self, session: str) -> Telling | None:
        """A session that runs."""
        return self._running.get(session)

    def question(self, session: str, id: str, call_hash: str) -> Open | None:
        """An open question, which is about exactly this call."""
        open_ = (each for each in pending(self._places) if (each.session, each.id) == (session, id))
        return next((each for each in open_ if each.call_hash == call_hash), None)

    async def lines(self) -> AsyncGenerator[dict[str, Any]]:
        """All there is to tell, then whatever is new."""
        told = Told()
        while not self.ended.is_set():
            news = self._news
            for line in list(self._told(told)):
                yield line
            with anyio.move_on_after(BEAT_S):
                await news.wait()
            yield {"kind": "beat"}

    async def output(self, session: str) -> AsyncGenerator[dict[str, Any]]:
        """The last lines of each call that streams in a running session, whenever they are others."""
        told: Mapping[str, str] | None = None
        beaten = anyio.current_time()
        with looking_on(self._places, session) as seen:
            while session in self._running and not self.ended.is_set():
                shown = await anyio.to_thread.run_sync(seen)
                if shown != told or anyio.current_time() - beaten > BEAT_S:
                    told, beaten = shown, anyio.current_time()
                    yield {"calls": shown}
                with anyio.move_on_after(LOOK_S):
                    await self.ended.wait()

    def _tell(self) -> None:
        self._news.set()
        self._news = anyio.Event()

    # In a thread

    def _look(self) -> bool:
        """Whether anything is new."""
        before = self._questions, self._stops, set(self._running)
        self._find()
        read = [self._follow(telling) for telling in list(self._running.values())]
        self._questions = pending(self._places)
        self._stops = Stops(self._places.state / "stops").all()
        return any(read) or before != (self._questions, self._stops, set(self._running))

    def _find(self) -> None:
        known = self._over | self._running.keys() | set(self._own())
        for file in audits(self._places.audit):
            if file.stem in known or _is_empty(file):
                continue
            found = Telling(file)
            # Those that are over are read when somebody looks at them.
            if found.running:
                found.read()
                self._running[found.id] = found
            else:
                self._over.add(found.id)

    def _follow(self, telling: Telling) -> bool:
        # Asked before it is read: what a session writes last is told, too.
        running = telling.running
        read = telling.read()
        if not running:
            del self._running[telling.id]
            self._over.add(telling.id)
        return read

    # What a page is told

    def _told(self, told: Told) -> Iterator[dict[str, Any]]:
        for id in [id for id in told.sessions if id not in self._running]:
            del told.sessions[id]
            yield {"kind": "over", "session": id}
        for id, telling in sorted(self._running.items()):
            since = told.sessions.get(id)
            if since is None or since != telling.version:
                yield {"kind": "session", **session_wire(telling)}
            calls = [key for key, call in telling.calls.items() if since is None or call.version > since]
            for key in calls[-FIRST:]:
                yield {"kind": "call", **call_wire(telling, key)}
            told.sessions[id] = telling.version
        questions = [open_wire(each) for each in self._questions]
        if questions != told.questions:
            told.questions = questions
            yield {"kind": "questions", "questions": questions, "now": time.time()}
        if self._stops != told.stops:
            told.stops = list(self._stops)
            yield {"kind": "stops", "stops": told.stops}


def _is_empty(file: Path) -> bool:
    """Whether nothing is written yet: an audit has just been made, and is not held by its session so far; or it is gone."""
    try:
        return not file.stat().st_size
    except OSError:
        return True


def session_wire(telling: Telling) -> dict[str, Any]:
    """A session as the page is told of it."""
    shown = ("name", "display", "private", "switch")
    desktop = {each: getattr(telling.desktop, each) for each in shown} if telling.desktop is not None else None
    return {"session": telling.id, **telling.about, "desktop": desktop}


def call_wire(telling: Telling, key: int) -> dict[str, Any]:
    """A call as the page is told of it."""
    return {"key": key, **telling.calls[key].told}


def open_wire(left: Open) -> dict[str, Any]:
    """An open question as the page is told of it."""
    common = {each: getattr(left, each) for each in ("session", "id", "call_hash", "expires")}
    if isinstance(left, PendingInquiry):
        return {**common, "questions": [question_wire(each) for each in left.questions]}
    return {**common, **{each: getattr(left, each) for each in ("tool", "text", "narrow", "args", "choices", "grants")}}


def past(places: Places, *, most: int, before: str | None = None) -> list[dict[str, Any]]:
    """The newest sessions that there are records of, or the newest ones before a session, newest first."""
    found: list[dict[str, Any]] = []
    files = (file for file in audits(places.audit) if before is None or file.stem < before)
    for file in itertools.islice(files, most):
        outline = outline_of(file)
        told = {"calls": outline.calls, "exact": outline.exact, "tools": outline.tools[:6]}
        found.append({"session": file.stem, **outline.about, **told, "running": Telling(file).running})
    return found


def past_calls(file: Path, *, before: str | None) -> dict[str, Any]:
    """One page of the calls of a session that there are records of."""
    page = page_of(file, count=PAGE, before=before)
    return {"session": file.stem, "calls": page.calls, "before": page.before}

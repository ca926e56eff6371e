"""State of all sessions of this user, read from what they leave: audit logs, questions and stop switches.

The sessions are the source of truth, and the console only displays it: it has no state to keep in sync.
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

from handrail.approval.ask_user import question_wire
from handrail.approval.inbox import PendingApproval, PendingInquiry, list_pending_questions
from handrail.audit.query import AuditReader, list_audits, read_outline, read_page
from handrail.desktop.stop_switches import StopSwitches
from handrail.events.live_output import watch_live_output
from handrail.fs.app_dirs import AppDirs

OpenQuestion = PendingApproval | PendingInquiry

LOOK_INTERVAL_S = 0.25
# A line now and then tells the page that we are still there.
BEAT_S = 10.0
# Calls of a running session that a page is told first.
FIRST = 100
# Past calls on one page.
CALLS_PER_PAGE = 100


@dataclass(slots=True)
class SentState:
    """State that has been sent to one page."""

    sessions: dict[str, int] = field(default_factory=dict[str, int])
    questions: list[dict[str, Any]] | None = None
    stops: list[str] | None = None


class SessionWatch:
    """Looks again and again as long as `run` runs. `own`: the console's own sessions, which are not shown among those of agents."""

    def __init__(self, places: AppDirs, *, own: Callable[[], Collection[str]]) -> None:
        self.ended = anyio.Event()
        self._places = places
        self._own = own
        self._running: dict[str, AuditReader] = {}
        # Files of sessions that are over.
        self._over: set[str] = set()
        self._questions: list[OpenQuestion] = []
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
            await anyio.sleep(LOOK_INTERVAL_S)

    def running(self, session: str) -> AuditReader | None:
        """Return a running session, or None."""
        return self._running.get(session)

    def question(self, session: str, id: str, call_hash: str) -> OpenQuestion | None:
        """Return an open question that concerns exactly this call, or None."""
        open_ = (each for each in list_pending_questions(self._places) if (each.session, each.id) == (session, id))
        return next((each for each in open_ if each.call_hash == call_hash), None)

    async def lines(self) -> AsyncGenerator[dict[str, Any]]:
        """Yield the complete state, then everything new."""
        told = SentState()
        while not self.ended.is_set():
            news = self._news
            for line in list(self._told(told)):
                yield line
            with anyio.move_on_after(BEAT_S):
                await news.wait()
            yield {"kind": "beat"}

    async def output(self, session: str) -> AsyncGenerator[dict[str, Any]]:
        """Yield the last lines of each streaming call of a running session, whenever they change."""
        told: Mapping[str, str] | None = None
        beaten = anyio.current_time()
        with watch_live_output(self._places, session) as seen:
            while session in self._running and not self.ended.is_set():
                shown = await anyio.to_thread.run_sync(seen)
                if shown != told or anyio.current_time() - beaten > BEAT_S:
                    told, beaten = shown, anyio.current_time()
                    yield {"calls": shown}
                with anyio.move_on_after(LOOK_INTERVAL_S):
                    await self.ended.wait()

    def _tell(self) -> None:
        self._news.set()
        self._news = anyio.Event()

    # In a thread

    def _look(self) -> bool:
        """Return True if anything is new."""
        before = self._questions, self._stops, set(self._running)
        self._find()
        read = [self._follow(telling) for telling in list(self._running.values())]
        self._questions = list_pending_questions(self._places)
        self._stops = StopSwitches(self._places.state / "stops").all()
        return any(read) or before != (self._questions, self._stops, set(self._running))

    def _find(self) -> None:
        known = self._over | self._running.keys() | set(self._own())
        for file in list_audits(self._places.audit):
            if file.stem in known or _is_empty(file):
                continue
            found = AuditReader(file)
            # Those that are over are read when somebody looks at them.
            if found.running:
                found.read()
                self._running[found.id] = found
            else:
                self._over.add(found.id)

    def _follow(self, telling: AuditReader) -> bool:
        # Asked before it is read: what a session writes last is told, too.
        running = telling.running
        read = telling.read()
        if not running:
            del self._running[telling.id]
            self._over.add(telling.id)
        return read

    # What a page is told

    def _told(self, told: SentState) -> Iterator[dict[str, Any]]:
        for id in [id for id in told.sessions if id not in self._running]:
            del told.sessions[id]
            yield {"kind": "over", "session": id}
        for id, telling in sorted(self._running.items()):
            since = told.sessions.get(id)
            if since is None or since != telling.version:
                yield {"kind": "session", **serialize_session(telling)}
            calls = [key for key, call in telling.calls.items() if since is None or call.version > since]
            for key in calls[-FIRST:]:
                yield {"kind": "call", **serialize_call(telling, key)}
            told.sessions[id] = telling.version
        questions = [serialize_question(each) for each in self._questions]
        if questions != told.questions:
            told.questions = questions
            yield {"kind": "questions", "questions": questions, "now": time.time()}
        if self._stops != told.stops:
            told.stops = list(self._stops)
            yield {"kind": "stops", "stops": told.stops}


def _is_empty(file: Path) -> bool:
    """Return True if nothing has been written yet, or the file is gone.

    A new audit log is empty until its session locks it.
    """
    try:
        return not file.stat().st_size
    except OSError:
        return True


def serialize_session(telling: AuditReader) -> dict[str, Any]:
    """Serialize a session for the page."""
    shown = ("name", "display", "private", "switch")
    desktop = {each: getattr(telling.desktop, each) for each in shown} if telling.desktop is not None else None
    return {"session": telling.id, **telling.about, "desktop": desktop}


def serialize_call(telling: AuditReader, key: int) -> dict[str, Any]:
    """Serialize a call for the page."""
    return {"key": key, **telling.calls[key].told}


def serialize_question(left: OpenQuestion) -> dict[str, Any]:
    """Serialize an open question for the page."""
    common = {each: getattr(left, each) for each in ("session", "id", "call_hash", "expires")}
    if isinstance(left, PendingInquiry):
        return {**common, "questions": [question_wire(each) for each in left.questions]}
    return {**common, **{each: getattr(left, each) for each in ("tool", "text", "narrow", "args", "choices", "grants")}}


def list_past_sessions(places: AppDirs, *, most: int, before: str | None = None) -> list[dict[str, Any]]:
    """List the newest sessions that have records, or the newest ones before a session, newest first."""
    found: list[dict[str, Any]] = []
    files = (file for file in list_audits(places.audit) if before is None or file.stem < before)
    for file in itertools.islice(files, most):
        outline = read_outline(file)
        told = {"calls": outline.calls, "exact": outline.exact, "tools": outline.tools[:6]}
        found.append({"session": file.stem, **outline.about, **told, "running": AuditReader(file).running})
    return found


def read_past_calls(file: Path, *, before: str | None) -> dict[str, Any]:
    """Return one page of the recorded calls of a session."""
    page = read_page(file, count=CALLS_PER_PAGE, before=before)
    return {"session": file.stem, "calls": page.calls, "before": page.before}

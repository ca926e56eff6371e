"""Runs of the agent, kept in one SQLite file of the person's by ADK's own service: to be looked at, gone on with, exported and deleted."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.genai import types

from handrail import HandrailError, NotFound, Session
from handrail.audit.query import read_lines
from handrail.audit.writer import list_parts
from handrail.fs.app_dirs import AppDirs, ensure_private_folder
from handrail.fs.file_locks import try_lock
from handrail.text import format_suggestion

if TYPE_CHECKING:
    from google.adk.sessions.session import Session as AdkSession

# Both of them in ADK's words: runs of one program by one person.
APP_NAME = "handrail"
# Where it stands in a run's state what was asked for, by which model, how it ended, and whose audits tell of it.
TASK_KEY, MODEL_KEY, ENDING_KEY, SESSIONS_KEY = (
    "handrail_task",
    "handrail_model",
    "handrail_ending",
    "handrail_sessions",
)
UNFINISHED = "unfinished"
RESUME_MESSAGE = "Go on with the task. The program was started anew since."

UNKNOWN_OUTCOME = (
    "the run was stopped while this call was under way: it is not known whether it was done, in whole or in part; "
    "look before doing it again"
)
STOPPED_NOTE = "(The run was stopped here.)"
NOT_STARTED_NOTE = "the run was stopped before this call was made: nothing was done"


@dataclass(frozen=True, slots=True)
class StoredRun:
    """One run as it is listed. `steps` counts the model's answers; it is 0 where they were not looked at."""

    id: str
    task: str
    model: str
    ending: str
    updated: str
    steps: int = 0

    @classmethod
    def of(cls, kept: AdkSession) -> StoredRun:
        state = kept.state
        return cls(
            kept.id,
            str(state.get(TASK_KEY, "")),
            str(state.get(MODEL_KEY, "")),
            str(state.get(ENDING_KEY) or UNFINISHED),
            datetime.fromtimestamp(kept.last_update_time, UTC).isoformat(timespec="seconds"),
            sum(event.author == APP_NAME and event.content is not None for event in kept.events),
        )


class RunStore:
    """The runs of one person."""

    def __init__(self, places: AppDirs) -> None:
        self._folder = ensure_private_folder(places.data / "runs")
        self._audit = places.audit
        file = self._folder / "runs.db"
        # SQLite makes its files with the rights of the first.
        os.close(os.open(file, os.O_RDWR | os.O_CREAT, 0o600))
        self.service = SqliteSessionService(str(file))

    async def list(self) -> list[StoredRun]:
        """Return all runs, the newest last."""
        listed = await self.service.list_sessions(app_name=APP_NAME, user_id=APP_NAME)
        return [StoredRun.of(each) for each in listed.sessions]

    async def get(self, id: str) -> AdkSession:
        """Return a run with all of its events. Raises `NotFound`, which names the nearest match."""
        found = await self.service.get_session(app_name=APP_NAME, user_id=APP_NAME, session_id=id)
        if found is None:
            known = [each.id for each in await self.list()]
            raise NotFound(
                f"there is no run {id!r}{format_suggestion(id, known)}", hint="`handrail sessions list` shows them"
            )
        return found

    async def delete(self, id: str) -> None:
        """Forget one of them; its audits stay."""
        await self.get(id)
        with self.alone(id):
            await self.service.delete_session(app_name=APP_NAME, user_id=APP_NAME, session_id=id)

    async def begin(self, session: Session, task: str, model: str) -> str:
        """Create a run, and return its id, which is that of the session in which it begins."""
        state = {TASK_KEY: task, MODEL_KEY: model, SESSIONS_KEY: [session.id]}
        made = await self.service.create_session(
            app_name=APP_NAME, user_id=APP_NAME, session_id=session.id, state=state
        )
        return made.id

    async def go_on(self, id: str, session: Session, model: str) -> None:
        """Go on with a run, in a new session or the same: what was left open is answered with what is known of it."""
        kept = await self.get(id)
        if parts := [self._answer(kept, call) for call in _find_open_calls(kept.events)]:
            await self._append(kept, content=types.Content(role="user", parts=parts))
            kept = await self.get(id)
        if _is_waiting_for_model(kept.events):
            # Services of models hold a person and a model to turns.
            await self._append(kept, content=types.Content(role="model", parts=[types.Part(text=STOPPED_NOTE)]))
            kept = await self.get(id)
        state = {
            MODEL_KEY: model,
            ENDING_KEY: "",
            SESSIONS_KEY: list(dict.fromkeys([*kept.state.get(SESSIONS_KEY, []), session.id])),
        }
        await self._append(kept, state=state)

    async def ended(self, id: str, ending: str) -> None:
        """Record how the run ended this time."""
        await self._append(await self.get(id), state={ENDING_KEY: ending})

    async def _append(
        self, kept: AdkSession, *, content: types.Content | None = None, state: Mapping[str, Any] | None = None
    ) -> None:
        actions = EventActions(state_delta=dict(state or {}))
        last = kept.events[-1].invocation_id if kept.events else ""
        # What a tool has answered is the agent's event.
        author = APP_NAME if content is not None else "user"
        await self.service.append_event(
            kept, Event(author=author, invocation_id=last, content=content, actions=actions)
        )

    def _answer(self, kept: AdkSession, call: types.FunctionCall) -> types.Part:
        told = self._known(kept, str(call.id))
        return types.Part(function_response=types.FunctionResponse(id=call.id, name=call.name, response=told))

    def _known(self, kept: AdkSession, call_id: str) -> dict[str, Any]:
        """Return what the audit log says about a call whose result the agent never received.

        Only the log of the run's last session is read.
        """
        lines = [line for line in self._lines(kept) if line.get("call_id") == call_id]
        ended = next((line for line in lines if line.get("event") == "result"), None)
        if ended is not None:
            note = "the run was stopped after this call had ended; this is what its record holds"
            return {"status": ended["status"], "note": note, "result": ended["result"]}
        begun = not self._audited(kept) or any(line.get("event") == "call" for line in lines)
        message = UNKNOWN_OUTCOME if begun else NOT_STARTED_NOTE
        return {"status": "error", "error": {"code": "interrupted", "message": message, "retryable": not begun}}

    def _audited(self, kept: AdkSession) -> bool:
        return any(self._lines(kept))

    def _lines(self, kept: AdkSession) -> Iterator[dict[str, Any]]:
        for id in kept.state.get(SESSIONS_KEY, [])[-1:]:
            for part in list_parts(self._audit / f"{id}.jsonl"):
                yield from read_lines(part)

    @contextmanager
    def alone(self, id: str) -> Generator[None]:
        """Hold a run against other programs; `HandrailError` where one works on it."""
        descriptor = os.open(self._folder / f".{Path(id).name}.lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            if not try_lock(descriptor):
                raise HandrailError(f"another program is at the run {id!r}", hint="wait until it has ended")
            yield
        finally:
            os.close(descriptor)


def _is_waiting_for_model(events: Sequence[Event]) -> bool:
    """Return True if the last message is not from the model."""
    said = [event.content for event in events if event.content]
    return bool(said) and said[-1].role == "user"


def _find_open_calls(events: Sequence[Event]) -> list[types.FunctionCall]:
    """Return the calls without a response, in order."""
    answered = {response.id for event in events for response in event.get_function_responses()}
    return [call for event in events for call in event.get_function_calls() if call.id not in answered]

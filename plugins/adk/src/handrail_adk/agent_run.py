"""One task, carried out by an agent of ADK in one session."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from google.adk.agents import Agent
from google.adk.agents.run_config import RunConfig as AdkRunConfig, StreamingMode  # pyright: ignore[reportPrivateImportUsage] # where its documentation has it from
from google.adk.models.base_llm import BaseLlm
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.genai import types

from handrail import Answer, Approval, Session
from handrail.api.events import Event, Finished, Proposed
from handrail.errors import NoConfirmer
from handrail_adk.budgets import RunBudget, RunEnding, RunTerminated, UsageMeter
from handrail_adk.instructions import build_instruction
from handrail_adk.retrying_model import RetryingModel, build_content_config
from handrail_adk.run_events import (
    Begun,
    CompletedCall,
    Ended,
    ModelTextPiece,
    PictureReceived,
    Retried,
    Said,
    Spent,
    Thought,
)
from handrail_adk.toolset import HandrailToolset

if TYPE_CHECKING:
    from google.adk.events.event import Event as AdkEvent
    from google.adk.sessions.base_session_service import BaseSessionService

    from handrail_adk.config import RunConfig

log = logging.getLogger(__name__)

AGENT_NAME = "handrail"
STOPPED_REASON = "it was stopped"


@dataclass(frozen=True, slots=True)
class RunJob:
    """Task for a model, with the model and the limits of the run.

    `service` stores ADK's sessions, and `id` names the session to continue; None starts a new one. Once `stopped`
    returns True, the model is not called again.
    """

    task: str
    model: BaseLlm
    config: RunConfig
    budget: RunBudget
    service: BaseSessionService = field(default_factory=InMemorySessionService)
    id: str | None = None
    stopped: Callable[[], bool] = lambda: False


async def refuse_unattended(approval: Approval) -> Answer:
    """Raise `NoConfirmer`: the confirmer for a run without a user at a terminal."""
    raise NoConfirmer("it needs a yes, and nobody is at a terminal", hint="a person can start the run with --yes")


async def run_job(job: RunJob, session: Session) -> Ended:
    """Have the model carry out the task. Events are published on the session's bus, `Ended` last."""
    # What its log says of an agent's errors is said by their results.
    logging.getLogger("google_adk").setLevel(logging.CRITICAL)
    meter, ledger = UsageMeter(job.budget), WorkLog()
    stop_hearing = session.bus.subscribe(ledger.hear)
    ending, reason = RunEnding.STOPPED, STOPPED_REASON
    try:
        ending, reason = await _run_within_budget(job, session, meter)
        if ending is RunEnding.DONE and ledger.denied:
            ending, reason = RunEnding.DENIED, f"{ledger.denied} was denied"
    finally:
        stop_hearing()
        ended = Ended(
            "",
            ending=ending.value,
            done=ending is RunEnding.DONE,
            reason=reason,
            steps=meter.steps,
            seconds=round(meter.seconds, 3),
            tokens_read=meter.read,
            tokens_written=meter.written,
            dollars=meter.dollars,
            work=tuple(ledger.work),
        )
        session.bus.publish(ended)
    return ended


async def _run_within_budget(job: RunJob, session: Session, meter: UsageMeter) -> tuple[RunEnding, str]:
    """Run the agent within its budget, and return how the run ended with an explanatory sentence."""
    alarm = asyncio.timeout(job.budget.seconds)
    try:
        async with alarm:
            await _run_agent(job, session, meter)
    except TimeoutError as exc:
        if not alarm.expired():
            return RunEnding.FAILED, f"the run failed: {exc}"
        return RunEnding.SECONDS, f"its {job.budget.seconds:g} s are over"
    except RunTerminated as exc:
        return exc.ending, str(exc)
    # The agent's framework failed: whoever started the run is told how.
    except Exception as exc:
        log.debug("the run failed", exc_info=True)
        return RunEnding.FAILED, f"the run failed: {type(exc).__name__}: {exc}"
    return RunEnding.DONE, ""


async def _run_agent(job: RunJob, session: Session, meter: UsageMeter) -> None:
    def retried(attempt: int, seconds: float, reason: str) -> None:
        session.bus.publish(Retried("", attempt, seconds, reason))

    model = RetryingModel.of(job.model, job.config, meter, retried)
    agent = Agent(
        name=AGENT_NAME,
        model=model,
        instruction=lambda _: build_instruction(session),
        tools=[HandrailToolset(session, pictures=job.config.pictures)],
        generate_content_config=build_content_config(job.config),
    )
    async with Runner(app_name=AGENT_NAME, agent=agent, session_service=job.service) as runner:
        id = job.id or (await job.service.create_session(app_name=AGENT_NAME, user_id=AGENT_NAME)).id
        session.bus.publish(Begun("", job.task, job.model.model, id))
        events = runner.run_async(
            user_id=AGENT_NAME,
            session_id=id,
            new_message=types.Content(role="user", parts=[types.Part(text=job.task)]),
            # Its own count of the model's answers must not end a run before ours does.
            run_config=AdkRunConfig(max_llm_calls=0, streaming_mode=StreamingMode.SSE),
        )
        async with aclosing(events):
            async for event in events:
                for told in _convert_event(event):
                    session.bus.publish(told)
                if event.usage_metadata and not event.partial:
                    session.bus.publish(Spent("", meter.steps, meter.read, meter.written, meter.dollars))
                if job.stopped():
                    raise RunTerminated(RunEnding.STOPPED, STOPPED_REASON)


def _convert_event(event: AdkEvent) -> Sequence[Event]:
    """Convert an event of ADK to the events that are shown to the user."""
    found: list[Event] = []
    for part in (event.content.parts if event.content else None) or []:
        if part.text and event.partial:
            found.append(ModelTextPiece("", part.text, bool(part.thought)))
        elif part.text:
            found.append(Thought("", part.text) if part.thought else Said("", part.text))
        response = part.function_response
        for medium in (response.parts if response else None) or []:
            blob = medium.inline_data
            if response and blob and blob.data and (blob.mime_type or "").startswith("image/"):
                found.append(PictureReceived("", response.name or "", blob.mime_type or "", blob.data))
    return found


class WorkLog:
    """Log of the calls that a run completed. `denied` names the tool of the last call if that was denied."""

    def __init__(self) -> None:
        self.work: list[CompletedCall] = []
        # The last call, where it was denied.
        self.denied = ""
        self._proposed: dict[str, str] = {}

    def hear(self, event: Event) -> None:
        """Something happened to a call."""
        if isinstance(event, Proposed) and event.parent is None:
            self._proposed[event.call_id] = event.description
        elif isinstance(event, Finished):
            self.denied = event.tool if event.status == "denied" else ""
            description = self._proposed.pop(event.call_id, None)
            if event.status == "success" and description is not None:
                self.work.append(CompletedCall(event.tool, description))

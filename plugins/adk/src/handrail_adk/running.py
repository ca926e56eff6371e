"""One task, carried out by an agent of ADK in one session."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass

from google.adk.agents import Agent
from google.adk.agents.invocation_context import LlmCallsLimitExceededError
from google.adk.agents.run_config import RunConfig
from google.adk.models.base_llm import BaseLlm
from google.adk.runners import InMemoryRunner
from google.genai import types

from handrail import Answer, Approval, Session
from handrail.errors import NoConfirmer
from handrail.watching.events import Event, Finished
from handrail_adk.toolset import HandrailToolset

log = logging.getLogger(__name__)

NAME = "handrail"
INSTRUCTION = """\
You carry out one task on a computer with the tools you are given, and nobody talks with you meanwhile. Do what the task says and nothing beyond it. \
Look at what a step did before the next one. When it is done, or cannot be done, say so in a sentence or two, and call nothing more.
"""


@dataclass(frozen=True, slots=True)
class Budget:
    """How many steps the model may take, and how many seconds all of it."""

    steps: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a task, and why it is not done."""

    done: bool
    reason: str = ""


STOPPED = Outcome(False, "it was stopped")


async def nobody(approval: Approval) -> Answer:
    """The confirmer where no person is at a terminal."""
    raise NoConfirmer("it needs a yes, and nobody is at a terminal", hint="a person can start the run with --yes")


async def carry_out(
    task: str, model: str | BaseLlm, session: Session, budget: Budget, said: Callable[[str], None]
) -> Outcome:
    """Have the model carry out the task. `said` is told what it says."""
    # What its log says of an agent's errors is said by their results.
    logging.getLogger("google_adk").setLevel(logging.CRITICAL)
    denied = ""

    def hear(event: Event) -> None:
        nonlocal denied
        if isinstance(event, Finished):
            denied = f"{event.tool} was denied" if event.status == "denied" else ""

    stop_hearing = session.bus.subscribe(hear)
    agent = Agent(name=NAME, model=model, instruction=lambda _: INSTRUCTION, tools=[HandrailToolset(session)])
    try:
        async with InMemoryRunner(agent, app_name=NAME) as runner, asyncio.timeout(budget.seconds):
            await _follow(runner, task, budget, said)
    except TimeoutError:
        return Outcome(False, f"its {budget.seconds:g} s are over")
    except LlmCallsLimitExceededError:
        return Outcome(False, f"its {budget.steps} steps are used up")
    # The model's service, or its client, failed: whoever started the run is told how.
    except Exception as exc:
        log.debug("the run failed", exc_info=True)
        return Outcome(False, f"the model failed: {type(exc).__name__}: {exc}")
    finally:
        stop_hearing()
    return Outcome(not denied, denied)


async def _follow(runner: InMemoryRunner, task: str, budget: Budget, said: Callable[[str], None]) -> None:
    kept = await runner.session_service.create_session(app_name=NAME, user_id=NAME)
    events = runner.run_async(
        user_id=NAME,
        session_id=kept.id,
        new_message=types.Content(role="user", parts=[types.Part(text=task)]),
        run_config=RunConfig(max_llm_calls=budget.steps),
    )
    async for event in events:
        for part in (event.content.parts if event.content else None) or []:
            if part.text and not part.thought:
                said(part.text)
        if event.error_code == LlmCallsLimitExceededError.__name__:
            raise LlmCallsLimitExceededError
        if event.error_code:
            raise RuntimeError(f"{event.error_code}: {event.error_message}")

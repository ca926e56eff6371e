"""Approval through ADK's own tool confirmation.

ADK asks when all calls of a model step have ended, and repeats a call once the user has approved it. A call that needs
approval therefore ends without having done anything, and so do the calls that may not overtake it. The repeated call
is allowed only if the user would be shown exactly what they were shown before.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import anyio

from handrail.api.approval import Answer, Approval, Choice
from handrail.approval.rendering import question
from handrail.errors import NoConfirmer, Stopped
from handrail.pipeline.scheduler import is_waiting_for_person

if TYPE_CHECKING:
    from google.adk.tools.tool_confirmation import ToolConfirmation

    from handrail import Session

# How often it is looked whether the other calls of the step have come as far as they can.
CHECK_INTERVAL_S = 0.01
RETRY_HINT = "call it again after that one, if it is still needed"


@dataclass(eq=False, slots=True)
class PendingConfirmation:
    """State of the approval of one call.

    `given` is the user's answer, `shown` the hash of the question that it answers, and `open` a new question.
    """

    given: ToolConfirmation | None = None
    shown: str | None = None
    open: Approval | None = None


class AdkConfirmer:
    """The confirmer of a session whose calls come from ADK."""

    def __init__(self, session: Session) -> None:
        self._session = session
        # By the ids of the calls that are under way.
        self.asks: dict[str, PendingConfirmation] = {}

    async def __call__(self, approval: Approval) -> Answer:
        ask = self.asks.get(approval.call_id)
        if ask is None:
            raise NoConfirmer("it is part of another call, and in ADK a person is asked about whole calls only")
        if ask.given is None:
            await self._ask(ask, approval)
            raise NoConfirmer("a person is asked; it has not been done")
        if ask.shown != compute_question_hash(approval):
            raise NoConfirmer(
                "what a person said yes to is not what would happen now", hint="call it again to ask anew"
            )
        given, ask.given = ask.given, None
        # A yes is good for one question.
        ask.shown = None
        return _parse_answer(given, approval)

    async def _ask(self, ask: PendingConfirmation, approval: Approval) -> None:
        """Leave the question for ADK, and end the calls that wait behind this one.

        ADK prompts the user only after every call of the step has ended.
        """
        ask.open = approval
        under_way = self._session.running
        while True:
            mine = [running for id, running in under_way.items() if id in self.asks]
            if all(running.why is not None or is_waiting_for_person(running) for running in mine):
                break
            await anyio.sleep(CHECK_INTERVAL_S)
        behind = [running.call.call_id for running in mine if running.asked is None and running.why is None]
        self._session.cancel(
            behind, why=Stopped("an earlier call of this step waits for a person's yes", hint=RETRY_HINT)
        )


def build_hint(approval: Approval) -> str:
    """Return the question as text."""
    return question(approval)


def build_payload(approval: Approval) -> dict[str, Any]:
    """Return the data from which a client can build its own prompt, including the accepted answers.

    A client replies with, for example, `{"answer": "session", "grant": 1}`.
    """
    return {
        "tool": approval.tool,
        "call_hash": approval.call_hash,
        "rule": approval.verdict.rule,
        "reasons": [reason.text for reason in approval.verdict.reasons],
        "answers": [str(choice) for choice in approval.choices if choice is not Choice.EDIT],
        "grants": [grant.label for grant in approval.grants],
    }


def compute_question_hash(approval: Approval) -> str:
    """Return a hash that identifies the question: the call, and the complete text shown to the user."""
    return hashlib.sha256(f"{approval.call_hash}\n{question(approval)}".encode()).hexdigest()


def _parse_answer(given: ToolConfirmation, approval: Approval) -> Answer:
    """Return the answer that a client sent. An answer that is not understood denies the call."""
    said = given.payload
    wanted = cast("Mapping[str, Any]", said if isinstance(said, Mapping) else {})
    word = wanted.get("answer", "once")
    if not given.confirmed or word not in ("once", "session", "always"):
        return Answer(Choice.DENY)
    choice = Choice(word)
    if choice is Choice.ONCE:
        return Answer(choice)
    number = wanted.get("grant", 1)
    if not isinstance(number, int) or not 1 <= number <= len(approval.grants):
        return Answer(Choice.DENY)
    return Answer(choice, grant=approval.grants[number - 1])

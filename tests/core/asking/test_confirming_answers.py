"""What can be answered, to which question, and what comes of it."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from handrail import (
    Answer,
    Approval,
    Choice,
    Decision,
    EvaluationContext,
    HandrailError,
    Invocation,
    Opinion,
    Reason,
    Session,
    ToolResult,
    Write,
    tool,
)
from handrail.api.events import ApprovalAnswered, ApprovalAsked, Event
from handrail.api.verdict import Evaluator
from handrail.testing import ScriptedConfirmer, open_test_session


@tool(effects=[Write("settings")])
async def change(value: int = 1) -> str:
    """Change a setting."""
    return f"set to {value}"


class Silent:
    """Somebody who looks at the questions and leaves the answers to others."""

    def __init__(self) -> None:
        self.asked: list[Approval] = []
        self.taken_back = 0

    async def __call__(self, approval: Approval) -> Answer:
        self.asked.append(approval)
        try:
            await anyio.sleep_forever()
            raise AssertionError
        finally:
            self.taken_back += 1


@asynccontextmanager
async def waiting(session: Session, *values: int) -> AsyncGenerator[dict[int, ToolResult]]:
    """Inside, a call of `change` waits for an answer for each value; afterwards the results are there."""
    results: dict[int, ToolResult] = {}

    async def call(number: int, value: int) -> None:
        results[number] = await session.call("change", {"value": value})

    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            for number, value in enumerate(values):
                group.start_soon(call, number, value)
            while len(session.approvals.waiting) < len(values):
                await anyio.sleep(0.001)
            yield results


async def test_a_lasting_yes_means_the_grant_that_was_picked() -> None:
    class Picks(ScriptedConfirmer):
        async def __call__(self, approval: Approval) -> Answer:
            self.asked.append(approval)
            return Answer(Choice.SESSION, grant=approval.grants[1])

    person = Picks()
    async with open_test_session(tools=[change], confirm=person) as session:
        for value in range(3):
            assert (await session.call("change", {"value": value})).ok
    assert person.asked[0].grants[1].label == "every call of change"
    assert len(person.asked) == 1


async def test_feedback_is_told_to_the_model() -> None:
    person = ScriptedConfirmer(Answer(Choice.DENY, feedback="set it to 3 instead"))
    async with open_test_session(tools=[change], confirm=person) as session:
        result = await session.call("change")
    assert result.error_code == "denied_by_user"
    assert "a person said no: set it to 3 instead" in result["error"]["message"]


async def test_an_edited_call_is_asked_about_again_and_runs_as_edited() -> None:
    person = ScriptedConfirmer(Answer(Choice.EDIT, args={"value": 7}), "once")
    async with open_test_session(tools=[change], confirm=person) as session:
        result = await session.call("change", {"value": 1})
        (record,) = session.history.last()
    assert result["content"] == "set to 7"
    assert result["edited_args"] == {"value": 7}
    assert [approval.args for approval in person.asked] == [{"value": 1}, {"value": 7}]
    assert person.asked[0].call_hash != person.asked[1].call_hash
    assert (record.wire()["command"], record.wire()["asked_for"]) == ("Change: value=7", "Change: value=1")


class AboveFive(Evaluator):
    name = "above_five"

    async def opinion(self, invocation: Invocation, judging: EvaluationContext) -> Opinion | None:
        value: int = invocation.args["value"]
        return Opinion("above_five", floor=Decision.DENY, reasons=(Reason("high", "too high"),)) if value > 5 else None


async def test_an_edit_cannot_get_past_the_judge() -> None:
    person = ScriptedConfirmer(Answer(Choice.EDIT, args={"value": 9}))
    async with open_test_session(tools=[change], evaluators=[AboveFive()], confirm=person) as session:
        result = await session.call("change", {"value": 1})
    assert (result["status"], result["error"]["code"]) == ("denied", "denied_by_policy")
    assert "too high" in result["error"]["message"]


async def test_an_edit_that_does_not_fit_is_asked_again_with_the_reason() -> None:
    person = ScriptedConfirmer(Answer(Choice.EDIT, args={"value": "many"}), "once")
    async with open_test_session(tools=[change], confirm=person) as session:
        assert (await session.call("change", {"value": 1}))["content"] == "set to 1"
    assert person.asked[1].args == {"value": 1}
    assert "value" in person.asked[1].note


async def test_edits_without_end_are_a_no() -> None:
    person = ScriptedConfirmer(*(Answer(Choice.EDIT, args={"value": value}) for value in range(50)))
    async with open_test_session(tools=[change], confirm=person) as session:
        assert (await session.call("change")).error_code == "denied_by_user"
    assert len(person.asked) < 20


async def test_the_audit_holds_what_was_asked_for_and_what_was_done(tmp_path: Path) -> None:
    person = ScriptedConfirmer(Answer(Choice.EDIT, args={"value": 7}), "once")
    async with open_test_session(
        tools=[change], confirm=person, folder=tmp_path, settings={"audit": {"enabled": True}}
    ) as session:
        await session.call("change", {"value": 1})
        lines = (session.runtime.places.audit / f"{session.id}.jsonl").read_text().splitlines()
    call = next(line for line in map(json.loads, lines) if line["event"] == "call")
    assert call["args"] == {"value": 7}
    assert [form["args"] for form in call["before"]] == [{"value": 1}]
    assert call["before"][0]["call_hash"] != call["call_hash"]


async def test_a_question_expires_in_its_own_words() -> None:
    person = Silent()
    settings = {"confirmation": {"expires": 0.05}}
    async with open_test_session(tools=[change], confirm=person, settings=settings) as session:
        result = await session.call("change")
        assert session.approvals.waiting == ()
    assert (result.status, result.error_code) == ("denied", "no_confirmer")
    assert "nobody answered within 0.05 s" in result["error"]["message"]
    assert person.taken_back == 1


async def test_an_answer_after_the_end_of_a_question_is_refused() -> None:
    person = Silent()
    async with open_test_session(
        tools=[change], confirm=person, settings={"confirmation": {"expires": 0.05}}
    ) as session:
        await session.call("change")
        with pytest.raises(HandrailError, match="no question 'a1' is open"):
            session.approvals.answer("a1", Answer(Choice.ONCE))


async def test_an_answer_by_id_is_for_that_question_and_is_used_once() -> None:
    async with open_test_session(tools=[change], confirm=Silent()) as session, waiting(session, 1, 2) as results:
        first, second = session.approvals.waiting
        assert first.call_hash != second.call_hash
        session.approvals.answer(first.id, Answer(Choice.ONCE))
        with pytest.raises(HandrailError):
            session.approvals.answer(first.id, Answer(Choice.ONCE))
        session.approvals.answer(second.id, Answer(Choice.DENY))
    assert [results[0].status, results[1].status] == ["success", "denied"]


async def test_several_questions_are_answered_together() -> None:
    async with open_test_session(tools=[change], confirm=Silent()) as session, waiting(session, 1, 2, 3) as results:
        session.approvals.answer([approval.id for approval in session.approvals.waiting], Answer(Choice.ONCE))
    assert [results[number]["content"] for number in range(3)] == ["set to 1", "set to 2", "set to 3"]


async def test_of_several_all_take_the_answer_or_none() -> None:
    async with open_test_session(tools=[change], confirm=Silent()) as session, waiting(session, 1, 2):
        ids = [approval.id for approval in session.approvals.waiting]
        with pytest.raises(HandrailError):
            session.approvals.answer([*ids, "a99"], Answer(Choice.ONCE))
        assert len(session.approvals.waiting) == 2
        session.approvals.answer(ids, Answer(Choice.DENY))


@pytest.mark.parametrize("choice", [Choice.SESSION, Choice.ALWAYS])
async def test_what_is_granted_meanwhile_is_not_asked_about_any_more(choice: Choice, tmp_path: Path) -> None:
    heard: list[Event] = []
    async with open_test_session(tools=[change], confirm=Silent(), folder=tmp_path) as session:
        session.bus.subscribe(heard.append)
        async with waiting(session, 1, 1) as results:
            session.approvals.answer(session.approvals.waiting[0].id, Answer(choice))
    assert [results[0].status, results[1].status] == ["success", "success"]
    assert [e.answer for e in heard if isinstance(e, ApprovalAnswered)] == [choice, "allow"]


async def test_a_yes_for_this_once_leaves_the_other_question_open() -> None:
    async with open_test_session(tools=[change], confirm=Silent()) as session, waiting(session, 1, 1) as results:
        session.approvals.answer(session.approvals.waiting[0].id, Answer(Choice.ONCE))
        await anyio.sleep(0.05)
        (left,) = session.approvals.waiting
        session.approvals.answer(left.id, Answer(Choice.DENY))
    assert sorted(result.status for result in results.values()) == ["denied", "success"]


@pytest.mark.parametrize(
    "answer",
    [
        Answer(Choice.EDIT),
        Answer(Choice.ONCE, args={"value": 2}),
        Answer(Choice.ONCE, feedback="why"),
        Answer(Choice.DENY, args={}),
    ],
)
async def test_what_does_not_belong_to_an_answer_makes_it_none(
    answer: Answer, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_test_session(tools=[change], confirm=ScriptedConfirmer(answer)) as session:
        assert (await session.call("change")).error_code == "no_confirmer"
    assert "the confirmer failed" in caplog.text


async def test_a_grant_that_was_not_offered_is_no_yes() -> None:
    from handrail import GrantOption

    person = ScriptedConfirmer(Answer(Choice.SESSION, grant=GrantOption("everything", "*")))
    async with open_test_session(tools=[change], confirm=person) as session:
        assert (await session.call("change")).error_code == "no_confirmer"
        assert session.court.policy.grants == ()


async def test_a_stop_ends_the_wait() -> None:
    async with open_test_session(tools=[change], confirm=Silent()) as session:
        try:
            async with waiting(session, 1) as results:
                session.runtime.stops.engage()
            assert (results[0].status, results[0].error_code) == ("cancelled", "failsafe")
        finally:
            session.runtime.stops.release()


async def test_a_cancelled_call_takes_its_question_back() -> None:
    person = Silent()
    async with open_test_session(tools=[change], confirm=person) as session:
        async with waiting(session, 1) as results:
            session.cancel()
        assert session.approvals.waiting == ()
    assert results[0].status == "cancelled"
    assert person.taken_back == 1


async def test_the_events_name_the_question() -> None:
    heard: list[Event] = []
    async with open_test_session(tools=[change], confirm=ScriptedConfirmer("once", "deny")) as session:
        session.bus.subscribe(heard.append)
        await session.call("change")
        await session.call("change")
    named = [(type(e).__name__, e.approval) for e in heard if isinstance(e, ApprovalAsked | ApprovalAnswered)]
    assert named == [
        ("ApprovalAsked", "a1"),
        ("ApprovalAnswered", "a1"),
        ("ApprovalAsked", "a2"),
        ("ApprovalAnswered", "a2"),
    ]

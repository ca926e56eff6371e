"""A catastrophic call that a person's own rule lets be asked about: who is asked, and what a yes is good for."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from handrail import Answer, Choice, Decision, Session, Verdict, Write, tool
from handrail.api.approval import yes
from handrail.errors import HandrailError
from handrail.testing import ScriptedConfirmer, open_test_session


@tool(effects=[Write("settings")])
async def wipe(value: int = 1) -> str:
    """Wipe everything."""
    return "wiped"


@asynccontextmanager
async def catastrophic(confirmer: Any) -> AsyncGenerator[Session]:
    """A session in which `wipe` is a catastrophe that a rule has turned into a question."""
    async with open_test_session(tools=[wipe], confirm=confirmer) as session:

        async def judge(invocation: object, *, seen: object = None) -> Verdict:
            return Verdict(Decision.CONFIRM, rule="policy:mine", catastrophic=True, grantable=False)

        session.court.judge = judge
        yield session


@pytest.mark.parametrize("confirmer", [yes, ScriptedConfirmer("once")], ids=["--yes", "callback"])
async def test_nobody_but_a_person_at_a_terminal_is_asked(confirmer: Any) -> None:
    async with catastrophic(confirmer) as session:
        result = await session.call("wipe")
    assert (result.status, result.error_code) == ("denied", "denied_by_policy")
    assert "only a person at a terminal" in result["error"]["message"]
    assert getattr(confirmer, "asked", []) == []


async def test_a_person_at_the_terminal_is_asked_for_a_phrase_and_offered_nothing_lasting() -> None:
    person = ScriptedConfirmer("once", "deny", at_terminal=True)
    async with catastrophic(person) as session:
        assert (await session.call("wipe")).ok
        assert (await session.call("wipe")).status == "denied"
    assert all(approval.phrase for approval in person.asked)
    assert [approval.grants for approval in person.asked] == [(), ()]


@pytest.mark.parametrize("answer", ["session", "always", Answer(Choice.EDIT, args={"value": 2})])
async def test_it_is_neither_remembered_nor_edited(answer: Any) -> None:
    async with catastrophic(ScriptedConfirmer(answer, at_terminal=True)) as session:
        assert (await session.call("wipe")).status == "denied"
        assert session.court.policy.grants == ()


async def test_it_cannot_be_answered_by_id() -> None:
    refused: list[str] = []

    class Away(ScriptedConfirmer):
        async def __call__(self, approval: Any) -> Answer:
            try:
                approval.among.answer(approval.id, Answer(Choice.ONCE))
            except HandrailError as exc:
                refused.append(str(exc))
            return Answer(Choice.DENY)

    async with catastrophic(Away(at_terminal=True)) as session:
        assert (await session.call("wipe")).status == "denied"
    assert refused == ["only a person at a terminal answers the question 'a1'"]

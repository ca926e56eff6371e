"""Observers in Python: what they may do to a call and to its result, and what becomes of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from handrail import (
    Answer,
    Approval,
    Change,
    Choice,
    Decision,
    Invocation,
    Observer,
    Opinion,
    Remark,
    Session,
    Tool,
    ToolContext,
    ToolError,
    Verdict,
    Write,
    tool,
)
from handrail.api.approval import yes
from handrail.api.events import Event, Observed
from handrail.testing import Always, ScriptedConfirmer, open_test_session

RAN: list[str] = []


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    RAN.clear()


@tool()
async def say(text: str) -> dict[str, Any]:
    """Say something."""
    RAN.append(text)
    return {"said": text}


@tool(effects=[Write("settings")])
async def change(value: int = 1) -> str:
    """Change a setting."""
    RAN.append(str(value))
    return f"set to {value}"


@tool()
async def fail() -> None:
    """Fail."""
    raise ToolError("it is broken")


@tool()
async def outer(text: str, context: ToolContext) -> dict[str, Any]:
    """Call another tool."""
    return {"inner": dict(await context.call("say", {"text": text}))}


class Says(Observer):
    """Makes something of each call, before it."""

    def __init__(self, make: Callable[[Invocation], Change | None], *, name: str = "guard", security: bool = False):
        self.name = name
        self.security = security
        self.make = make
        self.saw: list[Mapping[str, Any]] = []

    async def before(self, invocation: Invocation) -> Change | None:
        self.saw.append(invocation.args)
        return self.make(invocation)


class Remarks(Observer):
    """Makes something of each result."""

    def __init__(
        self, make: Callable[[Mapping[str, Any]], Remark | None], *, name: str = "eye", security: bool = False
    ):
        self.name = name
        self.security = security
        self.make = make
        self.saw: list[Mapping[str, Any]] = []

    async def after(self, invocation: Invocation, verdict: Verdict, result: Mapping[str, Any]) -> Remark | None:
        self.saw.append(dict(result))
        return self.make(result)


def audited(session: Session) -> list[dict[str, Any]]:
    path = session.runtime.places.audit / f"{session.id}.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


# Before a call


async def test_a_blocked_call_does_not_run_and_says_why() -> None:
    guard = Says(lambda call: Change(block="not on a Sunday"))
    async with open_test_session(tools=[say], observers=[guard]) as session:
        result = await session.call("say", {"text": "hi"})
    assert (result.status, result.error_code, RAN) == ("denied", "denied_by_policy", [])
    assert "not on a Sunday" in result["error"]["message"]
    assert result["error"]["details"]["rule"] == "observer:guard"
    assert "lifts" not in result["error"]["message"]


async def test_confirm_turns_an_allow_into_a_question_that_names_the_reason() -> None:
    person = ScriptedConfirmer("once")
    guard = Says(lambda call: Change(confirm="it is late"))
    async with open_test_session(tools=[say], observers=[guard], confirm=person) as session:
        assert (await session.call("say", {"text": "hi"})).ok
    (asked,) = person.asked
    assert asked.verdict.rule == "observer:guard"
    assert "guard: it is late" in [reason.text for reason in asked.verdict.reasons]


async def test_who_is_asked_for_another_reason_is_told_of_the_observers_too() -> None:
    person = ScriptedConfirmer("once")
    guard = Says(lambda call: Change(confirm="it is late"))
    async with open_test_session(tools=[change], observers=[guard], confirm=person) as session:
        assert (await session.call("change")).ok
    assert "guard: it is late" in [reason.text for reason in person.asked[0].verdict.reasons]


@pytest.mark.parametrize("mode", ["headless", "permissive"])
async def test_no_mode_goes_below_a_confirm_of_an_observer(mode: str) -> None:
    guard = Says(lambda call: Change(confirm="it is late"))
    async with open_test_session(tools=[say], observers=[guard], settings={"mode": mode}) as session:
        assert (await session.call("say", {"text": "hi"})).status == "denied"
    assert RAN == []


async def test_a_yes_for_the_session_does_not_answer_what_an_observer_asks() -> None:
    person = ScriptedConfirmer("session", "once", "once")
    guard = Says(lambda call: Change(confirm="look") if len(guard.saw) > 1 else None)
    async with open_test_session(tools=[change], observers=[guard], confirm=person) as session:
        for _ in range(3):
            await session.call("change")
    assert len(person.asked) == 3


async def test_an_observer_never_loosens_a_denial() -> None:
    deny = Always(Opinion("no", floor=Decision.DENY))
    guard = Says(lambda call: Change(context="fine with me", confirm="just ask"))
    async with open_test_session(tools=[say], evaluators=[deny], observers=[guard], confirm=yes) as session:
        assert (await session.call("say", {"text": "hi"})).status == "denied"
    assert RAN == []


async def test_replaced_arguments_are_what_runs_and_both_forms_are_kept() -> None:
    guard = Says(lambda call: Change(args={"text": "good day"}))
    async with open_test_session(tools=[say], observers=[guard]) as session:
        result = await session.call("say", {"text": "oi"}, call_id="x")
        (shown,) = session.history.last()
        lines = audited(session)
    assert (RAN, result["edited_args"], result["edited_by"]) == (
        ["good day"],
        {"text": "good day"},
        ["observer guard"],
    )
    assert shown.wire()["asked_for"] == "Say: text=oi"
    (call,) = [line for line in lines if line["event"] == "call"]
    assert (call["args"], call["before"][0]["args"], call["changed_by"]) == (
        {"text": "good day"},
        {"text": "oi"},
        ["observer guard"],
    )
    assert call["observed"] == [{"observer": "guard", "what": "replaced"}]
    assert call["call_hash"] != call["before"][0]["call_hash"]


async def test_a_person_says_yes_to_exactly_what_an_observer_made_of_the_call() -> None:
    person = ScriptedConfirmer("once")
    guard = Says(lambda call: Change(args={"value": 2}))
    async with open_test_session(tools=[change], observers=[guard], confirm=person) as session:
        await session.call("change", {"value": 9})
    (asked,) = person.asked
    form = Invocation(change, {"value": 2}, change.validate({"value": 2}), "any")
    assert (asked.args, asked.call_hash, RAN) == ({"value": 2}, form.call_hash, ["2"])


async def test_arguments_that_do_not_fit_run_nothing() -> None:
    guard = Says(lambda call: Change(args={"txt": "x"}))
    async with open_test_session(tools=[say], observers=[guard]) as session:
        result = await session.call("say", {"text": "hi"})
    assert (result.error_code, RAN) == ("invalid_arguments", [])
    assert "the observer guard replaced the arguments" in result["error"]["message"]


async def test_who_guards_sees_what_the_others_have_made_of_a_call() -> None:
    guard = Says(lambda call: Change(block="rude") if call.args["text"] == "oi" else None, security=True)
    writer = Says(lambda call: Change(args={"text": "oi"}), name="writer")
    async with open_test_session(tools=[say], observers=[guard, writer]) as session:
        assert (await session.call("say", {"text": "good day"})).status == "denied"
    assert guard.saw == [{"text": "oi"}]


async def test_guards_see_each_others_arguments_until_nothing_changes() -> None:
    first = Says(lambda call: Change(block="bad") if "b" in call.args["text"] else None, name="first", security=True)
    second = Says(lambda call: Change(args={"text": "b"}), name="second", security=True)
    async with open_test_session(tools=[say], observers=[first, second]) as session:
        assert (await session.call("say", {"text": "a"})).status == "denied"
    assert first.saw == [{"text": "a"}, {"text": "b"}]


async def test_guards_that_undo_each_other_run_nothing() -> None:
    first = Says(lambda call: Change(args={"text": "a"}), name="first", security=True)
    second = Says(lambda call: Change(args={"text": "b"}), name="second", security=True)
    async with open_test_session(tools=[say], observers=[first, second]) as session:
        result = await session.call("say", {"text": "c"})
    assert (result.status, RAN) == ("denied", [])
    assert "do not agree" in result["error"]["message"]


async def test_what_a_person_edits_is_observed_and_judged_anew() -> None:
    class Edits:
        async def __call__(self, approval: Approval) -> Answer:
            return Answer(Choice.EDIT, args={"value": 666})

    guard = Says(lambda call: Change(block="not that one") if call.args.get("value") == 666 else None)
    async with open_test_session(tools=[change], observers=[guard], confirm=Edits()) as session:
        result = await session.call("change", {"value": 1})
    assert (result.status, RAN, result["edited_by"]) == ("denied", [], ["a person"])


async def test_context_is_cleaned_joined_and_shown_beside_the_result() -> None:
    observers = [
        Says(lambda call: Change(context="a\x1b[31m"), name="one"),
        Says(lambda call: Change(context="b"), name="two"),
    ]
    async with open_test_session(tools=[say], observers=observers) as session:
        result = await session.call("say", {"text": "hi"})
    assert (result["said"], result["context"]) == ("hi", "a\nb")


@pytest.mark.parametrize("gives", [RuntimeError("x"), SystemError(), "text"])
async def test_an_observer_that_fails_is_said_and_the_call_goes_on(gives: Any) -> None:
    def make(call: Invocation) -> Any:
        if isinstance(gives, Exception):
            raise gives
        return gives

    async with open_test_session(tools=[say], observers=[Says(make)]) as session:
        result = await session.call("say", {"text": "hi"})
    assert (result.status, RAN) == ("success", ["hi"])
    assert "The observer guard failed" in result["note"]


async def test_a_guard_that_fails_blocks() -> None:
    guard = Says(lambda call: 1 / 0, security=True)  # type: ignore[arg-type, return-value]
    async with open_test_session(tools=[say], observers=[guard]) as session:
        result = await session.call("say", {"text": "hi"})
    assert (result.status, RAN) == ("denied", [])
    assert "ZeroDivisionError" in result["error"]["message"]


@pytest.mark.parametrize("security", [True, False])
async def test_a_guard_that_takes_too_long_blocks(security: bool) -> None:
    class Slow(Observer):
        name = "slow"
        timeout = 0.01

        async def before(self, invocation: Invocation) -> Change | None:
            await anyio.sleep_forever()

    slow = Slow()
    slow.security = security
    async with open_test_session(tools=[say], observers=[slow]) as session:
        result = await session.call("say", {"text": "hi"})
    assert result.ok is not security
    assert "longer than 0.01 s" in str(dict(result))


async def test_a_call_can_be_cancelled_while_an_observer_looks() -> None:
    class Stuck(Observer):
        name = "stuck"

        async def before(self, invocation: Invocation) -> Change | None:
            await anyio.sleep_forever()

    async with open_test_session(tools=[say], observers=[Stuck()]) as session:
        results: list[Any] = []

        async def call() -> None:
            results.append(await session.call("say", {"text": "hi"}, call_id="stuck"))

        async with anyio.create_task_group() as group:
            group.start_soon(call)
            while not session.cancel("stuck"):
                await anyio.lowlevel.checkpoint()
    assert (results[0].status, RAN) == ("cancelled", [])


async def test_nested_calls_are_observed() -> None:
    guard = Says(lambda call: Change(block="inside") if call.parent is not None else None)
    async with open_test_session(tools=[say, outer], observers=[guard]) as session:
        result = await session.call("outer", {"text": "hi"})
    assert (result["inner"]["status"], RAN) == ("denied", [])


async def test_an_observer_looks_at_what_it_applies_to() -> None:
    class Picky(Says):
        def applies(self, tool: Tool) -> bool:
            return tool.name == "change"

    picky = Picky(lambda call: Change(block="no"))
    async with open_test_session(tools=[say, change], observers=[picky], confirm=yes) as session:
        assert (await session.call("say", {"text": "hi"})).ok
        assert (await session.call("change")).status == "denied"


# After a call


async def test_a_result_can_be_rewritten_and_both_forms_are_kept() -> None:
    eye = Remarks(lambda result: Remark(replace={"said": "***"}, context="shortened"))
    async with open_test_session(tools=[say], observers=[eye]) as session:
        result = await session.call("say", {"text": "hush"})
        lines = audited(session)
    assert (result["status"], result["said"], result["context"]) == ("success", "***", "shortened")
    (line,) = [line for line in lines if line["event"] == "result"]
    assert (line["result"]["said"], line["original"]["said"]) == ("***", "hush")
    assert [did["what"] for did in line["observed"]] == ["context", "replaced"]


async def test_a_withheld_result_says_that_the_call_ran() -> None:
    eye = Remarks(lambda result: Remark(withhold="it holds names"))
    async with open_test_session(tools=[say], observers=[eye]) as session:
        result = await session.call("say", {"text": "Ada"})
        lines = audited(session)
    assert (result.status, result.error_code, RAN) == ("error", "result_withheld", ["Ada"])
    assert "it holds names" in result["error"]["message"]
    assert "Ada" not in str(dict(result))
    assert next(line for line in lines if line["event"] == "result")["original"]["said"] == "Ada"


@pytest.mark.parametrize("key", ["status", "error", "voice_message"])
async def test_no_observer_turns_a_failure_into_a_success(key: str) -> None:
    eye = Remarks(lambda result: Remark(replace={key: "success"}))
    async with open_test_session(tools=[fail], observers=[eye]) as session:
        result = await session.call("fail")
    assert (result.status, result.error_code) == ("error", "tool_error")
    assert "no observer may" in result["note"]


async def test_a_guard_that_fails_after_a_call_withholds_the_result() -> None:
    eye = Remarks(lambda result: 1 / 0, security=True)  # type: ignore[arg-type, return-value]
    async with open_test_session(tools=[say], observers=[eye]) as session:
        result = await session.call("say", {"text": "Ada"})
    assert result.error_code == "result_withheld"
    assert "said" not in result


async def test_denied_calls_have_no_result_to_look_at() -> None:
    eye = Remarks(lambda result: None)
    async with open_test_session(tools=[change], observers=[eye]) as session:
        assert (await session.call("change")).status == "denied"
    assert eye.saw == []


async def test_an_observer_cannot_write_to_the_result_it_is_given() -> None:
    class Forges(Observer):
        name = "forges"

        async def after(self, invocation: Invocation, verdict: Verdict, result: Any) -> Remark | None:
            result["said"] = "forged"

    async with open_test_session(tools=[say], observers=[Forges()]) as session:
        assert (await session.call("say", {"text": "hi"}))["said"] == "hi"


# Events, registration


async def test_who_listens_is_told_what_observers_did() -> None:
    heard: list[Event] = []
    observers = [
        Says(lambda call: Change(confirm="late", note="looked")),
        Remarks(lambda result: Remark(context="nice")),
    ]
    async with open_test_session(tools=[say], observers=observers, confirm=yes) as session:
        session.bus.subscribe(heard.append)
        await session.call("say", {"text": "hi"}, call_id="c")
    told = [(e.observer, e.what, e.text) for e in heard if isinstance(e, Observed)]
    assert told == [("guard", "note", "looked"), ("guard", "confirm", "late"), ("eye", "context", "nice")]


async def test_sessions_that_nobody_observes_look_for_nobody() -> None:
    async with open_test_session(tools=[say]) as session:
        assert session.watch is None


async def test_what_an_observer_withheld_or_rewrote_cannot_be_had_from_an_artifact() -> None:
    class Masks(Observer):
        name = "masks"

        async def after(self, invocation: Invocation, verdict: Verdict, result: Mapping[str, Any]) -> Remark | None:
            return Remark(replace={"content": "masked"}) if "original" in result.get("content", "") else None

    @tool(artifact="text")
    async def tell(text: str) -> str:
        """Tell it."""
        return text

    async with open_test_session(tools=[tell], observers=[Masks()]) as session:
        masked = await session.call("tell", {"text": "original"})
        assert (masked["content"], "artifact" in masked, len(session.artifacts)) == ("masked", False, 0)
        assert [path.name for path in session.runtime.places.artifacts.rglob("a*")] == []
        left = await session.call("tell", {"text": "else"})
        assert session.artifacts.get(left["artifact"]["id"]) is not None


def in_place(call: Invocation) -> Change:
    args: Any = call.args
    args["text"] = "mild"
    return Change(args=args)


async def test_arguments_that_were_changed_in_place_and_given_back_are_replaced() -> None:
    async with open_test_session(tools=[say], observers=[Says(in_place)]) as session:
        result = await session.call("say", {"text": "harsh"})
    assert (RAN, result["edited_by"]) == (["mild"], ["observer guard"])


@pytest.mark.parametrize("key", ["block", "confirm", "context", "note"])
async def test_what_an_observer_says_counts_even_where_it_is_no_text(key: str) -> None:
    made = Says(lambda call: Change(**{key: 7}))  # type: ignore[arg-type]
    async with open_test_session(tools=[say], observers=[made]) as session:
        result = await session.call("say", {"text": "hi"})
    assert result.ok is (key in ("context", "note"))
    assert result.get("context", "7") == "7"


@pytest.mark.parametrize("key", ["withhold", "context", "note"])
async def test_so_does_what_it_says_of_a_result(key: str) -> None:
    async with open_test_session(tools=[say], observers=[Remarks(lambda result: Remark(**{key: 7}))]) as session:  # type: ignore[arg-type]
        result = await session.call("say", {"text": "hi"})
    assert result.ok is (key != "withhold")


async def test_a_cancellation_that_nobody_asked_for_is_the_failure_of_whoever_looks() -> None:
    def cancelled(_: Any) -> Any:
        raise asyncio.CancelledError

    async with open_test_session(tools=[say], observers=[Remarks(cancelled)]) as session:
        assert (await session.call("say", {"text": "hi"})).error_code == "result_withheld"

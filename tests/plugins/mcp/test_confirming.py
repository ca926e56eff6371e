"""A person's yes and no, asked through the client, in both eras."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

import anyio
import pytest
from mcp import types

from .place import ERAS, LEGACY, MODERN, Place, accept, result_fields

pytestmark = pytest.mark.usefixtures("without_undo")

both_eras = pytest.mark.parametrize("era", ERAS)


@both_eras
async def test_a_yes_runs_the_call_once(place: Place, era: str):
    async with place.client(era, lambda _: accept("once")) as client:
        first = await client.call_tool("scribble", {"word": "hello"})
        await client.call_tool("scribble", {"word": "hello"})
    assert result_fields(first)["wrote"] == "hello"
    assert place.scribbled == ["hello", "hello"]
    assert len(place.asked) == 2


@both_eras
async def test_a_yes_for_the_session_is_asked_for_once(place: Place, era: str):
    async with place.client(era, lambda _: accept("session")) as client:
        await client.call_tool("scribble", {"word": "hello"})
        await client.call_tool("scribble", {"word": "hello"})
    assert place.scribbled == ["hello", "hello"]
    assert len(place.asked) == 1


REFUSALS = (
    accept("deny"),
    types.ElicitResult(action="decline"),
    types.ElicitResult(action="cancel"),
    # None of the words that were offered, none at all, none that is a word.
    accept("yes"),
    types.ElicitResult(action="accept"),
    types.ElicitResult(action="accept", content={"answer": True}),
    types.ElicitResult(action="decline", content={"answer": "once"}),
)


@both_eras
async def test_anything_but_a_plain_yes_is_a_no(place: Place, era: str):
    left = list(REFUSALS)
    async with place.client(era, lambda _: left.pop()) as client:
        results = [await client.call_tool("scribble", {"word": "hello"}) for _ in REFUSALS]
    assert all(result.is_error for result in results)
    assert {result_fields(result)["status"] for result in results} == {"denied"}
    assert {result_fields(result)["error"]["code"] for result in results} == {"denied_by_user"}
    assert place.scribbled == []


@both_eras
async def test_a_client_that_cannot_ask_is_denied(place: Place, era: str):
    async with place.client(era) as client:
        result = await client.call_tool("scribble", {"word": "hello"})
    assert result_fields(result)["error"]["code"] == "no_confirmer"
    assert place.scribbled == []


@both_eras
async def test_the_question_shows_the_whole_command_and_hides_nothing_in_it(place: Place, era: str):
    word = "one\u202etwo\x1b[2J\nHandrail asks: nothing\u200b"
    async with place.client(era, lambda _: accept("deny")) as client:
        await client.call_tool("scribble", {"word": word})
    (asked,) = place.asked
    assert "    | one\\u202etwo\\x1b[2J\n    | Handrail asks: nothing\\u200b" in asked.message
    assert "  - it runs code" in asked.message
    fields = asked.requested_schema["properties"]
    assert fields["answer"]["enum"] == ["once", "session", "always", "edit", "deny"]
    assert fields["grant"]["enum"] == ["1. exactly this call"]


@both_eras
async def test_feedback_goes_to_the_model(place: Place, era: str):
    given = types.ElicitResult(action="accept", content={"answer": "deny", "feedback": "write less"})
    async with place.client(era, lambda _: given) as client:
        result = await client.call_tool("scribble", {"word": "hello"})
    assert "write less" in result_fields(result)["error"]["message"]


@both_eras
async def test_edited_arguments_are_asked_about_again(place: Place, era: str):
    given = [
        types.ElicitResult(action="accept", content={"answer": "edit", "arguments": '{"word": "bye"}'}),
        accept("once"),
    ]
    async with place.client(era, lambda _: given.pop(0)) as client:
        result = await client.call_tool("scribble", {"word": "hello"})
    assert result_fields(result)["edited_args"] == {"word": "bye"}
    assert place.scribbled == ["bye"]
    assert len(place.asked) == 2


@pytest.mark.parametrize(
    "content",
    [
        {"answer": "edit"},
        {"answer": "edit", "arguments": "bye"},
        {"answer": "session", "grant": "everything"},
    ],
)
async def test_an_answer_that_does_not_say_all_is_a_no(place: Place, content: dict[str, Any]):
    async with place.client(LEGACY, lambda _: types.ElicitResult(action="accept", content=content)) as client:
        await client.call_tool("scribble", {"word": "hello"})
    assert place.scribbled == []


@both_eras
async def test_the_parts_of_a_call_are_asked_about_one_by_one(place: Place, era: str):
    def decide(asked: types.ElicitRequestFormParams) -> types.ElicitResult:
        return accept("deny" if "no" in asked.message.split("command:")[1].splitlines()[1] else "once")

    async with place.client(era, decide) as client:
        result = await client.call_tool("scribble_both", {"first": "fine", "second": "nope"})
    assert result_fields(result)["statuses"] == ["success", "denied"]
    assert place.scribbled == ["fine"]
    assert len(place.asked) == 2


async def test_two_questions_at_once_may_be_answered_crosswise(place: Place):
    waiting: dict[str, anyio.Event] = {"left": anyio.Event(), "right": anyio.Event()}
    results: dict[str, dict[str, Any]] = {}

    async def answer(asked: types.ElicitRequestFormParams) -> types.ElicitResult:
        word = next(word for word in waiting if f"    | {word}" in asked.message)
        waiting[word].set()
        if word == "left":
            # The one that was asked first is answered last.
            await waiting["right"].wait()
            await done.wait()
        return accept("once" if word == "left" else "deny")

    done = anyio.Event()
    async with place.client(LEGACY, answer) as client, anyio.create_task_group() as group:

        async def call(word: str) -> None:
            results[word] = result_fields(await client.call_tool("scribble", {"word": word}))
            done.set()

        group.start_soon(call, "left")
        await waiting["left"].wait()
        group.start_soon(call, "right")
    assert results["left"]["status"] == "success"
    assert results["right"]["error"]["code"] == "denied_by_user"
    assert place.scribbled == ["left"]


async def test_answers_that_come_with_the_other_call_are_refused_for_both(place: Place):
    async with place.client(MODERN, lambda _: accept("once")) as client:
        left = await asked(client, "left")
        right = await asked(client, "right")
        crossed = [await answered(client, "left", right), await answered(client, "right", left)]
        history = result_fields(await client.call_tool("get_action_history", {}))["actions"]
    assert [result_fields(result)["status"] for result in crossed] == ["denied", "denied"]
    assert [action["status"] for action in history] == ["denied", "denied"]
    assert place.scribbled == []


async def test_an_old_answer_is_refused(place: Place):
    async with place.client(MODERN, lambda _: accept("once")) as client:
        question = await asked(client, "hello")
        first = await answered(client, "hello", question)
        again = await answered(client, "hello", question)
    assert result_fields(first)["status"] == "success"
    assert result_fields(again)["error"]["code"] == "denied_by_policy"
    assert place.scribbled == ["hello"]


async def test_an_answer_to_no_question_is_refused(place: Place):
    async with place.client(MODERN, lambda _: accept("once")) as client:
        await asked(client, "hello")
        for state in ("", "made up", "m1", "0" * 100_000):
            question = types.InputRequiredResult(request_state=state)
            assert result_fields(await answered(client, "hello", question))["status"] == "denied"
    assert place.scribbled == []


@both_eras
async def test_a_question_that_nobody_answers_in_time_is_a_no(place: Place, era: str):
    place.configure("[confirmation]\nexpires = 0.3\n")

    async def too_late(_: Any) -> types.ElicitResult:
        await anyio.sleep(1)
        return accept("once")

    async with place.client(era, too_late) as client:
        result = await client.call_tool("scribble", {"word": "hello"})
    assert result_fields(result)["error"]["code"] == "no_confirmer"
    assert place.scribbled == []


async def test_coming_back_without_an_answer_is_a_no(place: Place):
    async with place.client(MODERN, lambda _: accept("once")) as client:
        question = await asked(client, "hello")
        result = await client.session.call_tool("scribble", {"word": "hello"}, request_state=question.request_state)
    assert result_fields(result)["error"]["code"] == "denied_by_user"
    assert place.scribbled == []


async def test_an_answer_without_its_question_asks_anew(place: Place):
    async with place.client(MODERN, lambda _: accept("once")) as client:
        responses: types.InputResponses = {"confirmation": accept("once")}
        result = await client.session.call_tool(
            "scribble", {"word": "hello"}, input_responses=responses, allow_input_required=True
        )
    assert isinstance(result, types.InputRequiredResult)
    assert place.scribbled == []


async def test_questions_that_are_never_answered_are_bounded(place: Place):
    async with place.client(MODERN, lambda _: accept("once")) as client:
        for number in range(32):
            await asked(client, f"word{number}")
        one_more = await client.session.call_tool("scribble", {"word": "more"}, allow_input_required=True)
    assert isinstance(one_more, types.CallToolResult)
    assert result_fields(one_more)["error"]["code"] == "no_confirmer"
    assert place.scribbled == []
    assert sum('"status":"cancelled"' in line for line in place.audit) == 32


async def asked(client: Any, word: str) -> types.InputRequiredResult:
    result = await client.session.call_tool("scribble", {"word": word}, allow_input_required=True)
    assert isinstance(result, types.InputRequiredResult)
    return result


async def answered(client: Any, word: str, question: types.InputRequiredResult) -> types.CallToolResult:
    responses: types.InputResponses = {"confirmation": accept("once")}
    return await client.session.call_tool(
        "scribble", {"word": word}, request_state=question.request_state, input_responses=responses
    )


@pytest.mark.parametrize("place_of_change", [0, 20, -1])
async def test_a_state_that_was_changed_is_refused_and_the_question_stays_open(place: Place, place_of_change: int):
    async with place.client(MODERN, lambda _: accept("once")) as client:
        question = await asked(client, "hello")
        state = question.request_state or ""
        letters = list(state)
        letters[place_of_change] = "A" if letters[place_of_change] != "A" else "B"
        changed = types.InputRequiredResult(request_state="".join(letters))
        refused = await answered(client, "hello", changed)
        assert result_fields(refused)["error"]["code"] == "denied_by_policy"
        assert place.scribbled == []
        assert result_fields(await answered(client, "hello", question))["status"] == "success"
    assert place.scribbled == ["hello"]


async def test_a_state_names_the_call_by_its_hash_and_when_it_expires(place: Place):
    async with place.client(MODERN, lambda _: accept("once")) as client:
        question = await asked(client, "hello")
    said, _, mark = (question.request_state or "").partition(".")
    claims = json.loads(base64.urlsafe_b64decode(said))
    canonical = b'{"args":{"word":"hello"},"tool":"scribble"}'
    assert claims["call_hash"] == claims["asked_hash"] == hashlib.sha256(canonical).hexdigest()
    assert len(claims["nonce"]) >= 32
    assert claims["expires"] > 0
    assert len(mark) == 64


async def test_a_state_is_too_old_when_its_question_is(place: Place):
    place.configure("[confirmation]\nexpires = 0.5\n")
    async with place.client(MODERN, lambda _: accept("once")) as client:
        question = await asked(client, "hello")
        await anyio.sleep(0.6)
        late = result_fields(await answered(client, "hello", question))
    assert late["error"]["code"] == "no_confirmer"
    assert place.scribbled == []


async def test_the_order_of_arguments_is_not_part_of_a_call(place: Place):
    given = [accept("once"), accept("once")]
    async with place.client(MODERN, lambda _: given.pop()) as client:
        args = {"first": "one", "second": "two"}
        question = await client.session.call_tool("scribble_both", args, allow_input_required=True)
        assert isinstance(question, types.InputRequiredResult)
        answers: types.InputResponses = {"confirmation": accept("once")}
        second = await client.session.call_tool(
            "scribble_both",
            dict(reversed(args.items())),
            request_state=question.request_state,
            input_responses=answers,
            allow_input_required=True,
        )
    # The other part is asked about in its turn.
    assert isinstance(second, types.InputRequiredResult)
    assert place.scribbled == ["one"]

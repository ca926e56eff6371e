"""Talking to a server that is busy, broken, rude or somebody else's: what is sent, what is tried again, and what is said."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
import numpy as np
import pytest
from tests.plugins.vision_vlm import models
from tests.plugins.vision_vlm.models import completion, pictures
from tests.plugins.vision_vlm.serving import Answer, Asked, Handler, Served, serving

from handrail import BackendUnavailable, Frame, Plan, PlannedAction, ToolResult, Turn, VisionBackend
from handrail.testing.backend_contract import FakeBackendContext, create_frame, open_backend
from handrail_vision_vlm.model_families import KimiBackend, OpenAiCompatibleBackend, QwenBackend
from handrail_vision_vlm.tars.backend import UiTarsBackend

pytestmark = pytest.mark.anyio

KEY = "sk-0123456789abcdef"
FOUND = completion('[{"label": "Save", "bbox": [100, 100, 200, 200]}]')


class WithKey(FakeBackendContext):
    """Knows one secret, and one variable."""

    def __init__(self) -> None:
        self.environment: Mapping[str, str] = {"MODEL_KEY": KEY}

    async def secret(self, name: str) -> str:
        return KEY if name == "model" else await super().secret(name)


def frame(width: int = 640, height: int = 400) -> Frame:
    return create_frame(np.full((height, width, 3), 240, np.uint8), 0, 0)


def in_turn(*answers: Answer) -> Handler:
    """One answer after another; the last one stays."""
    left = list(answers)

    async def handler(asked: Asked) -> Answer:
        models.checked(asked)
        return left.pop(0) if len(left) > 1 else left[0]

    return handler


@asynccontextmanager
async def at(
    handler: Handler, kind: type[VisionBackend] = QwenBackend, **settings: Any
) -> AsyncGenerator[tuple[VisionBackend, Served], None]:
    """An open backend at such a server, and what that is asked."""
    async with serving(handler) as served:
        config = kind.Config.model_validate({"url": f"{served.url}/v1", **settings})
        async with open_backend(kind(config), WithKey()) as backend:
            yield backend, served


async def told(
    handler: Handler, kind: type[VisionBackend] = QwenBackend, **settings: Any
) -> tuple[Any, Sequence[Asked]]:
    """What a backend finds at such a server, or the error that it raises, and what it asked."""
    async with at(handler, kind, **settings) as (backend, served):
        try:
            return await backend.parse(frame(), "save"), served.asked
        except BackendUnavailable as exc:
            return exc, served.asked


# What is sent


async def test_the_request_is_what_the_vendors_client_sends() -> None:
    _, (asked,) = await told(in_turn(Answer(FOUND)))
    assert (asked.method, asked.path) == ("POST", "/v1/chat/completions")
    assert asked.body["model"] == "Qwen/Qwen3-VL-8B-Instruct"
    assert (asked.body["temperature"], asked.body["max_tokens"]) == (0, 4096)
    (message,) = asked.body["messages"]
    assert [part["type"] for part in message["content"]] == ["image_url", "text"]
    assert "save" in message["content"][1]["text"]
    assert "authorization" not in asked.headers


@pytest.mark.parametrize("settings", [{"key": "secret:model"}, {"key_variable": "MODEL_KEY"}])
async def test_the_key_is_sent_and_never_shown(settings: Mapping[str, Any]) -> None:
    refusal = Answer({"error": {"message": f"the key {KEY} is not valid"}}, status=401)
    error, (asked,) = await told(in_turn(refusal), **settings)
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert "401 (Unauthorized): the key [redacted] is not valid" in str(error)
    assert "key" in error.hint
    async with at(in_turn(Answer(completion(f"A window that says {KEY}."))), **settings) as (backend, _):
        assert await backend.understand(frame(), "") == "A window that says [redacted]."


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        pytest.param({"key": "secret:nobody"}, "there is no secret|knows no secret", id="secret"),
        pytest.param({"key_variable": "NO_SUCH"}, "NO_SUCH, and it is not set", id="variable"),
    ],
)
async def test_a_key_that_there_is_not_is_named(settings: Mapping[str, str], why: str) -> None:
    with pytest.raises(BackendUnavailable, match=why):
        await QwenBackend(QwenBackend.Config.model_validate({"url": "http://127.0.0.1:1/v1", **settings})).open(
            WithKey()
        )


def test_a_key_is_not_written_into_the_configuration() -> None:
    with pytest.raises(ValueError, match="secret:"):
        QwenBackend.Config.model_validate({"key": KEY})
    with pytest.raises(ValueError, match="not both"):
        QwenBackend.Config.model_validate({"key": "secret:model", "key_variable": "MODEL_KEY"})


async def test_settings_change_the_request() -> None:
    settings = {"model": "m", "temperature": 0.5, "max_tokens": None, "body": {"max_completion_tokens": 99}}
    _, (asked,) = await told(in_turn(Answer(FOUND)), OpenAiCompatibleBackend, **settings)
    sent = {name: value for name, value in asked.body.items() if name != "messages"}
    assert sent == {"model": "m", "temperature": 0.5, "max_completion_tokens": 99}
    _, (asked,) = await told(in_turn(Answer(FOUND)), KimiBackend)
    assert "temperature" not in asked.body


def test_without_an_address_or_a_model_it_says_what_to_set() -> None:
    assert "backends.qwen.url is not set" in (QwenBackend.unfit(QwenBackend.Config()) or "")
    config = OpenAiCompatibleBackend.Config.model_validate({"url": "http://127.0.0.1:1"})
    assert "backends.openai_compatible.model is not set" in (OpenAiCompatibleBackend.unfit(config) or "")


async def test_large_pictures_are_made_smaller_and_noisy_ones_are_packed_harder() -> None:
    noise = np.random.default_rng(5).integers(0, 256, (2160, 3840, 3), np.uint8)
    async with at(in_turn(Answer(FOUND))) as (backend, served):
        await backend.parse(create_frame(noise, 0, 0), "")
        await backend.parse(frame(), "")
        large, usual = (models.pictures(body)[0] for body in served.bodies)
        assert large.width * large.height <= 2_700 * 28 * 28
        assert usual.size == (640, 400)
        kinds = [body["messages"][0]["content"][0]["image_url"]["url"][:15] for body in served.bodies]
        assert kinds == ["data:image/jpeg", "data:image/png;"]


# What is tried again


@pytest.mark.parametrize(
    "first",
    [
        pytest.param(Answer({"error": {"message": "slow down"}}, status=429), id="too-many"),
        pytest.param(Answer(b"upstream", status=502), id="bad-gateway"),
        pytest.param(Answer({}, status=503, headers={"retry-after": "0"}), id="says-when"),
        pytest.param(Answer({}, status=529), id="overloaded"),
        pytest.param(Answer(FOUND, cut=True), id="cut"),
        pytest.param(Answer(completion("")), id="empty"),
        pytest.param(Answer(completion(None)), id="no-content"),
        pytest.param(Answer(completion("<think>hm")), id="only-thoughts"),
        pytest.param(Answer(completion("The button is on the left.")), id="in-words"),
    ],
)
async def test_what_may_work_another_time_is_asked_again(first: Answer) -> None:
    found, asked = await told(in_turn(first, Answer(FOUND)))
    assert [element.text for element in found] == ["Save"]
    assert len(asked) == 2


async def test_one_that_cannot_be_read_is_shown_its_answer_when_it_is_asked_again() -> None:
    _, (_, again) = await told(in_turn(Answer(completion("On the left.")), Answer(FOUND)))
    assert [message["role"] for message in again.body["messages"]] == ["user", "assistant", "user"]
    assert again.body["messages"][1]["content"] == "On the left."


async def test_the_pause_grows_and_a_server_that_wants_too_long_a_one_is_left() -> None:
    began = time.monotonic()
    error, asked = await told(in_turn(Answer({"error": "busy"}, status=429)))
    assert (len(asked), time.monotonic() - began >= 1.5) == (3, True)
    assert "429 (Too Many Requests): busy" in str(error)
    _, asked = await told(in_turn(Answer({}, status=429, headers={"retry-after": "3600"})))
    assert len(asked) == 1


@pytest.mark.parametrize(
    ("answer", "why", "times"),
    [
        pytest.param(
            Answer({"error": {"message": "no vision"}}, status=400), "400 .Bad Request.: no vision", 1, id="400"
        ),
        pytest.param(Answer({"detail": "Not Found"}, status=404), "404 .Not Found.: Not Found", 1, id="404"),
        pytest.param(Answer(b"<html>", headers={"content-type": "text/html"}), "no JSON", 1, id="no-json"),
        pytest.param(Answer([]), "answered list", 1, id="no-object"),
        pytest.param(Answer({"object": "list", "data": []}), "does not speak the protocol", 1, id="other-protocol"),
        pytest.param(Answer({"choices": [[]] * 600_000}), "more than 500,000 values", 1, id="flood-of-values"),
        pytest.param(Answer({"choices": "x" * 8_000_000}), "more than 8,000,000 bytes", 1, id="endless"),
        pytest.param(Answer({"choices": []}), "does not speak the protocol", 1, id="no-choices"),
        pytest.param(Answer({"choices": [None]}), "does not speak the protocol", 1, id="no-choice"),
        pytest.param(Answer({"error": {"code": 402, "message": "no credit"}}), "'no credit'", 1, id="error-in-200"),
        pytest.param(
            Answer(completion(None, refusal="I must not look.")), "refused: 'I must not look.'", 1, id="refusal"
        ),
        pytest.param(Answer(completion("x", finish="content_filter")), "filter withheld", 1, id="filter"),
        pytest.param(Answer(completion("", finish="length")), "answered nothing", 2, id="always-empty"),
        pytest.param(Answer(completion("I'm sorry, I can't.")), "no use .*I'm sorry", 2, id="sorry"),
        pytest.param(Answer(completion("[[5000, 1, 6000, 2]]")), "coordinates go from 0 to 1000", 1, id="outside"),
        pytest.param(
            Answer({}, status=307, headers={"location": "/v1/chat/completions"}), "leads on", 1, id="redirect"
        ),
    ],
)
async def test_what_will_not_work_is_said(answer: Answer, why: str, times: int) -> None:
    error, asked = await told(in_turn(answer))
    assert isinstance(error, BackendUnavailable)
    with pytest.raises(BackendUnavailable, match=why):
        raise error
    assert len(asked) == times


async def test_places_outside_the_picture_are_left_out_where_others_are_in_it() -> None:
    found, _ = await told(in_turn(Answer(completion("[[5000, 1, 6000, 2], [100, 100, 200, 200]]"))))
    assert len(found) == 1


async def test_of_an_answer_that_was_cut_what_is_whole_counts() -> None:
    cut = '[{"bbox_2d": [1, 2, 30, 40], "label": "A"}, {"bbox_2d": [5, 6, 70, 80], "label": "B"}, {"bbox_2d": [9,'
    found, _ = await told(in_turn(Answer(completion(cut, finish="length"))))
    assert [element.text for element in found] == ["A", "B"]


async def test_what_it_costs_is_counted_also_of_answers_that_are_no_good() -> None:
    paid = {**FOUND, "usage": {"prompt_tokens": 7, "completion_tokens": 3, "cost": 0.25}}
    async with at(in_turn(Answer(completion("")), Answer(paid))) as (backend, _):
        await backend.parse(frame(), "")
        assert (backend.cost.input_tokens, backend.cost.output_tokens, backend.cost.dollars) == (1007, 23, 0.25)


async def test_a_server_that_hangs_is_left_when_the_one_who_asked_leaves() -> None:
    async def hangs(asked: Asked) -> Answer:
        await anyio.sleep_forever()
        raise AssertionError

    async with at(hangs) as (backend, _):
        with anyio.move_on_after(0.1) as scope:
            await backend.parse(frame(), "")
    assert scope.cancelled_caught


# Where pictures go


@pytest.mark.parametrize("url", ["http://8.8.8.8/v1", "http://[2606:4700::1111]/v1"])
async def test_no_picture_goes_to_a_public_address_in_the_clear(url: str) -> None:
    with pytest.raises(BackendUnavailable, match="public address") as caught:
        await QwenBackend(QwenBackend.Config.model_validate({"url": url})).open(FakeBackendContext())
    assert "https" in (caught.value.hint or "")


async def test_a_name_is_looked_up_before_a_picture_goes_there_in_the_clear() -> None:
    _, asked = await told_by_name("localhost")
    assert len(asked) == 1
    error, _ = await told_by_name("localhost.example.invalid")
    assert "not known" in str(error)


async def told_by_name(host: str) -> tuple[Any, Sequence[Asked]]:
    async with serving(in_turn(Answer(FOUND))) as served:
        url = f"http://{host}:{served.url.rpartition(':')[2]}/v1"
        config = QwenBackend.Config.model_validate({"url": url, "tries": 1})
        async with open_backend(QwenBackend(config), FakeBackendContext()) as backend:
            try:
                return await backend.parse(frame(), ""), served.asked
            except BackendUnavailable as exc:
                return exc, served.asked


# Descriptions and plans


async def test_a_description_is_asked_for_with_what_the_caller_wants_to_know() -> None:
    answers = Answer(completion(" A dialog. ")), Answer(completion("A lo", finish="length"))
    async with at(in_turn(*answers)) as (backend, served):
        assert await backend.understand(frame(), "is it saved?") == "A dialog."
        assert await backend.understand(frame(), "") == "A lo […]"
        assert "is it saved?" in served.bodies[0]["messages"][0]["content"][1]["text"]


def after(said: str, *results: ToolResult, shown: Frame | None = None, note: str = "") -> Turn:
    """A turn in which the model said that."""
    action = PlannedAction("execute_gui", {}, id="0")
    return Turn(Plan((action,), "thought", ref=said), results, shown, note)


OK = ToolResult({"status": "success"})
REFUSED = ToolResult({"status": "denied", "error": {"code": "denied_by_user", "message": "a person said no"}})


async def planned(answer: Answer, history: Sequence[Turn] = (), **settings: Any) -> tuple[Plan, Sequence[Any]]:
    async with at(in_turn(answer), UiTarsBackend, **settings) as (backend, served):
        return await backend.plan(create_frame(frame(1280, 800).pixels, -1280, 0), "save it", history), served.bodies


@pytest.mark.parametrize(
    ("version", "said"),
    [
        ("1.0", "click(start_box='<|box_start|>(500,500)<|box_end|>')"),
        # 1280 x 800 is looked at as 1288 x 812.
        ("1.5", "click(start_box='<|box_start|>(644,406)<|box_end|>')"),
        ("doubao", "click(point='<point>500 500</point>')"),
        ("2", "<function=click><parameter=point><point>500 500</point></parameter></function>"),
    ],
)
async def test_each_version_is_asked_and_understood_in_its_dialect(version: str, said: str) -> None:
    answer = f"<seed:tool_call>{said}</seed:tool_call>" if version == "2" else f"Thought: here\nAction: {said}"
    plan, (body,) = await planned(Answer(completion(answer)), version=version, language="German")
    (action,) = plan.actions
    assert (action.tool, dict(action.args)) == ("execute_gui", {"action": "click", "x": -640, "y": 400})
    task = body["messages"][0]["content"][1]["text"]
    assert ("<point>" in task) is (version in ("doubao", "2"))
    assert ("<function=" in task) is (version == "2")
    assert "save it" in task
    assert "Use German" in task
    assert pictures(body)[0].size == ((1288, 812) if version == "1.5" else (1280, 800))


async def test_what_happened_is_told_with_the_latest_pictures() -> None:
    shown = frame(100, 100)
    history = [
        after("Thought: one\nAction: click(start_box='(1,1)')", OK, shown=shown),
        after("Thought: two\nAction: wait()", REFUSED, shown=shown),
        after("Thought: three\nAction: wait()", OK, shown=shown, note="Look again."),
    ]
    _, (body,) = await planned(Answer(completion("Thought: x\nAction: wait()")), history, pictures=2)
    messages = body["messages"]
    assert [message["role"] for message in messages] == ["user", *(["assistant", "user"] * 3)]
    assert messages[3]["content"] == "Thought: two\nAction: wait()"
    texts = [message["content"][-1]["text"] for message in messages[2::2]]
    assert texts == [
        "The action was carried out.",
        "The action failed: a person said no",
        "The action was carried out.\nLook again.",
    ]
    assert [len(message["content"]) for message in messages[2::2]] == [1, 2, 2]
    assert len(pictures(body)) == 2


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("I would click on Save.", "there is no `Action:`"),
        ("Action: click(start_box='(9000,1)')", "coordinates go from 0 to"),
        ("Action: scroll(direction='away')", "'away' is no direction"),
    ],
)
async def test_a_plan_that_is_no_good_is_asked_for_again_and_then_said(said: str, why: str) -> None:
    with pytest.raises(BackendUnavailable, match=why):
        await planned(Answer(completion(said)))
    answers = Answer(completion(said)), Answer(completion("Action: wait()"))
    async with at(in_turn(*answers), UiTarsBackend) as (backend, served):
        plan = await backend.plan(frame(), "save", ())
    assert plan.actions[0].tool == "wait"
    assert why in served.bodies[1]["messages"][-1]["content"]


@pytest.mark.parametrize("told_of", [10**400, float("inf"), float("nan"), -1])
async def test_a_cost_that_nobody_can_pay_is_not_believed(told_of: float) -> None:
    paid = {**FOUND, "usage": {"prompt_tokens": told_of, "completion_tokens": 3, "cost": told_of}}
    async with at(in_turn(Answer(paid))) as (backend, _):
        assert await backend.parse(frame(), "save")
        assert (backend.cost.input_tokens, backend.cost.output_tokens, backend.cost.dollars) == (0, 3, 0.0)

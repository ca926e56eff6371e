"""The backend `gemini_computer_use` against a server that speaks Gemini's protocol, through Google's own client."""

from __future__ import annotations

import gzip
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import numpy as np
import pytest
from google.genai import types
from pydantic import ValidationError
from tests.gemini_server import KEY, Empty, Fails, Gemini, LeadsOn, Raw, call, say, serving
from tests.plugins.vision_vlm.serving import Answer, Asked, serving as json_server

from handrail import (
    BackendUnavailable,
    Cost,
    Desktop,
    Frame,
    InvalidArguments,
    NotFound,
    Plan,
    PlannedAction,
    Rect,
    ToolResult,
    Turn,
    VisionBackend,
)
from handrail.config.settings import NetworkSettings
from handrail.testing import VisionBackendContract
from handrail_gemini_cu.backend import GeminiComputerUse, explain_unsupported
from handrail_gemini_cu.config import GeminiConfig

pytestmark = pytest.mark.anyio

DONE = [say("It is done.")]
OK = ToolResult(status="success", effect="confirmed")


class Opened:
    """What a backend is given when it opens."""

    desktop = Desktop("test", None)
    network = NetworkSettings()

    def __init__(self, **environment: str) -> None:
        self.environment = environment or {"GEMINI_API_KEY": KEY}

    async def secret(self, name: str) -> str:
        if name != "gemini":
            raise NotFound(f"there is no secret {name!r}", hint="set it")
        return KEY

    async def service(self, capability: str) -> Any:
        raise AssertionError(f"it asked for {capability}")


def picture(grey: int = 0, *, width: int = 1280, height: int = 800) -> Frame:
    return Frame(Rect(0, 0, width, height), np.full((height, width, 3), grey, np.uint8), time.monotonic())


@asynccontextmanager
async def opened(gemini: Gemini, **settings: Any) -> AsyncIterator[GeminiComputerUse]:
    backend = GeminiComputerUse(GeminiConfig.model_validate({"url": gemini.url, "pause": 0.01, **settings}))
    try:
        await backend.open(Opened())
        yield backend
    finally:
        await backend.close()


def done(plan: Plan, *results: ToolResult, frame: Frame) -> Turn:
    """The turn of a plan; without results, all of it worked."""
    return Turn(plan, results or tuple(OK for _ in plan.actions), frame)


class TestGeminiComputerUse(VisionBackendContract):
    """What every backend promises."""

    @pytest.fixture
    def gemini(self) -> Iterator[Gemini]:
        with serving([call("click", x=500, y=500)], endless=True) as gemini:
            yield gemini

    @pytest.fixture
    def backend(self, gemini: Gemini) -> VisionBackend:
        return GeminiComputerUse(GeminiConfig(url=gemini.url))

    @pytest.fixture
    def context(self) -> Any:
        return Opened()


async def test_the_first_request_has_the_task_a_picture_and_the_tool() -> None:
    with serving(DONE) as gemini:
        async with opened(gemini, model="gemini-9-flash", excluded=["open_app"], injection_check=True) as backend:
            plan = await backend.plan(picture(), "add 7 and 5", ())
    (request,) = gemini.requests
    assert (plan.done, plan.text, plan.actions) == (True, "It is done.", ())
    assert request.model == "gemini-9-flash"
    text, image = request.contents[0].parts or []
    assert text.text == "add 7 and 5"
    assert image.inline_data is not None
    assert request.tool == types.ComputerUse(
        environment=types.Environment.ENVIRONMENT_DESKTOP,
        excluded_predefined_functions=["open_app"],
        enable_prompt_injection_detection=True,
    )


@pytest.mark.parametrize("environment", ["desktop", "browser", "mobile"])
async def test_the_model_is_told_its_environment(environment: str) -> None:
    with serving(DONE) as gemini:
        async with opened(gemini, environment=environment) as backend:
            await backend.plan(picture(), "look", ())
    assert gemini.requests[0].tool.environment == types.Environment[f"ENVIRONMENT_{environment.upper()}"]


async def test_words_beside_a_call_are_reasoning_and_not_the_end() -> None:
    thought = types.Part(text="hm", thought=True)
    with serving([thought, say("I click Save."), call("click", x=1, y=1)]) as gemini:
        async with opened(gemini) as backend:
            plan = await backend.plan(picture(), "save", ())
    assert (plan.done, plan.text) == (False, "I click Save.")
    assert [action.name for action in plan.actions] == ["click"]


async def test_places_are_found_again_whatever_size_was_sent() -> None:
    with serving([call("click", x=500, y=500)], endless=True) as gemini:
        async with opened(gemini, longest_side=640) as backend:
            for width, height in ((3840, 2160), (640, 400), (1281, 799)):
                plan = await backend.plan(picture(width=width, height=height), "click", ())
                assert abs(plan.actions[0].args["x"] - width / 2) <= width / 640 + 1
                assert abs(plan.actions[0].args["y"] - height / 2) <= height / 400 + 1


async def test_every_parallel_call_is_answered_with_url_and_a_fresh_picture() -> None:
    asked = [call("click", id="a", x=1, y=1), call("type", id="b", text="x"), call("take_screenshot", id="c")]
    with serving(asked, DONE) as gemini:
        async with opened(gemini) as backend:
            plan = await backend.plan(picture(1), "go", ())
            after = {"1": picture(2), "2": picture(3)}
            turn = Turn(plan, tuple(OK for _ in plan.actions), after["2"], frames=after)
            await backend.plan(after["2"], "go", [turn])
    assert gemini.faults == []
    assert [(r.id, r.name) for r in gemini.requests[1].responses] == [
        ("a", "click"),
        ("b", "type"),
        ("c", "take_screenshot"),
    ]
    assert all(told["url"] == "" for told in gemini.requests[1].told)
    assert all(response.parts for response in gemini.requests[1].responses)


async def test_the_address_of_the_page_is_that_of_the_last_result_that_told_it() -> None:
    with serving([call("navigate", url="https://example.org")], [call("click", x=1, y=1)], DONE) as gemini:
        async with opened(gemini, environment="browser") as backend:
            turns: list[Turn] = []
            for result in ({"url": "https://example.org/"}, {}):
                plan = await backend.plan(picture(), "go", turns)
                turns.append(done(plan, ToolResult(status="success", **result), frame=picture()))
            await backend.plan(picture(), "go", turns)
    assert [told["url"] for told in gemini.requests[2].told] == ["https://example.org/"]


async def test_what_was_refused_failed_or_is_unknown_is_told_as_it_is() -> None:
    asked = [call("fly", id="a"), call("click", id="b", x=1, y=1)]
    with serving(asked, [call("press_key", key="alt+f4")], DONE) as gemini:
        async with opened(gemini) as backend:
            plan = await backend.plan(picture(), "go", ())
            assert plan.actions[0].problem == "there is no function 'fly'"
            unknown = ToolResult.failure(InvalidArguments("there is no function 'fly'"), title="x")
            turns = [done(plan, unknown, frame=picture())]
            second = await backend.plan(picture(), "go", turns)
            denied = ToolResult(status="denied", error={"code": "denied_by_policy", "message": "the keys are blocked"})
            await backend.plan(picture(), "go", [*turns, done(second, denied, frame=picture())])
    fly, click = gemini.requests[1].told
    assert fly["error"] == "there is no function 'fly'"
    assert "not tried" in click["error"]
    assert gemini.requests[2].told == [{"url": "", "error": "the keys are blocked", "code": "denied_by_policy"}]
    assert gemini.faults == []


async def test_a_yes_to_a_safety_decision_is_acknowledged_and_a_no_is_not() -> None:
    decision = {"decision": "require_confirmation", "explanation": "It pays."}
    asked = [call("click", x=1, y=1, safety_decision=decision)]
    with serving(asked, DONE, DONE) as gemini:
        async with opened(gemini) as backend:
            plan = await backend.plan(picture(), "pay", ())
            assert plan.actions[0].ask == "the model's safety check asks: It pays."
            await backend.plan(picture(), "pay", [done(plan, frame=picture())])
            no = ToolResult(status="denied", error={"code": "denied_by_user", "message": "no"})
            await backend.plan(picture(), "pay", [done(plan, no, frame=picture())])
    assert gemini.requests[1].told[0]["safety_acknowledgement"] == "true"
    assert "safety_acknowledgement" not in gemini.requests[2].told[0]
    assert gemini.faults == []


async def test_a_long_history_is_cut_to_thirty_entries_with_the_task_and_the_newest_three_pictures() -> None:
    with serving([call("click", x=1, y=1)], endless=True) as gemini:
        async with opened(gemini, longest_side=320) as backend:
            turns: list[Turn] = []
            frame = picture(0, width=64, height=40)
            for number in range(1, 21):
                plan = await backend.plan(frame, "click and click", turns)
                frame = picture(number, width=64, height=40)
                turns.append(done(plan, frame=frame))
    assert gemini.faults == []
    assert max(len(request.contents) for request in gemini.requests) <= 30
    for request in gemini.requests:
        assert str((request.contents[0].parts or [])[0].text).startswith("click and click")
        assert len(request.pictures) <= 3
    last = gemini.requests[-1]
    assert "(5 earlier turns are left out here" in str((last.contents[0].parts or [])[0].text)
    assert len(set(last.pictures)) == 3
    assert last.responses[0].parts


async def test_keys_that_were_held_in_an_earlier_turn_still_are() -> None:
    with serving([call("key_down", key="control")], [call("press_key", key="s")]) as gemini:
        async with opened(gemini) as backend:
            first = await backend.plan(picture(), "save", ())
            second = await backend.plan(picture(), "save", [done(first, frame=picture())])
    assert second.actions[0].args == {"action": "hotkey", "keys": ["control", "s"]}


async def test_a_screen_that_has_changed_since_is_shown_and_turns_of_another_backend_are_told_in_words() -> None:
    foreign = Turn(Plan((PlannedAction("execute_gui", {}),), "clicking"), (OK,), picture(1))
    with serving(DONE) as gemini:
        async with opened(gemini) as backend:
            await backend.plan(picture(2), "go on", [foreign])
    assert gemini.faults == []
    assert [content.role for content in gemini.requests[0].contents] == ["user", "model", "user"]
    assert len(gemini.requests[0].pictures) == 1


async def test_what_it_costs_is_counted() -> None:
    with serving(DONE) as gemini:
        async with opened(gemini, input_price=2, output_price=10) as backend:
            await backend.plan(picture(), "look", ())
            assert backend.cost == Cost(1000, 60, 0.0026)


@pytest.mark.parametrize("fails", [Fails(429), Fails(503), Empty(types.FinishReason.MALFORMED_FUNCTION_CALL)])
async def test_what_is_refused_for_the_moment_is_asked_again(fails: Fails | Empty) -> None:
    with serving(fails, fails, DONE) as gemini:
        async with opened(gemini) as backend:
            assert (await backend.plan(picture(), "look", ())).done
    assert len(gemini.requests) == 3


@pytest.mark.parametrize(
    ("fails", "why"),
    [
        (Fails(429, "quota", "RESOURCE_EXHAUSTED"), "429 RESOURCE_EXHAUSTED .*quota"),
        (
            Fails(404, "models/x is not found", "NOT_FOUND"),
            r"not found; where this model does not use computers, set backends\.",
        ),
        (Fails(403, "forbidden", "PERMISSION_DENIED"), "check the key in GEMINI_API_KEY"),
        (Empty(types.FinishReason.SAFETY), r"answered nothing \(SAFETY\)"),
        (Empty(), r"answered nothing \(STOP\)"),
        (Empty(block=types.BlockedReason.PROHIBITED_CONTENT), r"refused to answer \(PROHIBITED_CONTENT\)"),
        (Empty(types.FinishReason.MALFORMED_FUNCTION_CALL), "no valid call in 2 attempts"),
    ],
)
async def test_an_answer_that_is_none_says_why(fails: Fails | Empty, why: str) -> None:
    with serving(fails, endless=True) as gemini:
        async with opened(gemini, attempts=2) as backend:
            with pytest.raises(BackendUnavailable, match=why):
                await backend.plan(picture(), "look", ())


async def test_a_server_that_is_not_there_is_unavailable() -> None:
    with serving(DONE) as gemini:
        pass
    async with opened(gemini, attempts=1) as backend:
        with pytest.raises(BackendUnavailable, match=r"no answer came from http://127.*cannot be reached"):
            await backend.plan(picture(), "look", ())


async def test_neither_the_key_nor_a_picture_goes_where_a_server_leads_on_to() -> None:
    with serving(DONE) as other, serving() as gemini:
        gemini.answers.append(LeadsOn(f"{other.url}/v1beta/models/gemini-3.5-flash:generateContent"))
        async with opened(gemini) as backend:
            with pytest.raises(BackendUnavailable, match=r"307.*redirects are not followed: set backends\."):
                await backend.plan(picture(), "look", ())
    assert (len(gemini.requests), other.requests) == (1, [])


@pytest.mark.parametrize("url", ["http://8.8.8.8", "http://[2606:4700::1111]"])
async def test_neither_goes_to_a_public_address_in_the_clear(url: str) -> None:
    with pytest.raises(BackendUnavailable, match="public address"):
        await GeminiComputerUse(GeminiConfig(url=url)).open(Opened())


async def test_what_a_server_says_of_a_failure_is_short_and_shows_no_key() -> None:
    with serving(Fails(400, f"bad key {KEY}\x1b[2J " + "long " * 100_000, f"NO_{KEY}"), endless=True) as gemini:
        async with opened(gemini) as backend:
            with pytest.raises(BackendUnavailable, match="bad key") as caught:
                await backend.plan(picture(), "look", ())
    told = str(caught.value)
    assert KEY not in told
    assert "\x1b" not in told
    assert len(told) < 600


@pytest.mark.parametrize("text", ["<html>busy", "[]", "null", '{"candidates": 7}', "[" * 100_000, ""])
async def test_what_is_no_answer_of_the_api_is_said(text: str) -> None:
    with serving(Raw(text), endless=True) as gemini:
        async with opened(gemini, attempts=1) as backend:
            with pytest.raises(BackendUnavailable):
                await backend.plan(picture(), "look", ())


@pytest.mark.parametrize(
    ("text", "why"),
    [("x" * 8_000_001, "more than 8,000,000 bytes"), ("[" + "[]," * 300_000 + "[]]", "more than 500,000 values")],
    ids=["bytes", "values"],
)
async def test_an_answer_of_any_length_is_not_read_to_its_end(text: str, why: str) -> None:
    with serving(Raw(text), endless=True) as gemini:
        async with opened(gemini, attempts=1) as backend:
            with pytest.raises(BackendUnavailable, match=why):
                await backend.plan(picture(), "look", ())


async def test_an_answer_that_is_packed_is_not_unpacked() -> None:
    asked_for: list[str | None] = []

    async def packs(asked: Asked) -> Answer:
        asked_for.append(asked.headers.get("accept-encoding"))
        return Answer(gzip.compress(bytes(50_000_000)), headers={"content-encoding": "gzip"})

    async with json_server(packs) as served, opened(Gemini(url=served.url), attempts=1) as backend:
        with pytest.raises(BackendUnavailable, match="packs its answer as 'gzip'"):
            await backend.plan(picture(), "look", ())
    assert asked_for == ["identity"]


async def test_a_place_of_any_size_is_told_to_the_model() -> None:
    with serving([call("click", x=10**400, y=1)]) as gemini:
        async with opened(gemini) as backend:
            (action,) = (await backend.plan(picture(), "look", ())).actions
    assert action.problem
    assert len(action.problem) < 200


async def test_a_cancelled_question_ends_at_once() -> None:
    with serving(DONE) as gemini, anyio.fail_after(30):
        # The server answers nothing before the test is over.
        gemini.hold = threading.Event()
        async with opened(gemini) as backend, anyio.create_task_group() as group:
            group.start_soon(backend.plan, picture(), "look", ())
            await anyio.to_thread.run_sync(gemini.held.wait)
            group.cancel_scope.cancel()


async def test_without_a_key_it_does_not_open_and_names_the_variable() -> None:
    backend = GeminiComputerUse(GeminiConfig(key_variable="MY_KEY"))
    with pytest.raises(BackendUnavailable, match="environment variable MY_KEY"):
        await backend.open(Opened(GEMINI_API_KEY=KEY))
    with serving(DONE) as gemini:
        async with opened(gemini) as backend:
            assert (await backend.plan(picture(), "look", ())).done
        wrong = GeminiComputerUse(GeminiConfig(url=gemini.url))
        await wrong.open(Opened(GEMINI_API_KEY="wrong"))
        with pytest.raises(BackendUnavailable, match=r"API key not valid.*check the key"):
            await wrong.plan(picture(), "look", ())
        await wrong.close()


async def test_the_key_may_be_a_secret() -> None:
    with serving(DONE) as gemini:
        async with opened(gemini, key="secret:gemini", key_variable="NOTHING") as backend:
            assert (await backend.plan(picture(), "look", ())).done
    with pytest.raises(BackendUnavailable, match=r"gemini_computer_use\.key: there is no secret 'other'; set it"):
        await GeminiComputerUse(GeminiConfig(key="secret:other")).open(Opened())


@pytest.mark.parametrize(
    ("model", "environment", "fits"),
    [
        ("gemini-3.5-flash", "desktop", True),
        ("gemini-4-pro", "mobile", True),
        ("models/gemini-3.8-flash", "browser", True),
        ("gemini-2.5-computer-use-preview-10-2025", "browser", True),
        ("gemini-3-flash-preview", "browser", True),
        ("gemini-flash-latest", "desktop", True),
        ("projects/p/locations/l/endpoints/7", "desktop", True),
        ("gemini-3-flash-preview", "desktop", False),
        ("gemini-2.5-computer-use-preview-10-2025", "mobile", False),
        ("gemini-2.5-flash", "browser", False),
        ("gemini-1.5-pro", "browser", False),
        ("models/gemini-2.0-flash", "desktop", False),
        ("gemini-3.5-flash-image", "desktop", False),
        ("gemini-3.1-flash-live", "browser", False),
        ("gemma-4-27b", "desktop", False),
    ],
)
def test_a_model_that_does_not_use_computers_is_known_by_its_name(model: str, environment: str, fits: bool) -> None:
    why = explain_unsupported(model, environment)
    assert (why is None) is fits
    assert why is None or (repr(model) in why and "backends.gemini_computer_use.model" in why)


def test_settings_are_checked() -> None:
    with pytest.raises(ValidationError, match="did you mean 'click_at'"):
        GeminiConfig(excluded=("click_att",))
    with pytest.raises(ValidationError):
        GeminiConfig.model_validate({"url": "file:///etc"})
    with pytest.raises(ValidationError):
        GeminiConfig.model_validate({"entries": 2})

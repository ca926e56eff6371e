"""Whole tasks on a private desktop with real programs, as a model would do them: what it says comes from the server of the tests."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.gemini_server import KEY, Answer, Gemini, Request, Scripted, call, say, serving

import handrail
from handrail import Element, Session
from handrail.testing import ScriptedConfirmer
from handrail_gui.hands import Place

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(180)]

DEADLINE_S = 40.0
DONE = [say("It is done.")]


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


class Desk:
    """A session on a private desktop of its own, with the programs on it."""

    def __init__(self, session: Session, stack: ExitStack) -> None:
        self.session, self._stack, self._loop = session, stack, asyncio.get_running_loop()

    async def start(self, *argv: str) -> subprocess.Popen[bytes]:
        """A program, when its window can be worked."""
        program = _begun(argv, (await self.session.desktop()).environment)
        self._stack.callback(_end, program)
        await self.until(lambda elements: any(e.role in ("text", "button", "toggle button") for e in elements))
        return program

    async def elements(self) -> tuple[Element, ...]:
        accessibility: Any = await self.session.service("accessibility")
        return (await accessibility.tree(full=True)).elements

    async def until(self, fits: Callable[[tuple[Element, ...]], Any]) -> Any:
        """What a condition gives on the active window's elements, once it is true."""
        with anyio.fail_after(DEADLINE_S):
            while not (found := fits(await self.elements())):
                await anyio.sleep(0.02)
        return found

    def place(self, role: str, text: str) -> dict[str, Any]:
        """Where an element is, in the model's numbers; asked by the server, once it shows."""

        def shown(elements: tuple[Element, ...]) -> Element | None:
            return next((e for e in elements if e.rect and e.role == role and e.text == text), None)

        found: Element = asyncio.run_coroutine_threadsafe(self.until(shown), self._loop).result(DEADLINE_S)
        assert found.rect is not None
        x, y = found.rect.center
        return {"x": x * 1000 // 1280, "y": y * 1000 // 800}

    def clicks(self, *named: tuple[str, str], function: str = "click") -> Scripted:
        """An answer that clicks elements, all of them in one turn."""

        def answer(request: Request) -> Answer:
            return [say("I press them."), *(call(function, **self.place(role, text)) for role, text in named)]

        return answer

    async def use(self, instruction: str) -> Any:
        return await self.session.call("execute_computer_use", {"instruction": instruction})


def _begun(argv: Sequence[str], environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    quiet = subprocess.DEVNULL
    return subprocess.Popen(argv, env={**os.environ, **environment}, stdin=quiet, stdout=quiet, stderr=quiet)


def _end(program: subprocess.Popen[bytes]) -> None:
    program.kill()
    program.wait(DEADLINE_S)


@asynccontextmanager
async def desk(gemini: Gemini, folder: Path, stack: ExitStack, **given: Any) -> AsyncIterator[Desk]:
    backends = {"gemini_computer_use": {"url": gemini.url}}
    environment = {**os.environ, "GEMINI_API_KEY": KEY}
    async with handrail.open(
        desktop="private",
        backend="gemini_computer_use",
        backends=backends,
        cwd=folder,
        environment=environment,
        **given,
    ) as session:
        yield Desk(session, stack)
    assert gemini.faults == []
    assert gemini.answers == []


def shows(text: str) -> Callable[[tuple[Element, ...]], bool]:
    """Whether a text element holds just that."""
    return lambda elements: any(e.role == "text" and e.value == text for e in elements)


async def test_a_calculator_multiplies(tmp_path: Path, stack: ExitStack) -> None:
    with serving() as gemini:
        async with desk(gemini, tmp_path, stack) as given:
            await given.start("galculator")
            keys = [("toggle button", key) for key in ("7", "*", "6")]
            gemini.answers += [given.clicks(*keys), given.clicks(("toggle button", "="), function="click_at"), DONE]
            result = await given.use("multiply 7 by 6")
            assert result.ok, result
            await given.until(shows("42"))
            recorded = await given.session.call("get_action_history")
    assert [(t["function"], t["result"]["status"]) for t in result["actions_taken"]] == [
        *(("click", "success"),) * 3,
        ("click_at", "success"),
    ]
    assert all(told["url"] == "" and "error" not in told for told in gemini.requests[1].told)
    assert len(gemini.requests[1].pictures) == 3
    assert [action["tool"] for action in recorded["actions"]] == ["execute_computer_use"]


async def test_an_editor_is_written_in_and_its_dialog_answered_after_a_yes(tmp_path: Path, stack: ExitStack) -> None:
    person = ScriptedConfirmer("once")
    decision = {"decision": "require_confirmation", "explanation": "It throws the text away."}

    def throws_away(desk: Desk) -> Scripted:
        return lambda request: [call("click", **desk.place("button", "Don't Save"), safety_decision=decision)]

    with serving() as gemini:
        async with desk(gemini, tmp_path, stack, confirm=person) as given:
            editor = await given.start("mousepad", "--disable-server")
            gemini.answers += [
                [call("type", text="Grüße, 漢字", press_enter=True), call("hotkey", keys=["Control", "a"])],
                [call("press_key", key="alt+F4")],
                [call("hotkey", keys=["Control", "q"])],
                throws_away(given),
                DONE,
            ]
            result = await given.use("write a greeting, then close the editor without saving")
            assert result.ok, result
            with anyio.fail_after(DEADLINE_S):
                while editor.poll() is None:
                    await anyio.sleep(0.02)
    blocked = gemini.requests[2].told[0]
    assert blocked["code"] == "denied_by_policy"
    assert gemini.requests[4].told[0]["safety_acknowledgement"] == "true"
    assert [question.verdict.reasons[-1].text for question in person.asked] == [
        "the model's safety check asks: It throws the text away."
    ]
    assert [taken["result"]["status"] for taken in result["actions_taken"]] == [
        *("success",) * 3,
        "denied",
        "success",
        "success",
    ]


async def test_places_in_a_window_that_has_moved_since_are_refused_and_told(tmp_path: Path, stack: ExitStack) -> None:
    with serving() as gemini:
        async with desk(gemini, tmp_path, stack) as given:
            await given.start("galculator")

            async def moved() -> None:
                hands: Any = await given.session.service("hands")
                screen: Any = await given.session.service("screen")
                (window,) = await screen.windows()
                await hands.place(window.id, Place(x=20, y=60))

            def late(request: Request) -> Answer:
                place = given.place("toggle button", "7")
                asyncio.run_coroutine_threadsafe(moved(), loop).result(DEADLINE_S)
                return [call("click", x=place["x"], y=place["y"])]

            loop = asyncio.get_running_loop()
            gemini.answers += [late, given.clicks(("toggle button", "7")), DONE]
            result = await given.use("press 7")
            assert result.ok, result
            await given.until(shows("7"))
    assert gemini.requests[1].told[0]["code"] == "stale_observation"

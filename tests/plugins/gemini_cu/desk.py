"""A session on a private desktop, whose planning model is the server of the tests."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
from tests.gemini_server import KEY, Answer, Gemini, Request, Scripted, call, say

import handrail
from handrail import Element, Session

DEADLINE_S = 60.0
DONE = [say("It is done.")]


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
async def desk(
    gemini: Gemini, folder: Path, stack: ExitStack, *, kind: str = "desktop", **given: Any
) -> AsyncIterator[Desk]:
    """The session; `kind` is what the model is told that it works on."""
    backends = {"gemini_computer_use": {"url": gemini.url, "environment": kind}}
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

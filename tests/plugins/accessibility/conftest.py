"""A private desktop for each file of tests, real programs on it, and one program made for the odd cases."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import anyio
import pytest

import handrail
from handrail import Answer, Approval, Choice, Downstream, Session
from handrail_accessibility.tree.protocol import AccessibilityController

from .published import Published

DEADLINE_S = 60.0


class Launch(Protocol):
    """Starts a program and waits until its window, with `title` in its title, is the active one and all there."""

    async def __call__(self, *command: str, title: str) -> subprocess.Popen[bytes]: ...


async def yes(approval: Approval) -> Answer:
    return Answer(Choice.ONCE)


@pytest.fixture
def stuck() -> Iterator[threading.Event]:
    """What a call waits for that does not end before the test."""
    event = threading.Event()
    yield event
    event.set()


@pytest.fixture(scope="module")
async def session(anyio_backend: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Session]:
    folder = tmp_path_factory.mktemp("workspace")
    async with handrail.open(desktop="private", confirm=yes, cwd=folder, backend="accessibility") as opened:
        yield opened


@pytest.fixture(scope="module")
async def control(session: Session) -> AccessibilityController:
    return await session.service("accessibility")


@pytest.fixture(scope="module")
async def environment(session: Session, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    desktop = await session.desktop()
    home = tmp_path_factory.mktemp("home")
    return {**os.environ, "HOME": str(home), **desktop.environment}


@pytest.fixture
def programs() -> Iterator[list[subprocess.Popen[bytes]]]:
    started: list[subprocess.Popen[bytes]] = []
    yield started
    for process in started:
        process.kill()
        process.wait()


def begin(command: tuple[str, ...], environment: dict[str, str], folder: Path) -> subprocess.Popen[bytes]:
    quiet = subprocess.DEVNULL
    return subprocess.Popen(command, env=environment, stdout=quiet, stderr=quiet, cwd=folder)


@pytest.fixture
async def launch(
    control: AccessibilityController,
    environment: dict[str, str],
    programs: list[subprocess.Popen[bytes]],
    tmp_path: Path,
) -> AsyncIterator[Launch]:
    async def start(*command: str, title: str) -> subprocess.Popen[bytes]:
        programs.append(begin(command, environment, tmp_path))
        drawn = Drawn(control, title)
        await until(drawn, f"the window {title!r}")
        return programs[-1]

    yield start
    # The next test begins on an empty desktop.
    for process in programs:
        process.kill()
    await until(lambda: empty(control), "an empty desktop")


@pytest.fixture
async def published(session: Session, control: AccessibilityController) -> AsyncIterator[Published]:
    desktop = await session.desktop()
    program = await Published.start(desktop.environment["DBUS_SESSION_BUS_ADDRESS"])
    yield program
    await program.close()
    await until(lambda: lacks(control, "Published"), "the window to go")


@dataclass(slots=True)
class Drawn:
    """Whether the active window has that in its title, and looks as it did the last time it was asked."""

    control: AccessibilityController
    title: str
    before: int = 0

    async def __call__(self) -> bool:
        # As long as it takes: a part of it is another part at each look.
        seen = await self.control.tree(full=True, deadline=DEADLINE_S)
        before, self.before = self.before, len(seen.elements)
        return self.title in (seen.window or "") and 0 < before == len(seen.elements)


async def shows(control: AccessibilityController, title: str) -> bool:
    return any(title in shown for shown in await control.titles())


async def lacks(control: AccessibilityController, title: str) -> bool:
    return not await shows(control, title)


async def empty(control: AccessibilityController) -> bool:
    return await control.titles() == ()


async def until(holds: Callable[[], Awaitable[bool]], what: str) -> None:
    """Wait for a condition; a deadline that passes fails the test."""
    with anyio.move_on_after(DEADLINE_S):
        while True:
            # A program that is busy starting may not answer yet.
            with suppress(Downstream):
                if await holds():
                    return
            await anyio.sleep(0.05)
    pytest.fail(f"waited {DEADLINE_S:g} s for {what}")


class Use(Protocol):
    """Calls `execute_accessible`."""

    async def __call__(self, **args: Any) -> dict[str, Any]: ...


@pytest.fixture
def use(session: Session) -> Use:
    async def call(**args: Any) -> dict[str, Any]:
        return (await session.call("execute_accessible", args)).wire()

    return call

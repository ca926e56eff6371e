"""A desktop of Windows, or of Wine, that the tests may work: `make wine`."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from tests.desktop_contracts import until

from handrail import Rect, Window
from handrail.desktop.thread_worker import ThreadWorker
from handrail_gui.platforms.native.input_driver import InputGuard, NativeInputDriver
from handrail_gui.platforms.native.platform_factory import open_native_system
from handrail_gui.platforms.native.screen import NativeScreen


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if sys.platform != "win32":
        for item in items:
            if "on_windows" in item.path.parts:
                item.add_marker(pytest.mark.skip(reason="it works the desktop of Windows: make wine"))


@pytest.fixture
async def worker() -> AsyncIterator[ThreadWorker[Any]]:
    found = ThreadWorker("Windows", open_native_system, lambda system: system.end())
    # The first call to Wine starts its desktop.
    await found.run(lambda system: system.grab(Rect(0, 0, 1, 1)), timeout=60)
    yield found
    await found.close()


@pytest.fixture
def screen(worker: ThreadWorker[Any]) -> NativeScreen:
    return NativeScreen(worker)


@pytest.fixture
async def hands(worker: ThreadWorker[Any]) -> AsyncIterator[NativeInputDriver]:
    found = NativeInputDriver(worker, InputGuard())
    await found.move(600, 20)
    yield found
    await found.close()


@pytest.fixture
def notepad() -> Iterator[subprocess.Popen[bytes]]:
    program = subprocess.Popen(["notepad.exe"])
    yield program
    program.kill()
    program.wait(20)


@pytest.fixture
async def editor(notepad: subprocess.Popen[bytes], screen: NativeScreen) -> Window:
    async def shown() -> Window | None:
        return next((w for w in await screen.windows() if w.pid == notepad.pid and w.active), None)

    return await until(shown, what="the window of Notepad")

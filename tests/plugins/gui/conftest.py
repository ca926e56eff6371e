"""Private desktops with real programs on them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from time import monotonic
from typing import Any

import anyio
import pytest
from Xlib import X, display

import handrail
from handrail import Desktop, Session, Window
from handrail_gui.platforms.x11.connection import X11Connection
from handrail_gui.platforms.x11.input_driver import X11InputDriver
from handrail_gui.platforms.x11.pointer import XTestPointer
from handrail_gui.platforms.x11.screen import X11Screen
from handrail_gui.platforms.x11.windows import has_focus
from handrail_gui.private.supervisor_client import PrivateDesktop

PLAIN_WINDOW = str(Path(__file__).with_name("plain_window.py"))
HANDRAIL = Path(sys.executable).with_name("handrail")
DEADLINE_S = 60.0

# Letters of several scripts, what XML and shells would change, and a character outside the first plane.
TEXT = "Ergebnis: 100 — 漢字 ✓ 😀 <>&\"'~"
# Planes 0, 1, 2, 3, 14, 15 and 16: all that have characters.
EVERY_PLANE = "ä漢\ue000 😀𝒜 \U00020000 \U00030000 葛\U000e0100 \U000f0000 \U0010fffd"


async def until(condition: Callable[[], Awaitable[Any]], *, what: str, timeout: float = DEADLINE_S) -> Any:
    """The first true value of a condition; fails the test when there is none in time."""
    deadline = monotonic() + timeout
    while not (found := await condition()):
        assert monotonic() < deadline, f"waited {timeout:g} s in vain for {what}"
        await anyio.sleep(0.02)
    return found


@pytest.fixture(scope="session")
def private() -> Iterator[PrivateDesktop]:
    """One private desktop for all tests that use the display itself."""
    desktop = PrivateDesktop.start("tests")
    yield desktop
    desktop.close()


def outside(desktop: PrivateDesktop, *argv: str) -> str:
    """What another program says of the desktop."""
    environment = {**os.environ, **desktop.desktop.environment}
    return subprocess.run(argv, env=environment, capture_output=True, text=True, check=False, timeout=20).stdout


def held_down(desktop: Desktop) -> bool:
    """Whether another program sees a key or a button down; a lock that is on is none."""
    seen = display.Display(str(desktop.display))
    try:
        locks = X.LockMask | X.Mod2Mask
        return any(seen.query_keymap()) or bool(seen.screen().root.query_pointer().mask & 0x1FFF & ~locks)
    finally:
        seen.close()


@pytest.fixture(scope="module", params=["openbox", "xfwm4"])
def managed(request: pytest.FixtureRequest) -> Iterator[PrivateDesktop]:
    """A private desktop under each window manager."""
    desktop = PrivateDesktop.start(f"under {request.param}")
    if request.param == "xfwm4":
        environment = {**os.environ, **desktop.desktop.environment}
        null = subprocess.DEVNULL
        manager = subprocess.Popen(["xfwm4", "--replace"], env=environment, stdin=null, stdout=null, stderr=null)
        yield desktop
        manager.kill()
        manager.wait()
    else:
        yield desktop
    desktop.close()


@pytest.fixture
async def manager(managed: PrivateDesktop) -> str:
    """The window manager, once it manages."""

    async def managing() -> str:
        root = outside(managed, "xprop", "-root", "_NET_SUPPORTING_WM_CHECK")
        named = outside(managed, "xprop", "-id", root.split("# ")[-1].strip(), "_NET_WM_NAME").lower()
        return next((name for name in ("openbox", "xfwm4") if name in named), "")

    wanted = "xfwm4" if "xfwm4" in managed.desktop.name else "openbox"

    async def taken_over() -> bool:
        return await managing() == wanted

    await until(taken_over, what=wanted)
    return wanted


@pytest.fixture
async def connection(private: PrivateDesktop) -> AsyncIterator[X11Connection]:
    found = await X11Connection.open(str(private.desktop.display))
    yield found
    await found.close()


@pytest.fixture
def screen(connection: X11Connection) -> X11Screen:
    return X11Screen(connection)


@pytest.fixture
async def hands(connection: X11Connection) -> AsyncIterator[X11InputDriver]:
    found = X11InputDriver(connection, mouse=XTestPointer(private=True))
    await found.move(600, 20)
    yield found
    await found.close()


class Programs:
    """Programs of one test: started on a desktop, ended with the test."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack

    def start(self, desktop: Desktop, *argv: str) -> subprocess.Popen[bytes]:
        environment = {**os.environ, **desktop.environment}
        program = subprocess.Popen(
            argv, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self._stack.callback(_end, program)
        return program

    async def open(self, desktop: Desktop, screen: Any, *argv: str) -> Window:
        """The program's window, once it is there and gets what is typed."""
        program = self.start(desktop, *argv)

        async def shown() -> Window | None:
            return next((w for w in await screen.windows() if w.pid == program.pid and w.active), None)

        window = await until(shown, what=f"the window of {argv[0]}")
        # A window manager says that a window is active before it gives it the keyboard.
        connection = await X11Connection.open(str(desktop.display))
        try:
            await until(lambda: connection.run(lambda client: has_focus(client, int(window.id, 16))), what="its focus")
        finally:
            await connection.close()
        return window


def _end(program: subprocess.Popen[bytes]) -> None:
    program.kill()
    program.wait(DEADLINE_S)


@pytest.fixture
def programs() -> Iterator[Programs]:
    with ExitStack() as stack:
        yield Programs(stack)


@pytest.fixture
async def session(tmp_path: Path) -> AsyncIterator[Session]:
    """A session on a private desktop of its own."""
    async with handrail.open(desktop="private", cwd=tmp_path) as found:
        await found.desktop()
        yield found


class Agent:
    """Calls that must succeed, and what they gave."""

    def __init__(self, session: Session, programs: Programs) -> None:
        self.session = session
        self._programs = programs

    async def __call__(self, tool: str, **args: Any) -> dict[str, Any]:
        result = await self.session.call(tool, args)
        assert result.status == "success", result
        return result

    async def fails(self, tool: str, **args: Any) -> dict[str, Any]:
        result = await self.session.call(tool, args)
        assert result.status != "success", result
        return result["error"]

    async def open(self, *argv: str) -> Window:
        """Start a program and wait until the accessibility tree has its window."""
        window = await self._programs.open(await self.session.desktop(), await self.session.service("screen"), *argv)

        async def in_the_tree() -> bool:
            seen = await self.session.call("observe_screen", {"image": "none"})
            return seen.ok and bool(seen["ui_elements"])

        await until(in_the_tree, what=f"the accessibility tree of {argv[0]}")
        return window

    async def element(self, role: str, text: str = "") -> dict[str, Any]:
        """The element of that role and text, as it is now."""

        async def found() -> dict[str, Any] | None:
            seen = await self("observe_screen", image="none")
            return next((e for e in seen["ui_elements"] if e["role"] == role and text in e["text"]), None)

        return await until(found, what=f"{role} {text!r}")


@pytest.fixture
def agent(session: Session, programs: Programs) -> Agent:
    return Agent(session, programs)

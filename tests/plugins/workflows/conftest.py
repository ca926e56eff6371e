"""A private desktop for each file of tests, with real programs on it, all in one language."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import pytest

import handrail
from handrail import Answer, Approval, Choice, Session

DEADLINE_S = 60.0
QT_EDITOR = (sys.executable, str(Path(__file__).with_name("qt_editor.py")))


async def yes(approval: Approval) -> Answer:
    return Answer(Choice.ONCE)


def begin(command: tuple[str, ...], environment: dict[str, str]) -> subprocess.Popen[bytes]:
    quiet = subprocess.DEVNULL
    return subprocess.Popen(command, env=environment, stdout=quiet, stderr=quiet, stdin=quiet, start_new_session=True)


@dataclass
class Agent:
    """Calls tools on a desktop, and starts programs that are none of the session's own."""

    session: Session
    environment: dict[str, str]
    programs: list[subprocess.Popen[bytes]] = field(default_factory=list)

    async def __call__(self, tool: str, **args: Any) -> dict[str, Any]:
        """A call that must succeed."""
        result = await self.session.call(tool, args)
        assert result.ok, result.wire()
        return result.wire()

    async def fails(self, tool: str, **args: Any) -> dict[str, Any]:
        """The error of a call that must fail."""
        result = await self.session.call(tool, args)
        assert not result.ok, result.wire()
        return result["error"]

    async def start(self, *command: str, title: str, language: str = "de", **more: str) -> None:
        """A program whose words are in that language, once its window is there and active."""
        environment = {**self.environment, "LC_ALL": "C.UTF-8", "LANGUAGE": language, **more}
        self.programs.append(begin(command, environment))
        await self.until(lambda: self.active(title), f"a window {title!r}")

    def once(self, title: str, command: str) -> None:
        """Run a command of the shell as soon as a window of that title shows, also while a call is under way."""
        found = f"xdotool search --sync --onlyvisible --name {shlex.quote(title)}"
        self.programs.append(begin(("sh", "-c", f"{found} && {command}"), self.environment))

    def own_clipboard(self, data: bytes, kind: str, folder: Path) -> None:
        """A program that offers this; it is there when the call returns."""
        (folder / "offered").write_bytes(data)
        quiet = subprocess.DEVNULL
        offer = ("xclip", "-selection", "clipboard", "-t", kind, "-i", str(folder / "offered"))
        # It leaves the owner behind, which ends when another program takes the clipboard.
        subprocess.run(offer, env=self.environment, stdin=quiet, stdout=quiet, stderr=quiet, check=True)

    async def active(self, title: str) -> bool:
        return any(w["active"] and title in w["title"] for w in (await self("window_list"))["windows"])

    async def titles(self) -> list[str]:
        return [window["title"] for window in (await self("window_list"))["windows"]]

    async def until(self, holds: Callable[[], Awaitable[Any]], what: str) -> None:
        with anyio.move_on_after(DEADLINE_S):
            while not await holds():
                await anyio.sleep(0.05)
            return
        pytest.fail(f"waited {DEADLINE_S:g} s for {what}; there are {await self.titles()}")

    async def clear(self) -> None:
        """End what was started, and what the session started."""
        for program in self.programs:
            # With all that it started, such as the program behind the shell script `soffice`.
            with suppress(ProcessLookupError):
                os.killpg(program.pid, signal.SIGKILL)
            program.wait()
        self.programs.clear()
        for process in (await self("list_processes"))["processes"]:
            if process["running"]:
                await self("stop_process", process_id=process["process_id"])

        async def empty() -> bool:
            return await self.titles() == []

        await self.until(empty, "an empty desktop")


@pytest.fixture(scope="module")
async def desk(anyio_backend: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Agent]:
    folder, home = tmp_path_factory.mktemp("workspace"), tmp_path_factory.mktemp("home")
    async with handrail.open(desktop="private", confirm=yes, cwd=folder, backend="accessibility") as session:
        await session.load_tools(ADVANCED, source="tests")
        desktop = await session.desktop()
        agent = Agent(session, {**os.environ, "HOME": str(home), **desktop.environment})
        await session.call("execute_cli", {"command": f"export HOME={shlex.quote(str(home))}"})
        yield agent


ADVANCED = (
    "app_menu",
    "change_setting",
    "copy_between_apps",
    "extract_text",
    "fill_form",
    "find_and_replace_in_files",
    "install_app",
    "set_env_var",
)


@pytest.fixture
async def agent(desk: Agent) -> AsyncIterator[Agent]:
    yield desk
    await desk.clear()


@pytest.fixture
def folder(desk: Agent) -> Path:
    """A folder of the test's own, in the workspace."""
    return Path(tempfile.mkdtemp(dir=desk.session.cwd))

"""Models and OmniParser in whole sessions on private desktops: who answers, who stands in, and what the agent is told."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncGenerator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.plugins.gui.conftest import PLAIN_WINDOW, Programs, until
from tests.plugins.vision_omniparser import omni
from tests.plugins.vision_vlm import models
from tests.plugins.vision_vlm.models import completion
from tests.plugins.vision_vlm.serving import Answer, Asked, serving

import handrail
from handrail import Session, ToolResult
from handrail.api.approval import yes
from handrail.api.events import Finished, Progress

pytestmark = pytest.mark.anyio

KEY = "sk-0123456789abcdef"
ROOT = Path(__file__).parents[3]


class Servers:
    """A model under each name, and OmniParser, at one address. What begins with `down` is under repair."""

    down = "nothing"
    description = "A grey screen."

    async def answer(self, asked: Asked) -> Answer:
        if asked.path.startswith(self.down):
            return Answer({"error": {"message": "under repair"}}, status=503, headers={"retry-after": "60"})
        if asked.path in ("/parse/", "/probe/"):
            return await omni.answer(asked)
        body = models.checked(asked)
        if "cannot see it" in str(body["messages"]):
            return Answer(completion(self.description))
        x, y = (0.25, 0.5) if asked.path.startswith("/kimi") else (250, 500)
        return Answer(completion(f'[{{"label": "Save", "role": "button", "point": [{x}, {y}]}}]'))


@asynccontextmanager
async def session(
    folder: Path, servers: Servers, backend: str, *fallback: str, **tables: Any
) -> AsyncGenerator[Session, None]:
    async with serving(servers.answer) as served:
        ours = {name: {"url": f"{served.url}/{name}", "tries": 1} for name in ("qwen", "kimi", "ui_tars")}
        backends = {**ours, "omniparser": {"url": served.url}, **tables}
        plugins = ["gui", "vision_vlm", "vision_omniparser", "gemini_cu", "session"]
        environment = {**os.environ, "HANDRAIL_SECRET_MODEL": KEY}
        async with handrail.open(
            desktop="private",
            backend=backend,
            backend_fallback=fallback,
            backends=backends,
            plugins=plugins,
            environment=environment,
            confirm=yes,
            cwd=folder,
        ) as found:
            yield found


async def observe(found: Session, **args: Any) -> ToolResult:
    seen = await found.call("observe_screen", {"image": "none", **args})
    assert seen.ok, seen
    return seen


async def test_what_a_model_finds_can_be_clicked_and_what_it_describes_is_told(tmp_path: Path) -> None:
    async with session(tmp_path, Servers(), "qwen") as found:
        seen = await observe(found, intent="the button that saves", mode="understanding")
        assert (seen["actual_backend"], seen["note"]) == ("qwen", "described by qwen")
        assert seen["stdout"] == "A grey screen."
        (save,) = seen["ui_elements"]
        area = (await found.service("screen")).monitors
        (screen,) = await area()
        # The picture of the result is 1280 wide.
        x1, y1, x2, y2 = (side * screen.width / min(screen.width, 1280) for side in save["bbox"])
        assert abs((x1 + x2) / 2 - screen.width / 4) <= 2
        assert abs((y1 + y2) / 2 - screen.height / 2) <= 2
        clicked = await found.call("execute_gui", {"action": "click", "element_id": save["id"]})
        assert clicked.ok, clicked


async def test_who_finds_elements_and_who_describes_need_not_be_the_same(tmp_path: Path) -> None:
    async with session(tmp_path, Servers(), "omniparser", "qwen") as found:
        seen = await observe(found, mode="understanding")
        assert seen["actual_backend"] == "omniparser"
        assert seen["stdout"] == "A grey screen."
        assert "described by qwen" in seen["note"]


async def test_where_nobody_describes_there_is_an_outline_that_says_so(tmp_path: Path) -> None:
    async with session(tmp_path, Servers(), "omniparser") as found:
        seen = await observe(found, mode="understanding")
        assert seen["note"].startswith("no backend describes pictures (omniparser: it does not offer understand)")
        assert seen["stdout"]


async def test_one_that_is_down_is_stood_in_for_and_comes_back(tmp_path: Path) -> None:
    servers = Servers()
    async with session(tmp_path, servers, "qwen", "kimi") as found:
        servers.down = "/qwen"
        seen = await observe(found)
        assert seen["actual_backend"] == "kimi"
        assert "qwen: " in seen["note"]
        assert "503 (Service Unavailable): under repair" in seen["note"]
        servers.down = "nothing"

        async def again() -> bool:
            return (await observe(found))["actual_backend"] == "qwen"

        await until(again, what="qwen to be asked again")


async def test_one_that_is_not_configured_says_what_to_set(tmp_path: Path) -> None:
    async with session(tmp_path, Servers(), "phi", "kimi") as found:
        seen = await observe(found)
        assert seen["actual_backend"] == "kimi"
        assert "backends.phi.url is not set" in seen["note"]


async def test_switching_sends_the_next_picture_elsewhere(tmp_path: Path) -> None:
    async with session(tmp_path, Servers(), "qwen") as found:
        for backend in ("kimi", "omniparser", "qwen"):
            await found.use_backend(backend)
            assert (await observe(found))["actual_backend"] == backend


async def test_a_key_that_a_server_repeats_is_taken_out(tmp_path: Path) -> None:
    servers = Servers()
    servers.description = f"A window that says {KEY}."
    async with serving(servers.answer) as served:
        table = {"url": f"{served.url}/qwen", "key": "secret:model"}
        async with session(tmp_path, servers, "qwen", qwen=table) as found:
            seen = await observe(found, mode="understanding")
        assert served.asked[0].headers["authorization"] == f"Bearer {KEY}"
    assert seen["stdout"] == "A window that says [redacted]."
    assert KEY not in str(seen)


async def test_while_a_server_is_loading_the_call_says_so(tmp_path: Path) -> None:
    async with serving(Servers().answer) as served:
        port = served.url.rpartition(":")[2]
    command = [sys.executable, "-m", "tests.plugins.vision_omniparser.omni", port, "1.5"]
    table = {"url": f"http://127.0.0.1:{port}", "command": command, "cwd": str(ROOT)}
    async with session(tmp_path, Servers(), "omniparser", omniparser=table) as found:
        events = found.events()
        assert (await observe(found))["actual_backend"] == "omniparser"
        async with events:
            told = [event.message async for event in until_finished(events) if isinstance(event, Progress)]
        assert told[0] == "omniparser starts its server (1 s)"


async def test_ui_tars_carries_out_a_task_and_is_told_what_became_of_each_step(tmp_path: Path) -> None:
    written = tmp_path / "written"
    steps = iter(
        [
            "Thought: the window first\nAction: click(start_box='<|box_start|>(156,187)<|box_end|>')",
            "Thought: now the text\nAction: type(content='abc\\n')",
            "Thought: typed\nAction: finished(content='The word is there.')",
        ]
    )

    async def tars(asked: Asked) -> Answer:
        models.checked(asked)
        return Answer(completion(next(steps)))

    servers = Servers()
    async with serving(tars) as served:
        table = {"url": served.url, "version": "1.0"}
        async with session(tmp_path, servers, "ui_tars", ui_tars=table) as found:
            desktop, screen = await found.desktop(), await found.service("screen")
            with ExitStack() as stack:
                await Programs(stack).open(desktop, screen, sys.executable, PLAIN_WINDOW, str(written))
                done = await found.call("execute_computer_use", {"instruction": "write abc into the window"})
    assert done.ok, done
    assert done["description"] == "The word is there."
    assert [each["function"] for each in done["actions_taken"]] == ["click", "type", "type"]
    assert written.read_text().startswith("abc")
    last = served.bodies[-1]["messages"]
    assert [message["role"] for message in last] == ["user", "assistant", "user", "assistant", "user"]
    assert last[3]["content"].endswith("Action: type(content='abc\\n')")
    assert "carried out" in str(last[-1]["content"])


async def until_finished(events: Any) -> AsyncGenerator[Any, None]:
    async for event in events:
        yield event
        if isinstance(event, Finished):
            return

"""Undo in the console: the list of calls that changed files, and the button, as a page and as requests."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import anyio.to_thread
import pytest

from handrail.desktop.recent_agent_input import AgentInputRecord
from handrail.fs.app_dirs import AppDirs
from handrail.session.open_session import open_configured_runtime
from handrail_console.manual_control import ManualControl

from .opened import Agent, Console, Page, agent, browser

pytestmark = pytest.mark.usefixtures("served")


@pytest.fixture(scope="module")
def writer(served: Console, home: Path) -> Iterator[Agent]:
    with agent(served, home / "writer", "--mode", "accept_edits", asks=False) as running:
        yield running


@pytest.fixture
async def page(served: Console, writer: Agent) -> AsyncIterator[Page]:
    async with browser() as new:
        opened: Page = await new()
        await opened.goto(served.link)
        await opened.wait("document.querySelectorAll('#sessions .pick').length === 1")
        yield opened
        assert [said for said in opened.said if not said.startswith("Failed to load resource")] == []


async def ask(served: Console, path: str, body: Any = None) -> tuple[int, Any]:
    """Return the console's answer to a request."""

    def send() -> tuple[int, Any]:
        given = None if body is None else json.dumps(body).encode()
        headers = {"authorization": f"Bearer {served.token}", "content-type": "application/json"}
        try:
            with urlopen(Request(f"{served.url}{path}", given, headers)) as answer:
                return answer.status, json.loads(answer.read())
        except HTTPError as exc:
            return exc.code, json.loads(exc.read())

    return await anyio.to_thread.run_sync(send)


async def test_a_call_is_undone_by_a_person_in_the_console(page: Page, writer: Agent) -> None:
    (writer.folder / "a.txt").write_text("one\n")
    done = await writer.result(writer.call("write_file", file_path="a.txt", content="two\n", overwrite=True))
    assert done["undo"] == {"kept": True}
    await page.press("#show-undo")
    card = "document.querySelector('#undoable details')"
    await page.wait(f"{card}.textContent.includes('a.txt')")
    await page.js(f"{card}.open = true")
    await page.press("button", card)
    await page.wait(f"{card}.querySelector('pre').textContent.includes('+one')")
    # A single press does nothing.
    await page.press("button.danger", card)
    await page.wait(f"{card}.querySelector('button.danger').textContent.includes('Press again')")
    assert (writer.folder / "a.txt").read_text() == "two\n"
    await page.press("button.danger", card)
    await page.wait("document.querySelector('#undoable').textContent.includes('undone')")
    assert (writer.folder / "a.txt").read_text() == "one\n"


async def test_nothing_is_left_of_the_sessions_that_undo(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    settings = {"mode": "accept_edits", "undo.enabled": True}
    async with open_configured_runtime(settings, cwd=work) as runtime, ManualControl.of(runtime) as hands:
        async with runtime.session(confirm=None) as session:
            await session.call("write_file", {"file_path": "a.txt", "content": "x"})
            call = f"{session.id}/c1"
        assert (await hands.undo(call, force=False, skip_changed=False)).ok
        assert (hands.sessions(), (work / "a.txt").exists()) == (set(), False)


async def test_what_was_changed_since_is_left_or_undone_as_a_person_says(served: Console, writer: Agent) -> None:
    (writer.folder / "b.txt").write_text("one\n")
    call = writer.call("write_file", file_path="b.txt", content="two\n", overwrite=True)
    await writer.result(call)
    (writer.folder / "b.txt").write_text("by hand\n")
    _, plans = await ask(served, "/undo")
    named = plans[0]["call"]
    assert "it was changed since" in plans[0]["paths"][0]["conflict"]
    status, refused = await ask(served, "/undo", {"call": named})
    assert (status, refused["status"]) == (200, "error")
    assert (writer.folder / "b.txt").read_text() == "by hand\n"
    _, done = await ask(served, "/undo", {"call": named, "force": True})
    assert (done["status"], (writer.folder / "b.txt").read_text()) == ("success", "one\n")


async def test_what_an_agents_hands_may_have_pressed_undoes_nothing(served: Console, writer: Agent) -> None:
    (writer.folder / "c.txt").write_text("one\n")
    await writer.result(writer.call("write_file", file_path="c.txt", content="two\n", overwrite=True))
    _, plans = await ask(served, "/undo")
    file = AppDirs.of(served.environment).state / "presses"
    with AgentInputRecord(file).made():
        status, told = await ask(served, "/undo", {"call": plans[0]["call"]})
    file.unlink()
    assert (status, "an agent's hands" in told["error"]) == (409, True)
    assert (writer.folder / "c.txt").read_text() == "two\n"


@pytest.mark.parametrize("body", [{}, {"call": "c1"}, {"call": "x/y", "more": 1}, {"call": "no-session/c1"}])
async def test_a_request_that_is_none_undoes_nothing(served: Console, writer: Agent, body: dict[str, Any]) -> None:
    status, told = await ask(served, "/undo", body)
    assert (status in (400, 404), "error" in told) == (True, True)

"""Who takes a person's answers knows when an agent's hands were at work where the person may be."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

import pytest

from handrail import Desktop, Input, Tool, ToolContext, Write, tool
from handrail.api.approval import yes
from handrail.desktop.recent_agent_input import RECENT_INPUT_S, AgentInputRecord
from handrail.errors import HandrailError
from handrail.testing import open_test_session

SCREEN = Desktop("shared", ":901")


def pressing(seen: list[bool]) -> Tool:
    @tool(effects=[Input("desktop")], exclusive="desktop")
    async def press(*, context: ToolContext) -> None:
        """Press."""
        seen.append(context.session.runtime.presses.recent(now=time.time() + RECENT_INPUT_S))

    return press


@pytest.mark.parametrize(
    ("desktop", "by_hand", "known"),
    [
        pytest.param(SCREEN, False, True, id="an-agent-where-a-person-is"),
        pytest.param(Desktop("private", ":902", private=True), False, False, id="an-agent-by-itself"),
        pytest.param(SCREEN, True, False, id="a-person"),
    ],
)
async def test_agents_hands_are_known_to_be_at_work_where_a_person_is(
    tmp_path: Path, desktop: Desktop, by_hand: bool, known: bool
) -> None:
    seen: list[bool] = []
    async with open_test_session(tools=[pressing(seen)], folder=tmp_path) as session:
        async with session.runtime.session(desktop=desktop, by_hand=by_hand, confirm=yes) as acting:
            result = await acting.call("press")
            assert result["status"] == "success", result
        assert seen == [known]
        assert session.runtime.presses.recent() is known


async def test_what_only_writes_there_is_no_press(tmp_path: Path) -> None:
    @tool(effects=[Write("windows")], exclusive="desktop")
    async def resize() -> None:
        """Resize."""

    async with open_test_session(tools=[resize], folder=tmp_path) as session:
        async with session.runtime.session(desktop=SCREEN, confirm=yes) as acting:
            await acting.call("resize")
        assert not session.runtime.presses.recent()


def test_a_moment_after_the_last_press_a_press_is_a_persons_again(tmp_path: Path) -> None:
    presses = AgentInputRecord(tmp_path / "presses")
    assert not presses.recent()
    with presses.made():
        # However long it takes.
        os.utime(tmp_path / "presses", (0, 0))
        assert presses.recent()
    assert presses.recent()
    assert not presses.recent(now=time.time() + RECENT_INPUT_S)


def test_a_clock_that_was_set_back_keeps_no_persons_press_away(tmp_path: Path) -> None:
    presses = AgentInputRecord(tmp_path / "presses")
    with presses.made():
        pass
    assert not presses.recent(now=time.time() - 3600)


@pytest.mark.parametrize("other", ["link", "folder"])
async def test_what_stands_in_its_place_lets_no_hand_work_and_no_answer_pass(tmp_path: Path, other: str) -> None:
    seen: list[bool] = []
    elsewhere = tmp_path / "elsewhere"
    elsewhere.touch()
    os.utime(elsewhere, (0, 0))
    async with open_test_session(tools=[pressing(seen)], folder=tmp_path) as session:
        file = session.runtime.places.state / "presses"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.symlink_to(elsewhere) if other == "link" else file.mkdir()
        with pytest.raises(HandrailError, match=re.escape(str(file))) as told:
            session.runtime.presses.recent()
        assert told.value.hint == "take it away; Handrail makes it anew"
        async with session.runtime.session(desktop=SCREEN, confirm=yes) as acting:
            result = await acting.call("press")
        assert (result.status, str(file) in result["error"]["message"], seen) == ("error", True, [])
        assert elsewhere.stat().st_mtime == 0


def test_who_takes_the_file_away_meanwhile_breaks_no_call(tmp_path: Path) -> None:
    with AgentInputRecord(tmp_path / "presses").made():
        (tmp_path / "presses").unlink()

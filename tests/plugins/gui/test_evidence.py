"""What an action is said to have done: only what it did; and what keeps it from being done is named."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from handrail import Rect
from handrail_gui.act.targeting import find_visible_part

from .conftest import Agent, until

RESTLESS = str(Path(__file__).with_name("restless_window.py"))
PLAIN = str(Path(__file__).with_name("plain_window.py"))
NOTICE = str(Path(__file__).with_name("notice_window.py"))
SLOW = str(Path(__file__).with_name("slow_window.py"))


async def titled(agent: Agent, title: str) -> bool:
    return title in [window["title"] for window in (await agent("window_list"))["windows"]]


@pytest.fixture
async def restless(agent: Agent, programs: Any) -> Any:
    """A window with an animation in it, beside the one that is worked."""
    programs.start(await agent.session.desktop(), sys.executable, RESTLESS, "always")
    await until(lambda: titled(agent, "restless"), what="the window that does not rest")


async def test_an_animation_is_not_taken_for_the_effect_and_does_not_keep_one_waiting(agent: Agent, restless: Any):
    await agent.open("galculator")
    await agent("window_focus", title="galculator")
    await agent("observe_screen")
    nothing = await agent("execute_gui", action="click", x=40, y=700)
    assert (nothing["effect"], nothing["settled"]) == ("none", True), nothing
    seven = await agent("execute_gui", action="click", element_id=(await agent.element("toggle button", "7"))["id"])
    assert (seven["effect"], seven["settled"]) == ("confirmed", True), seven


async def test_what_another_window_shows_is_not_taken_for_the_effect(agent: Agent, programs: Any, tmp_path: Path):
    desktop = await agent.session.desktop()
    window = await programs.open(
        desktop, await agent.session.service("screen"), sys.executable, PLAIN, str(tmp_path / "typed")
    )
    await agent("resize_window", title=window.id, x=50, y=50, width=300, height=200)
    programs.start(desktop, sys.executable, RESTLESS, "pressed")
    await until(lambda: titled(agent, "restless"), what="the window that watches the mouse")
    await agent("window_focus", title=window.id)
    await agent("observe_screen", image="raw")
    clicked = await agent("execute_gui", action="click", x=150, y=150)
    assert (clicked["effect"], set(clicked["changed"])) == ("unverified", {"region"}), clicked
    assert (await agent("execute_gui", action="click", x=150, y=150))["effect"] == "none"


async def test_a_program_that_is_late_to_show_what_it_did_is_waited_for(agent: Agent, programs: Any):
    screen = await agent.session.service("screen")
    window = await programs.open(await agent.session.desktop(), screen, sys.executable, SLOW)
    await agent("observe_screen", image="raw")
    x, y = window.rect.center
    done = await agent("execute_gui", action="click", x=x, y=y)
    assert (done["effect"], done["settled"]) == ("confirmed", True), done


async def test_a_disabled_element_is_named_and_not_clicked(agent: Agent):
    await agent.open("galculator")
    key = await agent.element("toggle button", "MR")
    assert "disabled" in key["states"]
    error = await agent.fails("execute_gui", action="click", element_id=key["id"])
    assert "disabled" in error["message"]


async def test_what_is_partly_covered_is_clicked_where_it_shows(agent: Agent):
    await agent.open("mousepad")
    await agent("resize_window", x=100, y=100, width=900, height=500)
    field = await agent.element("text")
    await agent.open("galculator")
    await agent("resize_window", title="galculator", x=350, y=200)
    clicked = await agent("execute_gui", action="click", element_id=field["id"])
    windows = {window["title"]: window for window in (await agent("window_list"))["windows"]}
    x, y = clicked["coordinates"]["screen"]
    over = windows["galculator"]
    assert not Rect(over["x"], over["y"], over["width"], over["height"]).contains(x, y)
    assert windows["Untitled 1 - Mousepad"]["active"], clicked


async def test_what_another_programs_notice_covers_is_not_clicked(agent: Agent, programs: Any):
    await agent.open("galculator")
    await agent("resize_window", x=100, y=100, width=400, height=400)
    key = await agent.element("toggle button", "7")
    hands = await agent.session.service("hands")
    programs.start(await agent.session.desktop(), sys.executable, NOTICE, "90", "70", "420", "440")

    async def covered() -> bool:
        return any(surface.rect == Rect(90, 70, 420, 440) for surface in await hands.surfaces())

    await until(covered, what="the notice")
    error = await agent.fails("execute_gui", action="click", element_id=key["id"])
    assert "popup" in error["message"]
    assert "covers" in error["message"]


async def test_what_is_partly_off_the_screen_is_clicked_on_it(agent: Agent):
    await agent.open("mousepad")
    await agent("resize_window", x=900, y=500, width=900, height=600)
    field = await agent.element("text")
    clicked = await agent("execute_gui", action="click", element_id=field["id"])
    x, y = clicked["coordinates"]["screen"]
    assert (x < 1280, y < 800) == (True, True)
    assert clicked["status"] == "success"


async def test_what_is_in_a_window_that_is_put_away_is_not_clicked_in_the_one_that_shows_there(agent: Agent):
    await agent.open("galculator")
    seven = await agent.element("toggle button", "7")
    await agent.open("mousepad")
    await agent("maximize_active_window")
    await agent("resize_window", title="galculator", layout="minimize")
    refused = await agent.fails("execute_gui", action="click", element_id=seven["id"])
    assert "which is minimized" in refused["message"]
    pressed = await agent("execute_accessible", action="click", element_id=seven["id"])
    assert pressed["effect"] == "confirmed"


async def test_what_is_off_the_screen_altogether_is_said_to_be(agent: Agent):
    await agent.open("galculator")
    key = await agent.element("toggle button", "=")
    await agent("resize_window", x=1200, y=300)
    error = await agent.fails("execute_gui", action="click", element_id=key["id"])
    assert (error["code"], "off the screen" in error["message"]) == ("out_of_range", True), error


async def test_a_stale_id_is_refused_with_what_looks_like_it(agent: Agent, programs: Any):
    first = await agent.open("galculator")
    key = await agent.element("toggle button", "7")
    assert first.pid is not None
    os.kill(first.pid, signal.SIGKILL)

    async def gone() -> bool:
        return not await titled(agent, "galculator")

    await until(gone, what="the end of the first run")
    await agent.open("galculator")
    error = await agent.fails("execute_gui", action="click", element_id=key["id"])
    assert error["code"] == "stale_element"
    (candidate,) = error["details"]["candidates"]
    assert (candidate["role"], candidate["text"]) == ("toggle button", "7")
    clicked = await agent("execute_gui", action="click", element_id=candidate["id"])
    assert clicked["effect"] == "confirmed"
    assert (await agent.element("text"))["value"] == "7"


async def test_a_dialog_that_comes_up_is_told_with_its_buttons(agent: Agent):
    await agent.open("mousepad")
    await agent("execute_gui", action="type", text="unsaved")
    closed = await agent("execute_gui", action="hotkey", key="ctrl+q")
    assert "save" in closed["dialog"]["says"].casefold(), closed
    buttons = {button["text"]: button["id"] for button in closed["dialog"]["buttons"]}
    assert "Cancel" in buttons
    answered = await agent("execute_gui", action="click", element_id=buttons["Cancel"])
    assert answered["changed"]["windows_closed"], answered


async def test_a_list_that_was_cut_can_be_gone_on_with(agent: Agent):
    await agent.open("galculator")
    whole = await agent("observe_screen", image="none")
    parts: list[str] = []
    seen = await agent("observe_screen", image="none", max_elements=10)
    while True:
        parts += [element["id"] for element in seen["ui_elements"]]
        if not seen["truncated"]:
            break
        assert f'after="{parts[-1]}"' in seen["stdout"]
        seen = await agent("observe_screen", image="none", max_elements=10, after=parts[-1])
    assert parts == [element["id"] for element in whole["ui_elements"]]
    rest = await agent("get_ui_context", after=parts[-3])
    assert [element["id"] for element in rest["elements"]] == parts[-2:]
    assert (await agent.fails("observe_screen", after="e987654"))["code"] == "stale_element"


async def test_what_changed_is_told_in_few_words(agent: Agent):
    await agent.open("mousepad")
    first = await agent("observe_screen", image="none")
    await agent("execute_gui", action="type", text="some words")
    typed = await agent("observe_screen", since=first["observation_id"])
    assert "some words" in typed["stdout"]
    assert len(typed["stdout"]) <= 200
    await agent("execute_gui", action="hotkey", key="ctrl+q")
    asked = await agent("observe_screen", since=typed["observation_id"])
    assert 'window "Save Changes" opened' in asked["stdout"], asked["stdout"]
    assert len(asked["stdout"]) <= 400


@pytest.mark.parametrize(
    ("covers", "left"),
    [
        pytest.param([], Rect(0, 0, 100, 50), id="free"),
        pytest.param([Rect(0, 0, 60, 50)], Rect(60, 0, 40, 50), id="left-half"),
        pytest.param([Rect(40, 20, 20, 10)], Rect(0, 0, 100, 20), id="a-hole"),
        pytest.param([Rect(0, 0, 99, 50)], None, id="too-little"),
        pytest.param([Rect(-5, -5, 60, 90), Rect(50, -5, 90, 90)], None, id="two-together"),
    ],
)
def test_the_largest_part_that_shows_is_aimed_at(covers: list[Rect], left: Rect | None):
    assert find_visible_part([Rect(0, 0, 100, 50)], covers) == left

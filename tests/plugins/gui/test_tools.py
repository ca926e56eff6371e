"""The tools, through the whole path, on real programs."""

from __future__ import annotations

import base64
import os
import random
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from time import monotonic
from typing import Any

import anyio
import pytest

import handrail
from handrail.api.approval import yes

from .conftest import EVERY_PLANE, PLAIN_WINDOW, TEXT, Agent, held_down, until

LONG = (EVERY_PLANE * 1_000)[:10_000]


def pixels(image_b64: str) -> Any:
    import numpy as np

    from handrail_gui.platforms.opencv import cv2

    return cv2.imdecode(np.frombuffer(base64.b64decode(image_b64), np.uint8), cv2.IMREAD_COLOR)


def middle(element: dict[str, Any]) -> tuple[int, int]:
    x1, y1, x2, y2 = element["bbox"]
    return (x1 + x2) // 2, (y1 + y2) // 2


async def saved(agent: Agent) -> str:
    """The editor's text as the tree tells it."""
    service = await agent.session.service("accessibility")
    return await service.read_text(await service.focused())


async def test_an_observation_names_what_a_person_would(agent: Agent):
    await agent.open("galculator")
    seen = await agent("observe_screen")
    assert seen["actual_backend"] == "accessibility"
    assert seen["observation_id"].startswith("o")
    assert seen["scale"] == 1.0
    assert pixels(seen["image_b64"]).shape == (800, 1280, 3)
    seven = next(e for e in seen["ui_elements"] if e["text"] == "7")
    first = next(e for e in seen["ui_elements"] if e["role"] == seven["role"])
    assert f'{first["id"]} {first["role"]} "{first["text"]}", ' in seen["stdout"]
    assert f'; {seven["id"]} "7", ' in seen["stdout"]
    assert len(seen["stdout"]) <= 600


async def test_pictures_come_only_when_asked_for(agent: Agent):
    await agent.open("galculator")
    assert "image_b64" not in await agent("observe_screen", image="none")
    both = await agent("observe_screen", image="both")
    assert (pixels(both["image_b64"]) != pixels(both["raw_image_b64"])).any()

    async def raw_is_the_same() -> bool:
        raw, again = await agent("observe_screen", image="raw"), await agent("observe_screen", image="both")
        return raw["image_b64"] == again["raw_image_b64"]

    # A program that has just started may still be drawing.
    await until(raw_is_the_same, what="a screen that stays as it is")


async def test_since_gives_only_what_changed(agent: Agent):
    await agent.open("galculator")
    first = await agent("observe_screen")
    await agent("execute_gui", action="click", element_id=(await agent.element("toggle button", "7"))["id"])
    second = await agent("observe_screen", since=first["observation_id"])
    assert "image_b64" not in second
    assert 0 < len(second["ui_elements"]) <= 4
    assert len(second["stdout"]) <= 200
    assert second["changed"]["changed"]
    assert second["changed"]["added"] == []
    third = await agent("observe_screen", since=second["observation_id"])
    assert (third["stdout"], third["ui_elements"]) == ("nothing changed", [])


async def test_what_a_look_left_out_is_not_said_to_be_gone(agent: Agent):
    await agent.open("galculator")
    first = await agent("observe_screen")
    few = await agent("observe_screen", since=first["observation_id"], max_elements=3)
    part = await agent("observe_screen", since=first["observation_id"], region=[0, 0, 40, 40])
    rest = await agent("observe_screen", since=first["observation_id"], after=first["ui_elements"][4]["id"])
    assert [seen["changed"]["removed"] for seen in (few, part, rest)] == [[], [], []]
    assert few["truncated"]


async def test_regions_and_windows_have_their_own_pixels(agent: Agent):
    window = await agent.open("galculator")
    seen = await agent("observe_screen", window="galc")
    assert pixels(seen["image_b64"]).shape[:2] == (window.rect.height, window.rect.width)
    seven = next(e for e in seen["ui_elements"] if e["text"] == "7")
    x, y = middle(seven)
    clicked = await agent("execute_gui", action="click", x=x, y=y)
    assert clicked["coordinates"]["screen"] == [window.rect.x + x, window.rect.y + y]
    assert clicked["effect"] == "confirmed"
    region = await agent("observe_screen", region=[0, 0, 100, 50])
    assert pixels(region["image_b64"]).shape[:2] == (50, 100)


async def test_a_click_by_coordinates_and_one_by_id_reach_the_same_key(agent: Agent):
    await agent.open("galculator")
    seen = await agent("observe_screen")
    seven = next(e for e in seen["ui_elements"] if e["text"] == "7")
    x, y = middle(seven)
    by_point = await agent("execute_gui", action="click", x=x, y=y, observation_id=seen["observation_id"])
    by_id = await agent("execute_gui", action="click", element_id=seven["id"])
    for result in (by_point, by_id):
        assert (result["effect"], result["route"], result["settled"]) == ("confirmed", "pointer", True)
    display = await agent.element("text")
    assert display["value"] == "77"


async def test_a_large_screen_is_halved_and_clicked_exactly(tmp_path: Path, programs: Any):
    async with handrail.open(desktop="current", environment={**os.environ}, cwd=tmp_path) as session:
        desktops = await session.runtime.service("desktops", session=None, desktop=None)
        large = await desktops.start("large", width=2560, height=1440)
        async with handrail.open(
            desktop="current", environment={**os.environ, **large.environment}, cwd=tmp_path
        ) as work:
            work.confirmer = yes
            agent = Agent(work, programs)
            await agent.open("galculator")
            seen = await agent("observe_screen")
            assert seen["scale"] == 2.0
            assert pixels(seen["image_b64"]).shape == (720, 1280, 3)
            eight = next(e for e in seen["ui_elements"] if e["text"] == "8")
            x, y = middle(eight)
            clicked = await agent("execute_gui", action="click", x=x, y=y)
            assert clicked["coordinates"]["screen"] == [2 * x + 1, 2 * y + 1]
            assert (await agent.element("text"))["value"] == "8"
            outside = await agent.fails("execute_gui", action="click", x=1280, y=10)
            assert outside["code"] == "out_of_range"


@pytest.mark.parametrize(
    "text", [TEXT, "two\nlines\tand a tab", LONG], ids=["scripts", "controls", "ten-thousand-of-every-plane"]
)
async def test_text_is_typed_and_read_back(agent: Agent, text: str):
    await agent.open("mousepad")
    typed = await agent("execute_gui", action="type", text=text)
    assert (typed["effect"], typed["route"]) == ("confirmed", "accessibility")
    assert await saved(agent) == text


async def test_text_in_the_middle_of_the_same_is_confirmed(agent: Agent):
    await agent.open("mousepad")
    await agent("execute_gui", action="type", text="ab ab")
    for key in ("home", "right"):
        await agent("execute_gui", action="press_key", key=key)
    typed = await agent("execute_gui", action="type", text="ab ab")
    assert typed["effect"] == "confirmed", typed
    assert (await agent.element("text"))["value"] == "aab abb ab"


async def test_text_goes_into_the_element_that_is_named(agent: Agent):
    await agent.open("mousepad")
    field = await agent.element("text")
    typed = await agent("execute_gui", action="type", text="here", element_id=field["id"])
    assert typed["effect"] == "confirmed"
    assert field["id"] in typed["target"]


async def test_without_a_tree_text_goes_by_keys_and_is_not_verified(agent: Agent, programs: Any, tmp_path: Path):
    out = tmp_path / "typed"
    screen = await agent.session.service("screen")
    await programs.open(await agent.session.desktop(), screen, sys.executable, PLAIN_WINDOW, str(out))
    typed = await agent("execute_gui", action="type", text=TEXT + EVERY_PLANE)
    assert (typed["effect"], typed["route"]) == ("unverified", "keys")
    assert out.read_text() == TEXT + EVERY_PLANE


PAGE = """<!doctype html><title>Form</title><textarea aria-label="Name"></textarea><input type=password aria-label="Secret">"""


async def test_a_browser_is_pasted_into_and_its_passwords_are_covered(agent: Agent, tmp_path: Path):
    (tmp_path / "form.html").write_text(PAGE)
    flags = ["--no-sandbox", "--force-renderer-accessibility", "--no-first-run"]
    await agent.open("chromium", *flags, str(tmp_path / "form.html"))
    before = await agent("clipboard_write", text="kept")
    assert before["written"]
    typed = await agent("execute_gui", action="type", text=LONG, element_id=(await agent.element("text", "Name"))["id"])
    assert (typed["effect"], typed["route"]) == ("confirmed", "clipboard")
    assert (await agent("clipboard_read"))["content"] == "kept"
    secret = await agent.element("password", "Secret")
    typed = await agent("execute_gui", action="type", text="hunter2", element_id=secret["id"])
    assert typed["effect"] == "unverified"
    seen = await agent("observe_screen", image="raw")
    x, y = middle(next(e for e in seen["ui_elements"] if e["role"] == "password"))
    assert "hunter2" not in str({**seen, "image_b64": ""})
    assert abs(pixels(seen["image_b64"])[y, x - 60 : x + 60].astype(int) - 90).max() < 12


async def test_understanding_without_a_model_is_an_outline_and_says_so(agent: Agent):
    await agent.open("galculator")
    seen = await agent("observe_screen", mode="understanding", image="none")
    assert "accessibility: it does not offer understand" in seen["note"]
    assert '"7"' in seen["stdout"]


async def test_nothing_is_clicked_in_a_window_that_moved(agent: Agent):
    await agent.open("galculator")
    seen = await agent("observe_screen")
    x, y = middle(next(e for e in seen["ui_elements"] if e["text"] == "7"))
    await agent("resize_window", x=10, y=40)
    error = await agent.fails("execute_gui", action="click", x=x, y=y)
    assert error["code"] == "stale_observation"
    assert "galculator" in error["message"]
    assert "moved" in error["message"]


async def test_nothing_is_clicked_in_a_window_that_is_covered_or_closed(agent: Agent):
    calculator = await agent.open("galculator")
    seen = await agent("observe_screen")
    key = next(e for e in seen["ui_elements"] if e["text"] == "7")
    x, y = middle(key)
    await agent.open("mousepad")
    await agent("resize_window", x=0, y=40, width=1200, height=700)
    covered = await agent.fails("execute_gui", action="click", x=x, y=y, observation_id=seen["observation_id"])
    assert covered["code"] == "stale_observation"
    assert "now covers that point" in covered["message"]
    by_id = await agent.fails("execute_gui", action="click", element_id=key["id"])
    assert by_id["code"] == "stale_observation"
    assert calculator.pid is not None
    os.kill(calculator.pid, 9)
    await until(lambda: _count(agent, 1), what="the end of the calculator")
    closed = await agent.fails("execute_gui", action="click", x=x, y=y, observation_id=seen["observation_id"])
    assert "closed" in closed["message"]
    gone = await agent.fails("execute_gui", action="click", element_id=key["id"])
    assert gone["code"] == "stale_element"


async def _count(agent: Agent, number: int) -> bool:
    return len((await agent("window_list"))["windows"]) == number


async def test_a_point_needs_an_observation_and_lies_in_it(agent: Agent):
    error = await agent.fails("execute_gui", action="click", x=5, y=5)
    assert error["code"] == "stale_observation"
    assert "observe_screen" in error["message"]
    await agent.open("galculator")
    await agent("observe_screen")
    assert (await agent.fails("execute_gui", action="click", x=1280, y=5))["code"] == "out_of_range"


@pytest.mark.parametrize(
    "args",
    [
        {"action": "click"},
        {"action": "click", "x": 5},
        {"action": "type"},
        {"action": "scroll"},
        {"action": "hotkey"},
        {"action": "press_key", "key": "f99"},
        {"action": "click", "x": 1, "y": 1, "element_id": "e1"},
        {"action": "wiggle"},
    ],
    ids=str,
)
async def test_half_a_call_is_refused(agent: Agent, args: dict[str, Any]):
    assert (await agent.fails("execute_gui", **args))["code"] == "invalid_arguments"


async def test_blocked_keys_are_not_pressed(agent: Agent):
    error = await agent.fails("execute_gui", action="hotkey", key="control+ALT+Del")
    assert error["code"] == "denied_by_policy"


async def test_what_changes_nothing_is_said_to(agent: Agent):
    await agent.open("galculator")
    await agent("observe_screen")
    clicked = await agent("execute_gui", action="click", x=40, y=700)
    assert (clicked["effect"], clicked["settled"], clicked["changed"]) == ("none", True, {})
    pressed = await agent("execute_gui", action="press_key", key="f12")
    assert pressed["effect"] == "unverified"


async def test_a_menu_that_opens_is_reported(agent: Agent):
    await agent.open("mousepad")
    opened = await agent("execute_gui", action="click", element_id=(await agent.element("menu", "File"))["id"])
    assert opened["effect"] == "confirmed"
    item = await agent.element("menu item", "Save As")
    dialog = await agent("execute_gui", action="click", element_id=item["id"])
    assert dialog["changed"]["windows_opened"] == ["Save As"]
    assert dialog["changed"]["active_window"] == "Save As"


async def test_waiting_for_quiet_can_be_left_out(agent: Agent):
    await agent.open("galculator")
    result = await agent("execute_gui", action="press_key", key="7", settle=False)
    assert (result["effect"], result["settled"]) == ("unverified", None)
    assert "changed" not in result


def flicker(name: str, over: threading.Event) -> None:
    """Change the screen many times a second until it is over."""
    from Xlib import display

    screen = display.Display(name)
    root = screen.screen().root
    while not over.wait(0.005):
        root.change_attributes(background_pixel=random.getrandbits(24))
        root.clear_area()
        screen.sync()
    screen.close()


async def test_what_never_rests_is_said_not_to_have(agent: Agent):
    await agent.open("galculator")
    await agent("observe_screen")
    desktop = await agent.session.desktop()
    over = threading.Event()
    changing = threading.Thread(target=flicker, args=(desktop.display, over))
    changing.start()
    try:
        await until(lambda: _unquiet(agent), what="a screen that changes")
        began = monotonic()
        result = await agent("execute_gui", action="press_key", key="7")
    finally:
        over.set()
        await anyio.to_thread.run_sync(changing.join)
    assert result["settled"] is False
    assert monotonic() - began < 60


async def _unquiet(agent: Agent) -> bool:
    screen = await agent.session.service("screen")
    one = await screen.capture()
    await anyio.sleep(0.05)
    return bool((one.pixels != (await screen.capture()).pixels).any())


async def test_maximizing_twice_is_the_same_as_once(agent: Agent):
    await agent.open("mousepad")
    assert (await agent("maximize_active_window"))["was_maximized"] is False
    assert (await agent("maximize_active_window"))["was_maximized"] is True
    (window,) = (await agent("window_list"))["windows"]
    assert (window["state"], window["width"]) == ("maximized", 1280)


async def test_a_window_is_focused_by_a_part_of_its_title(agent: Agent):
    await agent.open("galculator")
    await agent.open("mousepad")
    assert (await agent("window_focus", title="GALC"))["title"] == "galculator"
    assert (await agent("window_list"))["windows"][0]["active"] is True
    ambiguous = await agent.fails("window_focus", title="a")
    assert ambiguous["code"] == "ambiguous_element"
    titles = [candidate["title"] for candidate in ambiguous["details"]["candidates"]]
    assert sorted(titles) == ["Untitled 1 - Mousepad", "galculator"]
    missing = await agent.fails("window_focus", title="no such window")
    assert missing["code"] == "not_found"


async def test_a_window_is_resized_and_its_bounds_read_back(agent: Agent):
    await agent.open("mousepad")
    result = await agent("resize_window", width=500, height=400, x=100, y=150)
    assert result["resized"] is True
    assert result["bounds"] == {"x": 100, "y": 150, "width": 500, "height": 400}
    small = await agent("resize_window", width=10, height=10)
    assert small["resized"] is False
    assert small["bounds"]["width"] > 10
    half = await agent("resize_window", layout="right_half")
    assert half["bounds"]["x"] >= 640
    assert (await agent.fails("resize_window"))["code"] == "invalid_arguments"


async def test_the_clipboard_holds_what_was_written(agent: Agent):
    assert await agent("clipboard_write", text=TEXT) | {"duration_ms": 0} == {
        "status": "success",
        "written": True,
        "length": len(TEXT),
        "duration_ms": 0,
    }
    read = await agent("clipboard_read")
    assert read["content"] == TEXT
    assert "UTF8_STRING" in read["formats"]
    environment = {**os.environ, **(await agent.session.desktop()).environment}
    pasted = await anyio.run_process(["xclip", "-selection", "clipboard", "-o"], env=environment)
    assert pasted.stdout.decode() == TEXT


async def test_a_button_that_a_session_holds_is_let_go_at_its_end(private: Any, tmp_path: Path):
    environment = {**os.environ, **private.desktop.environment}
    await anyio.run_process(["xdotool", "mousemove", "300", "300"], env=environment)
    async with handrail.open(desktop="current", environment=environment, cwd=tmp_path) as lasting:
        # The desktop's hands stay, since somebody else uses them.
        assert (await lasting.call("window_list")).ok
        async with lasting.runtime.session(desktop="current", cwd=tmp_path, confirm=yes) as session:
            await session.call("observe_screen", {})
            held = await session.call("execute_gui", {"action": "mouse_down", "x": 300, "y": 300})
            assert held.ok, held
            assert held_down(private.desktop)
        assert not held_down(private.desktop)


def _types(environment: Mapping[str, str], letter: str) -> bool:
    """Whether another program sees a key for the letter, which no keyboard has."""
    from Xlib import display

    seen = display.Display(environment["DISPLAY"])
    # https://www.x.org/releases/current/doc/xproto/x11protocol.html#Keysym_Encoding
    code = seen.keysym_to_keycode(0x1000000 + ord(letter))
    seen.close()
    return code != 0


async def test_cancelling_stops_typing_at_once_and_lets_go(agent: Agent):
    await agent.open("galculator")
    text = "漢字" * 5000
    async with anyio.create_task_group() as group:
        results: list[Any] = []

        async def type_on() -> None:
            results.append(await agent.session.call("execute_gui", {"action": "type", "text": text}))

        group.start_soon(type_on)
        desktop = await agent.session.desktop()
        await until(lambda: anyio.to_thread.run_sync(_types, desktop.environment, "漢"), what="a key of the text")
        # The whole text would take minutes.
        with anyio.fail_after(30):
            agent.session.cancel()
            while not results:
                await anyio.sleep(0.01)
    assert results[0].status == "cancelled"
    assert not _types(desktop.environment, "漢")


async def test_there_is_no_screen_where_there_is_none(tmp_path: Path):
    bare = {name: value for name, value in os.environ.items() if name != "DISPLAY"}
    async with handrail.open(desktop="current", environment=bare, cwd=tmp_path) as session:
        result = await session.call("window_list")
        assert result.error_code == "tool_unavailable"
        assert "private" in result["error"]["message"]


async def test_a_long_clipboard_is_kept_as_an_artifact(agent: Agent):
    whole = "ü" * 2_000_000
    await agent("clipboard_write", text=whole)
    read = await agent("clipboard_read")
    assert read["truncated"]
    assert read["content"] == "ü" * 25_600
    assert Path(read["artifact"]["path"]).read_text(encoding="utf-8") == whole


@pytest.fixture
async def boastful(agent: Agent) -> str:
    """The title of a window that is long and has hidden letters in it."""
    title = "\u202eevil\x1b[31m\U000e0041 " + "x" * 100_000
    (await agent.session.desktop())
    window = await agent.open("galculator")
    environment = {**os.environ, **(await agent.session.desktop()).environment}
    rename = f'xdotool set_window --name "$TITLE" {int(window.id, 16)}'
    await anyio.run_process(["bash", "-c", rename], env={**environment, "TITLE": title})
    return title


async def test_titles_are_told_short_and_with_nothing_hidden(agent: Agent, boastful: str):
    async def listed() -> str | None:
        return next((w["title"] for w in (await agent("window_list"))["windows"] if "evil" in w["title"]), None)

    title = await until(listed, what="the new title")
    assert title.startswith("\\u202eevil\\x1b[31m\\U000e0041 xxx")
    assert len(title) == 201
    assert (await agent("window_focus", title=title))["title"] == title
    for wrong in (
        await agent.fails("window_focus", title="no such window"),
        await agent.fails("window_focus", title="y" * 9_000),
    ):
        assert len(str(wrong)) < 2_000
        assert [candidate["title"] for candidate in wrong["details"]["candidates"]] == [title]


@pytest.mark.parametrize("text", ["a\0b", "a\x1bb", "a\ud800b"])
async def test_what_nobody_can_type_is_refused(agent: Agent, text: str):
    await agent.open("mousepad")
    refused = await agent.fails("execute_gui", action="type", text=text)
    assert refused["code"] == "invalid_arguments"
    assert await saved(agent) == ""


async def test_a_window_is_asked_to_close_and_may_ask_back(agent: Agent) -> None:
    await agent.session.load_tools(["window_close"], source="tests")
    window = await agent.open("mousepad")
    assert (await agent("window_close", title=window.id))["closed"] is True
    window = await agent.open("mousepad")
    await agent("execute_gui", action="type", text="x")
    assert (await agent("window_close", title=window.id))["closed"] is False
    assert len((await agent("window_list"))["windows"]) == 2

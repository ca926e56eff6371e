"""Whole tasks on a private desktop with real programs, as a model would do them: what it says comes from the server of the tests."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.gemini_server import Answer, Request, Scripted, call, serving
from tests.plugins.browser.site import Answer as Page, Asked, Site, serving as serving_site
from tests.plugins.gemini_cu.desk import DEADLINE_S, DONE, Desk, desk, shows

from handrail.api.approval import yes
from handrail.testing import ScriptedConfirmer
from handrail_gui.platforms.input_driver import WindowPlacement

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(180)]


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


async def test_a_calculator_multiplies(tmp_path: Path, stack: ExitStack) -> None:
    with serving() as gemini:
        async with desk(gemini, tmp_path, stack) as given:
            await given.start("galculator")
            keys = [("toggle button", key) for key in ("7", "*", "6")]
            gemini.answers += [given.clicks(*keys), given.clicks(("toggle button", "="), function="click_at"), DONE]
            result = await given.use("multiply 7 by 6")
            assert result.ok, result
            await given.until(shows("42"))
            recorded = await given.session.call("get_action_history")
    assert [(t["function"], t["result"]["status"]) for t in result["actions_taken"]] == [
        *(("click", "success"),) * 3,
        ("click_at", "success"),
    ]
    assert all(told["url"] == "" and "error" not in told for told in gemini.requests[1].told)
    assert len(gemini.requests[1].pictures) == 3
    assert [action["tool"] for action in recorded["actions"]] == ["execute_computer_use"]


async def test_an_editor_is_written_in_and_its_dialog_answered_after_a_yes(tmp_path: Path, stack: ExitStack) -> None:
    person = ScriptedConfirmer("once")
    decision = {"decision": "require_confirmation", "explanation": "It throws the text away."}

    def throws_away(desk: Desk) -> Scripted:
        return lambda request: [call("click", **desk.place("button", "Don't Save"), safety_decision=decision)]

    with serving() as gemini:
        async with desk(gemini, tmp_path, stack, confirm=person) as given:
            editor = await given.start("mousepad", "--disable-server")
            gemini.answers += [
                [call("type", text="Grüße, 漢字", press_enter=True), call("hotkey", keys=["Control", "a"])],
                [call("press_key", key="alt+F4")],
                [call("hotkey", keys=["Control", "q"])],
                throws_away(given),
                DONE,
            ]
            result = await given.use("write a greeting, then close the editor without saving")
            assert result.ok, result
            with anyio.fail_after(DEADLINE_S):
                while editor.poll() is None:
                    await anyio.sleep(0.02)
    blocked = gemini.requests[2].told[0]
    assert blocked["code"] == "denied_by_policy"
    assert gemini.requests[4].told[0]["safety_acknowledgement"] == "true"
    assert [question.verdict.reasons[-1].text for question in person.asked] == [
        "the model's safety check asks: It throws the text away."
    ]
    assert [taken["result"]["status"] for taken in result["actions_taken"]] == [
        *("success",) * 3,
        "denied",
        "success",
        "success",
    ]


async def test_text_is_cleared_in_text_fields_and_nowhere_else(tmp_path: Path, stack: ExitStack) -> None:
    """Delete clears the calculator, whose display is no field."""

    def writes(desk: Desk, role: str, text: str) -> Scripted:
        return lambda request: [call("type_text_at", **desk.place(role, ""), text=text, press_enter=False)]

    with serving() as gemini:
        async with desk(gemini, tmp_path, stack) as given:
            await given.start("galculator")
            gemini.answers += [
                [call("press_key", key="8")],
                writes(given, "text", ""),
                writes(given, "text", "9"),
                DONE,
            ]
            assert (await given.use("empty the display")).ok
            await given.until(shows("8"))
            await given.start("mousepad", "--disable-server")
            await given.until(shows(""))
            gemini.answers += [[call("type", text="old words")], writes(given, "text", "new"), DONE]
            assert (await given.use("replace the text")).ok
            await given.until(shows("new"))
    assert ["text field" in request.told[0].get("error", "") for request in gemini.requests[2:4]] == [True, True]


async def test_places_in_a_window_that_has_moved_since_are_refused_and_told(tmp_path: Path, stack: ExitStack) -> None:
    with serving() as gemini:
        async with desk(gemini, tmp_path, stack) as given:
            await given.start("galculator")

            async def moved() -> None:
                hands: Any = await given.session.service("hands")
                screen: Any = await given.session.service("screen")
                (window,) = await screen.windows()
                await hands.place(window.id, WindowPlacement(x=20, y=60))

            def late(request: Request) -> Answer:
                place = given.place("toggle button", "7")
                asyncio.run_coroutine_threadsafe(moved(), loop).result(DEADLINE_S)
                return [call("click", x=place["x"], y=place["y"])]

            loop = asyncio.get_running_loop()
            gemini.answers += [late, given.clicks(("toggle button", "7")), DONE]
            result = await given.use("press 7")
            assert result.ok, result
            await given.until(shows("7"))
    assert gemini.requests[1].told[0]["code"] == "stale_observation"


LINK = "<!doctype html><title>First</title><a href=/form style='position:fixed;inset:0;background:#fee'>On</a>"
FORM = "<!doctype html><title>Second</title><body style='background:#efe'><form action=/sent><input name=said autofocus></form>"
WINDOW = """
network.allow_private = ["127.0.0.1"]
[plugins.browser]
headless = false
window = [1280, 800]
"""


async def test_pages_are_worked_on_the_desktop_and_each_answer_says_where_the_browser_is(
    tmp_path: Path, stack: ExitStack
) -> None:
    said: list[str] = []

    def sent(asked: Asked) -> Page:
        said.append(asked.query["said"])
        return Page("<!doctype html><title>Third</title><body style='background:#eef'>Thank you")

    loop = asyncio.get_running_loop()

    def once_opened(request: Request) -> Answer:
        async def opened() -> None:
            pages: Any = await working.session.service("browser")
            with anyio.fail_after(DEADLINE_S):
                while await pages.address() != site.url("/more"):
                    await anyio.sleep(0.05)

        asyncio.run_coroutine_threadsafe(opened(), loop).result(DEADLINE_S + 5)
        return [call("take_screenshot")]

    apart = LINK.replace("href=/form", "href=/more target=_blank")
    more = "<!doctype html><title>More</title><body style='background:#ffe'>More"
    site = Site(pages={"/": LINK, "/form": FORM, "/sent": sent, "/last": apart, "/more": more})
    with serving_site(site), serving() as gemini:
        (config := tmp_path / "given.toml").write_text(WINDOW)
        async with desk(gemini, tmp_path, stack, kind="browser", config=config, confirm=yes) as working:
            gemini.answers += [
                [call("open_web_browser")],
                [call("navigate", url=site.url("/"))],
                [call("click", x=500, y=500)],
                [call("type", text="Grüße", press_enter=True)],
                [call("go_back"), call("take_screenshot")],
                [call("navigate", url=site.url("/last"))],
                [call("click", x=500, y=500)],
                once_opened,
                DONE,
            ]
            result = await working.use("follow the link and send a greeting")
    assert result.ok, result
    assert {taken["result"]["status"] for taken in result["actions_taken"]} == {"success"}
    assert said == ["Grüße"]
    told = [[each["url"] for each in request.told] for request in gemini.requests[1:]]
    # A tab that a click opened is followed.
    assert told.pop() == [site.url("/more")]
    assert told.pop()[0] in (site.url("/last"), site.url("/more"))
    assert told == [
        ["about:blank"],
        [site.url("/")],
        [site.url("/form")],
        [site.url("/sent?said=Gr%C3%BC%C3%9Fe")],
        [site.url("/form")] * 2,
        [site.url("/last")],
    ]
    newest = [request.pictures[-1] for request in gemini.requests[1:]]
    assert len(set(newest[:4])) == 4


async def test_a_phones_functions_reach_the_programs_and_windows_of_the_desktop(
    tmp_path: Path, stack: ExitStack
) -> None:
    with serving() as gemini:
        async with desk(gemini, tmp_path, stack, kind="mobile", confirm=yes) as given:
            gemini.answers += [
                [call("open_app", app_name="galculator")],
                [call("list_apps")],
                given.clicks(("toggle button", "7")),
                given.clicks(("toggle button", "8"), function="long_press"),
                [call("open_app", app_name="no-such-app")],
                [call("go_back")],
                DONE,
            ]
            result = await given.use("press 7 and hold 8")
            assert result.ok, result
    told = [request.told[0] for request in gemini.requests[1:]]
    assert "alculator" in str(told[1])
    assert "no-such-app" in told[4]["error"]
    failed = [taken["function"] for taken in result["actions_taken"] if taken["result"]["status"] != "success"]
    assert failed == ["open_app"]

"""A person's own desktop, where an agent works in another window: the focus and the pointer are back after each of its actions."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from Xlib import X, display

import handrail
from handrail import Window
from handrail.api.approval import yes
from handrail_gui.act.focus_restore import CompletedAction, FocusRestorer
from handrail_gui.platforms.input_driver import WindowPlacement
from handrail_gui.platforms.x11.connection import X11Connection
from handrail_gui.platforms.x11.input_driver import X11InputDriver
from handrail_gui.platforms.x11.pointer import XTestPointer
from handrail_gui.platforms.x11.screen import X11Screen
from handrail_gui.platforms.x11.user_activity import UserActivity as Watched
from handrail_gui.private.supervisor_client import PrivateDesktop

from .conftest import PLAIN_WINDOW, Agent, Programs, outside, until
from .devices import Person

# Where the person's pointer is, in the editor.
AT = (200, 300)


@pytest.fixture(scope="module")
def private(managed: PrivateDesktop) -> PrivateDesktop:
    return managed


@dataclass(frozen=True, slots=True)
class Scene:
    """A person at an editor, and a calculator beside it."""

    desktop: PrivateDesktop
    hands: X11InputDriver
    programs: Programs
    editor: Window
    calculator: Window

    @asynccontextmanager
    async def agent(self, folder: Path, settings: str = "") -> AsyncGenerator[Agent]:
        """An agent on this desktop, which it is told is the person's own."""
        config = folder / "handrail.toml"
        config.write_text(f"[plugins.gui]\npause = 0.2\n{settings}")
        environment = {**os.environ, **self.desktop.desktop.environment}
        async with handrail.open(
            desktop="current", environment=environment, config=config, cwd=folder, confirm=yes
        ) as session:
            yield Agent(session, self.programs)

    async def begin(self) -> None:
        """The person is in the editor, with both hands."""
        assert await self.hands.activate(self.editor.id)
        await self.hands.move(*AT)

    def told(self) -> tuple[int, tuple[int, int]]:
        """The active window and the place of the pointer, as other programs tell them."""
        active = outside(self.desktop, "xprop", "-root", "_NET_ACTIVE_WINDOW").split("# ")[-1].split(",")[0].strip()
        words = dict(
            part.split(":") for part in outside(self.desktop, "xdotool", "getmouselocation").split() if ":" in part
        )
        return int(active, 16), (int(words["x"]), int(words["y"]))

    @property
    def as_before(self) -> tuple[int, tuple[int, int]]:
        return int(self.editor.id, 16), AT


@pytest.fixture
async def scene(
    manager: str, private: PrivateDesktop, hands: X11InputDriver, screen: X11Screen, programs: Programs
) -> Scene:
    calculator = await programs.open(private.desktop, screen, "galculator")
    editor = await programs.open(private.desktop, screen, "mousepad", "--disable-server")
    assert (await hands.place(editor.id, WindowPlacement(60, 60, 500, 400))).done
    placed = (await hands.place(calculator.id, WindowPlacement(x=700, y=100))).window
    assert placed is not None
    found = Scene(private, hands, programs, editor, placed)
    await found.begin()
    return found


@contextmanager
def focus_told(desktop: PrivateDesktop) -> Iterator[list[str]]:
    """Whatever becomes the active window meanwhile, for however short a time."""
    argv = ("xprop", "-spy", "-root", "_NET_ACTIVE_WINDOW")
    environment = {**os.environ, **desktop.desktop.environment}
    told: list[str] = []
    with subprocess.Popen(argv, env=environment, stdout=subprocess.PIPE, text=True) as spy:
        assert spy.stdout is not None
        # What it is to begin with.
        spy.stdout.readline()
        try:
            yield told
        finally:
            spy.terminate()
        told += spy.stdout.readlines()


async def key_of(agent: Agent, text: str, role: str = "toggle button") -> dict[str, Any]:
    """An element of the calculator."""

    async def found() -> dict[str, Any] | None:
        seen = await agent("observe_screen", window="galculator", image="none")
        return next((e for e in seen["ui_elements"] if (e["role"], e["text"]) == (role, text)), None)

    return await until(found, what=f"{role} {text!r}")


async def shown(agent: Agent) -> str:
    """What the calculator shows."""
    seen = await agent("observe_screen", window="galculator", image="none")
    return next(e["value"] for e in seen["ui_elements"] if e["role"] == "text")


async def written(agent: Agent) -> str:
    """What is in the person's editor."""
    service = await agent.session.service("accessibility")
    tree = await service.tree(window="Mousepad", full=True)
    return await service.read_text(next(e for e in tree.elements if "multiline" in e.states)) or ""


async def test_the_person_goes_on_where_they_were_and_the_agent_in_its_own_window(scene: Scene, tmp_path: Path):
    person = Person(str(scene.desktop.desktop.display))
    async with scene.agent(tmp_path) as agent:
        clicked = await agent("execute_gui", action="click", element_id=(await key_of(agent, "7"))["id"])
        assert (clicked["effect"], clicked["given_back"]) == ("confirmed", {"pointer": True, "focus": True}), clicked
        assert scene.told() == scene.as_before
        person.press_key()
        # Keys without a place are for the window that the agent has worked in.
        pressed = await agent("execute_gui", action="press_key", key="8")
        assert pressed["given_back"] == {"focus": True}, pressed
        person.press_key()
        typed = await agent("execute_gui", action="type", text="9")
        assert typed["given_back"] == {"focus": True}, typed
        assert scene.told() == scene.as_before
        person.press_key()
        assert await shown(agent) == "789"

        async def all_there() -> bool:
            return await written(agent) == "aaa"

        await until(all_there, what="what the person has typed")
        # From here on the agent is to work there, too.
        assert (await agent("window_focus", title="Mousepad"))["focused"]
        await agent("execute_gui", action="press_key", key="b")
        assert await written(agent) == "aaab"
    person.leave()


async def test_keys_are_for_a_window_that_came_up_since_and_for_none_that_is_gone(scene: Scene, tmp_path: Path):
    async with scene.agent(tmp_path) as agent:
        seven = await key_of(agent, "7")
        await agent("execute_gui", action="click", element_id=seven["id"])
        screen = await agent.session.service("screen")
        plain = (sys.executable, PLAIN_WINDOW, str(tmp_path / "typed"))
        new = await scene.programs.open(scene.desktop.desktop, screen, *plain)
        await agent("execute_gui", action="press_key", key="x")
        assert (tmp_path / "typed").read_text() == "x"
        await end(new, screen)
        await scene.begin()
        clicked = await agent("execute_gui", action="click", element_id=seven["id"])
        assert clicked["given_back"] == {"pointer": True, "focus": True}
        await end(scene.calculator, screen)
        await agent("execute_gui", action="press_key", key="b")
        assert await written(agent) == "b"


async def end(window: Window, screen: X11Screen) -> None:
    """End its program, and wait until the window is gone."""
    assert window.pid is not None
    os.kill(window.pid, signal.SIGKILL)

    async def gone() -> bool:
        return all(left.id != window.id for left in await screen.windows())

    await until(gone, what=f"the end of {window.title!r}")


async def test_keys_are_not_pressed_where_their_window_does_not_get_them(scene: Scene, tmp_path: Path):
    manager = manager_pid(scene.desktop)
    async with scene.agent(tmp_path) as agent:
        await agent("execute_gui", action="click", element_id=(await key_of(agent, "7"))["id"])
        os.kill(manager, signal.SIGSTOP)
        try:
            refused = await agent.fails("execute_gui", action="press_key", key="8")
            unfocused = await agent.fails("window_focus", title="galculator")
        finally:
            os.kill(manager, signal.SIGCONT)
        assert "'galculator'" in refused["message"]
        assert "nothing was pressed" in refused["message"]
        assert "did not get the focus" in unfocused["message"]
        assert (await shown(agent), await written(agent)) == ("7", "")


async def test_an_open_menu_keeps_what_it_needs_and_its_choice_gives_it_back(scene: Scene, tmp_path: Path):
    async with scene.agent(tmp_path) as agent:
        opened = await agent("execute_gui", action="click", element_id=(await key_of(agent, "View", "menu"))["id"])
        assert "given_back" not in opened

        async def closed() -> bool:
            pressed = await agent("execute_gui", action="press_key", key="escape")
            # A program that is slow to close it has not closed it by the end of the call.
            return pressed.get("given_back") == {"pointer": True, "focus": True}

        await until(closed, what="the end of the menu")
        assert scene.told() == scene.as_before
        hovered = await agent("execute_gui", action="move_mouse", element_id=(await key_of(agent, "7"))["id"])
        assert "given_back" not in hovered
        assert scene.told() != scene.as_before
        focused = await agent("window_focus", title="galculator")
        assert focused["focused"]
        await agent("execute_gui", action="press_key", key="1")
        assert scene.told()[0] == int(scene.calculator.id, 16)
        # Where the pointer was is where the agent had put it.
        again = await agent("execute_gui", action="click", element_id=(await key_of(agent, "8"))["id"])
        assert "given_back" not in again


async def test_a_window_that_an_action_opens_keeps_what_it_needs_until_it_is_closed(scene: Scene, tmp_path: Path):
    async with scene.agent(tmp_path) as agent:
        await agent("execute_gui", action="click", element_id=(await key_of(agent, "Help", "menu"))["id"])
        opened = await agent(
            "execute_gui", action="click", element_id=(await agent.element("menu item", "About"))["id"]
        )
        assert ("given_back" in opened, opened["changed"]["windows_opened"]) == (False, ["About galculator"]), opened

        async def closed() -> bool:
            pressed = await agent("execute_gui", action="press_key", key="escape")
            return pressed.get("given_back") == {"pointer": True, "focus": True}

        await until(closed, what="the end of the window")
        assert scene.told() == scene.as_before


async def test_what_a_program_does_itself_never_takes_the_focus(scene: Scene, tmp_path: Path):
    async with scene.agent(tmp_path) as agent:
        await key_of(agent, "7")
        with focus_told(scene.desktop) as told:
            used = await agent("execute_accessible", action="click", element_name="7", window="galculator")
        assert (used["effect"], used["route"]) == ("confirmed", "action")
        assert await shown(agent) == "7"
        assert scene.told() == scene.as_before
        assert told == []


async def test_a_desktop_whose_focus_may_be_kept_keeps_it(scene: Scene, tmp_path: Path):
    async with scene.agent(tmp_path, "give_back = false\n") as agent:
        clicked = await agent("execute_gui", action="click", element_id=(await key_of(agent, "7"))["id"])
        assert "given_back" not in clicked

        async def taken() -> bool:
            return scene.told()[0] == int(scene.calculator.id, 16)

        await until(taken, what="the calculator to be active")
        assert scene.told()[1] != AT


def manager_pid(desktop: PrivateDesktop) -> int:
    """The window manager's process; openbox does not tell its own."""
    root = outside(desktop, "xprop", "-root", "_NET_SUPPORTING_WM_CHECK")
    told = outside(desktop, "xprop", "-id", root.split("# ")[-1].strip(), "_NET_WM_PID")
    return int(told.split("=")[-1]) if "=" in told else desktop.pids["openbox"]


async def borrow(scene: Scene, hands: X11InputDriver, lent: FocusRestorer) -> CompletedAction:
    """An agent's click into what the calculator shows."""
    await lent.take(keys=False)
    there = (scene.calculator.rect.center[0], scene.calculator.rect.y + 60)
    await hands.move(*there)
    await hands.click("left", 1)
    return CompletedAction(there, clicked=True)


async def test_what_cannot_be_given_back_is_said_and_what_was_put_away_stays_so(
    scene: Scene, hands: X11InputDriver, screen: X11Screen
):
    lent = FocusRestorer(hands, screen, on=True)
    # The window manager is given the time to make the window active that was clicked.
    assert await lent.give_back(await borrow(scene, hands, lent)) == {"pointer": True, "focus": True}
    assert scene.told() == scene.as_before
    done = await borrow(scene, hands, lent)
    with keyboard_taken(scene.desktop):
        assert await lent.give_back(done) == {"pointer": True, "focus": False}
    await scene.begin()
    done = await borrow(scene, hands, lent)
    assert await hands.minimize(scene.editor.id)
    assert await lent.give_back(done) == {"pointer": True}
    assert next(window for window in await screen.windows() if window.id == scene.editor.id).state == "minimized"


@contextmanager
def keyboard_taken(desktop: PrivateDesktop) -> Iterator[None]:
    """A program that takes all that is typed, as an open menu does."""
    taking = display.Display(str(desktop.desktop.display))
    try:
        mode, now = X.GrabModeAsync, X.CurrentTime
        assert taking.screen().root.grab_keyboard(True, mode, mode, now) == X.GrabSuccess
        yield
    finally:
        taking.close()


async def test_a_person_who_is_at_it_again_keeps_what_they_have(
    scene: Scene, connection: X11Connection, screen: X11Screen
):
    watched, person = Watched(60), Person(str(scene.desktop.desktop.display))
    await connection.run(watched.watch)
    hands = X11InputDriver(connection, mouse=XTestPointer(private=True, person=watched), person=watched)
    lent = FocusRestorer(hands, screen, on=True)
    done = await borrow(scene, hands, lent)
    person.press_key()
    assert await lent.give_back(done) == {}
    assert scene.told()[1] == done.at
    person.leave()


async def test_what_the_person_has_moved_meanwhile_is_left_alone(
    scene: Scene, hands: X11InputDriver, screen: X11Screen
):
    lent = FocusRestorer(hands, screen, on=True)
    done = await borrow(scene, hands, lent)
    outside(scene.desktop, "xdotool", "mousemove", "900", "700")
    assert await lent.give_back(done) == {}
    assert scene.told()[1] == (900, 700)
    # That is the place that they get it back at from then on.
    done = await borrow(scene, hands, lent)
    assert await lent.give_back(done) == {"pointer": True}
    assert scene.told()[1] == (900, 700)
    await scene.begin()
    lent = FocusRestorer(hands, screen, on=True)
    await lent.take(keys=False)
    outside(scene.desktop, "xdotool", "windowactivate", "--sync", str(int(scene.calculator.id, 16)))
    await hands.move(1000, 700)
    assert await lent.give_back(CompletedAction((1000, 700))) == {"pointer": True}
    assert scene.told() == (int(scene.calculator.id, 16), AT)

"""UI Automation read and used, over trees that are written down, through the service that tools use."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from tests.plugins.accessibility.told_uia import Gone, Thing, World

from handrail import AmbiguousElement, Downstream, Element, NotFound, Rect, StaleElement, Window
from handrail.desktop.thread_worker import ThreadWorker
from handrail_accessibility.native.service import NativeTreeService, find_window
from handrail_accessibility.tree.protocol import AccessibilityController
from handrail_accessibility.uia.properties import UiaProperty
from handrail_accessibility.uia.provider import UiaProvider

WINDOW = Window("0x2a", "notes.txt - Notepad", "notepad.exe", 77, Rect(0, 0, 800, 600), active=True)
OTHER = Window("0x2b", "Long list", "list.exe", 78, Rect(0, 0, 800, 600))
VALUE, TOGGLE = 10002, 10015


@dataclass(slots=True)
class Value:
    """IUIAutomationValuePattern of a field."""

    thing: Thing

    @property
    def CurrentValue(self) -> str:  # noqa: N802 - the interface's own name
        return str(self.thing.properties[UiaProperty.VALUE])

    def SetValue(self, text: str) -> None:  # noqa: N802 - the interface's own name
        self.thing.properties[UiaProperty.VALUE] = text


@dataclass(slots=True)
class Switch:
    """IUIAutomationTogglePattern of a box."""

    thing: Thing

    def Toggle(self) -> None:  # noqa: N802 - the interface's own name
        self.thing.properties[UiaProperty.TOGGLED] = 1 - self.thing.properties[UiaProperty.TOGGLED]


@dataclass(slots=True)
class Screen:
    """The windows that the service `screen` knows."""

    shown: list[Window] = field(default_factory=lambda: [WINDOW, OTHER])

    async def windows(self) -> list[Window]:
        return self.shown


def thing(number: int, kind: int, name: str = "", **more: Any) -> Thing:
    told = {UiaProperty[key.upper()]: value for key, value in more.items()}
    base = {
        UiaProperty.RUNTIME_ID: (42, 77, number),
        UiaProperty.CONTROL_TYPE: kind,
        UiaProperty.NAME: name,
        UiaProperty.RECTANGLE: (10.0, 20.0 * number, 100.0, 18.0),
        UiaProperty.ENABLED: True,
        UiaProperty.OFFSCREEN: False,
    }
    return Thing({**base, **told})


@dataclass(slots=True)
class Notepad:
    """The parts of a window like Windows' Notepad that the tests look at."""

    save: Thing = field(default_factory=lambda: thing(2, 50000, "Save", can_invoke=True))
    page: Thing = field(
        default_factory=lambda: thing(
            *(3, 50030, "Text editor"), has_value=True, value="one\r\ntwo", focused=True, automation_id="RichEdit"
        )
    )
    wrap: Thing = field(default_factory=lambda: thing(4, 50002, "Word wrap", can_toggle=True, toggled=0))
    menu: Thing = field(default_factory=lambda: thing(5, 50011, "File", can_expand=True, expanded=0))
    secret: Thing = field(default_factory=lambda: thing(6, 50004, "PIN", password=True, has_value=True, value="1234"))
    hidden: Thing = field(default_factory=lambda: thing(7, 50000, "Beyond", offscreen=True))
    off: Thing = field(default_factory=lambda: thing(8, 50000, "Undo", enabled=False))

    @property
    def window(self) -> Thing:
        box = thing(9, 50033)
        box.children = [self.save, self.page, self.wrap, self.menu, self.secret, self.hidden, self.off]
        self.page.patterns[VALUE] = Value(self.page)
        self.wrap.patterns[TOGGLE] = Switch(self.wrap)
        root = thing(1, 50032, WINDOW.title)
        root.children = [box]
        return root


@pytest.fixture
def notepad() -> Notepad:
    return Notepad()


@pytest.fixture
def world(notepad: Notepad) -> World:
    rows = thing(1, 50008, "Rows")
    rows.children = [thing(number, 50007, f"row {number}") for number in range(2, 10002)]
    long = thing(0, 50032, OTHER.title)
    long.children = [rows]
    return World({0x2A: notepad.window, 0x2B: long})


@pytest.fixture
async def control(world: World) -> AsyncIterator[AccessibilityController]:
    screen = Screen()

    async def service(_: str) -> Screen:
        return screen

    def begin() -> UiaProvider:
        return UiaProvider(world, lambda native, number: native.GetCurrentPattern(number), Gone)

    found = NativeTreeService(ThreadWorker("a program", begin), service)
    yield found
    await found.close()


async def element(control: AccessibilityController, text: str) -> Element:
    return next(e for e in (await control.tree(full=True)).elements if e.text == text)


async def test_a_window_is_read_by_one_request(control: AccessibilityController, world: World) -> None:
    tree = await control.tree()
    assert world.calls == 1
    assert [(e.role, e.text) for e in tree.elements] == [
        ("button", "Save"),
        ("document", "Text editor"),
        ("check box", "Word wrap"),
        ("menu item", "File"),
        ("password", "PIN"),
        ("button", "Undo"),
    ]
    assert (tree.window, tree.truncated) == (WINDOW.title, False)
    assert tree.focused is not None
    assert tree.focused.automation_id == "RichEdit"


async def test_values_states_and_actions_are_told_in_words(control: AccessibilityController) -> None:
    page, wrap, menu, off = [await element(control, name) for name in ("Text editor", "Word wrap", "File", "Undo")]
    assert (page.value, "editable" in page.states, page.rect) == ("one\r\ntwo", True, Rect(10, 60, 100, 18))
    assert "toggle" in wrap.actions
    assert "checked" not in wrap.states
    assert "collapsed" in menu.states
    assert "expand" in menu.actions
    assert "disabled" in off.states


async def test_a_password_is_never_read(control: AccessibilityController) -> None:
    secret = await element(control, "PIN")
    assert secret.value is None
    assert await control.read_text(secret) is None


async def test_a_long_list_is_cut_at_the_budget_and_says_so(control: AccessibilityController) -> None:
    tree = await control.tree(window="Long list", budget=50)
    assert len(tree.elements) == 50
    assert tree.truncated


async def test_a_provider_too_slow_for_one_request_is_read_level_by_level(
    control: AccessibilityController, world: World, notepad: Notepad
) -> None:
    slow = thing(20, 50020, "slow part")
    slow.slow = 5000.0
    notepad.page.children = [slow]
    tree = await control.tree(deadline=1.0)
    assert world.calls > 1
    # What is beside the slow part is there all the same; a read that has no more time says so.
    assert "Save" in [element.text for element in tree.elements]
    assert world.TransactionTimeout == 2000


async def test_a_window_that_cannot_be_read_at_all_says_so(control: AccessibilityController, world: World) -> None:
    world.windows[0x2A].gone = True
    tree = await control.tree()
    assert tree.elements == ()
    assert "publishes no tree" in tree.note


async def test_text_is_set_by_value_and_read_back(control: AccessibilityController) -> None:
    page = await element(control, "Text editor")
    assert await control.set_text(page, "Ergebnis — 漢字 😀")
    assert await control.read_text(page) == "Ergebnis — 漢字 😀"


async def test_lines_end_as_everywhere_else(control: AccessibilityController) -> None:
    assert await control.read_text(await element(control, "Text editor")) == "one\ntwo"


async def test_a_box_is_ticked_by_its_own_action(control: AccessibilityController) -> None:
    wrap = await element(control, "Word wrap")
    assert await control.press(wrap) == "Toggle"
    now = await control.refresh(wrap)
    assert now is not None
    assert "checked" in now.states


async def test_what_has_no_such_action_refuses(control: AccessibilityController) -> None:
    assert await control.press(await element(control, "Save")) is None
    assert not await control.expand(await element(control, "Save"), wanted=True)


async def test_the_focus_goes_where_it_is_asked_to(control: AccessibilityController) -> None:
    wrap = await element(control, "Word wrap")
    assert await control.focus(wrap)
    focused = await control.focused()
    assert focused is not None
    assert focused.text == "Word wrap"


async def test_an_id_of_something_that_is_gone_is_refused(control: AccessibilityController, notepad: Notepad) -> None:
    save = await element(control, "Save")
    notepad.save.gone = True
    assert await control.refresh(save) is None
    with pytest.raises(StaleElement, match="'Save' is gone"):
        await control.press(save)


async def test_an_object_that_was_given_to_something_else_is_another_element(
    control: AccessibilityController, notepad: Notepad
) -> None:
    save = await element(control, "Save")
    notepad.save.properties[UiaProperty.NAME] = "Delete everything"
    with pytest.raises(StaleElement):
        await control.press(save)


async def test_windows_are_named_by_a_part_of_their_title(control: AccessibilityController) -> None:
    assert (await control.tree(window="notes")).window == WINDOW.title
    with pytest.raises(NotFound, match="'Long list'"):
        await control.tree(window="absent")


def test_a_title_that_fits_several_windows_is_refused_with_them() -> None:
    both = [replace(WINDOW, active=False), OTHER]
    with pytest.raises(AmbiguousElement, match="2 windows fit 'o'"):
        find_window(both, "o")


async def test_a_query_keeps_what_holds_it(control: AccessibilityController) -> None:
    assert [e.text for e in (await control.tree(query="wrap")).elements] == ["Word wrap"]


async def test_a_provider_that_hangs_does_not_hang_us(
    control: AccessibilityController, notepad: Notepad, stuck: threading.Event
) -> None:
    notepad.save.hangs = stuck
    with pytest.raises(Downstream, match="has not answered"):
        await control.tree(deadline=0.1)
    assert (await control.tree(window="Long list", budget=5)).elements

"""The accessibility of macOS read and used, over stubs with pyobjc's signatures and trees that are written down. It has not been run on a Mac."""

# Names are the framework's own.
# ruff: noqa: N802

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from handrail import Downstream, Element, Rect, StaleElement, ToolUnavailable, Window
from handrail.desktop.thread_worker import ThreadWorker
from handrail_accessibility.ax.provider import AxProvider, open_ax_provider
from handrail_accessibility.native.service import NativeTreeService
from handrail_accessibility.tree.protocol import AccessibilityController

WINDOW = Window("0x2a", "Untitled", "TextEdit", 501, Rect(100, 50, 600, 400), active=True)
GONE, REFUSED = -25202, -25205


class Thing:
    """An object: its attributes, the actions it takes, and whether it is gone or hangs."""

    def __init__(self, role: str, *, actions: Sequence[str] = (), **attributes: Any) -> None:
        self.attributes = {"AXRole": role, "AXPosition": (1, (110, 60)), "AXSize": (2, (80, 20)), **attributes}
        self.actions = actions
        self.did: list[str] = []
        self.gone = False
        self.hangs: threading.Event | None = None


@dataclass
class Mac:
    """ApplicationServices over one program."""

    window: Thing
    calls: int = 0
    timeouts: list[float] = field(default_factory=list)

    def AXIsProcessTrusted(self) -> bool:
        return True

    def AXUIElementCreateSystemWide(self) -> Any:
        return "everything"

    def AXUIElementSetMessagingTimeout(self, element: Any, seconds: float, /) -> int:
        self.timeouts.append(seconds)
        return 0

    def AXUIElementCreateApplication(self, pid: int, /) -> Any:
        return Thing("AXApplication", AXWindows=[self.window])

    def AXUIElementCopyAttributeValue(self, element: Any, name: str, value: None, /) -> tuple[int, Any]:
        found = element.attributes.get(name)
        return (REFUSED, None) if found is None or element.gone else (0, found)

    def AXUIElementCopyMultipleAttributeValues(
        self, element: Any, names: Sequence[str], options: int, values: None, /
    ) -> tuple[int, Sequence[Any] | None]:
        self.calls += 1
        if element.hangs is not None:
            element.hangs.wait()
        if element.gone:
            return GONE, None
        # An attribute that there is none of is an error object in its place.
        return 0, [element.attributes.get(name, object()) for name in names]

    def AXUIElementSetAttributeValue(self, element: Any, name: str, value: Any, /) -> int:
        if name not in element.attributes:
            return REFUSED
        element.attributes[name] = value
        return 0

    def AXUIElementPerformAction(self, element: Any, name: str, /) -> int:
        if name not in element.actions:
            return REFUSED
        element.did.append(name)
        return 0

    def AXValueGetValue(self, value: Any, kind: int, into: None, /) -> tuple[bool, Any]:
        if not isinstance(value, tuple) or value[0] != kind:
            return False, None
        names = ("x", "y") if kind == 1 else ("width", "height")
        return True, SimpleNamespace(**dict(zip(names, value[1], strict=True)))


@dataclass
class Screen:
    async def windows(self) -> list[Window]:
        return [WINDOW]


@dataclass
class TextEdit:
    """The parts of a window that the tests look at."""

    bold: Thing = field(default_factory=lambda: Thing("AXCheckBox", AXTitle="bold", AXValue=0, actions=["AXPress"]))
    page: Thing = field(
        default_factory=lambda: Thing("AXTextArea", AXValue="eins", AXFocused=True, AXIdentifier="First Text View")
    )
    pin: Thing = field(default_factory=lambda: Thing("AXTextField", AXSubrole="AXSecureTextField", AXValue="1234"))
    size: Thing = field(default_factory=lambda: Thing("AXSlider", AXDescription="size", AXValue=12.0))
    far: Thing = field(default_factory=lambda: Thing("AXButton", AXTitle="far below", AXPosition=(1, (110, 5000))))
    off: Thing = field(default_factory=lambda: Thing("AXButton", AXTitle="Undo", AXEnabled=False))

    @property
    def window(self) -> Thing:
        inside = Thing("AXGroup", AXChildren=[self.bold, self.page, self.pin, self.size, self.far, self.off])
        place, size = (1, (100, 50)), (2, (600, 400))
        return Thing("AXWindow", AXTitle="Untitled", AXChildren=[inside], AXPosition=place, AXSize=size)


@pytest.fixture
def program() -> TextEdit:
    return TextEdit()


@pytest.fixture
def mac(program: TextEdit) -> Mac:
    return Mac(program.window)


@pytest.fixture
async def control(mac: Mac) -> AsyncIterator[AccessibilityController]:
    async def service(_: str) -> Screen:
        return Screen()

    found = NativeTreeService(ThreadWorker("a program's tree", lambda: AxProvider(mac)), service)
    yield found
    await found.close()


async def element(control: AccessibilityController, role: str, text: str = "") -> Element:
    return next(e for e in (await control.tree(full=True)).elements if (e.role, e.text) == (role, text))


async def test_each_object_is_read_by_one_call(control: AccessibilityController, mac: Mac) -> None:
    tree = await control.tree()
    assert [(e.role, e.text) for e in tree.elements] == [
        *(("check box", "bold"), ("text", ""), ("password", ""), ("slider", "size"), ("button", "far below")),
        ("button", "Undo"),
    ]
    # The window is read once to be found, and once with the rest.
    assert mac.calls == 1 + 1 + 7
    assert tree.focused is not None
    assert (tree.focused.automation_id, tree.focused.value) == ("First Text View", "eins")


async def test_values_states_and_places(control: AccessibilityController) -> None:
    size, far, off = [
        await element(control, *it) for it in (("slider", "size"), ("button", "far below"), ("button", "Undo"))
    ]
    assert (size.value, size.rect) == ("12", Rect(110, 60, 80, 20))
    assert far.rect is None
    assert "offscreen" in far.states
    assert "disabled" in off.states


async def test_a_password_is_never_read(control: AccessibilityController) -> None:
    secret = await element(control, "password")
    assert secret.value is None
    assert await control.read_text(secret) is None


async def test_an_action_that_the_program_refuses_is_no_success(
    control: AccessibilityController, program: TextEdit
) -> None:
    assert await control.press(await element(control, "check box", "bold")) == "AXPress"
    assert program.bold.did == ["AXPress"]
    assert await control.press(await element(control, "button", "Undo")) is None


async def test_text_and_numbers_are_set_by_value_and_read_back(control: AccessibilityController) -> None:
    page, size = await element(control, "text"), await element(control, "slider", "size")
    assert await control.set_text(page, "漢字 😀")
    assert await control.read_text(page) == "漢字 😀"
    assert await control.set_number(size, 24)
    assert await control.number(size) == 24


async def test_what_is_gone_is_refused(control: AccessibilityController, program: TextEdit) -> None:
    bold = await element(control, "check box", "bold")
    program.bold.gone = True
    assert await control.refresh(bold) is None
    with pytest.raises(StaleElement, match="'bold' is gone"):
        await control.press(bold)


async def test_a_long_tree_is_cut_and_says_so(control: AccessibilityController, program: TextEdit, mac: Mac) -> None:
    mac.window.attributes["AXChildren"] = [Thing("AXButton", AXTitle=f"row {number}") for number in range(3000)]
    tree = await control.tree(budget=20)
    assert (len(tree.elements), tree.truncated) == (20, True)
    assert mac.calls < 300


async def test_a_program_that_hangs_does_not_hang_us(
    control: AccessibilityController, program: TextEdit, stuck: threading.Event
) -> None:
    program.bold.hangs = stuck
    with pytest.raises(Downstream, match="has not answered"):
        await control.tree(deadline=0.05)
    program.bold.hangs = None
    assert (await control.tree()).elements


def test_elsewhere_it_says_that_it_is_for_macos() -> None:
    with pytest.raises(ToolUnavailable, match="AXUIElement is a part of macOS"):
        open_ax_provider()

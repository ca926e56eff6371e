from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

import handrail
from handrail import BackendUnavailable, Desktop, Downstream, Session, ToolUnavailable
from handrail.testing.backend_contract import FakeBackendContext
from handrail_accessibility.atspi.bus import DBUS_DAEMON, AccessibilityBus, BusLost
from handrail_accessibility.atspi.service import AtSpiService
from handrail_accessibility.backend import AccessibilityBackend
from handrail_accessibility.tree.protocol import AccessibilityController

from .conftest import Launch, shows, until, yes
from .published import BUTTON, Published, Thing

pytestmark = pytest.mark.anyio


async def test_the_backend_sees_by_the_tree(session: Session, launch: Launch) -> None:
    await launch("galculator", title="galculator")
    seen = await session.vision.tree()
    assert seen.backend == "accessibility"
    assert seen.value.window == "galculator"


async def test_a_look_that_was_cut_off_gets_further_the_next_time(
    session: Session, control: AccessibilityController, launch: Launch, published: Published
) -> None:
    for number in range(450):
        published.show(f"/button{number}", Thing(BUTTON, f"button {number}"))
    await until(lambda: shows(control, "Published"), "the window")
    published.slow = frozenset({"GetExtents"})
    first = (await session.vision.tree(window="Published")).value
    assert first.truncated

    async def further() -> bool:
        return len((await session.vision.tree(window="Published")).value.elements) >= len(first.elements) + 100

    await until(further, "more of the window")


async def test_the_service_is_all_that_tools_and_other_plugins_ask_of_it(control: AccessibilityController) -> None:
    assert isinstance(control, AccessibilityController)


async def test_its_tools_are_shown_with_it(session: Session) -> None:
    assert {"get_ui_context", "execute_accessible"} <= {tool.name for tool in await session.tools()}


def test_nothing_is_missing_on_linux() -> None:
    assert (AccessibilityBackend.missing() is None) == (sys.platform == "linux")


async def no_service(capability: str) -> None:
    raise ToolUnavailable(f"no {capability}")


async def test_a_desktop_without_a_session_bus_says_so() -> None:
    service = AtSpiService(Desktop("bare", ":0"), no_service)
    with pytest.raises(ToolUnavailable, match="no session bus"):
        await service.tree()


async def test_a_session_bus_that_is_not_there_says_so(tmp_path: Path) -> None:
    address = f"unix:path={tmp_path}/nothing"
    service = AtSpiService(Desktop("bare", ":0", {"DBUS_SESSION_BUS_ADDRESS": address}), no_service)
    with pytest.raises(Downstream, match="cannot be reached"):
        await service.titles()


async def test_the_backend_is_unavailable_where_there_is_no_bus() -> None:
    class Context(FakeBackendContext):
        desktop = Desktop("bare", ":0")

        async def service(self, capability: str) -> AtSpiService:
            return AtSpiService(self.desktop, no_service)

    with pytest.raises(BackendUnavailable, match="no session bus"):
        await AccessibilityBackend().open(Context())


async def test_a_bus_that_dies_is_said_and_then_found_again(tmp_path: Path) -> None:
    async with handrail.open(desktop="private", confirm=yes, cwd=tmp_path, backend="accessibility") as session:
        desktop = await session.desktop()
        control: AccessibilityController = await session.service("accessibility")
        assert await control.titles() == ()
        bus = await AccessibilityBus.connect(desktop.environment["DBUS_SESSION_BUS_ADDRESS"])
        (daemon,) = await bus.call(*DBUS_DAEMON, "GetConnectionUnixProcessID", "s", ["org.freedesktop.DBus"])
        os.kill(daemon, signal.SIGKILL)
        await until(lambda: gone(bus), "the bus to end")
        await bus.close()
        await until(lambda: answers(control), "the bus to be back")
        assert await control.titles() == ()


async def test_a_call_on_a_bus_that_has_died_says_so(tmp_path: Path) -> None:
    async with handrail.open(desktop="private", confirm=yes, cwd=tmp_path, backend="accessibility") as session:
        desktop = await session.desktop()
        bus = await AccessibilityBus.connect(desktop.environment["DBUS_SESSION_BUS_ADDRESS"])
        (daemon,) = await bus.call(*DBUS_DAEMON, "GetConnectionUnixProcessID", "s", ["org.freedesktop.DBus"])
        os.kill(daemon, signal.SIGKILL)
        with pytest.raises(BusLost, match="has ended"):
            await until(lambda: calls(bus), "the bus to end")
        await bus.close()


async def calls(bus: AccessibilityBus) -> bool:
    await bus.call(*DBUS_DAEMON, "GetId")
    return False


async def gone(bus: AccessibilityBus) -> bool:
    return not bus.alive


async def answers(control: AccessibilityController) -> bool:
    try:
        await control.titles()
    except Downstream:
        return False
    return True


def test_registering_loads_nothing_heavy() -> None:
    """`handrail --help` imports every plugin's hooks."""
    code = "import sys, handrail_accessibility.hooks; print([m for m in sys.modules if m.startswith('dbus_fast')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def _serves(argv: list[str] | None, authority: str) -> bool:
    """Whether it is the X server with that file of keys."""
    return bool(argv) and argv[0].endswith("Xvfb") and authority in argv


async def test_a_desktop_whose_screen_is_gone_is_an_error_and_not_an_empty_one(tmp_path: Path) -> None:
    async with handrail.open(desktop="private", cwd=tmp_path) as session:
        desktop = await session.desktop()
        assert (await session.call("get_ui_context", {}))["element_count"] == 0
        own = desktop.environment["XAUTHORITY"]
        (server,) = (process for process in psutil.process_iter(["cmdline"]) if _serves(process.info["cmdline"], own))
        server.kill()
        result = await session.call("get_ui_context", {})
        assert result.status == "error"

"""A window of Swing through Debian's bridge to the accessibility bus. `make java` runs this; it is no part of `make test`."""

from __future__ import annotations

import os
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

import handrail
from handrail import Session

BRIDGE = (
    "-Djavax.accessibility.assistive_technologies=org.GNOME.Accessibility.AtkWrapper",
    "-Djava.library.path=/usr/lib/x86_64-linux-gnu/jni:/usr/lib/aarch64-linux-gnu/jni",
)
JAR = "/usr/share/java/java-atk-wrapper.jar"
DEADLINE_S = 60.0


async def until(holds: Callable[[], Awaitable[bool]], what: str) -> None:
    with anyio.move_on_after(DEADLINE_S):
        while not await holds():
            await anyio.sleep(0.05)
        return
    pytest.fail(f"waited {DEADLINE_S:g} s for {what}")


@pytest.fixture(scope="module")
async def form(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Session]:
    folder = tmp_path_factory.mktemp("swing")
    await anyio.run_process(["javac", "-d", str(folder), str(Path(__file__).with_name("Form.java"))])
    async with handrail.open(desktop="private", cwd=folder, backend="accessibility") as session:
        desktop = await session.desktop()
        command = ("java", *BRIDGE, "-cp", f"{folder}:{JAR}", "Form")
        process = await anyio.open_process(
            command, env={**os.environ, **desktop.environment}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:

            async def there() -> bool:
                return any(element["text"] == "Send" for element in await seen(session))

            await until(there, "the form")
            yield session
        finally:
            process.kill()
            await process.wait()


async def seen(session: Session) -> list[dict[str, Any]]:
    looked = await session.call("observe_screen", {"image": "none"})
    return looked["ui_elements"] if looked.ok else []


async def use(session: Session, **args: Any) -> dict[str, Any]:
    result = await session.call("execute_accessible", args)
    assert result.ok, result
    return result.wire()


async def test_its_controls_are_named_and_used_by_their_own_actions(form: Session) -> None:
    roles = {(element["role"], element["text"]) for element in await seen(form)}
    assert {
        ("text", "Name"),
        ("check box", "Paid"),
        ("slider", "Volume"),
        ("button", "Send"),
        ("menu", "File"),
    } <= roles
    for args in (
        {"action": "set_value", "element_name": "Name", "control_type": "text", "value": "Ada 漢字"},
        {"action": "toggle", "element_name": "Paid", "value": "on"},
    ):
        done = await use(form, **args)
        assert (done["effect"], done["route"]) == ("confirmed", "action"), done


async def test_a_button_is_clicked_where_it_shows(form: Session) -> None:
    await use(form, action="set_value", element_name="Name", control_type="text", value="Grace")
    button = next(element for element in await seen(form) if element["text"] == "Send")
    clicked = await form.call("execute_gui", {"action": "click", "element_id": button["id"]})
    assert (clicked["effect"], clicked["route"]) == ("confirmed", "pointer"), clicked

    async def said() -> bool:
        read = await form.call("get_ui_context", {"full": True})
        return any(element["name"] == "sent Grace" for element in read["elements"])

    await until(said, "what the button says")


async def test_an_item_of_a_closed_menu_is_used_by_its_path(form: Session) -> None:
    await use(form, action="set_value", element_name="Name", control_type="text", value="gone soon")
    await use(form, action="click", element_name="File > Clear")
    read = await use(form, action="read", element_name="Name", control_type="text")
    assert read["text"] == ""


async def test_text_is_typed_and_read_back(form: Session) -> None:
    field = next(element for element in await seen(form) if element["text"] == "Name")
    typed = await form.call("execute_gui", {"action": "type", "text": "Zoë", "element_id": field["id"]})
    assert typed["effect"] == "confirmed", typed

"""A client that was not written here works on a private desktop, with the real plugins."""

from __future__ import annotations

import base64
import itertools
import secrets
import subprocess
from typing import Any

import anyio
import psutil
import pytest
from mcp import Client, types

from .place import ERAS, HANDRAIL, LEGACY, MODERN, Place, accept, how_it_ended, result_fields, result_text, wait_for

PLUGINS = "accessibility,cli,gui,mcp,mcp_stage"
LINE = "Grüße — 漢字 ✓"


@pytest.fixture
def desktop(place: Place) -> Place:
    """A place whose server works on a private desktop and sees by its accessibility tree."""
    place.environment["HANDRAIL_PLUGINS"] = PLUGINS
    place.args += ["--desktop", "private"]
    place.configure('backend = "accessibility"\n')
    return place


async def test_a_client_does_a_job_on_the_private_desktop(desktop: Place):
    async with desktop.client(LEGACY, only_the_editor) as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
        assert {"observe_screen", "execute_gui", "get_ui_context", "execute_accessible", "execute_cli"} <= names
        assert "plan_it" not in names
        await done(client, "execute_cli", {"command": "mousepad", "background": True})
        await done(client, "wait", {"seconds": 30, "until": {"window": "Mousepad"}})
        await looks_at_the_screen(client)
        await types_a_line(client)
        await is_denied(client, desktop)
        await sees_the_list_change(client, desktop)


def only_the_editor(asked: types.ElicitRequestFormParams) -> types.ElicitResult:
    return accept("once" if "mousepad" in asked.message else "deny")


async def done(client: Client, name: str, args: dict[str, Any]) -> dict[str, Any]:
    result = await client.call_tool(name, args)
    assert not result.is_error, result_fields(result)
    return result_fields(result)


async def looks_at_the_screen(client: Client) -> None:
    result = await client.call_tool("observe_screen", {})
    assert not result.is_error, result_fields(result)
    pictures = [block for block in result.content if isinstance(block, types.ImageContent)]
    assert [base64.b64decode(picture.data)[:2] for picture in pictures] == [b"\xff\xd8"]
    assert pictures[0].mime_type == "image/jpeg"
    fields = result_fields(result)
    assert "image_b64" not in fields
    assert fields["observation_id"]
    assert fields["actual_backend"] == "accessibility"
    assert result_text(result).startswith("<untrusted ")
    assert any("Mousepad" in window["title"] for window in (await done(client, "window_list", {}))["windows"])


async def types_a_line(client: Client) -> None:
    await done(client, "execute_gui", {"action": "type", "text": LINE})
    seen = await done(client, "get_ui_context", {})
    assert any(LINE in str(element.get("value") or element.get("name")) for element in seen["elements"]), seen


async def is_denied(client: Client, desktop: Place) -> None:
    kept = desktop.folder / "kept"
    kept.mkdir()
    result = await client.call_tool("execute_cli", {"command": "rm -r ./*"})
    assert result_fields(result)["error"]["code"] == "denied_by_user"
    assert "    | rm -r ./*" in desktop.asked[-1].message
    assert kept.is_dir()


async def sees_the_list_change(client: Client, desktop: Place) -> None:
    desktop.configure('backend = "planner"\n')
    with anyio.fail_after(20):
        await desktop.changes.wait()
    names = {tool.name for tool in (await client.list_tools()).tools}
    hidden = await client.call_tool("observe_screen", {})
    assert "plan_it" in names
    assert not {"observe_screen", "execute_gui", "get_ui_context", "execute_accessible"} & names
    assert result_fields(hidden)["error"]["code"] == "tool_unavailable"


@pytest.mark.parametrize("era", ERAS)
async def test_the_handle_and_the_prompt_of_a_command_are_in_the_text(place: Place, era: str):
    place.environment["HANDRAIL_PLUGINS"] = "cli,mcp"
    place.configure("")
    async with place.client(era, lambda _: accept("once")) as client:
        asking = {"command": "printf 'Name: '; read name; echo hello $name", "background": True}
        process_id = (await done(client, "execute_cli", asking))["process_id"]
        waiting = await done(client, "read_process", {"process_id": process_id, "wait": 30})
        assert waiting["prompt"]["text"] == "Name:"
        await done(client, "write_process", {"process_id": process_id, "text": "Ada\n"})
        ended = await done(client, "read_process", {"process_id": process_id, "wait": 30})
    assert ended["exit_code"] == 0
    assert "hello Ada" in ended["stdout"]


@pytest.mark.parametrize("era", ERAS)
async def test_a_cancelled_command_leaves_no_process(desktop: Place, era: str):
    # Known by how long they sleep; no two tests sleep as long.
    sleep = ["sleep", f"9{secrets.randbelow(10**6):06}"]
    command = f"{' '.join(sleep)} & {' '.join(sleep)}"

    def sleepers() -> list[psutil.Process]:
        return [process for process in psutil.process_iter(["cmdline"]) if process.info["cmdline"] == sleep]

    async with desktop.client(era, lambda _: accept("once")) as client:
        async with anyio.create_task_group() as group:
            group.start_soon(client.call_tool, "execute_cli", {"command": command, "timeout": 300})
            await wait_for(lambda: len(sleepers()) == 2)
            group.cancel_scope.cancel()
        await wait_for(lambda: not sleepers(), seconds=5)
        assert await how_it_ended(client, "execute_cli") == "cancelled"


def words(process: psutil.Process) -> list[str]:
    """How it was started; nothing of one that has ended."""
    try:
        return process.cmdline()
    except psutil.Error:
        return []


async def test_the_desktop_ends_with_the_client(desktop: Place):
    async with desktop.client(MODERN, only_the_editor) as client:
        await done(client, "window_list", {})
        (server,) = [process for process in psutil.Process().children() if "serve" in words(process)]
        screens = [process for process in server.children(recursive=True) if "Xvfb" in process.name()]
    assert len(screens) == 1
    await wait_for(lambda: not server.is_running() and not screens[0].is_running())


@pytest.mark.parametrize("how", [[], ["--http", "--port", "0"]], ids=["stdio", "http"])
def test_a_desktop_that_does_not_run_is_told_as_the_server_starts(desktop: Place, how: list[str]):
    process = subprocess.Popen(
        [str(HANDRAIL), "serve", *how, "--desktop", "privat"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=desktop.environment,
        cwd=desktop.folder,
    )
    assert process.stderr is not None
    with process.stderr as errors:
        # A plugin of the tests' prints before it.
        said = itertools.dropwhile(lambda line: not line.startswith("Note:"), errors)
        told = list(itertools.islice(said, 2))
        process.terminate()
    process.wait(30)
    assert told == [
        "Note: what needs a desktop fails so far: no desktop 'privat' is running; did you mean 'private'?\n",
        "Hint: start it with `handrail desktop start privat`\n",
    ]

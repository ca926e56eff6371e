"""Two sessions of one process, each on a desktop of its own, know nothing of each other."""

from __future__ import annotations

from pathlib import Path

import pytest

import handrail
from handrail import Session
from handrail.api.approval import yes


async def windows_of(session: Session) -> list[str]:
    result = await session.call("window_list")
    assert result.status == "success", result
    return [window["title"] for window in result["windows"]]


async def start_editor(session: Session, file: Path) -> None:
    file.write_text("only here\n")
    started = await session.call("execute_cli", {"command": f"mousepad {file} &"})
    assert started.status == "success", started
    shown = await session.call("wait", {"seconds": 15, "until": {"window": file.name}})
    assert shown["met"], await windows_of(session)


@pytest.mark.timeout(120)
async def test_two_desktops_in_one_process_do_not_see_each_other(tmp_path: Path) -> None:
    async with (
        handrail.open(desktop="private", confirm=yes, cwd=tmp_path) as first,
        handrail.open(desktop="private", confirm=yes, cwd=tmp_path) as second,
    ):
        assert (await first.desktop()).display != (await second.desktop()).display
        await start_editor(first, tmp_path / "first.txt")
        assert await windows_of(second) == []
        await start_editor(second, tmp_path / "second.txt")
        assert [title for title in await windows_of(first) if "second" in title] == []

        await first.call("clipboard_write", {"text": "for the first only"})
        assert (await second.call("clipboard_read")).get("content", "") != "for the first only"

        await first.call("execute_cli", {"command": "export SHARED=no; cd /"})
        seen = await second.call("execute_cli", {"command": "echo $SHARED; pwd"})
        assert seen["stdout"].split() == [str(tmp_path)]


@pytest.mark.timeout(120)
async def test_a_desktop_ends_with_its_session(tmp_path: Path) -> None:
    async with handrail.open(desktop="private", confirm=yes, cwd=tmp_path) as session:
        await start_editor(session, tmp_path / "note.txt")
        display = (await session.desktop()).display
        assert display is not None
        socket = Path(f"/tmp/.X11-unix/X{display.removeprefix(':')}")
        made = socket.stat().st_ctime_ns
    # Another desktop may have its number by now.
    assert not socket.exists() or socket.stat().st_ctime_ns != made

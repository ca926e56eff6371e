"""The clipboard between programs: both selections, after its writer has ended, and with owners that do not behave."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

import handrail
from handrail import Downstream
from handrail.desktop.key_chords import parse_chord
from handrail_gui.platforms.x11.connection import X11Connection
from handrail_gui.platforms.x11.input_driver import X11InputDriver
from handrail_gui.platforms.x11.screen import X11Screen
from handrail_gui.private.supervisor_client import PrivateDesktop

from .conftest import HANDRAIL, TEXT, Programs, until

LARGE = "0123456789 ä漢\n" * 60_000


async def outside(desktop: handrail.Desktop, *argv: str) -> str:
    """What another program says."""
    environment = {**os.environ, **desktop.environment}
    return (await anyio.run_process(argv, env=environment, check=False)).stdout.decode()


async def test_what_is_selected_is_another_clipboard(private: PrivateDesktop, hands: X11InputDriver):
    await hands.write_clipboard("copied")
    await hands.write_clipboard("selected", "primary")
    assert await hands.clipboard_text() == "copied"
    assert await hands.clipboard_text("primary") == "selected"
    assert await outside(private.desktop, "xclip", "-selection", "clipboard", "-o") == "copied"
    assert await outside(private.desktop, "xclip", "-selection", "primary", "-o") == "selected"


async def test_what_a_program_has_selected_is_read(
    private: PrivateDesktop, hands: X11InputDriver, screen: X11Screen, programs: Programs
):
    await programs.open(private.desktop, screen, "mousepad")
    await hands.type_piece("some words")
    await hands.chord(parse_chord("ctrl+a"))

    async def selected() -> bool:
        return await hands.clipboard_text("primary") == "some words"

    await until(selected, what="the selected text")


@pytest.fixture
def named() -> Iterator[str]:
    """A desktop that outlives the processes which use it."""
    name = f"clip-{uuid.uuid4().hex[:8]}"
    subprocess.run([HANDRAIL, "desktop", "start", name], check=True, timeout=60, stdout=subprocess.DEVNULL)
    yield name
    subprocess.run([HANDRAIL, "desktop", "stop", name], check=True, timeout=60, stdout=subprocess.DEVNULL)


@pytest.mark.parametrize("text", [TEXT, LARGE], ids=["short", "in pieces"])
async def test_what_was_written_stays_when_its_writer_has_ended(named: str, tmp_path: Path, text: str):
    async with handrail.open(desktop=named, cwd=tmp_path) as session:
        assert (await session.call("clipboard_write", {"text": text})).ok
        assert (await session.call("clipboard_write", {"text": "selected", "selection": "primary"})).ok
        desktop = await session.desktop()
    assert await outside(desktop, "xclip", "-selection", "clipboard", "-o") == text
    assert await outside(desktop, "xclip", "-selection", "primary", "-o") == "selected"
    async with handrail.open(desktop=named, cwd=tmp_path) as session:
        assert (await session.call("clipboard_read"))["content"] == text[:51_200].encode()[:51_200].decode(
            "utf-8", "ignore"
        )
        # Whoever copies next takes it over, and nothing stays behind.
        await session.call("clipboard_write", {"text": "new"})
        assert (await session.call("clipboard_read"))["content"] == "new"


def stopped_owner(programs: Programs, private: PrivateDesktop, path: Path) -> subprocess.Popen[bytes]:
    path.write_text("precious")
    return programs.start(private.desktop, "xclip", "-quiet", "-selection", "clipboard", "-i", str(path))


async def test_a_clipboard_that_could_not_be_put_back_is_not_borrowed(
    private: PrivateDesktop, hands: X11InputDriver, programs: Programs, tmp_path: Path
):
    owner = stopped_owner(programs, private, tmp_path / "copied")

    async def copied() -> bool:
        return await hands.clipboard_text() == "precious"

    await until(copied, what="the program to own the clipboard")
    owner.send_signal(signal.SIGSTOP)
    assert not await hands.paste("something else", parse_chord("ctrl+v"))
    owner.send_signal(signal.SIGCONT)
    assert await hands.clipboard_text() == "precious"


async def test_an_owner_that_stops_in_the_middle_of_a_large_text_is_an_error(
    connection: X11Connection, private: PrivateDesktop, hands: X11InputDriver, programs: Programs
):
    program = programs.start(private.desktop, sys.executable, str(Path(__file__).with_name("stingy_owner.py")))

    async def owned() -> bool:
        return "text/x-stingy" in await hands.clipboard_formats()

    await until(owned, what="the program to own the clipboard")
    with pytest.raises(Downstream, match="does not answer"):
        await hands.clipboard_text()
    assert program.poll() is None
    await hands.write_clipboard("mine")
    assert await hands.clipboard_text() == "mine"

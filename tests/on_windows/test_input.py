"""Input, formats of the clipboard and a person at work, as Windows has them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator
from ctypes import sizeof
from typing import Any

import pytest
from tests.desktop_contracts import until

from handrail import Failsafe, PersonAtWork, Window
from handrail.desktop.key_chords import parse_chord
from handrail.desktop.thread_worker import ThreadWorker
from handrail_gui.platforms.native.input_driver import InputGuard, NativeInputDriver
from handrail_gui.platforms.native.screen import NativeScreen
from handrail_gui.platforms.win32.api import InputRecord, user32
from handrail_gui.platforms.win32.clipboard import ClipboardOwner, hold_clipboard_open, read_contents, replace_contents
from handrail_gui.platforms.win32.inputs import build_mouse_input

CF_DIB, CF_UNICODETEXT, CF_HDROP = 8, 13, 15


@pytest.fixture
async def careful(worker: ThreadWorker[Any]) -> AsyncIterator[NativeInputDriver]:
    """Hands that give way to a person for three seconds."""
    found = NativeInputDriver(worker, InputGuard(pause=3.0))
    await found.move(600, 20)
    yield found
    await found.close()


def somebody(code: str) -> None:
    """Another program's input, which is a person's as far as we know."""
    subprocess.run([sys.executable, "-c", f"import ctypes; u = ctypes.windll.user32; {code}"], check=True, timeout=60)


def test_an_input_has_the_size_that_windows_expects() -> None:
    assert sizeof(InputRecord) == 40
    assert build_mouse_input(0x800, data=-120).of.mouse.data == 0xFFFFFF88


async def test_somebody_elses_input_stops_ours(careful: NativeInputDriver) -> None:
    await careful.check()
    await careful.move(610, 30)
    somebody("u.mouse_event(1, 5, 5, 0, 0)")
    with pytest.raises(PersonAtWork):
        await careful.move(620, 40)


async def test_the_pointer_in_a_corner_stops_us(hands: NativeInputDriver) -> None:
    somebody("u.SetCursorPos(0, 0)")
    with pytest.raises(Failsafe):
        await hands.move(300, 300)
    somebody("u.SetCursorPos(400, 400)")
    await hands.move(300, 300)


async def test_a_paste_puts_pages_pictures_and_files_back_byte_by_byte(
    worker: ThreadWorker[Any], hands: NativeInputDriver, editor: Window
) -> None:
    page = await worker.run(lambda _: user32.RegisterClipboardFormatW("HTML Format"))
    files = bytes([20, 0, 0, 0, *[0] * 12, 1, 0, 0, 0]) + "C:\\a.txt\0\0".encode("utf-16-le")
    picture = bytes([40, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 24, 0, *[0] * 24, 1, 2, 3, 0])
    put = [(page, b"Version:0.9\r\n<b>x</b>\0"), (CF_DIB, picture), (CF_HDROP, files)]

    def fill(system: Any) -> None:
        with ClipboardOwner() as owner, hold_clipboard_open(owner.window):
            replace_contents([*put, (CF_UNICODETEXT, "x\0".encode("utf-16-le"))])

    await worker.run(fill)
    assert await hands.paste("pasted", parse_chord("ctrl+v"))

    def held(_: Any) -> dict[int, bytes]:
        with hold_clipboard_open(None):
            return dict(read_contents() or ())

    found = await worker.run(held)
    assert {number: found[number][: len(data)] for number, data in put} == dict(put)
    assert "HTML Format" in await hands.clipboard_formats()


async def test_the_wheel_scrolls_a_page(hands: NativeInputDriver, screen: NativeScreen, editor: Window) -> None:
    for piece in await hands.pieces("line\n" * 120):
        await hands.type_piece(piece)
    await hands.chord(parse_chord("ctrl+home"))
    await hands.move(*editor.rect.center)

    async def rest() -> bytes:
        return (await screen.capture(editor.rect)).pixels.tobytes()

    top = await rest()
    for _ in range(5):
        await hands.scroll("down")

    async def scrolled() -> bool:
        return await rest() != top

    await until(scrolled, what="the page to be scrolled")

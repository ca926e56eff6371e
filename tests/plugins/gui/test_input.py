"""Keys, clipboard and pointer on a real display, seen from outside by other programs."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import anyio
import anyio.to_thread
import pytest
from Xlib import X, display

from handrail import Downstream, Failsafe, StaleObservation, Window
from handrail.desktop.key_chords import parse_chord
from handrail_gui.platforms.input_driver import WindowPlacement
from handrail_gui.platforms.x11.input_driver import X11InputDriver
from handrail_gui.platforms.x11.screen import X11Screen
from handrail_gui.private.supervisor_client import PrivateDesktop

from .conftest import TEXT, Programs, held_down, until

MANY_SCRIPTS = "".join(
    map(chr, [*range(0x21, 0x7F), *range(0x391, 0x3A2), *range(0x3B1, 0x3CA), *range(0x4E00, 0x4E40)])
)


@pytest.fixture
async def editor(private: PrivateDesktop, screen: X11Screen, programs: Programs, hands: X11InputDriver) -> Any:
    return await programs.open(private.desktop, screen, "mousepad")


def outside(private: PrivateDesktop, *argv: str, data: bytes | None = None) -> bytes:
    """What another program says of the desktop."""
    environment = {**os.environ, **private.desktop.environment}
    done = subprocess.run(argv, env=environment, input=data, stdout=subprocess.PIPE, check=False, timeout=20)
    return done.stdout


def start_owner(private: PrivateDesktop, target: str, data: bytes, path: Path) -> None:
    """Start a program that comes to own the clipboard. It goes on in the background, so it gets no pipe of ours."""
    path.write_bytes(data)
    subprocess.run(
        ["xclip", "-selection", "clipboard", "-t", target, "-i", str(path)],
        env={**os.environ, **private.desktop.environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=True,
        timeout=20,
    )


async def copy(private: PrivateDesktop, target: str, data: bytes, path: Path) -> None:
    """Let another program own the clipboard."""
    start_owner(private, target, data, path)

    async def owned() -> bool:
        return outside(private, "xclip", "-selection", "clipboard", "-t", target, "-o") == data

    await until(owned, what="the clipboard to be another program's")


async def content(hands: X11InputDriver) -> str | None:
    """The editor's whole text, by its own copying."""
    await hands.write_clipboard("nothing was copied")
    await hands.chord(parse_chord("ctrl+a"))
    await hands.chord(parse_chord("ctrl+c"))

    async def copied() -> str | None:
        text = await hands.clipboard_text()
        return text if text != "nothing was copied" else None

    return await until(copied, what="the editor's text")


@pytest.mark.parametrize("text", [TEXT, "tab\tand\nline", MANY_SCRIPTS], ids=["scripts", "controls", "hundreds"])
async def test_keys_type_any_script(hands: X11InputDriver, editor: Any, text: str):
    for piece in await hands.pieces(text):
        await hands.type_piece(piece)
    await hands.release_all()
    assert await content(hands) == text


async def test_lent_keys_are_given_back(private: PrivateDesktop, hands: X11InputDriver, editor: Any):
    before = outside(private, "xmodmap", "-pke")
    for piece in await hands.pieces(TEXT):
        await hands.type_piece(piece)
    assert outside(private, "xmodmap", "-pke") != before
    await hands.release_all()
    assert outside(private, "xmodmap", "-pke") == before


def leds(private: PrivateDesktop) -> str:
    return outside(private, "xset", "q").decode()


async def test_caps_lock_changes_nothing(private: PrivateDesktop, hands: X11InputDriver, editor: Any):
    await hands.chord(parse_chord("capslock"))
    try:
        for piece in await hands.pieces("Ab äÖ 1"):
            await hands.type_piece(piece)
        assert "00: Caps Lock:   off" in leds(private)
        await hands.release_all()
        assert "00: Caps Lock:   on" in leds(private)
    finally:
        await hands.chord(parse_chord("capslock"))
    assert await content(hands) == "Ab äÖ 1"


async def test_a_paste_is_taken_and_the_clipboard_is_as_before(
    private: PrivateDesktop, hands: X11InputDriver, editor: Any, tmp_path: Path
):
    picture = bytes(range(256)) * 2000
    await copy(private, "image/png", picture, tmp_path / "picture")
    assert await hands.paste(TEXT, parse_chord("ctrl+v"))
    assert outside(private, "xclip", "-selection", "clipboard", "-t", "image/png", "-o") == picture
    assert await hands.clipboard_formats() == ["image/png"]
    assert await content(hands) == TEXT


async def test_a_program_that_is_late_to_read_its_keys_still_gets_what_is_pasted(hands: X11InputDriver, editor: Window):
    assert editor.pid is not None
    os.kill(editor.pid, signal.SIGSTOP)
    # More than it is given to take what it was asked for, and less than it is given to come to it.
    later = threading.Timer(3.5, os.kill, (editor.pid, signal.SIGCONT))
    later.start()
    try:
        assert await hands.paste("spät", parse_chord("ctrl+v"))
    finally:
        later.join()
    assert await content(hands) == "spät"


async def test_a_program_that_is_late_to_read_its_keys_still_reads_the_letters_that_were_typed(
    hands: X11InputDriver, editor: Window
):
    assert editor.pid is not None
    os.kill(editor.pid, signal.SIGSTOP)
    # More than it is given to say that it is there, and less than it is given to come to its keys.
    later = threading.Timer(0.8, os.kill, (editor.pid, signal.SIGCONT))
    later.start()
    try:
        await hands.type_piece("漢字")
        await hands.release_all()
    finally:
        later.join()
    assert await content(hands) == "漢字"


async def test_after_a_paste_an_empty_clipboard_is_empty(private: PrivateDesktop, hands: X11InputDriver, editor: Any):
    async def nobodys() -> bool:
        return not outside(private, "xclip", "-selection", "clipboard", "-o", "-t", "TARGETS")

    await disown(private)
    await until(nobodys, what="a clipboard that nobody owns")
    assert await hands.paste("abc", parse_chord("ctrl+v"))
    assert await nobodys()


async def disown(private: PrivateDesktop) -> None:
    """A program takes the clipboard and ends."""
    with Bare(private) as owner:
        atom = owner.display.get_atom("CLIPBOARD")
        owner.window.set_selection_owner(atom, X.CurrentTime)
        owner.display.sync()


async def test_hands_that_end_let_go(private: PrivateDesktop, hands: X11InputDriver):
    await hands.press("left")
    assert held_down(private.desktop)
    await hands.close()
    assert not held_down(private.desktop)


async def test_a_paste_that_nobody_takes_is_said(hands: X11InputDriver, screen: X11Screen):
    assert await hands.paste("abc", parse_chord("ctrl+v")) is False


async def test_large_texts_go_both_ways_in_pieces(private: PrivateDesktop, hands: X11InputDriver, tmp_path: Path):
    large = "0123456789 ä漢\n" * 60_000
    await hands.write_clipboard(large)
    environment = {**os.environ, **private.desktop.environment}
    read = await anyio.run_process(["xclip", "-selection", "clipboard", "-o"], env=environment)
    assert read.stdout.decode() == large
    await copy(private, "UTF8_STRING", large.encode(), tmp_path / "large")
    assert await hands.clipboard_text() == large


async def test_a_person_in_a_corner_stops_input(private: PrivateDesktop, hands: X11InputDriver):
    outside(private, "xdotool", "mousemove", "0", "0")
    for attempt in (
        hands.click("left", 1),
        hands.type_piece("a"),
        hands.chord(parse_chord("a")),
        hands.paste("a", parse_chord("ctrl+v")),
        hands.move(5, 5),
    ):
        with pytest.raises(Failsafe, match="corner"):
            await attempt
    outside(private, "xdotool", "mousemove", "300", "300")
    await hands.move(5, 5)


async def test_a_corner_that_we_went_to_stops_nothing(hands: X11InputDriver):
    await hands.move(0, 0)
    await hands.click("left", 1)
    await hands.move(1279, 799)
    await hands.click("left", 1)
    assert await hands.pointer() == (1279, 799)


async def test_the_failsafe_lets_go_of_buttons(private: PrivateDesktop, hands: X11InputDriver):
    await hands.move(300, 300)
    await hands.press("left")
    outside(private, "xdotool", "mousemove", "0", "0")
    assert held_down(private.desktop)
    with pytest.raises(Failsafe):
        await hands.move(10, 10)
    assert not held_down(private.desktop)
    outside(private, "xdotool", "mousemove", "300", "300")


async def test_windows_are_placed_and_maximized_as_asked(hands: X11InputDriver, screen: X11Screen, editor: Any):
    placed = (await hands.place(editor.id, WindowPlacement(100, 150, 500, 400))).window
    assert placed is not None
    assert (placed.rect.x, placed.rect.y, placed.rect.width, placed.rect.height) == (100, 150, 500, 400)
    assert await hands.maximize(editor.id)
    assert await hands.maximize(editor.id)
    assert (await screen.windows())[0].state == "maximized"
    assert await hands.restore(editor.id)
    left = (await hands.place_in(editor.id, "left_half")).window
    assert left is not None
    assert left.rect.x <= 2
    assert 630 <= left.rect.right <= 640


async def test_a_window_says_what_a_task_list_would(screen: X11Screen, editor: Any):
    (window,) = await screen.windows()
    assert window.process == "mousepad"
    assert window.title == "Untitled 1 - Mousepad"
    assert (window.state, window.active, window.monitor) == ("normal", True, 0)
    assert not window.rect.empty


async def test_a_clipboard_whose_owner_does_not_answer_is_an_error(
    private: PrivateDesktop, hands: X11InputDriver, programs: Any, tmp_path: Path
):
    (tmp_path / "copied").write_text("copied")
    owner = programs.start(
        private.desktop, "xclip", "-quiet", "-selection", "clipboard", "-i", str(tmp_path / "copied")
    )

    async def copied() -> bool:
        return await hands.clipboard_text() == "copied"

    await until(copied, what="the program to own the clipboard")
    owner.send_signal(signal.SIGSTOP)
    for reading in (hands.clipboard_text, hands.clipboard_formats):
        with pytest.raises(Downstream, match="does not answer"):
            await reading()


class Bare:
    """A window that no window manager touches, of a program of its own."""

    def __init__(self, private: PrivateDesktop) -> None:
        self.display = display.Display(str(private.desktop.display))
        self.window = self.display.screen().root.create_window(
            300, 200, 200, 200, 0, X.CopyFromParent, event_mask=X.ButtonPressMask, override_redirect=True
        )

    def show(self) -> None:
        self.window.map()
        self.display.sync()

    def pressed(self) -> bool:
        return any(self.display.next_event().type == X.ButtonPress for _ in range(self.display.pending_events()))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.display.close()


async def test_no_window_comes_up_between_the_last_look_and_the_press(private: PrivateDesktop, hands: X11InputDriver):
    with Bare(private) as aimed_at, Bare(private) as intruder:
        aimed_at.show()
        await hands.move(400, 300)
        comes_up = threading.Thread(target=intruder.show)

        def look(surfaces: Sequence[Window]) -> None:
            assert surfaces[0].id == hex(aimed_at.window.id)
            comes_up.start()
            # It would be there by then, if anything could.
            comes_up.join(0.5)

        await hands.click("left", 1, look)
        await anyio.to_thread.run_sync(comes_up.join)
        aimed_at.display.sync()
        assert (aimed_at.pressed(), intruder.pressed()) == (True, False)


async def test_what_is_wrong_at_the_last_look_keeps_the_button_up_and_lets_others_go_on(
    private: PrivateDesktop, hands: X11InputDriver
):
    with Bare(private) as aimed_at:
        aimed_at.show()
        await hands.move(400, 300)

        def refuse(surfaces: Sequence[Window]) -> None:
            raise StaleObservation("another window is there")

        for act in (hands.click("left", 1, refuse), hands.press("left", refuse)):
            with pytest.raises(StaleObservation):
                await act
        # Nobody would be answered otherwise.
        with anyio.fail_after(20):
            await anyio.to_thread.run_sync(aimed_at.display.sync)
        assert not aimed_at.pressed()

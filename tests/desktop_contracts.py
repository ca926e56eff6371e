"""What the adapters of every platform promise of a desktop, on a real one: subclasses give a screen, its hands, and a program to work."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Any

import anyio
import pytest

from handrail import OutOfRange, Rect, Screen, Window
from handrail.desktop.key_chords import parse_chord
from handrail_gui.platforms.geometry import bounding_rect
from handrail_gui.platforms.input_driver import InputDriver, WindowPlacement

DEADLINE_S = 60.0

# Letters of several scripts, what XML and shells would change, and a character outside the first plane.
TEXT = "Ergebnis: 100 — 漢字 ✓ 😀 <>&\"'~"


async def until(condition: Callable[[], Awaitable[Any]], *, what: str) -> Any:
    """The first true value of a condition; fails the test when there is none in time."""
    deadline = monotonic() + DEADLINE_S
    while not (found := await condition()):
        assert monotonic() < deadline, f"waited {DEADLINE_S:g} s in vain for {what}"
        await anyio.sleep(0.02)
    return found


class DesktopContract:
    """Subclass it where there are the fixtures `screen`, `hands` and `editor`, the window of an empty text editor that is active."""

    async def test_a_picture_has_one_pixel_for_each_of_the_screens(self, screen: Screen) -> None:
        monitors = await screen.monitors()
        frame = await screen.capture()
        assert frame.screen == bounding_rect(monitors)
        assert frame.pixels.shape == (frame.screen.height, frame.screen.width, 3)
        corner = Rect(frame.screen.right - 30, frame.screen.bottom - 20, 100, 100)
        assert (await screen.capture(corner)).pixels.shape == (20, 30, 3)
        with pytest.raises(OutOfRange):
            await screen.capture(Rect(frame.screen.right, 0, 10, 10))

    async def test_a_program_is_in_the_task_list_as_it_is(self, screen: Screen, editor: Window) -> None:
        (found,) = [window for window in await screen.windows() if window.id == editor.id]
        assert found.pid
        assert found.process
        assert found.title
        assert found.state == "normal"
        assert found.active
        frame = found.frame
        assert frame is not None
        assert frame.intersect(found.rect) == found.rect
        assert (await screen.monitors())[found.monitor].intersect(frame) != Rect(0, 0, 0, 0)

    async def test_the_window_on_top_covers_its_place(self, screen: Screen, hands: InputDriver, editor: Window) -> None:
        x, y = editor.rect.center
        covering = next(surface for surface in await hands.surfaces() if surface.rect.contains(x, y))
        assert covering.pid == editor.pid

    async def test_the_pointer_goes_to_the_very_pixel(self, screen: Screen, hands: InputDriver) -> None:
        area = bounding_rect(await screen.monitors())
        for x in (area.x + 1, area.center[0], area.right - 2, 333):
            point = (x, area.y + 1 + x % (area.height - 2))
            await hands.move(*point)

            async def there(point: tuple[int, int] = point) -> bool:
                return await hands.pointer() == point

            # Wine asks the X server where the pointer is, which may not have moved it yet.
            await until(there, what=f"the pointer at {point}")

    async def test_text_of_every_script_is_typed_as_it_is(self, hands: InputDriver, editor: Window) -> None:
        for piece in await hands.pieces(TEXT):
            await hands.type_piece(piece)
        await hands.worked_through()
        await until(lambda: self._holds(hands, TEXT), what="the typed text")

    async def test_a_paste_gives_the_clipboard_back(self, hands: InputDriver, editor: Window) -> None:
        await hands.write_clipboard("a person's own ✓")
        before = sorted(await hands.clipboard_formats())
        assert await hands.paste(TEXT, parse_chord("ctrl+v"))
        assert await hands.clipboard_text() == "a person's own ✓"
        assert sorted(await hands.clipboard_formats()) == before
        await until(lambda: self._holds(hands, TEXT), what="the pasted text")

    async def test_a_paste_that_nobody_takes_is_told(self, hands: InputDriver, editor: Window) -> None:
        await hands.write_clipboard("kept")
        assert not await hands.paste("lost", parse_chord("f12"))
        assert await hands.clipboard_text() == "kept"

    async def test_the_clipboard_keeps_any_text(self, hands: InputDriver) -> None:
        long = TEXT * 5000
        for text in (TEXT, "two\nlines\n", "", long):
            await hands.write_clipboard(text)
            assert await hands.clipboard_text() == text
        assert await hands.clipboard_formats()

    async def test_a_window_becomes_what_it_is_asked_to(
        self, screen: Screen, hands: InputDriver, editor: Window
    ) -> None:
        async def state() -> tuple[str, Rect]:
            (found,) = [window for window in await screen.windows() if window.id == editor.id]
            return found.state, found.rect

        assert await hands.maximize(editor.id)
        assert (await state())[0] == "maximized"
        assert await hands.restore(editor.id)
        assert await state() == ("normal", editor.rect)
        assert await hands.minimize(editor.id)
        assert (await state())[0] == "minimized"
        assert await hands.activate(editor.id)
        assert (await state())[0] == "normal"

    async def test_a_window_goes_where_it_is_put(self, screen: Screen, hands: InputDriver, editor: Window) -> None:
        placed = await hands.place(editor.id, WindowPlacement(120, 140, 520, 330))
        assert placed.done
        assert placed.window is not None
        assert placed.window.rect == Rect(120, 140, 520, 330)
        moved = await hands.place(editor.id, WindowPlacement(x=60))
        assert moved.done
        assert moved.window is not None
        assert moved.window.rect == Rect(60, 140, 520, 330)
        half = await hands.place_in(editor.id, "right_half")
        monitor = (await screen.monitors())[0]
        assert half.done
        assert half.window is not None
        assert half.window.frame is not None
        assert half.window.frame.right == monitor.right
        assert half.window.frame.x == monitor.center[0]

    async def test_a_window_closes_when_its_program_is_asked(
        self, screen: Screen, hands: InputDriver, editor: Window
    ) -> None:
        assert await hands.ask_to_close(editor.id)
        assert editor.id not in [window.id for window in await screen.windows()]

    async def _holds(self, hands: InputDriver, text: str) -> bool:
        await hands.chord(parse_chord("ctrl+a"))
        await hands.chord(parse_chord("ctrl+c"))
        return await hands.clipboard_text() == text

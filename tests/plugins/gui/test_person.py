"""A person's own mouse and keyboard on a desktop that agents use, too."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from time import monotonic

import anyio
import anyio.lowlevel
import pytest

from handrail import PersonAtWork
from handrail.desktop.key_chords import parse_chord
from handrail_gui.platforms.x11.connection import X11Connection
from handrail_gui.platforms.x11.input_driver import X11InputDriver
from handrail_gui.platforms.x11.pointer import XTestPointer
from handrail_gui.platforms.x11.screen import X11Screen
from handrail_gui.platforms.x11.user_activity import UserActivity as Watched
from handrail_gui.private.supervisor_client import PrivateDesktop

from .conftest import Programs, held_down, until
from .devices import Person

# Much longer than a person at work pauses here, so that a busy machine makes no other person of them.
PAUSE_S = 1.0


@pytest.fixture
def person(private: PrivateDesktop) -> Iterator[Person]:
    found = Person(str(private.desktop.display))
    yield found
    found.leave()


@pytest.fixture
async def hands(connection: X11Connection, screen: X11Screen) -> AsyncIterator[X11InputDriver]:
    """Hands on a screen that is a person's, too."""
    watched = Watched(PAUSE_S)
    await connection.run(watched.watch)
    mouse = XTestPointer(person=watched)
    await connection.run(lambda client: XTestPointer(private=True).move(client, 600, 400))
    found = X11InputDriver(connection, mouse=mouse, person=watched)
    await found.check()
    yield found
    await found.close()


@pytest.mark.parametrize("by", ["key", "mouse"])
async def test_whatever_a_person_does_stops_input_at_the_next_step_and_nothing_stays_pressed(
    private: PrivateDesktop, hands: X11InputDriver, person: Person, by: str
):
    await hands.press("right")
    person.press_key() if by == "key" else person.click()
    assert held_down(private.desktop)
    for step in (
        hands.move(5, 5),
        hands.click("left", 1),
        hands.type_piece("a"),
        hands.chord(parse_chord("a")),
        hands.paste("a", parse_chord("ctrl+v")),
    ):
        with pytest.raises(PersonAtWork, match="person is using"):
            await step
        assert not held_down(private.desktop)
    await hands.check()
    await hands.click("left", 1)


async def test_input_waits_until_the_person_is_done(hands: X11InputDriver, person: Person):
    last = monotonic()

    async def work() -> None:
        nonlocal last
        for _ in range(3):
            last = monotonic()
            person.press_key()
            await anyio.sleep(PAUSE_S / 10)

    async with anyio.create_task_group() as group:
        group.start_soon(work)
        await anyio.lowlevel.checkpoint()
        await hands.check()
        waited = monotonic() - last
    assert waited >= PAUSE_S
    await hands.move(7, 7)


async def test_what_programs_send_is_no_person(hands: X11InputDriver, connection: X11Connection):
    await X11InputDriver(connection, mouse=XTestPointer(private=True)).type_piece("typed by a program")
    await hands.move(9, 9)


async def test_a_person_is_seen_while_a_menu_holds_the_keyboard(
    private: PrivateDesktop, hands: X11InputDriver, screen: X11Screen, programs: Programs, person: Person
):
    await programs.open(private.desktop, screen, "mousepad")
    await hands.chord(parse_chord("shift+f10"))

    async def opened() -> bool:
        return any(surface.state == "popup" for surface in await hands.surfaces())

    await until(opened, what="the editor's menu")
    person.press_key(111)
    with pytest.raises(PersonAtWork):
        await hands.chord(parse_chord("enter"))


async def test_a_persons_own_hand_is_not_stopped_by_another(hands: X11InputDriver, person: Person):
    person.press_key()
    await hands.by_hand().move(0, 0)
    await hands.by_hand().click("left", 1)
    assert await hands.pointer() == (0, 0)
    await hands.by_hand().move(300, 300)

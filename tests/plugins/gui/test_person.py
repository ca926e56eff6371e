"""A person's own mouse and keyboard on a desktop that agents use, too."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from time import monotonic

import anyio
import anyio.lowlevel
import pytest

from handrail import PersonAtWork
from handrail.desktops.chords import chord_of
from handrail_gui.private.client import PrivateDesktop
from handrail_gui.x11.connection import Connection
from handrail_gui.x11.hands import X11Hands
from handrail_gui.x11.person import Person as Watched
from handrail_gui.x11.pointer import Mouse
from handrail_gui.x11.screen import X11Screen

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
async def hands(connection: Connection, screen: X11Screen) -> AsyncIterator[X11Hands]:
    """Hands on a screen that is a person's, too."""
    watched = Watched(PAUSE_S)
    await connection.run(watched.watch)
    mouse = Mouse(person=watched)
    await connection.run(lambda client: Mouse(private=True).move(client, 600, 400))
    found = X11Hands(connection, mouse=mouse, person=watched)
    await found.check()
    yield found
    await found.close()


@pytest.mark.parametrize("by", ["key", "mouse"])
async def test_whatever_a_person_does_stops_input_at_the_next_step_and_nothing_stays_pressed(
    private: PrivateDesktop, hands: X11Hands, person: Person, by: str
):
    await hands.press("right")
    person.press_key() if by == "key" else person.click()
    assert held_down(private.desktop)
    for step in (
        hands.move(5, 5),
        hands.click("left", 1),
        hands.type_piece("a"),
        hands.chord(chord_of("a")),
        hands.paste("a", chord_of("ctrl+v")),
    ):
        with pytest.raises(PersonAtWork, match="person is using"):
            await step
        assert not held_down(private.desktop)
    await hands.check()
    await hands.click("left", 1)


async def test_input_waits_until_the_person_is_done(hands: X11Hands, person: Person):
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


async def test_what_programs_send_is_no_person(hands: X11Hands, connection: Connection):
    await X11Hands(connection, mouse=Mouse(private=True)).type_piece("typed by a program")
    await hands.move(9, 9)


async def test_a_person_is_seen_while_a_menu_holds_the_keyboard(
    private: PrivateDesktop, hands: X11Hands, screen: X11Screen, programs: Programs, person: Person
):
    await programs.open(private.desktop, screen, "mousepad")
    await hands.chord(chord_of("shift+f10"))

    async def opened() -> bool:
        return any(surface.state == "popup" for surface in await hands.surfaces())

    await until(opened, what="the editor's menu")
    person.press_key(111)
    with pytest.raises(PersonAtWork):
        await hands.chord(chord_of("enter"))


async def test_a_persons_own_hand_is_not_stopped_by_another(hands: X11Hands, person: Person):
    person.press_key()
    await hands.by_hand().move(0, 0)
    await hands.by_hand().click("left", 1)
    assert await hands.pointer() == (0, 0)
    await hands.by_hand().move(300, 300)

"""What changed between two looks at a window, in words, and waiting until it has stopped changing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import anyio

from handrail import Downstream, Element
from handrail.desktops.patience import patience
from handrail_accessibility.control import Control, Scene
from handrail_accessibility.telling import titled

LOOK_AGAIN_S = 0.03
# A GTK button stays pressed for a tenth of a second after its action; a shorter calm would report that as the change.
CALM_S = 0.15
# Looks in a row that show the same: a starved program answers seldom, and does little between two answers.
CALM_LOOKS = 3
# How long nothing at all may happen before that is the answer, and how long something may go on.
PATIENCE_S = 0.7
LONGEST_S = 2.5

MOST_TOLD = 6
# They move by themselves.
RESTLESS = frozenset({"progress bar"})


@dataclass(frozen=True, slots=True)
class After:
    """The window once it is calm.

    `stirred`: the element itself changed and changed back, as a button does that was pressed. `silent`: its program does not answer.
    """

    scene: Scene
    stirred: bool = False
    silent: bool = False


async def settled(control: Control, element: Element, before: Scene) -> After:
    """The window when it has been calm for a moment after a change; as it is, when nothing changes or nothing ever rests."""
    began = changed = anyio.current_time()
    longest = patience(LONGEST_S)
    last, stirred, alike = before, False, 0
    own = _by_identity(before).get(element.fingerprint)
    while True:
        try:
            scene = await control.scene(element)
            silent = False
        except Downstream:
            # Busy with what it was asked for: not a reason to say that it failed.
            scene, silent = last, True
        now = anyio.current_time()
        alike += 1
        if looks(scene) != looks(last):
            last, changed, alike = scene, now, 1
        stirred |= scene.open and own is not None and _by_identity(scene).get(element.fingerprint, own) != own
        moved = stirred or looks(last) != looks(before)
        # What it does comes when it is let go.
        if _held(_by_identity(scene).get(element.fingerprint), own) and now - began < longest:
            changed = now
        calm = alike >= CALM_LOOKS and now - changed >= patience(CALM_S if moved else PATIENCE_S)
        # What shows a change and never rests is no slower for that on a busy machine.
        if calm or now - began >= (LONGEST_S if moved else longest):
            return After(last, stirred, silent)
        await anyio.sleep(LOOK_AGAIN_S)


def _held(now: Element | None, before: Element | None) -> bool:
    """Whether it is a button that is just being pressed."""
    if now is None or before is None or now.role != "button":
        return False
    return "pressed" in now.states - before.states


def looks(scene: Scene) -> tuple[object, ...]:
    """All that can be seen, without what moves by itself: equal for two looks between which nothing happened."""
    return (scene.titles, scene.open, *(_look(element) for element in scene.elements if element.role not in RESTLESS))


def _look(element: Element) -> tuple[object, ...]:
    return element.role, element.text, element.value, element.states, element.rect


def changes(before: Scene, after: Scene) -> tuple[str, ...]:
    """One sentence for each change that a person could see, the most telling first; a focus that moved is none."""
    told = _windows(before.titles, after.titles)
    if not after.open:
        return tuple(told) if told or not before.open else ("its window closed",)
    old, new = _by_identity(before), _by_identity(after)
    pairs = [(old[key], element) for key, element in new.items() if key in old]
    told += [sentence for was, now in pairs for sentence in _differences(was, now)]
    # Qt makes a new object for a column header at each look, which is no change.
    told += _listed("appeared", _unlike((e for key, e in new.items() if key not in old), old.values()))
    told += _listed("disappeared", _unlike((e for key, e in old.items() if key not in new), new.values()))
    if not told and any(was.rect != now.rect for was, now in pairs):
        told.append("its window was scrolled or laid out anew")
    rest = len(told) - MOST_TOLD
    return (*told[:MOST_TOLD], f"and {rest} more changes") if rest > 0 else tuple(told)


def _windows(before: Mapping[Any, str], after: Mapping[Any, str]) -> list[str]:
    opened = [title for key, title in after.items() if key not in before]
    closed = [title for key, title in before.items() if key not in after]
    renamed = [(before[key], title) for key, title in after.items() if before.get(key, title) != title]
    # A window that a program has made anew is no other to a person.
    told = [f"window {titled(title)!r} opened" for title in opened if title not in closed]
    told += [f"window {titled(title)!r} closed" for title in closed if title not in opened]
    return told + [f"window {titled(was)!r} is now called {titled(now)!r}" for was, now in renamed]


def named(element: Element) -> str:
    """Role and name, as a person would point at it."""
    return f"{element.role} {element.text!r}" if element.text else f"unnamed {element.role}"


def _by_identity(scene: Scene) -> dict[str, Element]:
    return {element.fingerprint: element for element in scene.elements if element.role not in RESTLESS}


def _unlike(elements: Iterable[Element], others: Iterable[Element]) -> list[Element]:
    known = {_look(other) for other in others}
    return [element for element in elements if _look(element) not in known]


def _differences(was: Element, now: Element) -> list[str]:
    told: list[str] = []
    if was.value != now.value:
        told.append(f"{named(now)} went from {_short(was.value)} to {_short(now.value)}")
    if was.text != now.text:
        told.append(f"{named(was)} is now {now.text!r}")
    gained, lost = (now.states - was.states) - {"focused"}, (was.states - now.states) - {"focused"}
    if gained:
        told.append(f"{named(now)} is now {', '.join(sorted(gained))}")
    if lost:
        told.append(f"{named(now)} is no longer {', '.join(sorted(lost))}")
    return told


def _listed(what: str, elements: Iterable[Element]) -> list[str]:
    found = [element for element in elements if element.text or element.value]
    if not found:
        return []
    first = ", ".join(named(element) for element in found[:3])
    return [f"{first}{f' and {len(found) - 3} more' if len(found) > 3 else ''} {what}"]


def _short(value: str | None) -> str:
    if value is None:
        return "nothing"
    return repr(value if len(value) <= 60 else value[:60] + "…")

"""Comparison of two snapshots of a window, in words, and waiting until it stops changing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import anyio

from handrail import Downstream, Element
from handrail.desktop.load_timeouts import scale_timeout
from handrail_accessibility.tree.protocol import AccessibilityController, WindowSnapshot
from handrail_accessibility.tree.wording import format_title

SNAPSHOT_POLL_S = 0.03
# A GTK button stays pressed for a tenth of a second after its action; a shorter calm would report that as the change.
SETTLE_TIME_S = 0.15
# Looks in a row that show the same: a starved program answers seldom, and does little between two answers.
MIN_SETTLED_SNAPSHOTS = 3
# How long nothing at all may happen before that is the answer, and how long something may go on.
NO_CHANGE_TIMEOUT_S = 0.7
MAX_SETTLE_S = 2.5

MAX_REPORTED_CHANGES = 6
# They move by themselves.
SELF_CHANGING_ROLES = frozenset({"progress bar"})


@dataclass(frozen=True, slots=True)
class SettledWindow:
    """The window once it is calm.

    `stirred`: the element itself changed and changed back, as a button does that was pressed. `silent`: its program does not answer.
    """

    scene: WindowSnapshot
    stirred: bool = False
    silent: bool = False


async def wait_until_settled(
    control: AccessibilityController, element: Element, before: WindowSnapshot
) -> SettledWindow:
    """Return the window once it has been quiet for a moment after a change.

    If nothing changes or it never becomes quiet, the window is returned as it is.
    """
    began = changed = anyio.current_time()
    longest = scale_timeout(MAX_SETTLE_S)
    last, stirred, alike = before, False, 0
    own = _index_by_fingerprint(before).get(element.fingerprint)
    while True:
        try:
            scene = await control.scene(element)
            silent = False
        except Downstream:
            # Busy with what it was asked for: not a reason to say that it failed.
            scene, silent = last, True
        now = anyio.current_time()
        alike += 1
        if comparison_key(scene) != comparison_key(last):
            last, changed, alike = scene, now, 1
        stirred |= scene.open and own is not None and _index_by_fingerprint(scene).get(element.fingerprint, own) != own
        moved = stirred or comparison_key(last) != comparison_key(before)
        # What it does comes when it is let go.
        if _is_being_pressed(_index_by_fingerprint(scene).get(element.fingerprint), own) and now - began < longest:
            changed = now
        calm = alike >= MIN_SETTLED_SNAPSHOTS and now - changed >= scale_timeout(
            SETTLE_TIME_S if moved else NO_CHANGE_TIMEOUT_S
        )
        # What shows a change and never rests is no slower for that on a busy machine.
        if calm or now - began >= (MAX_SETTLE_S if moved else longest):
            return SettledWindow(last, stirred, silent)
        await anyio.sleep(SNAPSHOT_POLL_S)


def _is_being_pressed(now: Element | None, before: Element | None) -> bool:
    """Return True if the element is a button that has just been pressed."""
    if now is None or before is None or now.role != "button":
        return False
    return "pressed" in now.states - before.states


def comparison_key(scene: WindowSnapshot) -> tuple[object, ...]:
    """Return all that is visible except what changes on its own.

    Equal for two snapshots if nothing happened in between.
    """
    return (
        scene.titles,
        scene.open,
        *(_element_key(element) for element in scene.elements if element.role not in SELF_CHANGING_ROLES),
    )


def _element_key(element: Element) -> tuple[object, ...]:
    return element.role, element.text, element.value, element.states, element.rect


def describe_changes(before: WindowSnapshot, after: WindowSnapshot) -> tuple[str, ...]:
    """Return one sentence per change visible to a user, the most informative first; a moved focus does not count."""
    told = _describe_window_changes(before.titles, after.titles)
    if not after.open:
        return tuple(told) if told or not before.open else ("its window closed",)
    old, new = _index_by_fingerprint(before), _index_by_fingerprint(after)
    pairs = [(old[key], element) for key, element in new.items() if key in old]
    told += [sentence for was, now in pairs for sentence in _describe_differences(was, now)]
    # Qt makes a new object for a column header at each look, which is no change.
    told += _summarize_elements(
        "appeared", _exclude_identical((e for key, e in new.items() if key not in old), old.values())
    )
    told += _summarize_elements(
        "disappeared", _exclude_identical((e for key, e in old.items() if key not in new), new.values())
    )
    if not told and any(was.rect != now.rect for was, now in pairs):
        told.append("its window was scrolled or laid out anew")
    rest = len(told) - MAX_REPORTED_CHANGES
    return (*told[:MAX_REPORTED_CHANGES], f"and {rest} more changes") if rest > 0 else tuple(told)


def _describe_window_changes(before: Mapping[Any, str], after: Mapping[Any, str]) -> list[str]:
    opened = [title for key, title in after.items() if key not in before]
    closed = [title for key, title in before.items() if key not in after]
    renamed = [(before[key], title) for key, title in after.items() if before.get(key, title) != title]
    # A window that a program has made anew is no other to a person.
    told = [f"window {format_title(title)!r} opened" for title in opened if title not in closed]
    told += [f"window {format_title(title)!r} closed" for title in closed if title not in opened]
    return told + [f"window {format_title(was)!r} is now called {format_title(now)!r}" for was, now in renamed]


def describe_element(element: Element) -> str:
    """Describe the element by role and name, as a user would refer to it."""
    return f"{element.role} {element.text!r}" if element.text else f"unnamed {element.role}"


def _index_by_fingerprint(scene: WindowSnapshot) -> dict[str, Element]:
    return {element.fingerprint: element for element in scene.elements if element.role not in SELF_CHANGING_ROLES}


def _exclude_identical(elements: Iterable[Element], others: Iterable[Element]) -> list[Element]:
    known = {_element_key(other) for other in others}
    return [element for element in elements if _element_key(element) not in known]


def _describe_differences(was: Element, now: Element) -> list[str]:
    told: list[str] = []
    if was.value != now.value:
        told.append(f"{describe_element(now)} went from {_format_value(was.value)} to {_format_value(now.value)}")
    if was.text != now.text:
        told.append(f"{describe_element(was)} is now {now.text!r}")
    gained, lost = (now.states - was.states) - {"focused"}, (was.states - now.states) - {"focused"}
    if gained:
        told.append(f"{describe_element(now)} is now {', '.join(sorted(gained))}")
    if lost:
        told.append(f"{describe_element(now)} is no longer {', '.join(sorted(lost))}")
    return told


def _summarize_elements(what: str, elements: Iterable[Element]) -> list[str]:
    found = [element for element in elements if element.text or element.value]
    if not found:
        return []
    first = ", ".join(describe_element(element) for element in found[:3])
    return [f"{first}{f' and {len(found) - 3} more' if len(found) > 3 else ''} {what}"]


def _format_value(value: str | None) -> str:
    if value is None:
        return "nothing"
    return repr(value if len(value) <= 60 else value[:60] + "…")

"""When an action has taken effect, and what it changed: waiting until pixels, windows and tree are quiet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Any

import anyio

from handrail import Accessibility, Element, Frame, Glance, HandrailError, Rect, Screen, Window
from handrail.desktops.patience import patience
from handrail_gui import outline
from handrail_gui.hands import Hands

if TYPE_CHECKING:
    from cv2.typing import MatLike

# Seconds without a change that count as quiet, between two looks, and at most altogether.
QUIET_S = 0.1
LOOK_S = 0.02
# Seconds that the screen is watched before an action, for what moves by itself.
WATCHED_S = 0.05
CEILING_S = 2.0
# How long nothing at all may happen, and in how many looks at the tree, before that is the answer. A starved program has read the input
# long before it shows what it made of it.
PATIENCE_S = 0.5
PATIENT_LOOKS = 3

# What may have come of an animation that went on, where there is one.
BY_ITSELF = frozenset({"tree", "restless"})

# A caret that blinks: no taller and wider than this, in pixels, and nobody did it.
CARET = (3, 48)


@dataclass(frozen=True, slots=True)
class Scene:
    """The screen at one moment. `tree` is what the accessibility tree says, None where there is none.

    `restless` is the part of it that changed by itself while it was looked at: an animation, a clock.
    """

    frame: Frame
    windows: Sequence[Window]
    tree: Glance | None
    restless: Rect | None = None

    @property
    def focused(self) -> Element | None:
        return None if self.tree is None else self.tree.focused


@dataclass(frozen=True, slots=True)
class Settled:
    """How it went on after an action: whether it came to rest, and what is different.

    `apart`: all that is different are pixels away from what was acted on.
    """

    settled: bool
    changed: dict[str, Any]
    restless: bool = False
    apart: bool = False

    @property
    def effect(self) -> str:
        """Confirmed when something changed, none when nothing did for long enough.

        Unverified where it may have changed by itself, as something did before, or another program may have changed it.
        """
        if self.apart:
            return "unverified"
        told = self.changed.keys() - BY_ITSELF if self.restless else self.changed.keys()
        return "confirmed" if told else "unverified" if self.changed or not self.settled else "none"


async def scene(screen: Screen, accessibility: Accessibility | None) -> Scene:
    """The screen as it is now."""
    first, began = await screen.capture(), monotonic()
    windows, tree = await screen.windows(), await _glance(accessibility)
    await anyio.sleep(max(0.0, began + WATCHED_S - monotonic()))
    frame = await screen.capture()
    restless = changed_region(first, frame)
    if restless is not None:
        # What goes on is an animation; what has happened once is how the program shows that the pointer has come.
        await anyio.sleep(WATCHED_S)
        first, frame = frame, await screen.capture()
        restless = changed_region(first, frame)
    return Scene(frame, windows, tree, restless)


async def settle(
    before: Scene,
    screen: Screen,
    hands: Hands,
    accessibility: Accessibility | None,
    *,
    patient: bool = False,
    acted_on: Sequence[Rect] = (),
) -> Settled:
    """Wait until nothing has changed for a tenth of a second, two seconds at most, and compare with `before`.

    `patient`: where nothing has changed that may come of the action, for half a second. On a busy machine all of that is longer.
    `acted_on`: the places that it went to, where they are known.
    """
    began = monotonic()
    restless = before.restless is not None
    # A whole screen that moves is not ignored: nothing would be left to be seen.
    ignored = before.restless if before.restless and _is_small(before.restless, before.frame.screen) else None
    await hands.worked_through()
    frame, tree = await screen.capture(), await _glance(accessibility)
    quiet_since, looks = monotonic(), 1
    while monotonic() - began < patience(CEILING_S):
        await anyio.sleep(LOOK_S)
        now = await screen.capture()
        if not _same(frame, now, ignored):
            frame, quiet_since = now, monotonic()
        elif monotonic() - quiet_since >= QUIET_S:
            current, looks = await _glance(accessibility), looks + 1
            if _said(current) != _said(tree):
                tree, quiet_since = current, monotonic()
                continue
            changed = compare(before, Scene(frame, await screen.windows(), current))
            apart = await _is_apart(changed, acted_on, hands)
            waited = looks >= PATIENT_LOOKS and monotonic() - began >= patience(PATIENCE_S)
            if (changed and not apart) or not patient or waited:
                return Settled(True, changed, restless, apart)
    changed = compare(before, Scene(frame, await screen.windows(), tree))
    return Settled(False, changed, restless, await _is_apart(changed, acted_on, hands))


def compare(before: Scene, after: Scene) -> dict[str, Any]:
    """What differs: windows opened, closed, retitled; the active window; the focus; the region of the screen; the tree."""
    changed = _windows(before.windows, after.windows)
    if (focus := _identity(after.focused)) != _identity(before.focused) and after.focused is not None and focus:
        changed["focused"] = outline.describe(after.focused)
    region = changed_region(before.frame, after.frame, before.restless)
    if region is not None:
        changed["region"] = region.corners()
    elif before.restless is not None and not _is_small(before.restless, before.frame.screen):
        changed["restless"] = True
    if None not in (_said(before.tree), _said(after.tree)) and _said(before.tree) != _said(after.tree):
        changed["tree"] = True
    return changed


def changed_region(before: Frame, after: Frame, ignored: Rect | None = None) -> Rect | None:
    """The part of the screen that differs, in screen pixels; None when none does, or no more than a caret. `ignored`: a part that may."""
    from handrail_gui.opencv import cv2

    if before.pixels.shape != after.pixels.shape:
        return after.screen
    was: MatLike = before.pixels
    now: MatLike = after.pixels
    different = cv2.absdiff(was, now).max(axis=2)
    if ignored is not None:
        x, y = ignored.x - before.screen.x, ignored.y - before.screen.y
        different[max(0, y) : max(0, y + ignored.height), max(0, x) : max(0, x + ignored.width)] = 0
    x, y, width, height = cv2.boundingRect(different)
    if width == 0 or (width <= CARET[0] and height <= CARET[1]):
        return None
    return Rect(before.screen.x + x, before.screen.y + y, width, height)


async def _is_apart(changed: dict[str, Any], acted_on: Sequence[Rect], hands: Hands) -> bool:
    """Whether only pixels changed, and none of what was acted on or of a menu: another program may have done that."""
    if changed.keys() != {"region"} or not acted_on:
        return False
    left, top, right, bottom = changed["region"]
    region = Rect(left, top, right - left, bottom - top)
    popups = [surface.rect for surface in await hands.surfaces() if surface.state == "popup"]
    return all(region.intersect(place).empty for place in (*acted_on, *popups))


def _same(one: Frame, other: Frame, ignored: Rect | None) -> bool:
    import numpy as np

    if np.array_equal(one.pixels, other.pixels):
        return True
    return ignored is not None and changed_region(one, other, ignored) is None


def _is_small(part: Rect, whole: Rect) -> bool:
    return 4 * part.width * part.height < whole.width * whole.height


def _windows(before: Sequence[Window], after: Sequence[Window]) -> dict[str, Any]:
    old, new = {window.id: window for window in before}, {window.id: window for window in after}
    both = [(old[id], new[id]) for id in new if id in old]
    found = {
        "windows_opened": [outline.title_of(window) for id, window in new.items() if id not in old],
        "windows_closed": [outline.title_of(window) for id, window in old.items() if id not in new],
        "titles": [outline.title_of(now) for was, now in both if was.title != now.title],
        "windows_moved": [outline.title_of(now) for was, now in both if (was.rect, was.state) != (now.rect, now.state)],
    }
    changed: dict[str, Any] = {key: titles for key, titles in found.items() if titles}
    active = next((window for window in after if window.active), None)
    if active is not None and active.id != next((window.id for window in before if window.active), None):
        changed["active_window"] = outline.title_of(active)
    return changed


def _identity(element: Element | None) -> tuple[str, str, str] | None:
    return None if element is None else (element.role, element.text, element.fingerprint)


def _said(tree: Glance | None) -> str | None:
    return None if tree is None else tree.fingerprint


async def _glance(accessibility: Accessibility | None) -> Glance | None:
    try:
        return None if accessibility is None else await accessibility.glance()
    # A program that does not answer, or has no tree, is judged by its pixels.
    except HandrailError:
        return None

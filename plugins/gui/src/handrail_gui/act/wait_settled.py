"""Detection of an action's effect: waits until pixels, windows and tree are quiet, and reports what changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Any

import anyio

from handrail import Accessibility, Element, Frame, Glance, HandrailError, Rect, Screen, Window
from handrail.desktop.load_timeouts import scale_timeout
from handrail_gui.observe import outline
from handrail_gui.platforms.input_driver import InputDriver

if TYPE_CHECKING:
    from cv2.typing import MatLike

# Seconds without a change that count as quiet, between two looks, and at most altogether.
QUIET_TIME_S = 0.1
SETTLE_POLL_S = 0.02
# Seconds that the screen is watched before an action, for what moves by itself.
WATCH_TIME_S = 0.05
MAX_SETTLE_S = 2.0
# How long nothing at all may happen, and in how many looks at the tree, before that is the answer. A starved program has read the input
# long before it shows what it made of it.
NO_CHANGE_TIMEOUT_S = 0.5
MIN_PATIENT_LOOKS = 3

# What may have come of an animation that went on, where there is one.
SELF_CHANGING_KEYS = frozenset({"tree", "restless"})

# A caret that blinks: no taller and wider than this, in pixels, and nobody did it.
MAX_CARET_SIZE = (3, 48)


@dataclass(frozen=True, slots=True)
class ScreenSnapshot:
    """Snapshot of the screen. `tree` is the state of the accessibility tree, None without one.

    `restless` is the region that changed on its own while the snapshot was taken: an animation, a clock.
    """

    frame: Frame
    windows: Sequence[Window]
    tree: Glance | None
    restless: Rect | None = None

    @property
    def focused(self) -> Element | None:
        return None if self.tree is None else self.tree.focused


@dataclass(frozen=True, slots=True)
class SettleResult:
    """Result of waiting after an action: whether the screen came to rest, and what changed.

    `apart`: the only changes are pixels away from what was acted on.
    """

    settled: bool
    changed: dict[str, Any]
    restless: bool = False
    apart: bool = False

    @property
    def effect(self) -> str:
        """Confirmed if something changed, none if nothing did for long enough, else unverified.

        Unverified means it may have changed on its own, as something did before, or another program may have changed
        it.
        """
        if self.apart:
            return "unverified"
        told = self.changed.keys() - SELF_CHANGING_KEYS if self.restless else self.changed.keys()
        return "confirmed" if told else "unverified" if self.changed or not self.settled else "none"


async def take_snapshot(screen: Screen, accessibility: Accessibility | None) -> ScreenSnapshot:
    """Take a snapshot of the current screen."""
    first, began = await screen.capture(), monotonic()
    windows, tree = await screen.windows(), await _read_glance(accessibility)
    await anyio.sleep(max(0.0, began + WATCH_TIME_S - monotonic()))
    frame = await screen.capture()
    restless = find_changed_region(first, frame)
    if restless is not None:
        # What goes on is an animation; what has happened once is how the program shows that the pointer has come.
        await anyio.sleep(WATCH_TIME_S)
        first, frame = frame, await screen.capture()
        restless = find_changed_region(first, frame)
    return ScreenSnapshot(frame, windows, tree, restless)


async def wait_until_settled(
    before: ScreenSnapshot,
    screen: Screen,
    hands: InputDriver,
    accessibility: Accessibility | None,
    *,
    patient: bool = False,
    acted_on: Sequence[Rect] = (),
) -> SettleResult:
    """Wait until nothing has changed for a tenth of a second, two seconds at most, and compare with `before`.

    `patient`: where nothing has changed that may come of the action, for half a second. On a busy machine all of that is longer.
    `acted_on`: the places that it went to, where they are known.
    """
    began = monotonic()
    restless = before.restless is not None
    # A whole screen that moves is not ignored: nothing would be left to be seen.
    ignored = before.restless if before.restless and _is_small_part(before.restless, before.frame.screen) else None
    await hands.worked_through()
    frame, tree = await screen.capture(), await _read_glance(accessibility)
    quiet_since, looks = monotonic(), 1
    while monotonic() - began < scale_timeout(MAX_SETTLE_S):
        await anyio.sleep(SETTLE_POLL_S)
        now = await screen.capture()
        if not _is_same_frame(frame, now, ignored):
            frame, quiet_since = now, monotonic()
        elif monotonic() - quiet_since >= QUIET_TIME_S:
            current, looks = await _read_glance(accessibility), looks + 1
            if _tree_fingerprint(current) != _tree_fingerprint(tree):
                tree, quiet_since = current, monotonic()
                continue
            changed = compare_snapshots(before, ScreenSnapshot(frame, await screen.windows(), current))
            apart = await _is_change_elsewhere(changed, acted_on, hands)
            waited = looks >= MIN_PATIENT_LOOKS and monotonic() - began >= scale_timeout(NO_CHANGE_TIMEOUT_S)
            if (changed and not apart) or not patient or waited:
                return SettleResult(True, changed, restless, apart)
    changed = compare_snapshots(before, ScreenSnapshot(frame, await screen.windows(), tree))
    return SettleResult(False, changed, restless, await _is_change_elsewhere(changed, acted_on, hands))


def compare_snapshots(before: ScreenSnapshot, after: ScreenSnapshot) -> dict[str, Any]:
    """Return the differences between two snapshots.

    Windows opened, closed or retitled; the active window; the focus; the screen region; the tree.
    """
    changed = _compare_windows(before.windows, after.windows)
    if (
        (focus := _element_identity(after.focused)) != _element_identity(before.focused)
        and after.focused is not None
        and focus
    ):
        changed["focused"] = outline.describe_element(after.focused)
    region = find_changed_region(before.frame, after.frame, before.restless)
    if region is not None:
        changed["region"] = region.corners()
    elif before.restless is not None and not _is_small_part(before.restless, before.frame.screen):
        changed["restless"] = True
    if None not in (_tree_fingerprint(before.tree), _tree_fingerprint(after.tree)) and _tree_fingerprint(
        before.tree
    ) != _tree_fingerprint(after.tree):
        changed["tree"] = True
    return changed


def find_changed_region(before: Frame, after: Frame, ignored: Rect | None = None) -> Rect | None:
    """Return the region that differs, in screen pixels; None if none does, or nothing larger than a text cursor.

    `ignored` is a region that may differ.
    """
    from handrail_gui.platforms.opencv import cv2

    if before.pixels.shape != after.pixels.shape:
        return after.screen
    was: MatLike = before.pixels
    now: MatLike = after.pixels
    different = cv2.absdiff(was, now).max(axis=2)
    if ignored is not None:
        x, y = ignored.x - before.screen.x, ignored.y - before.screen.y
        different[max(0, y) : max(0, y + ignored.height), max(0, x) : max(0, x + ignored.width)] = 0
    x, y, width, height = cv2.boundingRect(different)
    if width == 0 or (width <= MAX_CARET_SIZE[0] and height <= MAX_CARET_SIZE[1]):
        return None
    return Rect(before.screen.x + x, before.screen.y + y, width, height)


async def _is_change_elsewhere(changed: dict[str, Any], acted_on: Sequence[Rect], hands: InputDriver) -> bool:
    """Return True if only pixels changed, outside what was acted on and outside menus.

    Another program may have changed them.
    """
    if changed.keys() != {"region"} or not acted_on:
        return False
    left, top, right, bottom = changed["region"]
    region = Rect(left, top, right - left, bottom - top)
    popups = [surface.rect for surface in await hands.surfaces() if surface.state == "popup"]
    return all(region.intersect(place).empty for place in (*acted_on, *popups))


def _is_same_frame(one: Frame, other: Frame, ignored: Rect | None) -> bool:
    import numpy as np

    if np.array_equal(one.pixels, other.pixels):
        return True
    return ignored is not None and find_changed_region(one, other, ignored) is None


def _is_small_part(part: Rect, whole: Rect) -> bool:
    return 4 * part.width * part.height < whole.width * whole.height


def _compare_windows(before: Sequence[Window], after: Sequence[Window]) -> dict[str, Any]:
    old, new = {window.id: window for window in before}, {window.id: window for window in after}
    both = [(old[id], new[id]) for id in new if id in old]
    found = {
        "windows_opened": [outline.format_window_title(window) for id, window in new.items() if id not in old],
        "windows_closed": [outline.format_window_title(window) for id, window in old.items() if id not in new],
        "titles": [outline.format_window_title(now) for was, now in both if was.title != now.title],
        "windows_moved": [
            outline.format_window_title(now) for was, now in both if (was.rect, was.state) != (now.rect, now.state)
        ],
    }
    changed: dict[str, Any] = {key: titles for key, titles in found.items() if titles}
    active = next((window for window in after if window.active), None)
    if active is not None and active.id != next((window.id for window in before if window.active), None):
        changed["active_window"] = outline.format_window_title(active)
    return changed


def _element_identity(element: Element | None) -> tuple[str, str, str] | None:
    return None if element is None else (element.role, element.text, element.fingerprint)


def _tree_fingerprint(tree: Glance | None) -> str | None:
    return None if tree is None else tree.fingerprint


async def _read_glance(accessibility: Accessibility | None) -> Glance | None:
    try:
        return None if accessibility is None else await accessibility.glance()
    # A program that does not answer, or has no tree, is judged by its pixels.
    except HandrailError:
        return None

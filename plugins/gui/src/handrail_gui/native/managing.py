"""Changing windows, each change read back: what becomes of a request is decided by the system and the window's program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import monotonic, sleep

from handrail import Rect, Window
from handrail_gui.geometry import half
from handrail_gui.hands import Place, Placed
from handrail_gui.native.system import Windowing

# Seconds for a change to come about, without a change that count as rest, and between two looks.
MANAGED_S = 2.0
STEADY_S = 0.12
LOOK_S = 0.01


def focus(system: Windowing, window: str) -> bool:
    """Raise a window and give it the keyboard; False when it does not get it."""
    system.ask_active(window)
    return _until(system, window, lambda: system.has_keyboard(window))


def maximize(system: Windowing, window: str) -> bool:
    """Let a window fill its monitor, also one that is minimized; False when it does not."""
    if _state(system, window) == "minimized" and not restore(system, window):
        return False
    system.ask_state(window, "maximized")
    return _became(system, window, lambda state: state == "maximized")


def minimize(system: Windowing, window: str) -> bool:
    """Put a window away; False when it stays."""
    system.ask_state(window, "minimized")
    return _became(system, window, lambda state: state == "minimized")


def restore(system: Windowing, window: str) -> bool:
    """Undo the last of minimized, fullscreen and maximized; False when nothing changes. A window that is none of them stays as it is."""
    before = _state(system, window)
    if before in (None, "normal"):
        return before is not None
    system.ask_state(window, "normal")
    return _became(system, window, lambda state: state not in (None, before))


def ask_to_close(system: Windowing, window: str) -> bool:
    """Ask a window's program to close it; False when it is still there after a moment."""
    system.ask_to_close(window)
    _until(system, window, lambda: False)
    return find(system, window) is None


def place(system: Windowing, window: str, where: Place) -> Placed:
    """Ask for the place and wait until the window has stopped changing."""
    for _ in range(2):
        if _state(system, window) in (None, "normal") or not restore(system, window):
            break
    now = _asked(system, window, where)
    # A window that comes to a monitor of another scale is given another size by the way: asked for again there.
    if now is not None and any(_misses(now, where)):
        now = _asked(system, window, where)
    return Placed(now, done=now is not None and not any(_misses(now, where)))


def place_in(system: Windowing, window: str, layout: str) -> Placed:
    """Fit a window with its decoration into a half of its monitor's free part."""
    if restore(system, window) and _state(system, window) != "normal":
        restore(system, window)
    found = find(system, window)
    if found is None:
        return Placed(None, done=False)
    room = half(system.monitors()[found.monitor].free, layout)
    own, frame = found.rect, found.frame or found.rect
    left, top = own.x - frame.x, own.y - frame.y
    width, height = room.width - (frame.width - own.width), room.height - (frame.height - own.height)
    return place(system, window, Place(room.x + left, room.y + top, width, height))


def find(system: Windowing, window: str) -> Window | None:
    """The window as it is now."""
    return next((found for found in system.windows() if found.id == window), None)


def _asked(system: Windowing, window: str, where: Place) -> Window | None:
    """The window once it rests after a request; None when it is gone."""
    found = find(system, window)
    if found is None:
        return None
    values = zip(_wanted(where), _have(found), strict=True)
    system.ask_place(window, Rect(*(have if want is None else want for want, have in values)))
    # A program that takes other sizes than the one asked for has stopped at one of its own.
    return _rested(system, window, lambda now: STEADY_S if not any(_misses(now, where)) else 3 * STEADY_S)


def _rested(system: Windowing, window: str, patience: Callable[[Window], float]) -> Window | None:
    deadline, since, last = monotonic() + MANAGED_S, monotonic(), find(system, window)
    while last is not None and monotonic() < deadline and monotonic() - since <= patience(last):
        sleep(LOOK_S)
        now = find(system, window)
        if now != last:
            since, last = monotonic(), now
    return last


def _misses(window: Window, where: Place) -> list[int]:
    """By how many pixels its left and top edge, width and height are not as wanted."""
    pairs = zip(_wanted(where), _have(window), strict=True)
    return [0 if want is None else abs(want - have) for want, have in pairs]


def _wanted(where: Place) -> Sequence[int | None]:
    return where.x, where.y, where.width, where.height


def _have(window: Window) -> Sequence[int]:
    return window.rect.x, window.rect.y, window.rect.width, window.rect.height


def _state(system: Windowing, window: str) -> str | None:
    found = find(system, window)
    return found.state if found else None


def _became(system: Windowing, window: str, fits: Callable[[str | None], bool]) -> bool:
    """Whether its state comes to fit in time; it is at rest then, as its size follows its state."""
    if not _until(system, window, lambda: fits(_state(system, window))):
        return False
    now = _rested(system, window, lambda _: STEADY_S)
    return now is not None and fits(now.state)


def _until(system: Windowing, window: str, condition: Callable[[], bool]) -> bool:
    """Whether a condition comes true in time, and while the window is there."""
    deadline = monotonic() + MANAGED_S
    while not condition():
        if monotonic() > deadline or find(system, window) is None:
            return False
        sleep(LOOK_S)
    return True

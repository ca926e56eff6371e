"""Changing windows, each change read back: the window manager decides what becomes of a request. Jobs for `Connection.run`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import monotonic

from handrail import Downstream, Window
from handrail_gui.geometry import half
from handrail_gui.hands import Place, Placed
from handrail_gui.x11 import windows
from handrail_gui.x11.connection import Client

# Seconds that a window manager is given to do what it was asked.
MANAGED_S = 1.5
# A window that has not changed for so long stays as it is.
STEADY_S = 0.08
LOOK_S = 0.01


def focus(client: Client, window: str) -> bool:
    """Raise a window and give it the keyboard; False when it does not get it. `Downstream` when a menu keeps the keyboard from it."""
    number = int(window, 16)
    windows.activate(client, number)
    done = _until(client, window, lambda: windows.active_id(client) == number and windows.has_focus(client, number))
    # A menu that has just been closed is let a moment to give the keyboard back.
    if done and not _until(client, window, lambda: not windows.keyboard_is_held(client)):
        raise Downstream(
            "an open menu or dialog takes all that is typed, whatever window is active",
            hint='close it first: press_key "escape" by execute_gui',
        )
    return done


def maximize(client: Client, window: str) -> bool:
    """Let a window fill its monitor, also one that is minimized; False when it does not."""
    if _state(client, window) == "minimized" and not restore(client, window):
        return False
    windows.set_maximized(client, int(window, 16), True)
    return _became(client, window, lambda state: state == "maximized")


def minimize(client: Client, window: str) -> bool:
    """Put a window away; False when it stays."""
    windows.minimize(client, int(window, 16))
    return _became(client, window, lambda state: state == "minimized")


def restore(client: Client, window: str) -> bool:
    """Undo the last of minimized, fullscreen and maximized; False when nothing changes. A window that is none of them stays as it is."""
    number, before = int(window, 16), _state(client, window)
    if before == "minimized":
        windows.activate(client, number)
    elif before == "fullscreen":
        windows.leave_fullscreen(client, number)
    elif before == "maximized":
        windows.set_maximized(client, number, False)
    else:
        return before is not None
    return _became(client, window, lambda state: state not in (None, before))


def ask_to_close(client: Client, window: str) -> bool:
    """Ask a window's program to close it; False when it is still there after a moment."""
    windows.close(client, int(window, 16))
    _until(client, window, lambda: False)
    return _find(client, window) is None


def place(client: Client, window: str, where: Place) -> Placed:
    """Ask for the place and wait until the window has stopped changing."""
    _make_normal(client, window)
    now = _asked(client, window, where, where)
    if now is not None and any(_misses(now, (where.x, where.y, None, None))):
        # Where a window has a border of its own, window managers count it differently: asked for again, as much further as it fell short.
        x, y = (
            None if want is None else 2 * want - is_ for want, is_ in ((where.x, now.rect.x), (where.y, now.rect.y))
        )
        now = _asked(client, window, Place(x, y, where.width, where.height), where)
    if now is None:
        return Placed(None, done=False)
    allowed = (1, 1, *windows.steps(client, int(window, 16)))
    misses = _misses(now, (where.x, where.y, where.width, where.height))
    return Placed(now, done=all(miss < step for miss, step in zip(misses, allowed, strict=True)))


def _asked(client: Client, window: str, request: Place, wanted: Place) -> Window | None:
    """The window once it rests after a request; it rests sooner where it is what was wanted."""
    windows.place(client, int(window, 16), request)
    goal = (wanted.x, wanted.y, wanted.width, wanted.height)
    # A program that takes other sizes than the one asked for has stopped at one of its own.
    return _rested(client, window, lambda now: STEADY_S if not any(_misses(now, goal)) else 4 * STEADY_S)


def _rested(client: Client, window: str, patience: Callable[[Window], float]) -> Window | None:
    """The window once it has not changed for so many seconds; None when it is gone."""
    deadline, since, last = monotonic() + MANAGED_S, monotonic(), _find(client, window)
    while last is not None and monotonic() < deadline and monotonic() - since <= patience(last):
        client.pump(lambda: False, timeout=LOOK_S)
        now = _find(client, window)
        if now != last:
            since, last = monotonic(), now
    return last


def _misses(window: Window, wanted: Sequence[int | None]) -> tuple[int, ...]:
    """By how many pixels its left and top edge, width and height are not as wanted."""
    have = (window.rect.x, window.rect.y, window.rect.width, window.rect.height)
    return tuple(0 if want is None else abs(want - is_) for want, is_ in zip(wanted, have, strict=True))


def place_in(client: Client, window: str, layout: str) -> Placed:
    """Fit a window with its decoration into a half of its monitor's free part."""
    _make_normal(client, window)
    found = _find(client, window)
    if found is None:
        return Placed(None, done=False)
    room = half(windows.work_area(client, windows.monitors(client)[found.monitor]), layout)
    left, right, top, bottom = windows.frame_extents(client, int(window, 16))
    return place(
        client, window, Place(room.x + left, room.y + top, room.width - left - right, room.height - top - bottom)
    )


def _make_normal(client: Client, window: str) -> None:
    """A minimized or maximized window has no place of its own. It may be both."""
    for _ in range(2):
        if _state(client, window) in (None, "normal") or not restore(client, window):
            return


def _state(client: Client, window: str) -> str | None:
    found = _find(client, window)
    return found.state if found else None


def _find(client: Client, window: str) -> Window | None:
    return next((found for found in windows.windows(client) if found.id == window), None)


def _became(client: Client, window: str, fits: Callable[[str | None], bool]) -> bool:
    """Whether its state comes to fit in time; it is at rest then, as its size follows its state."""
    if not _until(client, window, lambda: fits(_state(client, window))):
        return False
    now = _rested(client, window, lambda _: STEADY_S)
    return now is not None and fits(now.state)


def _until(client: Client, window: str, condition: Callable[[], bool]) -> bool:
    """Whether a condition comes true in time, and while the window is there; events go on being answered meanwhile."""
    deadline = monotonic() + MANAGED_S
    while not condition():
        if monotonic() > deadline or _find(client, window) is None:
            return False
        client.pump(lambda: False, timeout=LOOK_S)
    return True

"""Changing windows, each change read back: the window manager decides what becomes of a request. Jobs for `X11Connection.run`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import monotonic

from handrail import Downstream, Window
from handrail_gui.platforms.geometry import layout_half
from handrail_gui.platforms.input_driver import PlacementResult, WindowPlacement
from handrail_gui.platforms.x11 import windows
from handrail_gui.platforms.x11.connection import X11Client

# Seconds that a window manager is given to do what it was asked.
CHANGE_TIMEOUT_S = 1.5
# A window that has not changed for so long stays as it is.
STEADY_TIME_S = 0.08
WINDOW_POLL_S = 0.01


def focus_window(client: X11Client, window: str) -> bool:
    """Raise a window and give it the keyboard; False when it does not get it. `Downstream` when a menu keeps the keyboard from it."""
    number = int(window, 16)
    windows.request_activation(client, number)
    done = _wait_until(
        client, window, lambda: windows.active_window_id(client) == number and windows.has_focus(client, number)
    )
    # A menu that has just been closed is let a moment to give the keyboard back.
    if done and not _wait_until(client, window, lambda: not windows.is_keyboard_grabbed(client)):
        raise Downstream(
            "an open menu or dialog takes all that is typed, whatever window is active",
            hint='close it first: press_key "escape" by execute_gui',
        )
    return done


def maximize_window(client: X11Client, window: str) -> bool:
    """Maximize a window, even if it is minimized; return False if it does not become maximized."""
    if _current_state(client, window) == "minimized" and not restore_window(client, window):
        return False
    windows.request_maximized(client, int(window, 16), True)
    return _wait_for_state(client, window, lambda state: state == "maximized")


def minimize_window(client: X11Client, window: str) -> bool:
    """Put a window away; False when it stays."""
    windows.request_minimize(client, int(window, 16))
    return _wait_for_state(client, window, lambda state: state == "minimized")


def restore_window(client: X11Client, window: str) -> bool:
    """Undo the last of minimized, fullscreen and maximized; return False if nothing changes.

    A window in none of these states stays as it is, and True is returned.
    """
    number, before = int(window, 16), _current_state(client, window)
    if before == "minimized":
        windows.request_activation(client, number)
    elif before == "fullscreen":
        windows.request_leave_fullscreen(client, number)
    elif before == "maximized":
        windows.request_maximized(client, number, False)
    else:
        return before is not None
    return _wait_for_state(client, window, lambda state: state not in (None, before))


def ask_to_close(client: X11Client, window: str) -> bool:
    """Ask a window's program to close it; False when it is still there after a moment."""
    windows.request_close(client, int(window, 16))
    _wait_until(client, window, lambda: False)
    return _find_by_id(client, window) is None


def place_window(client: X11Client, window: str, where: WindowPlacement) -> PlacementResult:
    """Ask for the place and wait until the window has stopped changing."""
    _restore_to_normal(client, window)
    now = _request_placement(client, window, where, where)
    if now is not None and any(_placement_errors(now, (where.x, where.y, None, None))):
        # Where a window has a border of its own, window managers count it differently: asked for again, as much further as it fell short.
        x, y = (
            None if want is None else 2 * want - is_ for want, is_ in ((where.x, now.rect.x), (where.y, now.rect.y))
        )
        now = _request_placement(client, window, WindowPlacement(x, y, where.width, where.height), where)
    if now is None:
        return PlacementResult(None, done=False)
    allowed = (1, 1, *windows.read_resize_steps(client, int(window, 16)))
    misses = _placement_errors(now, (where.x, where.y, where.width, where.height))
    return PlacementResult(now, done=all(miss < step for miss, step in zip(misses, allowed, strict=True)))


def _request_placement(
    client: X11Client, window: str, request: WindowPlacement, wanted: WindowPlacement
) -> Window | None:
    """Request a geometry and return the window once it has settled, which is sooner if it has the wanted geometry."""
    windows.request_placement(client, int(window, 16), request)
    goal = (wanted.x, wanted.y, wanted.width, wanted.height)
    # A program that takes other sizes than the one asked for has stopped at one of its own.
    return _wait_until_steady(
        client, window, lambda now: STEADY_TIME_S if not any(_placement_errors(now, goal)) else 4 * STEADY_TIME_S
    )


def _wait_until_steady(client: X11Client, window: str, patience: Callable[[Window], float]) -> Window | None:
    """Return the window once it has been unchanged for the seconds that `patience` gives; None if it is gone."""
    deadline, since, last = monotonic() + CHANGE_TIMEOUT_S, monotonic(), _find_by_id(client, window)
    while last is not None and monotonic() < deadline and monotonic() - since <= patience(last):
        client.pump(lambda: False, timeout=WINDOW_POLL_S)
        now = _find_by_id(client, window)
        if now != last:
            since, last = monotonic(), now
    return last


def _placement_errors(window: Window, wanted: Sequence[int | None]) -> tuple[int, ...]:
    """Return the errors in pixels of left edge, top edge, width and height."""
    have = (window.rect.x, window.rect.y, window.rect.width, window.rect.height)
    return tuple(0 if want is None else abs(want - is_) for want, is_ in zip(wanted, have, strict=True))


def place_in_layout(client: X11Client, window: str, layout: str) -> PlacementResult:
    """Fit a window with its decoration into a half of its monitor's free part."""
    _restore_to_normal(client, window)
    found = _find_by_id(client, window)
    if found is None:
        return PlacementResult(None, done=False)
    room = layout_half(windows.read_work_area(client, windows.list_monitors(client)[found.monitor]), layout)
    left, right, top, bottom = windows.read_frame_extents(client, int(window, 16))
    return place_window(
        client,
        window,
        WindowPlacement(room.x + left, room.y + top, room.width - left - right, room.height - top - bottom),
    )


def _restore_to_normal(client: X11Client, window: str) -> None:
    """Restore a window to normal; it may be both minimized and maximized, and then has no position of its own."""
    for _ in range(2):
        if _current_state(client, window) in (None, "normal") or not restore_window(client, window):
            return


def _current_state(client: X11Client, window: str) -> str | None:
    found = _find_by_id(client, window)
    return found.state if found else None


def _find_by_id(client: X11Client, window: str) -> Window | None:
    return next((found for found in windows.list_windows(client) if found.id == window), None)


def _wait_for_state(client: X11Client, window: str, fits: Callable[[str | None], bool]) -> bool:
    """Return True if the state fits in time; the window has settled then, because its size follows its state."""
    if not _wait_until(client, window, lambda: fits(_current_state(client, window))):
        return False
    now = _wait_until_steady(client, window, lambda _: STEADY_TIME_S)
    return now is not None and fits(now.state)


def _wait_until(client: X11Client, window: str, condition: Callable[[], bool]) -> bool:
    """Return True if a condition becomes true in time, while the window exists; events are still answered meanwhile."""
    deadline = monotonic() + CHANGE_TIMEOUT_S
    while not condition():
        if monotonic() > deadline or _find_by_id(client, window) is None:
            return False
        client.pump(lambda: False, timeout=WINDOW_POLL_S)
    return True

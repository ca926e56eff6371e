"""Changing windows, each change read back: what becomes of a request is decided by the system and the window's program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import monotonic, sleep

from handrail import Rect, Window
from handrail_gui.platforms.geometry import layout_half
from handrail_gui.platforms.input_driver import PlacementResult, WindowPlacement
from handrail_gui.platforms.protocol import NativeWindows

# Seconds for a change to come about, without a change that count as rest, and between two looks.
CHANGE_TIMEOUT_S = 2.0
STEADY_TIME_S = 0.12
WINDOW_POLL_S = 0.01


def focus_window(system: NativeWindows, window: str) -> bool:
    """Raise a window and give it the keyboard; False when it does not get it."""
    system.ask_active(window)
    return _wait_until(system, window, lambda: system.has_keyboard(window))


def maximize_window(system: NativeWindows, window: str) -> bool:
    """Maximize a window, even if it is minimized; return False if it does not become maximized."""
    if _current_state(system, window) == "minimized" and not restore_window(system, window):
        return False
    system.ask_state(window, "maximized")
    return _wait_for_state(system, window, lambda state: state == "maximized")


def minimize_window(system: NativeWindows, window: str) -> bool:
    """Put a window away; False when it stays."""
    system.ask_state(window, "minimized")
    return _wait_for_state(system, window, lambda state: state == "minimized")


def restore_window(system: NativeWindows, window: str) -> bool:
    """Undo the last of minimized, fullscreen and maximized; return False if nothing changes.

    A window in none of these states stays as it is, and True is returned.
    """
    before = _current_state(system, window)
    if before in (None, "normal"):
        return before is not None
    system.ask_state(window, "normal")
    return _wait_for_state(system, window, lambda state: state not in (None, before))


def ask_to_close(system: NativeWindows, window: str) -> bool:
    """Ask a window's program to close it; False when it is still there after a moment."""
    system.ask_to_close(window)
    _wait_until(system, window, lambda: False)
    return find_by_id(system, window) is None


def place_window(system: NativeWindows, window: str, where: WindowPlacement) -> PlacementResult:
    """Ask for the place and wait until the window has stopped changing."""
    for _ in range(2):
        if _current_state(system, window) in (None, "normal") or not restore_window(system, window):
            break
    now = _request_placement(system, window, where)
    # A window that comes to a monitor of another scale is given another size by the way: asked for again there.
    if now is not None and any(_placement_errors(now, where)):
        now = _request_placement(system, window, where)
    return PlacementResult(now, done=now is not None and not any(_placement_errors(now, where)))


def place_in_layout(system: NativeWindows, window: str, layout: str) -> PlacementResult:
    """Fit a window with its decoration into a half of its monitor's free part."""
    if restore_window(system, window) and _current_state(system, window) != "normal":
        restore_window(system, window)
    found = find_by_id(system, window)
    if found is None:
        return PlacementResult(None, done=False)
    room = layout_half(system.monitors()[found.monitor].free, layout)
    own, frame = found.rect, found.frame or found.rect
    left, top = own.x - frame.x, own.y - frame.y
    width, height = room.width - (frame.width - own.width), room.height - (frame.height - own.height)
    return place_window(system, window, WindowPlacement(room.x + left, room.y + top, width, height))


def find_by_id(system: NativeWindows, window: str) -> Window | None:
    """Return the current state of the window with this id; None if it is gone."""
    return next((found for found in system.windows() if found.id == window), None)


def _request_placement(system: NativeWindows, window: str, where: WindowPlacement) -> Window | None:
    """Request a geometry and return the window once it has settled; None if it is gone."""
    found = find_by_id(system, window)
    if found is None:
        return None
    values = zip(_requested_values(where), _actual_values(found), strict=True)
    system.ask_place(window, Rect(*(have if want is None else want for want, have in values)))
    # A program that takes other sizes than the one asked for has stopped at one of its own.
    return _wait_until_steady(
        system, window, lambda now: STEADY_TIME_S if not any(_placement_errors(now, where)) else 3 * STEADY_TIME_S
    )


def _wait_until_steady(system: NativeWindows, window: str, patience: Callable[[Window], float]) -> Window | None:
    deadline, since, last = monotonic() + CHANGE_TIMEOUT_S, monotonic(), find_by_id(system, window)
    while last is not None and monotonic() < deadline and monotonic() - since <= patience(last):
        sleep(WINDOW_POLL_S)
        now = find_by_id(system, window)
        if now != last:
            since, last = monotonic(), now
    return last


def _placement_errors(window: Window, where: WindowPlacement) -> list[int]:
    """Return the errors in pixels of left edge, top edge, width and height."""
    pairs = zip(_requested_values(where), _actual_values(window), strict=True)
    return [0 if want is None else abs(want - have) for want, have in pairs]


def _requested_values(where: WindowPlacement) -> Sequence[int | None]:
    return where.x, where.y, where.width, where.height


def _actual_values(window: Window) -> Sequence[int]:
    return window.rect.x, window.rect.y, window.rect.width, window.rect.height


def _current_state(system: NativeWindows, window: str) -> str | None:
    found = find_by_id(system, window)
    return found.state if found else None


def _wait_for_state(system: NativeWindows, window: str, fits: Callable[[str | None], bool]) -> bool:
    """Return True if the state fits in time; the window has settled then, because its size follows its state."""
    if not _wait_until(system, window, lambda: fits(_current_state(system, window))):
        return False
    now = _wait_until_steady(system, window, lambda _: STEADY_TIME_S)
    return now is not None and fits(now.state)


def _wait_until(system: NativeWindows, window: str, condition: Callable[[], bool]) -> bool:
    """Return True if a condition becomes true in time, while the window exists."""
    deadline = monotonic() + CHANGE_TIMEOUT_S
    while not condition():
        if monotonic() > deadline or find_by_id(system, window) is None:
            return False
        sleep(WINDOW_POLL_S)
    return True

"""Windows of an X desktop: what a task list shows (EWMH), what lies over what, and changing them. Jobs for `X11Connection.run`.

Standards: EWMH 1.5, ICCCM 2.0.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from Xlib import X, Xutil, error
from Xlib.ext import randr, shape
from Xlib.protocol import event
from Xlib.xobject.drawable import Window as XWindow

from handrail import Rect, Window
from handrail_gui.platforms.geometry import find_monitor_index
from handrail_gui.platforms.input_driver import WindowPlacement
from handrail_gui.platforms.x11.connection import X11Client

# The message comes from a pager, as far as the window manager is concerned: focus-stealing prevention does not apply.
SOURCE_PAGER = 2
STATE_REMOVE, STATE_ADD = 0, 1
ICONIC_STATE = 3
# The workspace of a window that is on all of them.
ALL_DESKTOPS = 0xFFFFFFFF

# Kinds of windows that no person would call one.
SHELL_WINDOW_TYPES = ("_NET_WM_WINDOW_TYPE_DESKTOP", "_NET_WM_WINDOW_TYPE_DOCK")
# What comes and goes by itself and takes no clicks.
TRANSIENT_WINDOW_TYPES = ("_NET_WM_WINDOW_TYPE_TOOLTIP", "_NET_WM_WINDOW_TYPE_NOTIFICATION")

# Window managers put a program's window directly into its frame, or into a box in it.
FRAME_DEPTH = 3

WINDOW_GONE_ERRORS = (error.BadWindow, error.BadDrawable, error.BadMatch)


def list_monitors(client: X11Client) -> list[Rect]:
    """Return every monitor's rectangle, the primary one first; the whole screen if RANDR reports none."""
    found = sorted(randr.get_monitors(client.root).monitors, key=lambda m: not m.primary)
    rects = [Rect(m.x, m.y, m.width_in_pixels, m.height_in_pixels) for m in found]
    return [rect for rect in rects if not rect.empty] or [screen_bounds(client)]


def screen_bounds(client: X11Client) -> Rect:
    """Return the rectangle of the whole screen."""
    size = client.root.get_geometry()
    return Rect(0, 0, size.width, size.height)


def list_windows(client: X11Client) -> list[Window]:
    """Return the managed windows, topmost first."""
    stacked = client.numbers(client.root, "_NET_CLIENT_LIST_STACKING") or client.numbers(
        client.root, "_NET_CLIENT_LIST"
    )
    screens = list_monitors(client)
    active = active_window_id(client)
    found = (_read_window(client, number, screens, active) for number in reversed(stacked))
    return [window for window in found if window is not None]


def list_surfaces(client: X11Client) -> list[Window]:
    """Everything that covers a part of the screen and takes clicks, topmost first: decorated windows, menus, popups.

    The `id` and the title are those of the program's own window, the `rect` includes the decoration. The `state` of what no window manager
    manages, such as a menu, is "popup".
    """
    found = (_read_surface(client, child) for child in reversed(client.root.query_tree().children))
    return [surface for surface in found if surface is not None]


def active_window_id(client: X11Client) -> int | None:
    """Return the id of the active window, or None."""
    return next(iter(client.numbers(client.root, "_NET_ACTIVE_WINDOW")), None) or None


def request_activation(client: X11Client, number: int) -> None:
    """Ask the window manager to raise a window and give it the focus, on whatever workspace it is.

    Has no effect on a window that has gone.
    """
    try:
        on = next(iter(client.numbers(client.window(number), "_NET_WM_DESKTOP")), ALL_DESKTOPS)
    except WINDOW_GONE_ERRORS:
        return
    # Not every window manager goes to another workspace for it.
    if on != ALL_DESKTOPS and [on] != client.numbers(client.root, "_NET_CURRENT_DESKTOP"):
        _send_message(client, client.root.id, "_NET_CURRENT_DESKTOP", on, X.CurrentTime)
    _send_message(client, number, "_NET_ACTIVE_WINDOW", SOURCE_PAGER, X.CurrentTime, 0)


def request_close(client: X11Client, number: int) -> None:
    """Ask the window manager to close a window, which asks its program to."""
    _send_message(client, number, "_NET_CLOSE_WINDOW", X.CurrentTime, SOURCE_PAGER)


def request_maximized(client: X11Client, number: int, on: bool) -> None:
    """Ask for a window to fill its monitor, or not to."""
    both = (client.atom("_NET_WM_STATE_MAXIMIZED_HORZ"), client.atom("_NET_WM_STATE_MAXIMIZED_VERT"))
    _send_message(client, number, "_NET_WM_STATE", STATE_ADD if on else STATE_REMOVE, *both, SOURCE_PAGER)


def request_leave_fullscreen(client: X11Client, number: int) -> None:
    """Ask for a window that fills the screen to be as it was before."""
    _send_message(
        client, number, "_NET_WM_STATE", STATE_REMOVE, client.atom("_NET_WM_STATE_FULLSCREEN"), 0, SOURCE_PAGER
    )


def request_minimize(client: X11Client, number: int) -> None:
    """Ask for a window to be put away."""
    _send_message(client, number, "WM_CHANGE_STATE", ICONIC_STATE)


def has_focus(client: X11Client, number: int) -> bool:
    """Return True if the window or one inside it receives typed keys."""
    focus = client.display.get_input_focus().focus
    if isinstance(focus, int):
        return False
    try:
        while focus.id != number:
            focus = focus.query_tree().parent
            if not isinstance(focus, XWindow):
                return False
    except WINDOW_GONE_ERRORS:
        return False
    return True


def is_keyboard_grabbed(client: X11Client) -> bool:
    """Return True if a program takes all typed keys, whatever has the focus, as an open menu does.

    The only way to find out is to try to grab the keyboard.
    """
    taken = client.root.grab_keyboard(False, X.GrabModeAsync, X.GrabModeAsync, X.CurrentTime)
    client.display.ungrab_keyboard(X.CurrentTime)
    return taken == X.AlreadyGrabbed


def request_placement(client: X11Client, number: int, where: WindowPlacement) -> None:
    """Ask for a window's own area (without decoration) to be at that place."""
    fields = (where.x, where.y, where.width, where.height)
    given = sum(1 << (8 + bit) for bit, value in enumerate(fields) if value is not None)
    # Static gravity: the numbers are the client's area, wherever its decoration ends up. Source: a pager.
    static, pager = 10, 2 << 12
    # A message carries places left of or above the screen as the unsigned numbers of the same bits.
    told = ((value or 0) & 0xFFFFFFFF for value in fields)
    _send_message(client, number, "_NET_MOVERESIZE_WINDOW", static | given | pager, *told)


def read_work_area(client: X11Client, monitor: Rect) -> Rect:
    """Return the part of a monitor that panels leave free."""
    free = client.numbers(client.root, "_NET_WORKAREA")
    return Rect(*free[:4]).intersect(monitor) if len(free) >= 4 else monitor


def read_frame_extents(client: X11Client, number: int) -> tuple[int, int, int, int]:
    """Return how far the decoration extends beyond the client area: left, right, top, bottom."""
    found = client.numbers(client.window(number), "_NET_FRAME_EXTENTS")
    return (found[0], found[1], found[2], found[3]) if len(found) == 4 else (0, 0, 0, 0)


def read_resize_steps(client: X11Client, number: int) -> tuple[int, int]:
    """Return the pixel steps in which a window's width and height may change: a terminal's cell size, usually 1."""
    hints = client.window(number).get_wm_normal_hints()
    if hints is None or not hints.flags & Xutil.PResizeInc:
        return 1, 1
    return max(1, hints.width_inc), max(1, hints.height_inc)


def _send_message(client: X11Client, number: int, message: str, *data: int) -> None:
    values = [*data, 0, 0, 0, 0, 0][:5]
    told = event.ClientMessage(window=client.window(number), client_type=client.atom(message), data=(32, values))
    client.root.send_event(told, event_mask=X.SubstructureRedirectMask | X.SubstructureNotifyMask)
    client.display.sync()


def _read_window(client: X11Client, number: int, screens: Sequence[Rect], active: int | None) -> Window | None:
    """Read a managed window; return None for windows of the desktop shell and for one that has just gone."""
    own = client.window(number)
    try:
        kinds = client.numbers(own, "_NET_WM_WINDOW_TYPE")
        if any(client.atom(kind) in kinds for kind in SHELL_WINDOW_TYPES):
            return None
        rect, frame = _read_rects(client, own)
        pid = next(iter(client.numbers(own, "_NET_WM_PID")), None)
        state = _read_state(client, own)
        title = _read_title(client, own)
        process = _read_process_name(pid) or (own.get_wm_class() or ("", ""))[1]
    except WINDOW_GONE_ERRORS:
        return None
    shown_on = find_monitor_index(frame, screens)
    return Window(hex(number), title, process, pid, rect, shown_on, state, active=number == active, frame=frame)


def _read_rects(client: X11Client, own: XWindow) -> tuple[Rect, Rect]:
    """Return the window's rectangle on the screen, without and with its decoration.

    A program that decorates itself draws a shadow around its window, which belongs to neither.
    """
    size = own.get_geometry()
    # From the window's own corner to the root's: what the reply calls x and y.
    corner = client.root.translate_coords(own.id, 0, 0)
    left, right, top, bottom = [*client.numbers(own, "_GTK_FRAME_EXTENTS"), 0, 0, 0, 0][:4]
    rect = Rect(corner.x + left, corner.y + top, size.width - left - right, size.height - top - bottom)
    left, right, top, bottom = read_frame_extents(client, own.id)
    return rect, Rect(rect.x - left, rect.y - top, rect.width + left + right, rect.height + top + bottom)


def _read_state(client: X11Client, own: XWindow) -> Literal["normal", "minimized", "maximized", "fullscreen"]:
    states = client.numbers(own, "_NET_WM_STATE")

    def has(name: str) -> bool:
        return client.atom(f"_NET_WM_STATE_{name}") in states

    if has("HIDDEN") or next(iter(client.numbers(own, "WM_STATE")), None) == ICONIC_STATE:
        return "minimized"
    if has("FULLSCREEN"):
        return "fullscreen"
    if has("MAXIMIZED_HORZ") and has("MAXIMIZED_VERT"):
        return "maximized"
    return "normal"


def _read_title(client: X11Client, own: XWindow) -> str:
    if isinstance(title := client.property(own, "_NET_WM_NAME"), bytes):
        return title.decode("utf-8", "replace")
    old = client.property(own, "WM_NAME")
    return old.decode("latin-1") if isinstance(old, bytes) else ""


def _read_process_name(pid: int | None) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8", errors="replace").strip() if pid else ""
    except OSError:
        return ""


def _read_surface(client: X11Client, outer: XWindow) -> Window | None:
    try:
        attributes = outer.get_attributes()
        if attributes.map_state != X.IsViewable or attributes.win_class != X.InputOutput:
            return None
        managed = _find_managed_window(client, outer)
        if managed is None and _is_click_through(outer):
            return None
        own = managed or outer
        kinds = client.numbers(own, "_NET_WM_WINDOW_TYPE")
        if any(client.atom(kind) in kinds for kind in TRANSIENT_WINDOW_TYPES):
            return None
        size = outer.get_geometry()
        border = 2 * size.border_width
        rect = Rect(size.x, size.y, size.width + border, size.height + border)
        pid = next(iter(client.numbers(own, "_NET_WM_PID")), None)
        state = "normal" if managed else "popup"
        return Window(hex(own.id), _read_title(client, own), _read_process_name(pid), pid, rect, state=state)
    except WINDOW_GONE_ERRORS:
        return None


def _find_managed_window(client: X11Client, outer: XWindow) -> XWindow | None:
    """Return the program's window inside a frame, the one to which the window manager has given a state; or None."""
    level = [outer]
    for _ in range(FRAME_DEPTH):
        for window in level:
            if client.property(window, "WM_STATE") is not None:
                return window
        level = [child for window in level for child in window.query_tree().children]
    return None


def _is_click_through(outer: XWindow) -> bool:
    """Return True if no part of the window takes clicks, as with the surface that a compositor draws on."""
    return not shape.get_rectangles(outer, shape.SK.Input).rectangles

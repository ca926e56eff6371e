"""Monitors and windows on Windows, and requests to change them.

Every call runs in the desktop's thread, which uses real pixels. A window of another program is never asked anything
that its program would have to answer: a hung program would hang us.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import byref, create_unicode_buffer, sizeof
from ctypes.wintypes import DWORD, POINT, RECT, UINT
from dataclasses import dataclass
from functools import partial
from pathlib import PureWindowsPath
from typing import TypeVar

from handrail import Downstream, Rect, Window
from handrail_gui.platforms.geometry import find_monitor_index
from handrail_gui.platforms.protocol import NativeMonitor, WindowState
from handrail_gui.platforms.terminals import TerminalWindow
from handrail_gui.platforms.win32.api import (
    MONITORENUMPROC,
    WNDENUMPROC,
    GuiThreadInfo,
    InputRecord,
    MonitorInfo,
    collect_handles,
    convert_rect,
    dwmapi,
    kernel32,
    shcore,
    user32,
)

GWL_STYLE, GWL_EXSTYLE, GW_OWNER = -16, -20, 4
WS_CAPTION = 0x00C00000
WS_EX_TRANSPARENT, WS_EX_TOOLWINDOW, WS_EX_APPWINDOW = 0x20, 0x80, 0x40000
WS_EX_LAYERED, WS_EX_NOACTIVATE = 0x80000, 0x08000000
DWMWA_EXTENDED_FRAME_BOUNDS, DWMWA_CLOAKED = 9, 14
MONITORINFOF_PRIMARY = 1
PROCESS_QUERY_LIMITED_INFORMATION = 0x1000
SW_MAXIMIZE, SW_MINIMIZE, SW_RESTORE = 3, 6, 9
SWP_NOZORDER, SWP_NOACTIVATE, SWP_ASYNCWINDOWPOS = 0x4, 0x10, 0x4000
WM_CLOSE = 0x10
IN_MENU_FLAGS = 0x4 | 0x8 | 0x10
DEFAULT_DPI = 96

# Windows of the shell that no person would call one.
SHELL_CLASSES = frozenset(("Progman", "WorkerW", "Shell_TrayWnd", "Shell_SecondaryTrayWnd"))
TOOLTIP_CLASS, MENU_CLASS = "tooltips_class32", "#32768"
# Classes of windows in which keys go to a shell or what it runs: the console host, Windows Terminal, mintty, PuTTY, ConEmu. Others are known
# by their program, where its name says so.
TERMINAL_CLASSES = frozenset(
    (
        "ConsoleWindowClass",
        "PseudoConsoleWindow",
        "CASCADIA_HOSTING_WINDOW_CLASS",
        "mintty",
        "PuTTY",
        "VirtualConsoleClass",
    )
)
TERMINAL_CLASS_PART = "term"
MAX_TITLE_CHARS = 512

T = TypeVar("T", DWORD, RECT)


@dataclass(frozen=True, slots=True)
class WindowFacts:
    """Raw properties of a window as Windows reports them.

    Rectangles are screen pixels; `client` is the client area.
    """

    handle: int
    title: str
    kind: str
    style: int
    extended: int
    owner: int
    visible: bool
    cloaked: bool
    minimized: bool
    maximized: bool
    client: Rect
    outer: Rect
    frame: Rect | None
    pid: int | None
    program: str

    @property
    def shown(self) -> Rect:
        """The visible frame, without the invisible border used for resizing."""
        return self.frame or self.outer


def is_in_task_list(facts: WindowFacts) -> bool:
    """Return True if a user would find the window in a task list."""
    if not facts.visible or facts.cloaked or facts.kind in SHELL_CLASSES:
        return False
    if facts.extended & WS_EX_APPWINDOW:
        return True
    # A dialog belongs to a window and has none of its own in the task bar; a person sees it all the same.
    dialog = facts.owner and facts.style & WS_CAPTION == WS_CAPTION
    if facts.extended & (WS_EX_TOOLWINDOW | WS_EX_NOACTIVATE):
        return False
    return bool(dialog or not facts.owner) and bool(facts.title or facts.style & WS_CAPTION)


def is_click_target(facts: WindowFacts) -> bool:
    """Return True if the window covers what is beneath it."""
    if not facts.visible or facts.cloaked or facts.minimized or facts.shown.empty or facts.kind == TOOLTIP_CLASS:
        return False
    through = WS_EX_TRANSPARENT | WS_EX_LAYERED
    return facts.extended & through != through


def build_window(facts: WindowFacts, monitors: Sequence[Rect], *, active: int | None) -> Window:
    """Build the window value that tools use."""
    shown = facts.shown
    return Window(
        hex(facts.handle),
        facts.title,
        facts.program or facts.kind,
        facts.pid,
        facts.client.intersect(shown) if not facts.minimized else facts.client,
        find_monitor_index(shown, monitors),
        determine_state(facts, monitors),
        active=facts.handle == active,
        frame=shown,
    )


def determine_state(facts: WindowFacts, monitors: Sequence[Rect]) -> WindowState:
    """Return the state of a window.

    Windows has no fullscreen state: a window without a title bar that covers a monitor counts as one.
    """
    if facts.minimized:
        return "minimized"
    if facts.style & WS_CAPTION != WS_CAPTION and facts.outer in monitors:
        return "fullscreen"
    return "maximized" if facts.maximized else "normal"


def build_surface(facts: WindowFacts) -> Window:
    """Build the surface value that tools use."""
    state = "popup" if facts.kind == MENU_CLASS or facts.style & WS_CAPTION != WS_CAPTION else "normal"
    return Window(hex(facts.handle), facts.title, facts.program or facts.kind, facts.pid, facts.shown, state=state)


def identify_terminal(facts: WindowFacts, *, active: bool) -> TerminalWindow | None:
    """Return the terminal in a window, or None if it is not a terminal.

    Windows does not report the program that reads its keys.
    """
    known = (
        facts.kind in TERMINAL_CLASSES
        or TERMINAL_CLASS_PART in facts.kind.casefold()
        or TERMINAL_CLASS_PART in facts.program.casefold()
    )
    return TerminalWindow(hex(facts.handle), active) if known else None


class Win32Windows:
    """`NativeWindows` on Windows."""

    def monitors(self) -> Sequence[NativeMonitor]:
        """Return the monitors, the main one first; its corner is 0, 0."""
        found = [read_monitor(handle) for handle in self._monitor_handles()]
        if not found:
            raise Downstream(
                "Windows tells of no monitor", hint="unlock the screen, or connect to the session that has one"
            )
        return [monitor for _, monitor in sorted(found, key=lambda one: not one[0])]

    def windows(self) -> list[Window]:
        """Return the windows of the task list, topmost first."""
        screens, active = [monitor.rect for monitor in self.monitors()], get_foreground_window()
        return [build_window(facts, screens, active=active) for facts in self.facts() if is_in_task_list(facts)]

    def surfaces(self) -> list[Window]:
        """Everything that covers a part of the screen and takes clicks, topmost first."""
        return [build_surface(facts) for facts in self.facts() if is_click_target(facts)]

    def terminals(self) -> list[TerminalWindow]:
        """Return the terminal windows, topmost first."""
        active = get_foreground_window()
        shown = (facts for facts in self.facts() if is_in_task_list(facts) and not facts.minimized)
        return [terminal for facts in shown if (terminal := identify_terminal(facts, active=facts.handle == active))]

    def facts(self) -> list[WindowFacts]:
        """Return the properties of all visible top-level windows, topmost first."""
        every = collect_handles(lambda callback: user32.EnumWindows(callback, 0), WNDENUMPROC)
        # Most windows are never shown.
        return [read_window_facts(handle) for handle in every if user32.IsWindowVisible(handle)]

    def ask_active(self, window: str) -> None:
        """Request that a window be raised and get the keyboard focus.

        Windows gives the foreground only to the process that had the last input. An empty mouse movement is such an
        input and changes nothing. Joining the input queue of the window's thread (AttachThreadInput) would also work,
        but would hang us with a hung program.
        """
        handle = int(window, 16)
        if user32.IsIconic(handle):
            user32.ShowWindowAsync(handle, SW_RESTORE)
        nothing = InputRecord()
        user32.SendInput(1, byref(nothing), sizeof(InputRecord))
        user32.SetForegroundWindow(handle)

    def has_keyboard(self, window: str) -> bool:
        """Return True if the window receives typed keys; raise `Downstream` while an open menu takes them."""
        if get_foreground_window() != int(window, 16):
            return False
        state = read_gui_thread(int(window, 16))
        if state.flags & IN_MENU_FLAGS:
            raise Downstream(
                "an open menu takes all that is typed, whatever window is active",
                hint='close it first: press_key "escape" by execute_gui',
            )
        return True

    def ask_state(self, window: str, state: WindowState) -> None:
        """Ask for it to be normal, minimized or maximized."""
        how = {"minimized": SW_MINIMIZE, "maximized": SW_MAXIMIZE}.get(state, SW_RESTORE)
        user32.ShowWindowAsync(int(window, 16), how)

    def ask_place(self, window: str, own: Rect) -> None:
        """Ask for its own area to be there; its invisible border goes around that."""
        handle = int(window, 16)
        outer, client = read_outer_rect(handle), read_client_rect(handle)
        x, y = own.x - (client.x - outer.x), own.y - (client.y - outer.y)
        width, height = own.width + outer.width - client.width, own.height + outer.height - client.height
        user32.SetWindowPos(handle, None, x, y, width, height, SWP_NOZORDER | SWP_NOACTIVATE | SWP_ASYNCWINDOWPOS)

    def ask_to_close(self, window: str) -> None:
        """Ask its program to close it, as its cross does."""
        user32.PostMessageW(int(window, 16), WM_CLOSE, 0, 0)

    def _monitor_handles(self) -> Sequence[int]:
        return collect_handles(lambda callback: user32.EnumDisplayMonitors(None, None, callback, 0), MONITORENUMPROC)


def get_foreground_window() -> int | None:
    """Return the active window."""
    return user32.GetForegroundWindow()


def read_gui_thread(handle: int) -> GuiThreadInfo:
    """Return the GUI state of the window's thread; empty if the thread has just ended."""
    state = GuiThreadInfo(size=sizeof(GuiThreadInfo))
    user32.GetGUIThreadInfo(user32.GetWindowThreadProcessId(handle, None), byref(state))
    return state


def read_monitor(handle: int) -> tuple[bool, NativeMonitor]:
    """Return a monitor's properties, preceded by True for the primary one."""
    info = MonitorInfo(size=sizeof(MonitorInfo))
    user32.GetMonitorInfoW(handle, byref(info))
    rect, free = convert_rect(info.rect), convert_rect(info.free)
    return bool(info.flags & MONITORINFOF_PRIMARY), NativeMonitor(rect, free, read_scale(handle), info.device)


def read_scale(monitor: int) -> float:
    """Return the display scale of a monitor, 1.0 for 100 %."""
    if not shcore.has("GetDpiForMonitor"):
        return 1.0
    x, y = UINT(DEFAULT_DPI), UINT(DEFAULT_DPI)
    shcore.GetDpiForMonitor(monitor, 0, byref(x), byref(y))
    return x.value / DEFAULT_DPI


def read_window_facts(handle: int) -> WindowFacts:
    """Read a window's current properties; a window that has just gone is not visible."""
    pid = DWORD()
    user32.GetWindowThreadProcessId(handle, byref(pid))
    return WindowFacts(
        handle=handle,
        title=_read_text(partial(user32.InternalGetWindowText, handle)),
        kind=_read_text(partial(user32.GetClassNameW, handle)),
        style=user32.GetWindowLongW(handle, GWL_STYLE) & 0xFFFFFFFF,
        extended=user32.GetWindowLongW(handle, GWL_EXSTYLE) & 0xFFFFFFFF,
        owner=user32.GetWindow(handle, GW_OWNER) or 0,
        visible=bool(user32.IsWindowVisible(handle)),
        cloaked=_read_attribute(handle, DWMWA_CLOAKED, DWORD()).value != 0,
        minimized=bool(user32.IsIconic(handle)),
        maximized=bool(user32.IsZoomed(handle)),
        client=read_client_rect(handle),
        outer=read_outer_rect(handle),
        frame=_read_frame(handle),
        pid=pid.value or None,
        program=find_program_name(pid.value),
    )


def read_client_rect(handle: int) -> Rect:
    """Return the client area on the screen."""
    area, corner = RECT(), POINT()
    user32.GetClientRect(handle, byref(area))
    user32.ClientToScreen(handle, byref(corner))
    return Rect(corner.x, corner.y, area.right, area.bottom)


def read_outer_rect(handle: int) -> Rect:
    """Return the whole window rectangle, including the invisible border."""
    found = RECT()
    user32.GetWindowRect(handle, byref(found))
    return convert_rect(found)


def find_program_name(pid: int) -> str:
    """Return the file name of a process's program; empty for processes of other users."""
    process = kernel32.OpenProcess(PROCESS_QUERY_LIMITED_INFORMATION, False, pid) if pid else None
    if not process:
        return ""
    try:
        buffer, size = create_unicode_buffer(1024), DWORD(1024)
        done = kernel32.QueryFullProcessImageNameW(process, 0, buffer, byref(size))
        return PureWindowsPath(buffer.value).name if done else ""
    finally:
        kernel32.CloseHandle(process)


def _read_frame(handle: int) -> Rect | None:
    """Return the visible frame in real pixels; None without desktop composition."""
    found = convert_rect(_read_attribute(handle, DWMWA_EXTENDED_FRAME_BOUNDS, RECT()))
    return None if found.empty else found


def _read_attribute(handle: int, number: int, into: T) -> T:
    if dwmapi.has("DwmGetWindowAttribute"):
        dwmapi.DwmGetWindowAttribute(handle, number, ctypes.addressof(into), sizeof(into))
    return into


def _read_text(read: partial[int]) -> str:
    buffer = create_unicode_buffer(MAX_TITLE_CHARS)
    read(buffer, MAX_TITLE_CHARS)
    return buffer.value

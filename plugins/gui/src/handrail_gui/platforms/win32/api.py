"""The functions and structures of Windows that are used, with their types.

Source: the headers winuser.h, winbase.h, dwmapi.h and shellscalingapi.h of the Windows SDK, as learn.microsoft.com documents them. Handles are
pointers: without their types ctypes would cut them to 32 bits.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Mapping, Sequence
from ctypes import POINTER, Structure, Union, c_size_t, c_ssize_t, c_void_p
from ctypes.wintypes import (
    ATOM,
    BOOL,
    DWORD,
    HANDLE,
    HDC,
    HINSTANCE,
    HMODULE,
    HMONITOR,
    HWND,
    INT,
    LONG,
    LPARAM,
    LPCWSTR,
    LPVOID,
    LPWSTR,
    POINT,
    RECT,
    SHORT,
    UINT,
    WCHAR,
    WORD,
    WPARAM,
)
from functools import cache
from typing import Any

from handrail import DesktopError, Downstream, Rect

LRESULT = c_ssize_t
FunctionSignature = tuple[Any, ...]


def _callback_type(result: Any, *arguments: Any) -> Any:
    """Return a callback type.

    64-bit Windows has only one calling convention, so the type can also be created on other systems.
    """
    if sys.platform == "win32":
        return ctypes.WINFUNCTYPE(result, *arguments)
    return ctypes.CFUNCTYPE(result, *arguments)


WNDENUMPROC = _callback_type(BOOL, HWND, LPARAM)
MONITORENUMPROC = _callback_type(BOOL, HMONITOR, HDC, POINTER(RECT), LPARAM)
WNDPROC = _callback_type(LRESULT, HWND, UINT, WPARAM, LPARAM)


class MouseInput(Structure):
    """MOUSEINPUT."""

    _fields_ = (("dx", LONG), ("dy", LONG), ("data", DWORD), ("flags", DWORD), ("time", DWORD), ("extra", c_size_t))


class KeyInput(Structure):
    """KEYBDINPUT."""

    _fields_ = (("vk", WORD), ("scan", WORD), ("flags", DWORD), ("time", DWORD), ("extra", c_size_t))


class InputUnion(Union):
    """Union in INPUT."""

    _fields_ = (("mouse", MouseInput), ("key", KeyInput))


class InputRecord(Structure):
    """INPUT."""

    _fields_ = (("type", DWORD), ("of", InputUnion))


class LastInputInfo(Structure):
    """LASTINPUTINFO."""

    _fields_ = (("size", UINT), ("time", DWORD))


class MonitorInfo(Structure):
    """MONITORINFOEXW."""

    _fields_ = (("size", DWORD), ("rect", RECT), ("free", RECT), ("flags", DWORD), ("device", WCHAR * 32))


class GuiThreadInfo(Structure):
    """GUITHREADINFO."""

    _fields_ = (
        ("size", DWORD),
        ("flags", DWORD),
        ("active", HWND),
        ("focus", HWND),
        ("capture", HWND),
        ("menu_owner", HWND),
        ("move_size", HWND),
        ("caret", HWND),
        ("caret_rect", RECT),
    )


class WindowMessage(Structure):
    """MSG."""

    _fields_ = (
        ("window", HWND),
        ("message", UINT),
        ("wparam", WPARAM),
        ("lparam", LPARAM),
        ("time", DWORD),
        ("point", POINT),
    )


class WindowClass(Structure):
    """WNDCLASSW."""

    _fields_ = (
        ("style", UINT),
        ("procedure", WNDPROC),
        ("class_extra", INT),
        ("window_extra", INT),
        ("instance", HINSTANCE),
        ("icon", HANDLE),
        ("cursor", HANDLE),
        ("background", HANDLE),
        ("menu", LPCWSTR),
        ("name", LPCWSTR),
    )


USER32_SIGNATURES: Mapping[str, FunctionSignature] = {
    # Result, then arguments.
    "AllowSetForegroundWindow": (BOOL, DWORD),
    "ClientToScreen": (BOOL, HWND, POINTER(POINT)),
    "CloseClipboard": (BOOL,),
    "CloseDesktop": (BOOL, HANDLE),
    "CountClipboardFormats": (INT,),
    "CreateWindowExW": (*(HWND, DWORD, LPCWSTR, LPCWSTR, DWORD, INT, INT, INT, INT, HWND, HANDLE, HINSTANCE, LPVOID),),
    "DefWindowProcW": (LRESULT, HWND, UINT, WPARAM, LPARAM),
    "DestroyWindow": (BOOL, HWND),
    "DispatchMessageW": (LRESULT, POINTER(WindowMessage)),
    "EmptyClipboard": (BOOL,),
    "EnumClipboardFormats": (UINT, UINT),
    "EnumDisplayMonitors": (BOOL, HDC, POINTER(RECT), MONITORENUMPROC, LPARAM),
    "EnumWindows": (BOOL, WNDENUMPROC, LPARAM),
    "GetAncestor": (HWND, HWND, UINT),
    "GetClassNameW": (INT, HWND, LPWSTR, INT),
    "GetClientRect": (BOOL, HWND, POINTER(RECT)),
    "GetClipboardData": (HANDLE, UINT),
    "GetClipboardFormatNameW": (INT, UINT, LPWSTR, INT),
    "GetClipboardSequenceNumber": (DWORD,),
    "GetCursorPos": (BOOL, POINTER(POINT)),
    "GetForegroundWindow": (HWND,),
    "GetGUIThreadInfo": (BOOL, DWORD, POINTER(GuiThreadInfo)),
    "GetKeyboardLayout": (HANDLE, DWORD),
    "GetLastInputInfo": (BOOL, POINTER(LastInputInfo)),
    "GetMonitorInfoW": (BOOL, HMONITOR, POINTER(MonitorInfo)),
    "GetSystemMetrics": (INT, INT),
    "GetWindow": (HWND, HWND, UINT),
    "GetWindowLongW": (LONG, HWND, INT),
    "GetWindowRect": (BOOL, HWND, POINTER(RECT)),
    "GetWindowThreadProcessId": (DWORD, HWND, POINTER(DWORD)),
    "InternalGetWindowText": (INT, HWND, LPWSTR, INT),
    "IsHungAppWindow": (BOOL, HWND),
    "IsIconic": (BOOL, HWND),
    "IsWindowVisible": (BOOL, HWND),
    "IsZoomed": (BOOL, HWND),
    "MapVirtualKeyW": (UINT, UINT, UINT),
    "OpenClipboard": (BOOL, HWND),
    "OpenInputDesktop": (HANDLE, DWORD, BOOL, DWORD),
    "PeekMessageW": (BOOL, POINTER(WindowMessage), HWND, UINT, UINT, UINT),
    "PostMessageW": (BOOL, HWND, UINT, WPARAM, LPARAM),
    "RegisterClassW": (ATOM, POINTER(WindowClass)),
    "RegisterClipboardFormatW": (UINT, LPCWSTR),
    "SendInput": (UINT, UINT, POINTER(InputRecord), INT),
    "SendMessageTimeoutW": (LRESULT, HWND, UINT, WPARAM, LPARAM, UINT, UINT, POINTER(c_size_t)),
    "SetClipboardData": (HANDLE, UINT, HANDLE),
    "SetForegroundWindow": (BOOL, HWND),
    "SetProcessDPIAware": (BOOL,),
    "SetThreadDpiAwarenessContext": (c_void_p, c_void_p),
    "SetWindowPos": (BOOL, HWND, HWND, INT, INT, INT, INT, UINT),
    "ShowWindowAsync": (BOOL, HWND, INT),
    "UnregisterClassW": (BOOL, LPCWSTR, HINSTANCE),
    "VkKeyScanExW": (SHORT, WCHAR, HANDLE),
}
KERNEL32_SIGNATURES: Mapping[str, FunctionSignature] = {
    "CloseHandle": (BOOL, HANDLE),
    "GetModuleHandleW": (HMODULE, LPCWSTR),
    "GetTickCount": (DWORD,),
    "GlobalAlloc": (HANDLE, UINT, c_size_t),
    "GlobalFree": (HANDLE, HANDLE),
    "GlobalLock": (c_void_p, HANDLE),
    "GlobalSize": (c_size_t, HANDLE),
    "GlobalUnlock": (BOOL, HANDLE),
    "OpenProcess": (HANDLE, DWORD, BOOL, DWORD),
    "QueryFullProcessImageNameW": (BOOL, HANDLE, DWORD, LPWSTR, POINTER(DWORD)),
}
DWMAPI_SIGNATURES: Mapping[str, FunctionSignature] = {"DwmGetWindowAttribute": (LONG, HWND, DWORD, c_void_p, DWORD)}
SHCORE_SIGNATURES: Mapping[str, FunctionSignature] = {
    "GetDpiForMonitor": (LONG, HMONITOR, INT, POINTER(UINT), POINTER(UINT))
}


class DllLibrary:
    """Functions of a DLL with their types; a function missing in an old Windows fails only when it is called."""

    def __init__(self, name: str, signatures: Mapping[str, FunctionSignature]) -> None:
        self._name = name
        self._signatures = signatures
        self._functions: dict[str, Callable[..., Any]] = {}

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in self._functions:
            function = getattr(_load_library(self._name), name)
            function.restype, *function.argtypes = self._signatures[name]
            self._functions[name] = function
        return self._functions[name]

    def has(self, name: str) -> bool:
        """Return True if this Windows has the function."""
        try:
            getattr(self, name)
        except (AttributeError, OSError):
            return False
        return True


@cache
def _load_library(name: str) -> ctypes.CDLL:
    if sys.platform != "win32":
        raise DesktopError(f"{name}.dll is a part of Windows, and this is {sys.platform}")
    return ctypes.WinDLL(name, use_last_error=True)


user32 = DllLibrary("user32", USER32_SIGNATURES)
kernel32 = DllLibrary("kernel32", KERNEL32_SIGNATURES)
dwmapi = DllLibrary("dwmapi", DWMAPI_SIGNATURES)
shcore = DllLibrary("shcore", SHCORE_SIGNATURES)

# Contexts of awareness are handles that stand for small negative numbers.
PER_MONITOR_AWARE_V2 = -4
PER_MONITOR_AWARE = -3


def enable_dpi_awareness() -> None:
    """Make this thread see and use the real pixels of every monitor; Windows otherwise reports scaled positions.

    This is set for the thread and not for the process, which may be a host with windows of its own. Windows before 10
    1607 supports it only for processes.
    """
    if not user32.has("SetThreadDpiAwarenessContext"):
        user32.SetProcessDPIAware()
        return
    for context in (PER_MONITOR_AWARE_V2, PER_MONITOR_AWARE):
        if user32.SetThreadDpiAwarenessContext(context):
            return


def convert_rect(found: RECT) -> Rect:
    """Convert a Windows rectangle, which gives its right and bottom edges."""
    return Rect(found.left, found.top, found.right - found.left, found.bottom - found.top)


def collect_handles(enumerate_: Callable[[Any], Any], kind: Any) -> Sequence[int]:
    """Return the handles that an enumerating function passes to its callback, in its order."""
    found: list[int] = []

    def each(handle: int, *_: Any) -> bool:
        found.append(handle)
        return True

    callback = kind(each)
    enumerate_(callback)
    return found


def build_win32_error(what: str) -> Downstream:
    """Build the error for a function that reports only that it failed."""
    code = ctypes.get_last_error() if sys.platform == "win32" else 0
    return Downstream(f"Windows did not {what} (error {code})")

"""The clipboard of Windows: text, formats, and lending it for a paste with everything put back.

Source: learn.microsoft.com on clipboard operations and formats.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Generator
from contextlib import contextmanager
from ctypes import byref, create_unicode_buffer
from ctypes.wintypes import HANDLE
from dataclasses import dataclass
from time import monotonic, sleep
from typing import Any

from handrail import Downstream
from handrail_gui.platforms.win32.api import WNDPROC, WindowClass, WindowMessage, build_win32_error, kernel32, user32

CF_BITMAP, CF_METAFILEPICT, CF_PALETTE, CF_ENHMETAFILE = 2, 3, 9, 14
CF_DIB, CF_UNICODETEXT, CF_HDROP, CF_DIBV5 = 8, 13, 15, 17
# Predefined formats have no name that Windows tells.
FORMAT_NAMES = {
    1: "CF_TEXT",
    2: "CF_BITMAP",
    3: "CF_METAFILEPICT",
    4: "CF_SYLK",
    5: "CF_DIF",
    6: "CF_TIFF",
    7: "CF_OEMTEXT",
    8: "CF_DIB",
    9: "CF_PALETTE",
    10: "CF_PENDATA",
    11: "CF_RIFF",
    12: "CF_WAVE",
    13: "CF_UNICODETEXT",
    14: "CF_ENHMETAFILE",
    15: "CF_HDROP",
    16: "CF_LOCALE",
    17: "CF_DIBV5",
}
# Handles of GDI, no memory. Windows makes them of the formats beside them, which are put back.
SYNTHESIZED_FROM = {
    CF_BITMAP: (CF_DIB, CF_DIBV5),
    CF_PALETTE: (CF_DIB, CF_DIBV5),
    CF_METAFILEPICT: (),
    CF_ENHMETAFILE: (),
}
# From here on formats are handles that belong to a program.
PRIVATE_FORMATS = range(0x0200, 0x0400)
GMEM_MOVEABLE = 0x2
HWND_MESSAGE = -3
WM_DESTROYCLIPBOARD, WM_RENDERFORMAT, PM_REMOVE = 0x307, 0x305, 0x1
# Managers of clipboards keep away from what has this format; what is lent is nobody's to keep.
EXCLUDE_FROM_HISTORY = "ExcludeClipboardContentFromMonitorProcessing"

OPEN_TIMEOUT_S = 1.0
TAKE_TIMEOUT_S = 1.5
# A program may ask twice for a text that it pastes.
REPEAT_WAIT_S = 0.15
CLIPBOARD_POLL_S = 0.005
MAX_CLIPBOARD_BYTES = 64 * 1024 * 1024

SavedFormats = list[tuple[int, bytes]]


@dataclass(slots=True)
class Win32Clipboard:
    """`NativeClipboard` on Windows.

    Each change is made by a window of its own, so no program waits for us to answer a message later.
    """

    def text(self) -> str | None:
        """Return the text, or None without any."""
        with hold_clipboard_open(None):
            data = read_format(CF_UNICODETEXT)
        return None if data is None else decode_text(data)

    def formats(self) -> list[str]:
        """Return the available formats, as Windows names them, the one its owner prefers first."""
        with hold_clipboard_open(None):
            return [describe_format(number) for number in list_formats()]

    def write(self, text: str) -> None:
        """Replace all of it by a text."""
        with ClipboardOwner() as owner, hold_clipboard_open(owner.window):
            replace_contents([(CF_UNICODETEXT, encode_text(text))])

    def lend(self, text: str, paste: Callable[[], None]) -> bool:
        """Have the text in it while `paste` is done and until a program has taken it, then put all formats back."""
        saved = self.saved()
        if saved is None:
            return False
        with ClipboardOwner(encode_text(text)) as owner:
            with hold_clipboard_open(owner.window):
                replace_contents([])
                # Windows asks for it when somebody wants it: so it is known that somebody did.
                user32.SetClipboardData(CF_UNICODETEXT, None)
                put_format(user32.RegisterClipboardFormatW(EXCLUDE_FROM_HISTORY), b"\0")
            try:
                paste()
                owner.serve(until=lambda: owner.asked > 0, timeout=TAKE_TIMEOUT_S)
                taken = owner.asked > 0
                owner.serve(until=lambda: False, timeout=REPEAT_WAIT_S)
            finally:
                # What somebody else has copied meanwhile is theirs.
                if not owner.replaced:
                    with hold_clipboard_open(owner.window):
                        replace_contents(saved)
        return taken

    def saved(self) -> SavedFormats | None:
        """Return all formats; None if one of them cannot be restored."""
        with hold_clipboard_open(None):
            return read_contents()

    def put_back(self, saved: SavedFormats) -> None:
        """Replace all of it by what was saved."""
        with ClipboardOwner() as owner, hold_clipboard_open(owner.window):
            replace_contents(saved)


class ClipboardOwner:
    """Invisible window that owns what it puts on the clipboard and supplies a promised text on request.

    It lives in the thread that created it, which has to `serve` while something is promised.
    """

    def __init__(self, promised: bytes | None = None) -> None:
        self._promised = promised
        self._procedure = WNDPROC(self._answer)
        self._name = f"handrail-{id(self):x}"
        self.asked = 0
        self.replaced = False
        self.window: int = 0

    def __enter__(self) -> ClipboardOwner:
        module = kernel32.GetModuleHandleW(None)
        kind = WindowClass(procedure=self._procedure, instance=module, name=self._name)
        if not user32.RegisterClassW(byref(kind)):
            raise build_win32_error("register a window")
        window = user32.CreateWindowExW(0, self._name, None, 0, 0, 0, 0, 0, HWND_MESSAGE, None, module, None)
        if not window:
            raise build_win32_error("make a window")
        self.window = window
        return self

    def __exit__(self, *_: object) -> None:
        self._promised = None
        user32.DestroyWindow(self.window)
        user32.UnregisterClassW(self._name, kernel32.GetModuleHandleW(None))

    def serve(self, *, until: Callable[[], bool], timeout: float) -> None:
        """Answer messages until a condition holds, or for so many seconds."""
        deadline, message = monotonic() + timeout, WindowMessage()
        while not until() and monotonic() < deadline:
            while user32.PeekMessageW(byref(message), None, 0, 0, PM_REMOVE):
                user32.DispatchMessageW(byref(message))
            sleep(CLIPBOARD_POLL_S)

    def _answer(self, window: int, message: int, wparam: int, lparam: int) -> int:
        if message == WM_RENDERFORMAT and self._promised is not None and wparam == CF_UNICODETEXT:
            self.asked += 1
            put_format(CF_UNICODETEXT, self._promised)
            return 0
        if message == WM_DESTROYCLIPBOARD:
            self.replaced = True
            return 0
        return int(user32.DefWindowProcW(window, message, wparam, lparam))


@contextmanager
def hold_clipboard_open(window: int | None) -> Generator[None]:
    """Hold the clipboard open, which only one program at a time may do.

    Another program usually holds it only for a moment; raises `Downstream` if it still does after the timeout.
    """
    deadline = monotonic() + OPEN_TIMEOUT_S
    while not user32.OpenClipboard(window):
        if monotonic() > deadline:
            raise Downstream("another program keeps the clipboard open", hint="try again, or end that program")
        sleep(CLIPBOARD_POLL_S)
    try:
        yield
    finally:
        user32.CloseClipboard()


def list_formats() -> list[int]:
    """Return the numbers of the formats on the clipboard."""
    found: list[int] = []
    while number := user32.EnumClipboardFormats(found[-1] if found else 0):
        found.append(number)
    return found


def describe_format(number: int) -> str:
    """Return a format's name."""
    buffer = create_unicode_buffer(256)
    if number in FORMAT_NAMES or not user32.GetClipboardFormatNameW(number, buffer, 256):
        return FORMAT_NAMES.get(number, f"format {number}")
    return buffer.value


def read_contents() -> SavedFormats | None:
    """Return everything needed to restore the clipboard as it is; None if something cannot be restored."""
    found = list_formats()
    saved: SavedFormats = []
    for number in found:
        if number in SYNTHESIZED_FROM:
            if not any(source in found for source in SYNTHESIZED_FROM[number]):
                return None
            continue
        if number in PRIVATE_FORMATS or (data := read_format(number)) is None:
            return None
        saved.append((number, data))
    return saved


def read_format(number: int) -> bytes | None:
    """Return the bytes of a format, or None without any; raise `Downstream` if there are too many."""
    handle = user32.GetClipboardData(number)
    if not handle:
        return None
    size = kernel32.GlobalSize(handle)
    if size > MAX_CLIPBOARD_BYTES:
        raise Downstream(f"what is in the clipboard has more than {MAX_CLIPBOARD_BYTES} bytes")
    place = kernel32.GlobalLock(handle)
    if not place:
        return None
    try:
        return ctypes.string_at(place, size)
    finally:
        kernel32.GlobalUnlock(handle)


def replace_contents(formats: SavedFormats) -> None:
    """Put these formats in the place of all that is there."""
    if not user32.EmptyClipboard():
        raise build_win32_error("empty the clipboard")
    for number, data in formats:
        put_format(number, data)


def put_format(number: int, data: bytes) -> None:
    """Put a format into the opened clipboard, which takes the memory over."""
    handle: Any = kernel32.GlobalAlloc(GMEM_MOVEABLE, max(1, len(data)))
    if not handle:
        raise build_win32_error("give memory for the clipboard")
    ctypes.memmove(kernel32.GlobalLock(handle), data, len(data))
    kernel32.GlobalUnlock(handle)
    if not user32.SetClipboardData(number, HANDLE(handle)):
        kernel32.GlobalFree(handle)
        raise build_win32_error("take what was to go into the clipboard")


def encode_text(text: str) -> bytes:
    """Encode a text for the clipboard: Windows line ends, UTF-16, NUL-terminated."""
    lines = text.replace("\r\n", "\n").replace("\n", "\r\n")
    return (lines + "\0").encode("utf-16-le", "surrogatepass")


def decode_text(data: bytes) -> str:
    """Decode text from the clipboard, with newline line ends. The memory may be longer than the text."""
    text = data[: len(data) // 2 * 2].decode("utf-16-le", "replace").partition("\0")[0]
    return text.replace("\r\n", "\n")

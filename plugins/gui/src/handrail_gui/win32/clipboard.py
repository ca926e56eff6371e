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
from handrail_gui.win32.api import WNDPROC, Message, WindowClass, failed, kernel32, user32

CF_BITMAP, CF_METAFILEPICT, CF_PALETTE, CF_ENHMETAFILE = 2, 3, 9, 14
CF_DIB, CF_UNICODETEXT, CF_HDROP, CF_DIBV5 = 8, 13, 15, 17
# Predefined formats have no name that Windows tells.
NAMES = {
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
MADE_OF = {
    CF_BITMAP: (CF_DIB, CF_DIBV5),
    CF_PALETTE: (CF_DIB, CF_DIBV5),
    CF_METAFILEPICT: (),
    CF_ENHMETAFILE: (),
}
# From here on formats are handles that belong to a program.
PRIVATE = range(0x0200, 0x0400)
GMEM_MOVEABLE = 0x2
HWND_MESSAGE = -3
WM_DESTROYCLIPBOARD, WM_RENDERFORMAT, PM_REMOVE = 0x307, 0x305, 0x1
# Managers of clipboards keep away from what has this format; what is lent is nobody's to keep.
UNKEPT = "ExcludeClipboardContentFromMonitorProcessing"

OPEN_S = 1.0
TAKEN_S = 1.5
# A program may ask twice for a text that it pastes.
AGAIN_S = 0.15
LOOK_S = 0.005
ROOM = 64 * 1024 * 1024

Saved = list[tuple[int, bytes]]


@dataclass(slots=True)
class Clipboard:
    """`Clipping` on Windows. Each change is made by a window of its own, so that nobody waits for us to answer a message later."""

    def text(self) -> str | None:
        """Its text, None when it has none."""
        with opened(None):
            data = data_of(CF_UNICODETEXT)
        return None if data is None else text_of(data)

    def formats(self) -> list[str]:
        """Its formats, as Windows names them, the one that its owner likes best first."""
        with opened(None):
            return [name_of(number) for number in numbers()]

    def write(self, text: str) -> None:
        """Replace all of it by a text."""
        with Owner() as owner, opened(owner.window):
            replace_all([(CF_UNICODETEXT, encoded(text))])

    def lend(self, text: str, paste: Callable[[], None]) -> bool:
        """Have the text in it while `paste` is done and until a program has taken it, then put all formats back."""
        saved = self.saved()
        if saved is None:
            return False
        with Owner(encoded(text)) as owner:
            with opened(owner.window):
                replace_all([])
                # Windows asks for it when somebody wants it: so it is known that somebody did.
                user32.SetClipboardData(CF_UNICODETEXT, None)
                put(user32.RegisterClipboardFormatW(UNKEPT), b"\0")
            try:
                paste()
                owner.serve(until=lambda: owner.asked > 0, timeout=TAKEN_S)
                taken = owner.asked > 0
                owner.serve(until=lambda: False, timeout=AGAIN_S)
            finally:
                # What somebody else has copied meanwhile is theirs.
                if not owner.replaced:
                    with opened(owner.window):
                        replace_all(saved)
        return taken

    def saved(self) -> Saved | None:
        """All formats; None when one of them cannot be put back."""
        with opened(None):
            return contents()

    def put_back(self, saved: Saved) -> None:
        """Replace all of it by what was saved."""
        with Owner() as owner, opened(owner.window):
            replace_all(saved)


class Owner:
    """A window that nobody sees and that owns what it puts into the clipboard; it gives a promised text when it is asked.

    It lives in the thread that made it, which has to `serve` while something is promised.
    """

    def __init__(self, promised: bytes | None = None) -> None:
        self._promised = promised
        self._procedure = WNDPROC(self._answer)
        self._name = f"handrail-{id(self):x}"
        self.asked = 0
        self.replaced = False
        self.window: int = 0

    def __enter__(self) -> Owner:
        module = kernel32.GetModuleHandleW(None)
        kind = WindowClass(procedure=self._procedure, instance=module, name=self._name)
        if not user32.RegisterClassW(byref(kind)):
            raise failed("register a window")
        window = user32.CreateWindowExW(0, self._name, None, 0, 0, 0, 0, 0, HWND_MESSAGE, None, module, None)
        if not window:
            raise failed("make a window")
        self.window = window
        return self

    def __exit__(self, *_: object) -> None:
        self._promised = None
        user32.DestroyWindow(self.window)
        user32.UnregisterClassW(self._name, kernel32.GetModuleHandleW(None))

    def serve(self, *, until: Callable[[], bool], timeout: float) -> None:
        """Answer messages until a condition holds, or for so many seconds."""
        deadline, message = monotonic() + timeout, Message()
        while not until() and monotonic() < deadline:
            while user32.PeekMessageW(byref(message), None, 0, 0, PM_REMOVE):
                user32.DispatchMessageW(byref(message))
            sleep(LOOK_S)

    def _answer(self, window: int, message: int, wparam: int, lparam: int) -> int:
        if message == WM_RENDERFORMAT and self._promised is not None and wparam == CF_UNICODETEXT:
            self.asked += 1
            put(CF_UNICODETEXT, self._promised)
            return 0
        if message == WM_DESTROYCLIPBOARD:
            self.replaced = True
            return 0
        return int(user32.DefWindowProcW(window, message, wparam, lparam))


@contextmanager
def opened(window: int | None) -> Generator[None]:
    """The clipboard, which one program at a time may open; another one has it for a moment, mostly."""
    deadline = monotonic() + OPEN_S
    while not user32.OpenClipboard(window):
        if monotonic() > deadline:
            raise Downstream("another program keeps the clipboard open", hint="try again, or end that program")
        sleep(LOOK_S)
    try:
        yield
    finally:
        user32.CloseClipboard()


def numbers() -> list[int]:
    """The formats in it."""
    found: list[int] = []
    while number := user32.EnumClipboardFormats(found[-1] if found else 0):
        found.append(number)
    return found


def name_of(number: int) -> str:
    """A format's name."""
    buffer = create_unicode_buffer(256)
    if number in NAMES or not user32.GetClipboardFormatNameW(number, buffer, 256):
        return NAMES.get(number, f"format {number}")
    return buffer.value


def contents() -> Saved | None:
    """All that has to be put back for the clipboard to be as it is; None when something cannot be."""
    found = numbers()
    saved: Saved = []
    for number in found:
        if number in MADE_OF:
            if not any(source in found for source in MADE_OF[number]):
                return None
            continue
        if number in PRIVATE or (data := data_of(number)) is None:
            return None
        saved.append((number, data))
    return saved


def data_of(number: int) -> bytes | None:
    """The bytes of a format; None when there are none. `Downstream` when they are too many."""
    handle = user32.GetClipboardData(number)
    if not handle:
        return None
    size = kernel32.GlobalSize(handle)
    if size > ROOM:
        raise Downstream(f"what is in the clipboard has more than {ROOM} bytes")
    place = kernel32.GlobalLock(handle)
    if not place:
        return None
    try:
        return ctypes.string_at(place, size)
    finally:
        kernel32.GlobalUnlock(handle)


def replace_all(formats: Saved) -> None:
    """Put these formats in the place of all that is there."""
    if not user32.EmptyClipboard():
        raise failed("empty the clipboard")
    for number, data in formats:
        put(number, data)


def put(number: int, data: bytes) -> None:
    """Put a format into the opened clipboard, which takes the memory over."""
    handle: Any = kernel32.GlobalAlloc(GMEM_MOVEABLE, max(1, len(data)))
    if not handle:
        raise failed("give memory for the clipboard")
    ctypes.memmove(kernel32.GlobalLock(handle), data, len(data))
    kernel32.GlobalUnlock(handle)
    if not user32.SetClipboardData(number, HANDLE(handle)):
        kernel32.GlobalFree(handle)
        raise failed("take what was to go into the clipboard")


def encoded(text: str) -> bytes:
    """A text as the clipboard has it: lines end as Windows ends them, and a NUL ends it."""
    lines = text.replace("\r\n", "\n").replace("\n", "\r\n")
    return (lines + "\0").encode("utf-16-le", "surrogatepass")


def text_of(data: bytes) -> str:
    """The text of such bytes, with lines that end as everywhere else. The memory may be longer than the text."""
    text = data[: len(data) // 2 * 2].decode("utf-16-le", "replace").partition("\0")[0]
    return text.replace("\r\n", "\n")

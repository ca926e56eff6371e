"""macOS as a `NativeSystem`: pictures by mss, the clipboard by NSPasteboard."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import sleep
from typing import Any

import numpy as np
from mss import MSS
from mss.exception import ScreenShotError

from handrail import Downstream, Rect
from handrail_gui.platforms.macos.frameworks import MacFrameworks, load_frameworks
from handrail_gui.platforms.macos.inputs import MacInput
from handrail_gui.platforms.macos.windows import MESSAGING_TIMEOUT_S, MacWindows

TEXT_TYPE = "public.utf8-plain-text"
# Managers of clipboards keep away from what has this format (nspasteboard.org).
TRANSIENT_TYPE = "org.nspasteboard.TransientType"
# A Mac does not tell that a program took the text: it is given so long.
PASTE_DELAY_S = 0.4
RECORDING_HINT = (
    "System Settings > Privacy & Security > Screen & System Audio Recording: switch on the program that Handrail was started from (the terminal "
    "or the editor), and start that program again"
)


@dataclass(slots=True)
class MacPasteboard:
    """`NativeClipboard` on macOS."""

    parts: MacFrameworks

    def text(self) -> str | None:
        """Return the text, or None without any."""
        found = self._board().stringForType_(TEXT_TYPE)
        return None if found is None else str(found)

    def formats(self) -> list[str]:
        """Return the available formats, as macOS names them."""
        return [str(name) for name in self._board().types() or ()]

    def write(self, text: str) -> None:
        """Replace all of it by a text."""
        self._board().clearContents()
        if not self._board().setString_forType_(text, TEXT_TYPE):
            raise Downstream("macOS did not take the text into the clipboard")

    def lend(self, text: str, paste: Callable[[], None]) -> bool:
        """Have the text in it while `paste` is done and a moment longer, then put all formats of all its things back."""
        saved = self.saved()
        if saved is None:
            return False
        self.write(text)
        self._board().setString_forType_("", TRANSIENT_TYPE)
        lent = self._board().changeCount()
        try:
            paste()
            sleep(PASTE_DELAY_S)
        finally:
            # What somebody else has copied meanwhile is theirs.
            if self._board().changeCount() == lent:
                self.put_back(saved)
        return True

    def put_back(self, saved: list[dict[str, Any]]) -> None:
        """Replace all of it by what was saved."""
        self._board().clearContents()
        self._board().writeObjects_([self._item(formats) for formats in saved])

    def saved(self) -> list[dict[str, Any]] | None:
        """Return each item's data by format; None if any of it cannot be retrieved."""
        items = self._board().pasteboardItems() or ()
        saved = [{str(name): item.dataForType_(name) for name in item.types()} for item in items]
        return None if any(data is None for formats in saved for data in formats.values()) else saved

    def _item(self, formats: dict[str, Any]) -> Any:
        item = self.parts.appkit.NSPasteboardItem.alloc().init()
        for name, data in formats.items():
            item.setData_forType_(data, name)
        return item

    def _board(self) -> Any:
        return self.parts.appkit.NSPasteboard.generalPasteboard()


@dataclass(slots=True)
class MacSystem:
    """The desktop of the person who runs us. Made and used in one thread."""

    parts: MacFrameworks
    windowing: MacWindows
    pointing: MacInput
    clipping: MacPasteboard
    _source: MSS | None = None

    def grab(self, area: Rect) -> Any:
        """Capture the pixels of a part of the screen, one for each point.

        Raises `Downstream` without the screen recording permission, since macOS would show the empty desktop.
        """
        if not self.parts.quartz.CGPreflightScreenCaptureAccess():
            raise Downstream("macOS does not let this program see the screen", hint=RECORDING_HINT)
        try:
            if self._source is None:
                self._source = MSS()
            shot = self._source.grab({"left": area.x, "top": area.y, "width": area.width, "height": area.height})
        except ScreenShotError as exc:
            self.end()
            raise Downstream(f"the screen cannot be read: {exc}", hint=RECORDING_HINT) from exc
        pixels = np.frombuffer(shot.raw, np.uint8).reshape(shot.height, shot.width, 4)
        return np.ascontiguousarray(pixels[: area.height, : area.width, :3])

    def end(self) -> None:
        """Free the memory of the picture and release every key."""
        self.pointing.release_keys()
        if self._source is not None:
            self._source.close()
            self._source = None


def build_system(parts: MacFrameworks) -> MacSystem:
    """Build the system that uses these frameworks."""
    # Set for one object it would hold for that object only.
    parts.accessibility.AXUIElementSetMessagingTimeout(
        parts.accessibility.AXUIElementCreateSystemWide(), MESSAGING_TIMEOUT_S
    )
    return MacSystem(parts, MacWindows(parts), MacInput(parts), MacPasteboard(parts))


def open_mac_system() -> MacSystem:
    """Open the system for the calling thread."""
    return build_system(load_frameworks())

"""macOS as a `System`: pictures by mss, the clipboard by NSPasteboard."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import sleep
from typing import Any

import numpy as np
from mss import MSS
from mss.exception import ScreenShotError

from handrail import Downstream, Rect
from handrail_gui.macos.frameworks import Frameworks, frameworks
from handrail_gui.macos.inputs import MacInputs
from handrail_gui.macos.windows import ANSWER_S, MacWindows

TEXT = "public.utf8-plain-text"
# Managers of clipboards keep away from what has this format (nspasteboard.org).
TRANSIENT = "org.nspasteboard.TransientType"
# A Mac does not tell that a program took the text: it is given so long.
TAKEN_S = 0.4
RECORDING = (
    "System Settings > Privacy & Security > Screen & System Audio Recording: switch on the program that Handrail was started from (the terminal "
    "or the editor), and start that program again"
)


@dataclass(slots=True)
class Pasteboard:
    """`Clipping` on macOS."""

    parts: Frameworks

    def text(self) -> str | None:
        """Its text, None when it has none."""
        found = self._board().stringForType_(TEXT)
        return None if found is None else str(found)

    def formats(self) -> list[str]:
        """Its formats, as macOS names them."""
        return [str(name) for name in self._board().types() or ()]

    def write(self, text: str) -> None:
        """Replace all of it by a text."""
        self._board().clearContents()
        if not self._board().setString_forType_(text, TEXT):
            raise Downstream("macOS did not take the text into the clipboard")

    def lend(self, text: str, paste: Callable[[], None]) -> bool:
        """Have the text in it while `paste` is done and a moment longer, then put all formats of all its things back."""
        saved = self.saved()
        if saved is None:
            return False
        self.write(text)
        self._board().setString_forType_("", TRANSIENT)
        lent = self._board().changeCount()
        try:
            paste()
            sleep(TAKEN_S)
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
        """Each thing's data by format; None when one of them cannot be had."""
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

    parts: Frameworks
    windowing: MacWindows
    pointing: MacInputs
    clipping: Pasteboard
    _source: MSS | None = None

    def grab(self, area: Rect) -> Any:
        """The pixels of a part of the screen, one for each point. Without the permission macOS would show the empty desktop."""
        if not self.parts.quartz.CGPreflightScreenCaptureAccess():
            raise Downstream("macOS does not let this program see the screen", hint=RECORDING)
        try:
            if self._source is None:
                self._source = MSS()
            shot = self._source.grab({"left": area.x, "top": area.y, "width": area.width, "height": area.height})
        except ScreenShotError as exc:
            self.end()
            raise Downstream(f"the screen cannot be read: {exc}", hint=RECORDING) from exc
        pixels = np.frombuffer(shot.raw, np.uint8).reshape(shot.height, shot.width, 4)
        return np.ascontiguousarray(pixels[: area.height, : area.width, :3])

    def end(self) -> None:
        """Give the picture's memory back, and let go of every key."""
        self.pointing.release_keys()
        if self._source is not None:
            self._source.close()
            self._source = None


def system_of(parts: Frameworks) -> MacSystem:
    """The system that these frameworks make."""
    # Set for one object it would hold for that object only.
    parts.accessibility.AXUIElementSetMessagingTimeout(parts.accessibility.AXUIElementCreateSystemWide(), ANSWER_S)
    return MacSystem(parts, MacWindows(parts), MacInputs(parts), Pasteboard(parts))


def begin() -> MacSystem:
    """The system for the calling thread."""
    return system_of(frameworks())

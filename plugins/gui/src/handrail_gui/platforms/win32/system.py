"""Windows as a `NativeSystem`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from mss import MSS
from mss.exception import ScreenShotError

from handrail import Downstream, Rect
from handrail_gui.platforms.win32.api import enable_dpi_awareness
from handrail_gui.platforms.win32.clipboard import Win32Clipboard
from handrail_gui.platforms.win32.inputs import Win32Input
from handrail_gui.platforms.win32.windows import Win32Windows


@dataclass(slots=True)
class Win32System:
    """The desktop of the person who runs us. Made and used in one thread."""

    windowing: Win32Windows = field(default_factory=Win32Windows)
    pointing: Win32Input = field(default_factory=Win32Input)
    clipping: Win32Clipboard = field(default_factory=Win32Clipboard)
    _source: MSS | None = None

    def grab(self, area: Rect) -> Any:
        """Capture the pixels of a part of the screen."""
        try:
            if self._source is None:
                self._source = MSS()
            shot = self._source.grab({"left": area.x, "top": area.y, "width": area.width, "height": area.height})
        except ScreenShotError as exc:
            self.end()
            raise Downstream(f"the screen cannot be read: {exc}", hint="unlock the screen") from exc
        pixels = np.frombuffer(shot.raw, np.uint8).reshape(area.height, area.width, 4)
        return np.ascontiguousarray(pixels[..., :3])

    def end(self) -> None:
        """Free the memory of the picture and release every key."""
        self.pointing.release_keys()
        if self._source is not None:
            self._source.close()
            self._source = None


def open_win32_system() -> Win32System:
    """Open the system for the calling thread, which sees real pixels from then on."""
    enable_dpi_awareness()
    return Win32System()

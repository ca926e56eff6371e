"""Windows as a `System`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from mss import MSS
from mss.exception import ScreenShotError

from handrail import Downstream, Rect
from handrail_gui.win32.api import be_aware_of_scale
from handrail_gui.win32.clipboard import Clipboard
from handrail_gui.win32.inputs import Inputs
from handrail_gui.win32.windows import Windows


@dataclass(slots=True)
class WindowsSystem:
    """The desktop of the person who runs us. Made and used in one thread."""

    windowing: Windows = field(default_factory=Windows)
    pointing: Inputs = field(default_factory=Inputs)
    clipping: Clipboard = field(default_factory=Clipboard)
    _source: MSS | None = None

    def grab(self, area: Rect) -> Any:
        """The pixels of a part of the screen."""
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
        """Give the picture's memory back, and let go of every key."""
        self.pointing.release_keys()
        if self._source is not None:
            self._source.close()
            self._source = None


def begin() -> WindowsSystem:
    """The system for the calling thread, which sees real pixels from now on."""
    be_aware_of_scale()
    return WindowsSystem()

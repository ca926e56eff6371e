"""Pictures of an X screen through shared memory."""

from __future__ import annotations

from time import monotonic
from typing import Any

import numpy as np
from mss import MSS
from mss.exception import ScreenShotError

from handrail import Downstream, Frame, OutOfRange, Rect
from handrail_gui.platforms.opencv import cv2
from handrail_gui.platforms.x11.connection import X11Client
from handrail_gui.platforms.x11.windows import screen_bounds


class ScreenCamera:
    """Takes pictures of one display; used in its connection's thread only."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._source: MSS | None = None

    def take(self, client: X11Client, area: Rect | None) -> Frame:
        """Capture the part of `area` that is on the screen, BGR; raise `OutOfRange` if none is."""
        screen = screen_bounds(client)
        shown = screen if area is None else area.intersect(screen)
        if shown.empty:
            raise OutOfRange(
                f"the area {area.corners() if area else []} is not on the screen, which is {screen.width}x{screen.height}"
            )
        return Frame(shown, self._pixels(shown), monotonic())

    def _pixels(self, area: Rect) -> Any:
        try:
            if self._source is None:
                self._source = MSS(display=self._name)
            box = {"left": area.x, "top": area.y, "width": area.width, "height": area.height}
            shot = self._source.grab(box)
        except ScreenShotError as exc:
            self.close()
            raise Downstream(f"the screen {self._name} cannot be read: {exc}") from exc
        pixels = np.frombuffer(shot.raw, np.uint8).reshape(area.height, area.width, 4)
        return cv2.cvtColor(pixels, cv2.COLOR_BGRA2BGR)

    def close(self) -> None:
        """Give the picture's memory back."""
        if self._source is not None:
            self._source.close()
            self._source = None

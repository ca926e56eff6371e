"""A window that turns black a third of a second after it was clicked, as one does that is starved of the processor: python slow_window.py"""

from __future__ import annotations

import os
import time

from Xlib import X, Xatom, display

LATE_S = 0.3


def main() -> None:
    screen = display.Display()
    window = screen.screen().root.create_window(
        300, 200, 400, 300, 0, X.CopyFromParent, background_pixel=0xFFFFFF, event_mask=X.ButtonPressMask
    )
    window.set_wm_name("slow")
    window.change_property(screen.get_atom("_NET_WM_PID"), Xatom.CARDINAL, 32, [os.getpid()])
    window.map()
    paint = window.create_gc(foreground=0)
    while True:
        if screen.next_event().type == X.ButtonPress:
            time.sleep(LATE_S)
            window.fill_rectangle(paint, 0, 0, 400, 300)
            screen.sync()


if __name__ == "__main__":
    main()

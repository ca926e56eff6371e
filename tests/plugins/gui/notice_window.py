"""A window that no window manager manages: python notice_window.py X Y WIDTH HEIGHT"""

from __future__ import annotations

import os
import sys

from Xlib import X, Xatom, display


def main(x: int, y: int, width: int, height: int) -> None:
    screen = display.Display()
    root = screen.screen().root
    notice = root.create_window(
        x, y, width, height, 0, X.CopyFromParent, override_redirect=True, background_pixel=0xFFFF00
    )
    notice.change_property(screen.intern_atom("_NET_WM_PID"), Xatom.CARDINAL, 32, [os.getpid()])
    notice.change_attributes(event_mask=X.ButtonPressMask)
    notice.map()
    while True:
        screen.next_event()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))

"""A window that turns black, once, when a button of the mouse goes down anywhere: python watching_window.py x y width height"""

from __future__ import annotations

import sys
import time

from Xlib import X, display


def main(x: int, y: int, width: int, height: int) -> None:
    screen = display.Display()
    root = screen.screen().root
    window = root.create_window(x, y, width, height, 0, X.CopyFromParent, background_pixel=0xFFFFFF)
    window.set_wm_name("watching")
    window.set_wm_normal_hints(flags=1 << 0, x=x, y=y)
    window.map()
    screen.sync()
    while not root.query_pointer().mask & X.Button1Mask:
        time.sleep(0.001)
    window.fill_rectangle(window.create_gc(foreground=0), 0, 0, width, height)
    screen.sync()
    while True:
        time.sleep(60)


if __name__ == "__main__":
    main(*(int(given) for given in sys.argv[1:]))

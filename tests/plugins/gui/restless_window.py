"""A window in which a square changes its colour many times a second, as an animation does: python restless_window.py [x y width height]"""

from __future__ import annotations

import random
import sys
import time

from Xlib import X, display


def main(x: int, y: int, width: int, height: int) -> None:
    screen = display.Display()
    root = screen.screen().root
    window = root.create_window(x, y, width, height, 0, X.CopyFromParent, background_pixel=0xFFFFFF)
    window.set_wm_name("restless")
    window.set_wm_normal_hints(flags=1 << 0, x=x, y=y)
    window.map()
    paint = window.create_gc()
    while True:
        paint.change(foreground=random.getrandbits(24))
        window.fill_rectangle(paint, 20, 20, 40, 40)
        screen.sync()
        time.sleep(0.01)


if __name__ == "__main__":
    main(*(int(given) for given in sys.argv[1:] or ("700", "300", "200", "150")))

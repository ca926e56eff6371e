"""A window that changes by itself: python restless_window.py always|pressed

`always`: a square in it changes its colour many times a second, as an animation does. `pressed`: it turns black, once, when a button of the mouse
goes down anywhere.
"""

from __future__ import annotations

import random
import signal
import sys
import time

from Xlib import X, display
from Xlib.ext import xinput

LEFT, TOP, WIDTH, HEIGHT = 700, 300, 200, 150


def main(when: str) -> None:
    screen = display.Display()
    root = screen.screen().root
    window = root.create_window(LEFT, TOP, WIDTH, HEIGHT, 0, X.CopyFromParent, background_pixel=0xFFFFFF)
    window.set_wm_name("restless")
    window.set_wm_normal_hints(flags=1 << 0, x=LEFT, y=TOP)
    if when == "pressed":
        # An event: who asks where the buttons are may miss a short click.
        root.xinput_select_events([(xinput.AllMasterDevices, xinput.RawButtonPressMask)])
    window.map()
    paint = window.create_gc(foreground=0)
    screen.sync()
    if when == "pressed":
        while getattr(screen.next_event(), "evtype", None) != xinput.RawButtonPress:
            pass
        window.fill_rectangle(paint, 0, 0, WIDTH, HEIGHT)
        screen.sync()
        signal.pause()
    while True:
        paint.change(foreground=random.getrandbits(24))
        window.fill_rectangle(paint, 20, 20, 40, 40)
        screen.sync()
        time.sleep(0.01)


if __name__ == "__main__":
    main(sys.argv[1])

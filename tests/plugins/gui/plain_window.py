"""A program without accessibility: writes the characters that it is typed to a file, and can hold a terminal as an emulator does.

python plain_window.py FILE [terminal|plain [TITLE]]
"""

from __future__ import annotations

import os
import sys

from Xlib import XK, X, Xatom, display


def main(path: str, kind: str = "", title: str = "plain window") -> None:
    if kind == "terminal":
        os.openpty()
    screen = display.Display()
    window = screen.screen().root.create_window(50, 50, 300, 200, 0, X.CopyFromParent, event_mask=X.KeyPressMask)
    window.set_wm_name(title)
    window.change_property(screen.get_atom("_NET_WM_PID"), Xatom.CARDINAL, 32, [os.getpid()])
    window.map()
    with open(path, "a", encoding="utf-8") as file:
        while True:
            event = screen.next_event()
            if event.type == X.MappingNotify:
                screen.refresh_keyboard_mapping(event)
            elif event.type == X.KeyPress and not event.state & X.ControlMask:
                keysym = screen.keycode_to_keysym(event.detail, 1 if event.state & X.ShiftMask else 0)
                file.write(character(keysym))
                file.flush()


def character(keysym: int) -> str:
    if keysym == XK.XK_Return:
        return "\n"
    if keysym >= 0x01000000:
        return chr(keysym - 0x01000000)
    return chr(keysym) if keysym <= 0xFF else ""


if __name__ == "__main__":
    main(*sys.argv[1:])

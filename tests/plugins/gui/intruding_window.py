"""Two windows, of which the second comes up when the first is touched; each press of a button on the second is written to a file.

python intruding_window.py pointer|keys FILE

`pointer`: it comes up where the pointer is, when that enters the first. `keys`: it takes the keyboard at the twentieth key.
"""

from __future__ import annotations

import os
import sys

from Xlib import X, Xatom, display
from Xlib.protocol.event import ClientMessage
from Xlib.xobject.drawable import Window

KEYS_BEFORE = 20


def main(kind: str, path: str) -> None:
    screen = display.Display()
    touched = X.EnterWindowMask if kind == "pointer" else X.KeyPressMask
    first = window(screen, "first", mask=touched)
    first.map()
    second = window(screen, "second", mask=X.ButtonPressMask | X.KeyPressMask, bare=kind == "pointer")
    keys, up = 0, False
    with open(path, "a", encoding="utf-8") as file:
        while True:
            event = screen.next_event()
            if event.type in (X.ButtonPress, X.KeyPress) and event.window == second:
                file.write("x")
                file.flush()
            keys += event.type == X.KeyPress
            if not up and (event.type == X.EnterNotify or keys >= KEYS_BEFORE):
                up = True
                second.map()
                activate(screen, second)


def activate(screen: display.Display, made: Window) -> None:
    """As a pager does, which no window manager takes for stealing the focus."""
    asked = ClientMessage(window=made, client_type=screen.get_atom("_NET_ACTIVE_WINDOW"), data=(32, [2, 0, 0, 0, 0]))
    screen.screen().root.send_event(asked, event_mask=X.SubstructureRedirectMask | X.SubstructureNotifyMask)
    screen.sync()


def window(screen: display.Display, title: str, *, mask: int, bare: bool = False) -> Window:
    """`bare`: no window manager puts it anywhere else, as with a menu."""
    made = screen.screen().root.create_window(
        300, 200, 400, 300, 0, X.CopyFromParent, event_mask=mask, override_redirect=bare
    )
    made.set_wm_name(title)
    made.set_wm_normal_hints(flags=1 << 0, x=300, y=200)
    made.change_property(screen.get_atom("_NET_WM_PID"), Xatom.CARDINAL, 32, [os.getpid()])
    return made


if __name__ == "__main__":
    main(*sys.argv[1:])

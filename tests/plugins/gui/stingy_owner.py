"""A program that owns the clipboard, begins to give a large text in pieces, and never gives the second one."""

from __future__ import annotations

from Xlib import X, Xatom, display
from Xlib.protocol import event


def main() -> None:
    screen = display.Display()
    window = screen.screen().root.create_window(0, 0, 1, 1, 0, X.CopyFromParent)
    window.set_selection_owner(screen.get_atom("CLIPBOARD"), X.CurrentTime)
    while True:
        told = screen.next_event()
        if told.type != X.SelectionRequest:
            continue
        if screen.get_atom_name(told.target) == "TARGETS":
            offered = [screen.get_atom(name) for name in ("UTF8_STRING", "text/x-stingy")]
            told.requestor.change_property(told.property, Xatom.ATOM, 32, offered)
        else:
            told.requestor.change_property(told.property, screen.get_atom("INCR"), 32, [1_000_000])
        answer = event.SelectionNotify(
            time=told.time,
            requestor=told.requestor,
            selection=told.selection,
            target=told.target,
            property=told.property,
        )
        told.requestor.send_event(answer)
        screen.flush()


if __name__ == "__main__":
    main()

"""A person at a screen that has no mouse: input of the devices that an X server says it has.

XTEST as programs use it comes from devices of its own. The same extension can also fake the input of another device (XTestFakeDeviceButtonEvent
and its like in libXtst); the server then handles it as that device's own, raw events and all. That is done here.
"""

from __future__ import annotations

from Xlib import display
from Xlib.ext import xinput
from Xlib.protocol import rq

# Kinds of events of the X Input extension, counted from its first one.
KEY_PRESS, KEY_RELEASE, BUTTON_PRESS, BUTTON_RELEASE = 1, 2, 3, 4


class FakeDevice(rq.Request):
    """XTestFakeInput with an event of a device."""

    _request = rq.Struct(
        rq.Card8("opcode"),
        rq.Opcode(2),
        rq.RequestLength(),
        rq.Card8("type"),
        rq.Card8("detail"),
        rq.Pad(29),
        rq.Card8("device"),
    )


class Person:
    """Hands on the devices of an Xvfb."""

    def __init__(self, name: str) -> None:
        self._display = display.Display(name)
        self._devices = {
            device.name: device.deviceid for device in xinput.query_device(self._display, xinput.AllDevices).devices
        }
        extension = self._display.query_extension(xinput.extname)
        assert extension is not None
        self._first = extension.first_event

    def press_key(self, code: int = 38) -> None:
        self._do("Xvfb keyboard", (KEY_PRESS, code), (KEY_RELEASE, code))

    def click(self) -> None:
        self._do("Xvfb mouse", (BUTTON_PRESS, 1), (BUTTON_RELEASE, 1))

    def _do(self, device: str, *events: tuple[int, int]) -> None:
        opcode = self._display.display.get_extension_major("XTEST")
        for kind, detail in events:
            number = self._devices[device]
            FakeDevice(
                display=self._display.display, opcode=opcode, type=self._first + kind, detail=detail, device=number
            )
        self._display.sync()

    def leave(self) -> None:
        self._display.close()

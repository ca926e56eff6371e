"""Detection of the user's own mouse and keyboard input on an X display, as opposed to input from programs.

Jobs for `X11Connection.run`. Input that programs send by XTEST comes from separate devices, so raw events (XInput 2.2)
of all other devices are the user's. A user who operates the screen remotely through a server that itself uses XTEST,
such as x11vnc, is not detected here.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic
from typing import Any

from Xlib.ext import ge, xinput

from handrail import PersonAtWork
from handrail_gui.platforms.x11.connection import X11Client

SLAVE_DEVICE_USES = (3, 4, 5)
RAW_EVENTS = (xinput.RawKeyPress, xinput.RawButtonPress, xinput.RawMotion)
RAW_EVENT_MASK = xinput.RawKeyPressMask | xinput.RawButtonPressMask | xinput.RawMotionMask


@dataclass(slots=True)
class UserActivity:
    """Record of the user's last input; `pause` is the number of seconds for which that input blocks the agent."""

    pause: float
    _watching: bool = False
    _last: float | None = None
    _seen: float | None = None

    def watch(self, client: X11Client) -> None:
        """Listen to the devices there are, and to those that come."""
        if self._watching or not client.display.has_extension(xinput.extname):
            return
        self._watching = True
        # From 2.1 on raw events come also while a program has grabbed the device, as an open menu has. python-xlib asks for 2.0 only.
        opcode = client.display.display.get_extension_major(xinput.extname)
        xinput.XIQueryVersion(display=client.display.display, opcode=opcode, major_version=2, minor_version=2)
        client.on(ge.GenericEventCode, lambda told: self._told(client, told))
        xinput.select_events(client.root, [(xinput.AllDevices, [xinput.HierarchyChangedMask])])
        self._listen(client)

    def left(self, client: X11Client) -> float:
        """Return the seconds until the user has been idle for long enough; 0 if they have.

        At 0 they are expected to stay away.
        """
        self._look(client)
        left = 0.0 if self._last is None else max(0.0, self._last + self.pause - monotonic())
        if left == 0:
            self._seen = self._last
        return left

    def check(self, client: X11Client) -> None:
        """Raise `PersonAtWork` if there was user input since `left` last returned 0."""
        self._look(client)
        if self.pause and self._last != self._seen:
            raise PersonAtWork(
                "a person is using mouse or keyboard: input has stopped where it was",
                hint="see what has become of it; the next call waits until they are done",
            )

    def _look(self, client: X11Client) -> None:
        """Hear of all that was done until now: the server answers a request after the events before it, which it may still hold."""
        if self._watching:
            client.display.sync()
        client.dispatch()

    def _told(self, client: X11Client, told: Any) -> None:
        if told.evtype in RAW_EVENTS:
            self._last = monotonic()
        elif told.evtype == xinput.HierarchyChanged:
            self._listen(client)

    def _listen(self, client: X11Client) -> None:
        devices = xinput.query_device(client.display, xinput.AllDevices).devices
        own = [
            device.deviceid
            for device in devices
            if device.use in SLAVE_DEVICE_USES and not _is_xtest_device(client, device.deviceid)
        ]
        xinput.select_events(client.root, [(number, [RAW_EVENT_MASK]) for number in own])
        client.display.flush()


def _is_xtest_device(client: X11Client, device: int) -> bool:
    return client.atom("XTEST Device") in xinput.list_device_properties(client.display, device).atoms

"""Screens."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from tests.end_to_end.troubles.place import Met, Place


def there_is_no_screen(place: Place) -> Met:
    """There is no screen."""
    return place.handrail("call", "window_list", plugins="gui")


def the_screen_is_not_there(place: Place) -> Met:
    """DISPLAY names a screen that does not exist."""
    return place.handrail("call", "window_list", plugins="gui", DISPLAY=":9777")


def the_screen_does_not_answer(place: Place) -> Met:
    """The screen does not answer."""
    with _stopped_server() as display:
        place.shown[display] = ":1"
        return place.handrail("call", "window_list", plugins="gui", DISPLAY=display)


def a_private_desktop_lacks_programs(place: Place) -> Met:
    """Programs that a private desktop needs are missing."""
    return place.handrail("call", "window_list", "--desktop", "private", plugins="gui", PATH=place.programs("bash"))


def the_desktop_is_not_there(place: Place) -> Met:
    """No desktop of that name is running."""
    return place.handrail("call", "window_list", "--desktop", "work", plugins="gui")


def the_backend_sees_nothing(place: Place) -> Met:
    """A tool needs another vision backend."""
    words = ("call", "observe_screen", "--backend", "gemini_computer_use", "--desktop", "private")
    return place.handrail(*words, plugins="gui,gemini_cu")


@contextmanager
def _stopped_server() -> Iterator[str]:
    """The name of an X server that is there and is held."""
    reading, writing = os.pipe()
    server = subprocess.Popen(["Xvfb", "-displayfd", str(writing)], pass_fds=[writing], stderr=subprocess.DEVNULL)
    os.close(writing)
    with server, os.fdopen(reading) as told:
        try:
            display = f":{told.readline().strip()}"
            server.send_signal(signal.SIGSTOP)
            yield display
        finally:
            server.kill()

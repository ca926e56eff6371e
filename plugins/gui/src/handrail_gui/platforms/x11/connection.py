"""One X connection and the only thread that uses it.

Jobs are functions of an `X11Client`; they run in order, each to completion, and nothing else touches the connection.
Between jobs the thread answers events, which keeps a clipboard available.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import select
import socket
import threading
from collections import deque
from collections.abc import Callable, Generator
from concurrent.futures import Future
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, TypeVar

from Xlib import X, display, error
from Xlib.protocol import rq
from Xlib.xobject.drawable import Window as XWindow

from handrail import DesktopError, Downstream
from handrail.desktop.thread_worker import settle_future
from handrail_gui.platforms.x11.client_check import find_overwritten_client

log = logging.getLogger(__name__)

T = TypeVar("T")
EventHandler = Callable[[Any], None]

CONNECT_TIMEOUT_S = 5.0
JOB_TIMEOUT_S = 5.0

# Bytes of a property that are read at most; a title or an icon is far below, and nobody can fill our memory.
MAX_PROPERTY_BYTES = 1 << 20


@dataclass(slots=True)
class X11Client:
    """The connection as jobs see it; used in its thread only."""

    display: display.Display
    root: XWindow
    handlers: dict[int, list[EventHandler]] = field(default_factory=dict[int, list[EventHandler]])
    closing: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])

    def atom(self, name: str) -> int:
        return self.display.get_atom(name)

    def window(self, number: int) -> XWindow:
        return self.display.create_resource_object("window", number)

    def property(self, window: XWindow, name: str) -> Any:
        """Return a property's value (bytes, or an array of numbers), or None if it is not set."""
        found = window.get_full_property(self.atom(name), X.AnyPropertyType, sizehint=MAX_PROPERTY_BYTES // 4)
        return None if found is None else found.value

    def numbers(self, window: XWindow, name: str) -> list[int]:
        """Return a property that is a list of numbers; empty if it is not set."""
        value = self.property(window, name)
        return [] if value is None or isinstance(value, bytes) else [int(number) for number in value]

    def on(self, event: int, handler: EventHandler) -> None:
        """Call `handler` with each event of that type."""
        self.handlers.setdefault(event, []).append(handler)

    def dispatch(self) -> None:
        """Hand out the events that have come."""
        while self.display.pending_events():
            event = self.display.next_event()
            for handler in self.handlers.get(event.type, ()):
                handler(event)

    def pump(self, until: Callable[[], bool], *, timeout: float) -> bool:
        """Answer events until a condition holds; False when it does not within `timeout` seconds."""
        deadline = monotonic() + timeout
        while True:
            self.dispatch()
            if until():
                return True
            left = deadline - monotonic()
            if left <= 0:
                return False
            if not self.stirred():
                select.select([self.display.fileno()], [], [], left)

    def stirred(self) -> bool:
        """Return True if events are waiting once everything has been sent.

        Sending also reads, and events read that way make no descriptor readable.
        """
        self.display.flush()
        return self.display.pending_events() > 0


DISPLAY_HINT = 'start it again, set DISPLAY to one that is there, or use desktop = "private"'


class X11Connection:
    """The worker of one X display. `run` is the only way in; after a failure every job is refused with the reason."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._jobs: deque[tuple[Callable[[X11Client], Any], Future[Any]]] = deque()
        self._wake_reading, self._wake_writing = os.pipe()
        os.set_blocking(self._wake_writing, False)
        self._ready: Future[X11Client] = Future()
        self._client: X11Client | None = None
        self._ended: str | None = None
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._work, name=f"x11 {name}", daemon=True)

    @classmethod
    async def open(cls, name: str) -> X11Connection:
        """Open a working connection; raise `DesktopError` with the reason if that fails."""
        connection = cls(name)
        connection._thread.start()
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                await asyncio.wrap_future(connection._ready)
        except TimeoutError as exc:
            connection._end(f"the X server {name} does not answer")
            raise DesktopError(f"the X server {name} does not answer", hint=DISPLAY_HINT) from exc
        return connection

    async def run(self, job: Callable[[X11Client], T], *, timeout: float = JOB_TIMEOUT_S) -> T:
        """Run a job and return its result; raise `Downstream` if the server is gone or takes over `timeout` seconds.

        A job that has started is not stopped when its caller is cancelled; one that has not started is dropped.
        """
        future: Future[T] = Future()
        with self._lock:
            if self._ended is not None:
                raise Downstream(self._ended, hint="the desktop has to be started again")
            self._jobs.append((job, future))
            self._wake()
        try:
            async with asyncio.timeout(timeout):
                return await asyncio.wrap_future(future)
        except TimeoutError as exc:
            self._end(f"the X server {self.name} does not answer")
            raise Downstream(f"the X server {self.name} does not answer", hint=DISPLAY_HINT) from exc

    async def close(self) -> None:
        """End the connection and wait for its thread."""
        self._end(f"the connection to {self.name} was closed", gently=True)
        await asyncio.to_thread(self._thread.join, CONNECT_TIMEOUT_S)

    def _wake(self) -> None:
        # A pipe that is full holds wake-ups enough.
        with contextlib.suppress(BlockingIOError):
            os.write(self._wake_writing, b"\0")

    def _end(self, why: str, *, gently: bool = False) -> None:
        with self._lock:
            if self._ended is not None:
                return
            self._ended = why
            self._wake()
        if not gently and self._client is not None:
            # Wakes the thread also where it waits for an answer that never comes.
            _shut_down_socket(self._client.display.fileno())

    def _work(self) -> None:
        try:
            client = self._client = open_client(self.name)
        # Whatever a broken server or a bad address makes Xlib raise belongs to whoever asked.
        except Exception as exc:  # noqa: BLE001
            self._ended = f"the X server {self.name} cannot be reached: {exc}"
            settle_future(
                self._ready, exception=DesktopError(self._ended, hint=find_overwritten_client() or DISPLAY_HINT)
            )
            self._finish(None)
            return
        settle_future(self._ready, result=client)
        try:
            while self._ended is None:
                self._step(client)
        except (error.ConnectionClosedError, OSError) as exc:
            with self._lock:
                self._ended = self._ended or f"the X server {self.name} is gone: {exc}"
        finally:
            self._finish(client)

    def _step(self, client: X11Client) -> None:
        client.dispatch()
        if client.stirred():
            return
        ready, _, _ = select.select([client.display.fileno(), self._wake_reading], [], [])
        if self._wake_reading not in ready:
            return
        os.read(self._wake_reading, 4096)
        while self._jobs and self._ended is None:
            job, future = self._jobs.popleft()
            if future.set_running_or_notify_cancel():
                self._do(client, job, future)

    def _do(self, client: X11Client, job: Callable[[X11Client], Any], future: Future[Any]) -> None:
        try:
            result = job(client)
            client.display.flush()
        except (error.ConnectionClosedError, OSError) as exc:
            why = self._ended or f"the X server {self.name} is gone"
            settle_future(future, exception=Downstream(why, hint="the desktop has to be started again"))
            raise exc from None
        # A job's own failure belongs to whoever asked for it.
        except Exception as exc:  # noqa: BLE001
            settle_future(future, exception=exc)
        else:
            settle_future(future, result=result)

    def _finish(self, client: X11Client | None) -> None:
        with self._lock:
            left = list(self._jobs)
            self._jobs.clear()
        for _, future in left:
            settle_future(future, exception=Downstream(self._ended or f"the X server {self.name} is gone"))
        if client is not None:
            _close_client(client)
        os.close(self._wake_reading)
        with self._lock:
            os.close(self._wake_writing)
            self._wake_writing = -1


def open_client(name: str) -> X11Client:
    """Open a connection for the calling thread alone; raises whatever Xlib raises if that fails."""
    found = display.Display(name)
    # Errors of requests that nobody waits for: a window that has just been closed, mostly.
    found.set_error_handler(_log_x_error)
    return X11Client(found, found.screen().root)


@contextlib.contextmanager
def grab_x_server(client: X11Client) -> Generator[None]:
    """Grab the server so that no other program is served, and release it even on errors.

    The grab also ends with the connection, as when a job takes too long.
    """
    client.display.grab_server()
    try:
        yield
    finally:
        client.display.ungrab_server()
        client.display.flush()


def _log_x_error(exc: error.XError, request: rq.Request | None) -> None:
    log.debug("X error %s for %s", exc, request)


def _close_client(client: X11Client) -> None:
    for last in client.closing:
        try:
            last()
        except (error.ConnectionClosedError, error.XError, OSError):
            log.debug("the X server was gone before everything was given back")
    try:
        client.display.close()
    except (error.ConnectionClosedError, OSError):
        log.debug("the X server was gone before the connection was closed")


def _shut_down_socket(descriptor: int) -> None:
    try:
        with socket.socket(fileno=os.dup(descriptor)) as copy:
            copy.shutdown(socket.SHUT_RDWR)
    except OSError:
        log.debug("the connection was closed already")

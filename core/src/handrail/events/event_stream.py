"""The events of a session as an async iterator: `async for event in session.events()`."""

from __future__ import annotations

import weakref
from collections import OrderedDict, deque
from typing import Self

import anyio

from handrail.api.events import Dropped, Event, EventBus, Output, Progress, SessionEnded

# Events that wait for a slow reader, and characters of output in them.
MAX_EVENTS = 1_000
MAX_CHARACTERS = 1_000_000

# What a reader can do without: more of it follows, and the result has the whole.
DROPPABLE_EVENTS = (Output, Progress)


class EventStream:
    """Stream of all events from its creation to the end of the session, in order.

    It never blocks a call: for a slow reader the oldest output and progress is dropped, then, if nothing else is left,
    the oldest events, and a `Dropped` event reports how many. It unsubscribes when closed or garbage-collected.
    """

    def __init__(self, bus: EventBus) -> None:
        self._waiting = _EventQueue()
        self._stop = weakref.finalize(self, bus.subscribe(self._waiting.add))

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        while (event := self._waiting.take()) is None:
            if self._waiting.ended:
                self._stop()
                raise StopAsyncIteration
            await self._waiting.news()
        return event

    async def aclose(self) -> None:
        """Unsubscribe; a pending read of the next event ends the iteration."""
        self._stop()
        self._waiting.end()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


class _EventQueue:
    """Events that were not read yet, by number."""

    def __init__(self) -> None:
        self._events: OrderedDict[int, Event] = OrderedDict()
        self._light: deque[int] = deque()
        self._number = 0
        self._characters = 0
        self._dropped = 0
        self._news: anyio.Event | None = None
        self.ended = False

    def add(self, event: Event) -> None:
        self._number += 1
        self._events[self._number] = event
        if isinstance(event, DROPPABLE_EVENTS):
            self._light.append(self._number)
            self._characters += _count_characters(event)
        while len(self._events) > MAX_EVENTS or (self._characters > MAX_CHARACTERS and len(self._light) > 1):
            self._drop(self._light[0] if self._light else next(iter(self._events)))
        if isinstance(event, SessionEnded):
            self.ended = True
        self._tell()

    def take(self) -> Event | None:
        """Remove and return the next event, or None if there is none yet."""
        if self._dropped:
            dropped, self._dropped = self._dropped, 0
            return Dropped("", dropped)
        return self._remove(next(iter(self._events))) if self._events else None

    async def news(self) -> None:
        """Wait for something to be added."""
        self._news = self._news or anyio.Event()
        await self._news.wait()

    def end(self) -> None:
        self.ended = True
        self._tell()

    def _tell(self) -> None:
        if self._news is not None:
            self._news.set()
            self._news = None

    def _drop(self, number: int) -> None:
        self._remove(number)
        self._dropped += 1

    def _remove(self, number: int) -> Event:
        event = self._events.pop(number)
        if isinstance(event, DROPPABLE_EVENTS):
            self._light.popleft()
            self._characters -= _count_characters(event)
        return event


def _count_characters(event: Event) -> int:
    return len(event.text) if isinstance(event, Output) else 0

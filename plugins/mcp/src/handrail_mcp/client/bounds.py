"""Limit on the number of values in a server's message.

They are counted before the message is parsed: parsed values take far more memory than their text, and validation
errors about them even more.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import anyio
from mcp import types
from mcp.shared.message import SessionMessage

from handrail.json_types import count_values, is_list, is_object

# Values of a message in all, and those that the protocol gives a form.
MOST_VALUES = 1_000_000
MOST_FORMED = 50_000
STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
# Keys whose values may have any form.
FREE = frozenset(
    (
        "structuredContent",
        "_meta",
        "inputSchema",
        "outputSchema",
        "requestedSchema",
        "arguments",
        "data",
        "experimental",
    )
)


def is_too_large(text: bytes) -> bool:
    """Return True if the text of a message holds too many values; the content of its strings does not count."""
    if text.count(b",") <= MOST_VALUES:
        return False
    return STRING.sub(b"", text).count(b",") > MOST_VALUES


def within_bounds(message: types.JSONRPCMessage) -> types.JSONRPCMessage | None:
    """Return a message that is not too large as it is, an error in the place of an answer that is, and None in the place of anything else."""
    match message:
        case types.JSONRPCResponse():
            value: Any = message.result
        case types.JSONRPCError():
            value = message.error.data
        case _:
            value = message.params
    if count_values(value, MOST_VALUES) <= MOST_VALUES and _count_formed(value) <= MOST_FORMED:
        return message
    if not isinstance(message, types.JSONRPCResponse | types.JSONRPCError):
        return None
    wrong = types.ErrorData(code=types.PARSE_ERROR, message="the answer holds too many values")
    return types.JSONRPCError(jsonrpc="2.0", id=message.id, error=wrong)


def _count_formed(value: Any) -> int:
    count = 0
    waiting: list[Any] = [value]
    while waiting and count <= MOST_FORMED:
        held = waiting.pop()
        items: Iterable[Any] = ()
        if is_object(held):
            items = [item for key, item in held.items() if key not in FREE]
        elif is_list(held):
            items = held
            if len(held) > MOST_FORMED:
                return len(held)
        for item in items:
            count += 1
            waiting.append(item)
    return count


class BoundedMessages:
    """Stream of a transport's messages that lets none through which is too large."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    @property
    def last_context(self) -> Any:
        """The context of whoever sent the last message, as the SDK keeps it."""
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> SessionMessage | Exception:
        """Return the next message, or what went wrong."""
        while True:
            item: SessionMessage | Exception = await self._stream.receive()
            if not isinstance(item, SessionMessage):
                return item
            if (message := within_bounds(item.message)) is item.message:
                return item
            if message is not None:
                return SessionMessage(message)

    def __aiter__(self) -> BoundedMessages:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def aclose(self) -> None:
        """Close the transport's stream."""
        await self._stream.aclose()

    async def __aenter__(self) -> BoundedMessages:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *exc: Any) -> bool | None:
        return await self._stream.__aexit__(*exc)

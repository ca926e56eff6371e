"""Retries of temporary server failures: which failures qualify, when to try again, and the retry itself."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import TypeVar

import anyio

__all__ = [
    "TRANSIENT_STATUSES",
    "TransientError",
    "format_retry_hint",
    "format_status",
    "parse_retry_after",
    "retry_transient",
]

T = TypeVar("T")

# Too early, too many, and failures of the server. 529 is some vendors' "overloaded".
TRANSIENT_STATUSES = frozenset((408, 425, 429, 500, 502, 503, 504, 529))
MAX_TRIES = 3
# Seconds before the second try, and twice as many before each that follows; and what a server may ask for at most.
PAUSE_S, LONGEST_PAUSE_S = 0.5, 10.0
# Seconds that are believed of a server at most.
LONGEST_WAIT_S = 86_400
STATUS_PHRASES = {status.value: status.phrase for status in HTTPStatus}


class TransientError(Exception):
    """`error` may be over the next time, `wait` seconds from now if the server says when."""

    def __init__(self, error: Exception, wait: float | None = None) -> None:
        super().__init__(str(error))
        self.error = error
        self.wait = wait


def format_status(status: int) -> str:
    """Return the status with its reason phrase: `503 (Service Unavailable)`."""
    return f"{status} ({STATUS_PHRASES.get(status, 'unknown')})"


def parse_retry_after(headers: Mapping[str, str]) -> int | None:
    """Return after how many seconds the server wants a retry; None if it does not say, or gives a date."""
    text = headers.get("retry-after", "").strip()[:40]
    return min(int(text), LONGEST_WAIT_S) if text.isascii() and text.isdecimal() else None


def format_retry_hint(headers: Mapping[str, str]) -> str:
    """Return the hint on when to try again."""
    wait = parse_retry_after(headers)
    return "try again later" if wait is None else f"try again in {wait} s"


async def retry_transient(once: Callable[[], Awaitable[T]], *, tries: int = MAX_TRIES) -> T:
    """Call `once` and return its result, retrying after a pause while it raises `TransientError`.

    After the last try, or if the server asks for too long a pause, the underlying error is raised.
    """
    for attempt in range(tries):
        try:
            return await once()
        except TransientError as passing:
            wait = PAUSE_S * 2**attempt if passing.wait is None else passing.wait
            if attempt + 1 == tries or wait > LONGEST_PAUSE_S:
                raise passing.error from passing.__cause__
        await anyio.sleep(wait)
    raise AssertionError("the last try ends above")

"""Session limits on time, calls and output tokens, and a guard against repeated calls."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable
from typing import Any

from handrail.api.call import ToolCall, compute_call_hash
from handrail.api.result import ToolResult
from handrail.audit.history import BULKY_KEYS
from handrail.config.settings import LimitSettings
from handrail.errors import LimitReached, LoopDetected, TimedOut

CHARACTERS_PER_TOKEN = 4
PLAIN_TYPES = frozenset((str, int, float, bool, type(None)))
# Characters of a call that is remembered as it is written.
MAX_KEY_CHARS = 1_000
# A no is an answer, and not counted.
FAILURE_STATUSES = frozenset(("error", "timeout"))
LIMIT_HINT = "sum up what was reached, and tell the person that the limit can be raised"
LOOP_HINT = "look at how things stand, then change the arguments or the way; or ask the person"


class SessionTimedOut(TimedOut):
    """The session's time is over: the call was stopped, and none may follow."""

    retryable = False


class SessionLimits:
    """Limits of one session, and their usage. Only calls made by a host count.

    `watching` is False as long as there is nothing to count: no limit is set, and no call has failed recently. `over`
    is called when the time is up, to stop what is running.
    """

    __slots__ = (
        "_alarm",
        "_began",
        "_calls",
        "_characters",
        "_counts",
        "_keyed",
        "_last",
        "_over",
        "_set",
        "_settings",
        "_wrong",
        "watching",
    )

    def __init__(self, settings: LimitSettings, *, over: Callable[[SessionTimedOut], object]) -> None:
        self._over = over
        self._alarm: asyncio.TimerHandle | None = None
        self._began = time.monotonic()
        self._calls = 0
        self._characters = 0
        # The last calls, by their hash and whether they failed, and how often each is among them.
        self._last: deque[tuple[str, bool]] = deque()
        self._counts: Counter[tuple[str, bool]] = Counter()
        # How many of them have failed.
        self._wrong = 0
        self._keyed: tuple[ToolCall | None, str] = (None, "")
        self.apply(settings)

    def apply(self, settings: LimitSettings) -> None:
        """Take over changed settings; what was used stays used."""
        self._settings = settings
        self._remember(self._last)
        wanted = (settings.seconds, settings.calls, settings.output_tokens, settings.repeats or None)
        self._set = any(limit is not None for limit in wanted)
        self.watching = self._set or bool(self._last)
        self._set_alarm()

    def _set_alarm(self) -> None:
        self.close()
        if (left := self.seconds_left) is not None:
            why = SessionTimedOut(self.time_is_up, hint=LIMIT_HINT)
            self._alarm = asyncio.get_running_loop().call_later(left, self._over, why)

    def close(self) -> None:
        """Cancel the timer for the end of the session's time."""
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    @property
    def seconds_left(self) -> float | None:
        """Seconds left in the session; None without a limit."""
        if self._settings.seconds is None:
            return None
        return self._began + self._settings.seconds - time.monotonic()

    @property
    def time_is_up(self) -> str:
        """Message for the end of the session's time."""
        return f"the session's {self._settings.seconds:g} s (limits.seconds) are over"

    def admit(self, call: ToolCall) -> None:
        """Count a call that is about to be judged. Raises `LimitReached` or `LoopDetected`."""
        settings = self._settings
        if (left := self.seconds_left) is not None and left <= 0:
            raise LimitReached(self.time_is_up, hint=LIMIT_HINT)
        if settings.calls is not None and self._calls >= settings.calls:
            raise LimitReached(f"the session's {settings.calls} calls (limits.calls) are used up", hint=LIMIT_HINT)
        tokens = settings.output_tokens
        if tokens is not None and self._characters >= tokens * CHARACTERS_PER_TOKEN:
            raise LimitReached(
                f"the session's {tokens} tokens of output (limits.output_tokens) are used up", hint=LIMIT_HINT
            )
        self._check_circles(call)
        self._calls += 1

    def count(self, call: ToolCall, result: ToolResult, *, changed: bool) -> None:
        """Count what a call has given; `changed` says that it may have changed something."""
        failed = result["status"] in FAILURE_STATUSES and result.error_code not in (
            LimitReached.code,
            LoopDetected.code,
        )
        if self._settings.output_tokens is not None:
            self._characters += _count_characters(result)
        if result.error_code == LoopDetected.code or not self._window:
            return
        if changed and not failed and self._wrong:
            # What failed before may work now.
            self._remember([(made, False) for made, _ in self._last] if self._settings.repeats else ())
        if failed or self._last or self._settings.repeats:
            self._add((self._key(call), failed))
        self.watching = self._set or self._wrong > 0

    def forgive(self, call: ToolCall) -> None:
        """Forget that this call was made: for whoever decides without a model how often it is."""
        key = self._key(call)
        self._remember([one for one in self._last if one[0] != key])
        self.watching = self._set or self._wrong > 0

    def _times(self, call: ToolCall) -> tuple[int, int]:
        """Return how often the call failed, and how often it was made, among the most recent calls that are counted."""
        key, counts = self._key(call), self._counts
        failed = counts.get((key, True), 0)
        return failed, failed + counts.get((key, False), 0)

    @property
    def _window(self) -> int:
        return 2 * max(self._settings.failures, self._settings.repeats)

    def _remember(self, last: Iterable[tuple[str, bool]]) -> None:
        kept = list(last)
        self._last.clear()
        self._counts.clear()
        self._wrong = 0
        for one in kept:
            self._add(one)

    def _add(self, one: tuple[str, bool]) -> None:
        self._last.append(one)
        self._counts[one] += 1
        self._wrong += one[1]
        while len(self._last) > self._window:
            gone = self._last.popleft()
            self._counts[gone] -= 1
            self._wrong -= gone[1]
            if not self._counts[gone]:
                del self._counts[gone]

    def _key(self, call: ToolCall) -> str:
        """Return the key that identifies the call, computed once."""
        if self._keyed[0] is not call:
            self._keyed = (call, _plain_call_key(call) or _hash_call(call))
        return self._keyed[1]

    def _check_circles(self, call: ToolCall) -> None:
        settings = self._settings
        if not self._last:
            return
        failed, made = self._times(call)
        if (not settings.failures or failed < settings.failures) and (not settings.repeats or made < settings.repeats):
            return
        details = {"call_hash": _hash_call(call), "failed": failed, "made": made}
        if settings.failures and failed >= settings.failures:
            text = f"exactly this call of {call.name} has failed {failed} times (limits.failures), and nothing has changed since"
            raise LoopDetected(text, hint=LOOP_HINT, details=details)
        text = f"exactly this call of {call.name} was made {made} times lately (limits.repeats)"
        raise LoopDetected(text, hint=LOOP_HINT, details=details)


def _plain_call_key(call: ToolCall) -> str | None:
    """Return a call with few plain arguments as text, or None for any other.

    Cheaper than its hash, and equal for the same calls.
    """
    if call.args.__class__ is not dict or not all(value.__class__ in PLAIN_TYPES for value in call.args.values()):
        return None
    try:
        text = f"{call.name} {sorted(call.args.items())!r}"
    # Keys of several kinds, and integers with more digits than Python writes out.
    except (TypeError, ValueError):
        return None
    return text if len(text) <= MAX_KEY_CHARS else None


def _hash_call(call: ToolCall) -> str:
    try:
        return compute_call_hash(call.name, call.args)
    # Hosts pass what a model wrote: cycles, depths, keys of several kinds.
    except Exception:  # noqa: BLE001
        return f"{call.name!r}: no hash"


def _count_characters(result: ToolResult) -> int:
    shown: dict[str, Any] = {key: value for key, value in result.items() if key not in BULKY_KEYS}
    try:
        return len(json.dumps(shown, ensure_ascii=False, default=str))
    # Handlers return anything: cycles, depths, objects that fail to print.
    except Exception:  # noqa: BLE001
        return 0

"""Observers: they see each call before it is judged and its result before the model does. They tighten, and never loosen.

Who only wants to be told of what happens needs no observer: see `Session.events`.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from handrail.api.call import Invocation
    from handrail.api.tool import Tool
    from handrail.api.verdict import Opinion, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Changes an observer requests to a call that is about to be judged; several may be combined.

    `block` and `confirm` give the reason to deny the call, or to prompt the user regardless of policy. `args`: the
    complete new arguments; they are validated, observed and judged again. `context` is shown to the model with the
    result; `note` is sent to event subscribers and recorded.
    """

    block: str | None = None
    confirm: str | None = None
    args: Mapping[str, Any] | None = None
    context: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """Changes an observer requests to a result.

    `withhold` gives the reason to hide the result from the model. `replace`: new values for keys of the result, except
    those that report its outcome (`FIXED_KEYS`). `context` is shown to the model with the result; `note` is sent to
    event subscribers and recorded.
    """

    withhold: str | None = None
    replace: Mapping[str, Any] | None = None
    context: str = ""
    note: str = ""


# Keys of a result that no observer writes: a failure stays one.
FIXED_KEYS = frozenset(
    {"status", "error", "voice_message", "duration_ms", "effect", "edited_args", "edited_by", "context"}
)


class Observer(ABC):
    """Observer of the calls of every session, including nested ones, before they are judged and after they ran.

    `name` identifies it in verdicts and records. If it fails, the failure is logged and reported in the result, and the
    call continues; if `security` is True, the failure blocks the call or withholds its result. `timeout`: seconds for
    each invocation, None for no limit; exceeding it is a failure.
    """

    name: str
    security: bool = False
    timeout: float | None = None

    def applies(self, tool: Tool) -> bool:
        """Return True if the observer handles calls of the tool; asked once for each tool of a session."""
        return True

    async def before(self, invocation: Invocation) -> Change | None:
        """Return the changes to request for a bound call that is not judged yet, or None.

        Must not act on the world for the call, nor change the arguments in place: `Change.args` is for that.
        """
        return None

    async def after(self, invocation: Invocation, verdict: Verdict, result: Mapping[str, Any]) -> Remark | None:
        """Return the changes to request for the result of a call that was let through, including failures, or None."""
        return None


@dataclass(frozen=True, slots=True)
class ObserverAction:
    """Action of one observer: blocked, confirm, replaced, context, withheld, failed or note.

    `text` gives the reason, or the error.
    """

    observer: str
    what: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class ObserverOpinions:
    """Observers' opinions of a call so far, which can only tighten the verdict, and the action of each observer."""

    opinions: tuple[Opinion, ...] = ()
    did: tuple[ObserverAction, ...] = ()

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
    """What an observer wants of a call that is about to be judged; several of it at once are fine.

    `block` and `confirm` say why the call is refused, or asked about whatever policy says. `args`: all arguments as they shall be; they are
    validated, observed and judged anew. `context` is shown to the model beside the result; `note` to those who listen, and kept.
    """

    block: str | None = None
    confirm: str | None = None
    args: Mapping[str, Any] | None = None
    context: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """What an observer wants of a result.

    `withhold` says why the model sees nothing of it. `replace`: values for keys of the result, save those that say whether it worked
    (`FIXED_KEYS`). `context` is shown to the model beside the result; `note` to those who listen, and kept.
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
    """Sees the calls of every session, nested ones too, before they are judged and after they ran.

    `name` is what verdicts and records call it. One that fails is logged and said in the result, and the call goes on; where `security` is True
    the failure blocks the call, or withholds its result. `timeout`: seconds for each look, None for no limit; taking longer is a failure.
    """

    name: str
    security: bool = False
    timeout: float | None = None

    def applies(self, tool: Tool) -> bool:
        """Whether it looks at calls of the tool at all; asked once for each tool of a session."""
        return True

    async def before(self, invocation: Invocation) -> Change | None:
        """What it wants of a call that was bound and is not judged yet; None to let it be. Must not act on the world for the call, nor
        change the arguments in place: `Change.args` is for that.
        """
        return None

    async def after(self, invocation: Invocation, verdict: Verdict, result: Mapping[str, Any]) -> Remark | None:
        """What it wants of the result of a call that was let through, failures among them; None to let it be."""
        return None


@dataclass(frozen=True, slots=True)
class ObserverAction:
    """What one observer did: blocked, confirm, replaced, context, withheld, failed or note; `text` says why, or what went wrong."""

    observer: str
    what: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class ObserverOpinions:
    """What observers made of a call so far: opinions that only tighten, and what each of them did."""

    opinions: tuple[Opinion, ...] = ()
    did: tuple[ObserverAction, ...] = ()

"""Services: what one plugin offers to others, asked for by capability and never by import."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

if TYPE_CHECKING:
    from handrail.api.context import CallContext

__all__ = ["ClosableService", "ShellService", "SkillsService"]

log = logging.getLogger(__name__)

ServiceScope = Literal["process", "desktop", "session"]


class ClosableService(Protocol):
    """Every service object can be closed, once, when its scope ends."""

    async def close(self) -> None: ...


async def close_safely(thing: ClosableService, what: str) -> None:
    """Close a plugin's object. A failure is logged, so the remaining objects are closed, too."""
    try:
        await thing.close()
    # Plugin code.
    except Exception:
        log.exception("the %s did not close", what)


@runtime_checkable
class ReleasableService(Protocol):
    """A service that holds something down, such as a key or a button, for its session or desktop."""

    async def let_go(self) -> None:
        """Release all held keys and buttons: the user has stopped the desktop."""
        ...


@runtime_checkable
class CallEndingService(Protocol):
    """A service that ends, when it closes, what calls of its session left running."""

    @property
    def ended(self) -> Sequence[str]:
        """Descriptions of what closing the service ended; empty before closing."""
        ...


class Memory(ClosableService, Protocol):
    """Interface of a service with the capability `memory`: information that persists beyond one session."""

    async def text(self) -> str:
        """Return the entire memory, as Markdown."""
        ...


class SkillsService(ClosableService, Protocol):
    """Interface of a service with the capability `skills`, for hosts: the skills a session has loaded.

    Another session can use it to continue with the same skills.
    """

    @property
    def active(self) -> Mapping[str, str]:
        """The names of the skills that are loaded, in the order they were, each with the source that holds its tools (`Session.load_tools`)."""
        ...

    async def load(self, name: str) -> object:
        """Load a skill with its tools, all or nothing; an error says why it may not be, or cannot."""
        ...


class ShellService(ClosableService, Protocol):
    """Interface of a service with the capability `shell`, for tools other than its own."""

    async def run(
        self, argv: Sequence[str], context: CallContext, *, timeout: float, readable: Sequence[Path] = ()
    ) -> Mapping[str, Any]:
        """Run a program for a call, in the session's folder, shut in where the call is: its stdout, stderr and exit_code.

        `timeout` in seconds. `readable` are folders that it may read beside what the sandbox shows. What was judged is the caller's business.
        """
        ...


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at: whether it works, what there is to say of it, and the cure where it does not."""

    name: str
    ok: bool
    detail: str = ""
    cure: str = ""


@dataclass(frozen=True, slots=True)
class Service:
    """Recipe for a service, which is opened on first use, one for each process, desktop or session, closed with it.

    `open` is given a `handrail.ServiceContext`, `examine` a `handrail.Session`.
    `missing` says what it lacks on this machine, with the cure, without opening anything; `examine` looks at what
    it stands on in a session. `handrail doctor` shows both.
    """

    capability: str
    open: Callable[[Any], Awaitable[ClosableService]]
    scope: ServiceScope
    missing: Callable[[], str | None] = lambda: None
    examine: Callable[[Any], Awaitable[Sequence[Finding]]] | None = None

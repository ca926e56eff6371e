"""Context that a plugin's service is given when it opens."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from pydantic import BaseModel

from handrail.api.desktop import Desktop

if TYPE_CHECKING:
    from handrail.session.session import Session
    from handrail.workers.host_programs import HostPrograms


class ServiceContext(Protocol):
    """Context available to a service while it opens."""

    @property
    def config(self) -> BaseModel:
        """The settings of the plugin that supplies it, from `[plugins.<name>]`."""
        ...

    @property
    def environment(self) -> Mapping[str, str]:
        """The environment that Handrail was started with, its PATH without the folders that agents write: for programs that it starts itself."""
        ...

    @property
    def programs(self) -> HostPrograms:
        """Programs that Handrail may start for its own purposes without approval."""
        ...

    @property
    def state(self) -> Path:
        """A folder, 0700, for what must be seen by other processes of the same user."""
        ...

    @property
    def data(self) -> Path:
        """A folder, 0700, for what is to last."""
        ...

    @property
    def session(self) -> Session | None:
        """The session it is opened for, which only a service of scope session may keep."""
        ...

    @property
    def workspace(self) -> tuple[Path, ...]:
        """The roots that file tools of its session may write; none for a service of scope process."""
        ...

    @property
    def desktop(self) -> Desktop:
        """The desktop it serves; an error for a service of scope process."""
        ...

    def stop_desktop(self) -> None:
        """Stop all agents on the desktop, in every process, until the user resumes them. Callable from any thread."""
        ...

    async def service(self, capability: str) -> Any:
        """Another service; `ToolUnavailable` when no plugin supplies it."""
        ...

"""Context that is passed to a service or a backend when it opens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from handrail.api.desktop import Desktop
from handrail.config.settings import NetworkSettings
from handrail.errors import DesktopError
from handrail.fs.app_dirs import ensure_private_folder

if TYPE_CHECKING:
    from handrail.session.runtime import Runtime
    from handrail.session.session import Session
    from handrail.workers.host_programs import HostPrograms


@dataclass(frozen=True, slots=True)
class OpenContext:
    """The context of one opening."""

    runtime: Runtime
    config: BaseModel
    session: Session | None
    own_desktop: Desktop | None

    @property
    def state(self) -> Path:
        return ensure_private_folder(self.runtime.places.state)

    @property
    def data(self) -> Path:
        return ensure_private_folder(self.runtime.places.data)

    @property
    def workspace(self) -> tuple[Path, ...]:
        return self.session.workspace if self.session is not None else ()

    @property
    def environment(self) -> Mapping[str, str]:
        """The environment that Handrail was started with, its PATH without the folders that agents write."""
        return self.programs.environment

    @property
    def programs(self) -> HostPrograms:
        return self.runtime.programs

    @property
    def network(self) -> NetworkSettings:
        return self.runtime.settings.network

    async def secret(self, name: str) -> str:
        assert self.session is not None, "only what is opened for a session is given secrets"
        return await self.session.secrets.take(name)

    @property
    def desktop(self) -> Desktop:
        if self.own_desktop is None:
            raise DesktopError("a service of scope process has no desktop")
        return self.own_desktop

    def stop_desktop(self) -> None:
        """Stop every agent on the desktop until the user resumes them."""
        self.runtime.stops.engage(self.desktop.switch)

    async def service(self, capability: str) -> Any:
        return await self.runtime.service(capability, session=self.session, desktop=self.own_desktop)

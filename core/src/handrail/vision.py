"""Vision backends: how a desktop is seen. Plugins supply them, one is chosen by name, and the tools follow what it can do."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from typing import Any, ClassVar, Protocol

from pydantic import BaseModel, ConfigDict

from handrail.desktop import Desktop, Tree
from handrail.errors import BackendUnavailable
from handrail.observation import Element, Frame


class NoSettings(BaseModel):
    """The settings of something that has none: every key is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class BackendContext(Protocol):
    """What a backend may ask for when it opens."""

    @property
    def desktop(self) -> Desktop: ...

    async def service(self, capability: str) -> Any:
        """The service that supplies `capability`; `ToolUnavailable` when no plugin does."""
        ...


class VisionBackend(ABC):
    """One way to see a screen.

    Installed? The entry point says. Usable here? `missing` says. Able to do X? `capabilities` says: `parse_screen`, `ocr`, `understand`,
    `accessibility_tree`, `plan_actions`, or any string a third party agrees on with its tools. Each of those names a method below; a
    backend implements the methods of the capabilities it declares and inherits a clear refusal for the others.
    """

    name: ClassVar[str]
    capabilities: ClassVar[frozenset[str]] = frozenset()
    Config: ClassVar[type[BaseModel]] = NoSettings

    def __init__(self, config: BaseModel | None = None) -> None:
        self.config = config if config is not None else self.Config()

    @classmethod
    def missing(cls) -> str | None:
        """What it lacks here, with the cure; None when nothing. Asked before it is built; must be quick and import nothing heavy."""
        return None

    async def open(self, context: BackendContext) -> None:
        """Make ready to see `context.desktop`; raises `BackendUnavailable`. Called once, before anything else."""

    async def close(self) -> None:
        """Give everything back. Called once, also after a failed `open`."""

    async def tree(self, *, window: str | None = None, budget: int = 500) -> Tree:
        """Capability `accessibility_tree`: what the window (default: the active one) shows, without a picture."""
        raise self._cannot("accessibility_tree")

    async def parse(self, frame: Frame, intent: str) -> Sequence[Element]:
        """Capability `parse_screen` or `ocr`: the elements in the picture, their rectangles in screen pixels."""
        raise self._cannot("parse_screen")

    async def understand(self, frame: Frame, intent: str) -> str:
        """Capability `understand`: a description of the picture in words."""
        raise self._cannot("understand")

    def _cannot(self, capability: str) -> BackendUnavailable:
        return BackendUnavailable(f"vision backend {self.name!r} does not offer {capability!r}")

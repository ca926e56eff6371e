"""The vision backend `accessibility`: sees a desktop by what its programs say of themselves."""

from __future__ import annotations

import sys
from typing import ClassVar

from handrail import BackendContext, BackendUnavailable, Downstream, ToolUnavailable, Tree, VisionBackend
from handrail_accessibility.control import Control

PLATFORMS = ("linux", "win32", "darwin")


def missing() -> str | None:
    """What keeps the accessibility tree from being read on this machine; whether a desktop has one is known when it is opened."""
    if sys.platform in PLATFORMS:
        return None
    return (
        f"the accessibility tree is read on Linux, Windows and macOS, and this is {sys.platform}; use the backend ocr"
    )


class AccessibilityBackend(VisionBackend):
    """The accessibility tree of the session's desktop."""

    name = "accessibility"
    capabilities: ClassVar[frozenset[str]] = frozenset({"accessibility_tree"})
    _control: Control

    @classmethod
    def missing(cls) -> str | None:
        """Why it cannot be used on this machine."""
        return missing()

    async def open(self, context: BackendContext) -> None:
        """Check that the desktop's programs can be asked at all; `BackendUnavailable` says why not."""
        try:
            self._control = await context.service("accessibility")
            await self._control.titles()
        except (Downstream, ToolUnavailable) as exc:
            raise BackendUnavailable(str(exc), hint=exc.hint) from exc

    async def tree(self, *, window: str | None = None, budget: int = 500) -> Tree:
        """What the window shows."""
        try:
            return await self._control.tree(window=window, budget=budget)
        except (Downstream, ToolUnavailable) as exc:
            raise BackendUnavailable(str(exc), hint=exc.hint) from exc

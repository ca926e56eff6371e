"""The vision backend `accessibility`: sees a desktop by what its programs say of themselves."""

from __future__ import annotations

import sys
from time import monotonic
from typing import ClassVar

from handrail import BackendContext, BackendUnavailable, Downstream, ToolUnavailable, Tree, VisionBackend
from handrail_accessibility.tree.protocol import AccessibilityController

SUPPORTED_PLATFORMS = ("linux", "win32", "darwin")


def explain_unavailability() -> str | None:
    """Return what prevents the accessibility tree from being read on this machine; None if nothing does.

    A desktop's own accessibility is known only when it is opened.
    """
    if sys.platform in SUPPORTED_PLATFORMS:
        return None
    return (
        f"the accessibility tree is read on Linux, Windows and macOS, and this is {sys.platform}; use the backend ocr"
    )


# Seconds for a look. One that was cut off gets twice as long the next time, or the rest of a starved program's window would never be seen.
DEFAULT_DEADLINE_S = 3.0
MAX_DEADLINE_S = 12.0


class AccessibilityBackend(VisionBackend):
    """The accessibility tree of the session's desktop."""

    name = "accessibility"
    capabilities: ClassVar[frozenset[str]] = frozenset({"accessibility_tree"})
    _control: AccessibilityController
    _deadline = DEFAULT_DEADLINE_S

    @classmethod
    def missing(cls) -> str | None:
        """Return why it cannot be used on this machine, or None."""
        return explain_unavailability()

    async def open(self, context: BackendContext) -> None:
        """Check that the desktop's programs can be asked at all; `BackendUnavailable` says why not."""
        try:
            self._control = await context.service("accessibility")
            await self._control.titles()
        except (Downstream, ToolUnavailable) as exc:
            raise BackendUnavailable(str(exc), hint=exc.hint) from exc

    async def tree(self, *, window: str | None = None, budget: int = 500) -> Tree:
        """Return the content of the window."""
        try:
            began = monotonic()
            tree = await self._control.tree(window=window, budget=budget, deadline=self._deadline)
        except (Downstream, ToolUnavailable) as exc:
            raise BackendUnavailable(str(exc), hint=exc.hint) from exc
        took = monotonic() - began
        if took < DEFAULT_DEADLINE_S:
            self._deadline = DEFAULT_DEADLINE_S
        elif took >= self._deadline:
            self._deadline = min(2 * self._deadline, MAX_DEADLINE_S)
        return tree

"""Mouse buttons that a session holds down between calls; released when it ends.

The capability `held_input` (scope session).
"""

from __future__ import annotations

import contextlib

from handrail import Downstream, ServiceContext
from handrail_gui.platforms.input_driver import InputDriver, SurfaceCheck


class HeldButtons:
    """The buttons one session holds."""

    def __init__(self, hands: InputDriver) -> None:
        self._hands = hands
        self._held: set[str] = set()

    async def press(self, button: str, sure: SurfaceCheck | None = None) -> None:
        """Hold a button down until `release`, or until the session ends."""
        self._held.add(button)
        await self._hands.press(button, sure)

    async def release(self, button: str) -> None:
        """Let a button go."""
        self._held.discard(button)
        await self._hands.release(button)

    async def let_go(self) -> None:
        """Release everything."""
        # A screen that is gone holds nothing.
        with contextlib.suppress(Downstream):
            for button in tuple(self._held):
                await self.release(button)

    async def close(self) -> None:
        """Release everything."""
        await self.let_go()


async def open_held_buttons(context: ServiceContext) -> HeldButtons:
    """Create the service for one session."""
    return HeldButtons(await context.service("hands"))

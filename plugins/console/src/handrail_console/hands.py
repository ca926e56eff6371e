"""A person's hands on the desktops of sessions, and their eyes."""

from __future__ import annotations

import io
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Self

import anyio
import anyio.to_thread

from handrail import Desktop, Frame, Screen, Session, ToolResult, Transform
from handrail.runtime import Runtime

QUALITY = 75
TOOL = "manual_control"


@dataclass(frozen=True, slots=True)
class Picture:
    """A desktop as it is now: a JPEG, and the part of the screen it shows."""

    data: bytes
    transform: Transform


class Hands:
    """Sessions of a person (`by_hand`), one for each desktop they look at. What they do is recorded like any call."""

    def __init__(self, runtime: Runtime, opened: AsyncExitStack) -> None:
        self._runtime = runtime
        self._opened = opened
        self._sessions: dict[str, Session] = {}
        self._opening = anyio.Lock()

    @classmethod
    @asynccontextmanager
    async def of(cls, runtime: Runtime) -> AsyncGenerator[Self]:
        """Hands that let go at the end."""
        async with AsyncExitStack() as opened:
            yield cls(runtime, opened)

    def sessions(self) -> set[str]:
        """The ids of these sessions."""
        return {session.id for session in self._sessions.values()}

    async def picture(self, desktop: Desktop) -> Picture:
        """What the desktop shows now."""
        session = await self._on(desktop)
        screen: Screen = await session.service("screen")
        frame = await screen.capture()
        return await anyio.to_thread.run_sync(_picture, frame)

    async def act(self, desktop: Desktop, args: Mapping[str, Any]) -> ToolResult:
        """Work the desktop as `handrail control` does."""
        return await (await self._on(desktop)).call(TOOL, args)

    async def _on(self, desktop: Desktop) -> Session:
        async with self._opening:
            # Another one may have its display later.
            key = f"{desktop.key} {desktop.name}"
            if key not in self._sessions:
                self._sessions[key] = await self._opened.enter_async_context(
                    self._runtime.session(by_hand=True, desktop=desktop)
                )
            return self._sessions[key]


def _picture(frame: Frame) -> Picture:
    from PIL import Image

    transform = Transform.fit(frame.screen)
    # The pixels are blue, green, red.
    image = Image.fromarray(frame.pixels[:, :, ::-1]).resize((transform.width, transform.height))
    written = io.BytesIO()
    image.save(written, "JPEG", quality=QUALITY)
    return Picture(written.getvalue(), transform)

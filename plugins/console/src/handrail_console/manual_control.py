"""Manual control: the user's input on the desktops of sessions, screenshots of them, and undo."""

from __future__ import annotations

import io
import threading
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import anyio
import anyio.to_thread

from handrail import Desktop, Frame, Screen, Session, ToolResult, Transform
from handrail.session.runtime import Runtime
from handrail.undo.plans import UndoPlan

JPEG_QUALITY = 75
TOOL_NAME = "manual_control"


@dataclass(frozen=True, slots=True)
class DesktopPicture:
    """A desktop as it is now: a JPEG, and the part of the screen it shows."""

    data: bytes
    transform: Transform


class ManualControl:
    """Sessions of the user (`by_hand`), one for each desktop that they look at.

    Their actions are recorded like any other call.
    """

    def __init__(self, runtime: Runtime, opened: AsyncExitStack) -> None:
        self._runtime = runtime
        self._opened = opened
        self._sessions: dict[str, Session] = {}
        # Sessions that undo calls now.
        self._undoing: set[str] = set()
        self._opening = anyio.Lock()

    @classmethod
    @asynccontextmanager
    async def of(cls, runtime: Runtime) -> AsyncGenerator[Self]:
        """Yield the manual control of this runtime, and end its sessions afterwards."""
        async with AsyncExitStack() as opened:
            yield cls(runtime, opened)

    def sessions(self) -> set[str]:
        """Return the ids of these sessions."""
        return {session.id for session in self._sessions.values()} | self._undoing

    async def picture(self, desktop: Desktop) -> DesktopPicture:
        """Return a screenshot of the desktop."""
        session = await self._on(desktop)
        screen: Screen = await session.service("screen")
        frame = await screen.capture()
        return await anyio.to_thread.run_sync(_encode_picture, frame)

    async def act(self, desktop: Desktop, args: Mapping[str, Any]) -> ToolResult:
        """Work the desktop as `handrail control` does."""
        return await (await self._on(desktop)).call(TOOL_NAME, args)

    async def undo_plans(self, *, most: int) -> list[UndoPlan]:
        """Return the newest calls that changed files, in any workspace, with what undoing each would do."""
        from handrail.undo.selection import list_undo_plans

        stop = threading.Event()
        return await self._runtime.undo.run(lambda keeper: list_undo_plans(keeper, None, most=most, stop=stop))

    async def undo_diff(self, call: str) -> list[str]:
        """Return the changes of undoing a call (`SESSION/ID`) as lines of a diff."""
        from handrail.undo.selection import build_diff

        plan = await self._plan(call)
        return await self._runtime.undo.run(lambda keeper: build_diff(keeper, plan.paths))

    async def undo(self, call: str, *, force: bool, skip_changed: bool) -> ToolResult:
        """Undo a call (`SESSION/ID`) as `handrail undo` does in the workspace of its session."""
        roots = [Path(root) for root in (await self._plan(call)).records[0].roots]
        undoing = ""
        try:
            async with self._runtime.session(by_hand=True, cwd=roots[0], workspace=roots) as session:
                undoing = session.id
                self._undoing.add(undoing)
                return await session.undo(call, force=force, skip_changed=skip_changed)
        finally:
            # One that is over is not shown among those of agents by itself.
            self._undoing.discard(undoing)

    async def _plan(self, call: str) -> UndoPlan:
        from handrail.undo.selection import find_undo_plan

        stop = threading.Event()
        return await self._runtime.undo.run(lambda keeper: find_undo_plan(keeper, call, (), stop=stop))

    async def _on(self, desktop: Desktop) -> Session:
        async with self._opening:
            # Another one may have its display later.
            key = f"{desktop.key} {desktop.name}"
            if key not in self._sessions:
                self._sessions[key] = await self._opened.enter_async_context(
                    self._runtime.session(by_hand=True, desktop=desktop)
                )
            return self._sessions[key]


def _encode_picture(frame: Frame) -> DesktopPicture:
    from PIL import Image

    transform = Transform.fit(frame.screen)
    # The pixels are blue, green, red.
    image = Image.fromarray(frame.pixels[:, :, ::-1]).resize((transform.width, transform.height))
    written = io.BytesIO()
    image.save(written, "JPEG", quality=JPEG_QUALITY)
    return DesktopPicture(written.getvalue(), transform)

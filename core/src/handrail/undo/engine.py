"""The undo engine of a process: a keeper in a separate thread, for all sessions."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from handrail.config.settings import UndoSettings
from handrail.errors import ToolUnavailable

if TYPE_CHECKING:
    from handrail.undo.keeper import UndoKeeper

log = logging.getLogger(__name__)
T = TypeVar("T")

IS_SUPPORTED = sys.platform != "win32"


class UndoEngine:
    """Hands work to the keeper. Nothing is opened, and no thread started, before the first call that changes files."""

    def __init__(self, folder: Path, settings: UndoSettings, own: Sequence[Path]) -> None:
        self._folder = folder
        self._own = tuple(own)
        self._settings = settings
        self._thread: ThreadPoolExecutor | None = None
        self._keeper: UndoKeeper | None = None

    @property
    def enabled(self) -> bool:
        """True if calls are kept."""
        return IS_SUPPORTED and self._settings.enabled

    @property
    def undoable(self) -> bool:
        """True if what a call changes now can be put back later, as far as the bounds are known to allow it."""
        keeper = self._keeper
        return self.enabled and (keeper is None or not (keeper.store_failed or keeper.is_full))

    def use(self, settings: UndoSettings) -> None:
        """Go on with other settings."""
        if settings != self._settings:
            self._settings = settings
            if self._keeper is not None:
                self.submit(lambda keeper: keeper.use(settings))

    def submit(self, work: Callable[[UndoKeeper], T]) -> Future[T]:
        """Queue work for the keeper, after everything submitted before."""
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="undo")
        return self._thread.submit(self._do, work)

    def _do(self, work: Callable[[UndoKeeper], T]) -> T:
        if self._keeper is None:
            # Only who uses undo needs its database.
            from handrail.undo.keeper import UndoKeeper

            self._keeper = UndoKeeper(self._folder, self._settings, self._own)
        return work(self._keeper)

    async def run(self, work: Callable[[UndoKeeper], T]) -> T:
        """Return the result of work that the keeper does. Raises `ToolUnavailable` on systems without undo."""
        if not IS_SUPPORTED:
            raise ToolUnavailable("there is no undo on Windows yet", hint="use version control")
        return await asyncio.wrap_future(self.submit(work))

    async def settled(self) -> None:
        """Wait until all submitted work is done."""
        if self._thread is not None:
            # It does one thing after another.
            await asyncio.wait([asyncio.wrap_future(self._thread.submit(bool))])

    async def close(self) -> None:
        """Finish the submitted work and close the store."""
        if self._thread is None:
            return
        # A keeper that the work under way makes is closed, too.
        await asyncio.wait([asyncio.wrap_future(self._thread.submit(self._close_keeper))])
        self._thread.shutdown(wait=False)
        self._thread = None

    def _close_keeper(self) -> None:
        if self._keeper is not None:
            self._keeper.close()

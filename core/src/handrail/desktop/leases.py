"""Leases: one holder at a time of a resource, across the tasks of this process and across processes."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from weakref import WeakValueDictionary

import anyio

from handrail.fs.app_dirs import ensure_private_folder
from handrail.fs.file_locks import try_lock

RETRY_S = 0.02


class ResourceLeases:
    """Leases by name. A name that starts with `desktop:` is also held against other processes, by a lock on a file in `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        # Held by those who use or wait for them, so that names of the past take no memory.
        self._locks: WeakValueDictionary[str, anyio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def hold(self, name: str, *, waiting: Callable[[], None] = lambda: None) -> AsyncGenerator[None, None]:
        """Hold `name`, first come first served in this process; `waiting` is called once if it has to wait."""
        lock = self._locks.setdefault(name, anyio.Lock())
        if lock.locked():
            waiting()
        async with lock:
            if not name.startswith("desktop:"):
                yield
                return
            descriptor = await self._lock_file(name.removeprefix("desktop:"), waiting)
            try:
                yield
            finally:
                os.close(descriptor)

    async def _lock_file(self, key: str, waiting: Callable[[], None]) -> int:
        """Return an open file with an exclusive lock; the kernel releases it with the process, however that ends."""
        path = ensure_private_folder(self._folder) / f"{key}.lock"
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            told = False
            while not try_lock(descriptor):
                if not told:
                    waiting()
                    told = True
                await anyio.sleep(RETRY_S)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

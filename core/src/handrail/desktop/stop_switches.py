"""Stop switch: lets the user halt all agents on a desktop, across processes."""

from __future__ import annotations

import os
from pathlib import Path

from handrail.errors import DesktopError
from handrail.fs.app_dirs import ensure_private_folder

__all__ = ["StopSwitches"]

EVERY_DESKTOP = "every"


class StopSwitches:
    """Stop switches by desktop name as sessions choose it (current, private, a started one's), kept in `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._every = folder / EVERY_DESKTOP

    def engage(self, name: str | None = None) -> None:
        """Stop that desktop, or every one, until `release`. `DesktopError` for what cannot be a name."""
        ensure_private_folder(self._folder)
        self._switch(name).touch(mode=0o600)

    def release(self, name: str | None = None) -> bool:
        """Release the switch and let calls continue; return True if it was on."""
        was = self._switch(name).exists()
        self._switch(name).unlink(missing_ok=True)
        return was

    def engaged(self, name: str) -> bool:
        """Return True if that desktop is stopped."""
        # Asked before every call that changes something, so as text.
        return os.path.exists(self._every) or os.path.exists(self._switch(name))

    def all(self) -> list[str]:
        """Return the names of all switches that are on; `every` represents all desktops."""
        return sorted(file.name for file in self._folder.glob("*")) if self._folder.is_dir() else []

    def _switch(self, name: str | None) -> Path:
        if name is None:
            return self._every
        if "/" in name or "\0" in name or name in ("", ".", ".."):
            raise DesktopError(f"{name!r} cannot be a desktop's name", hint="see `handrail desktop status`")
        return self._folder / name

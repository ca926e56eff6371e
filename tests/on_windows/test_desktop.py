"""The adapter for Windows keeps what all of them promise."""

from __future__ import annotations

from tests.desktop_contracts import DesktopContract


class TestWindows(DesktopContract):
    """With Notepad."""

"""The adapter for X11 keeps what all of them promise."""

from __future__ import annotations

import pytest
from tests.desktop_contracts import DesktopContract
from tests.plugins.gui.conftest import Programs

from handrail import Window
from handrail_gui.platforms.x11.screen import X11Screen
from handrail_gui.private.supervisor_client import PrivateDesktop


class TestX11(DesktopContract):
    @pytest.fixture
    async def editor(self, private: PrivateDesktop, screen: X11Screen, programs: Programs) -> Window:
        return await programs.open(private.desktop, screen, "mousepad", "--disable-server")

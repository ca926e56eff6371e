"""What every tool promises, for those of this plugin, on a real screen."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

import handrail_accessibility.hooks
import handrail_gui.hooks
from handrail import Tool
from handrail.testing import ToolContract
from handrail_gui.private.supervisor_client import PrivateDesktop
from handrail_gui.tools import screen_tools, window_tools


class OnScreen(ToolContract):
    @pytest.fixture
    def options(self, private: PrivateDesktop) -> Mapping[str, Any]:
        return {
            "plugins": {"gui": handrail_gui.hooks, "accessibility": handrail_accessibility.hooks},
            "settings": {"desktop": "current"},
            "environment": {**os.environ, **private.desktop.environment},
        }

    @pytest.fixture
    def good_args(self) -> Mapping[str, Any]:
        return {}


class TestObserveScreen(OnScreen):
    @pytest.fixture
    def tool(self) -> Tool:
        return screen_tools.observe_screen

    @pytest.fixture
    def bad_args(self) -> Sequence[Mapping[str, Any]]:
        return [{"window": "no such window"}, {"monitor": 7}, {"since": "o99"}, {"region": [5, 5, 5, 5]}]


class TestExecuteGui(OnScreen):
    @pytest.fixture
    def tool(self) -> Tool:
        return screen_tools.execute_gui

    @pytest.fixture
    def good_args(self) -> Mapping[str, Any]:
        return {"action": "press_key", "key": "f12"}

    @pytest.fixture
    def bad_args(self) -> Sequence[Mapping[str, Any]]:
        return [{"action": "click", "x": 1, "y": 1}, {"action": "click", "element_id": "e99"}, {"action": "type"}]


class TestWindowList(OnScreen):
    @pytest.fixture
    def tool(self) -> Tool:
        return window_tools.window_list


class TestClipboardWrite(OnScreen):
    @pytest.fixture
    def tool(self) -> Tool:
        return window_tools.clipboard_write

    @pytest.fixture
    def good_args(self) -> Mapping[str, Any]:
        return {"text": "漢字"}


class TestClipboardRead(OnScreen):
    @pytest.fixture
    def tool(self) -> Tool:
        return window_tools.clipboard_read

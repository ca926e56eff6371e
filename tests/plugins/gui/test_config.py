"""The settings of the plugin."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from handrail_gui.platforms.config import GuiConfig


def test_the_settings_take_only_keys_that_exist():
    assert GuiConfig(blocked_keys=("alt+f4",)).blocked_keys == ("alt+f4",)
    with pytest.raises(ValidationError, match="there is no key 'f44'"):
        GuiConfig(blocked_keys=("alt+f44",))

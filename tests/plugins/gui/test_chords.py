"""One spelling of keys, and chords that are refused in any."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from handrail import Denied, InvalidArguments
from handrail_gui.chords import chord_of, refuse_blocked
from handrail_gui.config import BLOCKED, GuiConfig


@pytest.mark.parametrize(
    ("given", "spelled"),
    [
        ("ctrl+s", "ctrl+s"),
        ("Control+Shift+S", "ctrl+shift+s"),
        ("shift+control_l+s", "ctrl+shift+s"),
        ("cmd+c", "super+c"),
        ("Meta+Left", "super+left"),
        ("left ctrl+arrow_left", "ctrl+left"),
        ("page_up", "pageup"),
        ("Page Down", "pagedown"),
        ("pgdn", "pagedown"),
        ("Return", "enter"),
        ("Escape", "esc"),
        ("ctrl++", "ctrl++"),
        ("ctrl+plus", "ctrl++"),
        ("+", "+"),
        ("ctrl+-", "ctrl+-"),
        ("A", "A"),
        ("ctrl+A", "ctrl+a"),
        ("F12", "f12"),
        (" ", "space"),
        ("ß", "ß"),
        (["ctrl", "alt", "t"], "ctrl+alt+t"),
        (["ctrl+shift", "t"], "ctrl+shift+t"),
    ],
)
def test_every_spelling_is_one_chord(given: str | list[str], spelled: str):
    assert str(chord_of(given)) == spelled


@pytest.mark.parametrize("given", ["ctl+s", "F99", "", "ctrl+hello"])
def test_a_key_that_does_not_exist_is_refused(given: str):
    with pytest.raises(InvalidArguments):
        chord_of(given)


@pytest.mark.parametrize(
    "given", ["super+r", "Win+R", "meta_l+r", "ctrl+alt+del", "alt+control+Delete", "ctrl+alt+F7", "shift+super+r"]
)
def test_blocked_chords_are_denied_however_they_are_spelled(given: str):
    with pytest.raises(Denied, match="blocked"):
        refuse_blocked(chord_of(given), BLOCKED)


@pytest.mark.parametrize("given", ["ctrl+r", "r", "alt+f4", "super", "ctrl+alt+t", "f7"])
def test_other_chords_are_not(given: str):
    refuse_blocked(chord_of(given), BLOCKED)


def test_the_settings_take_only_keys_that_exist():
    assert GuiConfig(blocked_keys=("alt+f4",)).blocked_keys == ("alt+f4",)
    with pytest.raises(ValidationError, match="there is no key 'f44'"):
        GuiConfig(blocked_keys=("alt+f44",))

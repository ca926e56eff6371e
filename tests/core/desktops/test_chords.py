"""One spelling of keys, and chords that are found in any."""

from __future__ import annotations

import pytest

from handrail import InvalidArguments
from handrail.desktop.key_chords import find_blocked_chord, parse_chord

BLOCKED = ("super+r", "ctrl+alt+delete", "ctrl+alt+f7")


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
    assert str(parse_chord(given)) == spelled


@pytest.mark.parametrize("given", ["ctl+s", "F99", "", "ctrl+hello"])
def test_a_key_that_does_not_exist_is_refused(given: str):
    with pytest.raises(InvalidArguments):
        parse_chord(given)


@pytest.mark.parametrize(
    "given", ["super+r", "Win+R", "meta_l+r", "ctrl+alt+del", "alt+control+Delete", "ctrl+alt+F7", "shift+super+r"]
)
def test_blocked_chords_are_found_however_they_are_spelled(given: str):
    assert find_blocked_chord(parse_chord(given), BLOCKED) in BLOCKED


@pytest.mark.parametrize("given", ["ctrl+r", "r", "alt+f4", "super", "ctrl+alt+t", "f7"])
def test_other_chords_are_not(given: str):
    assert find_blocked_chord(parse_chord(given), BLOCKED) is None

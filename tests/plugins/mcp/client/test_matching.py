"""Patterns in servers' schemas are read and matched in bounded time."""

from __future__ import annotations

from time import monotonic

import pytest

from handrail_mcp.client.bounded_regex import UndecidableMatch, compile_pattern

QUICK_S = 5.0


@pytest.mark.parametrize(
    "pattern",
    [
        pytest.param("(?=x)((a{1000}){1000}){1000}", id="nested-counts"),
        pytest.param("(?=x)" + "(" * 450 + ")" * 450, id="nested-groups"),
        pytest.param("(?!y)(?:a+)+$", id="many-ways"),
        pytest.param("(?=[" + "\\\\" * 400, id="a-class-that-is-not-ended"),
    ],
)
def test_a_pattern_that_looks_around_itself_is_given_up_soon(pattern: str) -> None:
    began = monotonic()
    with pytest.raises(UndecidableMatch):
        compile_pattern(pattern)("a" * 5_000 + "b")
    assert monotonic() - began < QUICK_S


@pytest.mark.parametrize(
    ("pattern", "text", "fits"),
    [
        (r"(?=.{1,253}$)([a-z0-9]{1,63}\.){1,127}", "a.b.", True),
        (r"^(?=.*[a-z])(?=.*\d).{8,64}$", "abc", False),
        (r"^(?!x)[a\]{9}]\{9\}$", "]{9}", True),
        (r"^(?!x).{1,65535}$", "a", True),
    ],
)
def test_ordinary_patterns_that_look_around_themselves_are_matched(pattern: str, text: str, fits: bool) -> None:
    assert compile_pattern(pattern)(text) is fits

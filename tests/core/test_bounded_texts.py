"""Texts that somebody else wrote are compared, matched and read in bounded time."""

from __future__ import annotations

import random
from pathlib import Path
from time import monotonic

import pytest

from handrail.glob_match import is_glob_match
from handrail.json_types import is_nested_deeper
from handrail.line_diffs import format_unified_diff
from handrail.text import find_similar_texts
from handrail.undo.ignore_rules import is_ignored, parse_rule

QUICK_S = 5.0


@pytest.mark.parametrize("line", ["[" * 60_000, "a" + " " * 60_000 + "b", "*a" * 30_000 + "b", "*a" * 100 + "b"])
def test_a_rule_of_gitignore_is_read_quickly(line: str) -> None:
    began = monotonic()
    rule = parse_rule(line)
    assert rule is None or not rule.fits(("a" * 255,), is_folder=True)
    assert monotonic() - began < QUICK_S


def test_many_rules_are_compiled_once_for_many_folders(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    rules = [f"*{number}x*y*z[ab]\n*b*u*i*l*d*[{number}]x\n" for number in range(900)]
    (tmp_path / ".gitignore").write_text("".join([*rules, "build\n", "!p7/build\n", "q/**\n"]))
    began = monotonic()
    ignored = [number for number in range(300) if is_ignored(f"{tmp_path}/p{number}/build")]
    assert (len(ignored), 7 in ignored) == (299, False)
    assert is_ignored(f"{tmp_path}/q/any")
    assert monotonic() - began < QUICK_S


@pytest.mark.parametrize(
    ("line", "parts"),
    [("a  ", ("**", "a")), ("a\\  ", ("**", "a\\ ")), ("a\\", ("**", "a\\")), ("a b\t", ("**", "a b"))],
)
def test_blanks_at_the_end_of_a_rule_count_only_behind_a_backslash(line: str, parts: tuple[str, ...]) -> None:
    rule = parse_rule(line)
    assert rule is not None
    assert rule.parts == parts


def test_long_lists_of_lines_are_compared_quickly() -> None:
    mixed = random.Random(1)
    before, after = ([str(mixed.randrange(150)) for _ in range(50_000)] for _ in range(2))
    began = monotonic()
    assert list(format_unified_diff(before, after, "a", "b"))[2].startswith("@@ ")
    assert monotonic() - began < QUICK_S


def test_a_small_change_of_a_long_text_is_shown_with_what_is_around_it() -> None:
    before = [str(n) for n in range(1, 50_001)]
    after = [*before[:30_000], "new", *before[30_001:]]
    assert list(format_unified_diff(before, after, "a", "b"))[2:] == [
        "@@ -29998,7 +29998,7 @@", " 29998", " 29999", " 30000", "-30001", "+new", " 30002", " 30003", " 30004",
    ]  # fmt: skip
    assert list(format_unified_diff(before, before, "a", "b")) == []


def test_a_long_pattern_is_answered_as_the_caller_says() -> None:
    assert is_glob_match("abc", "a*")
    assert is_glob_match("a", "[" * 100_000, if_long=True)
    assert not is_glob_match("a", "[" * 100_000)


def test_long_texts_are_like_none() -> None:
    assert find_similar_texts("colour", ["color", "x"], most=1) == ["color"]
    assert find_similar_texts("ab" * 50_000, ["ba" * 50_000], most=1) == []


@pytest.mark.parametrize(("levels", "deeper"), [(3, False), (4, True), (50_000, True)])
def test_depth_is_told_of_values_of_any_depth(levels: int, deeper: bool) -> None:
    value: object = 1
    for _ in range(levels):
        value = {"a": value}
    assert is_nested_deeper(value, 3) is deeper

"""Changing a part of a file by `edit_file`."""

from __future__ import annotations

import os
import random
from collections.abc import Awaitable, Callable
from pathlib import Path
from time import process_time
from typing import Any

import anyio
import pytest
from hypothesis import given, settings, strategies as st

import handrail
from handrail import Answer, Approval, Choice, Session, TimedOut, ToolResult
from handrail_files.omissions import is_placeholder
from handrail_files.text_match import find_matches
from handrail_files.time_limit import TimeLimit

pytestmark = pytest.mark.usefixtures("without_undo")

Edit = Callable[..., Awaitable[ToolResult]]


@pytest.fixture
def edit(session: Session, folder: Path) -> Edit:
    async def call(content: str | bytes | None, old: str, new: str, **args: Any) -> ToolResult:
        if content is not None:
            (folder / "a").write_bytes(content.encode() if isinstance(content, str) else content)
        return await session.call("edit_file", {"file_path": "a", "old_string": old, "new_string": new, **args})

    return call


CONFIG = "const myConfig = {\n  enableFeature: true,\n  retries: 3\n};"


@pytest.mark.parametrize(
    ("content", "old", "new", "after", "strategy"),
    [
        ("hello world", "world", "moon", "hello moon", "exact"),
        ("prefix-middle-suffix", "middle", r"new$`$&\1\n", r"prefix-new$`$&\1\n-suffix", "exact"),
        ("'^[sv]d[a-z]$')", "'^[sv]d[a-z]$'", "x", "x)", "exact"),
        ("one\ntwo\n", "one\r\ntwo", "A\r\nB", "A\nB\n", "exact"),
        ("a\nb\n", "b\n", "", "a\n", "exact"),
        ("a\nb", "b", "b\n", "a\nb\n", "exact"),
        ("one  \ntwo\n", "one\ntwo\n", "1\n2\n", "1\n2\n", "trailing_whitespace"),
        ("one\ntwo", "one\ntwo\n", "1\n2\n", "1\n2", "trailing_whitespace"),
        ("keep \nb \nkeep \n", "keep\nb\nkeep", "keep\nB\nkeep", "keep \nB\nkeep \n", "trailing_whitespace"),
        ("  a\n  b\n", "a\nb", "c\n  d", "  c\n    d\n", "indentation"),
        (
            "    if (a) {\n        foo();\n    }\n",
            "if (a) {\n    foo();\n}",
            "if (a) {\n    bar();\n}",
            "    if (a) {\n        bar();\n    }\n",
            "indentation",
        ),
        ("def f():\n    x = 1\n    return x\n", "def f():\n  x = 1\n", "def f():\n  if y:\n    x = 2\n",
         "def f():\n    if y:\n        x = 2\n    return x\n", "indentation"),
        ("  a:\n      b\n", "a:\n  b", "a:\n  c:\n    d\ne", "  a:\n      c:\n          d\n  e\n", "indentation"),
        ("def f():\n\treturn 1\n", "def f():\n    return 1", "def f():\n    if x:\n        return 2",
         "def f():\n\tif x:\n\t\treturn 2\n", "indentation"),
        ("\tif x:\n\t\ty\n", "  if x:\n    y\n", "  if x:\n    if z:\n      y\n", "\tif x:\n\t\tif z:\n\t\t\ty\n", "indentation"),
        (
            "\n  function oldFunc() {\n    // code\n  }",
            "function  oldFunc() {\n    // code\n  }",
            "function newFunc() {\n  // new\n}",
            "\n  function newFunc() {\n    // new\n  }",
            "whitespace",
        ),
        (
            "  function  myFunc( a, b ) {\n    return a + b;\n  }",
            "function myFunc(a, b) {",
            "const f = (a, b) => {",
            "  const f = (a, b) => {\n    return a + b;\n  }",
            "whitespace",
        ),
        ("tab\tx\n", "tab x", "y", "y\n", "whitespace"),
        ("x=1\n", "x = 1", "y = 2", "y = 2\n", "whitespace"),
        ("if(a){b()}\n", "if (a) { b() }", "if (c) { d() }", "if (c) { d() }\n", "whitespace"),
        ("red \x1b[31mword\x1b[0m\nend\n", "red word\n", "blue\n", "blue\nend\n", "as_shown"),
    ],
)  # fmt: skip
async def test_a_text_is_replaced_where_it_is(
    edit: Edit, folder: Path, content: str, old: str, new: str, after: str, strategy: str
) -> None:
    result = await edit(content, old, new)
    assert (folder / "a").read_bytes() == after.encode()
    assert (result["strategy"], result["replacements"], result["file_path"]) == (strategy, 1, str(folder / "a"))


async def test_lines_may_end_in_carriage_returns_alone(edit: Edit, folder: Path) -> None:
    result = await edit(b"one\rtwo\rthree\r", "two\nthree", "2\n3\n4")
    assert (folder / "a").read_bytes() == b"one\r2\r3\r4\r"
    assert result["range"] == [2, 4]
    assert "-two\n-three\n+2\n+3\n+4" in result["diff"]
    await edit(None, "3\r4", "end")
    assert (folder / "a").read_bytes() == b"one\r2\rend\r"


async def test_a_return_within_a_line_is_no_line_end(edit: Edit, folder: Path) -> None:
    assert (await edit(b"a\rb\nc\n", "b", "B\nC"))["range"] == [1, 2]
    assert (folder / "a").read_bytes() == b"a\rB\nC\nc\n"


@pytest.mark.parametrize(
    ("content", "old"),
    [
        ("foo\n\n\nbar", "foo\nbar"),
        (CONFIG, "function other() {\n  return false;\n}"),
        (CONFIG, CONFIG.replace("true,", "true")),
        ("ab", "a b"),
        ("some words", "so me"),
    ],
)
async def test_nothing_more_than_whitespace_is_guessed(edit: Edit, folder: Path, content: str, old: str) -> None:
    result = await edit(content, old, "x")
    assert (result.error_code, result["error"]["details"]["reason"]) == ("not_found", "no_match")
    assert (folder / "a").read_text() == content


async def test_several_places_are_told_and_none_is_changed(edit: Edit, folder: Path) -> None:
    result = await edit("foo\nbar\nfoo foo\n", "foo", "x")
    assert result["error"]["details"]["lines"] == [1, 3, 3]
    assert "3 times" in result["error"]["message"]
    assert (folder / "a").read_text() == "foo\nbar\nfoo foo\n"
    assert (await edit("aaa", "aa", "b"))["error"]["details"]["count"] == 2


@pytest.mark.parametrize(
    ("args", "after"),
    [
        ({"replace_all": True}, "x bar x"),
        ({"expected_replacements": 2}, "x bar x"),
        ({"expected_replacements": 3}, None),
        ({"expected_replacements": 1}, None),
        ({"replace_all": True, "expected_replacements": 1}, None),
    ],
)
async def test_how_many_are_replaced_is_as_expected_or_none(
    edit: Edit, folder: Path, args: dict[str, Any], after: str | None
) -> None:
    result = await edit("foo bar foo", "foo", "x", **args)
    assert result.ok is (after is not None)
    assert (folder / "a").read_text() == (after or "foo bar foo")


async def test_tolerant_matches_are_replaced_everywhere(edit: Edit, folder: Path) -> None:
    content = "  match1\n  match2\n  match1\n  match2\n"
    result = await edit(content, "match1\nmatch2", "a\nb\nc", replace_all=True)
    assert (folder / "a").read_text() == "  a\n  b\n  c\n" * 2
    assert (result["replacements"], result["strategy"], result["range"]) == (2, "indentation", [1, 6])


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        (b"one\r\ntwo\r\n", "two", "2", b"one\r\n2\r\n"),
        (b"a\r\nb\nc\r\n", "a\nb\nc", "A\nB\nC\nD", b"A\r\nB\nC\r\nD\r\n"),
        (b"a\r\nb\nc\n", "b", "b\nb", b"a\r\nb\nb\nc\n"),
        (b"\xef\xbb\xbfa\n", "a", "b", b"\xef\xbb\xbfb\n"),
        ("grün\n".encode("latin-1"), "grün", "blöd", "blöd\n".encode("latin-1")),
        (
            "これは日本語の文章です。\r\n".encode("cp932"),
            "日本語",
            "漢字",
            "これは漢字の文章です。\r\n".encode("cp932"),
        ),
        ("grün\r\n".encode("utf-16"), "grün\n", "漢\n", "漢\r\n".encode("utf-16")),
        (b"\xfe\xff" + "ab\n".encode("utf-16-be"), "a", "c", b"\xfe\xff" + "cb\n".encode("utf-16-be")),
        (b"x" * 70_000 + b"\nbad \xff byte\nend\n", "end", "END", b"x" * 70_000 + b"\nbad \xff byte\nEND\n"),
    ],
)
async def test_bytes_beside_the_change_stay(
    edit: Edit, folder: Path, before: bytes, old: str, new: str, after: bytes
) -> None:
    assert (await edit(before, old, new)).ok
    assert (folder / "a").read_bytes() == after


async def test_a_file_with_holes_keeps_them(edit: Edit, folder: Path) -> None:
    path = folder / "a"
    with path.open("wb") as file:
        file.write(b"one\n")
        file.seek(8_000_000)
        file.write(b"two\n")
    whole, before = path.read_bytes(), path.stat().st_blocks
    assert (await edit(None, "one", "three")).ok
    assert path.read_bytes() == whole.replace(b"one", b"three")
    assert path.stat().st_blocks <= before + 16


async def test_what_the_encoding_lacks_is_refused(edit: Edit, folder: Path) -> None:
    before = "grün\n".encode("latin-1")
    assert "U+6F22" in (await edit(before, "grün", "漢"))["error"]["message"]
    assert (folder / "a").read_bytes() == before


async def test_the_diff_and_the_range_are_those_of_the_change(edit: Edit) -> None:
    result = await edit("".join(f"{n}\n" for n in range(1, 101)), "50\n51\n", "fifty\n")
    assert result["range"] == [50, 50]
    assert result["diff"].split("\n")[2:] == [
        "@@ -47,8 +47,7 @@", " 47", " 48", " 49", "-50", "-51", "+fifty", " 52", " 53", " 54",
    ]  # fmt: skip


async def test_near_misses_show_what_differs(edit: Edit) -> None:
    result = await edit("a\n    return  compute(x)\nb\n", "\treturn  compute(y)\n", "x")
    closest = result["error"]["details"]["closest"]
    assert closest["lines"] == [2, 2]
    assert closest["diff"] == "-\t→return  compute(y)\n+ 2\t····return  compute(x)"
    assert closest["diff"] in result["error"]["message"]


async def test_odd_blanks_are_made_visible(edit: Edit) -> None:
    result = await edit("x\nlet a\u00a0= one + other;\n", "let a = one + other; // sum", "y")
    assert "⟦U+00A0⟧" in result["error"]["details"]["closest"]["diff"]


@pytest.mark.parametrize(
    ("old", "hint"),
    [("     1\tone", "line numbers"), ("⟦U+202E⟧", "stand for"), ("x … [line cut]", "cut")],
)
async def test_copies_of_what_is_shown_are_explained(edit: Edit, old: str, hint: str) -> None:
    assert hint in (await edit("one\n", old, "x"))["error"]["message"]


async def test_a_near_miss_in_a_huge_file_takes_a_bounded_time(edit: Edit) -> None:
    began = process_time()
    result = await edit("".join(f"line {n} of many words\n" for n in range(400_000)), "line 7x of many words\nno", "y")
    assert result.error_code == "not_found"
    assert process_time() - began < 15


@pytest.mark.parametrize(
    ("content", "old", "new", "code"),
    [
        pytest.param("a" * 10_000_000, "a", "b", "invalid_arguments", id="many-occurrences"),
        pytest.param("  a\n" * 100_000, "a \n a\n" * 10_000 + "b", "x", "not_found", id="lines-that-repeat"),
        pytest.param("  a\n" * 100_000, "a \n a\n" * 10_000, "x", "invalid_arguments", id="many-places-of-lines"),
        pytest.param(f"a{' ' * 40_000}b\n", "a  c", "x", "not_found", id="many-blanks"),
        pytest.param("a\n", "a", f"... rest {'is ' * 24}!", None, id="a-line-like-a-placeholder"),
    ],
)
async def test_what_is_to_be_changed_is_found_in_a_bounded_time(
    edit: Edit, content: str, old: str, new: str, code: str | None
) -> None:
    began = process_time()
    result = await edit(content, old, new)
    assert (None if result.ok else result.error_code) == code
    assert process_time() - began < 10


async def test_all_of_very_many_places_are_changed(edit: Edit, folder: Path) -> None:
    assert (await edit("a \r\nb\r\n" * 30_000, "a\nb", "c\nd", replace_all=True))["replacements"] == 30_000
    assert (folder / "a").read_bytes() == b"c\r\nd\r\n" * 30_000
    grown = await edit("a" * 1_000_000, "a", "b" * 100, replace_all=True)
    assert "the file would have 100000000 bytes" in grown["error"]["message"]


async def test_comparing_ends_when_nobody_waits_for_it(folder: Path) -> None:
    limit = TimeLimit(60)
    limit.stop()
    with pytest.raises(TimedOut):
        find_matches("a \nb\n", "a\nb ", "", limit)


async def test_an_empty_old_string_makes_a_file(edit: Edit, folder: Path) -> None:
    assert (await edit(None, "", "text"))["strategy"] == "new_content"
    assert (folder / "a").read_text() == "text"
    assert (await edit(None, "", "more")).error_code == "invalid_arguments"
    (folder / "a").unlink()
    assert (await edit(None, "", "more")).ok


async def test_a_missing_file_names_its_neighbours(session: Session, folder: Path) -> None:
    (folder / "readme.md").touch()
    args = {"file_path": "redme.md", "old_string": "a", "new_string": "b"}
    result = await session.call("edit_file", args)
    assert result.error_code == "not_found"
    assert "readme.md" in result["error"]["message"]


async def test_equal_texts_are_no_change(edit: Edit) -> None:
    assert (await edit("a", "a", "a")).error_code == "invalid_arguments"


@pytest.mark.parametrize(
    ("line", "stands_for_text"),
    [
        ("(rest of methods...)", True),
        ("// ... existing code ...", True),
        ("    # ... rest unchanged", True),
        ("/* … remaining methods … */", True),
        ("<!-- rest of the page unchanged -->", True),
        ("... rest of file", True),
        ("{/* ... existing imports ... */}", True),
        ("x = foo(...args)", False),
        ('const msg = "(rest of methods ...)";', False),
        ("# the rest of the arguments are paths", False),
        ("...", False),
        ("def f(x, ...): ...", False),
        ("Wait … there is more to it.", False),
        ("unchanged = True", False),
    ],
)
def test_placeholders_are_told_from_code(line: str, stands_for_text: bool) -> None:
    assert is_placeholder(line) is stands_for_text


async def test_placeholders_are_refused_unless_they_were_there(edit: Edit, folder: Path) -> None:
    assert (await edit("a\n", "a", "b\n// ... existing code ...")).error_code == "invalid_arguments"
    assert (folder / "a").read_text() == "a\n"
    assert (await edit("// ... existing code ...\n", "code ...", "code ...\nmore")).ok


async def test_a_change_by_somebody_else_is_not_lost(session: Session, edit: Edit, folder: Path) -> None:
    (folder / "a").write_text("one\ntwo\n")
    await session.call("read_file", {"file_path": "a"})
    (folder / "a").write_text("one\ntwo\nthree\n")
    assert (await edit(None, "two", "2"))["error"]["details"] == {"reason": "stale"}
    await session.call("read_file", {"file_path": "a"})
    assert (await edit(None, "two", "2")).ok
    assert (await edit(None, "three", "3")).ok


async def test_the_question_shows_the_diff_and_an_impossible_edit_is_not_asked_about(folder: Path) -> None:
    (folder / "a").write_text("one\n")
    asked: list[Any] = []

    async def ask(approval: Approval) -> Answer:
        asked.append(approval.confirmation)
        return Answer(Choice.ONCE)

    async with handrail.open(cwd=folder, confirm=ask) as session:
        args = {"file_path": "a", "old_string": "one", "new_string": "two"}
        await session.call("edit_file", args)
        assert (await session.call("edit_file", args)).error_code == "not_found"
    assert [(shown.kind, shown.diff) for shown in asked] == [("edit", "--- a\n+++ a\n@@ -1,1 +1,1 @@\n-one\n+two")]


async def test_an_impossible_edit_outside_is_asked_about_before_it_tells_anything(folder: Path) -> None:
    (folder.parent / "other").write_text("the words of another\n")

    async def no(approval: Approval) -> Answer:
        return Answer(Choice.DENY)

    async with handrail.open(cwd=folder, confirm=no) as session:
        args = {"file_path": "../other", "old_string": "the word of others", "new_string": "two"}
        result = await session.call("edit_file", args)
    assert result.error_code == "denied_by_user"
    assert "words of another" not in str(result)


async def test_a_secret_is_not_edited(session: Session, folder: Path) -> None:
    (folder / ".env").write_text("KEY=1")
    args = {"file_path": ".env", "old_string": "KEY", "new_string": "K"}
    assert (await session.call("edit_file", args)).error_code == "denied_by_policy"


async def test_hard_links_stay(edit: Edit, folder: Path) -> None:
    (folder / "a").write_text("one")
    os.link(folder / "a", folder / "b")
    assert "2 names" in (await edit(None, "one", "two"))["note"]
    assert (folder / "b").read_text() == "two"


LINES = st.lists(st.text(alphabet="ab {}()\t", max_size=8), min_size=1, max_size=6)


@settings(max_examples=300, deadline=None)
@given(LINES, LINES, LINES)
def test_what_is_found_is_the_old_text_but_for_whitespace(before: list[str], old: list[str], behind: list[str]) -> None:
    text = "\n".join([*before, *(line.strip() for line in old), *behind])
    found = find_matches(text, "\n".join(old), "NEW", TimeLimit(10))
    wanted = "".join("".join(old).split())
    if not wanted:
        return
    assert found is not None
    assert all("".join(text[m.start : m.end].split()) == wanted for m in found.matches)


@pytest.mark.parametrize("seed", range(60))
async def test_an_edit_is_the_same_in_every_encoding(session: Session, folder: Path, seed: int) -> None:
    chance = random.Random(seed)
    text = "".join(chance.choices(["a", "ab", "ü", "\n", "\n", "  x", "漢"], k=chance.randint(1, 60)))
    at = chance.randrange(len(text))
    old = text[at : at + chance.randint(1, 6)]
    new = "".join(chance.choices(["a", "\n", "é", ""], k=chance.randint(0, 4)))
    told: list[dict[str, object]] = []
    for encoding in ("utf-8", "utf-8-sig", "utf-16"):
        file = folder / encoding
        file.write_bytes(text.encode(encoding))
        args = {"file_path": file.name, "old_string": old, "new_string": new, "replace_all": seed % 2 == 0}
        result = {**await session.call("edit_file", args), "text": file.read_bytes().decode(encoding)}
        told.append(
            {key: str(result[key]).replace(encoding, "a") for key in result if key not in ("duration_ms", "file_path")}
        )
    assert told[0] == told[1] == told[2]


async def test_a_carriage_return_in_a_line_takes_nothing_out_of_the_diff(edit: Edit, folder: Path) -> None:
    result = await edit(b"one\rtwo\nthree", "two", "2")
    assert "-one␍two\n+one␍2\n three" in result["diff"]
    assert "removed" not in result


async def test_a_long_text_that_is_not_there_is_compared_in_bounded_time(edit: Edit) -> None:
    lines = [f"value {n % 7} of {n % 11}\n" for n in range(6_000)]
    wanted = [*lines[:100], "another line\n", *(line.replace("of", "in") for line in lines[100:5_900])]
    with anyio.fail_after(10):
        result = await edit("".join(lines), "".join(wanted), "x")
    assert result["error"]["details"]["closest"]["diff"].startswith("  98\t")
    assert "-\tanother line" in result["error"]["details"]["closest"]["diff"]


async def test_lines_without_words_are_compared_in_bounded_time(edit: Edit) -> None:
    mixed = random.Random(1)
    text = ["".join(mixed.choice("ab") for _ in range(200)) + "\n" for _ in range(400)]
    with anyio.fail_after(10):
        result = await edit("".join([*text, "same\n"]), "".join([*text[200:230][::-1], "same\n"]), "x")
    assert not result.ok


async def test_a_question_shows_the_end_of_a_changed_line(folder: Path) -> None:
    shown: list[Any] = []

    async def confirm(approval: Approval) -> Answer:
        shown.append(approval.confirmation)
        return Answer(Choice.DENY)

    (folder / "a").write_text("x" + " " * 900 + "old\n")
    async with handrail.open(cwd=folder, confirm=confirm) as session:
        await session.call("edit_file", {"file_path": str(folder / "a"), "old_string": "old", "new_string": "evil"})
    assert shown[0].diff.endswith("evil")

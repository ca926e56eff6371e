"""What must hold for every row: no typing errors, no option both harmless and dangerous, and no words that make it fail."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator

import pytest
from hypothesis import given, settings, strategies as st

from handrail_cli.programs import grammars, rows, scripts
from handrail_cli.programs.grammars.arg_matching import match_command_line
from handrail_cli.programs.rows import ProgramRow
from handrail_cli.shell.bash.syntax import ShellWord

PROGRAMS = sorted(rows.load_row_index())


def every_row() -> Iterator[tuple[str, ProgramRow]]:
    for name in PROGRAMS:
        for block in rows.find_program_blocks(name):
            yield name, rows.parse_row(block)


def test_every_grammar_check_and_language_that_a_row_names_is_there() -> None:
    for name, row in every_row():
        assert row.by is None or row.by in grammars.GRAMMARS, (name, row.by)
        assert row.then is None or row.then in grammars.CHECKS, (name, row.then)
        roles = [operand.role for operand in row.operands] + [option.role or "" for option in row.options.values()]
        for role in roles:
            if role.startswith("code/"):
                assert role.removeprefix("code/") in {*scripts.CHECKERS, "bash", "yq"}, (name, role)


def test_every_grammar_and_check_is_used() -> None:
    found = [row for _, row in every_row()]
    assert {row.by for row in found} - {None} == set(grammars.GRAMMARS)
    assert {row.then for row in found} - {None} == set(grammars.CHECKS)


def test_every_grammar_check_and_checker_stands_where_it_is_said_to() -> None:
    assert all(map(callable, map(grammars.load_grammar, grammars.GRAMMARS)))
    assert all(map(callable, map(grammars.load_check, grammars.CHECKS)))
    assert all(map(callable, map(scripts.load_checker, scripts.CHECKERS)))


def test_no_option_is_dangerous_in_one_spelling_and_harmless_by_a_prefix() -> None:
    for name, row in every_row():
        for prefix in row.prefixes:
            hidden = [
                option.name
                for option in row.options.values()
                if option.makes == "danger" and option.name.startswith(prefix.name)
            ]
            # Named options are looked for first, so what a prefix would take in is still found by its whole name.
            assert all(listed(row, option) for option in hidden), (name, prefix.name, hidden)


def listed(row: ProgramRow, name: str) -> bool:
    return row.options[name].makes == "danger"


def test_every_dangerous_option_says_why() -> None:
    for name, row in every_row():
        for option in row.options.values():
            assert option.makes != "danger" or (option.code and option.why), (name, option)


WORDS = st.one_of(
    st.sampled_from(
        [
            "-",
            "--",
            "-x",
            "-e",
            "-c",
            "-i",
            "-rf",
            "--help",
            "-n5",
            "--output=x",
            "+x",
            "x=y",
            "./a",
            "*",
            "{}",
            ";",
            "+",
            ":::",
            "-exec",
        ]
    ),
    st.text(max_size=12),
)


@settings(max_examples=400, deadline=None)
@given(
    program=st.sampled_from(PROGRAMS),
    texts=st.lists(st.tuples(WORDS, st.sampled_from(["sure", "unsure", "glob"])), max_size=8),
)
def test_words_never_make_it_fail(program: str, texts: list[tuple[str, str]]) -> None:
    found = match_command_line([ShellWord(program, program, (0, 0)), *(word(text, kind) for text, kind in texts)])
    assert found is not None
    size = len(texts) + 1
    assert found.unknown is None or 0 <= found.unknown < size
    assert all(0 <= one.word_index < size for one in found.named)
    assert all(0 <= one.start <= one.end <= size for one in found.inner)
    assert (found.kind == "dangerous") >= (found.reason is not None)


def word(text: str, kind: str) -> ShellWord:
    return ShellWord(None if kind == "unsure" else text, text, (0, 0), glob=kind == "glob")


@settings(max_examples=300, deadline=None)
@given(language=st.sampled_from(sorted(scripts.CHECKERS)), text=st.text(max_size=80))
def test_scripts_never_make_it_fail(language: str, text: str) -> None:
    scripts.load_checker(language)(text)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(["-r", "-f", "-v", "x", "y"]), min_size=1, max_size=5))
def test_letters_together_are_what_they_are_apart(parts: list[str]) -> None:
    flags = [part for part in parts if part.startswith("-")]
    files = [part for part in parts if not part.startswith("-")]
    together = ["rm", *(["-" + "".join(flag[1] for flag in flags)] if flags else []), *files]
    apart = ["rm", *flags, *files]
    one, other = (match_command_line([ShellWord(text, text, (0, 0)) for text in texts]) for texts in (together, apart))
    assert one is not None
    assert other is not None
    assert one.kind == other.kind
    assert [named.role for named in one.named] == [named.role for named in other.named]


# Programs of GNU and others that list all their long options in `--help`; those that are not installed here are passed over.
HELPFUL = (
    "cat", "head", "tail", "wc", "ls", "stat", "du", "df", "sort", "uniq", "cut", "paste", "join", "comm", "tee", "cp", "mv", "rm", "mkdir", "touch",
    "truncate", "install", "shuf", "split", "csplit", "nl", "od", "base64", "sha256sum", "realpath", "mktemp", "chmod", "chown", "timeout", "date",
    "grep", "sed", "diff", "sdiff", "patch", "rsync", "dmesg", "lscpu", "lsblk", "free", "pgrep", "rg", "wget",
)  # fmt: skip


def shown_options(program: str) -> set[str]:
    """The long options that its `--help` shows; nothing where it is not installed."""
    if (path := shutil.which(program)) is None:
        return set()
    shown = subprocess.run(
        [path, "--help"], capture_output=True, text=True, timeout=20, check=False, stdin=subprocess.DEVNULL
    )
    return set(re.findall(r"--[a-z][\w-]*", re.sub(r"\[(no-)?\]", "", shown.stdout + shown.stderr)))


@pytest.mark.parametrize("program", HELPFUL)
def test_listed_options_are_options_of_the_installed_program(program: str) -> None:
    row = rows.parse_row(rows.find_program_blocks(program)[0])
    known = set[str]().union(*map(shown_options, row.names[0]))
    ours = [option.name for option in row.options.values() if option.name.startswith("--")]
    if len(known) < 4 or not shown_options(program):
        pytest.skip(f"{program} is not installed here, or does not show its options")
    wrong = [
        name
        for name in ours
        if name not in known and f"--no-{name[2:]}" not in known and name.replace("--no-", "--") not in known
    ]
    # Options of other versions, and spellings that are not shown, are few.
    assert len(wrong) <= max(3, len(ours) // 6), f"of {program}, its --help does not show {wrong}"

"""What programs do, as the rows of their families say."""

from __future__ import annotations

import shlex

import pytest

from handrail_cli.commandline import Word
from handrail_cli.programs import Use, rows, use


def words(line: str, *unsure: int) -> list[Word]:
    """The words of a line; those whose numbers are given are not certain."""
    return [Word(None if n in unsure else text, text, (0, 0)) for n, text in enumerate(shlex.split(line))]


def of(line: str) -> Use:
    found = use(words(line))
    assert found is not None, line
    return found


def test_every_row_follows_the_language_and_every_program_has_one() -> None:
    for name, texts in rows.index().items():
        blocks = rows.program(name)
        assert [len(block.names) for block in blocks].count(1) == 1, f"{name} has not one row of its own"
        assert len(blocks[0].names) == 1, f"the row of {name} does not come before its subcommands"
        assert len(blocks) == len(texts)
        for block in blocks:
            rows.row(block)


READS = [
    "sort -k2,2n -t: a b",
    "head -20 notes.txt",
    "sed -n '10,20p' a",
    "sed -e 's|a/b|c|g' -e '/x/d' a",
    "awk -F: '$3 > 1000 {print $1, $3 / 2}' /etc/passwd",
    "jq -r '.a[] | {env: .env}' data.json",
    "find . -name '*.py' -newer a -printf '%p'",
    "git -C sub log --oneline -5 -- src",
    "git diff HEAD~1 --stat",
    "git branch -a --list 'x*'",
    "git clean -nd",
    "git config --get remote.origin.url",
    "rm --help",
    "xxd -r -p a",
    "tree -L 2",
]


@pytest.mark.parametrize("line", READS)
def test_what_only_reads_is_said_to_read(line: str) -> None:
    found = of(line)
    assert (found.kind, found.unknown) == ("reads", None), found


EFFECTS = [
    "sort -o out in",
    "sed -i.bak s/a/b/ f",
    "awk '{print > \"out.txt\"}' f",
    "xxd -r -p in out",
    "uniq in out",
    "git add -A",
    "git commit -qm 'rm -rf /'",
    "git checkout -b new origin/main",
    "git push origin main",
    "rm -rf build",
    "tree -o x",
]


@pytest.mark.parametrize("line", EFFECTS)
def test_ordinary_changes_are_effects(line: str) -> None:
    found = of(line)
    assert (found.kind, found.unknown) == ("effect", None), found


DANGEROUS = [
    "sort --compress-program=x in",
    "sed 's/x/id/e' f",
    "sed '1e id' f",
    "awk 'BEGIN{system(\"id\")}'",
    "awk '{print | \"sh\"}' f",
    "rg --pre=x y",
    "split --filter=x y",
    "git -c core.pager=x log",
    "git -p log",
    "git push origin +main",
    "git reset --hard",
    "git checkout -- f",
    "git restore f",
    "git clean -fd",
    "git config core.hooksPath /tmp/h",
    "chmod u+s f",
    "env",
    "printenv",
    "date -s tomorrow",
]


@pytest.mark.parametrize("line", DANGEROUS)
def test_what_a_person_has_to_see_is_dangerous_and_says_why(line: str) -> None:
    found = of(line)
    assert found.kind == "dangerous"
    assert found.reason is not None
    assert found.reason.text


UNLISTED = [
    "rm --rec x",
    "sort --comp=x",
    "ls --no-such",
    "git --paginated log",
    "git frobnicate",
    "sed 'zz' f",
    "jq '$ENV.X' f",
]


@pytest.mark.parametrize("line", UNLISTED)
def test_whatever_is_not_listed_is_unknown(line: str) -> None:
    assert of(line).unknown is not None


def test_a_program_without_a_row_is_not_known() -> None:
    assert use(words("no-such-program x")) is None
    assert use(words("ls", 0)) is None


def test_a_word_that_may_turn_out_an_option_is_unknown_save_where_no_option_does_more() -> None:
    assert use(words("sort X", 1)).unknown == 1  # type: ignore[union-attr]
    assert use(words("sort -- X", 2)).unknown is None  # type: ignore[union-attr]
    assert use(words("cat X", 1)).unknown is None  # type: ignore[union-attr]


def test_roles_say_what_a_command_names() -> None:
    assert [(one.role, one.word_index, one.value) for one in of("cp -t d a b").named] == [
        ("dest", 2, None),
        ("read", 3, None),
        ("read", 4, None),
    ]
    assert [(one.role, one.value) for one in of("sort --output=x y").named] == [("write", "x"), ("read", None)]
    assert [one.role for one in of("rm -rf a").named] == ["delete_tree"]
    assert [one.role for one in of("find . -name x -delete").named] == ["list", "delete"]


def test_inner_commands_are_found() -> None:
    assert [(one.start, one.end) for one in of("timeout -k 1 5 ls -R").inner] == [(4, 6)]
    assert [(one.start, one.gets) for one in of("xargs -n1 rm -f").inner] == [(2, "input")]
    assert [(one.start, one.end, one.gets) for one in of("find . -exec wc {} +").inner] == [(3, 5, "found")]
    assert [one.code for one in of("parallel rm {} ::: a b").inner] == ["rm a", "rm b"]

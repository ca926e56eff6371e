"""That a line which bash reads otherwise than the parser neither runs on the host nor by a lasting yes."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import assume, given, strategies as st
from tests.plugins.cli.bash_cases import BARE

import handrail
from handrail import Decision, View
from handrail.api.approval import no
from handrail.api.verdict import SandboxOffer
from handrail_cli.shell.bash.line_parser import parse_line
from handrail_cli.shell.literal_lines import is_unambiguous
from handrail_cli.shell.verdict import judge_line

CONFINED = replace(BARE, sandbox=SandboxOffer("bubblewrap"))
# What each of these runs or opens for bash is not what its words seem to say.
READ_OTHERWISE = [
    "echo a >&'/dev/$(touch PWN)/../null'",
    'id >&"/dev/$(touch PWN)/../null"',
    "printf x >> \\ /dev/null",
    "echo x >d/../../../../dev/null",
    "id; cat <d/../../../../dev/null",
    "\\ echo hi",
    "!''echo hi",
    "echo =~\ncat ~/.netrc",
    "echo {a['$(touch PWN)']}>/dev/null",
    "systemctl status -H2130706433>/dev/null",
    'LC_ALL=zh_CN.gbk\necho "€\\"; touch PWN #"',
    'export LANG=ja_JP.SJIS\necho "表\\"; touch PWN #"',
]


@pytest.mark.parametrize("command", READ_OTHERWISE)
def test_a_line_that_bash_reads_otherwise_does_not_run_on_the_host(command: str) -> None:
    opinion = judge_line(command, CONFINED)
    assert opinion.suggestion is not Decision.ALLOW or opinion.view not in (View.SHELL, View.SYSTEM)


@pytest.mark.parametrize(
    "command",
    [
        "\\ /usr/bin/git push",
        "!''/usr/bin/git push",
        "git push -f4>/dev/null origin main",
        "git push {x['$(touch PWN)']}>/dev/null",
        "git push <&- -f",
        "(git push)",
    ],
)
def test_no_lasting_yes_is_for_a_line_with_two_readings(command: str) -> None:
    opinion = judge_line(command, CONFINED)
    assert opinion.suggestion is Decision.CONFIRM
    assert any(part.varies for part in opinion.parts if not part.harmless)


@pytest.mark.parametrize(
    "command",
    [
        "git add a; git grep -Opython3>/dev/null shutil evil.py",
        "git add a; echo {a['$(rm -rf .git/refs)']}>/dev/null",
        "git add a; echo b >&'/dev/$(rm -rf .git/refs)/../null'",
        "git add a; x 2>/dev/null y <(rm -rf .git/refs)",
    ],
)
def test_git_does_not_share_its_repository_with_what_is_read_otherwise(command: str) -> None:
    assert judge_line(command, CONFINED).suggestion is Decision.CONFIRM


@pytest.mark.parametrize(
    ("command", "view"),
    [
        ("echo hi 2>&1", View.SHELL),
        ('echo "$LANG is spoken" ${USER:-none} && true', View.SHELL),
        ("printf '%s\\n' \"a b\" > /dev/null; echo", View.SHELL),
        ("uptime 2>/dev/null | true", View.SYSTEM),
        ("LC_ALL=C df -h /\nid", View.SYSTEM),
        ("LC_ALL=de_DE.UTF-8 df -h &>/dev/null", View.SYSTEM),
    ],
)
def test_lines_in_plain_words_run_where_they_did(command: str, view: View) -> None:
    opinion = judge_line(command, CONFINED)
    assert (opinion.suggestion, opinion.view) == (Decision.ALLOW, view)


@pytest.mark.parametrize(
    "command",
    [
        'echo "$HOME $(pwd)"',
        'echo "$HOME\t`date`"',
        'echo "${x:-a}\n\t$(pwd)"',
        'echo "$(date) $(pwd) `date`"',
        'i=1; echo "$i\\ $(date)"',
        'echo "$((1 + 2)) $(pwd)"',
        'git commit -m "$x $(date)"',
    ],
)
def test_blanks_between_expansions_in_quotes_are_read_in_one_way(command: str) -> None:
    assert judge_line(command, CONFINED).suggestion is Decision.ALLOW


@pytest.mark.parametrize("expansion", ["${!x}", "${x:1+c}", "${x@P}", "$((c))", "$(cat ~/.netrc)", "`cat ~/.netrc`"])
@pytest.mark.parametrize("blanks", ["", " ", "\t", "\n ", "\\ "])
def test_what_stands_behind_a_blank_in_quotes_is_looked_at(blanks: str, expansion: str) -> None:
    assert judge_line(f'c=$1 x=abc; echo "$HOME{blanks}{expansion}"', CONFINED).suggestion is Decision.CONFIRM


async def test_a_redirection_that_is_expanded_twice_starts_nothing(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    async with handrail.open(cwd=tmp_path / "work", confirm=no) as session:
        await session.call("execute_cli", {"command": f"echo a >&'/dev/$(touch {tmp_path}/PWN)/../null'"})
    assert not (tmp_path / "PWN").exists()


PIECES = (
    "zz", " ", " ", " ", "\t", "\n", ";", " && ", " || ", " | ", "|&", "&", "a", "b=c", "-f4", "2", "1", "2>&1", ">&2", " > /dev/null", ">/dev/null",
    "2>/dev/null", "&>/dev/null", "</dev/null", ">", "<", "\\ ", "\\", "'x y'", '"x y"', '"$HOME"', "$HOME", "${NO:-d e}", "''", '""', "'", '"', "!",
    "#", "{a}", "{a}>", "[", "]", "*", "?", "~", "=", "%", "€", "(", ")", "$", "`", "[[ ", " ]]",
)  # fmt: skip


QUOTED_PIECES = (
    " ",
    " ",
    "\t",
    "\n",
    "\\ ",
    "\\\t",
    "a",
    "$HOME",
    "${HOME}",
    "${NO:-d}",
    "'",
    "\\$",
    "$(true)",
    "$((1))",
)


@given(line=st.lists(st.sampled_from(QUOTED_PIECES), min_size=1, max_size=9).map("".join))
def test_quoted_words_are_those_of_bash(line: str) -> None:
    found = parse_line(f'printf %s "{line}"', variables={"HOME": "/home/me"})
    assume(not found.opaque)
    text = found.commands[-1].words[-1].text
    ran = subprocess.run(
        ["/bin/bash", "-c", f'printf %s "{line}"'], env={"HOME": "/home/me"}, capture_output=True, text=True, check=True
    )
    assert text in (None, ran.stdout)
    assert text is not None or "$(" in line or "NO" in line or "$HOMEa" in line


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose only program appends its words to the file `called` there."""
    folder = tmp_path_factory.mktemp("programs")
    program = folder / "zz"
    program.write_text('#!/bin/bash\nprintf \'%s\\0\' "$#" "$@" >>"${0%/*}/called"\n')
    program.chmod(0o755)
    return folder


@given(line=st.lists(st.sampled_from(PIECES), min_size=1, max_size=9).map("".join))
def test_bash_gives_programs_the_words_of_an_unambiguous_line(programs: Path, line: str) -> None:
    line = f"zz {line}"
    assume(is_unambiguous(parse_line(line)) and "*" not in line and "?" not in line)
    found = parse_line(line, variables={"HOME": "/home/me"})
    assume(not found.opaque and all(command.argv for command in found.commands))
    called = programs / "called"
    called.unlink(missing_ok=True)
    environment = {"PATH": str(programs), "HOME": "/home/me"}
    with TemporaryDirectory() as folder:
        ran = subprocess.run(["/bin/bash", "-c", line], env=environment, capture_output=True, cwd=folder, check=False)
    seen = called.read_bytes().split(b"\0")[:-1] if called.exists() else []
    calls: list[tuple[str, ...]] = []
    while seen:
        count = int(seen.pop(0))
        calls.append(tuple(word.decode() for word in seen[:count]))
        del seen[:count]
    expected = [command.argv[1:] for command in found.commands if command.argv and command.argv[0] == "zz"]
    # A part behind `||` may not have been run.
    assert all(call in expected for call in calls)
    assert calls or ran.stderr

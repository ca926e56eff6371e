"""Code for a shell that may not be bash counts as read only where all shells read it alike."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from tests.plugins.cli.bash_cases import BARE

from handrail import Decision, Mode
from handrail.api.verdict import SandboxOffer
from handrail_cli.shell.verdict import judge_line

JUDGING = replace(BARE, sandbox=SandboxOffer("bubblewrap"), mode=Mode.PERMISSIVE)


def needs_approval(command: str) -> bool:
    """True if no mode lets it pass by itself."""
    return judge_line(command, JUDGING).floor is Decision.CONFIRM


def is_read(command: str) -> bool:
    return judge_line(command, JUDGING).suggestion is Decision.ALLOW


ONLY_IN_BASH = [
    "[[ a || ls ]]",
    "[[ a == b ]]",
    "if [[ -n a ]]; then ls; fi",
    "! [[ a ]]",
    "((ls))",
    "for ((i = 0; i < 3; i++)); do ls; done",
    "function f { ls; }",
    "select i in a b; do ls; done",
    "coproc ls",
    "cat <(ls)",
    "ls > >(cat)",
    "ls &> b",
    "ls &>> b",
    "ls >& b",
    "ls |& cat",
    "ls 10> b",
    "cat <<< a",
    "echo $'a'",
    'echo $"a"',
    "x=(a b)",
    "x[0]=a",
    "x+=/ls",
    "declare -a x=(a b)",
    "echo ${x[0]}",
    "ls {a,b}",
    "ls a{b,$x}c",
    "ls {1..3}",
    "case a in a) ls ;& b) ls ;; esac",
    "case a in a) ls ;;& b) ls ;; esac",
    "echo ${x//a/b}",
    "echo ${x:0:1}",
    "echo ${x^}",
    "echo ${x@Q}",
    "echo ${!x}",
    "echo $[1 + 1]",
    "echo $((i++))",
    "ls @(a|b)",
    # What POSIX has otherwise than bash.
    "x=ls; x=./other :; $x",
    "export x=$y",
    "echo 'a\\nb' | xargs cat",
    "echo -e a | xargs ls",
]
FEEDING = [
    "sh -c {}",
    "dash -c {}",
    "ksh -c {}",
    "busybox sh -c {}",
    "env sh -c {}",
    "bash --posix -c {}",
    "bash -o posix -c {}",
    "sh <<< {}",
    "xargs -I% sh -c {} <<< y",
    "find . -maxdepth 0 -exec sh -c {} \\;",
    "flock lock -c {}",
    "script -qc {} /dev/null",
    "sh -c 'eval '{}",
    "parallel {} ::: a",
]


@pytest.mark.parametrize("code", ONLY_IN_BASH)
def test_what_only_bash_reads_so_has_not_been_read_for_another_shell(code: str) -> None:
    assert needs_approval(f"sh -c {shlex.quote(code)}")


@pytest.mark.parametrize("feeding", FEEDING)
def test_no_way_of_giving_code_to_a_shell_has_it_read_as_bash(feeding: str) -> None:
    assert needs_approval(feeding.format(shlex.quote("[[ a || ls ]]")))


def test_a_script_that_the_line_writes_is_read_as_its_own_shell_reads_it() -> None:
    assert needs_approval("echo '[[ a || ls ]]' > s; sh s")
    assert needs_approval("printf '#!/bin/sh\\n[[ a || ls ]]\\n' > s; ./s")
    assert not needs_approval("printf '#!/bin/bash\\n[[ a == ls ]]\\n' > s; ./s")


@pytest.mark.parametrize(
    "code",
    [
        "grep '[[:space:]]' a",
        "grep [[:space:]] a",
        "ls *.txt 2>&1 | wc -l",
        'for f in a b; do echo "${f%.txt}"; done',
        "test -f a && cat a || ls",
        "[ -f a ] && cat a",
        "echo a >&2",
        "export X=1; ls",
        "! ls",
        "echo \"a{b,c}\" 'a{1..3}' \\{a,b}",
        "awk '{print $1,$2}' a",
        "git show HEAD@{1}",
        "find . -name x -exec ls {} +",
    ],
)
def test_code_that_all_shells_read_alike_is_read(code: str) -> None:
    assert is_read(f"sh -c {shlex.quote(code)}")


def test_bash_in_another_shell_is_bash() -> None:
    assert is_read("sh -c 'bash -c \"[[ a == b ]]\"'")
    assert is_read("bash -c '[[ -f a ]] && echo {a,b}'")


@pytest.mark.skipif(shutil.which("dash") is None, reason="there is no dash")
def test_another_shell_runs_what_is_only_compared_for_bash(tmp_path: Path) -> None:
    code = "[[ a || touch made ]]"
    for shell in ("bash", "dash"):
        subprocess.run([shell, "-c", code], cwd=tmp_path, env=dict(os.environ), capture_output=True, check=False)
        assert (tmp_path / "made").exists() == (shell == "dash")


@pytest.mark.parametrize("command", ["[ a || ./own ]", "[ a && ./own ]", "if [ a || ./own ]; then ls; fi"])
def test_commands_that_end_a_test_in_brackets_are_not_taken_for_words_of_it(command: str) -> None:
    assert needs_approval(command)

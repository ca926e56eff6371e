"""What was not read needs approval in every mode, permissive mode among them."""

from __future__ import annotations

import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.plugins.cli.bash_cases import BARE

import handrail
from handrail import Decision, Mode, Opinion, Route, View
from handrail.api.verdict import SandboxOffer
from handrail_cli.shell.verdict import judge_line

JUDGING = replace(BARE, sandbox=SandboxOffer("bubblewrap"), mode=Mode.PERMISSIVE)


def opinion(command: str) -> Opinion:
    return judge_line(command, JUDGING)


def needs_approval(command: str) -> bool:
    """True if no mode lets it pass by itself: a floor, or a catastrophe."""
    found = opinion(command)
    return found.catastrophic or found.floor is Decision.CONFIRM


INTERPRETERS = [
    "tclsh <<< 'file delete -force ~'",
    "echo 'file delete -force ~' | tclsh",
    "tclsh -",
    "guile script",
    "lua5.4 -e 'os.remove(\"x\")'",
    "ocaml -e 'Sys.command \"x\"'",
    "ruby --unlisted x.rb",
    "node --unlisted x.js",
    "python3 --unlisted x.py",
    "julia -e 'rm(\"x\")'",
    "groovy -e 'x'",
    "bun -e 'x()'",
    "expect -c 'spawn x'",
    "octave <<< 'system(\"x\")'",
    "gnuplot <<< 'system(\"x\")'",
    "R --no-save <<< 'system(\"x\")'",
    "awk '@load \"x\"' f",
    "nu -c 'x'",
    "elvish -c 'x'",
    "pwsh -c 'Remove-Item x'",
    "xonsh -c 'x'",
    "zsh -c '=ls x'",
    "fish -c 'ls (x)'",
]
UNKNOWN_PROGRAMS = [
    "foo -e 'x(1)'",
    "foo --eval x",
    "foo --eval=x",
    "foo -c 'rm -rf build'",
    "foo <<< 'delete all'",
    "foo <<E\ndelete all\nE",
    "echo 'delete all' | foo",
    "foo --run 'sh -c x'",
    "foo -- rm -rf ~/notes",
    "foo rm -rf ~/notes",
    "foo -x --fast rm -rf ~/notes",
    "foo 'rm -rf ~/notes'",
    "foo --cmd='rm -rf ~/notes'",
    "foo 'cd /; rm -rf ~/notes'",
    "direnv exec . rm -rf ~/notes",
    "proot rm -rf ~/notes",
]
COMPUTED = [
    "n='a[$(touch m)]'; s=abc; echo ${s:1:n}",
    "read n < f; echo ${s:n}",
    "read n < f; echo ${s:0:n}",
    "echo ${@:x}",
    "a[$(touch m)]=1",
    "a['$(touch m)']=1",
    "a['$(touch m)']=",
    "k='b[$(touch m)]'; a[k]=1",
    "a[$k]+=1",
    "x=(['$(touch m)']=1)",
    "declare -A a=([$k]=1)",
    "x='a[$(touch m)]'; echo $((x))",
    "x='a[$(touch m)]'; ((x))",
    "x='a[$(touch m)]'; let x",
    "let i++",
    "[[ $x -eq 0 ]]",
    "[[ x -gt 1 ]]",
    "test -v 'a[$(touch m)]'",
    "[[ -v $x ]]",
    "[ $x ]",
    "printf -v 'a[$(touch m)]' x",
    'printf -v "$x" y',
    'printf -v"$x" y',
    'printf "$x" y',
    "read 'a[$(touch m)]' <<< 1",
    'read "a[$x]"',
    "read $x",
    "unset 'a[$(touch m)]'",
    'unset "$x"',
    "declare 'a[$(touch m)]=1'",
    'declare "$x=1"',
    "export $x",
    "declare -i z='a[$(touch m)]'",
    "declare -gi z; z='a[$(touch m)]'",
    "declare -n r='a[$(touch m)]'; echo $r",
    "local -n r=x",
    "x=(); declare x='($(touch m))'",
    "x=(); declare x+='($(touch m))'",
    'x=(); declare x="$y"',
    "declare -a x='($(touch m))'",
    "read -a x; typeset x='($(touch m))'",
    "declare PIPESTATUS='($(touch m))'",
    "RANDOM='a[$(touch m)]'",
    "OPTIND='a[$(touch m)]'",
    "read RANDOM <<< 'a[$(touch m)]'",
    "for RANDOM in 'a[$(touch m)]'; do :; done",
    "wait -n -p 'a[$(touch m)]'",
    "wait -np 'a[$(touch m)]'",
    "wait -p PATH",
    'wait "$x"',
    "echo ${!v}",
    "${!v} x",
    "echo ${v@P}",
]
NAMES = [
    "alias x='rm -rf /'",
    "alias x='rm -rf ~/notes'",
    "alias x=ls",
    'alias "x=$y"',
    "jobs -x touch m",
    'jobs "$x"',
    "command jobs -x touch m",
    "cd() { touch m; }",
    "f() { rm -rf ~/notes; }",
    "f() { f; }; f",
    "coproc touch m",
    "coproc { touch m; }",
    "select x in a b; do touch m; done",
    "pushd ~; rm x",
    "popd; rm x",
    "for d in a b; do cd ..; done; rm x",
    "shopt -s cdable_vars",
    "shopt -s expand_aliases",
    "set -k",
    "set -o keyword",
    "complete -C 'touch m' x",
    "bind -x '\"a\": touch m'",
    "mapfile -C 'touch m' -c 1 a",
    "BASH_CMDS[ls]=x",
    "BASH_ALIASES[ls]='touch m'",
    "LUA_INIT='@x' lua y.lua",
    "GOFLAGS=-toolexec=x go build",
    "npm_config_script_shell=x npm test",
    "RUSTC=x cargo build",
    'make -C "$x"',
]
WRAPPERS = [
    "parallel bash -c ::: 'rm -rf /'",
    "parallel sh -c '{}' ::: 'rm -rf /'",
    "parallel -j2 'bash -c {}' ::: 'rm -rf /'",
    "parallel bash -c -- 'rm -rf /'",
    "parallel -- 'rm -rf /'",
    "echo 'rm -rf /' | parallel bash -c",
    "echo 'rm -rf /' | parallel",
    "parallel --unlisted echo ::: a",
    "printf 'rm -rf /' | xargs -0 bash -c",
    "echo \"'rm -rf /'\" | xargs bash -c",
    "echo 'rm -rf /' | xargs -I{} bash -c '{}'",
    "echo 'rm -rf /' | xargs -d '\\n' sh -c",
    "printf 'ls\\nrm -rf /' | xargs -n1 -d '\\n' sh -c",
    "nice --unlisted x rm -rf ~/notes",
    "bwrap --bind / / rm -rf /",
    "firejail rm -rf ~/notes",
]


@pytest.mark.parametrize("command", [*INTERPRETERS, *UNKNOWN_PROGRAMS, *COMPUTED, *NAMES, *WRAPPERS])
def test_what_was_not_read_needs_approval_in_every_mode(command: str) -> None:
    """If this fails, permissive mode runs on the host what nobody has read."""
    assert needs_approval(command), opinion(command)


@pytest.mark.parametrize(
    "command",
    [
        "lua - <<< 'x()'",
        "ruby -e 'x'",
        "node <<< 'x()'",
        "python3 <<< 'x()'",
        "php <<< '<?php x();'",
    ],
)
def test_code_of_an_interpreter_that_was_not_read_keeps_to_the_sandbox(command: str) -> None:
    """If this fails, permissive mode runs on the host what nobody has read."""
    found = opinion(command)
    assert (found.suggestion, found.route, found.view) == (Decision.ALLOW, Route.SANDBOX, View.WORK)
    for line in (f"{command}\nfrobnicate", f"{command}\ncat ~/letter.txt", f"{command}\ncurl https://x.example"):
        assert needs_approval(line), opinion(line)
    assert judge_line(command, replace(JUDGING, sandbox=None)).floor is Decision.CONFIRM


@pytest.mark.parametrize(
    "command",
    [
        "alias x='rm -rf /'",
        "parallel bash -c ::: 'rm -rf /'",
        "parallel sh -c '{}' ::: 'rm -rf /'",
        "parallel bash -c -- 'rm -rf /'",
        "echo 'rm -rf /' | parallel bash -c",
        "printf 'rm -rf /' | xargs -0 bash -c",
        "echo 'rm -rf /' | xargs -I{} bash -c '{}'",
        "complete -C 'rm -rf /' x",
        "mapfile -C 'rm -rf /' a",
        "jobs -x rm -rf /",
        "bwrap --bind / / rm -rf /",
        "f() { rm -rf /; }",
    ],
)
def test_a_catastrophe_is_seen_through_what_runs_it(command: str) -> None:
    assert opinion(command).catastrophic, opinion(command)


@pytest.mark.parametrize(
    "command",
    [
        "x=(a b); x[1]=c; echo ${x[1]}",
        "s=abc; echo ${s:1:2}",
        "for i in 1 2; do a[i]=x; done",
        "declare -a x=(a b); declare -A m; local y=1",
        "test -v HOME",
        "[[ -v HOME ]]",
        "wait -n -p done",
        "jobs -l",
        "printf '%s\\n' a",
        "read -r -a words <<< 'a b'",
        "n=5; [[ $n -gt 3 ]]",
    ],
)
def test_plain_computing_needs_no_approval(command: str) -> None:
    found = opinion(command)
    assert found.suggestion is Decision.ALLOW, found


@pytest.mark.parametrize("command", ["foo", "foo a.txt --fast", "foo -c config.toml", "foo add 'a long title'"])
def test_permissive_mode_still_runs_programs_that_nobody_knows(command: str) -> None:
    found = opinion(command)
    assert found.floor is None, found
    assert found.suggestion is Decision.CONFIRM


@pytest.mark.parametrize("command", ["python3 -m mymodule", "make --unlisted-option", "sbt publish"])
def test_code_of_the_workspace_stays_confined_where_nobody_is_asked(command: str) -> None:
    found = opinion(command)
    assert (found.suggestion, found.route) == (Decision.CONFIRM, Route.SANDBOX), found


@pytest.mark.parametrize("command", ["ls --unlisted", "sort --unlisted a.txt", "touch --unlisted a.txt"])
def test_an_option_that_nobody_knows_stays_confined_where_nobody_is_asked(command: str) -> None:
    found = opinion(command)
    assert (found.suggestion, found.route, found.unknown_effects) == (Decision.CONFIRM, Route.SANDBOX, True), found
    assert found.floor is None


MANY = "; ".join(f"foo{number}" for number in range(20))


@pytest.mark.parametrize(
    "command", ["curl --unlisted https://example.com", "foo; ls --unlisted", f"{MANY}; ls --unlisted"]
)
def test_an_option_that_nobody_knows_is_told_of_where_the_sandbox_is_no_place_for_the_line(command: str) -> None:
    found = opinion(command)
    assert (found.route, found.unknown_effects) == (Route.HOST, True), found


@pytest.mark.parametrize(
    "command", ['git grep -O"$X" a', 'sort --compress-program="$X" a', 'sort --comp"$X" a', 'git reset --ha"$X"']
)
def test_an_option_whose_end_is_not_known_is_dangerous_if_it_may_be(command: str) -> None:
    assert needs_approval(command), opinion(command)


@pytest.mark.parametrize(
    "command",
    [
        "n='a[$(touch m)]'; s=abc; echo ${s:1:n}",
        "jobs -x touch m",
        ": & wait -p 'a[$(touch m)]' $!",
        "x=(); declare x='($(touch m))'",
        "tclsh <<< 'exec touch m'",
        "alias x='touch m'",
        "x='a[$(touch m)]'; echo $((x))",
    ],
)
async def test_nothing_of_it_runs_in_permissive_mode_when_nobody_is_there(command: str, tmp_path: Path) -> None:
    """If this fails, a command reached the host by a way that the analysis did not follow."""
    work = tmp_path / "work"
    work.mkdir()
    async with handrail.open(cwd=work, mode="permissive") as session:
        result = await session.call("execute_cli", {"command": command})
    assert result["status"] == "denied", result
    assert not (work / "m").exists()


RUNNING = [
    "tar -xf t.tar --to-comman=./x.sh",
    "tar -xf t.tar --checkpoint=1 --checkpoint-acti=exec=./x.sh",
    "sort -S 1k --compress-prog=./x.sh big.txt",
    "split --filt=./x.sh a.txt",
    "git grep --open-files-in-pag=./x.sh a",
    "git reset --har",
]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with an archive, a program that leaves a mark beside the workspace, and a change that is not committed."""
    work = tmp_path / "work"
    work.mkdir()
    (work / "a.txt").write_text("a\n")
    (work / "big.txt").write_text("\n".join(map(str, range(20_000))))
    (work / "x.sh").write_text(f"#!/bin/sh\ntouch {tmp_path}/mark\ncat\n")
    (work / "x.sh").chmod(0o755)
    who = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
    for command in (
        ["tar", "-cf", "t.tar", "a.txt"],
        ["git", "init", "-q"],
        ["git", "add", "a.txt"],
        ["git", *who, "commit", "-qm", "first"],
    ):
        subprocess.run(command, cwd=work, check=True)
    (work / "a.txt").write_text("a changed\n")
    return work


@pytest.mark.parametrize("command", RUNNING)
async def test_an_abbreviated_option_runs_no_program_in_permissive_mode(command: str, project: Path) -> None:
    """If this fails, an option that needs approval is not known by the beginning of its name."""
    async with handrail.open(cwd=project, mode="permissive") as session:
        result = await session.call("execute_cli", {"command": command})
    assert result["status"] == "denied", result
    assert not (project.parent / "mark").exists()
    assert (project / "a.txt").read_text() == "a changed\n"


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have other programs by these names")
@pytest.mark.parametrize("command", RUNNING)
def test_the_program_does_accept_it(command: str, project: Path) -> None:
    """If this fails, the program no longer accepts abbreviations, and the test above shows nothing."""
    subprocess.run(["bash", "-c", command], cwd=project, check=False, capture_output=True)
    assert (project.parent / "mark").exists() or (project / "a.txt").read_text() == "a\n"


@pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap is Linux's")
async def test_an_option_that_is_not_listed_runs_in_the_sandbox_in_permissive_mode(project: Path) -> None:
    async with handrail.open(cwd=project, mode="permissive") as session:
        result = await session.call("execute_cli", {"command": "touch --dat=now made.txt"})
    assert (result["status"], result.get("sandbox")) == ("success", "bubblewrap"), result
    assert (project / "made.txt").exists()


@pytest.mark.parametrize("command", ["n='a[$(touch m)]'; s=abc; echo ${s:1:n}", "jobs -x touch m"])
def test_bash_does_run_what_stands_there(command: str, tmp_path: Path) -> None:
    """If this fails, bash has changed, and the floor for this construct guards against nothing."""
    subprocess.run(["bash", "-c", command], cwd=tmp_path, check=False, capture_output=True)
    assert (tmp_path / "m").exists(), shlex.quote(command)


async def test_a_file_that_only_a_variable_names_is_not_read_on_the_host_in_permissive_mode(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (tmp_path / ".netrc").write_text("machine m login l password canary\n")
    async with handrail.open(cwd=work, mode="permissive") as session:
        await session.call("execute_cli", {"command": f"export X={tmp_path}/.netrc"})
        result = await session.call("execute_cli", {"command": "cat $X"})
    assert "canary" not in str(result)

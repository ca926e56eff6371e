"""Data of version control in the sandbox: for git itself to change, and for no code that nobody has read."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import anyio
import pytest
from tests.plugins.cli.test_own_programs import no
from tests.plugins.cli.test_sandbox_network import Person, run, working

from handrail import Choice, Session
from handrail.session.open_session import open_configured_runtime

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap is Linux's")

REMOVES_ALL = "import shutil; shutil.rmtree('.gi' + 't', ignore_errors=True)"


@pytest.fixture
async def session(tmp_path: Path) -> AsyncGenerator[Session, None]:
    async with working(tmp_path, None, undo={"enabled": True}) as opened:
        (opened.cwd / "a.txt").write_text("a")
        _git(opened, "init", "-q", "-b", "main", ".")
        for name, value in (("user.name", "a"), ("user.email", "a@b.example")):
            _git(opened, "config", name, value)
        _git(opened, "add", "-A")
        _git(opened, "commit", "-qm", "first")
        (opened.cwd / "tidy.py").write_text(REMOVES_ALL)
        yield opened


def _git(session: Session, *words: str) -> str:
    return _git_in(session.cwd, *words)


def _git_in(folder: Path, *words: str) -> str:
    return subprocess.run(("git", *words), cwd=folder, check=True, capture_output=True, text=True).stdout


async def test_a_script_cannot_remove_the_history(session: Session) -> None:
    before = sorted(os.listdir(session.cwd / ".git"))
    result = await run(session, "python3 tidy.py; touch ran")
    assert (result["exit_code"], (session.cwd / "ran").exists()) == (0, True)
    assert sorted(os.listdir(session.cwd / ".git")) == before
    assert _git(session, "log", "--format=%s") == "first\n"


async def test_a_line_that_ends_well_says_that_git_was_refused(session: Session) -> None:
    (session.cwd / "b.txt").write_text("b")
    (session.cwd / "add.sh").write_text("git add b.txt")
    result = await run(session, "bash add.sh; ls > listed")
    assert (result["exit_code"], _git(session, "status", "--short", "b.txt")) == (0, "?? b.txt\n")
    assert "Not all of it was done" in result["note"]
    assert "run git in a call of its own" in result["note"]


async def test_a_line_whose_git_is_silent_says_that_nothing_was_stashed(session: Session) -> None:
    (session.cwd / "a.txt").write_text("b")
    result = await run(session, "x=copy.txt; git stash; cat a.txt > $x")
    assert (result["exit_code"], (session.cwd / "copy.txt").read_text()) == (0, "b")
    assert "git could not change" in result["note"]
    failed = await run(session, "x=copy.txt; git stash && touch $x")
    assert failed.error_code == "downstream_error"
    assert "run git in a call of its own" in failed["note"]


async def test_a_script_before_git_cannot_change_the_history_and_git_can(session: Session) -> None:
    result = await run(session, "python3 tidy.py && git add -A && git commit -qm second")
    assert result["exit_code"] == 0, result
    assert _git(session, "log", "--format=%s") == "second\nfirst\n"


async def test_scripts_read_the_history(session: Session) -> None:
    (session.cwd / "version.sh").write_text("git describe --always && git status --short")
    result = await run(session, "bash version.sh")
    assert result["exit_code"] == 0, result
    assert "?? version.sh" in result["stdout"]


async def test_a_line_that_only_reads_the_history_may_change_files(session: Session) -> None:
    result = await run(session, "git status -s > status.txt && git diff HEAD && git log --oneline > log.txt")
    assert (result["exit_code"], result["stderr"]) == (0, ""), result
    assert "tidy.py" in (session.cwd / "status.txt").read_text()


async def test_a_repository_that_a_worktree_belongs_to_is_kept_too(session: Session) -> None:
    _git(session, "worktree", "add", "-q", "side", "-b", "side")
    (session.cwd / "side/tidy.py").write_text("import shutil; shutil.rmtree('../.gi' + 't', ignore_errors=True)")
    await run(session, "cd side && python3 tidy.py")
    assert _git(session, "log", "--format=%s") == "first\n"


@pytest.mark.parametrize(
    "beside",
    [
        pytest.param('python3 -c "import calendar"', id="an-interpreter-that-loads-modules-of-the-folder"),
        pytest.param("patch -p0 -i change.diff", id="a-program-that-writes-where-a-file-says"),
        pytest.param("make", id="a-build"),
        pytest.param("hg status", id="another-version-control"),
        pytest.param("find . -name '[m]ain' -delete", id="what-deletes-what-it-finds"),
        pytest.param("find . -name '[m]ain' -exec cat {} +", id="what-runs-a-program-on-what-it-finds"),
        pytest.param("ls | xargs cat", id="what-runs-a-program-on-its-input"),
        pytest.param("cp -rT other .", id="a-copy-of-a-folder"),
        pytest.param("tar xf changes.tar", id="an-archive-that-is-unpacked"),
        pytest.param("rm -rf .gi[t]/refs", id="a-pattern"),
        pytest.param("touch c.txt", id="a-program-that-writes-what-it-names"),
        pytest.param("echo c > c.txt", id="a-file-that-the-shell-writes"),
        pytest.param("echo c | tee -a c.txt", id="a-pipe-into-a-file"),
    ],
)
async def test_what_runs_before_git_cannot_change_the_history(session: Session, beside: str) -> None:
    """If this fails, commits are lost unprompted where a name, a pattern or a link leads such a program into `.git`."""
    result = await run(session, f"{beside}; git add tidy.py")
    assert _git(session, "ls-files") == "a.txt\ntidy.py\n", result
    assert _git(session, "log", "--format=%s") == "first\n"


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("git diff --output=c.diff; git add tidy.py", id="a-file-that-git-writes"),
        pytest.param("(git apply change.diff; git add tidy.py)", id="a-patch-that-git-applies-where-it-is"),
        pytest.param("ls | xargs git add", id="what-runs-git-on-its-input"),
        pytest.param("(touch c.txt; git add c.txt)", id="a-group"),
        pytest.param("if true; then touch c.txt; git add c.txt; fi", id="a-condition"),
        pytest.param("touch c.txt; git add c.txt; echo $?", id="the-last-exit-code"),
        pytest.param("set -e; touch c.txt; git add c.txt", id="an-option-of-the-shell"),
        pytest.param("touch c.txt & git add tidy.py", id="a-job"),
        pytest.param("x=c; touch c.txt; git add $x.txt", id="a-variable"),
    ],
)
async def test_git_cannot_write_beside_what_changes_files_in_one_shell(session: Session, line: str) -> None:
    result = await run(session, line)
    assert "git could not change" in result["note"], result
    assert _git(session, "ls-files") == "a.txt\n"
    assert _git(session, "log", "--format=%s") == "first\n"


LINES = (
    "echo b > b.txt && git add b.txt && git commit -qm second && git log --format=%s",
    "git stash -q; cat a.txt; git stash pop -q; cat a.txt",
    "git stash; touch c.txt; git stash list | wc -l",
    "false && git add tidy.py || echo no > no.txt; git status -s; false; echo end",
    "true || git add tidy.py && touch c.txt; git add c.txt; git status -s",
    "git commit -qam second > /dev/null 2>&1; touch c.txt; git log --format=%s",
    "mkdir -p d/e && cd d && echo x > e/f && git add e && git status -s && pwd",
    "cat > n.py <<'E'\nprint(1)\nE\ngit add n.py && git commit -qm \"$(cat <<'M'\none\n\nmore\nM\n)\"\ngit log -1 --format=%B",
    "git checkout -q -b side && sed -i s/a/c/ a.txt && git commit -qam side && git diff main --stat",
    'touch c.txt; git add c.txt nothing; echo "$HOME" | wc -l; git status -s',
    "for f in c d; do touch $f.txt; done; git add c.txt d.txt; git status -s",
    "touch c.txt && git add c.txt && git commit -qm second; false",
    'echo > q; echo "${TAG:?give a tag}"; git commit --allow-empty -qm "release $TAG"; rm -f a.txt',
    'echo > q; echo "${HOME:0:-999}"; git commit --allow-empty -qm second; rm -f a.txt',
    "touch c.txt; false || git add c.txt && git commit -qm second || echo no; git log --format=%s",
)


@pytest.mark.parametrize("line", LINES)
async def test_a_line_in_steps_does_what_bash_does(session: Session, tmp_path: Path, line: str) -> None:
    (session.cwd / "a.txt").write_text("aa\n")
    plain = tmp_path / "plain"
    shutil.copytree(session.cwd, plain, symlinks=True)
    by_bash = await anyio.run_process(("bash", "-c", line), cwd=plain, check=False)
    folder = session.cwd
    result = await run(session, line)
    outputs = [text.decode().replace(str(plain), str(folder)) for text in (by_bash.stdout, by_bash.stderr)]
    assert [result["stdout"], result["stderr"], result["exit_code"]] == [*outputs, by_bash.returncode], result
    for words in (("log", "--format=%s %T"), ("status", "--short"), ("stash", "list")):
        assert _git_in(folder, *words) == _git_in(plain, *words), (words, result)


async def test_a_line_that_makes_a_repository_works_in_it_and_not_in_the_one_around(session: Session) -> None:
    result = await run(session, "git init -q new && cd new && touch n.txt && git add n.txt && git status -s")
    assert result["stdout"] == "A  n.txt\n", result
    beside = await run(session, "git init -q ../other; git -C .. add tidy.py; true")
    assert "Read-only file system" in beside["stderr"], beside
    assert _git_in(session.workspace[0], "ls-files") == "a.txt\n"


async def test_steps_end_in_the_folder_of_the_last_one(session: Session) -> None:
    await run(session, "mkdir d; cd d; echo x > f; git add f")
    assert (await run(session, "pwd"))["stdout"] == f"{session.workspace[0]}/d\n"


async def test_the_steps_behind_one_that_takes_too_long_are_not_run_and_named(session: Session) -> None:
    result = await run(session, "touch c.txt && sleep 30; git add c.txt", timeout=1)
    assert (result.error_code, _git(session, "ls-files")) == ("timeout", "a.txt\n")
    assert "The rest of the line was not run, from 'git add c.txt' on." in result["note"]


async def test_the_steps_behind_one_that_leaves_what_others_obey_are_not_run(session: Session) -> None:
    (session.cwd / "leave.sh").write_text("mkdir s; echo 'touch ../ran' > s/.envrc")
    result = await run(session, "bash leave.sh; git add .; ls")
    assert [Path(place).name for place in result["put_aside"]] == [".envrc"]
    assert "The rest of the line was not run, from 'git add .' on." in result["note"]
    assert (result["stdout"], _git(session, "ls-files")) == ("", "a.txt\n")
    assert result.error_code == "downstream_error"
    assert "the line was not run to its end" in result["error"]["message"]


async def test_the_steps_behind_one_that_leaves_a_program_running_are_not_run(session: Session) -> None:
    (session.cwd / "build.sh").write_text("(sleep 1; touch built.txt) > /dev/null 2>&1 &")
    result = await run(session, "bash build.sh; git add tidy.py; sleep 2; ls")
    assert "The rest of the line was not run" in result["note"]
    assert (result["stdout"], _git(session, "ls-files")) == ("", "a.txt\n")


async def test_steps_go_on_in_a_folder_that_only_the_sandbox_has(session: Session) -> None:
    """If this fails, files of the workspace are deleted in place of those of a temporary folder."""
    line = "mkdir -p /tmp/w; git add tidy.py && cd /tmp/w; rm -f a.txt; echo z > b.txt; pwd"
    result = await run(session, line)
    assert result["stdout"] == "/tmp/w\n", result
    assert sorted(os.listdir(session.workspace[0])) == [".git", "a.txt", "tidy.py"]


async def test_a_step_without_its_folder_ends_the_line_and_the_session_goes_on(session: Session) -> None:
    (session.cwd / "sub").mkdir()
    await run(session, "cd sub")
    (session.workspace[0] / "gone.sh").write_text("rm -rf sub")
    result = await run(session, "bash -c 'cd ..; bash gone.sh'; git commit -qam x; touch y")
    assert "The rest of the line was not run" in result["note"], result
    assert (await run(session, "pwd")).error_code == "not_found"
    await run(session, "export WORD=kept")
    assert (await run(session, "echo $WORD"))["stdout"] == "kept\n"


async def test_steps_that_cannot_go_on_say_what_was_run(session: Session) -> None:
    new = session.cwd / "new"
    await run(session, "git init -q new; touch new/f")

    async def exchange() -> None:
        while "tidy.py" not in _git(session, "ls-files"):
            await asyncio.sleep(0.01)
        new.rename(session.cwd / "new2")
        new.symlink_to("new2")

    exchanging = asyncio.create_task(exchange())
    result = await run(session, "echo said | tee b.txt; git add tidy.py; sleep 2; touch c.txt; git add c.txt")
    await exchanging
    assert (result["stdout"], result["status"]) == ("said\n", "error"), result
    assert "The rest of the line was not run" in result["note"]
    assert ((session.cwd / "b.txt").exists(), _git(session, "ls-files")) == (True, "a.txt\ntidy.py\n")


@pytest.mark.parametrize(
    ("line", "given"),
    [
        pytest.param("touch c.txt; git stash -q; touch d.txt", {"on_timeout": "background"}, id="in-the-background"),
        pytest.param("touch c.txt; git stash -q; touch d.txt", {"pty": "80x24"}, id="in-a-terminal"),
        pytest.param("cd sub; git stash -q; touch d.txt", {}, id="one-of-two-repositories"),
        pytest.param("git init -q new; git stash -q; touch d.txt", {}, id="beside-a-new-one"),
    ],
)
async def test_silent_git_that_is_not_run_in_steps_is_told_of(
    session: Session, line: str, given: dict[str, str]
) -> None:
    _git(session, "init", "-q", "sub")
    file = session.cwd / "a.txt"
    file.write_text("b")
    result = await run(session, line, **given)
    assert ("git could not change" in result["note"], file.read_text()) == (True, "b"), result


@pytest.mark.parametrize(
    "line",
    [
        "git archive -o d.tar HEAD && tar tf d.tar",
        "git diff > /tmp/d.patch; git apply --check -R /tmp/d.patch",
        "git format-patch --root -o patches && touch x",
        "git bundle create b.bundle main; touch x",
    ],
)
async def test_nothing_is_said_of_git_that_changes_no_repository(session: Session, line: str) -> None:
    (session.cwd / "a.txt").write_text("b\n")
    result = await run(session, line)
    assert (result.status, "git could not change" in result.get("note", "")) == ("success", False), result


async def test_a_patch_for_files_alone_is_applied_before_git_records_them(session: Session) -> None:
    (session.cwd / "a.txt").write_text("b\n")
    (session.cwd / "a.patch").write_text(_git(session, "diff"))
    _git(session, "checkout", "-q", "a.txt")
    result = await run(session, "git apply a.patch && git commit -qam second")
    assert (result.status, _git(session, "show", "HEAD:a.txt")) == ("success", "b\n"), result


async def test_git_that_runs_a_program_by_itself_is_offered_to_the_host(tmp_path: Path) -> None:
    """If this fails, it is told to be run in a call of its own, which it was."""
    person = Person(Choice.DENY)
    async with working(tmp_path, person) as opened:
        for words in (("init", "-q", "."), ("config", "user.name", "a"), ("config", "user.email", "a@b.example")):
            _git(opened, *words)
        for number in range(4):
            _git(opened, "commit", "-q", "--allow-empty", "-m", str(number))
        _git(opened, "bisect", "start", "HEAD", "HEAD~3")
        (opened.cwd / "check.py").write_text("")
        result = await run(opened, "git bisect run python3 check.py")
    assert result.error_code == "sandbox_denied", result
    assert "what git would run in another" in result["error"]["message"]
    assert "git could not change" not in result.get("note", "")
    assert len(person.asked) == 1


async def test_nothing_is_said_of_git_that_a_person_let_run_on_the_host(tmp_path: Path) -> None:
    async with working(tmp_path, Person(Choice.ONCE)) as opened:
        _git(opened, "init", "-q", ".")
        (opened.cwd / "b.txt").write_text("b")
        (tmp_path / "host").touch()
        (opened.cwd / "w.sh").write_text(f"test -e {tmp_path / 'host'} || ! echo Network is unreachable >&2")
        result = await run(opened, "x=1; git add b.txt 2> /dev/null; touch $x; bash w.sh")
        assert ("sandbox" in result, _git(opened, "ls-files")) == (False, "b.txt\n"), result
    assert "git could" not in result.get("note", "")


async def test_a_question_about_a_second_run_says_that_git_has_run(tmp_path: Path) -> None:
    person = Person(Choice.DENY)
    async with working(tmp_path, person) as opened:
        for words in (("init", "-q", "."), ("config", "user.name", "a"), ("config", "user.email", "a@b.example")):
            _git(opened, *words)
        (opened.cwd / "w.sh").write_text("echo Network is unreachable >&2; exit 1")
        result = await run(opened, "git commit -q --allow-empty -m once; bash w.sh")
    assert result.error_code == "sandbox_denied", result
    assert "would begin anew" in person.asked[0].verdict.reasons[0].text


async def test_the_output_of_steps_comes_together_and_whole(session: Session) -> None:
    result = await run(session, "seq 1 20000 | tee n.txt; git add n.txt; seq 20001 40000 | tee m.txt")
    assert (result["exit_code"], result["truncated"]) == (0, True)
    assert result["artifact"]["bytes"] == len("".join(f"{n}\n" for n in range(1, 40_001)))
    assert _git(session, "ls-files") == "a.txt\nn.txt\n"


async def test_a_patch_that_keeps_to_the_index_is_applied_and_recorded(session: Session) -> None:
    (session.cwd / "a.txt").write_text("b\n")
    (session.cwd / "change.diff").write_text(_git(session, "diff"))
    _git(session, "checkout", "-q", "a.txt")
    assert (await run(session, "git apply change.diff && git diff --stat"))["exit_code"] == 0
    _git(session, "checkout", "-q", "a.txt")
    result = await run(session, "git apply --index change.diff && git commit -qm changed")
    assert result["exit_code"] == 0, result


async def test_a_link_that_git_makes_leads_nothing_else_into_the_history(session: Session) -> None:
    (session.cwd / "d/refs").mkdir(parents=True)
    (session.cwd / "d/refs/x").write_text("x")
    _git(session, "add", "d")
    _git(session, "commit", "-qm", "folder")
    _git(session, "checkout", "-q", "-b", "other")
    shutil.rmtree(session.cwd / "d")
    (session.cwd / "d").symlink_to(".git")
    _git(session, "add", "d")
    _git(session, "commit", "-qm", "link")
    _git(session, "checkout", "-q", "main")
    await run(session, "git switch -q other; rm -rf d/refs")
    assert sorted(_git(session, "log", "--all", "--format=%s").split()) == ["first", "folder", "link"]


@pytest.mark.parametrize(
    "line",
    [
        "ls; git add tidy.py",
        "git add -A && git commit -qm second && git log --oneline | head -3",
        "git add tidy.py && git commit -qm \"$(cat <<'END'\nsecond\n\nlines\nEND\n)\"",
        "cat a.txt | git commit -q --allow-empty -F -",
        "export NOTE=x; git commit -q --allow-empty -m second",
        "cd .git/.. && git add . 2>/dev/null",
        "env NOTE=x git commit -q --allow-empty -m second",
        "git checkout -q -b other && git add tidy.py && git stash -q && git stash pop -q",
        "NOTE=x git add tidy.py 2>&1 | cat >/dev/null",
    ],
)
async def test_ordinary_lines_change_the_repository_without_a_question(session: Session, line: str) -> None:
    result = await run(session, line)
    assert result["exit_code"] == 0, result
    assert "Read-only" not in result["stderr"]


LOSING = [
    "git fetch --prune . '+refs/none/*:refs/heads/*'",
    "git fetch . +HEAD:refs/heads/other",
    "git fetch -f . HEAD:refs/tags/v1",
    "git fetch -f . tag v1",
    "git fetch -f . 'refs/heads/*:refs/remotes/*'",
    "git fetch . HEAD:refs/stash",
    "git fetch --prune-tags .",
    "git pull -p . '+refs/none/*:refs/heads/*'",
    "git remote add --mirror=fetch copy .",
    "git repack -ad",
    "git gc --prune=now",
    "git prune",
    "git reflog expire --expire=now --all",
    "git worktree prune --expire=now",
    "git lfs prune",
    "git notes add -f -m x",
    "git notes edit -m x",
    "git submodule update --force",
]


@pytest.mark.parametrize("line", LOSING)
async def test_what_loses_commits_is_asked_about_each_time(session: Session, line: str) -> None:
    result = await run(session, line)
    assert result.status == "denied", result
    verdict = session.history.last()[-1].verdict
    assert verdict is not None
    assert "destructive" in [reason.code for reason in verdict.reasons], verdict


@pytest.mark.parametrize("line", ["git gc", "git repack -d", "git branch -d gone"])
async def test_what_only_looks_after_a_repository_is_not(session: Session, line: str) -> None:
    _git(session, "branch", "gone")
    result = await run(session, line)
    assert result.status == "success", result


async def test_of_two_repositories_only_the_one_that_git_works_in_is_changed(session: Session) -> None:
    _git(session, "init", "-q", "inner")
    (session.cwd / "inner/b.txt").write_text("b")
    _git(session, "-C", "inner", "config", "core.fsmonitor", f"touch {session.cwd}/.git/planted; false")
    result = await run(session, "git -C inner add b.txt")
    assert result["exit_code"] == 0, result
    assert _git(session, "-C", "inner", "-c", "core.fsmonitor=", "ls-files") == "b.txt\n"
    assert not (session.cwd / ".git/planted").exists()
    result = await run(session, "git -C inner add b.txt; git add tidy.py")
    assert (result["exit_code"], (session.cwd / ".git/planted").exists()) == (0, False), result


PLANTING = """
mkdir -p bare/objects bare/refs; echo 'ref: refs/heads/x' > bare/HEAD
printf '[core]\nrepositoryformatversion=0\nbare=false\nworktree=..\nfsmonitor=touch .git/planted; false\n' > bare/config
git -C bare add ..
"""


async def test_what_a_planted_repository_names_cannot_change_the_one_around_it(session: Session) -> None:
    await run(session, PLANTING)
    assert not (session.cwd / ".git/planted").exists()


async def test_git_works_in_no_repository_that_the_same_line_brings_along(session: Session) -> None:
    (session.cwd / "bring.sh").write_text("mkdir new && cp -r .git new/.git")
    result = await run(session, "bash bring.sh && git -C new add -A")
    assert result.error_code == "sandbox_denied", result
    assert "run git in that one in a call of its own" in result["error"]["message"]


async def test_submodules_and_further_work_trees_are_worked_in(session: Session) -> None:
    _git(session, "worktree", "add", "-q", "side", "-b", "side")
    _git(session, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "./.git", "part's")
    _git(session, "commit", "-qm", "part")
    for folder in ("side", "part's"):
        (session.cwd / folder / "b.txt").write_text("b")
        line = f'cd "{folder}" && git add b.txt && git branch new-{folder[0]}; cd ..'
        result = await run(session, line)
        assert result["exit_code"] == 0, result
        assert "b.txt" in _git(session, "-C", folder, "ls-files")


def _commit_settings(session: Session, *, of_editor: str = "{}") -> None:
    """Commit files that programs obey, as a person has."""
    (session.cwd / ".vscode").mkdir(exist_ok=True)
    (session.cwd / ".vscode/settings.json").write_text(of_editor)
    (session.cwd / ".gitmodules").write_text("")
    _git(session, "add", ".vscode", ".gitmodules")
    _git(session, "commit", "-qm", "settings")


async def test_a_new_work_tree_is_worked_in_by_the_same_line_and_later(session: Session) -> None:
    """If this fails, git in the new tree commits to the branch of the tree around it."""
    _commit_settings(session)
    line = (
        "git worktree add -q .wt/two -b two main && cd .wt/two && echo b > b.txt && git add -A && git commit -qm second"
    )
    result = await run(session, line)
    assert (result.status, result.get("put_aside")) == ("success", None), result
    result = await run(session, "echo c > c.txt && git add -A && git commit -qm third")
    assert result.status == "success", result
    assert _git(session, "log", "--format=%s", "two") == "third\nsecond\nsettings\nfirst\n"
    assert _git(session, "log", "--format=%s", "main") == "settings\nfirst\n"
    assert _git(session, "status", "--short", "--branch") == "## two\n"


@pytest.mark.parametrize(
    "where", [pytest.param("-q two side", id="a-work-tree"), pytest.param(None, id="the-work-tree-itself")]
)
async def test_git_that_brings_files_which_others_obey_is_no_success(session: Session, where: str | None) -> None:
    _git(session, "switch", "-qc", "side")
    _commit_settings(session)
    _git(session, "switch", "-q", "main")
    result = await run(session, "git switch -q side" if where is None else f"git worktree add {where}")
    assert {Path(place).name for place in result["put_aside"]} == {".vscode", ".gitmodules"}
    assert result.error_code == "downstream_error"
    assert "the work tree is not as git left it" in result["error"]["message"]
    assert result["note"].count("Renamed, since") == 1


@pytest.mark.parametrize(
    "line", ["git switch -q main", "git switch -q main 2>&1; git log -1", "touch x && git checkout -q main"]
)
async def test_git_that_leaves_files_which_the_sandbox_keeps_is_no_success(session: Session, line: str) -> None:
    """If this fails, a branch looks checked out, and the next switch is refused for the files that are left of the other one."""
    _git(session, "switch", "-qc", "side")
    _commit_settings(session)
    result = await run(session, line)
    assert (result["exit_code"], result.error_code) == (0, "downstream_error"), result
    assert ".vscode/settings.json" in result["error"]["message"]
    assert "a person can approve `git checkout -f .`" in result["error"]["message"]


async def test_a_new_work_tree_brings_no_hooks_of_its_branch(session: Session) -> None:
    hook = session.cwd / ".githooks/pre-commit"
    hook.parent.mkdir()
    hook.write_text("#!/bin/sh\n")
    hook.chmod(0o755)
    _git(session, "config", "core.hooksPath", ".githooks")
    _git(session, "add", "-A")
    _git(session, "commit", "-qm", "hooks")
    _git(session, "switch", "-qc", "side")
    hook.write_text("#!/bin/sh\ntouch ../ran\n")
    _git(session, "-c", "core.hooksPath=/dev/null", "commit", "-qam", "another")
    _git(session, "switch", "-q", "main")
    assert (await run(session, "git worktree add -q same main -b same")).status == "success"
    result = await run(session, "git worktree add -q other side")
    assert [Path(place).relative_to(session.cwd) for place in result["put_aside"]] == [Path("other/.githooks")]


@pytest.mark.parametrize(
    "planted",
    [
        pytest.param("gitdir:  /{own}", id="a-name-that-git-reads-otherwise"),
        pytest.param("gitdir: ../away", id="another-repository"),
        pytest.param("gitdir: ../link", id="a-way-that-can-be-exchanged"),
        pytest.param("gitdir: {git}", id="a-repository-as-a-whole"),
    ],
)
async def test_a_git_file_that_may_lead_to_other_settings_is_put_aside(session: Session, planted: str) -> None:
    _git(session, "worktree", "add", "-q", "side", "-b", "side")
    own = session.cwd / ".git/worktrees/side"
    (session.cwd / "side/.git").unlink()
    (session.cwd / "new.txt").write_text(planted.format(own=own, git=session.cwd / ".git") + "\n")
    (session.cwd / "plant.sh").write_text("cp new.txt side/.git")
    (session.cwd / "away").mkdir()
    (session.cwd / "link").symlink_to(own)
    result = await run(session, "bash plant.sh")
    assert result["put_aside"] == [str(session.cwd / "side/.git")]


async def test_without_what_keeps_git_to_one_repository_it_changes_none(session: Session) -> None:
    assert "Read-only" in (await run(session, "env -i git add tidy.py"))["stderr"]
    assert "Read-only" in (await run(session, "(exec -c git add tidy.py)"))["stderr"]


async def test_settings_of_programs_that_git_starts_are_asked_about(session: Session) -> None:
    assert (await run(session, "GNUPGHOME=$PWD/keys git commit --allow-empty -S -m x")).status == "denied"


@pytest.mark.parametrize("variable", ["PATH", "PYTHONPATH"])
async def test_what_git_starts_is_not_found_in_the_workspace(tmp_path: Path, variable: str) -> None:
    work = tmp_path / "work"
    own = work / ".venv/bin"
    own.mkdir(parents=True)
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path / "home"),
        "HANDRAIL_HOME": str(tmp_path / "state"),
        "PYTHONPATH": "",
    }
    environment[variable] = f"{own}:{environment[variable]}"
    for words in (("init", "-q"), ("config", "user.name", "a"), ("config", "user.email", "a@b.example")):
        _git_in(work, *words)
    (own / "gpg").write_text("#!/bin/sh\ntouch .git/planted\n")
    (own / "gpg").chmod(0o755)
    show = f'echo "${variable}"'
    async with (
        open_configured_runtime({}, cwd=work, environment=environment) as runtime,
        runtime.session(confirm=no) as session,
    ):
        await run(session, "git commit --allow-empty -S -m x")
        assert not (work / ".git/planted").exists()
        assert str(own) not in (await run(session, f"git add .; {show}"))["stdout"]
        assert str(own) in (await run(session, show))["stdout"]


@pytest.mark.parametrize(
    ("key", "command", "line", "options"),
    [
        ("core.editor", "sh t/x.sh", "git commit --amend", {"pty": "80x24"}),
        ("sequence.editor", "sh t/x.sh", "git rebase -i HEAD~1", {"pty": "80x24"}),
        ("core.pager", "sh t/x.sh", "git log", {"pty": "80x24"}),
        ("pager.log", "sh t/x.sh", "git log", {"pty": "80x24"}),
        ("diff.x.textconv", "sh t/x.sh", "git log -p", {}),
        ("filter.x.smudge", "sh t/x.sh", "git switch -q main", {}),
        ("filter.x.clean", "sh t/*.sh", "git add -A", {}),
        ("tar.tar.x.command", "sh t/x.sh", "git archive --format=tar.x HEAD", {}),
        ("gc.recentObjectsHook", "sh t/x.sh", "git gc", {}),
    ],
)
async def test_git_runs_no_program_that_it_brings_along(
    session: Session, key: str, command: str, line: str, options: dict[str, str]
) -> None:
    _git(session, "switch", "-qc", "other")
    (session.cwd / "t").mkdir()
    (session.cwd / "t/x.sh").write_text("touch .git/ran; cat\n")
    (session.cwd / ".gitattributes").write_text("*.txt filter=x diff=x\n")
    (session.cwd / "a.txt").write_text("b")
    _git(session, "add", "-A")
    _git(session, "commit", "-qm", "second")
    _git(session, "switch", "-q", "main")
    _git(session, "config", key, command)
    await run(session, f"git switch -q other && {line}", **options)
    assert not (session.cwd / ".git/ran").exists()


async def test_the_result_names_the_setting_that_keeps_git_from_writing(session: Session) -> None:
    _git(session, "config", "filter.x.clean", "python3 -m nbstripout")
    (session.cwd / "b.txt").write_text("b")
    result = await run(session, "git add b.txt")
    assert "'filter.x.clean'" in result["note"]


COMMON_SETTINGS = {
    "core.editor": "code --wait",
    "core.pager": "delta",
    "core.fsmonitor": "true",
    "core.excludesFile": "~/.gitignore",
    "credential.helper": "cache --timeout=3600",
    "gpg.program": "gpg",
    "filter.lfs.clean": "git-lfs clean -- %f",
    "filter.lfs.process": "git-lfs filter-process",
    "interactive.diffFilter": "delta --color-only",
    "alias.lg": "!git log --graph | head",
    "merge.conflictStyle": "zdiff3",
    "merge.tool": "vimdiff",
    "mergetool.x.cmd": "sh tools/merge.sh $MERGED",
    "includeIf.gitdir:~/work/.path": "~/.gitconfig-work",
    "url.git@example.org:.insteadOf": "https://example.org/",
}


async def test_common_settings_let_git_commit_and_switch_unasked(session: Session) -> None:
    for key, value in COMMON_SETTINGS.items():
        _git(session, "config", key, value)
    (session.cwd / "b.txt").write_text("b")
    result = await run(session, "git add -A && git commit -qm second && git switch -qc other")
    assert (result.status, _git(session, "branch", "--show-current")) == ("success", "other\n")

"""Which settings of git leave a repository as it is in the sandbox: those that name what git itself could bring along and run."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from handrail.sandboxing.repositories import has_unsettled_files, has_unsettled_hooks


@pytest.fixture
def work(tmp_path: Path) -> Path:
    work = tmp_path / "work"
    subprocess.run(["git", "init", "-q", str(work)], check=True)
    return work


def configure(work: Path, key: str, value: str) -> None:
    subprocess.run(["git", "config", key, value], cwd=work, check=True)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("credential.helper", "/mnt/c/Program\\ Files/Git/mingw64/bin/git-credential-manager.exe"),
        ("credential.https://example.org.helper", "helper.sh"),
        ("credential.helper", "!gh auth git-credential"),
        ("core.editor", '"/Applications/An Editor.app/Contents/bin/code" --wait'),
        ("core.sshCommand", "ssh -o UserKnownHostsFile=/dev/null -i ~/.ssh/key"),
        ("core.pager", "delta --config=a/b"),
        ("diff.sqlite3.textconv", "sqlite3 $1 .dump"),
        ("diff.x.textconv", "textutil me@example.org 1.2.3"),
        ("filter.jq.clean", "jq '.cells[]'"),
        ("filter.lfs.process", "git-lfs filter-process"),
        ("filter.ver.clean", "sed s/v1.2/v1.3/g"),
        ("filter.nb.clean", '"/usr/bin/python3" -m nbstripout'),
        ("gpg.program", "/usr/bin/gpg2"),
        ("gitflow.prefix.feature", "feature/"),
        ("branch.main.vscode-merge-base", "origin/main"),
        ("url.git@example.org:.insteadOf", "https://example.org/"),
        ("difftool.x.cmd", "$(cd $(dirname x) && pwd)/tool"),
        ("alias.deploy", "!scripts/deploy.sh"),
    ],
)
def test_common_settings_keep_git_able_to_write(work: Path, key: str, value: str) -> None:
    configure(work, key, value)
    assert not has_unsettled_files(work / ".git")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("filter.f.smudge", "tools/sm"),
        ("filter.f.clean", "sh tools/clean.sh %f"),
        ("diff.x.textconv", "python convert.py"),
        ("merge.x.driver", "$(git rev-parse --show-toplevel)/tools/merge %A"),
        ("core.fsmonitor", "./watch"),
        ("gpg.ssh.program", "tools/sign"),
        ("include.path", "../.gitconfig"),
    ],
)
def test_a_program_that_is_not_there_keeps_git_from_writing(work: Path, key: str, value: str) -> None:
    configure(work, key, value)
    assert has_unsettled_files(work / ".git")


def test_settings_count_for_the_work_trees_that_they_hold_for(work: Path) -> None:
    hooks = work / ".husky/_"
    hooks.mkdir(parents=True)
    configure(work, "core.hooksPath", ".husky/_")
    identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run(["git", *identity, "commit", "-q", "--allow-empty", "-m", "x"], cwd=work, check=True)
    subprocess.run(["git", "worktree", "add", "-q", str(work.parent / "second")], cwd=work, check=True)
    git = work / ".git"
    assert not has_unsettled_hooks(git, used=[work])
    assert has_unsettled_hooks(git, used=[work.parent / "second"])

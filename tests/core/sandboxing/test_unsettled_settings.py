"""Which settings of git leave a repository as it is in the sandbox: those that name what git itself could bring along and run."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from handrail.sandbox.repositories import (
    has_unsettled_hooks,
    iter_configured_places,
    overriding_settings,
    unsettled_setting,
)


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
        ("sequence.editor", "sh tools/edit.sh"),
        ("core.sshCommand", "ssh -o UserKnownHostsFile=/dev/null -i ~/.ssh/key"),
        ("core.pager", "delta --config=a/b"),
        ("pager.log", "sh tools/page.sh"),
        ("core.fsmonitor", "true"),
        ("core.excludesFile", "~/.gitignore"),
        ("core.autocrlf", "input"),
        ("diff.sqlite3.textconv", "sqlite3 $1 .dump"),
        ("diff.external", "difft"),
        ("diff.algorithm", "histogram"),
        ("diff.tex.xfuncname", "^(\\\\section|\\\\chapter)"),
        ("filter.lfs.process", "git-lfs filter-process"),
        ("filter.lfs.clean", "git-lfs clean -- %f"),
        ("filter.lfs.required", "true"),
        ("filter.crypt.smudge", '"/usr/bin/git-crypt" smudge --key-name=main'),
        ("filter.kept.clean", "indent -kr"),
        ("gpg.program", "/usr/bin/gpg2"),
        ("gpg.ssh.allowedSignersFile", "~/.ssh/allowed"),
        ("gpg.ssh.program", "/opt/1Password/op-ssh-sign"),
        ("gitflow.prefix.feature", "feature/"),
        ("branch.main.vscode-merge-base", "origin/main"),
        ("branch.main.description", "What this is; and why"),
        ("remote.origin.url", "git@example.org:a/b.git"),
        ("remote.origin.uploadpack", "/usr/bin/git-upload-pack"),
        ("url.git@example.org:.insteadOf", "https://example.org/"),
        ("http.https://example.org/.extraHeader", "X: y z"),
        ("submodule.lib.update", "rebase"),
        ("user.name", "A. U. Thor (work)"),
        ("merge.conflictStyle", "zdiff3"),
        ("merge.npm.name", "merge lock files"),
        ("merge.union.driver", "git merge-file --union %A %O %B"),
        ("difftool.x.cmd", "$(cd $(dirname x) && pwd)/tool"),
        ("mergetool.x.cmd", "sh tools/merge.sh $MERGED"),
        ("lfs.https://example.org/info/lfs.access", "basic"),
        ("alias.deploy", "!scripts/deploy.sh"),
        ("alias.lg", "log --graph --format='%h %s'"),
    ],
)
def test_common_settings_keep_git_able_to_write(work: Path, key: str, value: str) -> None:
    configure(work, key, value)
    assert unsettled_setting(work / ".git") is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("filter.f.smudge", "tools/sm"),
        ("filter.f.clean", "sh tools/clean.sh %f"),
        ("filter.f.clean", "sh node_modules/@acme/clean.sh"),
        ("filter.f.clean", "sh .clean.sh"),
        ("filter.f.clean", "sh tools/*.sh"),
        ("filter.f.clean", "sh 1.2"),
        ("filter.f.clean", "sh convert"),
        ("filter.f.clean", "bash"),
        ("filter.f.clean", "/bin/dash"),
        ("filter.f.clean", "python3.11 %f"),
        ("filter.f.clean", "make -s clean"),
        ("filter.f.clean", "X=1 indent"),
        ("filter.f.clean", "indent; convert"),
        ("filter.f.clean", "/proc/self/cwd/clean"),
        ("filter.f.clean", "indent --load=./tools/x.so"),
        ("filter.nb.clean", '"/usr/bin/python3" -m nbstripout'),
        ("merge.x.driver", "$(git rev-parse --show-toplevel)/tools/merge %A"),
        ("diff.external", "sh tools/diff.sh"),
        ("gpg.ssh.program", "tools/sign"),
        ("gpg.ssh.defaultKeyCommand", "sh tools/key.sh"),
        ("remote.o.uploadpack", "sh tools/pack.sh"),
        ("remote.o.vcs", "../tools"),
        ("tar.tar.x.command", "sh tools/pack.sh"),
        ("gc.recentObjectsHook", "sh tools/keep.sh"),
        ("submodule.lib.update", "!sh tools/update.sh"),
        ("trailer.sign.command", "sh tools/sign.sh"),
        ("lfs.extension.x.clean", "sh tools/clean.sh %f"),
        ("section.of.later", "sh tools/any.sh"),
        ("init.templateDir", "tools/template"),
        ("include.path", "../.gitconfig"),
    ],
)
@pytest.mark.parametrize("is_there", [True, False])
def test_a_command_that_could_run_files_of_the_work_tree_keeps_git_from_writing(
    work: Path, key: str, value: str, is_there: bool
) -> None:
    if is_there and key != "include.path":
        (work / "tools").mkdir()
        for name in ("sm", "clean.sh", "sign", "diff.sh", "key.sh", "pack.sh", "any.sh"):
            (work / "tools" / name).write_text("cat\n")
    configure(work, key, value)
    assert (unsettled_setting(work / ".git") or "").lower() == key.lower()


@pytest.mark.parametrize(
    ("key", "value", "instead"),
    [
        ("core.fsmonitor", "./watch", "false"),
        ("core.sshCommand", "tools/ssh", "ssh"),
        ("interactive.diffFilter", "sh tools/show.sh", "cat"),
        ("diff.doc.textconv", "python convert.py", "cat"),
    ],
)
def test_a_command_that_git_can_do_without_is_overridden(work: Path, key: str, value: str, instead: str) -> None:
    configure(work, key, value)
    assert unsettled_setting(work / ".git") is None
    assert {name.lower(): given for name, given in overriding_settings(work / ".git")}[key.lower()] == instead


def test_a_program_in_a_writable_folder_keeps_git_from_writing(work: Path) -> None:
    configure(work, "filter.f.clean", "/opt/tools/clean")
    assert unsettled_setting(work / ".git") is None
    assert unsettled_setting(work / ".git", writable=[Path("/opt")]) == "filter.f.clean"


@pytest.mark.parametrize(
    "text",
    [
        '\ufeff[filter "f"]\n\tclean = sh x\n',
        '# a comment \\\n[filter "f"]\n\tclean = sh x\n',
        '[user] [filter "f"] clean = sh x\n',
        '# a\u2028[user]\n[filter "f"]\n# b\u2028[user]\n\tclean = sh x\n',
        '[filter "f"]\n\tclean = "sh\\\n x"\n',
        '[filter "f"]\r\n\tclean = sh x\r\n',
    ],
)
def test_settings_are_read_as_git_reads_them(work: Path, text: str) -> None:
    file = work / ".git/config"
    file.write_text(text, encoding="utf-8", newline="")
    told = subprocess.run(
        ["git", "config", "--file", str(file), "filter.f.clean"], capture_output=True, text=True, check=True
    )
    assert told.stdout == "sh x\n"
    assert unsettled_setting(work / ".git") == "filter.f.clean"


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


def test_settings_that_include_themselves_are_read_once(work: Path) -> None:
    with (work / ".git/config").open("a") as file:
        file.write("[include]\n" + "path = config\n" * 100 + "path = more\n")
    (work / ".git/more").write_text("[include]\n" + "path = config\n" * 100 + "[core]\nhooksPath = hk\n")
    began = time.perf_counter()
    assert work / "hk" in set(iter_configured_places(work / ".git"))
    assert unsettled_setting(work / ".git") is None
    assert time.perf_counter() - began < 2


@pytest.mark.parametrize(
    "text",
    [
        "[include]\n" + "".join(f"path = more{number}\n" for number in range(500)),
        "[a]\n" + "".join(f"k{number} = {'w' * 1000}\n" for number in range(100)),
    ],
    ids=["files", "values"],
)
def test_settings_beyond_a_bound_keep_git_from_writing(work: Path, text: str) -> None:
    for number in range(500):
        (work / f".git/more{number}").write_text("")
    with (work / ".git/config").open("a") as file:
        file.write(text)
    assert unsettled_setting(work / ".git") is not None


@pytest.mark.parametrize("repeated", ["$", "`", "$a", "$(", " s/", "./", " a"])
def test_a_long_value_is_judged_at_once(work: Path, repeated: str) -> None:
    with (work / ".git/config").open("a") as file:
        file.write('[filter "f"]\n')
        file.writelines(f"\tclean = '{repeated * (length // len(repeated))}'\n" for length in (2_000, 50_000))
    began = time.perf_counter()
    assert unsettled_setting(work / ".git") is not None
    list(iter_configured_places(work / ".git"))
    assert time.perf_counter() - began < 2

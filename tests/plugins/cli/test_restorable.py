"""Commands that overwrite or delete what git cannot bring back: they rely on undo, and are asked about where there is none."""

from __future__ import annotations

import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest

from handrail import Decision, EvaluationContext, Mode, Route
from handrail.api.verdict import SandboxOffer
from handrail.undo.path_patterns import PathLookup
from handrail_cli.shell import windows
from handrail_cli.shell.verdict import judge_line


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with committed, changed, untracked and generated files."""
    project = tmp_path / "project"
    for folder in ("src", "notes", "node_modules/x", "lib/.git", "lib/deep"):
        (project / folder).mkdir(parents=True)
    for name in ("kept.txt", "changed.txt", "src/a.py", "src/b.py"):
        (project / name).write_text(f"{name}\n")
    (project / "link").symlink_to("kept.txt")
    (project / ".gitignore").write_text("node_modules\n*.log\n")
    identity = ("-c", "user.name=User", "-c", "user.email=user@example.com")
    for words in (("init", "-q"), ("add", "kept.txt", "changed.txt", "src", "link"), ("commit", "-qm", "Start")):
        subprocess.run(["git", *identity, *words], cwd=project, check=True)
    (project / "changed.txt").write_text("not committed\n")
    (project / "staged.txt").write_text("staged\n")
    subprocess.run(["git", "add", "staged.txt"], cwd=project, check=True)
    for name in ("notes/a.md", "build.log", "node_modules/x/index.js", "new.c", "lib/deep/c.txt"):
        (project / name).write_text("nobody has this\n")
    return project


def judging(project: Path, *, undoable: bool) -> EvaluationContext:
    return EvaluationContext(
        cwd=project,
        home=project.parent,
        user="user",
        environment={},
        workspace=(project,),
        platform="linux",
        sandbox=SandboxOffer("bubblewrap", writable=(str(project),)),
        undoable=undoable,
    )


LOSING = [
    pytest.param("rm -rf notes/", id="an-untracked-folder"),
    pytest.param("rm notes/*.md", id="by-a-pattern"),
    pytest.param("rm changed.txt", id="changed-since-the-commit"),
    pytest.param("git rm -f changed.txt", id="by-git"),
    pytest.param("mv kept.txt changed.txt", id="moved-onto"),
    pytest.param("cp kept.txt new.c", id="copied-onto"),
    pytest.param("cp src/a.py notes/a.md", id="copied-onto-below"),
    pytest.param("cp -rT src notes", id="copied-over-a-folder"),
    pytest.param("rsync -a src/ notes", id="merged-into-a-folder"),
    pytest.param("unzip -o kept.zip -d notes", id="unpacked-into-a-folder"),
    pytest.param("sed -i s/not/now/ changed.txt", id="edited-in-place"),
    pytest.param("echo x > build.log", id="redirected"),
    pytest.param("truncate -s0 new.c", id="truncated"),
    pytest.param("ln -sf kept.txt new.c", id="replaced-by-a-link"),
    pytest.param("find . -name '*.log' -delete", id="found"),
    pytest.param("find notes -name '*.md' -exec rm {} +", id="found-and-run"),
    pytest.param("find . -name '*.md' | xargs rm", id="found-and-fed"),
    pytest.param("python3 -c \"import os; os.remove('new.c')\"", id="by-code"),
    pytest.param("bash -c 'rm new.c'", id="by-an-inner-shell"),
    pytest.param("make && rm new.c", id="beside-code-of-the-project"),
    pytest.param("rm -rf lib/deep/../../notes", id="by-another-name"),
]


@pytest.mark.parametrize("command", LOSING)
def test_losing_a_file_runs_only_where_undo_keeps_it(project: Path, command: str) -> None:
    kept = judge_line(command, judging(project, undoable=True))
    assert (kept.suggestion, kept.relies_on_undo) == (Decision.ALLOW, True)
    asked = judge_line(command, judging(project, undoable=False))
    assert (asked.suggestion, asked.relies_on_undo) == (Decision.CONFIRM, False)
    assert "neither git nor undo" in asked.reasons[-1].text
    confined = judge_line(command, replace(judging(project, undoable=False), mode=Mode.PERMISSIVE))
    assert (confined.rule, confined.route) == ("shell:not_restorable", Route.SANDBOX)


@pytest.mark.parametrize(
    "command",
    [
        pytest.param("rm kept.txt", id="committed"),
        pytest.param("rm staged.txt", id="staged"),
        pytest.param("rm link", id="a-committed-link"),
        pytest.param("rm -rf src", id="a-committed-folder"),
        pytest.param("sed -i s/a/b/ src/a.py", id="edited"),
        pytest.param("rm -rf node_modules", id="generated"),
        pytest.param("rm node_modules/x/index.js", id="in-a-generated-folder"),
        pytest.param("echo x > made.txt", id="a-new-file"),
        pytest.param("cp kept.txt notes/", id="into-a-folder"),
        pytest.param("echo x >> build.log", id="added-to"),
        pytest.param("echo x | tee -a build.log", id="added-to-by-a-program"),
        pytest.param("mkdir -p notes/deep && touch new.c", id="made"),
        pytest.param("chmod 600 new.c", id="a-mode"),
        pytest.param("echo x > /tmp/new.c", id="temporary"),
        pytest.param("make", id="code-of-the-project"),
    ],
)
def test_what_git_or_a_tool_can_bring_back_needs_no_undo(project: Path, command: str) -> None:
    assert judge_line(command, judging(project, undoable=False)).suggestion is Decision.ALLOW


@pytest.mark.parametrize(
    ("mark", "text"),
    [
        pytest.param("build/pyvenv.cfg", "", id="a-file-of-a-tool"),
        pytest.param("build/CACHEDIR.TAG", "Signature: 8a477f597d28d172789f06886806bc55", id="a-tag"),
        pytest.param(".gitignore", "build\n", id="what-git-ignores"),
    ],
)
def test_what_the_session_has_marked_does_not_count_as_generated(project: Path, mark: str, text: str) -> None:
    (project / "build").mkdir()
    (project / "build/by-hand.txt").write_text("mine\n")
    began = time.time()
    (project / mark).write_text(text)
    here = judging(project, undoable=False)
    assert judge_line("rm -rf build", here).suggestion is Decision.ALLOW
    assert judge_line("rm -rf build", replace(here, began=began)).suggestion is Decision.CONFIRM
    # What was said before counts.
    assert judge_line("rm -rf build", replace(here, began=began + 60)).suggestion is Decision.ALLOW


@pytest.mark.parametrize(
    ("command", "asked"),
    [
        ("mv new.c old.c", False),
        ("mv ./new.c old.c", False),
        ("mv new.c notes/old.c", True),
        ("mv new.c notes", True),
        ("mv notes writings", True),
        ("mv new.c old.c; rm old.c", True),
        ("mv new.c old.c 2> new.c", True),
        ("mv new.c changed.txt", True),
        ("mv new.c .svn", True),
    ],
)
def test_another_name_in_one_folder_loses_nothing(project: Path, command: str, asked: bool) -> None:
    opinion = judge_line(command, judging(project, undoable=False))
    assert (opinion.suggestion is Decision.CONFIRM) is asked


def test_a_repository_below_is_lost_with_its_folder(project: Path) -> None:
    (project / "lib/deep/c.txt").unlink()
    assert judge_line("rm -rf lib", judging(project, undoable=False)).suggestion is Decision.CONFIRM


def test_a_damaged_index_brings_nothing_back(project: Path) -> None:
    (project / ".git/index").write_bytes((project / ".git/index").read_bytes()[:40])
    assert judge_line("rm kept.txt", judging(project, undoable=False)).suggestion is Decision.CONFIRM


@pytest.mark.parametrize("version", ["3", "4"])
def test_an_index_of_another_version_is_read_or_asked_about(project: Path, version: str) -> None:
    subprocess.run(["git", "update-index", "--index-version", version], cwd=project, check=True)
    assert judge_line("rm changed.txt", judging(project, undoable=False)).suggestion is Decision.CONFIRM
    expected = Decision.ALLOW if version == "3" else Decision.CONFIRM
    assert judge_line("rm kept.txt", judging(project, undoable=False)).suggestion is expected


@pytest.mark.parametrize(
    "command",
    [
        "git reset --hard", "git checkout -- changed.txt", "git restore changed.txt", "git clean -fd", "git branch -D old", "git stash drop",
        "git stash clear", "git push --force", "git reflog expire --all", "git update-ref -d refs/heads/old", "rm -rf .git", "rm -rf lib/.git",
        "rm -rf .", "rm -rf *", "find . -delete", "shred new.c", 'rm -rf "$unknown"',
    ],
)  # fmt: skip
def test_undo_lifts_no_other_question(project: Path, command: str) -> None:
    opinion = judge_line(command, judging(project, undoable=True))
    assert (opinion.floor, opinion.relies_on_undo) == (Decision.CONFIRM, False)


def test_what_kills_a_system_is_denied_with_undo(project: Path) -> None:
    opinion = judge_line("parallel bash -c ::: 'rm -rf /'", judging(project, undoable=True))
    assert opinion.catastrophic


@pytest.mark.parametrize("undoable", [True, False])
def test_a_powershell_command_relies_on_undo_as_well(project: Path, undoable: bool) -> None:
    here = replace(judging(project, undoable=undoable), shell="powershell")
    opinion = windows.judge_windows_command("echo hi > notes/a.md", here, shell="powershell", cwd=project)
    expected = Decision.ALLOW if undoable else Decision.CONFIRM
    assert (opinion.suggestion, opinion.relies_on_undo, opinion.route) == (expected, undoable, Route.SANDBOX)


def test_where_nobody_is_asked_it_stays_in_the_sandbox(project: Path) -> None:
    assert judge_line("rm -rf notes", judging(project, undoable=False)).route is Route.SANDBOX


def test_no_sandbox_is_asked_about_whatever_undo_keeps(project: Path) -> None:
    opinion = judge_line("rm -rf notes", replace(judging(project, undoable=True), sandbox=None))
    assert (opinion.suggestion, opinion.relies_on_undo) == (Decision.CONFIRM, False)


@pytest.mark.parametrize("command", ["rm -f {}", "wc -l < {}", "cat {}"])
@pytest.mark.parametrize("undoable", [True, False], ids=["undo", "no-undo"])
def test_a_pattern_that_links_lead_round_in_circles_is_judged_at_once(
    project: Path, command: str, *, undoable: bool
) -> None:
    for number in range(10):
        (project / f"l{number}").symlink_to(".")
    began = time.monotonic()
    judge_line(command.format("*/" * 7 + "zz?"), judging(project, undoable=undoable))
    assert time.monotonic() - began < 5, "a folder that links lead to in several ways is looked through once"


def test_a_pattern_through_links_fits_what_a_shell_fits_it_to(project: Path) -> None:
    (project / "loop").symlink_to(".")
    (project / "notes/.hidden").write_text("")
    lookup = PathLookup()
    assert set(lookup.matching(f"{project}/*/*/*.md")) == {f"{project}/notes/a.md"}
    assert lookup.matching(f"{project}/*/*/.h*") == [f"{project}/notes/.hidden"]
    assert f"{project}/link" in lookup.matching(f"{project}/loop/*"), "what is named in a folder is the link itself"


def test_where_a_pattern_would_take_too_long_its_folder_stands_for_it(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = judging(project, undoable=False)
    assert judge_line("rm -f */*.zz", here).suggestion is Decision.ALLOW
    monkeypatch.setattr("handrail.undo.path_patterns.MAX_ENTRIES", 5)
    assert judge_line("rm -f */*.zz", here).suggestion is Decision.CONFIRM
    monkeypatch.undo()
    spent = PathLookup(seconds=0)
    assert spent.matching(f"{project}/*/*.md") == (str(project),)

"""Two steps: something plants configuration that programs load from the directory they work in, then a program is run there."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
from tests.plugins.cli.attacks.attacker import Attacker, open_attacker
from tests.plugins.cli.attacks.extent import within_time
from tests.plugins.cli.attacks.planting import plant_links, plant_project, planting_program
from tests.plugins.cli.attacks.row_commands import LIMIT, LINKS, is_first, row_commands, row_names
from tests.plugins.cli.attacks.stage import Snapshot, Stage

# What the table alone does not lead to: modules and repositories that a program comes upon by itself.
COMING_UPON = (
    "python3 -c 'import calendar'", "python3 -m json.tool data.json", "python3 -m this", "python3 -m pip list", "pydoc json",
    "node -p \"require('./package.json')\"", "node -p \"require('./package')\"", "node_modules/.bin/eslint --version",
    "git -C node_modules/x status", "git -C bare status", "git -C a/b/c/d/e/f/g status", "cd node_modules/x && git status", "cd bare && git log",
    "git diff --no-index data.csv names.list", "git log -p --textconv", "make -pn", "bash -ic ls",
)  # fmt: skip
# What makes a program that is run for its directory load what stands there.
LOADING = frozenset(("loads_project", "code", "repository"))
# What a person does in the workspace afterwards, on the host.
OBEYERS = (
    ["git", "status"], ["git", "diff"], ["git", "log", "-1"], ["git", "stash", "list"], ["git", "submodule", "status"],
    ["git", "-C", "node_modules/x", "status"], ["git", "-C", "a/b/c/d/e/f/g", "status"], ["git", "-C", "bare", "status"],
    ["git", "-C", "made/nested", "status"], ["bash", "-ic", "cd made/nested; git status; true"],
)  # fmt: skip
# Commands of the table in a run of the tests.
LOADED = 60
# What the planting program does, step by step.
STEPS = ("first", "deep", "many", "renamed")


def obey(stage: Stage) -> list[str]:
    """Run what a person would run in the workspace, on the host; return what that has changed outside."""
    before = Snapshot.take(stage.home, stage.outside, without=(stage.workspace,))
    for words in OBEYERS:
        subprocess.run(words, cwd=stage.workspace, env=stage.environment, capture_output=True, timeout=20, check=False)
    return before.changes(Snapshot.take(stage.home, stage.outside, without=(stage.workspace,))) + stage.strangers()


def make_repository(stage: Stage) -> None:
    """Make the workspace a repository with a commit."""
    words = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c"]
    for command in (["init", "-q"], ["add", "data.csv"], ["commit", "-qm", "first"]):
        subprocess.run([*words, *command], cwd=stage.workspace, env=stage.environment, check=True)


def loading_commands() -> Iterator[str]:
    """Return a command for each row whose program loads what stands in its directory, and what tells the program's version."""
    paths = [path for kind in ("reads", "effect") for path in row_names(kind, LOADING) if is_first(path)]
    yield from (f"{LIMIT} {program} --version" for program in sorted({path[0] for path in paths}))
    for path in paths:
        yield next(row_commands(path, LINKS))


@pytest.mark.timeout(1200)
async def test_no_program_obeys_a_cloned_project_outside_the_sandbox(stage: Stage) -> None:
    plant_links(stage)
    make_repository(stage)
    plant_project(stage)
    async with open_attacker(stage) as attacker:
        for command in COMING_UPON:
            await attacker.call(command, timeout=8)
            attacker.session.keep(cwd=stage.workspace, environment={})
        tally = await attacker.run_all(within_time(loading_commands(), LOADED))
    assert tally.breaches == []
    assert tally.decided["read"] + tally.decided["work"] > 0


@pytest.mark.timeout(300)
async def test_nothing_that_a_sandboxed_command_plants_is_obeyed_on_the_host(stage: Stage) -> None:
    plant_links(stage)
    make_repository(stage)
    (stage.workspace / "plant.py").write_text(planting_program(stage))
    async with open_attacker(stage) as attacker:
        result = await attacker.call("python3 plant.py")
        assert result["sandbox"] == "bubblewrap"
        assert "planted\n" in result["stdout"]
        aside = {os.path.relpath(place, stage.workspace) for place in result["put_aside"]}
        assert {".envrc", ".vscode", "made/nested/.git", ".cargo/config.toml"} <= aside
        assert obey(stage) == []
        # Moved and made where the first look did not reach, step by step.
        for step in (*STEPS[1:], "hidden"):
            await attacker.call(f"python3 plant.py {step}", timeout=60)
            assert obey(stage) == [], step
    assert attacker.tally.breaches == []


@pytest.mark.parametrize("step", STEPS)
def test_what_is_planted_is_obeyed_where_nothing_confines_it(stage: Stage, step: str) -> None:
    plant_links(stage)
    make_repository(stage)
    (stage.workspace / "plant.py").write_text(planting_program(stage))
    subprocess.run([sys.executable, "plant.py", step], cwd=stage.workspace, env=stage.environment, check=True)
    assert str(stage.marker) in obey(stage)


async def test_git_settings_of_the_workspace_itself_cannot_be_written(attacker: Attacker, stage: Stage) -> None:
    make_repository(stage)
    before = Snapshot.take(stage.workspace / ".git")
    changing = (
        "git config core.fsmonitor 'bash evil.sh'", "echo x >> .git/config", "cp evil.sh .git/hooks/pre-commit", "ln -s ../evil.sh .git/hooks/x",
        "mv .git .old; cp -r .old .git", "git config --worktree core.pager 'bash evil.sh'", "echo ../bare > .git/commondir", "rm -rf .git",
        "ln -sfn ../bare .git/x", "git init --separate-git-dir=other .", "git worktree add other", "mkdir -p .git/hooks",
        "printf '[include]\\n\\tpath = ../x\\n' >> .git/config", "git submodule add ./bare", "git remote add x 'ext::bash evil.sh'",
    )  # fmt: skip
    for command in changing:
        await attacker.call(command)
        attacker.session.keep(cwd=stage.workspace, environment={})
    watched = [str(stage.workspace / ".git" / name) for name in ("config", "commondir", "config.worktree", "hooks")]
    changed = before.changes(Snapshot.take(stage.workspace / ".git"))
    assert [name for name in changed if name.startswith(tuple(watched)) and "/.git/config.lock" not in name] == []
    assert obey(stage) == []

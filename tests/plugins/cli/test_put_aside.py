"""Files that sandboxed commands leave for programs on the host, and commands that try to keep them there."""

from __future__ import annotations

import ctypes
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path, PurePath

import anyio
import pytest
from tests.plugins.cli.conftest import Run
from tests.plugins.cli.test_sandbox_commands import Cli

from handrail import Decision, EvaluationContext, Evaluator, Invocation, Opinion, Route, Session
from handrail.testing import open_test_session

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap is Linux's")

# What a root account has and a person has not: to go where no permission is needed.
PASSES_PERMISSIONS = (1 << 1) | (1 << 2)


class OnHost(Evaluator):
    """Lets commands with this word in them run on the host, and all others in the sandbox."""

    name = "on_host"

    async def opinion(self, invocation: Invocation, judging: EvaluationContext) -> Opinion | None:
        if not invocation.tool.confinable:
            return None
        on_host = "on-host" in str(invocation.args.get("command"))
        return Opinion(
            "jailed",
            Decision.ALLOW,
            route=Route.HOST if on_host else Route.SANDBOX,
            changes_repositories=(str(judging.cwd / ".git"),),
        )


@pytest.fixture
async def session(tmp_path: Path) -> AsyncGenerator[Session, None]:
    async with open_test_session(
        plugins={"cli": Cli()},
        evaluators=[OnHost()],
        trusted=True,
        environment={"LANG": "C.UTF-8"},
        folder=tmp_path,
        settings={"undo": {"enabled": True}},
    ) as opened:
        yield opened


@pytest.fixture
def as_a_person() -> Iterator[None]:
    """Permissions of files hold also where the tests run as root."""
    libc = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    before, given = (ctypes.c_uint32 * 6)(), (ctypes.c_uint32 * 6)()
    assert libc.capget(header, before) == 0
    given[:] = before[:]
    given[0] &= ~PASSES_PERMISSIONS
    assert libc.capset(header, given) == 0
    yield
    libc.capset(header, before)


@pytest.mark.usefixtures("as_a_person")
@pytest.mark.parametrize("mode", ["555", "311", "600", "0"])
async def test_a_folder_without_permissions_keeps_nothing(run: Run, session: Session, mode: str) -> None:
    result = await run(f"mkdir n n/deep; echo x > n/.envrc; echo x > n/deep/.envrc; chmod {mode} n/deep n")
    folder = session.cwd / "n"
    assert stat.S_IMODE(folder.stat().st_mode) == int(mode, 8)
    assert result["put_aside"] == [str(folder / ".envrc"), str(folder / "deep/.envrc")]
    folder.chmod(0o700)
    (folder / "deep").chmod(0o700)
    assert sorted(os.listdir(folder)) == [".envrc.handrail-aside", "deep"]


@pytest.mark.usefixtures("as_a_person")
async def test_a_workspace_without_permissions_keeps_nothing(run: Run, session: Session) -> None:
    result = await run("echo x > .envrc; chmod 111 .")
    session.cwd.chmod(0o755)
    assert result["put_aside"] == [str(session.cwd / ".envrc")]
    assert (session.cwd / ".envrc.handrail-aside").exists()


@pytest.mark.usefixtures("as_a_person")
async def test_many_folders_without_permissions_keep_nothing(run: Run, session: Session) -> None:
    """If this fails, a command uses up our descriptors."""
    result = await run("ulimit -n 4096; for i in $(seq 1300); do mkdir n$i; done; echo x > n1300/.envrc; chmod 111 n*")
    assert result["put_aside"] == [str(session.cwd / "n1300/.envrc")]


@pytest.mark.usefixtures("as_a_person")
@pytest.mark.parametrize("mode", ["555", "311"])
async def test_git_on_the_host_runs_nothing_from_a_folder_without_permissions(
    run: Run, session: Session, mode: str
) -> None:
    marker = session.cwd.parent / "ran"
    git = "git -c user.name=a -c user.email=a@b.c"
    result = await run(
        f"git init -q . && git init -q n && {git} -C n commit -q --allow-empty -m x; "
        f"git update-index --add --cacheinfo 160000,$(git -C n rev-parse HEAD),n; "
        f"git -C n config core.fsmonitor 'touch {marker}'; chmod {mode} n"
    )
    assert result["put_aside"] == [str(session.cwd / "n/.git")]
    await anyio.run_process(["git", "status"], cwd=session.cwd, check=False)
    assert not marker.exists()


async def test_what_was_put_aside_is_not_renamed_again(run: Run, session: Session) -> None:
    plant = "mkdir -p node_modules/x/.vscode node_modules/y/HEAD node_modules/y/objects node_modules/y/refs"
    await run(f"{plant}; echo x > node_modules/x/.vscode/tasks.json; echo x > node_modules/.envrc")
    renamed = await run("echo on-host")
    assert len(renamed["put_aside"]) == 3
    for _ in range(2):
        await run("touch x")
        assert "put_aside" not in await run("echo on-host")
    await run("echo y > node_modules/y.handrail-aside/config")
    assert "put_aside" in await run("echo on-host")


@pytest.mark.parametrize("background", [False, True])
async def test_what_a_command_on_the_host_has_written_stays(run: Run, session: Session, background: bool) -> None:
    if background:
        await run("sleep 60", background=True)
    await run("touch x")
    made = [
        session.cwd / "node_modules/x/.vscode/tasks.json",
        session.cwd / ".vscode/tasks.json",
        session.cwd / ".envrc",
    ]
    written = "; ".join(f"mkdir -p {file.parent}; echo on-host > {file}" for file in made)
    assert "put_aside" not in await run(written)
    for _ in range(2):
        assert "put_aside" not in await run("touch y")
        assert "put_aside" not in await run("echo on-host")
    if background:
        assert "put_aside" not in await session.call("stop_process", {"process_id": "p1"})
    assert all(file.exists() for file in made)


async def test_what_changes_after_a_command_on_the_host_has_written_it_is_put_aside(run: Run, session: Session) -> None:
    """If this fails, a sandboxed command has other programs run what it likes under the name of a file that a person has approved."""
    waiting = "while [ ! -e go ]; do sleep 0.1; done; echo bad > .vscode/tasks.json; echo bad > node_modules/.envrc; touch gone"
    await run(f"mkdir node_modules; ({waiting})", background=True)
    made = [session.cwd / ".vscode/tasks.json", session.cwd / "node_modules/.envrc"]
    await run("; ".join(f"mkdir -p {file.parent}; echo on-host > {file}" for file in made))
    (session.cwd / "go").touch()
    while not (session.cwd / "gone").exists():
        await anyio.sleep(0.05)
    await run("echo on-host")
    assert not any(file.exists() for file in made)


def make_repository(folder: Path) -> None:
    """Make a repository with a commit outside the sandbox."""
    identity = ("-c", "user.name=a", "-c", "user.email=a@b.example")
    for words in (("init", "-q"), (*identity, "commit", "-q", "--allow-empty", "-m", "first")):
        subprocess.run(("git", *words), cwd=folder, check=True)


async def test_a_work_tree_that_git_has_made_stays_when_something_runs_on_the_host(run: Run, session: Session) -> None:
    make_repository(session.cwd)
    assert (await run("git worktree add -q side"))["status"] == "success"
    assert "put_aside" not in await run("echo on-host")
    assert sorted(os.listdir(session.cwd / ".git/worktrees")) == ["side"]


async def test_taken_names_keep_nothing_in_its_place(run: Run, session: Session) -> None:
    names = "for i in '' $(seq 2 99); do touch .envrc.handrail-aside$i; done"
    result = await run(f"{names}; echo x > .envrc")
    assert result["put_aside"] == [str(session.cwd / ".envrc")]
    assert not (session.cwd / ".envrc").exists()


@pytest.mark.parametrize("name", ["y" * 230 + ".code-workspace", "é" * 123 + ".desktop", "v" * 251 + ".pth"])
async def test_a_long_name_is_put_aside_by_a_shorter_one(run: Run, session: Session, name: str) -> None:
    result = await run(f"echo x > {name}")
    assert result["put_aside"] == [str(session.cwd / name)]
    (left,) = os.listdir(session.cwd)
    assert left.endswith(".handrail-aside")
    assert name.startswith(left.removesuffix(".handrail-aside"))


@pytest.fixture
def append_only(session: Session) -> Iterator[Path]:
    """A folder in which names can be made and not changed."""
    folder = session.cwd / "n"
    folder.mkdir()
    if shutil.which("chattr") is None or subprocess.run(["chattr", "+a", folder], check=False).returncode:
        pytest.skip("no folder here can be made to keep its names")
    yield folder
    subprocess.run(["chattr", "-a", folder], check=True)


async def test_nothing_runs_on_the_host_beside_what_cannot_be_put_aside(
    run: Run, session: Session, append_only: Path
) -> None:
    """If this fails, a program on the host obeys what a sandboxed command could keep in its place."""
    planted = append_only / ".envrc"
    result = await run("echo x > n/.envrc")
    assert result["not_put_aside"] == [str(planted)]
    assert "Nothing runs on the host" in result["note"]
    refused = await run("echo on-host")
    assert (refused["status"], refused["error"]["details"]) == ("denied", {"not_put_aside": [str(planted)]})
    assert (await run("echo inside")).ok
    await anyio.run_process(["chattr", "-a", str(append_only)])
    planted.unlink()
    assert (await run("echo on-host"))["stdout"] == "on-host\n"


@pytest.mark.usefixtures("as_a_person")
async def test_what_was_kept_back_is_put_aside_once_that_can_be_done(
    run: Run, session: Session, append_only: Path
) -> None:
    await run("echo x > n/.envrc")
    await anyio.run_process(["chattr", "-a", str(append_only)])
    result = await run("echo on-host")
    assert result["put_aside"] == [str(append_only / ".envrc")]


DEEP = [
    ".config/sops/age/keys.txt",
    ".local/share/keyrings/x",
    "dot/.cache/huggingface/token",
    ".local/share/fish/fish_history",
    ".claude/.credentials.json",
]


@pytest.mark.parametrize("place", DEEP)
async def test_a_secret_that_is_told_by_the_folders_around_it_is_hidden(run: Run, session: Session, place: str) -> None:
    (session.cwd / place).parent.mkdir(parents=True)
    (session.cwd / place).write_text("hunter2")
    assert "hunter2" not in (await run("grep -r hunter .; true"))["stdout"]


@pytest.mark.parametrize(
    "place",
    [
        ".hg/hgrc", "sub/.hg/hgrc", ".jj/repo/config.toml", ".svn/new", ".bzr/new", ".qwen/settings.json",
        "mise.local.toml", "lefthook-local.yml", "x.sublime-project",
        "AGENTS.override.md", ".dir-locals-2.el",
    ],
)  # fmt: skip
async def test_settings_of_more_programs_are_put_aside(run: Run, session: Session, place: str) -> None:
    result = await run(f"mkdir -p ./{os.path.dirname(place)}; echo x > {place}")
    # A folder that is a program's own goes as a whole.
    own = next(i for i, name in enumerate(PurePath(place).parts) if name != "sub")
    assert result["put_aside"] == [str(session.cwd / Path(*PurePath(place).parts[: own + 1]))]


async def test_what_mercurial_has_is_kept_as_it_is(run: Run, session: Session) -> None:
    (session.cwd / ".hg/store/.hg").mkdir(parents=True)
    (session.cwd / ".hg/hgrc").write_text("good")
    result = await run("echo evil > .hg/hgrc; echo x > .hg/dirstate; rm -f .hg/hgrc; true")
    assert (session.cwd / ".hg/hgrc").read_text() == "good"
    assert not (session.cwd / ".hg/dirstate").exists()
    assert "put_aside" not in result


async def test_a_link_for_mercurials_folder_is_put_aside(run: Run, session: Session) -> None:
    result = await run("mkdir x; echo evil > x/hgrc; ln -s x .hg")
    assert result["put_aside"] == [str(session.cwd / ".hg")]


@pytest.mark.parametrize("make", ["open('.envrc', 'w')", "os.makedirs('.vscode/x')"])
async def test_undo_brings_back_nothing_that_was_put_aside(run: Run, session: Session, make: str) -> None:
    """If this fails, undoing an ordinary call plants what an earlier one had made."""
    (session.cwd / "plant.py").write_text(f"import os, time\n{make}\ntime.sleep(30)\n")
    background = await run("python3 plant.py", background=True)
    with anyio.fail_after(30):
        while not [name for name in os.listdir(session.cwd) if name in (".envrc", ".vscode")]:
            await anyio.sleep(0.05)
    place = next(name for name in os.listdir(session.cwd) if name in (".envrc", ".vscode"))
    made = await run("touch mine")
    assert made["put_aside"] == [str(session.cwd / place)]
    plans = await session.undo_plans()
    paths = [(path.path, path.step) for plan in plans if "touch mine" in plan.records[0].what for path in plan.paths]
    assert (str(session.cwd / "mine"), "delete") in paths
    assert str(session.cwd / place) not in [path for path, _ in paths]
    await session.call("stop_process", {"process_id": background["process_id"]})


STOPPED = """
git init -q -b main . && git config user.name a && git config user.email a@b.example
echo a > a.txt && git add a.txt && git commit -qm first && git checkout -qb topic && echo b > a.txt && git commit -qam topic
git checkout -q main && echo c > a.txt && git commit -qam main && git checkout -q topic
"""


async def _repository(folder: Path) -> None:
    await anyio.run_process(("bash", "-ec", STOPPED), cwd=folder)


@pytest.mark.parametrize(
    ("plant", "named"),
    [
        pytest.param("mkdir .git/rebase-merge; echo ' x touch y' > {todo}", "{todo}", id="a-list"),
        pytest.param("mkdir .git/rebase-merge; ln -s ../../list {todo}; echo pick > list", "{todo}", id="a-link"),
        pytest.param("mkdir .git/x; ln -s x .git/rebase-merge; > {todo}", ".git/rebase-merge", id="behind-a-link"),
        pytest.param("mkdir .git/rebase-merge; yes pick | head -c 99999 > {todo}", "{todo}", id="too-long-to-read"),
        pytest.param(
            "mkdir -p .git/worktrees/w/rebase-merge; echo 'exec touch y' > .git/worktrees/w/rebase-merge/git-rebase-todo",
            ".git/worktrees/w/rebase-merge/git-rebase-todo",
            id="of-a-worktree",
        ),
    ],
)
async def test_a_rebase_that_would_run_a_command_is_put_aside(
    run: Run, session: Session, plant: str, named: str
) -> None:
    """If this fails, `git rebase --continue` on the host runs what a sandboxed command has planted."""
    await _repository(session.cwd)
    todo = ".git/rebase-merge/git-rebase-todo"
    result = await run(plant.format(todo=todo))
    assert result["put_aside"] == [str(session.cwd / named.format(todo=todo))]


async def test_a_rebase_that_stops_in_the_sandbox_can_go_on(run: Run, session: Session) -> None:
    await _repository(session.cwd)
    stopped = await run("git rebase main; true")
    assert (session.cwd / ".git/rebase-merge").is_dir()
    assert "put_aside" not in stopped
    went_on = await run("echo d > a.txt; git add a.txt; GIT_EDITOR=true git rebase --continue")
    assert went_on.ok, went_on


async def test_the_persons_own_rebase_with_commands_stays(run: Run, session: Session) -> None:
    await _repository(session.cwd)
    await anyio.run_process("git rebase --exec 'echo own' main", cwd=session.cwd, check=False)
    todo = session.cwd / ".git/rebase-merge/git-rebase-todo"
    assert "exec echo own" in todo.read_text()
    assert "put_aside" not in await run("touch x")
    assert "put_aside" in await run(f"echo 'exec touch y' >> {todo}")

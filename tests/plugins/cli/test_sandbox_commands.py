"""Commands that `execute_cli` runs in bubblewrap: real work in the real workspace."""

from __future__ import annotations

import functools
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import anyio
import pytest
from tests.plugins.cli.conftest import Run

from handrail import Decision, EvaluationContext, Evaluator, Invocation, Opinion, Route, Session
from handrail.api.approval import Answer, Approval, Choice, no, yes
from handrail.config import loader as config, trust
from handrail.fs.app_dirs import AppDirs
from handrail.plugins.loader import load_plugins
from handrail.sandbox import survey
from handrail.session.open_session import open_configured_runtime
from handrail.session.runtime import WATCH_INTERVAL_S, open_runtime
from handrail.testing import open_test_session
from handrail_cli import hooks
from handrail_files import hooks as file_hooks

# A changed configuration is taken over within this.
NOTICED_S = 3 * WATCH_INTERVAL_S

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap is Linux's")


class OnlyCli(Evaluator):
    """Routes commands to the sandbox, and has nothing to say of other tools."""

    name = "only_cli"

    async def opinion(self, invocation: Invocation, judging: EvaluationContext) -> Opinion | None:
        if not invocation.tool.confinable:
            return None
        own = (str(judging.cwd / ".git"),)
        return Opinion("jailed", Decision.ALLOW, route=Route.SANDBOX, changes_repositories=own)


class Cli:
    """The plugin without its judge."""

    handrail_register_tools = staticmethod(hooks.handrail_register_tools)
    handrail_register_services = staticmethod(hooks.handrail_register_services)
    handrail_register_sandboxes = staticmethod(hooks.handrail_register_sandboxes)


@pytest.fixture
async def session(tmp_path: Path) -> AsyncGenerator[Session, None]:
    given = {"SSH_AUTH_SOCK": "/tmp/agent", "DISPLAY": ":0", "MY_TOKEN": "t", "LANG": "C.UTF-8"}
    async with open_test_session(
        plugins={"cli": Cli()}, evaluators=[OnlyCli()], trusted=True, environment=given, folder=tmp_path
    ) as opened:
        yield opened


async def outside(*words: str, cwd: Path | None = None) -> str:
    """What a program on the host prints."""
    return (await anyio.run_process(words, cwd=cwd)).stdout.decode()


async def test_the_result_says_where_it_ran(run: Run) -> None:
    result = await run("echo hi")
    assert (result["stdout"], result["sandbox"], result["network"]) == ("hi\n", "bubblewrap", False)


async def test_the_workspace_is_the_real_one(run: Run, session: Session) -> None:
    assert (await run("echo made > made.txt; mkdir sub")).ok
    assert (session.cwd / "made.txt").read_text() == "made\n"
    assert (session.cwd / "sub").is_dir()


async def test_nothing_but_the_workspace_is_written(run: Run, session: Session) -> None:
    result = await run(f"touch {session.cwd.parent}/home/x; touch /usr/x /etc/x; echo $?")
    assert "Read-only file system" in result["stderr"]
    assert not list((session.cwd.parent / "home").iterdir())


async def test_only_what_is_needed_of_the_environment_is_there(run: Run) -> None:
    shown = (await run("env"))["stdout"]
    assert "LANG=C.UTF-8" in shown
    assert not any(name in shown for name in ("SSH_AUTH_SOCK", "DISPLAY", "MY_TOKEN"))


async def test_folder_and_variables_are_kept_but_not_those_that_programs_obey(run: Run, session: Session) -> None:
    await run("mkdir sub; cd sub; export PLAIN=1 PATH=/x LD_PRELOAD=/y GIT_PAGER=z NODE_OPTIONS=w BASH_ENV=v")
    await run(
        "export TAR_OPTIONS=--to-command=x RSYNC_RSH=x VIMINIT=x SUDO_ASKPASS=x CLASSPATH=x RIPGREP_CONFIG_PATH=x OPENSSL_CONF=x WGETRC=x"
    )
    await run(
        "export DOTNET_STARTUP_HOOKS=x ZIPOPT=-TT LESSOPEN=x GTK_MODULES=x ZDOTDIR=x PGSERVICEFILE=x RUBYLIB=x DEBUG='x;y'"
    )
    assert session.cwd.name == "sub"
    assert session.environment == {"PLAIN": "1"}


@pytest.mark.parametrize(
    "command",
    [
        pytest.param("export LONG=$(head -c 200000 /dev/zero | tr '\\0' a)", id="one-long-variable"),
        pytest.param("v=$(printf 'a%.0s' {1..600}); for i in {1..1500}; do export V$i=$v; done", id="many-variables"),
        pytest.param("truncate -s 3G /proc/$$/fd/10", id="what-the-shell-never-wrote"),
    ],
)
async def test_no_command_leaves_what_ends_the_session(run: Run, command: str) -> None:
    left = await run(command)
    assert "could not be kept" in left["note"]
    assert (await run("echo still here"))["stdout"] == "still here\n"


@pytest.mark.parametrize(
    "command",
    [
        "sleep 99 &",
        "touch made; nohup sleep 99 >log 2>&1 &",
        "touch made; setsid -f sleep 99",
        "(sleep 99 &); exit 3",
        "set -euf; shopt -s nullglob failglob; IFS=0123456789; sleep 99 & touch made",
        "trap 'echo bye' EXIT; sleep 99 & touch made",
    ],
)
async def test_what_was_left_running_is_told_as_ended(run: Run, session: Session, command: str) -> None:
    elsewhere = session.cwd / "elsewhere"
    elsewhere.mkdir()
    for given in ({}, {"cwd": str(elsewhere)}):
        result = await run(command, **given)
        assert "left running ended with it; start that with background=true and without `&`." in result["note"]


@pytest.mark.parametrize(
    "command", ["sleep 0.1 & wait", "yes | head -1 | cat; ls > list.txt", "sleep 99 & kill $!; wait"]
)
async def test_a_command_that_left_nothing_running_tells_of_nothing(run: Run, command: str) -> None:
    for _ in range(3):
        assert "running" not in (await run(command)).get("note", "")


@pytest.mark.parametrize(
    "command",
    [
        "sleep 99 & echo made > made.txt; kill $!; wait $!; echo $?",
        'sleep 99 & job=$!; kill -15 $job; wait "$job"; echo $?',
        "sleep 99 & kill %1; wait %1; echo $?",
        "sleep 99 & kill $(jobs -p); wait $!; echo $?",
    ],
)
async def test_a_command_ends_the_jobs_that_it_has_started_unasked(tmp_path: Path, command: str) -> None:
    work = tmp_path / "work"
    work.mkdir()
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path / "home"), "HANDRAIL_HOME": str(tmp_path / "state")}
    async with (
        open_configured_runtime({}, cwd=work, environment=environment) as runtime,
        runtime.session(confirm=no) as session,
    ):
        result = await session.call("execute_cli", {"command": command})
        elsewhere = await session.call("execute_cli", {"command": "kill -9 $(cat number)"})
    assert (result["sandbox"], result["stdout"]) == ("bubblewrap", "143\n"), result
    assert "note" not in result
    assert elsewhere.status == "denied"


async def test_the_shell_catches_no_signal_that_its_jobs_would_lose(run: Run) -> None:
    """If this fails, `server & …; kill $!` now and then leaves the server running, and `wait` waits for it."""
    caught = (await run("grep SigCgt /proc/$$/status"))["stdout"].split()[1]
    assert not int(caught, 16) & (1 << (signal.SIGTERM - 1))


async def test_variables_that_hold_for_one_command_are_named_with_a_remedy(run: Run, session: Session) -> None:
    assert (await run("python3 -m venv --without-pip .venv")).ok
    activated = await run(". .venv/bin/activate && which python")
    assert activated["stdout"] == f"{session.cwd}/.venv/bin/python\n"
    assert activated["note"] == (
        "PATH and VIRTUAL_ENV hold for this command only: call its programs by their path (`.venv/bin/python`), or activate it in the"
        " command that needs it."
    )
    assert not {"VIRTUAL_ENV", "VIRTUAL_ENV_PROMPT"} & session.environment.keys()
    for command, note in (
        (
            "export PYTHONPATH=lib GREETING=hi",
            "PYTHONPATH holds for this command only: set it in the command that needs it.",
        ),
        ("unset PATH", "PATH holds for this command only: set it in the command that needs it."),
        ("echo $GREETING", None),
        ("PYTHONPATH=lib GREETING=ho ls > list.txt", "It printed nothing."),
    ):
        assert (await run(command)).get("note", None) in (note, f"{note} It printed nothing."), command


async def test_a_folder_that_is_only_in_the_sandbox_is_not_kept(run: Run, session: Session) -> None:
    before = session.cwd
    await run("mkdir /tmp/only_inside_the_sandbox && cd /tmp/only_inside_the_sandbox")
    assert session.cwd == before


MODES = """
import os
def tried(*do):
    for each in do:
        try: each()
        except PermissionError as exc: print(exc.errno, end=' ')
        else: print('done', end=' ')
tried(lambda: os.chmod('f', 0o4755), lambda: os.chmod('f', 0o2755), lambda: os.mknod('n', 0o104755))
tried(lambda: os.close(os.open('g', os.O_CREAT | os.O_WRONLY, 0o4755)))
"""


async def test_no_command_leaves_a_file_that_runs_as_its_owner(run: Run, session: Session) -> None:
    (session.cwd / "modes.py").write_text(MODES)
    assert (await run("touch f; python3 modes.py; chmod 755 f"))["stdout"].split() == ["1"] * 4
    assert (session.cwd / "f").stat().st_mode & 0o7777 == 0o755
    assert not (session.cwd / "g").exists()


async def test_ordinary_modes_are_copied_packed_and_unpacked(run: Run, session: Session) -> None:
    command = "mkdir d x; touch d/f; chmod 750 d; chmod 640 d/f; cp -a d c; tar cf a.tar d; tar xpf a.tar -C x; stat -c %a c c/f x/d x/d/f"
    assert (await run(command))["stdout"].split() == ["750", "640"] * 2


async def test_one_private_tmp_lasts_for_the_session(run: Run, session: Session) -> None:
    assert (await run("echo once > /tmp/handrail_once; cat /var/tmp/handrail_once")).ok
    assert (await run("cat /tmp/handrail_once"))["stdout"] == "once\n"
    assert not os.path.exists("/tmp/handrail_once")


async def test_the_network_is_not_there_and_that_is_told(run: Run) -> None:
    result = await run("python3 -c \"import socket; socket.create_connection(('192.0.2.1', 80), 2)\"")
    assert result.error_code == "sandbox_denied"
    assert result["error"]["details"] == {"denied": "network"}


async def test_the_hosts_known_here_are_known_inside_and_no_others(run: Run) -> None:
    here = Path("/etc/hosts").read_text()
    inside = (await run("cat /etc/hosts"))["stdout"]
    assert inside == here if "localhost" in here.split() else "localhost" in inside.split()


async def test_an_ordinary_failure_is_one(run: Run) -> None:
    result = await run("echo no >&2; exit 3")
    assert (result.error_code, result["exit_code"]) == ("downstream_error", 3)


async def test_file_tools_see_the_private_tmp(tmp_path: Path) -> None:
    async with open_test_session(
        plugins={"cli": Cli(), "files": file_hooks}, evaluators=[OnlyCli()], trusted=True, folder=tmp_path
    ) as session:
        await session.call(
            "execute_cli", {"command": "echo inside > /tmp/handrail_seen; ln -s /var/lib/dpkg/status /tmp/handrail_out"}
        )
        seen = await session.call("read_file", {"file_path": "/tmp/handrail_seen"})
        out = await session.call("read_file", {"file_path": "/tmp/handrail_out"})
    assert seen.ok
    assert "inside" in str(seen)
    assert out.status == "denied", "a link out of the private folder is judged by where it leads"


class Gives:
    """A person who answers, and remembers what was asked."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.asked: list[Approval] = []

    async def __call__(self, approval: Approval) -> Answer:
        self.asked.append(approval)
        return self.answer


# Says what a program says that has no network.
LISTENING = (
    "python3 -c \"import socket; socket.create_connection(('127.0.0.1', {}), 2); print('got through')\""
    " || ( echo Network is unreachable >&2; exit 1 )"
)


@pytest.mark.parametrize("choice", [Choice.ONCE, Choice.DENY, None])
async def test_what_the_sandbox_refuses_is_run_on_the_host_only_after_a_yes(
    tmp_path: Path, choice: Choice | None
) -> None:
    person = Gives(Answer(choice)) if choice else None
    with socket.create_server(("127.0.0.1", 0)) as server:
        command = LISTENING.format(server.getsockname()[1])
        async with open_test_session(
            plugins={"cli": Cli()}, evaluators=[OnlyCli()], trusted=True, confirm=person, folder=tmp_path
        ) as session:
            result = await session.call("execute_cli", {"command": command})
            routes = [record.verdict.route for record in session.history.last() if record.verdict]
    if choice is Choice.ONCE:
        assert result.ok
        assert result["stdout"] == "got through\n"
        assert "sandbox" not in result
        assert "no network" in result["sandbox_denied"]
        assert routes == [Route.SANDBOX, Route.HOST]
    else:
        assert (result.error_code, result["sandbox"]) == ("sandbox_denied", "bubblewrap")
        assert routes == [Route.SANDBOX]
    for approval in person.asked if person else ():
        assert approval.verdict.rule == "sandbox:denied"
        assert not approval.grants, "such a yes is for this once"


async def test_who_is_asked_and_the_result_say_that_a_second_run_does_all_again(tmp_path: Path) -> None:
    person = Gives(Answer(Choice.ONCE))
    with socket.create_server(("127.0.0.1", 0)) as server:
        command = f"echo line >> log.txt; {LISTENING.format(server.getsockname()[1])}"
        async with open_test_session(
            plugins={"cli": Cli()}, evaluators=[OnlyCli()], trusted=True, confirm=person, folder=tmp_path,
            settings={"undo": {"enabled": True}},
        ) as session:  # fmt: skip
            result = await session.call("execute_cli", {"command": command})
            assert (session.cwd / "log.txt").read_text() == "line\nline\n"
    assert "would begin anew" in person.asked[0].verdict.reasons[0].text
    assert "It ran twice" in result["note"]


@pytest.fixture
def repository(session: Session) -> Path:
    work = session.cwd
    for words in (["init", "-q"], ["config", "user.email", "a@b.c"], ["config", "user.name", "A"]):
        subprocess.run(["git", *words], cwd=work, check=True)
    return work


async def test_git_commits_and_its_hooks_and_settings_stay(run: Run, repository: Path) -> None:
    done = await run(
        "echo text > file && git add -A && git commit -qm first && git log --oneline && git status --short"
    )
    assert done.ok, done
    assert "first" in done["stdout"]
    assert "first" in await outside("git", "log", cwd=repository)
    changed = await run("echo evil > .git/hooks/pre-commit; git config core.fsmonitor ./evil; mv .git .old")
    assert changed.error_code == "sandbox_denied"
    assert not (repository / ".git/hooks/pre-commit").exists()
    assert "evil" not in (repository / ".git/config").read_text()


async def test_a_worktree_commits_to_its_repository_whose_hooks_stay(repository: Path, tmp_path: Path) -> None:
    tree, git = tmp_path / "tree", repository / ".git"
    await outside("git", "commit", "-q", "--allow-empty", "-m", "first", cwd=repository)
    await outside("git", "worktree", "add", "-q", str(tree), cwd=repository)
    shutil.rmtree(git / "hooks")
    (tmp_path / "other").mkdir()
    async with (
        open_test_session(
            plugins={"cli": Cli()}, evaluators=[OnlyCli()], trusted=True, folder=tmp_path / "other"
        ) as other,
        other.runtime.session(cwd=tree, workspace=[tree]) as session,
    ):
        done = await session.call("execute_cli", {"command": "echo x > f && git add f && git commit -qm second"})
        await session.call(
            "execute_cli", {"command": f"mkdir {git}/hooks; echo evil > {git}/hooks/post-commit; mv {git} {git}2"}
        )
        (tree / ".git").write_text(f"gitdir: {tmp_path / 'forged'}\n")
        forged = await session.call("execute_cli", {"command": "git status"})
    assert done.ok, done
    assert "second" in await outside("git", "log", "--all", "--oneline", cwd=repository)
    assert not (git / "hooks").exists()
    assert not forged.ok, "a .git file that its repository knows nothing of opens nothing"


async def test_a_secret_is_hidden_and_never_committed_empty(run: Run, repository: Path) -> None:
    (repository / ".env").write_text("TOKEN=hunter2")
    await outside("git", "add", "-A", cwd=repository)
    await outside("git", "commit", "-qm", "first", cwd=repository)
    read = await run("cat .env")
    assert read["error"]["details"] == {"denied": "secret"}
    committed = await run("git commit -qam second")
    assert not committed.ok
    assert await outside("git", "show", "HEAD:.env", cwd=repository) == "TOKEN=hunter2"


@pytest.mark.parametrize(
    "command",
    [
        pytest.param("echo 'export X' > .envrc", id="a-file"),
        pytest.param("mkdir -p sub/.vscode && echo {} > sub/.vscode/tasks.json", id="a-folder-further-down"),
        pytest.param("git init -q && git config core.fsmonitor ./evil", id="a-repository-that-runs-something"),
        pytest.param("mkdir .git && ln -s /tmp .git/hooks", id="a-link-for-hooks"),
        pytest.param("echo 'gitdir: /elsewhere' > .git", id="a-repository-elsewhere"),
        pytest.param("ln -s /etc .claude", id="a-link"),
        pytest.param("git init -q --bare b; git -C b config core.fsmonitor ./evil", id="a-bare-repository"),
        pytest.param("mkdir b; echo 'ref: refs/heads/x' > b/HEAD; echo ../r > b/commondir", id="half-a-repository"),
        pytest.param("touch pyvenv.cfg; echo x > .envrc", id="beside-the-mark-of-an-environment"),
        pytest.param(
            't=$(stat -c %y .); sleep .2; echo x > .envrc; touch -d "$t" .', id="in-a-folder-with-a-forged-time"
        ),
    ],
)
async def test_what_would_be_run_unasked_is_put_aside(run: Run, session: Session, command: str) -> None:
    result = await run(command)
    assert len(result["put_aside"]) == 1
    place = Path(result["put_aside"][0])
    assert not os.path.lexists(place)
    assert os.path.lexists(f"{place}.handrail-aside")


@pytest.mark.parametrize(
    "hiding",
    [
        pytest.param("touch conf/pyvenv.cfg pyvenv.cfg", id="mark-of-an-environment"),
        pytest.param("mv conf node_modules", id="folder-that-is-not-looked-into"),
        pytest.param("mkdir -p 1/2/3/4/5/6/7/8/9; mv conf 1/2/3/4/5/6/7/8/9", id="deep-down"),
        pytest.param("mkdir -p d{1..30}/d{1..30}", id="many-folders"),
    ],
)
async def test_one_command_cannot_open_a_secret_to_the_next(run: Run, session: Session, hiding: str) -> None:
    (session.cwd / "conf/deep").mkdir(parents=True)
    (session.cwd / "conf/deep/.env").write_text("TOKEN=hunter2")
    await run("true")
    await run(hiding)
    found = await run("find . -name .env -exec cat {} +")
    assert "hunter2" not in found["stdout"]


@pytest.mark.parametrize(
    ("key", "value", "file"),
    [
        pytest.param("core.hooksPath", "tools/hooks", "tools/hooks/pre-commit", id="hooks-elsewhere"),
        pytest.param("include.path", "../tools/settings", "tools/settings", id="more-settings"),
        pytest.param("core.fsmonitor", "tools/watch.sh", "tools/watch.sh", id="a-program"),
        pytest.param("alias.st", "!python3 'tools/st.py' -v", "tools/st.py", id="a-script-in-an-alias"),
    ],
)
@pytest.mark.parametrize("there", [True, False])
async def test_what_gits_settings_name_cannot_be_changed(
    run: Run, repository: Path, key: str, value: str, file: str, *, there: bool
) -> None:
    await outside("git", "config", key, value, cwd=repository)
    if there:
        (repository / file).parent.mkdir(parents=True)
        (repository / file).write_text("good")
    await run(f"mkdir -p {Path(file).parent}; echo evil > {file}")
    assert there == (repository / file).exists()
    assert not there or (repository / file).read_text() == "good"


@pytest.mark.parametrize(
    ("obeyed", "command", "aside"),
    [
        pytest.param(("settings", "core.hooksPath", "cur/hk"), "rm cur; mkdir -p cur/hk", "cur", id="hooks"),
        pytest.param(("settings", "diff.external", "sh cur/x"), "rm cur; ln -s b cur", "cur", id="a-program"),
        pytest.param(("link", ".git/hooks/pre-push", "../../cur/x"), "ln -sfn b cur", "cur", id="a-hook"),
        pytest.param(("link", ".vscode", "cur/hk"), "rm cur; ln -s b cur", "cur", id="settings-of-an-editor"),
        pytest.param(("link", "handrail.toml", "cur/x"), "rm cur; ln -s b cur", "cur", id="settings-of-handrail"),
        pytest.param(("link", ".envrc", "in/cur/x"), "mv in out; ln -s b in; mkdir b/cur", "in", id="folder-around-it"),
    ],
)
async def test_a_link_to_what_others_obey_leads_nowhere_else(
    run: Run, repository: Path, obeyed: tuple[str, str, str], command: str, aside: str
) -> None:
    for name in ("a/hk", "b/hk", "in", ".git/hooks"):
        (repository / name).mkdir(parents=True, exist_ok=True)
    for name in ("a/x", "b/x", "a/hk/tasks.json"):
        (repository / name).write_text("")
    (repository / "cur").symlink_to("a")
    (repository / "in/cur").symlink_to("../a")
    how, name, value = obeyed
    if how == "link":
        (repository / name).symlink_to(value)
    else:
        await outside("git", "config", name, value, cwd=repository)
    assert "put_aside" not in await run("ls; touch a/new; ln -s a other")
    result = await run(command)
    assert str(repository / aside) in result["put_aside"]
    assert not os.path.lexists(repository / aside)
    assert "put_aside" not in await run("true")


async def test_what_many_settings_of_git_name_cannot_be_changed(run: Run, repository: Path) -> None:
    with (repository / ".git/config").open("a") as file:
        file.writelines(f'[branch "feature-{n:0100}"]\n\tremote = origin\n' for n in range(1000))
        file.write("[core]\n\thooksPath = tools\n")
    (repository / "tools").mkdir()
    (repository / "tools/pre-commit").write_text("good")
    await run("echo evil > tools/pre-commit")
    assert (repository / "tools/pre-commit").read_text() == "good"


@pytest.mark.parametrize(
    ("settings", "file"),
    [
        pytest.param("[core]\nhooksPath = .hooks\n", ".hooks/pre-push", id="hooks"),
        pytest.param("[core]\nsshCommand = tools/ssh -v\n", "tools/ssh", id="a-program"),
        pytest.param("[include]\npath = more\n", "tools/more.sh", id="what-is-included"),
    ],
)
@pytest.mark.parametrize("there", [True, False])
@pytest.mark.parametrize("folder", [".", "worktree"])
async def test_what_the_users_own_git_settings_name_cannot_be_changed_in_any_work_tree(
    run: Run, repository: Path, settings: str, file: str, folder: str, *, there: bool
) -> None:
    home = repository.parent / "home"
    (home / "dotfiles").write_text(settings)
    (home / ".gitconfig").symlink_to("dotfiles")
    (home / "more").write_text("[diff]\nexternal = tools/more.sh\n")
    person = ("-c", "user.name=a", "-c", "user.email=a@b.c")
    await outside("git", *person, "commit", "-q", "--allow-empty", "-m", "first", cwd=repository)
    await outside("git", "worktree", "add", "worktree", cwd=repository)
    place = repository / folder / file
    if there:
        place.parent.mkdir(parents=True)
        place.write_text("good")
    await run(f"mkdir -p {place.parent}; echo evil > {place}")
    assert there == place.exists()
    assert not there or place.read_text() == "good"


async def test_a_new_repository_keeps_no_hooks_where_the_users_settings_look_for_them(
    run: Run, session: Session
) -> None:
    (session.cwd.parent / "home/.gitconfig").write_text("[core]\nhooksPath = .hooks\n")
    result = await run("mkdir -p new/.hooks; echo evil > new/.hooks/pre-push; git init -q new")
    assert result["put_aside"] == [str(session.cwd / "new/.hooks")]
    assert (session.cwd / "new/.git").exists()


async def test_files_that_git_only_reads_may_be_changed(run: Run, repository: Path) -> None:
    (repository.parent / "home/.gitconfig").write_text("[blame]\nignoreRevsFile = .git-blame-ignore-revs\n")
    await run("echo a > .git-blame-ignore-revs")
    assert (repository / ".git-blame-ignore-revs").exists()


@pytest.mark.parametrize("place", [".git/modules/x/hooks", ".git/worktrees/x/commondir", ".git/config.worktree"])
async def test_a_link_among_gits_files_opens_nothing(run: Run, repository: Path, place: str) -> None:
    home = repository.parent / "home"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh/id_rsa").write_text("PRIVATE")
    folder = repository / Path(place).parent
    link = os.path.relpath(home, folder)
    made = await run(f"mkdir -p {folder}; touch {folder}/HEAD; ln -s {link} {place}; sleep 0.1")
    assert made["put_aside"] == [str(repository / place)]
    (repository / place).unlink(missing_ok=True)
    (repository / place).symlink_to(link)
    read = await run(f"cat {home}/.ssh/id_rsa")
    assert "PRIVATE" not in read["stdout"]
    assert "No such file" in read["stderr"]


async def test_what_a_running_command_has_made_is_bound_for_others(run: Run, session: Session) -> None:
    """It is paused at that moment, so that it cannot have it lead elsewhere."""
    background = await session.call(
        "execute_cli", {"command": "sleep 1; git init -q sub; touch .envrc; sleep 20", "background": True}
    )
    with anyio.fail_after(30):
        while not (session.cwd / ".envrc").exists():
            await anyio.sleep(0.05)
    mounts = (await run("cat /proc/self/mountinfo"))["stdout"]
    assert ".envrc" in mounts
    assert "sub/.git" in mounts
    changed = await run("git -C sub config core.fsmonitor ./evil")
    assert not changed.ok
    assert "evil" not in (session.cwd / "sub/.git/config").read_text()
    await session.call("stop_process", {"process_id": background["process_id"]})


async def test_a_command_that_starts_programs_survives_being_paused(run: Run, session: Session) -> None:
    """`subprocess` lends its memory to what it starts (`vfork`), and cannot be stopped as long as that is."""
    (session.cwd / "starting.py").write_text("import subprocess\nwhile True: subprocess.run(['/bin/true'])\n")
    started = await session.call("execute_cli", {"command": "python3 starting.py", "background": True})
    for number in range(10):
        assert (await run(f"touch {number}")).ok
    state = await session.call("read_process", {"process_id": started["process_id"]})
    assert state["running"], state
    await session.call("stop_process", {"process_id": started["process_id"]})


async def test_too_many_places_to_close_are_told(run: Run, session: Session) -> None:
    for number in range(1_001):
        (session.cwd / f"{number}.pem").touch()
    result = await run("touch made")
    assert "more than 1,000 secrets" in result["error"]["message"]
    assert not (session.cwd / "made").exists()


async def test_what_a_link_leads_to_is_kept_with_it(run: Run, session: Session) -> None:
    (session.cwd / "tools").mkdir()
    (session.cwd / "tools/hooks.sh").write_text("good")
    (session.cwd / ".envrc").symlink_to("tools/hooks.sh")
    await run("echo evil > tools/hooks.sh; mv tools other; mkdir tools; echo evil > tools/hooks.sh")
    assert (session.cwd / ".envrc").read_text() == "good"


async def test_a_plain_new_repository_stays(run: Run, session: Session) -> None:
    result = await run(
        "git init -q && git config user.name A && git config user.email a@b.c && git commit -q --allow-empty -m x"
    )
    assert result.ok, result
    assert "put_aside" not in result
    assert (session.cwd / ".git/HEAD").is_file()


async def test_hooks_that_were_not_there_are_put_aside(run: Run, repository: Path) -> None:
    shutil.rmtree(repository / ".git/hooks")
    result = await run("mkdir .git/hooks && echo evil > .git/hooks/pre-commit && chmod +x .git/hooks/pre-commit")
    assert result["put_aside"] == [str(repository / ".git/hooks")]
    assert not (repository / ".git/hooks").exists()


async def test_a_build_and_its_test_succeed(run: Run, session: Session) -> None:
    (session.cwd / "main.c").write_text('#include <stdio.h>\nint main(void) { puts("built"); return 0; }\n')
    (session.cwd / "Makefile").write_text("main: main.c\n\tcc -o main main.c\ntest: main\n\t./main | grep -q built\n")
    result = await run("make test && ./main")
    assert result.ok, result
    assert result["stdout"].endswith("built\n")


async def test_a_virtual_environment_works(run: Run, session: Session) -> None:
    await outside(sys.executable, "-m", "venv", "--without-pip", str(session.cwd / ".venv"))
    (session.cwd / "test_it.py").write_text("import unittest\nclass T(unittest.TestCase):\n    def test(self): pass\n")
    result = await run("source .venv/bin/activate && python -m unittest -q test_it && python -c 'import ssl, sqlite3'")
    assert result.ok, result


async def test_an_install_fails_for_lack_of_the_network_and_says_so(run: Run) -> None:
    result = await run(
        "python3 -m pip install --disable-pip-version-check --break-system-packages --retries 0 --timeout 2 no-such-package"
    )
    if "No module named pip" in result["stderr"]:
        pytest.skip("the python3 on PATH has no pip")
    assert result["error"]["details"] == {"denied": "network"}


@pytest.mark.parametrize("how", ["stop", "timeout"])
async def test_stopping_ends_everything_inside(run: Run, session: Session, how: str) -> None:
    command = "sleep 987.6 & setsid sleep 987.6 & echo ready; wait"
    if how == "timeout":
        result = await run(command, timeout=0.7)
        assert result.status == "timeout"
        assert result["stdout"] == "ready\n"
    else:
        started = await run(command, background=True)
        session.confirmer = yes
        stopped = await session.call("stop_process", {"process_id": started["process_id"]})
        assert stopped["stopped"], stopped
    assert "sleep 987.6" not in await outside("ps", "-eo", "args")


async def test_a_folder_that_is_not_shown_is_said(run: Run, tmp_path: Path) -> None:
    result = await run("ls", cwd=str(tmp_path / "home" / ".."))
    assert result.error_code == "no_sandbox"
    assert "not shown in the sandbox" in result["error"]["message"]


async def test_doctor_says_which_sandbox_is_used_and_why_others_are_not(tmp_path: Path) -> None:
    program = [Path(sys.executable).with_name("handrail"), "doctor", "--json", "--desktop", "private"]
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path / "home"), "HANDRAIL_HOME": str(tmp_path / "state")}
    done = await anyio.run_process(program, cwd=tmp_path, env={**environment, "HANDRAIL_PLUGINS": "cli"}, check=False)
    told = {check["name"]: check for check in json.loads(done.stdout)}
    assert told["sandbox bubblewrap"]["detail"] == "is used, without the network"
    assert not told["sandbox windows_job"]["ok"]
    assert not told["sandbox windows_job"]["needed"]


def _until(name: str) -> str:
    """What waits in a shell until there is such a file."""
    return f"until test -e {name}; do sleep 0.05; done"


@pytest.mark.parametrize("place", ["handrail.toml", "state/config/config.toml"])
async def test_no_command_gives_itself_leave_while_it_runs(tmp_path: Path, place: str) -> None:
    work = tmp_path / "work"
    work.mkdir()
    environment = {"HOME": str(tmp_path), "HANDRAIL_HOME": str(work / "state"), "PATH": os.environ["PATH"]}
    places = AppDirs.of(environment)
    trust.trust_folder(work, places=places)
    read = functools.partial(
        config.load_config, places=places, folder=work, environment=environment, admin=tmp_path / "none"
    )
    rule = '[[policy.rules]]\\ntool = "execute_cli"\\ndecision = "deny"\\nreason = "forged"\\n'
    forge = f"mkdir -p $(dirname {place}); printf '{rule}' > {place}"
    (work / "forge.sh").write_text(f"{_until('begin')}; {forge}; {_until('end')}\n")
    command = "bash ./forge.sh"
    async with (
        open_runtime(
            read(), environment=environment, cwd=work, places=places, plugins=load_plugins(only={"cli"}), reload=read
        ) as runtime,
        runtime.session(workspace=[work]) as session,
    ):
        background = await session.call("execute_cli", {"command": command, "background": True})
        assert background.ok, background
        (work / "begin").touch()
        with anyio.fail_after(30):
            while not (work / place).exists():
                await anyio.sleep(0.05)
        await anyio.sleep(NOTICED_S)
        assert (await session.call("execute_cli", {"command": "echo hi"})).ok
        (work / "end").touch()
        with anyio.fail_after(30):
            while os.path.lexists(work / place):
                await anyio.sleep(0.05)
        await anyio.sleep(NOTICED_S)
        assert (await session.call("execute_cli", {"command": "echo hi"})).ok


BOTH = [".npmrc", ".yarnrc", ".yarnrc.yml", ".pypirc", "pip.conf", ".netrc", "_netrc"]


@pytest.mark.parametrize("name", BOTH)
async def test_a_file_with_credentials_that_programs_obey_is_put_aside_when_a_command_made_it(
    run: Run, session: Session, name: str
) -> None:
    """If this fails, a package manager obeys the registry that a sandboxed command chose."""
    result = await run(f"echo 'registry=https://evil.example/' > {name}")
    assert result["put_aside"] == [str(session.cwd / name)]
    assert (session.cwd / f"{name}.handrail-aside").exists()


@pytest.mark.parametrize("name", BOTH)
async def test_a_file_with_credentials_that_programs_obey_is_masked_when_it_was_there(
    run: Run, session: Session, name: str
) -> None:
    (session.cwd / name).write_text("token=hunter2")
    result = await run(f"cat {name}; echo evil > {name}; rm -f {name}; mv {name} other; true")
    assert "hunter2" not in result["stdout"]
    assert (session.cwd / name).read_text() == "token=hunter2"
    assert "put_aside" not in result


async def test_a_place_is_found_among_very_many_names(run: Run, session: Session) -> None:
    result = await run(
        'python3 -c \'for n in range(8200): open(f"f{n}", "w")\'; mkdir .vscode; touch .vscode/tasks.json'
    )
    assert result["put_aside"] == [str(session.cwd / ".vscode")]
    assert "unsurveyed" not in result


async def test_well_known_names_are_found_in_a_folder_too_large_to_list(
    run: Run, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(survey, "MAX_IN_FOLDER", 20)
    (session.cwd / ".env").write_text("TOKEN=hunter2")
    result = await run("touch f{1..40}; mkdir -p .vscode .github/workflows; touch .envrc; cat .env")
    assert "hunter2" not in result["stdout"]
    assert {Path(place).relative_to(session.cwd).as_posix() for place in result["put_aside"]} == {
        ".vscode",
        ".github/workflows",
        ".envrc",
    }
    after = await run("cat .env; true")
    assert after["unsurveyed"] == [str(session.cwd)]
    assert "hunter2" not in after["stdout"]
    assert "unsurveyed" in after["note"]


async def test_what_lies_beyond_the_bounds_of_the_survey_is_told(
    run: Run, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If this fails, a large workspace is searched in part and nobody knows."""
    monkeypatch.setattr(survey, "MAX_FOLDERS", 5)
    for number in range(8):
        (session.cwd / f"d{number}").mkdir()
    (session.cwd / "d7/.env").write_text("TOKEN=hunter2")
    result = await run("cat d7/.env; touch d6/.envrc; true")
    assert set(result["unsurveyed"]) <= {str(session.cwd / f"d{number}") for number in range(8)}
    assert len(result["unsurveyed"]) == 4
    assert "hunter2" not in result["stdout"]
    assert result["put_aside"] == [str(session.cwd / "d6/.envrc")]


async def test_what_was_there_before_stays_where_the_survey_could_not_look(
    run: Run, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(survey, "MAX_FOLDERS", 4)
    monkeypatch.setattr(survey, "MAX_LOOKED_UP", 0)
    for number in range(6):
        (session.cwd / f"d{number}").mkdir()
    for number in range(6):
        (session.cwd / f"d{number}/.envrc").touch()
    await anyio.sleep(0.1)
    result = await run("rmdir d9; rm -rf d0 d1 d2; true")
    assert "put_aside" not in result
    assert (session.cwd / "d5/.envrc").exists()

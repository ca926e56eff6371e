"""Observers that are commands: what they are given, what their answers mean, and what becomes of them."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from time import monotonic
from typing import Any

import anyio
import pytest

from handrail import ConfigError, Write, tool
from handrail.api.approval import yes
from handrail.config.loader import load_config
from handrail.fs.app_dirs import AppDirs
from handrail.testing import ScriptedConfirmer, open_test_session

RAN: list[str] = []


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    RAN.clear()


@tool()
async def say(text: str) -> dict[str, Any]:
    """Say something."""
    RAN.append(text)
    return {"said": text}


@tool(effects=[Write("file", arg="path")])
async def touch(path: str) -> None:
    """Write an empty file."""


def shell(script: str, **keys: Any) -> dict[str, Any]:
    """The configuration of an observer that is a shell script."""
    return {"name": "hook", "command": ["/bin/sh", "-c", script], **keys}


async def said(*observers: dict[str, Any], **options: Any) -> Any:
    """The result of one call of `say` that these observers look at."""
    settings = {"observers": list(observers)}
    async with open_test_session(tools=[say], settings=settings, **options) as session:
        with anyio.fail_after(20):
            return await session.call("say", {"text": "hi"}, call_id="c1")


def answer(**value: Any) -> str:
    return f"cat >/dev/null; printf '%s' '{json.dumps(value)}'"


# What it is given


async def test_it_is_given_the_call_as_json(tmp_path: Path) -> None:
    seen = tmp_path / "seen.json"
    settings = {"observers": [shell(f"cat > {seen}")]}
    async with open_test_session(tools=[touch], settings=settings, confirm=yes) as session:
        await session.call("touch", {"path": "a.txt"}, call_id="c1")
        given = json.loads(seen.read_text(encoding="utf-8"))
        assert given.pop("session_id") == session.id
        assert given.pop("cwd") == str(session.cwd)
    assert len(given.pop("call_hash")) == 64
    assert given == {
        "event": "before",
        "call_id": "c1",
        "parent": None,
        "tool": "touch",
        "layer": "core",
        "kind": "edit",
        "args": {"path": "a.txt"},
        "description": "Touch: path=a.txt",
        "effects": [{"effect": "write", "what": "file", "arg": "path"}],
        "locations": [{"path": "a.txt", "line": None}],
        "verdict": {"decision": None, "rule": "", "reasons": []},
    }


async def test_it_runs_where_agents_write_nothing_unless_it_names_a_folder(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    observers = [shell(f"pwd >> {seen}"), {**shell(f"pwd >> {seen}", cwd="."), "name": "here"}]
    assert (await said(*observers, folder=tmp_path)).status == "success"
    assert seen.read_text().split() == ["/", str(tmp_path / "work")]


async def test_code_in_the_workspace_is_not_part_of_it(tmp_path: Path) -> None:
    work, library, marker = tmp_path / "work", tmp_path / "library", tmp_path / "marker"
    for folder in (work, library):
        folder.mkdir()
    (library / "guard.py").write_text("import json, sys\njson.load(sys.stdin)\n")
    (work / "json.py").write_text(f"open({str(marker)!r}, 'w')\n")
    observer = {"command": [sys.executable, "-m", "guard"], "security": True}
    result = await said(observer, folder=tmp_path, environment={"PYTHONPATH": str(library)})
    assert result.status == "success"
    assert not marker.exists()


async def test_a_script_of_the_workspace_is_named_with_a_dot(tmp_path: Path) -> None:
    script = tmp_path / "work/hooks/guard.sh"
    script.parent.mkdir(parents=True)
    script.write_text("exit 2")
    result = await said({"command": ["/bin/sh", "./hooks/guard.sh"], "security": True}, folder=tmp_path)
    assert result["error"]["code"] == "denied_by_policy"


async def test_after_a_call_it_is_given_the_verdict_and_the_result(tmp_path: Path) -> None:
    seen = tmp_path / "seen.json"
    await said(shell(f"cat > {seen}", when="after"))
    given = json.loads(seen.read_text(encoding="utf-8"))
    assert (given["event"], given["verdict"]["decision"]) == ("after", "allow")
    assert (given["result"]["status"], given["result"]["said"]) == ("success", "hi")


async def test_it_is_told_what_those_before_it_say(tmp_path: Path) -> None:
    seen = tmp_path / "seen.json"
    first = shell(answer(decision="confirm", reason="late"), name="first")
    await said(first, shell(f"cat > {seen}"), confirm=yes)
    verdict = json.loads(seen.read_text(encoding="utf-8"))["verdict"]
    assert verdict == {"decision": "confirm", "rule": "observer:first", "reasons": ["first: late"]}


async def test_its_environment_holds_no_credentials(tmp_path: Path) -> None:
    seen = tmp_path / "env"
    around = {"GITHUB_TOKEN": "ghp_0123456789abcdefghij", "EDITOR": "ed"}
    await said(shell(f"env > {seen}"), environment=around)
    names = [line.partition("=")[0] for line in seen.read_text(encoding="utf-8").splitlines()]
    assert "EDITOR" in names
    assert "GITHUB_TOKEN" not in names


async def test_it_looks_at_what_its_matchers_name() -> None:
    for matchers in ({"tools": "touch"}, {"layer": "file"}, {"kind": ["edit", "execute"]}, {"tools": ["t*", "x"]}):
        assert (await said(shell("exit 2", **matchers))).ok, matchers
    for matchers in ({"tools": "s*"}, {"layer": ["core", "file"]}, {"kind": "other"}, {}):
        assert (await said(shell("exit 2", **matchers))).status == "denied", matchers


# What its answers mean


async def test_it_blocks() -> None:
    result = await said(shell(answer(decision="block", reason="not on a Sunday")))
    assert (result.status, RAN) == ("denied", [])
    assert "not on a Sunday" in result["error"]["message"]


async def test_it_asks_for_a_yes() -> None:
    person = ScriptedConfirmer("once")
    assert (await said(shell(answer(decision="confirm", reason="late")), confirm=person)).ok
    assert len(person.asked) == 1


async def test_it_replaces_arguments_and_adds_context() -> None:
    result = await said(shell(answer(args={"text": "good day"}, context="politer")))
    assert (RAN, result["context"], result["edited_by"]) == (["good day"], "politer", ["observer hook"])


async def test_it_cannot_allow() -> None:
    for security in (True, False):
        result = await said(shell(answer(decision="allow"), security=security))
        assert result.ok is not security
        assert "decision is 'allow'" in str(dict(result))


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("exit 2", "exit code 2"),
        ("echo bad >&2; exit 2", "bad"),
        ("echo bad; exit 2", "bad"),
        (answer(decision="none", reason="really") + "; exit 2", "really"),
        (answer(decision="none", args={"text": "other"}) + "; exit 2", "exit code 2"),
        ("echo '{broken'; exit 2", "{broken"),
    ],
)
async def test_exit_2_blocks_whatever_else_it_says(script: str, reason: str) -> None:
    result = await said(shell(script))
    assert (result.status, RAN) == ("denied", [])
    assert reason in result["error"]["message"]


@pytest.mark.parametrize("text", ["all is well", "", "[1]", "7"])
async def test_other_text_with_exit_0_is_a_note(text: str) -> None:
    heard: list[Any] = []
    settings = {"observers": [shell(f"printf '%s' '{text}'")]}
    async with open_test_session(tools=[say], settings=settings) as session:
        session.bus.subscribe(lambda event: heard.append(event) if hasattr(event, "observer") else None)
        result = await session.call("say", {"text": "hi"})
    assert result == {"status": "success", "said": "hi", "duration_ms": result["duration_ms"]}
    assert [(event.what, event.text) for event in heard] == ([("note", text)] if text else [])


async def test_json_in_a_json_text_is_unwrapped_once() -> None:
    inner = json.dumps(json.dumps({"decision": "block", "reason": "no"}))
    assert (await said(shell(f"printf '%s' '{inner}'"))).status == "denied"


@pytest.mark.parametrize(
    ("observer", "why"),
    [
        (shell("echo oops; exit 3"), "exit code 3: oops"),
        (shell("kill -9 $$"), "signal 9"),
        (shell("sleep 60", timeout=0.2), "longer than 0.2 s"),
        (shell("head -c 3000000 /dev/zero"), "more than 1,000,000 bytes"),
        (shell("while :; do echo yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy; done", timeout=60), "1,000,000 bytes"),
        (shell(answer(verdict="block")), "verdict"),
        (shell(answer(result={"said": "x"})), "before the call"),
        ({"name": "hook", "command": ["/nonexistent/program"]}, "cannot be started"),
    ],
)
@pytest.mark.parametrize("security", [True, False])
async def test_a_failure_blocks_where_it_guards_and_is_said_elsewhere(
    observer: dict[str, Any], why: str, security: bool
) -> None:
    result = await said({**observer, "security": security})
    assert result.status == ("denied" if security else "success")
    assert ([] if security else ["hi"]) == RAN
    assert why in (result["error"]["message"] if security else result["note"])


async def test_a_program_that_may_not_be_run_is_told_with_the_cure(tmp_path: Path) -> None:
    program = tmp_path / "look"
    program.write_text("#!/bin/sh\n")
    blocked = await said({"command": [str(program)], "security": True})
    assert f"{str(program)!r} cannot be started: Permission denied; make it executable" in blocked["error"]["message"]


async def test_after_a_call_it_rewrites_or_withholds() -> None:
    rewritten = await said(shell(answer(result={"said": "***"}), when="after"))
    assert (rewritten.status, rewritten["said"]) == ("success", "***")
    withheld = await said(shell("echo private >&2; exit 2", when=["before", "after"], tools="nothing"))
    assert withheld.ok
    withheld = await said(shell("echo private >&2; exit 2", when="after"))
    assert withheld.error_code == "result_withheld"
    assert "private" in withheld["error"]["message"]
    failing = await said(shell(answer(result={"status": "success"}), when="after", security=True))
    assert failing.error_code == "result_withheld"


# What becomes of it


async def test_what_it_leaves_behind_is_ended_and_holds_nothing_up(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    began = monotonic()
    assert (await said(shell(f"sleep 60 & echo $! > {pid}"))).ok
    assert monotonic() - began < 30
    await _gone(int(pid.read_text(encoding="utf-8")))


async def test_cancelling_the_call_ends_it_and_its_children(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    settings = {"observers": [shell(f"sleep 60 & echo $! > {pid}; wait", timeout=60)]}
    async with open_test_session(tools=[say], settings=settings) as session:
        with anyio.fail_after(20):
            async with anyio.create_task_group() as group:
                results: list[Any] = []

                async def call() -> None:
                    results.append(await session.call("say", {"text": "hi"}, call_id="c1"))

                group.start_soon(call)
                while not (pid.exists() and pid.read_text(encoding="utf-8").strip()):
                    await anyio.sleep(0.01)
                assert session.cancel("c1") == 1
    assert (results[0].status, RAN) == ("cancelled", [])
    await _gone(int(pid.read_text(encoding="utf-8")))


async def _gone(pid: int) -> None:
    with anyio.fail_after(30):
        while _alive(pid):
            await anyio.sleep(0.01)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        stat = Path(f"/proc/{pid}/stat")
        # What is dead and not reaped yet is gone for us.
        return not stat.exists() or stat.read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


# Configuration


def configured(tmp_path: Path, text: str, *, trusted: bool) -> Any:
    project = tmp_path / "project"
    project.mkdir(exist_ok=True)
    (project / "handrail.toml").write_text(text, encoding="utf-8")
    environment = {"HOME": str(tmp_path), "HANDRAIL_HOME": str(tmp_path / "home")}
    places = AppDirs.of(environment)
    file = project / "handrail.toml" if trusted else None
    return load_config(places=places, folder=project, environment=environment, file=file, admin=tmp_path / "none")


OBSERVER = '[[observers]]\ncommand = ["./check.sh", "./as-it-is"]\nsecurity = true\n'


def test_a_folder_that_nobody_trusts_brings_no_observers(tmp_path: Path) -> None:
    config = configured(tmp_path, OBSERVER, trusted=False)
    assert config.settings.observers == ()
    assert "observers" in config.ignored[0]


def test_a_program_is_found_from_the_folder_of_the_file_that_names_it(tmp_path: Path) -> None:
    (observer,) = configured(tmp_path, OBSERVER, trusted=True).settings.observers
    assert observer.command == (str(tmp_path / "project" / "check.sh"), "./as-it-is")
    assert (observer.called, observer.when, observer.security) == ("check.sh", ("before",), True)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[[observers]]\ncommand = []\n", "observers[0].command"),
        ('[[observers]]\ncommand = ["a"]\nevents = "before"\n', "events"),
        ('[[observers]]\ncommand = ["a"]\nwhen = "during"\n', "when"),
        ('[[observers]]\nname = "x"\n', "command"),
    ],
)
def test_a_mistake_in_an_observer_is_told_with_its_key(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(ConfigError) as raised:
        configured(tmp_path, text, trusted=True)
    assert told in str(raised.value)
    assert "handrail.toml:" in str(raised.value)


async def test_no_tool_writes_the_file_that_an_observer_is(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    script = tmp_path / "work" / "check.sh"
    script.write_text("#!/bin/sh\nexit 0\n", encoding="utf-8")
    script.chmod(0o755)
    settings = {"observers": [{"command": [str(script)]}]}
    async with open_test_session(tools=[touch], settings=settings, confirm=yes, folder=tmp_path) as session:
        assert (await session.call("touch", {"path": "check.sh"})).status == "denied"
        assert (await session.call("touch", {"path": "other.sh"})).ok


async def test_the_interpreter_of_an_observer_stays_what_others_run(tmp_path: Path) -> None:
    script = tmp_path / "check.py"
    script.write_text("", encoding="utf-8")
    settings = {"observers": [{"command": [sys.executable, str(script)]}]}
    async with open_test_session(tools=[touch], settings=settings, confirm=yes, folder=tmp_path) as session:
        protected = session.runtime.judging.protected
        assert script in protected
        assert Path(sys.executable) not in protected


@pytest.mark.parametrize(
    "script",
    [
        pytest.param("""echo '{"decision": "block"'""", id="cut-off"),
        pytest.param("""echo looking; echo '{"decision": "block"}'""", id="words-before"),
        pytest.param("""echo '{"decision": "none"}'; echo '{"decision": "block"}'""", id="two"),
    ],
)
async def test_an_answer_that_cannot_be_read_is_a_failure_and_no_note(script: str) -> None:
    assert (await said(shell(script, security=True))).status == "denied"
    assert "failed" in (await said(shell(script)))["note"]


async def test_an_answer_may_begin_with_a_byte_order_mark() -> None:
    assert (await said(shell("""printf '\\357\\273\\277{"decision": "block"}'"""))).status == "denied"


@pytest.mark.parametrize("folder", ["", ".", "bin", "{work}/bin"])
async def test_a_program_by_its_name_alone_is_never_one_that_agents_can_write(folder: str, tmp_path: Path) -> None:
    (tmp_path / "work" / "bin").mkdir(parents=True)
    for place in ("", "bin"):
        planted = tmp_path / "work" / place / "guard"
        planted.write_text("#!/bin/sh\nexit 0\n", encoding="utf-8")
        planted.chmod(0o755)
    path = f"{folder.format(work=tmp_path / 'work')}{os.pathsep}/usr/bin{os.pathsep}/bin"
    guard = {"command": ["guard"], "security": True}
    result = await said(guard, folder=tmp_path, environment={"PATH": path})
    assert result.status == "denied"
    assert "outside the workspace" in result["error"]["message"]

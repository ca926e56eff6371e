"""A PATH with a folder of the workspace leads to no program of the workspace on the host that nobody has approved."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.plugins.cli.test_grant_folders import Granting
from tests.plugins.cli.test_sandbox_network import run, working

from handrail import Session, ToolResult
from handrail.api.approval import Confirmer, no, yes
from handrail.session.open_session import open_configured_runtime

PLANTED = ("bash", "bwrap", "nvidia-smi", "rg", "prlimit", "sh", "setpriv")
UNASKED = (
    ("execute_cli", {"command": "echo hi"}),
    ("execute_cli", {"command": "uptime"}),
    ("execute_cli", {"command": "cat a.txt"}),
    ("execute_cli", {"command": "touch b.txt"}),
    ("find_files", {"search_text": "a"}),
    ("system_info", {}),
)


def plant(folder: Path, marker: Path) -> None:
    folder.mkdir(parents=True)
    for name in PLANTED:
        program = folder / name
        program.write_text(f'#!/bin/bash -p\n/usr/bin/touch {marker}\nPATH=/usr/bin:/bin exec {name} "$@"\n')
        program.chmod(0o755)


@pytest.mark.parametrize("folder", [".venv/bin", "node_modules/.bin"])
async def test_programs_that_lie_in_the_workspace_are_not_started(tmp_path: Path, folder: str) -> None:
    work, marker = tmp_path / "work", tmp_path / "marker"
    plant(work / folder, marker)
    (work / "a.txt").write_text("a\n")
    environment = {
        "PATH": f"{work / folder}:/usr/local/bin:/usr/bin:/bin",
        "HOME": str(tmp_path / "home"),
        "HANDRAIL_HOME": str(tmp_path / "state"),
    }
    async with (
        open_configured_runtime({}, cwd=work, environment=environment) as runtime,
        runtime.session(confirm=no) as session,
    ):
        for tool, arguments in UNASKED:
            result = await session.call(tool, arguments)
            assert result.ok, (tool, arguments, result)
            assert not marker.exists(), (tool, arguments)


async def test_a_bash_of_the_workspace_alone_is_an_error_that_names_folder_and_remedy(tmp_path: Path) -> None:
    work = tmp_path / "work"
    plant(work / "bin", tmp_path / "marker")
    environment = {
        "PATH": str(work / "bin"),
        "HOME": str(tmp_path / "home"),
        "HANDRAIL_HOME": str(tmp_path / "state"),
    }
    async with (
        open_configured_runtime({}, cwd=work, environment=environment) as runtime,
        runtime.session(confirm=no) as session,
    ):
        result = await session.call("execute_cli", {"command": "echo hi"})
    assert result.error_code == "tool_unavailable"
    assert str(work / "bin") in result["error"]["message"]
    assert "outside of an activated environment" in result["error"]["message"]
    assert not (tmp_path / "marker").exists()


async def test_no_command_changes_the_script_of_a_server_or_makes_one_that_is_missing(tmp_path: Path) -> None:
    work = tmp_path / "work"
    (work / "tools").mkdir(parents=True)
    script, missing = work / "tools/server.py", work / "tools/later.py"
    script.write_text("import time\ntime.sleep(60)\n")
    (work / "change.py").write_text(
        "import os\n"
        "for name in ('server.py', 'later.py'):\n"
        "    try:\n"
        "        open(os.path.join('tools', name), 'a').write('1 / 0')\n"
        "    except OSError:\n"
        "        pass\n"
    )
    servers = {
        "there": {"command": ["python3", "./tools/server.py"]},
        "later": {"command": ["python3", str(missing)]},
    }
    settings = {"mcp": {"servers": servers, "start_wait": 0}}
    environment = {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": str(tmp_path / "home"),
        "HANDRAIL_HOME": str(tmp_path / "state"),
    }
    async with (
        open_configured_runtime(settings, cwd=work, environment=environment) as runtime,
        runtime.session(confirm=no) as session,
    ):
        named = await session.call("execute_cli", {"command": "echo 1 / 0 >> tools/server.py"})
        unread = await session.call("execute_cli", {"command": "python3 change.py"})
    assert named.status == "denied"
    assert unread.ok, unread
    assert script.read_text() == "import time\ntime.sleep(60)\n"
    assert not missing.exists()


def environment_of(work: Path) -> dict[str, str]:
    """The variables of a host whose programs are the system's."""
    return {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": str(work.parent / "home"),
        "HANDRAIL_HOME": str(work.parent / "state"),
    }


@asynccontextmanager
async def unanswered_session(work: Path) -> AsyncGenerator[Session]:
    """A session in which each question gets a no."""
    async with (
        open_configured_runtime({}, cwd=work, environment=environment_of(work)) as runtime,
        runtime.session(confirm=no) as session,
    ):
        yield session


async def test_the_python_of_a_virtual_environment_runs_in_the_sandbox_unasked(tmp_path: Path) -> None:
    work = tmp_path / "work"
    (work / ".venv/bin").mkdir(parents=True)
    (work / ".venv/bin/python").symlink_to("/usr/bin/python3")
    (work / ".venv/bin/python3").symlink_to("python")
    (work / "x.py").write_text("print(sum(range(10)))\n")
    async with unanswered_session(work) as session:
        for command in (
            ".venv/bin/python x.py",
            ".venv/bin/python3 -c 'print(45)'",
            ".venv/bin/python - <<'EOF'\nprint(45)\nEOF",
            "mkdir t && cd t && ../.venv/bin/python ../x.py",
        ):
            result = await session.call("execute_cli", {"command": command})
            assert (result.status, result.get("stdout"), result.get("sandbox")) == ("success", "45\n", "bubblewrap"), (
                command
            )


async def test_a_virtual_environment_of_another_python_runs_in_the_sandbox_unasked(tmp_path: Path) -> None:
    # If the tests are run by a Python of the system, this is the same as above.
    work = tmp_path / "work"
    await anyio.run_process([sys.executable, "-m", "venv", "--without-pip", str(work / ".venv")])
    async with unanswered_session(work) as session:
        result = await session.call("execute_cli", {"command": ".venv/bin/python -c 'import sys; print(sys.prefix)'"})
    assert (result.status, result.get("stdout")) == ("success", f"{work}/.venv\n"), result


async def test_a_link_to_a_program_that_the_sandbox_does_not_show_is_asked_about(tmp_path: Path) -> None:
    work, elsewhere = tmp_path / "work", tmp_path / "elsewhere"
    (work / "bin").mkdir(parents=True)
    elsewhere.mkdir()
    for name in ("python3", "tool"):
        (elsewhere / name).write_text("#!/bin/sh\necho ran\n")
        (elsewhere / name).chmod(0o755)
    (work / "bin/python").symlink_to(elsewhere / "python3")
    (work / "bin/tool").symlink_to(elsewhere / "tool")
    (work / "bin/sh").symlink_to("/usr/bin/bash")
    (work / "bin/own").symlink_to("/usr/bin/python3")
    async with unanswered_session(work) as session:
        # The last ones are what the program itself would be asked about for.
        for command in (
            "bin/python x.py",
            "bin/tool",
            ". bin/own",
            "bin/sh -c 'rm -rf /srv/x'",
            "bin/own -c 'import socket'",
        ):
            result = await session.call("execute_cli", {"command": command})
            assert result.status == "denied", command
        # Whatever a command makes of a link, it leads to nothing that the sandbox does not show.
        script = f"import os\nos.unlink('bin/own')\nos.symlink('{elsewhere}/tool', 'bin/own')\nos.system('bin/own')\n"
        (work / "exchange.py").write_text(script)
        exchanged = await session.call("execute_cli", {"command": "bin/own exchange.py"})
        again = await session.call("execute_cli", {"command": "bin/own exchange.py"})
    assert "ran" not in exchanged["stdout"]
    assert again.status == "denied"


async def fetch_by_planted_ssh(folder: Path, person: Confirmer, **settings: Any) -> ToolResult:
    """Let git fetch twice by ssh, the second time with one on PATH that creates the file `marker`."""
    path = f"{folder}/work/.venv/bin:{os.environ['PATH']}"
    async with working(folder, person, {"PATH": path}, **settings) as session:
        await anyio.run_process(("git", "init", "-q", str(session.cwd)))
        await anyio.run_process(("git", "remote", "add", "origin", "ssh://nobody@127.0.0.1:1/x"), cwd=session.cwd)
        await run(session, "git fetch origin")
        planted = f"printf '#!/bin/sh\\ntouch {folder}/marker\\n' > .venv/bin/ssh"
        await run(session, f"mkdir -p .venv/bin; {planted}; chmod +x .venv/bin/ssh")
        assert (session.cwd / ".venv/bin/ssh").exists()
        return await run(session, "git fetch origin")


async def test_what_a_grant_allows_starts_no_program_that_a_sandboxed_command_has_put_on_path(tmp_path: Path) -> None:
    person = Granting()
    result = await fetch_by_planted_ssh(tmp_path, person)
    assert len(person.asked) == 1
    assert not (tmp_path / "marker").exists()
    assert "without the folders of PATH that agents can write" in result["note"]


async def test_what_a_rule_allows_starts_no_program_that_a_sandboxed_command_has_put_on_path(tmp_path: Path) -> None:
    rules = [{"tool": "execute_cli", "command": ["git", "fetch"], "decision": "allow"}]
    await fetch_by_planted_ssh(tmp_path, no, policy={"rules": rules})
    assert not (tmp_path / "marker").exists()


async def test_what_a_person_approves_gets_their_path_as_it_is(tmp_path: Path) -> None:
    result = await fetch_by_planted_ssh(tmp_path, yes)
    assert (tmp_path / "marker").exists()
    assert "folders of PATH" not in result.get("note", "")


@pytest.mark.parametrize("sandbox", ["auto", "none"])
async def test_a_rule_for_a_program_of_the_workspace_finds_it_on_path(tmp_path: Path, sandbox: str) -> None:
    work = tmp_path / "work"
    (work / ".venv/bin").mkdir(parents=True)
    (work / ".venv/bin/own-tool").write_text("#!/bin/sh\necho ran\n")
    (work / ".venv/bin/own-tool").chmod(0o755)
    rules = [{"tool": "execute_cli", "command": ["own-tool"], "decision": "allow"}]
    environment = {"PATH": f"{work}/.venv/bin:{os.environ['PATH']}"}
    settings = {"policy": {"rules": rules}} | ({"sandbox": {"use": ["none"]}} if sandbox == "none" else {})
    async with working(tmp_path, no, environment, **settings) as session:
        result = await run(session, "own-tool")
    assert (result["stdout"], result.get("sandbox")) == ("ran\n", None)

"""Programs that Handrail starts for its own purposes come from no folder that agents write."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from pydantic import BaseModel

from handrail import VisionBackend, Write, tool
from handrail.testing import open_test_session
from handrail.workers.host_programs import HostPrograms, find_own_programs

ROOT = Path(__file__).parents[3]
STARTING = {
    "subprocess.Popen",
    "subprocess.run",
    "anyio.open_process",
    "anyio.run_process",
    "asyncio.create_subprocess_exec",
}
# What starts the command of a call, in the folder that it is in already, and what a person installs with.
ELSEWHERE = {"windows_job.py", "_package_manager.py"}


def put(folder: Path, name: str = "tool") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / name
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    return program


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    put(folder / ".venv/bin")
    return folder


@pytest.fixture
def own(tmp_path: Path) -> Path:
    return put(tmp_path / "own/bin")


def programs(work: Path, *folders: str | Path) -> HostPrograms:
    return HostPrograms({"PATH": os.pathsep.join(map(str, folders))}, [work])


def test_a_program_of_the_workspace_is_passed_over_for_the_next_on_path(work: Path, own: Path) -> None:
    assert programs(work, work / ".venv/bin", own.parent).find("tool") == str(own)


@pytest.mark.parametrize("folder", ["{work}/.venv/bin", "{work}/../work/.venv/bin", "", ".", "bin", "{link}"])
def test_folders_of_the_workspace_and_of_the_current_folder_are_left_out(
    work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    monkeypatch.chdir(put(work / "bin").parent)
    put(work / "bin/bin")
    (tmp_path / "link").symlink_to(work / ".venv/bin")
    found = programs(work, folder.format(work=work, link=tmp_path / "link"))
    assert found.find("tool") is None
    assert "tool" in found.why_missing("tool")
    assert "Start Handrail outside" in found.why_missing("tool")


def test_a_link_in_the_workspace_is_left_out_wherever_it_leads_now(work: Path, own: Path) -> None:
    (work / "bin").symlink_to(own.parent)
    assert programs(work, work / "bin").find("tool") is None


def test_a_program_that_is_a_link_into_the_workspace_is_passed_over(work: Path, own: Path, tmp_path: Path) -> None:
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked/tool").symlink_to(work / ".venv/bin/tool")
    assert programs(work, tmp_path / "linked", own.parent).find("tool") == str(own)


def test_what_such_a_program_starts_is_looked_up_in_the_same_folders(work: Path, own: Path) -> None:
    assert programs(work, work / ".venv/bin", "", own.parent).environment["PATH"] == str(own.parent)
    # Nothing is not the current folder.
    assert os.path.isabs(programs(work, work / ".venv/bin").environment["PATH"])


@pytest.mark.parametrize("root", ["/", "/usr"])
def test_a_workspace_that_holds_the_system_leaves_the_systems_programs(root: str) -> None:
    assert HostPrograms({"PATH": "/usr/bin"}, [Path(root)]).find("sh") == "/usr/bin/sh"


def test_a_workspace_in_a_folder_of_the_system_is_a_workspace() -> None:
    assert HostPrograms({"PATH": "/usr/bin"}, [Path("/usr/bin")]).find("sh") is None


def test_where_no_session_is_known_the_current_folder_stands_for_its_workspace(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{work}/.venv/bin")
    monkeypatch.chdir(work)
    assert find_own_programs().find("tool") is None


# Where they run


def starts_without_folder(source: str) -> Iterator[int]:
    for node in ast.walk(ast.parse(source)):
        if (
            isinstance(node, ast.Call)
            and ast.unparse(node.func) in STARTING
            and not any(keyword.arg == "cwd" for keyword in node.keywords)
        ):
            yield node.lineno


def test_every_program_that_is_started_is_given_a_folder_to_run_in() -> None:
    sources = [*(ROOT / "core/src").rglob("*.py"), *(ROOT / "plugins").glob("*/src/**/*.py")]
    assert len(sources) > 300
    found = [
        f"{source}:{line}"
        for source in sources
        if source.name not in ELSEWHERE and source.parent.name != "testing"
        for line in starts_without_folder(source.read_text(encoding="utf-8"))
    ]
    assert found == []


class Started(BaseModel):
    command: tuple[str, ...] = ()
    cwd: str | None = None


class Own(VisionBackend):
    """A backend that starts a server."""

    name = "own"
    capabilities: ClassVar[frozenset[str]] = frozenset({"ocr"})
    Config = Started


@tool(effects=[Write("file", arg="path")])
async def touch(path: str) -> None:
    """Write an empty file."""


@pytest.mark.parametrize(
    ("table", "kept", "free"),
    [
        pytest.param({"command": ["python3", "./tools/a.py"]}, ["tools/a.py"], ["tools/b.py"], id="with-a-dot"),
        pytest.param({"command": ["{work}/tools/a.py"]}, ["tools/a.py"], ["tools/b.py"], id="by-its-whole-path"),
        pytest.param(
            {"command": ["python3", "tools/a.py"], "cwd": "."}, ["tools/a.py"], ["b.py"], id="in-the-workspace"
        ),
        pytest.param({"command": ["python3", "a.py"], "cwd": "tools"}, ["tools/a.py"], ["a.py"], id="in-a-folder"),
        pytest.param({"command": ["./tools/b", "../work/c"]}, ["tools/b", "c"], ["tools/a.py"], id="not-there-yet"),
        pytest.param({"command": ["python3", "-m", "tools"]}, [], ["tools/a.py"], id="nothing-of-the-workspace"),
        pytest.param({"command": ["sh", "-c", "./tools/a.py " * 1000]}, [], ["tools/a.py"], id="no-name-of-a-file"),
    ],
)
@pytest.mark.parametrize("kind", ["server", "observer", "backend"])
async def test_no_tool_writes_what_they_are_configured_to_run(
    tmp_path: Path, table: dict[str, Any], kept: list[str], free: list[str], kind: str
) -> None:
    work = tmp_path / "work"
    (work / "tools").mkdir(parents=True)
    (work / "tools/a.py").touch()
    table = {**table, "command": [word.format(work=work) for word in table["command"]]}
    settings = {
        "server": {"mcp": {"servers": {"notes": table}}},
        "observer": {"observers": [{**table, "tools": "no_such_tool"}]},
        "backend": {"backends": {"own": table}},
    }[kind]
    async with open_test_session(tools=[touch], backends=[Own], settings=settings, folder=tmp_path) as session:
        rules = {path: (await session.call("touch", {"path": path}))["error"]["details"] for path in (*kept, *free)}
    assert [path for path, told in rules.items() if told["rule"] == "effects:protected"] == kept

"""A PATH with a folder of the workspace leads to no program of the workspace on the host that nobody has approved."""

from __future__ import annotations

from pathlib import Path

import pytest

from handrail.asking.confirm import no
from handrail.opening import found_runtime

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
    async with found_runtime({}, cwd=work, environment=environment) as runtime, runtime.session(confirm=no) as session:
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
    async with found_runtime({}, cwd=work, environment=environment) as runtime, runtime.session(confirm=no) as session:
        result = await session.call("execute_cli", {"command": "echo hi"})
    assert result.error_code == "tool_unavailable"
    assert str(work / "bin") in result["error"]["message"]
    assert "outside of an activated environment" in result["error"]["message"]
    assert not (tmp_path / "marker").exists()

"""Programs that Handrail starts for its own purposes come from no folder that agents write."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from handrail.running.programs import HostPrograms, own_programs


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
    assert own_programs().find("tool") is None

"""Scripts and workflows of skills, each call through the whole path."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from handrail.testing import ScriptedConfirmer
from handrail_skills.skill import Skill, SkillFile, read_skill

from .shelf import enable, own, run, session_in, write

PLAN = """
name: greet
description: Says hello in a file.
parameters:
  whom: {description: Who is greeted.}
steps:
  - name: write
    tool: execute_cli
    args: {command: "printf 'hello, ${whom}' > greeting.txt"}
  - name: read
    tool: execute_cli
    args: {command: cat greeting.txt}
    expect: {stdout: "hello, B"}
"""
SCRIPT = "import os, sys; print(sys.argv[1:], os.getcwd()); open('made.txt', 'w').write('x')"


async def executed(folder: Path, **args: Any) -> Any:
    async with session_in(folder, "tidy") as session:
        return await session.call("execute_skill", {"skill_name": "tidy", **args})


async def test_a_workflow_runs_step_by_step(tmp_path: Path) -> None:
    write(own(tmp_path), workflows__greet_dot_yaml=PLAN)
    done = await executed(tmp_path, params={"whom": "B"})
    assert (done["status"], done["steps_executed"]) == ("success", 2)
    assert [step["name"] for step in done["steps"]] == ["write", "read"]
    assert (tmp_path / "work" / "greeting.txt").read_text() == "hello, B"


async def test_a_workflow_stops_at_the_first_failure_with_its_own_result(tmp_path: Path) -> None:
    write(own(tmp_path), workflows__greet_dot_yaml=PLAN)
    done = await executed(tmp_path, params={"whom": "C"})
    assert done["status"] == "error"
    assert "step 2 (read) is not as expected" in done["error"]["message"]
    assert done["steps"][1]["result"]["stdout"] == "hello, C"


async def test_each_step_is_judged_for_itself(tmp_path: Path) -> None:
    write(own(tmp_path), workflows__bad_dot_yaml=PLAN.replace("cat greeting.txt", "rm -rf --no-preserve-root /"))
    done = await executed(tmp_path, params={"whom": "B"})
    assert done["steps"][1]["result"]["error"]["code"] == "denied_by_policy"


@pytest.mark.parametrize(
    ("args", "told"),
    [
        ({}, "needs the parameter 'whom'"),
        ({"params": {"whom": "B", "how": 1}}, "no parameter 'how'"),
        ({"workflow": "../../other"}, "has no workflow '../../other'; there are: greet"),
    ],
)
async def test_a_workflow_that_cannot_run_says_why(tmp_path: Path, args: dict[str, Any], told: str) -> None:
    write(own(tmp_path), workflows__greet_dot_yaml=PLAN)
    done = await executed(tmp_path, **args)
    assert done["status"] == "error"
    assert told in done["error"]["message"]


async def test_loading_shows_workflows_with_their_parameters(tmp_path: Path) -> None:
    write(own(tmp_path), workflows__greet_dot_yaml=PLAN)
    async with session_in(tmp_path, "tidy") as session:
        loaded = await session.call("load_skill", {"skill_name": "tidy"})
    assert loaded["workflows"] == [
        {
            "workflow": "greet",
            "description": "Says hello in a file.",
            "params": {"whom": {"description": "Who is greeted."}},
        }
    ]


async def test_a_script_runs_in_the_sandbox_in_the_sessions_folder(tmp_path: Path) -> None:
    write(own(tmp_path), scripts__run_dot_py=f"{SCRIPT}\nopen('/etc/passwd', 'a')")
    enable(tmp_path, "tidy")
    async with session_in(tmp_path) as session:
        wanted = {"skill_name": "tidy", "file_path": "scripts/run.py", "args": ["a b", "$HOME"]}
        done = await session.call("run_skill_script", wanted)
    assert done["stdout"] == f"['a b', '$HOME'] {tmp_path / 'work'}\n"
    assert done["exit_code"] == 1
    assert (tmp_path / "work" / "made.txt").read_text() == "x"


async def test_a_script_that_nobody_approved_cannot_change_what_undo_does_not_keep(tmp_path: Path) -> None:
    write(own(tmp_path), scripts__run_dot_py="import os\nos.remove('large.bin')")
    enable(tmp_path, "tidy")
    async with session_in(tmp_path, undo={"enabled": True, "max_file_bytes": 1_000_000}) as session:
        (tmp_path / "work/large.bin").write_bytes(bytes(2_000_000))
        done = await session.call("run_skill_script", {"skill_name": "tidy", "file_path": "scripts/run.py"})
    assert done["exit_code"] == 1
    assert (tmp_path / "work/large.bin").exists()


async def test_without_a_sandbox_a_script_is_asked_about(tmp_path: Path) -> None:
    write(own(tmp_path), scripts__run_dot_py=SCRIPT)
    enable(tmp_path, "tidy")
    person = ScriptedConfirmer("deny")
    wanted = {"skill_name": "tidy", "file_path": "scripts/run.py"}
    async with session_in(tmp_path, confirm=person, sandbox={"use": ["none"]}) as session:
        done = await session.call("run_skill_script", wanted)
    assert done.error_code == "denied_by_user"
    assert not (tmp_path / "work" / "made.txt").exists()


async def test_a_script_that_has_changed_since_is_not_run(tmp_path: Path) -> None:
    folder = write(own(tmp_path), scripts__run_dot_py=SCRIPT)
    enable(tmp_path, "tidy")
    async with session_in(tmp_path) as session:
        (folder / "scripts" / "run.py").write_text("print('other')")
        done = await session.call("run_skill_script", {"skill_name": "tidy", "file_path": "scripts/run.py"})
    assert "has changed since it was enabled" in done["error"]["message"]


def test_what_is_used_of_a_skill_is_what_its_fingerprint_stands_for(tmp_path: Path) -> None:
    folder = write(own(tmp_path), workflows__greet_dot_yaml=PLAN, scripts__run_dot_py=SCRIPT)
    skill = read_skill(folder, "user", "you")
    checked = skill.fingerprint()
    write(own(tmp_path), workflows__greet_dot_yaml=PLAN.replace("hello", "bye"), scripts__run_dot_py="import evil")
    assert skill.workflow("greet").steps[1].expect == {"stdout": "hello, B"}
    skill.put(tmp_path / "copy")
    assert (tmp_path / "copy" / "scripts" / "run.py").read_text() == SCRIPT
    assert skill.fingerprint() == checked != read_skill(folder, "user", "you").fingerprint()


@pytest.mark.parametrize("directory", ["one\n- {digest} tools", "one\x1b[2K", "one\x85"])
def test_a_name_with_a_control_character_keeps_a_skill_from_being_enabled(tmp_path: Path, directory: str) -> None:
    odd = write(own(tmp_path)) / directory.format(digest="0" * 64)
    odd.mkdir()
    (odd / "run.py").write_text("print()")
    done = enable(tmp_path, "tidy")
    assert done.returncode == 1
    assert "has a control character" in done.stderr
    assert "\x1b" not in run(tmp_path, "skills", "list").stdout


def test_a_name_cannot_stand_for_two_files_in_a_fingerprint(tmp_path: Path) -> None:
    digest = hashlib.sha256(b"import evil").hexdigest()
    skills: list[Skill] = []
    for files in ({f"one\n- {digest} two": b"import good"}, {"one": b"import good", "two": b"import evil"}):
        skill = read_skill(write(own(tmp_path)), "user", "you")
        vars(skill)["held"] = {name: SkillFile(data, runs=False) for name, data in files.items()}
        skills.append(skill)
    assert skills[0].fingerprint() != skills[1].fingerprint()

"""Skills that agents write wait for a person."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from handrail.fs.app_dirs import AppDirs
from handrail.testing import ScriptedConfirmer
from handrail_skills.skill import read_skill
from handrail_skills.skill_copies import SkillCopies

from .shelf import enable, own, rows, run, session_in, write

NEW = {"name": "tea", "description": "Makes tea: when asked for it.", "instructions": "Boil water."}


async def called(folder: Path, name: str, args: dict[str, Any], *enabled: str) -> Any:
    async with session_in(folder, *enabled, confirm=ScriptedConfirmer("once")) as session:
        return await session.call(name, args)


async def test_a_written_skill_is_asked_about_and_stays_off_until_a_person_enables_it(tmp_path: Path) -> None:
    async with session_in(tmp_path, "tea") as session:
        assert (await session.call("create_skill", NEW)).error_code == "no_confirmer"
    made = await called(tmp_path, "create_skill", NEW, "tea")
    assert (made["status"], made["enabled"]) == ("success", False)
    assert rows(tmp_path)["tea"]["enabled"] is False
    async with session_in(tmp_path, "tea") as session:
        assert "load_skill" not in [tool.name for tool in await session.tools()]
    enable(tmp_path, "tea")
    async with session_in(tmp_path) as session:
        assert (await session.call("load_skill", {"skill_name": "tea"}))["instructions"] == "Boil water.\n"


async def test_no_mode_and_no_grant_has_a_skill_written_unasked(tmp_path: Path) -> None:
    path = write(own(tmp_path)) / "SKILL.md"
    before = path.read_text()
    async with session_in(tmp_path, mode="permissive") as session:
        assert (await session.call("create_skill", NEW)).error_code == "no_confirmer"
        edit = {"skill_name": "tidy", "content": before.replace("well", "better")}
        assert (await session.call("edit_skill", edit)).error_code == "no_confirmer"
    assert path.read_text() == before


async def test_an_edited_skill_is_off_again(tmp_path: Path) -> None:
    path = write(own(tmp_path)) / "SKILL.md"
    enable(tmp_path, "tidy")
    content = path.read_text().replace("well", "better")
    done = await called(tmp_path, "edit_skill", {"skill_name": "tidy", "content": content})
    assert "+Do it better." in done["diff"]
    assert rows(tmp_path)["tidy"]["enabled"] is False


@pytest.mark.parametrize(
    ("tool", "args", "told"),
    [
        ("create_skill", {**NEW, "name": "../tea"}, "'../tea' is no name"),
        ("create_skill", {**NEW, "name": "Tea"}, "'Tea' is no name"),
        ("create_skill", {**NEW, "name": "tidy"}, "there is a skill 'tidy' already"),
        ("create_skill", {**NEW, "name": "web-research"}, "there is a skill 'web-research' already"),
        ("edit_skill", {"skill_name": "web-research", "content": "x"}, "belongs to the plugin skills"),
        ("edit_skill", {"skill_name": "tidy", "content": "no fences"}, "does not begin with a line"),
        ("edit_skill", {"skill_name": "tidy", "content": "---\nname: a\ndescription: b\n---\n"}, "calls the skill 'a'"),
        ("edit_skill", {"skill_name": "tidyy", "content": "x"}, "did you mean 'tidy'?"),
    ],
)
async def test_what_cannot_be_written_says_why(tmp_path: Path, tool: str, args: dict[str, Any], told: str) -> None:
    before = (write(own(tmp_path)) / "SKILL.md").read_bytes()
    done = await called(tmp_path, tool, args)
    assert done["status"] == "error"
    assert told in done["error"]["message"]
    assert (own(tmp_path) / "tidy" / "SKILL.md").read_bytes() == before


async def test_an_agent_cannot_enable_a_skill_by_the_shell(tmp_path: Path) -> None:
    write(own(tmp_path))
    async with session_in(tmp_path) as session:
        done = await session.call("execute_cli", {"command": "handrail skills enable tidy"})
    assert done["status"] == "denied"
    assert rows(tmp_path)["tidy"]["enabled"] is False


def test_a_copy_is_brought_up_to_date_unless_it_was_edited(tmp_path: Path) -> None:
    assert run(tmp_path, "skills", "copy", "web-research").returncode == 0
    assert "is there already" in run(tmp_path, "skills", "copy", "web-research").stderr
    assert run(tmp_path, "skills", "update").stdout == "web-research is as it was\n"
    (own(tmp_path) / "web-research" / "notes.md").write_text("Mine.")
    assert run(tmp_path, "skills", "update").stdout == "web-research is yours and stays as it is\n"


def test_a_newer_skill_replaces_the_copy_that_nobody_has_edited(tmp_path: Path) -> None:
    places = AppDirs.of({"HANDRAIL_HOME": str(tmp_path / "state")})
    brought = write(tmp_path / "plugin", body="First.", notes_dot_md="Old.")
    copies = SkillCopies(places)
    copy = copies.make(read_skill(brought, "plugin", "theirs"))
    (brought / "notes.md").unlink()
    newer = read_skill(write(tmp_path / "plugin", body="Second."), "plugin", "theirs")
    assert copies.update(newer) == "updated"
    assert [file.name for file in copy.iterdir()] == ["SKILL.md"]
    assert "Second." in (copy / "SKILL.md").read_text()
    (copy / "SKILL.md").write_text((copy / "SKILL.md").read_text() + "Mine.")
    newest = read_skill(write(tmp_path / "plugin", body="Third."), "plugin", "theirs")
    assert copies.update(newest) == "edited"
    assert "Mine." in (copy / "SKILL.md").read_text()


def test_check_says_what_is_wrong(tmp_path: Path) -> None:
    plan = "name: x\nsteps: [{tool: execute_cli, args: {comand: ls}}, {tool: nothing}]"
    folder = write(tmp_path, head="metadata: {adk_additional_tools: nothing}\n", workflows__a_dot_yaml=plan)
    done = run(tmp_path, "skills", "check", folder)
    assert done.returncode == 1
    assert done.stdout.splitlines()[1:] == [
        "  its frontmatter names the tool 'nothing', which is not here",
        "  workflow 'a', step 1: execute_cli has no argument 'comand'; did you mean 'command'?",
        "  workflow 'a', step 1: execute_cli needs the argument 'command'",
        *[line for line in done.stdout.splitlines() if "step 2: there is no tool 'nothing'" in line],
    ]

"""The report of a plan's run: one file, and nothing of a hostile result runs in it."""

from __future__ import annotations

import base64
import os
import stat
from pathlib import Path

import pytest

from handrail import tool
from handrail.plans.html_report import write_report
from handrail.plans.plan_file import ReplayPlan
from handrail.plans.replay import run_plan
from handrail.testing import open_test_session

HOSTILE = "</pre><script>alert(1)</script><img src=x onerror=alert(2)>"


@tool()
async def hostile() -> dict[str, str]:
    """Say something nasty. Returns it."""
    return {"said": HOSTILE, "image_b64": '"><script>alert(3)</script>'}


async def test_a_hostile_result_is_text(tmp_path: Path) -> None:
    plan = ReplayPlan.model_validate({"name": HOSTILE, "steps": [{"tool": "hostile", "name": HOSTILE}]})
    async with open_test_session(tools=[hostile]) as session:
        steps = await run_plan(plan, session)
        page = write_report(tmp_path / "report.html", plan, steps, session).read_text()
    assert "<script" not in page
    assert "<img src=x" not in page
    assert "default-src &#39;none&#39;" in page or "default-src 'none'" in page
    assert "&lt;script&gt;alert(1)" in page


async def test_the_report_is_for_its_owner_only(tmp_path: Path) -> None:
    plan = ReplayPlan.model_validate({"name": "x", "steps": [{"tool": "get_action_history"}]})
    async with open_test_session() as session:
        path = write_report(tmp_path / "report.html", plan, await run_plan(plan, session), session)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


PNG = b"\x89PNG\r\n\x1a\n\0\0\0\r"


@pytest.mark.parametrize(("kept", "shown"), [("picture", True), ("text", False), ("link", False), ("linked", False)])
async def test_a_report_holds_no_file_but_pictures_beside_the_plan(tmp_path: Path, kept: str, shown: bool) -> None:
    """If this fails, an agent reads any file of the person's in the report."""
    work, mine = tmp_path / "work", tmp_path / "mine"
    for folder in (work, mine):
        folder.mkdir()
    (mine / "1.png").write_bytes(PNG + b"hunter2")
    if kept == "linked":
        (work / "p").symlink_to(mine)
    else:
        (work / "p").mkdir()
    if kept == "link":
        (work / "p" / "1.png").symlink_to(mine / "1.png")
    elif kept != "linked":
        (work / "p" / "1.png").write_bytes((PNG if kept == "picture" else b"") + b"hunter2")
    plan = ReplayPlan.model_validate({"name": "x", "steps": [{"tool": "missing", "picture": "p/1.png"}]})
    async with open_test_session() as session:
        steps = await run_plan(plan, session)
        page = write_report(tmp_path / "report.html", plan, steps, session, beside=work).read_text()
    assert (base64.b64encode(PNG + b"hunter2").decode() in page) is shown
    assert shown or "data:image" not in page


async def test_a_report_is_not_written_through_links_that_agents_put_there(tmp_path: Path) -> None:
    """If this fails, an agent that can see a process's number overwrites any file of the person's."""
    mine, report = tmp_path / "mine", tmp_path / "report.html"
    mine.write_text("mine")
    for name in (report.name, f".{report.name}.{os.getpid()}"):
        (tmp_path / name).symlink_to(mine)
    plan = ReplayPlan.model_validate({"name": "x", "steps": [{"tool": "get_action_history"}]})
    async with open_test_session() as session:
        write_report(report, plan, await run_plan(plan, session), session)
    assert mine.read_text() == "mine"
    assert report.is_file()
    assert not report.is_symlink()

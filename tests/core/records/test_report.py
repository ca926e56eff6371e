"""The report of a plan's run: one file, and nothing of a hostile result runs in it."""

from __future__ import annotations

import stat
from pathlib import Path

from handrail import tool
from handrail.records.plans import Plan
from handrail.records.replaying import run_plan
from handrail.records.report import write_report
from handrail.testing import open_test_session

HOSTILE = "</pre><script>alert(1)</script><img src=x onerror=alert(2)>"


@tool()
async def hostile() -> dict[str, str]:
    """Say something nasty. Returns it."""
    return {"said": HOSTILE, "image_b64": '"><script>alert(3)</script>'}


async def test_a_hostile_result_is_text(tmp_path: Path) -> None:
    plan = Plan.model_validate({"name": HOSTILE, "steps": [{"tool": "hostile", "name": HOSTILE}]})
    async with open_test_session(tools=[hostile]) as session:
        steps = await run_plan(plan, session)
        page = write_report(tmp_path / "report.html", plan, steps, session).read_text()
    assert "<script" not in page
    assert "<img src=x" not in page
    assert "default-src &#39;none&#39;" in page or "default-src 'none'" in page
    assert "&lt;script&gt;alert(1)" in page


async def test_the_report_is_for_its_owner_only(tmp_path: Path) -> None:
    plan = Plan.model_validate({"name": "x", "steps": [{"tool": "get_action_history"}]})
    async with open_test_session() as session:
        path = write_report(tmp_path / "report.html", plan, await run_plan(plan, session), session)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600

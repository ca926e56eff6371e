"""A session that a calculator, an editor and a file dialog were used in, as a plan: done again on a fresh desktop, and stopped where it is not so."""

from __future__ import annotations

import re
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

import handrail
from handrail import Session
from handrail.api.approval import yes
from handrail.audit.step_recorder import StepRecorder
from handrail.cli.record import build_recording, read_session_calls
from handrail.plans.html_report import read_before_and_now, write_report
from handrail.plans.plan_file import ReplayPlan, read_plan
from handrail.plans.plan_recorder import PlanRecording, RecordingOptions
from handrail.plans.replay import StepResult, run_plan

pytestmark = pytest.mark.anyio
WINDOW = Path(__file__).parents[1] / "plugins" / "gui" / "plain_window.py"
NOTE = "Twelve and a half — 漢字\n"


@asynccontextmanager
async def desktop(folder: Path) -> AsyncGenerator[Session]:
    folder.mkdir(exist_ok=True)
    async with handrail.open(desktop="private", confirm=yes, cwd=folder) as session:
        yield session


async def do(session: Session, tool: str, **args: Any) -> Any:
    result = await session.call(tool, args)
    assert result.status == "success", result
    return result


def key(seen: Any, text: str) -> str:
    (found,) = [each["id"] for each in seen["ui_elements"] if each["text"] == text]
    return found


async def work(session: Session, file: str) -> None:
    """What an agent does: ids of elements, points of pictures, names, and whatever has the keyboard."""
    await do(session, "execute_cli", command="galculator & mousepad & echo in ${HOME}")
    await do(session, "wait", seconds=20, until={"window": "Mousepad"})
    await do(session, "wait", seconds=20, until={"window": "galculator"})
    await do(session, "window_focus", title="galculator")
    seen = await do(session, "observe_screen", image="raw")
    await do(session, "execute_gui", action="click", element_id=key(seen, "7"))
    # A model that does not see tells where in the picture the next one is.
    box = next(each["bbox"] for each in seen["ui_elements"] if each["text"] == "8")
    await do(session, "execute_gui", action="click", x=(box[0] + box[2]) // 2, y=(box[1] + box[3]) // 2)
    await do(session, "execute_accessible", action="read", control_type="text", window="galculator")
    await do(session, "window_focus", title="Mousepad")
    await do(session, "observe_screen")
    await do(session, "execute_gui", action="type", text=NOTE)
    await do(session, "execute_gui", action="hotkey", key="ctrl+s")
    await do(session, "wait", seconds=10, until={"window": "Save As"})
    await do(session, "observe_screen", image="raw")
    await do(session, "execute_gui", action="type", text=f"{session.workspace[0]}/{file}")
    await do(session, "execute_gui", action="press_key", key="enter")
    await do(session, "wait", seconds=10, until={"window": file})
    assert (await session.call("read_file", {"file_path": "nothing-there"})).status == "error"


@pytest.fixture(scope="module")
async def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[PlanRecording, PlanRecording, str]:
    """The work as a plan: of the tape; and of the audit. And the folder that it was done in."""
    folder = tmp_path_factory.mktemp("recorded")
    async with desktop(folder) as session:
        tape = session.recorder.tape = StepRecorder()
        await work(session, "first.txt")
        wishes = RecordingOptions("A note", str(folder), {"file": "first.txt"})
        live = await build_recording(tape.made, session, wishes)
        made, workspace = read_session_calls(session.id, session.runtime.places)
        assert workspace == str(folder)
        return live, await build_recording(made, session, wishes), str(folder)


def saved(recording: PlanRecording, folder: Path) -> ReplayPlan:
    return read_plan(recording.write(folder / "note.yaml"))


@pytest.mark.timeout(120)
async def test_a_plan_names_what_lasts_and_nothing_of_the_session(
    made: tuple[PlanRecording, PlanRecording, str], tmp_path: Path
) -> None:
    live, past, folder = made
    plan = saved(live, tmp_path)
    text = (tmp_path / "note.yaml").read_text()
    assert not re.search(r"\b[eo]\d+\b", text), text
    assert folder not in text
    assert "first.txt" in text.split("steps:")[0]
    assert "first.txt" not in text.split("steps:")[1]
    clicks = [step for step in plan.steps if step.args.get("action") == "click"]
    assert [step.find["element_id"].text for step in clicks] == ["7", "8"]
    assert all(step.expect["effect"] == "confirmed" for step in clicks)
    assert plan.steps[0].args["command"].endswith("echo in $${HOME}")
    typed = next(step for step in plan.steps if step.args.get("action") == "type")
    assert "Mousepad" in typed.front
    assert live.left_out == ["read_file: its status was error"]
    # The audit says the same, with the same pictures.
    assert yaml.safe_dump(live.content["steps"]) == yaml.safe_dump(past.content["steps"])
    assert live.pictures == past.pictures
    assert live.pictures


@pytest.mark.timeout(120)
async def test_it_is_done_again_on_a_fresh_desktop_with_another_name(
    made: tuple[PlanRecording, PlanRecording, str], tmp_path: Path
) -> None:
    plan = saved(made[0], tmp_path)
    async with desktop(tmp_path / "again") as session:
        steps = await run_plan(plan, session, params={"file": "second.txt"})
    assert [step.failure for step in steps if step.failure] == []
    assert (tmp_path / "again" / "second.txt").read_text() == NOTE
    read = next(step for step in steps if step.args.get("action") == "read")
    assert read.result is not None
    assert read.result["value"] == "78"
    assert steps[0].result is not None
    assert steps[0].result["stdout"].startswith("in /")


def changed(recording: PlanRecording, folder: Path) -> ReplayPlan:
    """The same plan where the calculator has become a program without keys."""
    saved(recording, folder)
    other = f"{sys.executable} {WINDOW} /dev/null plain galculator &"
    (folder / "other.yaml").write_text((folder / "note.yaml").read_text().replace("galculator &", other))
    return read_plan(folder / "other.yaml")


@pytest.mark.timeout(120)
async def test_a_changed_application_stops_it_with_a_picture_of_before_and_now(
    made: tuple[PlanRecording, PlanRecording, str], tmp_path: Path
) -> None:
    plan = changed(made[0], tmp_path)
    async with desktop(tmp_path / "again") as session:
        steps = await run_plan(plan, session)
        page = write_report(tmp_path / "report.html", plan, steps, session, beside=tmp_path).read_text()
    last: StepResult = steps[-1]
    assert len(steps) < plan.count
    assert last.step.sought() == {"element_id": {"role": "toggle button", "text": "7", "window": "galculator"}}
    assert last.failure is not None
    assert last.result is None, "nothing was clicked"
    before, now = read_before_and_now(last, tmp_path)
    assert before is not None
    assert now is not None
    assert before != now
    assert before == made[0].pictures[Path(last.step.picture).name]
    article = page.split("<article")[-1]
    assert "before this step, as it was recorded" in article
    assert article.count("<img") == 2

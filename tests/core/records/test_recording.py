"""Calls as a plan: what is kept of them, what becomes a parameter, and what is never written."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any

import pytest

from handrail import ConfigError, Element, HandrailError, Input, Read, Rect, ToolContext, Transform, Window, tool
from handrail.api.approval import yes
from handrail.audit.step_recorder import StepRecorder
from handrail.cli.record import build_recording, read_session_calls
from handrail.plans.plan_file import ReplayPlan, read_plan
from handrail.plans.plan_recorder import PlanRecording, RecordingOptions
from handrail.plans.replay import run_plan
from handrail.session.session import Session
from handrail.testing import open_test_session

HANDRAIL = Path(sys.executable).with_name("handrail")
SHOWN: list[Element] = [
    Element("button", "Save", Rect(10, 10, 40, 20), actions=("click",), window="Editor", fingerprint="a"),
    Element("button", "Copy", Rect(60, 10, 40, 20), actions=("click",), window="Editor", fingerprint="b"),
    Element("button", "Copy", Rect(110, 10, 40, 20), actions=("click",), window="Editor", fingerprint="c"),
    Element("password text", "Code", Rect(10, 50, 90, 20), frozenset({"password"}), window="Editor", fingerprint="d"),
]


@tool(effects=[Read("screen")], trusted=True)
async def look(window: str = "", *, context: ToolContext) -> dict[str, Any]:
    """Look. Returns ids."""
    editor = Window("w1", "Editor", "editor", 1, Rect(0, 0, 200, 100), active=True)
    seen = context.observations.add(SHOWN, transform=Transform.fit(Rect(0, 0, 400, 200)), windows=[editor])
    return {"observation_id": seen.id, "ids": [each.id for each in seen.elements], "image_b64": "/9j/AAAA"}


@tool(effects=[Input("desktop", arg="text")], trusted=True)
async def act(
    text: str = "",
    element_id: str | None = None,
    x: int | None = None,
    y: int | None = None,
    observation_id: str | None = None,
    *,
    context: ToolContext,
) -> dict[str, Any]:
    """Act. Returns what on."""
    element = context.observations.element(element_id) if element_id else None
    return {"effect": "confirmed", "on": element.fingerprint if element else "", "at": [x, y], "typed": len(text)}


@tool(trusted=True)
async def start(count: Annotated[int, "How many."] = 1) -> dict[str, Any]:
    """Start something. Returns its process_id."""
    return {"process_id": f"p{count + 6}"}


@tool(trusted=True)
async def ask(process_id: str, note: str = "") -> dict[str, Any]:
    """Ask it. Returns whom."""
    return {"asked": process_id}


TOOLS = [look, act, start, ask]


async def ids(session: Session) -> list[str]:
    return (await session.call("look"))["ids"]


async def plan_of(session: Session, tape: StepRecorder, **wishes: Any) -> tuple[PlanRecording, ReplayPlan]:
    recording = await build_recording(tape.made, session, RecordingOptions("x", **wishes))
    return recording, ReplayPlan.model_validate(recording.content)


async def test_an_element_is_named_by_what_it_is_and_found_again_under_another_id() -> None:
    async with open_test_session(tools=TOOLS) as session:
        tape = session.recorder.tape = StepRecorder()
        known = await ids(session)
        await session.call("act", {"element_id": known[2]})
        _, plan = await plan_of(session, tape)
    (step,) = plan.steps
    assert step.sought() == {"element_id": {"role": "button", "text": "Copy", "window": "Editor", "nth": 2}}
    async with open_test_session(tools=TOOLS) as session:
        await session.call("start")
        for element in (Element("label", "earlier", None, fingerprint="z"),):
            session.observations.number([element])
        (done,) = await run_plan(plan, session)
    assert done.result is not None
    assert (done.failure, done.result["on"]) == (None, "c")


async def test_a_point_is_the_element_there_or_a_place_in_its_window() -> None:
    async with open_test_session(tools=TOOLS) as session:
        tape = session.recorder.tape = StepRecorder()
        await ids(session)
        await session.call("act", {"x": 20, "y": 15})
        await session.call("act", {"x": 100, "y": 90})
        await session.call("act", {"x": 300, "y": 150})
        _, plan = await plan_of(session, tape)
        steps = await run_plan(plan, session)
    first, second, third = plan.steps
    assert first.sought() == {"element_id": {"role": "button", "text": "Save", "window": "Editor"}}
    assert second.at is not None
    assert (second.at.window, second.at.x, second.at.y) == ("Editor", 0.5025, 0.905)
    assert third.at is not None
    assert third.at.window == ""
    assert steps[2].result is not None
    assert steps[2].result["at"] == [300, 150]


async def test_an_element_that_is_not_there_or_is_there_twice_is_told_with_what_is() -> None:
    wanted = {"tool": "act", "find": {"element_id": {"role": "button", "text": "Cpy"}}}
    both = {"tool": "act", "find": {"element_id": {"role": "button", "text": "Copy"}}}
    for step, told in ((wanted, "there are 'Copy'"), (both, "say which by `nth`")):
        plan = ReplayPlan.model_validate({"name": "x", "look": {"tool": "look", "seconds": 0.3}, "steps": [step]})
        async with open_test_session(tools=TOOLS) as session:
            (done,) = await run_plan(plan, session)
        assert told in (done.failure or "")
        assert done.result is None
        assert done.now is not None


async def test_what_types_where_something_else_is_in_front_does_not_type() -> None:
    step = {"tool": "act", "args": {"text": "hello"}, "front": "Browser"}
    async with open_test_session(tools=TOOLS) as session:
        (done,) = await run_plan(
            ReplayPlan.model_validate({"name": "x", "look": {"tool": "look", "seconds": 0.3}, "steps": [step]}), session
        )
    assert (done.failure, done.result) == ("the window in front is 'Editor', expected 'Browser'", None)
    there = {**step, "front": "edit"}
    async with open_test_session(tools=TOOLS) as session:
        (done,) = await run_plan(
            ReplayPlan.model_validate({"name": "x", "look": {"tool": "look"}, "steps": [there]}), session
        )
    assert done.failure is None


async def test_secrets_are_not_written_and_are_asked_for_on_replay(tmp_path: Path) -> None:
    async with open_test_session(
        tools=TOOLS, environment={"HANDRAIL_SECRET_CODE": "opens-it-all"}, confirm=yes
    ) as session:
        tape = session.recorder.tape = StepRecorder()
        known = await ids(session)
        await session.call("act", {"element_id": known[3], "text": "hunter2-hunter2"})
        await session.call("act", {"text": "Authorization: Bearer abcdefghijklmnop0123"})
        await session.call("act", {"text": "secret:CODE"})
        recording, plan = await plan_of(session, tape)
        audit = (session.runtime.places.audit / f"{session.id}.jsonl").read_text()
    recording.write(tmp_path / "plan.yaml")
    for text in ((tmp_path / "plan.yaml").read_text(), audit):
        assert "hunter2" not in text
        assert "abcdefghijklmnop" not in text
    assert [step.args["text"] for step in plan.steps] == ["${secret}", "Authorization: ${secret_2}", "secret:CODE"]
    assert [name for name, parameter in plan.parameters.items() if parameter.required] == ["secret", "secret_2"]


async def test_ids_that_calls_give_are_taken_from_their_results(tmp_path: Path) -> None:
    async with open_test_session(tools=TOOLS) as session:
        tape = session.recorder.tape = StepRecorder()
        await session.call("start", {"count": 1})
        await session.call("ask", {"process_id": "p7", "note": f"in {tmp_path} of ${{HOME}}"})
        _, plan = await plan_of(session, tape, workspace=str(tmp_path))
        assert plan.steps[0].save == {"process_id": "process_id"}
        assert plan.steps[1].args == {"process_id": "${process_id}", "note": "in ${workspace} of $${HOME}"}
        changed = plan.model_copy(
            update={"steps": (plan.steps[0].model_copy(update={"args": {"count": 2}}), plan.steps[1])}
        )
        steps = await run_plan(changed, session)
    assert steps[1].result is not None
    assert steps[1].result["asked"] == "p8"


async def test_values_and_what_is_typed_become_parameters_where_it_is_asked_for(tmp_path: Path) -> None:
    async with open_test_session(tools=TOOLS) as session:
        tape = session.recorder.tape = StepRecorder()
        await session.call("act", {"text": "Dear Ada"})
        await session.call("act", {"text": f"{tmp_path}/note.txt"})
        _, named = await plan_of(session, tape, params={"whom": "Ada"})
        _, typed = await plan_of(session, tape, inputs=True, workspace=str(tmp_path))
    assert named.steps[0].args["text"] == "Dear ${whom}"
    assert [step.args["text"] for step in typed.steps] == ["${text}", "${workspace}/${text_2}"]
    assert {name: each.default for name, each in typed.parameters.items()} == {"text": "Dear Ada", "text_2": "note.txt"}


async def test_calls_that_failed_are_left_out_and_the_file_is_for_its_owner(tmp_path: Path) -> None:
    async with open_test_session(tools=TOOLS) as session:
        tape = session.recorder.tape = StepRecorder()
        await session.call("ask", {"process_id": "p1"})
        await session.call("act", {"element_id": "e99"})
        recording, _ = await plan_of(session, tape)
        past = await build_recording(
            read_session_calls(session.id, session.runtime.places)[0], session, RecordingOptions("x")
        )
    assert recording.left_out == past.left_out == ["act: its status was error"]
    file = recording.write(tmp_path / "plan.yaml")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert read_plan(file).count == 1
    with pytest.raises(HandrailError, match="is there already"):
        recording.write(file)


@pytest.mark.parametrize("linked", ["plan.pictures", "plan.pictures/1.png"])
def test_pictures_are_not_written_through_a_link(tmp_path: Path, linked: str) -> None:
    """If this fails, what an agent has put beside the file overwrites files elsewhere."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "1.png").write_bytes(b"mine")
    work = tmp_path / "work"
    (work / linked).parent.mkdir(parents=True)
    (work / linked).symlink_to(tmp_path / "mine" / "1.png" if linked.endswith("png") else tmp_path / "mine")
    content = {"name": "x", "steps": [{"tool": "wait", "args": {"seconds": 1}, "picture": "1.png"}]}
    with pytest.raises(HandrailError, match="link"):
        PlanRecording(content, {"1.png": b"PNG"}, []).write(work / "plan.yaml")
    assert (tmp_path / "mine" / "1.png").read_bytes() == b"mine"


async def test_a_session_that_did_nothing_gives_no_plan() -> None:
    async with open_test_session(tools=TOOLS) as session:
        with pytest.raises(ConfigError, match="nothing was done"):
            await plan_of(session, StepRecorder())


async def test_a_picture_leads_nowhere_but_beside_the_plan(tmp_path: Path) -> None:
    for picture in ("../x.jpg", "/etc/passwd"):
        (tmp_path / "p.yaml").write_text(f"name: x\nsteps: [{{tool: wait, picture: {picture}}}]")
        with pytest.raises(ConfigError, match="beside the plan"):
            read_plan(tmp_path / "p.yaml")


def test_a_session_is_recorded_by_the_program_while_it_goes_on_and_afterwards(tmp_path: Path) -> None:
    around = {**os.environ, "HANDRAIL_HOME": str(tmp_path / "home"), "HANDRAIL_PLUGINS": ""}

    def handrail(*words: str, given: str = "") -> subprocess.CompletedProcess[str]:
        argv = [HANDRAIL, *words]
        return subprocess.run(argv, cwd=tmp_path, env=around, input=given, capture_output=True, text=True, timeout=60)

    calls = [{"tool": "wait", "args": {"seconds": 0.1}}, {"tool": "wait", "args": {"seconds": 900}}]
    lines = "".join(json.dumps({"id": id, **call}) + "\n" for id, call in enumerate(calls))
    live = handrail("session", "--jsonl", "--record", "live.yaml", given=lines)
    assert "1 steps in live.yaml" in live.stderr
    assert live.returncode == 0
    again = handrail("session", "--jsonl", "--record", "live.yaml", given=lines)
    assert (again.returncode, "is there already" in again.stderr) == (2, True)
    (audit,) = (tmp_path / "home" / "data" / "audit").glob("*.jsonl")
    assert handrail("record", audit.stem, "-o", "past.yaml").returncode == 0
    named = [(tmp_path / name).read_text().partition("\n")[2] for name in ("live.yaml", "past.yaml")]
    assert named[0] == named[1]
    assert handrail("replay", "past.yaml").returncode == 0
    missing = handrail("record", "nothing", "-o", "x.yaml")
    assert (missing.returncode, "there is no session 'nothing'" in missing.stderr) == (1, True)

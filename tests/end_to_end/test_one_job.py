"""One job of twelve steps on a private desktop, by a recorded model in ADK's own runner: what it leaves is looked at from outside."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from google.genai import types
from tests.plugins.adk.agents import Call, Chat, Scripted
from tests.plugins.browser.site import Answer, Asked, Site, serving

import handrail
from handrail import tool
from handrail.api.approval import Answer as Said, Approval, Choice
from handrail_adk import HandrailToolset

pytestmark = pytest.mark.anyio

PAGE = '<form method="post" action="/sent"><label>Sum <input name="sum"></label><button>Send</button></form>'


@tool(trusted=True)
async def fragile() -> str:
    """Look it up. Returns what is known."""
    raise RuntimeError("nobody has thought of this")


@pytest.fixture
def sent() -> list[str]:
    return []


@pytest.fixture
def site(sent: list[str]) -> Iterator[Site]:
    def take(asked: Asked) -> Answer:
        sent.append(asked.form["sum"])
        return Answer("<h1>Thank you</h1>")

    with serving(Site(pages={"/": PAGE, "/sent": take})) as found:
        yield found


class Person:
    """Says no to one file, else yes; `asked` says to which tools and what."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    async def __call__(self, approval: Approval) -> Said:
        no = "never.txt" in str(approval.confirmation)
        self.asked.append((approval.tool, "no" if no else "yes"))
        return Said(Choice.DENY if no else Choice.ONCE)


def pressed(name: str) -> Call:
    where = {"control_type": "button", "window": "galculator", "wait_for_previous": True}
    return "execute_accessible", {"action": "click", "element_name": name, **where}


def one_by_one(*calls: Call) -> list[Call]:
    return [(name, {**args, "wait_for_previous": True}) for name, args in calls]


def job(folder: Path, site: Site) -> list[list[Call]]:
    """What the model does, a list for each of its steps."""
    until = {"seconds": 30, "until": {"window": "galculator"}}
    return [
        [("execute_cli", {"command": "mkdir job && galculator & mousepad &"})],
        [("wait", until), ("wait", {"seconds": 30, "until": {"window": "Mousepad"}})],
        [pressed(key) for key in ("6", "*", "7", "=")],
        [("execute_accessible", {"action": "read", "control_type": "text", "window": "galculator"})],
        [("write_file", {"file_path": "job/sum.txt", "content": "42\n"})],
        [("fragile", {})],
        [("load_skill", {"skill_name": "office-documents"})],
        [("write_excel", {"path": "job/sum.xlsx", "data": [["what", "sum"], ["6 x 7", 42]]})],
        [("convert_document", {"input_path": "job/sum.xlsx", "output_format": "csv", "output_path": "job/sum.csv"})],
        one_by_one(
            ("window_focus", {"title": "Mousepad"}),
            ("execute_gui", {"action": "type", "text": "The sum is 42 — 漢字\n"}),
            ("execute_gui", {"action": "hotkey", "key": "ctrl+s"}),
            ("wait", {"seconds": 15, "until": {"window": "Save As"}}),
            ("execute_gui", {"action": "type", "text": str(folder / "job" / "note.txt")}),
            ("execute_gui", {"action": "press_key", "key": "enter"}),
            ("wait", {"seconds": 15, "until": {"window": "note.txt"}}),
        ),
        one_by_one(
            ("execute_browser", {"action": "navigate", "url": site.url()}),
            ("execute_browser", {"action": "fill", "params": {"name": "Sum", "text": "42"}}),
            ("execute_browser", {"action": "click", "params": {"name": "Send"}}),
        ),
        one_by_one(
            ("write_file", {"file_path": "job/never.txt", "content": "no\n"}), ("observe_screen", {"image": "none"})
        ),
    ]


@pytest.mark.timeout(240)
@pytest.mark.usefixtures("without_undo")
async def test_a_job_of_twelve_steps_across_the_whole_desktop(tmp_path: Path, site: Site, sent: list[str]) -> None:
    config = tmp_path / "own.toml"
    config.write_text('[network]\nallow_private = ["127.0.0.1"]\n[skills]\nenabled = ["office-documents"]\n')
    person, steps = Person(), job(tmp_path, site)
    assert len(steps) == 12
    results: list[list[tuple[str, dict[str, Any]]]] = []
    async with handrail.open(
        desktop="private",
        confirm=person,
        cwd=tmp_path,
        config=config,
    ) as session:
        chat = Chat(HandrailToolset(session, additional_tools=[fragile]), Scripted.of(*steps))
        message = types.Content(role="user", parts=[types.Part(text="do the job")])
        async for event in chat.runner.run_async(user_id="u", session_id="s", new_message=message):
            if responses := event.get_function_responses():
                results.append([(each.name or "", each.response or {}) for each in responses])
                if len(results) == 11:
                    await session.use_backend("ocr")
        await chat.runner.close()

    failed = [
        (name, result.get("error", {}).get("code"))
        for step in results
        for name, result in step
        if result.get("status") != "success"
    ]
    assert failed == [("fragile", "downstream_error"), ("write_file", "denied_by_user")], results
    assert [len(step) for step in results] == [len(step) for step in steps]
    assert "42" in str(results[3][0][1])
    assert '"actual_backend":"ocr"' in results[11][1][1]["output"]
    shown = chat.model.shown
    assert ["convert_document" in names for names in shown] == [False] * 7 + [True] * 6
    assert ("write_file", "yes") in person.asked
    assert [asked for asked in person.asked if asked[1] == "no"] == [("write_file", "no")]

    made = tmp_path / "job"
    assert (made / "sum.txt").read_bytes() == b"42\n"
    assert (made / "note.txt").read_text(encoding="utf-8") == "The sum is 42 — 漢字\n"
    (sheet,) = openpyxl.load_workbook(made / "sum.xlsx").worksheets
    assert list(sheet.values) == [("what", "sum"), ("6 x 7", 42)]
    assert (made / "sum.csv").read_text().splitlines() == ["what,sum", "6 x 7,42"]
    assert sorted(file.name for file in made.iterdir()) == ["note.txt", "sum.csv", "sum.txt", "sum.xlsx"]
    assert sent == ["42"]

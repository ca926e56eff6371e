"""The examples of docs/adk.md."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from google.adk.models.registry import LLMRegistry
from google.adk.tools.base_toolset import BaseToolset
from google.adk.tools.function_tool import FunctionTool
from tests.plugins.adk.agents import Chat, Scripted, results

PAGE = Path(__file__).parents[3] / "docs/adk.md"


def run_example(number: int) -> dict[str, Any]:
    code = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)[number]
    names: dict[str, Any] = {"__name__": "example"}
    exec(compile(code, "docs/adk.md", "exec"), names)
    return names


def test_the_agent_of_the_page_does_its_job(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(LLMRegistry, "new_llm", lambda name: Scripted.of([("wait", {"seconds": 0.01})], model=name))
    run_example(0)
    assert "done" in capsys.readouterr().out


async def test_the_toolset_of_the_page_has_what_was_activated_at_the_next_step_and_remembers_it() -> None:
    def double(number: int) -> int:
        """Double a number."""
        return 2 * number

    def halve(number: int) -> float:
        """Halve a number."""
        return number / 2

    toolset: BaseToolset = run_example(1)["DynamicToolset"](FunctionTool(double), FunctionTool(halve))
    both = [("activate", {"name": "double"}), ("activate", {"name": "halve"})]
    chat = Chat(toolset, Scripted.of([("activate", {"name": "doubel"})], both, [("double", {"number": 4})]))
    unknown, *_, doubled = results(await chat.say())
    assert unknown == {"error": "there is no tool 'doubel'; there are: double, halve"}
    assert doubled == {"result": 8}
    await chat.say()
    none, all_three = ["activate"], ["activate", "double", "halve"]
    assert chat.model.shown == [none, none, all_three, all_three, all_three]
    assert [key for key in await chat.state() if "active" in key] == ["_active_hands_double", "_active_hands_halve"]
    await chat.runner.close()

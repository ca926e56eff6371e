"""The examples of docs/adk.md."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from google.adk.models.registry import LLMRegistry
from tests.plugins.adk.agents import Scripted

PAGE = Path(__file__).parents[3] / "docs/adk.md"


def test_the_agent_of_the_page_does_its_job(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    monkeypatch.setattr(LLMRegistry, "new_llm", lambda name: Scripted.of([("wait", {"seconds": 0.01})], model=name))
    exec(compile(code, "docs/adk.md", "exec"), {"__name__": "example"})
    assert "done" in capsys.readouterr().out

"""Replacing the text of a field: select-all and Delete go to proved text fields only."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import handrail

from .conftest import PLAIN_WINDOW, TEXT, Agent, Programs, until


async def held(agent: Agent) -> str:
    """Return the editor's text as the tree tells it."""
    service = await agent.session.service("accessibility")
    return await service.read_text(await service.focused())


async def test_the_text_of_the_focused_field_is_replaced_or_emptied(agent: Agent) -> None:
    await agent.open("mousepad")
    for before in ("old\nwords", TEXT):
        await agent("execute_gui", action="type", text=before)
        replaced = await agent("execute_gui", action="replace_text", text="new\nwords")
        assert replaced["effect"] == "confirmed", replaced
        assert await held(agent) == "new\nwords"
    emptied = await agent("execute_gui", action="replace_text", text="")
    assert emptied["effect"] == "confirmed", emptied
    assert await held(agent) == ""


async def test_the_field_that_is_named_gets_the_focus_first(agent: Agent) -> None:
    await agent.open("gtk3-widget-factory")
    seen = (await agent("observe_screen", image="none"))["ui_elements"]
    field = next(e for e in seen if e.get("value") == "entry" and not {"disabled", "focused"} & set(e["states"]))
    replaced = await agent("execute_gui", action="replace_text", text="new", element_id=field["id"])
    assert replaced["effect"] == "confirmed", replaced
    assert await held(agent) == "new"


async def test_nothing_is_deleted_where_the_focus_is_in_no_text_field(agent: Agent) -> None:
    """Delete clears the calculator."""
    await agent.open("galculator")
    await agent("execute_gui", action="press_key", key="8")
    for text in ("", "9"):
        refused = await agent.fails("execute_gui", action="replace_text", text=text)
        assert refused["code"] == "downstream_error"
        assert "text field" in refused["message"], refused
    assert (await agent.element("text"))["value"] == "8"


@pytest.mark.parametrize("text", ["", "x"])
async def test_nothing_is_typed_where_no_tree_proves_a_text_field(
    agent: Agent, programs: Programs, tmp_path: Path, text: str
) -> None:
    out = tmp_path / "typed"
    screen = await agent.session.service("screen")
    await programs.open(await agent.session.desktop(), screen, sys.executable, PLAIN_WINDOW, str(out))
    await agent("execute_gui", action="type", text="kept")
    refused = await agent.fails("execute_gui", action="replace_text", text=text)
    assert "nothing shows that a text field has the focus" in refused["message"], refused
    await agent("execute_gui", action="type", text="!")

    async def typed() -> bool:
        return out.read_text() == "kept!"

    await until(typed, what="the text that was typed")


async def test_keys_that_a_person_has_blocked_replace_nothing(tmp_path: Path, programs: Programs) -> None:
    settings = tmp_path / "handrail.toml"
    settings.write_text('[plugins.gui]\nblocked_keys = ["ctrl+a"]\n')
    async with handrail.open(desktop="private", cwd=tmp_path, config=settings) as session:
        agent = Agent(session, programs)
        await agent.open("mousepad")
        await agent("execute_gui", action="type", text="kept")
        refused = await agent.fails("execute_gui", action="replace_text", text="x")
        assert refused["code"] == "denied_by_policy"
        assert await held(agent) == "kept"


async def test_without_a_text_there_is_nothing_to_replace_by(agent: Agent) -> None:
    assert (await agent.fails("execute_gui", action="replace_text"))["code"] == "invalid_arguments"

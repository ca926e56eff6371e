"""The conformance kit itself: it passes what is right, and catches each fault by the test that is meant for it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from handrail import Decision, Desktop, Opinion, PluginError, Rect, Run, Session, Window, Write, hookimpl, tool
from handrail.testing import (
    Always,
    FakeAccessibility,
    FakeScreen,
    ScriptedConfirmer,
    fake_backend,
    fake_service,
    open_test_runtime,
    open_test_session,
)

MODULE = '''
import asyncio, time
from pathlib import Path
from typing import Annotated, Any, Literal
import anyio, pytest
from pydantic import BaseModel, ConfigDict, Field
from handrail import Input, InfoConfirmation, GrantOption, Media, Read, ToolContext, Write, tool
from handrail.testing import ToolContract

Word = Annotated[str, Field(description="A word.")]

class Base(ToolContract):
    @pytest.fixture
    def tool(self):
        return self.made

    @pytest.fixture
    def good_args(self):
        return getattr(self, "args", {"word": "a"})

    @pytest.fixture
    def bad_args(self):
        return getattr(self, "bad", ())

del ToolContract


class Open(BaseModel):
    "Takes unknown keys."
    x: int = Field(0, description="A number.")


class TestRight(Base):
    bad = [{}, {"word": 3}]

    @tool(effects=[Read("file", arg="word")])
    async def made(word: Word) -> dict:
        """Repeat a word. Returns word."""
        return {"word": word, "picture": [Media("image", "image/png", data=b"")], "n": (1, None)}


class TestSilent(Base):
    @tool()
    async def made(word: Word) -> dict:
        """Repeat a word."""
        return {"repeated": word}


class TestLongwinded(Base):
    @tool(description="Returns a word. " * 100)
    async def made(word: Word) -> str:
        return word


class TestUndescribed(Base):
    @tool()
    async def made(word: str) -> str:
        """Return the word."""
        return word


class TestTakesUnknownKeysBelow(Base):
    args = {"given": {}, "word": "a"}

    @tool()
    async def made(word: Word, given: Annotated[Open, Field(description="Given.")]) -> str:
        """Return the word."""
        return word


class TestVague(Base):
    @tool(effects=[Write("file")])
    async def made(word: Word) -> str:
        """Return the word."""
        return word


class TestAsksOddly(Base):
    @tool(confirmation=lambda params, verdict: InfoConfirmation("t", object()))
    async def made(word: Word) -> str:
        """Return the word."""
        return word


class TestGrantsOthers(Base):
    @tool(grants=lambda params: [GrantOption("all", "execute_cli")])
    async def made(word: Word) -> str:
        """Return the word."""
        return word


class TestTakesAnything(Base):
    bad = [{"word": ""}]

    @tool()
    async def made(word: Word) -> str:
        """Return the word."""
        return word


class TestReturnsObjects(Base):
    @tool()
    async def made(word: Word) -> dict:
        """Return the path."""
        return {"path": [Path(word)]}


class TestReturnsNoNumber(Base):
    @tool()
    async def made(word: Word) -> dict:
        """Return nan."""
        return {"n": float("nan")}


class TestFails(Base):
    @tool()
    async def made(word: Word) -> dict:
        """Return nothing."""
        raise ValueError(word)


class TestWritesSecretly(Base):
    @tool(effects=[Read("screen")])
    async def made(word: Word, context: ToolContext) -> str:
        """Return the word."""
        (context.cwd / "trace.txt").write_text(word)
        return word


class TestMovesSecretly(Base):
    @tool()
    async def made(word: Word, context: ToolContext) -> str:
        """Return the word."""
        context.keep(cwd=context.cwd.parent)
        return word


class TestStubborn(Base):
    @tool()
    async def made(word: Word) -> str:
        """Return the word."""
        end = time.monotonic() + 1.5
        while time.monotonic() < end:
            try:
                await anyio.sleep(0.01)
            except asyncio.CancelledError:
                pass
        return word


class TestShared(Base):
    held = []

    @tool()
    async def made(word: Word) -> str:
        """Return the word."""
        if TestShared.held:
            raise ValueError
        TestShared.held.append(1)
        try:
            await anyio.sleep(0.02)
        finally:
            TestShared.held.clear()
        return word
'''

EXPECTED = {
    "Silent": {"its_description_says_what_it_does_and_what_it_returns"},
    "Longwinded": {"its_description_says_what_it_does_and_what_it_returns"},
    "Undescribed": {"every_parameter_is_described"},
    "TakesUnknownKeysBelow": {"its_schema_is_a_closed_object_without_titles"},
    "Vague": {"its_effects_name_the_parameters_they_speak_of"},
    "AsksOddly": {"a_call_can_be_shown_to_a_person"},
    "GrantsOthers": {"a_call_can_be_shown_to_a_person"},
    "TakesAnything": {"bad_arguments_are_answered_with_an_error"},
    "ReturnsObjects": {"its_result_is_plain_data_with_a_status"},
    "ReturnsNoNumber": {"its_result_is_plain_data_with_a_status"},
    "Fails": {
        "its_result_is_plain_data_with_a_status",
        "it_can_be_cancelled_at_once",
        "its_timeout_ends_it",
        "two_sessions_can_use_it_at_once",
    },
    "WritesSecretly": {"a_tool_that_only_reads_leaves_no_trace"},
    "MovesSecretly": {"a_tool_that_only_reads_leaves_no_trace"},
    "Stubborn": {"it_can_be_cancelled_at_once", "its_timeout_ends_it"},
    "Shared": {"two_sessions_can_use_it_at_once"},
}


def test_the_contract_catches_each_fault_and_says_what_to_mend(tmp_path: Path) -> None:
    (tmp_path / "test_tools.py").write_text(MODULE, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short", "-rf", str(tmp_path)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    failed: dict[str, set[str]] = {}
    for kit, name in re.findall(r"^FAILED \S+::Test(\w+)::test_(\w+)", done.stdout, re.MULTILINE):
        failed.setdefault(kit, set()).add(name)
    assert failed == EXPECTED, done.stdout
    mended = done.stdout.count("AssertionError: If this fails, ")
    assert mended >= sum(map(len, failed.values())), done.stdout


@tool(effects=[Write("settings")])
async def change() -> str:
    """Change."""
    return "changed"


async def test_nothing_that_is_installed_is_loaded() -> None:
    async with open_test_session() as session:
        assert [plugin.name for plugin in session.runtime.plugins.loaded] == ["test", "fake_desktops"]
        assert [each.name for each in await session.tools()] == ["wait", "get_action_history"]


async def test_a_plugins_own_desktops_take_the_place_of_the_fake_ones() -> None:
    class Own:
        async def start(self, name: str, **size: int) -> Desktop:
            return Desktop(f"own {name}", ":1", private=True)

    async with open_test_session(services=[fake_service("desktops", Own())]) as session:
        assert (await session.desktop()).name.startswith("own private-")


async def test_its_folders_are_the_tests_own_and_gone_afterwards(tmp_path: Path) -> None:
    async with open_test_session() as session:
        folder = session.cwd
        assert folder.is_dir()
        assert session.runtime.places.audit.is_relative_to(folder.parent)
    assert not folder.exists()
    async with open_test_session(folder=tmp_path) as session:
        assert session.cwd == tmp_path / "work"
    assert session.cwd.is_dir()


async def test_the_environment_is_what_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISPLAY", "fake:7")
    async with open_test_session(environment={"LANG": "C"}) as session:
        assert set(session.runtime.environment) == {"HOME", "PATH", "HANDRAIL_HOME", "LANG"}


async def test_settings_are_laid_over_the_kits_own() -> None:
    settings = {"tools": {"disabled": ["wait"]}, "security": {"trust": ["other"]}, "mode": "headless"}
    async with open_test_session(settings=settings, trusted=True) as session:
        assert session.settings.tools.profile == "all"
        assert session.settings.tools.disabled == ("wait",)
        assert session.settings.security.trust == ("test", "other")
        assert session.settings.mode == "headless"


@pytest.mark.parametrize(("trusted", "status"), [(True, "success"), (False, "denied")])
async def test_evaluators_may_allow_only_when_they_are_trusted(trusted: bool, status: str) -> None:
    # Commands for a shell are left to the judge that can read them.
    run = tool(effects=[Run("shell")])(do_nothing)
    async with open_test_session(tools=[run], evaluators=[Always("allow")], trusted=trusted) as session:
        assert (await session.call("do_nothing")).status == status


async def do_nothing() -> None:
    """Do nothing."""


async def test_whole_plugins_are_loaded_as_they_are_shipped() -> None:
    class Hooks:
        @hookimpl
        def handrail_register_tools(self) -> list[object]:
            return [change]

    async with open_test_session(plugins={"mine": Hooks()}) as session:
        owned = session.runtime.registry.get("change")
        assert owned is not None
        assert owned.plugin == "mine"
    with pytest.raises(PluginError, match="'change'"):
        async with open_test_session(plugins={"mine": Hooks()}, tools=[change]):
            pass


async def test_the_scripted_person_keeps_the_questions_and_has_no_further_answers() -> None:
    person = ScriptedConfirmer("once")
    async with open_test_session(tools=[change], confirm=person) as session:
        assert (await session.call("change")).ok
        assert (await session.call("change")).error_code == "no_confirmer"
    assert [approval.tool for approval in person.asked] == ["change", "change"]


async def test_always_speaks_falls_silent_or_crashes() -> None:
    for judge, status in [
        (Always("deny"), "denied"),
        (Always(Opinion("x", floor=Decision.DENY)), "denied"),
        (Always(None), "success"),
        (Always(RuntimeError("crash")), "denied"),
    ]:
        async with open_test_session(tools=[tool()(do_nothing)], evaluators=[judge]) as session:
            assert (await session.call("do_nothing")).status == status
        # A denied call is judged again to find out what would allow it.
        assert judge.asked == 1 or (status == "denied" and judge.asked > 1)


async def test_the_fake_screen_and_tree_serve_core() -> None:
    screen = FakeScreen()
    tree = FakeAccessibility.of(("button", "Save"), ("label", "Ready"))
    services = [fake_service("screen", screen), fake_service("accessibility", tree)]
    async with open_test_session(services=services) as session:

        async def met(**until: str) -> bool:
            return (await session.call("wait", {"seconds": 0.1, "until": until}))["met"]

        assert not await met(window="notes")
        screen.shown.append(Window("w1", "My Notes", "notes", 1, Rect(0, 0, 10, 10)))
        assert await met(window="notes")
        assert await met(text="save")
        assert not await met(element="Quit")


async def test_a_fake_backend_sees_what_it_is_told_to() -> None:
    seer = fake_backend("seer", capabilities=["accessibility_tree"])
    async with open_test_session(backends=[seer]) as session:
        assert (await session.vision.tree()).value.elements == ()
        seer.elements = FakeAccessibility.of(("button", "Save")).elements
        assert [element.text for element in (await session.vision.tree()).value.elements] == ["Save"]


async def test_several_sessions_may_share_a_runtime() -> None:
    async with open_test_runtime(tools=[change]) as runtime, runtime.session() as one, runtime.session() as other:
        assert isinstance(one, Session)
        assert one.runtime is other.runtime

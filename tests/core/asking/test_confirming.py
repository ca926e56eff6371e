"""Who says yes, to what exactly, and for how long."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import anyio
import pytest

from handrail import (
    Answer,
    Approval,
    Choice,
    Decision,
    EditConfirmation,
    GrantOption,
    InfoConfirmation,
    Input,
    Opinion,
    Reason,
    Send,
    Tool,
    Verdict,
    Write,
    tool,
)
from handrail.api.approval import callback, no, yes
from handrail.errors import NoConfirmer
from handrail.testing import Always, ScriptedConfirmer, open_test_session


@tool(effects=[Write("settings")])
async def change(value: int = 1) -> str:
    """Change a setting."""
    return f"set to {value}"


@tool(effects=[Input("desktop")], title="Click")
async def click(x: int = 0, action: str = "click") -> str:
    """Click."""
    return "clicked"


@tool(effects=[Send("network", arg="url")])
async def fetch(url: str) -> str:
    """Fetch."""
    return "fetched"


async def test_nobody_there_means_no() -> None:
    async with open_test_session(tools=[change], confirm=None) as session:
        result = await session.call("change")
    assert (result.status, result.error_code) == ("denied", "no_confirmer")
    assert "nobody" in result["error"]["message"]


async def test_a_confirmer_may_say_that_nobody_is_there() -> None:
    async def away(approval: Approval) -> Answer:
        raise NoConfirmer("the client cannot ask")

    async with open_test_session(tools=[change], confirm=away) as session:
        assert (await session.call("change")).error_code == "no_confirmer"


async def test_a_no_is_a_no_and_says_whose() -> None:
    async with open_test_session(tools=[change], confirm=no) as session:
        result = await session.call("change")
    assert (result.status, result.error_code) == ("denied", "denied_by_user")


async def test_a_yes_is_for_one_call() -> None:
    person = ScriptedConfirmer("once", "deny")
    async with open_test_session(tools=[change], confirm=person) as session:
        assert (await session.call("change"))["content"] == "set to 1"
        assert (await session.call("change")).status == "denied"


@pytest.mark.parametrize("answer", [True, "yes", None, 1, "allow", RuntimeError("window closed")])
async def test_whatever_is_not_an_answer_is_a_no(answer: Any, caplog: pytest.LogCaptureFixture) -> None:
    async def person(approval: Approval) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    async with open_test_session(tools=[change], confirm=person) as session:
        result = await session.call("change")
    assert (result.status, result.error_code) == ("denied", "no_confirmer")
    assert "a person said" not in result["error"]["message"]
    assert "the confirmer failed" in caplog.text


async def test_a_function_that_is_not_async_is_told_what_it_should_be(caplog: pytest.LogCaptureFixture) -> None:
    person: Any = lambda approval: True  # noqa: E731 # what people try first
    async with open_test_session(tools=[change], confirm=person) as session:
        assert (await session.call("change")).error_code == "no_confirmer"
    assert "handrail.api.approval.callback" in caplog.text


async def test_a_callback_answers_by_true_and_false() -> None:
    async def ask(approval: Approval) -> bool:
        return "2" in approval.confirmation.title

    async with open_test_session(tools=[change], confirm=callback(ask)) as session:
        assert (await session.call("change", {"value": 2})).ok
        assert not (await session.call("change", {"value": 1})).ok


async def test_the_question_is_about_exactly_this_call() -> None:
    person = ScriptedConfirmer("once")
    async with open_test_session(tools=[change], confirm=person) as session:
        await session.call("change", {"value": 7}, call_id="host-1")
        ran = session.history.last()[0].invocation
    (asked,) = person.asked
    assert ran is not None
    assert (asked.call_id, asked.call_hash, asked.tool) == ("host-1", ran.call_hash, "change")
    assert asked.verdict.decision is Decision.CONFIRM
    assert asked.confirmation.title == "Change: value=7"


@pytest.mark.parametrize(
    ("made", "args", "kind", "shown"),
    [
        (change, {"value": 3}, "info", "Change: value=3"),
        (click, {"action": "drag"}, "gui", "drag"),
        (fetch, {"url": "https://example.org/"}, "url", "https://example.org/"),
    ],
)
async def test_the_kind_of_a_question_follows_the_effects(made: Tool, args: Any, kind: str, shown: str) -> None:
    person = ScriptedConfirmer("deny")
    settings = {"desktop": "current"}
    async with open_test_session(
        tools=[made], confirm=person, settings=settings, environment={"DISPLAY": "fake:0"}
    ) as session:
        await session.call(made.name, args)
    confirmation = person.asked[0].confirmation
    assert confirmation.kind == kind
    assert shown in vars_of(confirmation)


def vars_of(confirmation: Any) -> list[Any]:
    return [getattr(confirmation, name) for name in type(confirmation).__slots__]


async def test_a_tool_may_ask_in_its_own_words() -> None:
    def diff(params: Any, verdict: Verdict) -> EditConfirmation:
        return EditConfirmation("Edit a.txt", "a.txt", "-old\n+new")

    own = tool(name="edit", description="Edit.", effects=[Write("settings")], confirmation=diff)(edit)
    person = ScriptedConfirmer("deny")
    async with open_test_session(tools=[own], confirm=person) as session:
        await session.call("edit")
    assert person.asked[0].confirmation == EditConfirmation("Edit a.txt", "a.txt", "-old\n+new")


async def edit() -> None: ...


async def test_an_answer_for_the_session_grants_exactly_this_call() -> None:
    person = ScriptedConfirmer("session", "deny")
    async with open_test_session(tools=[change], confirm=person) as session:
        for _ in range(3):
            assert (await session.call("change", {"value": 1})).ok
        assert (await session.call("change", {"value": 2})).status == "denied"
    assert [grant.label for grant in person.asked[0].grants] == ["exactly this call", "every call of change"]
    assert len(person.asked) == 2


async def test_a_grant_is_forgotten_with_its_session(tmp_path: Path) -> None:
    for _ in range(2):
        person = ScriptedConfirmer("session")
        async with open_test_session(tools=[change], confirm=person, folder=tmp_path) as session:
            assert (await session.call("change")).ok
        assert len(person.asked) == 1


async def test_input_to_a_persons_own_desktop_is_asked_about_once_a_session() -> None:
    person = ScriptedConfirmer("once")
    async with open_test_session(
        tools=[click], confirm=person, settings={"desktop": "current"}, environment={"DISPLAY": "fake:0"}
    ) as session:
        for x in range(3):
            assert (await session.call("click", {"x": x})).ok
    assert len(person.asked) == 1


async def test_input_to_a_private_desktop_is_not_asked_about() -> None:
    async with open_test_session(tools=[click], confirm=None) as session:
        assert (await session.call("click")).ok


async def test_what_has_a_floor_is_asked_about_every_time() -> None:
    floor = Opinion("danger", floor=Decision.CONFIRM, reasons=(Reason("danger", "it is dangerous"),))
    person = ScriptedConfirmer("session", "session", "deny")
    async with open_test_session(tools=[change], evaluators=[Always(floor)], confirm=person) as session:
        assert (await session.call("change")).ok
        assert (await session.call("change")).ok
        assert (await session.call("change")).status == "denied"
    assert [approval.grants for approval in person.asked] == [(), (), ()]


async def test_nobody_is_asked_about_a_catastrophe() -> None:
    end = Opinion("end", catastrophic=True, reasons=(Reason("end", "it ends the world"),))
    person = ScriptedConfirmer("once")
    async with open_test_session(tools=[change], evaluators=[Always(end)], confirm=person) as session:
        result = await session.call("change")
    assert (result.status, result.error_code) == ("denied", "denied_by_policy")
    assert "it ends the world" in result["error"]["message"]
    assert not person.asked


async def test_yes_to_all_is_no_yes_to_a_catastrophe() -> None:
    end = Opinion("end", catastrophic=True)
    async with open_test_session(tools=[change], evaluators=[Always(end)], confirm=yes) as session:
        assert (await session.call("change")).status == "denied"


async def test_two_questions_at_once_are_answered_each_for_itself() -> None:
    both = anyio.Event()
    asked: list[Approval] = []

    async def person(approval: Approval) -> Answer:
        asked.append(approval)
        if len(asked) == 2:
            both.set()
        await both.wait()
        return Answer(Choice.ONCE) if "value=1" in approval.confirmation.title else Answer(Choice.DENY)

    results: dict[int, str] = {}
    async with open_test_session(tools=[change], confirm=person) as session:

        async def run(value: int) -> None:
            results[value] = (await session.call("change", {"value": value})).status

        with anyio.fail_after(30):
            async with anyio.create_task_group() as group:
                group.start_soon(run, 1)
                group.start_soon(run, 2)
    assert results == {1: "success", 2: "denied"}


def granting(*options: GrantOption) -> Tool:
    """A tool that offers these grants, broadest last; the exact one is always first."""

    async def write(file_path: str) -> None: ...

    return tool(description="Write.", effects=[Write("file", arg="file_path")], grants=lambda params: options)(write)


async def granted(made: Tool, grant: GrantOption, args: dict[str, Any], folder: Path) -> bool:
    async with open_test_session(tools=[made], folder=folder) as session:
        session.court.grant(grant)
        return (await session.call(made.name, args)).ok


@pytest.mark.parametrize(
    ("path", "covered"),
    [
        ("docs/a.txt", True),
        ("./docs/deep/a.txt", True),
        ("docs/../docs/a.txt", True),
        ("other/a.txt", False),
        ("docs/../other/a.txt", False),
        ("docs-not/a.txt", False),
        ("docs/link/a.txt", False),
    ],
)
async def test_a_grant_for_a_folder_covers_what_is_really_in_it(path: str, covered: bool, tmp_path: Path) -> None:
    work = tmp_path / "work"
    for name in ("docs", "other"):
        (work / name).mkdir(parents=True)
    (work / "docs/link").symlink_to(work / "other")
    grant = GrantOption("everything in docs", "write", paths=(str(work / "docs"),))
    assert await granted(granting(grant), grant, {"file_path": path}, tmp_path) is covered
    assert await granted(granting(grant), grant, {"file_path": str(work / path)}, tmp_path) is covered


async def test_a_grant_for_a_tool_is_for_no_other(tmp_path: Path) -> None:
    grant = GrantOption("every change", "change")
    assert await granted(change, grant, {"value": 5}, tmp_path)
    assert not await granted(fetch, grant, {"url": "https://example.org"}, tmp_path)


async def test_a_grant_does_not_go_below_a_floor(tmp_path: Path) -> None:
    grant = GrantOption("every write", "write")
    assert not await granted(granting(grant), grant, {"file_path": "/etc/hosts"}, tmp_path)


async def test_working_out_a_question_holds_up_nothing_else_and_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    def shown(params: Any, verdict: Verdict) -> InfoConfirmation:
        time.sleep(0.5)
        return InfoConfirmation("Change", "a setting")

    @tool(effects=[Write("settings")], confirmation=shown)
    async def alter() -> None:
        """Change a setting."""

    person = ScriptedConfirmer("once", "once")
    async with open_test_session(tools=[alter], confirm=person) as session:
        beats = 0

        async def beat() -> None:
            nonlocal beats
            while True:
                await anyio.sleep(0.01)
                beats += 1

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(beat)
            assert (await session.call("alter")).ok
            tasks.cancel_scope.cancel()
        assert beats > 10
        monkeypatch.setattr("handrail.pipeline.command_details.SHOWING_S", 0.1)
        result = await session.call("alter")
    assert (result.error_code, len(person.asked)) == ("timeout", 1)
    assert "could not be shown within 0.1 s" in result["error"]["message"]

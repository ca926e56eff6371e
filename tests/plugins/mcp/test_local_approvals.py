"""Questions that go to a person at this machine: alone, or while the client shows its own form."""

from __future__ import annotations

import json
import stat
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, types
from tests.terminals import Terminal

from handrail import Choice
from handrail.approval.inbox import PendingApproval, answer_approval, list_pending_questions
from handrail.errors import NotFound
from handrail.fs.app_dirs import AppDirs

from .place import ERAS, HANDRAIL, LEGACY, MODERN, Place, accept, result_fields, wait_for

pytestmark = pytest.mark.usefixtures("without_undo")


@pytest.fixture
def local(place: Place) -> Place:
    place.configure('backend = "treeish"\n[serve]\napprovals = "local"\n')
    return place


def places(place: Place) -> AppDirs:
    return AppDirs.of(place.environment)


async def asked(place: Place) -> PendingApproval:
    (left,) = await wait_for(lambda: list_pending_questions(places(place)))
    assert isinstance(left, PendingApproval)
    return left


async def during(place: Place, era: str, answer: Any) -> dict[str, Any]:
    """The result of a call, while `answer` does something with its question."""
    # This client would say yes to anything.
    async with place.client(era, lambda _: accept("once")) as client:
        return await while_asked(place, client, answer)


async def while_asked(place: Place, client: Client, answer: Any) -> dict[str, Any]:
    results: list[dict[str, Any]] = []

    async def call() -> None:
        results.append(result_fields(await client.call_tool("scribble", {"word": "hello"})))

    async with anyio.create_task_group() as group:
        group.start_soon(call)
        answer(await asked(place))
    return results[0]


@pytest.mark.parametrize("era", ERAS)
async def test_a_person_at_this_machine_says_yes_and_the_client_is_not_asked(local: Place, era: str):
    result = await during(local, era, lambda left: answer_approval(places(local), left, Choice.ONCE))
    assert result["status"] == "success"
    assert local.scribbled == ["hello"]
    assert local.asked == []
    assert not list(Path(places(local).state, "approvals").glob("*/*"))


@pytest.mark.parametrize("era", ERAS)
async def test_a_no_is_told_with_its_reason(local: Place, era: str):
    result = await during(
        local, era, lambda left: answer_approval(places(local), left, Choice.DENY, feedback="write less")
    )
    assert "write less" in result["error"]["message"]
    assert local.scribbled == []


async def test_nobody_there_is_a_no(local: Place):
    local.configure('[serve]\napprovals = "local"\n[confirmation]\nexpires = 0.5\n')
    async with local.client(LEGACY, lambda _: accept("once")) as client:
        result = result_fields(await client.call_tool("scribble", {"word": "hello"}))
    assert result["error"]["code"] == "no_confirmer"
    assert (local.scribbled, local.asked) == ([], [])


NONSENSE = (
    b"yes",
    b"[" * 10_000,
    b'{"choice": "once"}',
    b'{"nonce": "made up", "choice": "once"}',
    b'{"nonce": 7, "choice": "once"}',
    b"\xff",
)


async def test_an_answer_that_is_none_is_a_no(local: Place, tmp_path: Path):
    def write(left: PendingApproval, text: bytes) -> None:
        new = reply(local, left).with_suffix(".new")
        new.write_bytes(text)
        new.replace(reply(local, left))

    def other_word(left: PendingApproval) -> None:
        write(left, json.dumps({"nonce": left.nonce, "choice": "session", "grant": 99}).encode())

    def link(left: PendingApproval) -> None:
        real = tmp_path / "elsewhere"
        real.write_text(json.dumps({"nonce": left.nonce, "choice": "once"}))
        reply(local, left).symlink_to(real)

    answers = [other_word, link, *(partial(write, text=text) for text in NONSENSE)]
    async with local.client(LEGACY, lambda _: accept("once")) as client:
        for answer in answers:
            assert (await while_asked(local, client, answer))["error"]["code"] == "denied_by_user"
    assert local.scribbled == []


def reply(place: Place, left: PendingApproval) -> Path:
    return Path(places(place).state, "approvals", left.session, f"{left.id}.answer")


async def test_a_question_is_answered_once_and_only_its_owner_reads_it(local: Place):
    def answer(left: PendingApproval) -> None:
        (file,) = Path(places(local).state, "approvals").glob("*/*.question")
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
        answer_approval(places(local), left, Choice.ONCE)
        kept.append(left)

    kept: list[PendingApproval] = []
    await during(local, MODERN, answer)
    with pytest.raises(NotFound):
        answer_approval(places(local), kept[0], Choice.ONCE)
    assert local.scribbled == ["hello"]


async def test_the_command_lists_what_waits_and_answers_only_at_a_terminal(local: Place):
    async with local.client(LEGACY) as client, anyio.create_task_group() as group:
        group.start_soon(client.call_tool, "scribble", {"word": "hello"})
        left = await asked(local)
        listed = await run(local, "--list", "--json")
        refused = await run(local)
        answer_approval(places(local), left, Choice.DENY)
    (shown,) = json.loads(listed.stdout)
    assert (shown["tool"], shown["args"]) == ("scribble", {"word": "hello"})
    assert "nonce" not in shown
    assert refused.returncode == 1
    assert b"at a terminal" in refused.stderr


async def run(place: Place, *args: str) -> Any:
    with anyio.fail_after(60):
        return await anyio.run_process([str(HANDRAIL), "approvals", *args], env=place.environment, check=False)


async def test_a_person_answers_at_a_terminal(local: Place):
    command, environment = [HANDRAIL, "approvals"], {**local.environment, "COLUMNS": "100", "TERM": "dumb"}
    async with local.client(LEGACY) as client, anyio.create_task_group() as group:
        results: list[Any] = []

        async def call() -> None:
            results.append(result_fields(await client.call_tool("scribble", {"word": "hello"})))

        group.start_soon(call)
        await asked(local)
        with Terminal(command, local.folder, environment) as terminal:
            shown = await anyio.to_thread.run_sync(terminal.wait_for, "Do it?")
            terminal.type("y\n")
            await wait_for(lambda: results)
            terminal.type("\x03")
            code, _ = await anyio.to_thread.run_sync(terminal.end)
    assert code == 130
    assert "may scribble run this command" in shown
    assert results[0]["status"] == "success"


class Thinking:
    """The person of a client, who thinks until they may answer with a no."""

    def __init__(self) -> None:
        self.shown, self.may, self.withdrawn = anyio.Event(), anyio.Event(), False

    async def __call__(self, form: object) -> types.ElicitResult:
        self.shown.set()
        try:
            await self.may.wait()
        except anyio.get_cancelled_exc_class():
            self.withdrawn = True
            raise
        return types.ElicitResult(action="decline")


async def during_a_form(place: Place, era: str, tool: str, args: dict[str, Any], answer: Any) -> tuple[Thinking, Any]:
    """The result of a call that is answered at this machine while the client shows its form."""
    person = Thinking()
    results: list[dict[str, Any]] = []

    async with place.client(era, person) as client, anyio.create_task_group() as group:

        async def call() -> None:
            results.append(result_fields(await client.call_tool(tool, args)))

        group.start_soon(call)
        await person.shown.wait()
        (left,) = await wait_for(lambda: list_pending_questions(places(place)))
        answer(places(place), left)
        await wait_for(
            lambda: (
                not list_pending_questions(places(place)) and not list(Path(places(place).state).glob("approvals/*"))
            )
        )
        if era == LEGACY:
            # That the form is over goes to this client while it shows it.
            await wait_for(lambda: person.withdrawn)
        person.may.set()
    return person, results[0]


async def test_a_form_that_a_client_shows_is_withdrawn_when_somebody_else_has_answered(place: Place):
    person, result = await during_a_form(
        place, LEGACY, "scribble", {"word": "hello"}, lambda at, left: answer_approval(at, left, Choice.ONCE)
    )
    assert person.withdrawn
    assert result["wrote"] == "hello"
    assert place.scribbled == ["hello"]


async def test_an_answer_of_a_client_that_comes_late_is_said_to_be_late(place: Place):
    person, result = await during_a_form(
        place, MODERN, "scribble", {"word": "hello"}, lambda at, left: answer_approval(at, left, Choice.ONCE)
    )
    # Nobody can tell this client while it asks.
    assert not person.withdrawn
    assert result["wrote"] == "hello"
    assert "came late" in result["note"]
    assert place.scribbled == ["hello"]

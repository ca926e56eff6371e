"""Questions that are left at this machine beside where a session asks: whoever is first answers, and nobody else."""

from __future__ import annotations

import json
import os
import resource
import stat
import subprocess
import sys
from collections.abc import AsyncGenerator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from threading import Barrier
from typing import Any

import anyio
import pytest

from handrail import (
    Answer,
    AnswerKind,
    Approval,
    Choice,
    Inquiry,
    Question,
    Reply,
    Session,
    ToolContext,
    Write,
    tool,
)  # fmt: skip
from handrail.api.approval import yes
from handrail.api.events import ApprovalAnswered, InquiryAnswered
from handrail.approval.ask_user import InquiryReplies
from handrail.approval.inbox import (
    PendingApproval,
    PendingInquiry,
    answer_approval,
    answer_inquiry,
    list_pending_questions,
)
from handrail.errors import NotFound
from handrail.fs.app_dirs import AppDirs, write_private_file
from handrail.testing import open_test_session


@tool(effects=[Write("settings")])
async def change(to: str = "") -> dict[str, Any]:
    """Change."""
    return {"to": to}


class Person:
    """Somebody who is asked, and answers when they are let."""

    def __init__(self) -> None:
        self.may = anyio.Event()
        self.told: list[object] = []

    async def __call__(self, approval: Approval) -> Answer:
        try:
            await self.may.wait()
        except anyio.get_cancelled_exc_class():
            self.told.append(approval.among.given(approval.id))
            raise
        return Answer(Choice.ONCE)


async def left(places: AppDirs) -> PendingApproval:
    """The question about a call that waits."""
    found = await waiting(places)
    assert isinstance(found, PendingApproval)
    return found


@asynccontextmanager
async def called(session: Session) -> AsyncGenerator[PendingApproval, None]:
    """The question about a call, which is over once this is left."""
    async with anyio.create_task_group() as group:
        group.start_soon(session.call, "change")
        yield await left(session.runtime.places)


async def waiting(places: AppDirs) -> PendingApproval | PendingInquiry:
    with anyio.fail_after(60):
        while not (found := list_pending_questions(places)):
            await anyio.sleep(0.01)
    return found[0]


async def test_a_question_is_answered_at_this_machine_and_who_was_asked_is_told(tmp_path: Path) -> None:
    person = Person()
    async with open_test_session(tools=[change], folder=tmp_path, confirm=person) as session:
        places, answered = session.runtime.places, list[Any]()
        session.bus.subscribe(lambda event: answered.append(event) if isinstance(event, ApprovalAnswered) else None)
        async with called(session) as question:
            answer_approval(places, question, Choice.ONCE, by="in the console")
        assert session.history.last()[0].result["status"] == "success"
        assert person.told == [Answer(Choice.ONCE, by="in the console")]
        assert [(event.answer, event.by) for event in answered] == [("once", "in the console")]
        assert not list((places.state / "approvals").glob("*"))


async def test_an_edited_call_is_judged_and_asked_about_anew(tmp_path: Path) -> None:
    async with open_test_session(tools=[change], folder=tmp_path, confirm=Person()) as session:
        places = session.runtime.places
        async with anyio.create_task_group() as group:
            group.start_soon(session.call, "change", {"to": "a"})
            first = await left(places)
            answer_approval(places, first, Choice.EDIT, args={"to": "b"})
            with anyio.fail_after(60):
                while not list_pending_questions(places) or list_pending_questions(places)[0].id == first.id:
                    await anyio.sleep(0.01)
            second = await left(places)
            assert second.args == {"to": "b"}
            answer_approval(places, second, Choice.ONCE)
        assert session.history.last()[0].result["to"] == "b"


async def test_of_many_who_answer_at_once_one_is_first_and_the_others_are_told(tmp_path: Path) -> None:
    many = 8
    async with open_test_session(tools=[change], folder=tmp_path, confirm=Person()) as session:
        places, together = session.runtime.places, Barrier(many)

        def answer(number: int, question: PendingApproval) -> int | None:
            together.wait(60)
            try:
                answer_approval(places, question, Choice.DENY, feedback=f"said by {number}")
            except NotFound:
                return None
            return number

        for _ in range(5):
            async with called(session) as question:
                with ThreadPoolExecutor(many) as threads:
                    futures = [threads.submit(answer, number, question) for number in range(many)]
                    await anyio.to_thread.run_sync(lambda futures=futures: [each.result(60) for each in futures])
            first = [each.result() for each in futures if each.result() is not None]
            assert len(first) == 1
            assert f"said by {first[0]}" in session.history.last()[-1].result["error"]["message"]


async def test_who_is_asked_and_answers_after_somebody_has_taken_the_question_away_comes_too_late(
    tmp_path: Path,
) -> None:
    person = Person()
    async with open_test_session(tools=[change], folder=tmp_path, confirm=person) as session:
        places = session.runtime.places
        async with called(session) as question:
            # Nothing of the session runs between the two.
            person.may.set()
            answer_approval(places, question, Choice.DENY, feedback="not now")
        assert "not now" in session.history.last()[0].result["error"]["message"]


async def test_who_answers_here_first_leaves_nothing_to_answer(tmp_path: Path) -> None:
    person = Person()
    async with open_test_session(tools=[change], folder=tmp_path, confirm=person) as session:
        places = session.runtime.places
        async with called(session) as question:
            person.may.set()
        assert session.history.last()[0].result["status"] == "success"
        with pytest.raises(NotFound):
            answer_approval(places, question, Choice.DENY)
        assert not list((places.state / "approvals").glob("*"))


async def test_what_decides_by_itself_leaves_no_question(tmp_path: Path) -> None:
    async with open_test_session(tools=[change], folder=tmp_path, confirm=yes) as session:
        assert (await session.call("change"))["status"] == "success"
        assert not (session.runtime.places.state / "approvals").exists()


@pytest.mark.parametrize(
    "wrong",
    [b"", b"[]", b"[" * 100_000, b"\xff\xfe", b'{"id": 1}', b'{"__proto__": {}}'],
    ids=lambda wrong: str(wrong[:12]),
)
async def test_a_file_that_is_no_question_hides_no_other(tmp_path: Path, wrong: bytes) -> None:
    async with open_test_session(tools=[change], folder=tmp_path, confirm=Person()) as session:
        places = session.runtime.places
        async with called(session) as asked:
            own = next((places.state / "approvals").glob("*/*.question"))
            # Its asker is there: another way to what they hold.
            for id in ("a8", "a9"):
                own.with_name(f"{id}.asker").hardlink_to(own.with_name(f"{asked.id}.asker"))
            own.with_name("a9.question").write_bytes(wrong)
            told = json.loads(own.read_text()) | {"id": "a8", "expires": "soon"}
            own.with_name("a8.question").write_text(json.dumps(told))
            assert list_pending_questions(places) == [asked]
            answer_approval(places, asked, Choice.DENY)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="only POSIX has pipes with names")
async def test_a_pipe_in_the_place_of_a_question_or_an_answer_holds_nobody_up(tmp_path: Path) -> None:
    async with open_test_session(tools=[change], folder=tmp_path, confirm=Person()) as session:
        places = session.runtime.places
        async with called(session) as asked:
            folder = places.state / "approvals" / asked.session
            (folder / "a9.asker").hardlink_to(folder / f"{asked.id}.asker")
            os.mkfifo(folder / "a9.question")
            os.mkfifo(folder / "a8.asker")
            assert list_pending_questions(places) == [asked]
            os.mkfifo(folder / f"{asked.id}.answer")
        assert session.history.last()[0].result["status"] == "denied"


async def test_where_the_answer_cannot_be_kept_the_question_waits_on(tmp_path: Path) -> None:
    async with open_test_session(tools=[change], folder=tmp_path, confirm=Person()) as session:
        places = session.runtime.places
        async with called(session) as asked:
            before = resource.getrlimit(resource.RLIMIT_FSIZE)
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
            try:
                with pytest.raises(OSError, match="too large"):
                    answer_approval(places, asked, Choice.ONCE)
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, before)
            assert list_pending_questions(places) == [asked]
            answer_approval(places, asked, Choice.ONCE)
        assert session.history.last()[0].result["status"] == "success"


@tool()
async def wonder(*, context: ToolContext) -> dict[str, Any]:
    """Ask two things."""
    asked = Question(question="Which?", kind=AnswerKind.CHOICE, options=("red", "blue"))
    return {"answers": list(await context.ask([asked, Question(question="Sure?", kind=AnswerKind.YES_NO)]))}


class Thinking(Person):
    """Somebody who is asked in words, and answers "red", and yes, when they are let."""

    async def ask(self, inquiry: Inquiry) -> Sequence[Reply]:
        try:
            await self.may.wait()
        except anyio.get_cancelled_exc_class():
            self.told.append(inquiry.among.given(inquiry.id))
            raise
        return ["red", True]


async def asked_in_words(places: AppDirs) -> PendingInquiry:
    found = await waiting(places)
    assert isinstance(found, PendingInquiry)
    return found


async def test_questions_in_words_are_answered_at_this_machine_and_who_was_asked_is_told(tmp_path: Path) -> None:
    person = Thinking()
    async with open_test_session(tools=[wonder], folder=tmp_path, confirm=person) as session:
        places, heard = session.runtime.places, list[Any]()
        session.bus.subscribe(lambda event: heard.append(event) if isinstance(event, InquiryAnswered) else None)
        async with anyio.create_task_group() as group:
            group.start_soon(session.call, "wonder")
            answer_inquiry(places, await asked_in_words(places), ["blue", None], by="in the console")
        assert session.history.last()[0].result["answers"] == ["blue", None]
        assert person.told == [InquiryReplies(("blue", None), "in the console")]
        assert [(event.answered, event.by) for event in heard] == [(True, "in the console")]
        assert not list((places.state / "approvals").glob("*"))


async def test_questions_in_words_are_answered_once(tmp_path: Path) -> None:
    person = Thinking()
    async with open_test_session(tools=[wonder], folder=tmp_path, confirm=person) as session:
        places = session.runtime.places
        async with anyio.create_task_group() as group:
            group.start_soon(session.call, "wonder")
            inquiry = await asked_in_words(places)
            # Nothing of the session runs between the two: who took the question away was first.
            person.may.set()
            answer_inquiry(places, inquiry, ["blue", False])
            with pytest.raises(NotFound):
                answer_inquiry(places, inquiry, ["red", True])
        assert session.history.last()[0].result["answers"] == ["blue", False]
        async with anyio.create_task_group() as group:
            group.start_soon(session.call, "wonder")
        assert session.history.last()[-1].result["answers"] == ["red", True]
        assert not list((places.state / "approvals").glob("*"))


@pytest.mark.parametrize(
    "given", [None, [], ["blue"], ["blue", "yes"], [{"a": 1}, True], [None, None]], ids=lambda given: str(given)
)
async def test_what_is_no_answer_to_questions_in_words_leaves_them_open(tmp_path: Path, given: Any) -> None:
    async with open_test_session(tools=[wonder], folder=tmp_path, confirm=Thinking()) as session:
        async with anyio.create_task_group() as group:
            group.start_soon(session.call, "wonder")
            answer_inquiry(session.runtime.places, await asked_in_words(session.runtime.places), given)
        assert session.history.last()[0].result["error"]["code"] == "denied_by_user"


async def test_an_answer_that_belongs_to_another_question_is_none(tmp_path: Path) -> None:
    async with open_test_session(tools=[wonder], folder=tmp_path, confirm=Thinking()) as session:
        async with anyio.create_task_group() as group:
            group.start_soon(session.call, "wonder")
            inquiry = await asked_in_words(session.runtime.places)
            answer = {"nonce": "another", "replies": ["blue", True]}
            folder = session.runtime.places.state / "approvals" / inquiry.session
            write_private_file(folder / f"{inquiry.id}.answer", json.dumps(answer))
        assert session.history.last()[0].result["error"]["code"] == "denied_by_user"


ASKER = """
import anyio, sys
from pathlib import Path
from handrail import Write, tool
from handrail.testing import open_test_session

@tool(effects=[Write("settings")])
async def change() -> None:
    "Change."

async def wait(approval):
    await anyio.sleep_forever()

async def main():
    async with open_test_session(tools=[change], folder=Path(sys.argv[1]), confirm=wait) as session:
        print(session.runtime.places.state, flush=True)
        await session.call("change")

anyio.run(main)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="what is killed so is a process of POSIX")
@pytest.mark.parametrize("taken", [False, True], ids=["waiting", "taken"])
async def test_a_question_whose_asker_was_killed_is_gone_and_cleared_away(tmp_path: Path, taken: bool) -> None:
    command = [sys.executable, "-c", ASKER, str(tmp_path)]
    async with await anyio.open_process(command, stdin=subprocess.DEVNULL, stderr=None) as process:
        assert process.stdout is not None
        places = replace(AppDirs.of({}), state=Path((await process.stdout.receive()).decode().strip()))
        asked = await left(places)
        folder = places.state / "approvals" / asked.session
        if taken:
            (folder / f"{asked.id}.question").rename(folder / f"{asked.id}.taken")
        process.kill()
        await process.wait()
    assert list_pending_questions(places) == []
    assert not folder.exists()
    with pytest.raises(NotFound):
        answer_approval(places, asked, Choice.ONCE)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such rights")
def test_only_the_person_can_look_into_folders_that_are_made_for_private_files(tmp_path: Path) -> None:
    write_private_file(tmp_path / "home/state/approvals/a", "?")
    made = [tmp_path / "home", tmp_path / "home/state", tmp_path / "home/state/approvals"]
    assert [stat.S_IMODE(each.stat().st_mode) for each in made] == [0o700] * 3

"""Questions in words: who is asked, what counts as an answer, and what happens when there is none."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest

from handrail import AnswerKind, DesktopError, Tool
from handrail.api.approval import no, yes
from handrail.api.events import Event, InquiryAnswered, InquiryAsked, event_wire
from handrail.errors import DeniedByUser, NoConfirmer
from handrail.testing import ToolContract, open_test_session
from handrail_session.ask_user_tool import ask_user

from .people import PLUGINS, AtTerminal, Host, Person, run

COLOUR = {"question": "Which colour?", "kind": "choice", "options": ["red", "blue"]}
MANY = {"question": "Which sides?", "kind": "choice", "options": ["left", "right", "top"], "several": True}
SURE = {"question": "Are you sure?", "kind": "yes_no"}
NAME = {"question": "What is it called?"}


class TestAskUser(ToolContract):
    @pytest.fixture
    def tool(self) -> Tool:
        return ask_user

    @pytest.fixture
    def good_args(self) -> Mapping[str, Any]:
        return {"questions": [COLOUR]}

    @pytest.fixture
    def bad_args(self) -> list[Mapping[str, Any]]:
        return [
            {"questions": []},
            {"questions": [NAME] * 5},
            {"questions": [{**COLOUR, "options": ["red"]}]},
            {"questions": [{**COLOUR, "options": ["red", "Red "]}]},
            {"questions": [{**NAME, "options": ["red", "blue"]}]},
            {"questions": [{**NAME, "kind": "number"}]},
        ]

    @pytest.fixture
    def options(self) -> Mapping[str, Any]:
        return {"confirm": Person(replies=["red"])}


async def asked(person: Any, *questions: Mapping[str, Any], **given: Any) -> Any:
    async with open_test_session(plugins=PLUGINS, confirm=person, **given) as session:
        return await session.call("ask_user", {"questions": list(questions)})


async def test_a_persons_answers_are_the_result() -> None:
    person = Person(replies=["blue", ("left", "a slope"), False, None])
    result = await asked(person, COLOUR, MANY, SURE, NAME)
    assert result["status"] == "success"
    assert [each["answer"] for each in result["answers"]] == ["blue", ["left", "a slope"], False, None]
    (inquiry,) = person.inquiries
    assert [question.kind for question in inquiry.questions] == [
        AnswerKind.CHOICE,
        AnswerKind.CHOICE,
        AnswerKind.YES_NO,
        AnswerKind.TEXT,
    ]
    assert person.asked == []


@pytest.mark.parametrize("person", [None, yes, no], ids=["nobody", "always-yes", "always-no"])
async def test_with_nobody_there_it_fails(person: Any) -> None:
    result = await asked(person, NAME)
    assert (result["status"], result["error"]["code"]) == ("denied", "no_confirmer")


async def test_in_headless_mode_nobody_is_asked() -> None:
    person = Person(replies=["x"])
    result = await asked(person, NAME, settings={"mode": "headless"})
    assert result["error"]["code"] == "no_confirmer"
    assert person.inquiries == []


@pytest.mark.parametrize(
    ("replies", "code"),
    [
        pytest.param(["a", "b"], "no_confirmer", id="too-many"),
        pytest.param([True], "no_confirmer", id="another-kind"),
        pytest.param(["  "], "no_confirmer", id="nothing-in-it"),
        pytest.param(["x" * 10_001], "no_confirmer", id="too-long"),
        pytest.param([None], "denied_by_user", id="left-open"),
        pytest.param(DeniedByUser("no"), "denied_by_user", id="refused"),
        pytest.param(NoConfirmer("gone"), "no_confirmer", id="gone"),
        pytest.param(ValueError("broken"), "no_confirmer", id="crashed"),
        pytest.param(DesktopError("broken"), "no_confirmer", id="failed"),
    ],
)
async def test_what_is_no_answer_is_none(replies: Any, code: str) -> None:
    assert (await asked(Person(replies=replies), NAME))["error"]["code"] == code


async def test_a_question_expires() -> None:
    class Silent(Person):
        async def ask(self, inquiry: Any) -> Any:
            await anyio.sleep_forever()

    result = await asked(Silent(), NAME, settings={"confirmation": {"expires": 0.05}})
    assert result["error"]["code"] == "no_confirmer"
    assert "0.05 s" in result["error"]["message"]


async def test_listeners_hear_of_the_questions_and_not_of_the_answers() -> None:
    heard: list[Event] = []
    async with open_test_session(plugins=PLUGINS, confirm=Person(replies=["Rosalind"])) as session:
        session.bus.subscribe(heard.append)
        await session.call("ask_user", {"questions": [NAME]})
    told = [each for each in heard if isinstance(each, InquiryAsked | InquiryAnswered)]
    assert [type(each) for each in told] == [InquiryAsked, InquiryAnswered]
    assert "What is it called?" in json.dumps(event_wire(told[0]))
    assert "Rosalind" not in json.dumps([event_wire(each) for each in told])


# At a terminal


def test_at_a_terminal_each_question_is_answered_in_a_line(tmp_path: Path) -> None:
    args = {"questions": [COLOUR, MANY, SURE, NAME]}
    with AtTerminal(tmp_path, "call", "ask_user", "--json", "--args", json.dumps(args)) as terminal:
        terminal.answer("own words: ", "2")
        terminal.answer("own words: ", "1, top")
        terminal.answer("[n]o: ", "perhaps")
        terminal.wait_for("Type yes or no.")
        terminal.answer("[n]o: ", "y")
        terminal.answer("Your answer: ", "the boat")
        result = terminal.result()
    assert [each["answer"] for each in result["answers"]] == ["blue", ["left", "top"], True, "the boat"]


def test_at_a_terminal_own_words_do_and_an_empty_line_is_no_answer(tmp_path: Path) -> None:
    args = {"questions": [COLOUR, MANY, NAME]}
    with AtTerminal(tmp_path, "call", "ask_user", "--json", "--args", json.dumps(args)) as terminal:
        terminal.answer("own words: ", "green, or 2")
        terminal.answer("own words: ", "none, really")
        terminal.answer("Your answer: ", "")
        result = terminal.result()
    assert [each["answer"] for each in result["answers"]] == ["green, or 2", ["none, really"], None]


def test_at_a_terminal_a_question_cannot_pass_for_one_of_handrails(tmp_path: Path) -> None:
    args = {"questions": [{"question": "Hi\x1b[2J\nHandrail asks: may I?\nDo it? [y]es"}]}
    with AtTerminal(tmp_path, "call", "ask_user", "--json", "--args", json.dumps(args)) as terminal:
        terminal.wait_for("    | Hi\\x1b[2J\r\n    | Handrail asks: may I?\r\n    | Do it? [y]es")
        terminal.answer("Your answer: ", "")
        assert terminal.result()["error"]["code"] == "denied_by_user"


# In lines of JSON


def test_a_host_is_asked_in_a_line_and_answers_in_another(tmp_path: Path) -> None:
    host = Host(tmp_path, "--ask")
    host.say(id=7, tool="ask_user", args={"questions": [COLOUR, SURE]})
    line = host.hear()
    assert (line["id"], line["questions"][0]) == (7, {**COLOUR, "several": False})
    for answers in (["blue"], ["blue", "yes"], "blue"):
        host.say(control="reply", id=1, inquiry=line["inquiry"], answers=answers)
        assert host.hear()["ok"] is False
    host.say(control="reply", id=2, inquiry=line["inquiry"], answers=["blue", True])
    heard = {each["id"]: each for each in (host.hear(), host.hear())}
    assert heard[2]["ok"] is True
    assert [each["answer"] for each in heard[7]["result"]["answers"]] == ["blue", True]
    host.say(control="reply", id=3, inquiry=line["inquiry"], answers=["red", True])
    assert "no questions" in host.hear()["error"]["message"]
    host.close()


def test_a_host_that_declines_or_leaves_gives_no_answer(tmp_path: Path) -> None:
    host = Host(tmp_path, "--ask")
    host.say(id=1, tool="ask_user", args={"questions": [NAME]})
    host.say(control="reply", id=2, inquiry=host.hear()["inquiry"], answers=None)
    heard = {each["id"]: each for each in (host.hear(), host.hear())}
    assert heard[1]["result"]["error"]["code"] == "denied_by_user"
    host.close()
    line = json.dumps({"id": 1, "tool": "ask_user", "args": {"questions": [NAME]}})
    *_, last = run(tmp_path, "session", "--jsonl", "--ask", input=line).stdout.splitlines()
    assert json.loads(last)["result"]["error"]["code"] == "no_confirmer"


def test_a_cancelled_call_takes_its_questions_back(tmp_path: Path) -> None:
    host = Host(tmp_path, "--ask")
    host.say(id=1, tool="ask_user", args={"questions": [NAME]})
    inquiry = host.hear()["inquiry"]
    host.say(control="cancel", id=2, call=1)
    heard = {each["id"]: each for each in (host.hear(), host.hear())}
    assert heard[1]["result"]["status"] == "cancelled"
    host.say(control="reply", id=3, inquiry=inquiry, answers=["late"])
    assert host.hear()["ok"] is False
    host.close()


async def test_options_without_a_kind_are_refused_with_the_cure() -> None:
    result = await asked(Person(replies=["red"]), {"question": "Which?", "options": ["red", "blue"]})
    assert 'add "kind": "choice"' in result["error"]["message"]

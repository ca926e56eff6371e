"""Keys into a terminal are judged as the commands that they are."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest

import handrail
from handrail import Approval, Session
from handrail.desktop.key_chords import parse_chord
from handrail.testing import ScriptedConfirmer
from handrail_gui.act.shell_line import apply_chord, apply_text

from .conftest import PLAIN_WINDOW, Programs, until


@pytest.mark.parametrize(
    ("line", "text", "lines", "rest"),
    [
        ("", "ls", (), "ls"),
        ("", "ls\n", ("ls",), ""),
        ("rm ", "-rf x\nls", ("rm -rf x",), "ls"),
        ("", "a\r\nb\rc", ("a", "b"), "c"),
        (None, "ls", (), None),
        (None, "ls\nx", ("ls",), "x"),
    ],
)
def test_text_makes_commands_of_a_line(line: str | None, text: str, lines: tuple[str, ...], rest: str | None) -> None:
    typed = apply_text(line, text)
    assert (typed.lines, typed.rest) == (lines, rest)
    assert ("terminal_unknown_line" in {reason.code for reason in typed.unknown}) is (line is None and bool(lines))


@pytest.mark.parametrize("keys", ["enter", "return", "ctrl+m", "ctrl+j", "ctrl+o", "ctrl+enter"])
def test_every_key_that_runs_the_line_runs_it(keys: str) -> None:
    assert apply_chord("rm x", parse_chord(keys)).lines == ("rm x",)


@pytest.mark.parametrize(
    ("keys", "rest"),
    [
        ("backspace", "l"),
        ("ctrl+c", ""),
        ("ctrl+u", ""),
        ("x", "lsx"),
        ("space", "ls "),
        ("shift+a", "lsA"),
        ("left", None),
        ("shift", "ls"),
    ],
)
def test_keys_change_the_line(keys: str, rest: str | None) -> None:
    typed = apply_chord("ls", parse_chord(keys))
    assert (typed.lines, typed.rest, typed.unknown) == ((), rest, ())


@pytest.mark.parametrize(
    ("keys", "code"),
    [
        ("up", "terminal_history"),
        ("ctrl+r", "terminal_history"),
        ("ctrl+p", "terminal_history"),
        ("ctrl+o", "terminal_history"),
        ("tab", "terminal_completion"),
        ("shift+insert", "terminal_paste"),
        ("ctrl+shift+v", "terminal_paste"),
        ("ctrl+y", "terminal_paste"),
        ("ctrl+d", "terminal_signal"),
    ],
)
def test_keys_that_bring_in_what_is_not_known_say_so(keys: str, code: str) -> None:
    typed = apply_chord("", parse_chord(keys))
    assert ([reason.code for reason in typed.unknown], typed.rest) == ([code], None)


@pytest.mark.parametrize("text", ["!!", "echo !$", "sudo !ls\n"])
def test_recalling_history_by_its_mark_is_said(text: str) -> None:
    assert "terminal_history" in {reason.code for reason in apply_text("", text).unknown}


class Place:
    """A session on a private desktop with an xterm that has the focus, and a person who says no unless told otherwise."""

    def __init__(self, session: Session, programs: Programs, folder: Path) -> None:
        self.session = session
        self.folder = folder
        self.programs = programs
        self.answers: list[str] = []
        self.asked: list[Approval] = []

    async def confirm(self, approval: Approval) -> Any:
        self.asked.append(approval)
        return await ScriptedConfirmer(self.answers.pop(0) if self.answers else "deny")(approval)

    async def type(self, text: str) -> Any:
        return await self.session.call("execute_gui", {"action": "type", "text": text})

    async def press(self, key: str) -> Any:
        return await self.session.call("execute_gui", {"action": "press_key", "key": key})

    async def made(self, name: str) -> bool:
        with anyio.move_on_after(5):
            while not (self.folder / name).exists():
                await anyio.sleep(0.02)
        return (self.folder / name).exists()


@pytest.fixture
async def place(programs: Programs, tmp_path: Path) -> AsyncIterator[Place]:
    async with handrail.open(desktop="private", cwd=tmp_path) as session:
        found = Place(session, programs, tmp_path)
        session.confirmer = found.confirm
        await open_xterm(found, "bash", "--norc", "--noprofile")
        yield found


async def open_xterm(place: Place, *argv: str) -> None:
    screen, hands = await place.session.service("screen"), await place.session.service("hands")
    start = ["sh", "-c", f"cd '{place.folder}' && exec xterm -e \"$@\"", "xterm", *argv]
    await place.programs.open(await place.session.desktop(), screen, *start)

    async def ready() -> bool:
        found = await hands.terminals()
        return bool(found) and found[0].active and found[0].program == argv[0]

    await until(ready, what="a terminal with the focus")


async def test_what_reads_no_file_is_typed_without_a_question_and_all_else_is_asked_about(place: Place) -> None:
    assert (await place.type("echo hello\n")).ok
    assert (await place.type("uptime\n")).ok
    assert place.asked == []
    denied = await place.type("touch made\n")
    assert denied["error"]["code"] == "denied_by_user"
    (asked,) = place.asked
    assert asked.grants == ()
    assert [step.words for step in asked.steps if step.words] == [("touch", "made")]
    assert not (place.folder / "made").exists()


@pytest.mark.parametrize("line", ["ls\n", "cat notes.md\n", "git status\n"])
async def test_reading_files_in_a_terminal_is_asked_about_as_it_is_in_no_sandbox(place: Place, line: str) -> None:
    denied = await place.type(line)
    assert denied["error"]["code"] == "denied_by_user"
    assert "terminal_host" in {reason.code for reason in place.asked[0].verdict.reasons}


async def test_a_yes_types_it(place: Place) -> None:
    place.answers = ["once"]
    assert (await place.type("touch made\n")).ok
    assert await place.made("made")


async def test_a_line_in_pieces_is_judged_as_a_whole(place: Place) -> None:
    assert (await place.type("tou")).ok
    assert (await place.type("ch pieces")).ok
    assert place.asked == []
    assert not (await place.press("enter")).ok
    assert [step.words for step in place.asked[0].steps if step.words] == [("touch", "pieces")]
    assert (await place.press("ctrl+c")).ok
    assert (await place.press("enter")).ok


@pytest.mark.parametrize("text", ["rm -rf ~", "rm -rf /\n"])
async def test_a_catastrophe_is_refused_with_or_without_enter(place: Place, text: str) -> None:
    assert (await place.type(text))["error"]["code"] == "denied_by_policy"
    assert place.asked == []


async def test_a_catastrophe_in_pieces_is_refused(place: Place) -> None:
    assert (await place.type("rm -rf ")).ok
    assert (await place.type("/"))["error"]["code"] == "denied_by_policy"


@pytest.mark.parametrize(
    ("key", "code"), [("up", "terminal_history"), ("tab", "terminal_completion"), ("shift+insert", "terminal_paste")]
)
async def test_what_is_not_known_is_asked_about(place: Place, key: str, code: str) -> None:
    place.answers = ["once"]
    assert (await place.press(key)).ok
    assert code in {reason.code for reason in place.asked[0].verdict.reasons}
    assert not (await place.press("enter")).ok
    assert "terminal_unknown_line" in {reason.code for reason in place.asked[1].verdict.reasons}


async def test_a_middle_click_may_paste(place: Place) -> None:
    observed = await place.session.call("observe_screen", {"image": "none"})
    assert observed.ok
    denied = await place.session.call("execute_gui", {"action": "middle_click", "x": 200, "y": 200})
    assert denied["error"]["code"] == "denied_by_user"
    assert "terminal_paste" in {reason.code for reason in place.asked[0].verdict.reasons}


async def test_a_paste_makes_the_line_of_every_terminal_unknown_that_is_open(place: Place) -> None:
    hands = await place.session.service("hands")
    (first,) = await hands.terminals()
    await open_xterm(place, "bash", "--norc", "--noprofile")
    # Where the pointer is may be either.
    await hands.activate(first.window)
    place.answers = ["once"]
    assert (await place.session.call("observe_screen", {"image": "raw"})).ok
    middle = await place.session.call("execute_gui", {"action": "middle_click", "x": 200, "y": 200})
    assert middle.ok, middle
    for terminal in await hands.terminals():
        await hands.activate(terminal.window)
        assert not (await place.press("enter")).ok
        assert "terminal_unknown_line" in {reason.code for reason in place.asked[-1].verdict.reasons}
        await hands.minimize(terminal.window)
    # What is put away gets no paste.
    questions = len(place.asked)
    assert (await place.session.call("observe_screen", {"image": "raw"})).ok
    assert (await place.session.call("execute_gui", {"action": "middle_click", "x": 200, "y": 200})).ok
    assert len(place.asked) == questions


async def test_what_is_typed_to_a_program_in_a_terminal_is_asked_about(place: Place) -> None:
    hands = await place.session.service("hands")
    place.answers = ["once"]
    assert (await place.type("sleep 60\n")).ok

    async def sleeping() -> bool:
        return (await hands.terminals())[0].program == "sleep"

    await until(sleeping, what="sleep in the terminal")
    assert not (await place.type("ls\n")).ok
    assert "terminal_program" in {reason.code for reason in place.asked[-1].verdict.reasons}


async def test_the_shells_own_folder_counts(place: Place) -> None:
    assert (await place.type("cd /etc\n")).ok
    hands = await place.session.service("hands")

    async def there() -> bool:
        return (await hands.terminals())[0].cwd == "/etc"

    await until(there, what="the shell in /etc")
    assert not (await place.type("cat shadow\n")).ok


async def test_typing_at_a_place_that_turns_out_to_be_a_terminal_presses_nothing(place: Place) -> None:
    await place.session.call("observe_screen", {"image": "none"})
    refused = await place.session.call("execute_gui", {"action": "type", "text": "touch placed\n", "x": 200, "y": 200})
    assert refused["error"]["code"] == "stale_observation"
    assert not (place.folder / "placed").exists()


async def test_a_line_that_changed_while_a_person_thought_is_not_run(place: Place) -> None:
    async def slow(approval: Approval) -> Any:
        focusing = await place.session.service("focus")
        (window,) = focusing._lines
        focusing._lines[window].text = "rm -rf "
        return await ScriptedConfirmer("once")(approval)

    place.session.confirmer = slow
    refused = await place.type("touch late\n")
    assert refused["error"]["code"] == "stale_observation"
    assert not (place.folder / "late").exists()


async def test_a_terminal_gets_letters_of_any_script_by_keys(place: Place) -> None:
    out = place.folder / "typed"
    screen, hands = await place.session.service("screen"), await place.session.service("hands")
    await place.programs.open(await place.session.desktop(), screen, sys.executable, PLAIN_WINDOW, str(out), "terminal")

    async def ready() -> bool:
        found = await hands.terminals()
        return bool(found) and found[0].active and found[0].program == ""

    await until(ready, what="the window with a terminal")
    place.answers = ["once"]
    typed = await place.type("echo 漢字\n")
    assert typed["route"] == "keys"
    assert out.read_text() == "echo 漢字\n"
    assert "terminal_program" in {reason.code for reason in place.asked[0].verdict.reasons}


async def test_terminals_can_be_refused_altogether(programs: Programs, tmp_path: Path) -> None:
    refusing: dict[str, Any] = {"plugins.gui.terminals": "refuse"}
    async with handrail.open(desktop="private", cwd=tmp_path, **refusing) as session:
        found = Place(session, programs, tmp_path)
        await open_xterm(found, "bash", "--norc", "--noprofile")
        refused = await found.type("echo hello\n")
    assert refused["error"]["code"] == "denied_by_policy"
    assert "execute_cli" in refused["error"]["message"]


async def test_where_no_plugin_reads_commands_all_that_is_typed_there_is_asked_about(
    programs: Programs, tmp_path: Path
) -> None:
    alone: dict[str, Any] = {"plugins.disabled": ["cli"]}
    async with handrail.open(desktop="private", cwd=tmp_path, **alone) as session:
        found = Place(session, programs, tmp_path)
        session.confirmer = found.confirm
        await open_xterm(found, "bash", "--norc", "--noprofile")
        found.answers = ["once"]
        assert (await found.type("touch made\n")).ok
        assert await found.made("made")
        assert (await found.type("touch more\n")).status == "denied"
    assert [{reason.code for reason in each.verdict.reasons} for each in found.asked] == [{"terminal_unread"}] * 2
    assert not (tmp_path / "more").exists()


async def test_on_a_persons_own_desktop_what_stands_on_the_line_is_not_known_before_it_was_dropped(
    place: Place,
) -> None:
    focusing = await place.session.service("focus")
    focusing._private = False
    assert not (await place.press("enter")).ok
    assert "terminal_unknown_line" in {reason.code for reason in place.asked[0].verdict.reasons}
    assert (await place.press("ctrl+c")).ok
    assert (await place.press("enter")).ok


async def test_what_somebody_else_typed_meanwhile_makes_the_line_unknown(place: Place) -> None:
    focusing, hands = await place.session.service("focus"), await place.session.service("hands")
    focusing._private = False
    assert (await place.press("ctrl+c")).ok
    await anyio.sleep(0.8)
    await hands.move(300, 300)
    assert not (await place.press("enter")).ok
    assert "terminal_unknown_line" in {reason.code for reason in place.asked[0].verdict.reasons}

from __future__ import annotations

import json
import signal
import subprocess
from contextlib import ExitStack

import pytest
from tests.terminals import Terminal

pytestmark = pytest.mark.usefixtures("without_undo")


def test_the_result_is_printed_as_json_on_one_line(handrail):
    done = handrail("call", "greet", "--args", '{"name": "B"}', "--json", plugins="stage")
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == 1
    assert json.loads(done.stdout)["content"] == "hello, B"


def test_arguments_come_from_a_file_or_from_stdin(handrail):
    (handrail.folder / "args.json").write_text('{"name": "F"}')
    assert handrail("call", "greet", "--args", "@args.json", plugins="stage").stdout == "hello, F\n"
    assert handrail("call", "greet", "--args", "-", input='{"name": "S"}', plugins="stage").stdout == "hello, S\n"


def test_who_gives_arguments_as_words_or_none_is_told_how_they_are_given(handrail):
    cure = """a tool's arguments are one object, as in --args '{"seconds": 1}'"""
    done = handrail("call", "wait", "seconds=1")
    assert (done.returncode, f"'seconds=1' is too much: {cure}" in done.stderr) == (2, True)
    done = handrail("call", "set_switch", plugins="stage")
    assert (done.returncode, f"Hint: {cure}" in done.stderr) == (1, True)


@pytest.mark.parametrize("given", ["{", "[1]", "@nowhere.json", '"text"'])
def test_arguments_that_are_no_object_are_a_misuse(handrail, given):
    assert handrail("call", "wait", "--args", given).returncode == 2


@pytest.mark.parametrize(
    ("words", "code"),
    [
        pytest.param(("greet",), 0, id="success"),
        pytest.param(("crash",), 1, id="error"),
        pytest.param(("nope",), 1, id="unknown-tool"),
        pytest.param(("greet", "--args", '{"nam": 1}'), 1, id="invalid-arguments"),
        pytest.param(("set_switch", "--args", '{"value": true}'), 1, id="denied"),
        pytest.param(("set_switch", "--args", '{"value": true}', "--yes"), 0, id="confirmed"),
        pytest.param(("set_switch", "--args", '{"value": true}', "--yes", "--mode", "headless"), 1, id="headless"),
    ],
)
def test_the_exit_code_says_how_it_went(handrail, words, code):
    assert handrail("call", *words, plugins="stage").returncode == code


def test_a_person_sees_what_a_program_printed_as_it_is(handrail):
    done = handrail("call", "run_code", "--args", '{"code": "x"}', "--yes", plugins="stage")
    assert (done.stdout, done.stderr) == ("ran x\n", "warned\n")


def test_a_person_is_told_the_error_on_stderr(handrail):
    done = handrail("call", "greet", "--args", '{"nam": 1}', plugins="stage")
    assert done.stdout == ""
    assert done.stderr.startswith("Error: greet: nam: ")


def test_who_cannot_be_asked_is_told_how_to_say_yes(handrail):
    refused = handrail("call", "set_switch", "--args", '{"value": true}', plugins="stage")
    assert refused.stderr.splitlines()[-1] == "Hint: run it at a terminal to be asked, or add --yes"


def test_a_picture_is_not_poured_over_the_terminal(handrail):
    assert len(handrail("call", "picture", plugins="stage").stdout) < 500


def test_nothing_that_a_tool_prints_gets_into_the_result(handrail):
    done = handrail("call", "noise", "--json", plugins="stage")
    assert json.loads(done.stdout)["content"] == "x" * 10
    assert "printed by a tool" in done.stderr
    assert "written by a tool" in done.stderr


def test_an_evaluator_that_crashes_denies(handrail):
    result = handrail.json("call", "feared", plugins="crashing", code=1)
    assert result["error"]["code"] == "denied_by_policy"


def test_a_call_that_takes_long_is_told_on_stderr(handrail):
    assert "wait is running" in handrail("call", "wait", "--args", '{"seconds": 1.3}').stderr
    assert handrail("call", "wait", "--args", '{"seconds": 0.1}').stderr == ""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_cancels_the_call_and_the_result_says_so(handrail, number):
    words = ("call", "mark_later", "--args", '{"path": "late.txt"}', "--yes", "--json")
    process = handrail.start(*words, plugins="stage")
    assert process.stderr is not None
    process.stderr.readline()
    process.send_signal(number)
    told, complained = process.communicate(timeout=30)
    assert process.returncode == 128 + number
    assert json.loads(told)["status"] == "cancelled"
    assert b"Traceback" not in complained
    assert not (handrail.folder / "late.txt").exists()


@pytest.fixture
def at_terminal(handrail):
    with ExitStack() as stack:

        def start(*words: str) -> Terminal:
            command = [handrail.path, *words]
            return stack.enter_context(Terminal(command, handrail.folder, handrail.environment("stage")))

        yield start


@pytest.mark.parametrize(
    ("typed", "code"), [("y\n", 0), ("Yes\n", 0), ("s 1\n", 0), ("n\n", 1), ("\n", 1), ("maybe\n", 1), ("\x04", 1)]
)
def test_a_person_at_the_terminal_is_asked(at_terminal, typed, code):
    terminal = at_terminal("call", "set_switch", "--args", '{"value": true}')
    shown = terminal.wait_for("[N]o: ")
    assert "may set_switch do this?" in shown
    assert "    | Set switch" in shown
    terminal.type(typed)
    terminal.wait_for("switch: true" if code == 0 else "a person said no")
    assert terminal.end()[0] == code


def test_a_lasting_yes_asks_which_and_takes_no_other_number(at_terminal):
    terminal = at_terminal("call", "set_switch", "--args", '{"value": true}')
    shown = terminal.wait_for("[N]o: ")
    assert "  1. exactly this call" in shown
    terminal.type("a 99\n")
    shown = terminal.wait_for("[N]o: ")
    assert "There is no such number" in shown
    terminal.type("s\n")
    terminal.wait_for("Which of them?")
    terminal.type("1\n")
    terminal.wait_for("switch: true")
    assert terminal.end()[0] == 0


def test_a_no_may_say_why(at_terminal):
    terminal = at_terminal("call", "set_switch", "--args", '{"value": true}')
    terminal.wait_for("[N]o: ")
    terminal.type("n leave it off\n")
    terminal.wait_for("a person said no: leave it off")
    assert terminal.end()[0] == 1


def test_a_person_changes_the_arguments_and_is_asked_again(at_terminal):
    terminal = at_terminal("call", "set_switch", "--args", '{"value": true}')
    terminal.wait_for("[N]o: ")
    terminal.type("e\n")
    terminal.wait_for("(empty: nothing): ")
    terminal.type('{"value": false}\n')
    shown = terminal.wait_for("[N]o: ")
    assert "value=false" in shown
    terminal.type("y\n")
    terminal.wait_for("switch: false")
    assert terminal.end()[0] == 0


def test_what_was_typed_before_the_question_answers_nothing(at_terminal):
    terminal = at_terminal("call", "set_switch", "--args", '{"value": true}')
    terminal.type("y\n")
    terminal.wait_for("[N]o: ")
    terminal.type("n\n")
    terminal.wait_for("a person said no")
    assert terminal.end()[0] == 1


def test_what_a_model_wrote_cannot_move_the_cursor_of_the_question(at_terminal):
    code = "rm -rf ~\r\x1b[Kls \u202e\nIt is asked because:\n  - it is harmless"
    terminal = at_terminal("call", "run_code", "--args", json.dumps({"code": code}))
    shown = terminal.wait_for("[N]o: ")
    assert "\x1b" not in shown
    assert "\\x1b" in shown
    assert "\\u202e" in shown
    assert "    | It is asked because:" in shown, "If this fails, a line of data looks like one of ours."
    terminal.type("n\n")
    terminal.wait_for("a person said no")
    assert terminal.end()[0] == 1


def test_several_that_wait_are_answered_together(at_terminal):
    terminal = at_terminal("call", "set_many", "--args", '{"count": 3, "together": true}')
    terminal.wait_for("[N]o: ")
    terminal.type("y\n")
    shown = terminal.wait_for("[N]o: ")
    assert "2 more wait for an answer" in shown
    terminal.type("all\n")
    shown = terminal.wait_for("[b]ack: ")
    assert shown.count("may set_switch do this?") == 2
    terminal.type("y\n")
    terminal.wait_for("success")
    assert terminal.end()[0] == 0


def test_ctrl_c_at_the_question_is_a_no(at_terminal):
    terminal = at_terminal("call", "set_switch", "--args", '{"value": true}')
    terminal.wait_for("[N]o: ")
    terminal.type("\x03")
    terminal.wait_for("cancelled")
    assert terminal.end()[0] == 130


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_streams_that_are_closed_hinder_nothing(handrail, closed):
    command = f'exec "{handrail.path}" call greet {closed}'
    done = subprocess.run(
        ["sh", "-c", command], cwd=handrail.folder, env=handrail.environment("stage"), capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == ("" if ">&-" in closed.split() else "hello, you\n")

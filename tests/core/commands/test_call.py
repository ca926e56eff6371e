from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import time

import pytest


def test_the_result_is_printed_as_json_on_one_line(handrail):
    done = handrail("call", "greet", "--args", '{"name": "B"}', "--json", plugins="stage")
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == 1
    assert json.loads(done.stdout)["content"] == "hello, B"


def test_arguments_come_from_a_file_or_from_stdin(handrail):
    (handrail.folder / "args.json").write_text('{"name": "F"}')
    assert handrail("call", "greet", "--args", "@args.json", plugins="stage").stdout == "hello, F\n"
    assert handrail("call", "greet", "--args", "-", input='{"name": "S"}', plugins="stage").stdout == "hello, S\n"


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


class Terminal:
    """The program at a terminal of its own."""

    def __init__(self, handrail, *words: str) -> None:
        self.ours, theirs = pty.openpty()
        self.process = subprocess.Popen(
            [handrail.path, *words],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=handrail.environment("stage"),
            cwd=handrail.folder,
            # A terminal is a session leader's: only then can the program open /dev/tty.
            preexec_fn=lambda: (os.setsid(), os.close(os.open(os.ttyname(0), os.O_RDWR))),
        )
        os.close(theirs)
        self.shown = ""

    def read_until(self, text: str) -> None:
        deadline = time.monotonic() + 30
        while text not in self.shown:
            ready, _, _ = select.select([self.ours], [], [], max(0, deadline - time.monotonic()))
            assert ready, self.shown
            self.shown += os.read(self.ours, 10_000).decode()

    def type(self, text: str) -> None:
        os.write(self.ours, text.encode())

    def close(self) -> int:
        code = self.process.wait(30)
        os.close(self.ours)
        return code


@pytest.mark.parametrize(
    ("typed", "code"), [("y\n", 0), ("Yes\n", 0), ("s 1\n", 0), ("n\n", 1), ("\n", 1), ("maybe\n", 1), ("\x04", 1)]
)
def test_a_person_at_the_terminal_is_asked(handrail, typed, code):
    terminal = Terminal(handrail, "call", "set_switch", "--args", '{"value": true}')
    terminal.read_until("[N]o: ")
    assert "may set_switch do this?" in terminal.shown
    assert "    | Set switch" in terminal.shown
    terminal.type(typed)
    terminal.read_until("switch: true" if code == 0 else "a person said no")
    assert terminal.close() == code


def test_a_lasting_yes_asks_which_and_takes_no_other_number(handrail):
    terminal = Terminal(handrail, "call", "set_switch", "--args", '{"value": true}')
    terminal.read_until("[N]o: ")
    assert "  1. exactly this call" in terminal.shown
    terminal.shown = ""
    terminal.type("a 99\n")
    terminal.read_until("[N]o: ")
    assert "There is no such number" in terminal.shown
    terminal.type("s\n")
    terminal.read_until("Which of them?")
    terminal.type("1\n")
    terminal.read_until("switch: true")
    assert terminal.close() == 0


def test_a_no_may_say_why(handrail):
    terminal = Terminal(handrail, "call", "set_switch", "--args", '{"value": true}')
    terminal.read_until("[N]o: ")
    terminal.type("n leave it off\n")
    terminal.read_until("a person said no: leave it off")
    assert terminal.close() == 1


def test_a_person_changes_the_arguments_and_is_asked_again(handrail):
    terminal = Terminal(handrail, "call", "set_switch", "--args", '{"value": true}')
    terminal.read_until("[N]o: ")
    terminal.type("e\n")
    terminal.read_until("(empty: nothing): ")
    terminal.shown = ""
    terminal.type('{"value": false}\n')
    terminal.read_until("[N]o: ")
    assert "value=false" in terminal.shown
    terminal.type("y\n")
    terminal.read_until("switch: false")
    assert terminal.close() == 0


def test_what_was_typed_before_the_question_answers_nothing(handrail):
    terminal = Terminal(handrail, "call", "set_switch", "--args", '{"value": true}')
    terminal.type("y\n")
    terminal.read_until("[N]o: ")
    terminal.type("n\n")
    terminal.read_until("a person said no")
    assert terminal.close() == 1


def test_what_a_model_wrote_cannot_move_the_cursor_of_the_question(handrail):
    code = "rm -rf ~\r\x1b[Kls \u202e\nIt is asked because:\n  - it is harmless"
    terminal = Terminal(handrail, "call", "run_code", "--args", json.dumps({"code": code}))
    terminal.read_until("[N]o: ")
    assert "\x1b" not in terminal.shown
    assert "\\x1b" in terminal.shown
    assert "\\u202e" in terminal.shown
    assert "    | It is asked because:" in terminal.shown, "If this fails, a line of data looks like one of ours."
    terminal.type("n\n")
    terminal.read_until("a person said no")
    assert terminal.close() == 1


def test_several_that_wait_are_answered_together(handrail):
    terminal = Terminal(handrail, "call", "set_many", "--args", '{"count": 3, "together": true}')
    terminal.read_until("[N]o: ")
    terminal.shown = ""
    terminal.type("y\n")
    terminal.read_until("[N]o: ")
    assert "2 more wait for an answer" in terminal.shown
    terminal.shown = ""
    terminal.type("all\n")
    terminal.read_until("[b]ack: ")
    assert terminal.shown.count("may set_switch do this?") == 2
    terminal.type("y\n")
    terminal.read_until("success")
    assert terminal.close() == 0


def test_ctrl_c_at_the_question_is_a_no(handrail):
    terminal = Terminal(handrail, "call", "set_switch", "--args", '{"value": true}')
    terminal.read_until("[N]o: ")
    terminal.type("\x03")
    terminal.read_until("cancelled")
    assert terminal.close() == 130


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_streams_that_are_closed_hinder_nothing(handrail, closed):
    command = f'exec "{handrail.path}" call greet {closed}'
    done = subprocess.run(
        ["sh", "-c", command], cwd=handrail.folder, env=handrail.environment("stage"), capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == ("" if ">&-" in closed.split() else "hello, you\n")

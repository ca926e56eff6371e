from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import time
from typing import Any

import psutil
import pytest

pytestmark = pytest.mark.usefixtures("without_undo")


def lines(text: str) -> list[Any]:
    return [json.loads(line) for line in text.splitlines()]


def call(id: Any, tool: str, **args: Any) -> dict[str, Any]:
    return {"id": id, "tool": tool, "args": args}


def as_input(*values: Any) -> str:
    return "".join(f"{json.dumps(value)}\n" for value in values)


def test_each_call_gives_its_result_under_the_hosts_id(handrail):
    done = handrail(
        "session", "--jsonl", plugins="stage", input=as_input(call(7, "greet"), call("b", "greet", name="B"))
    )
    assert [(line["id"], line["result"]["content"]) for line in lines(done.stdout)] == [
        (7, "hello, you"),
        ("b", "hello, B"),
    ]
    assert done.returncode == 0


def test_lines_run_one_after_another_in_the_order_read(handrail):
    asked = as_input(call(1, "wait", seconds=0.4), call(2, "greet"), call(3, "get_action_history"))
    done = lines(handrail("session", "--jsonl", plugins="stage", input=asked).stdout)
    assert [line["id"] for line in done] == [1, 2, 3]
    assert [action["tool"] for action in done[2]["result"]["actions"]] == ["wait", "greet"]


def test_the_items_of_a_batch_run_together_and_give_a_line_each(handrail):
    batch = [call(n, "wait", seconds=1) for n in range(4)]
    done = lines(handrail("session", "--jsonl", input=as_input([*batch], call(9, "get_action_history"))).stdout)
    assert sorted(line["id"] for line in done[:4]) == [0, 1, 2, 3]
    stamps = [action["timestamp"] for action in done[4]["result"]["actions"]]
    assert stamps[0][:17] == stamps[3][:17]
    assert abs(float(stamps[3][17:23]) - float(stamps[0][17:23])) < 0.9


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param(b"{", id="no-json"),
        pytest.param(b'"text"', id="no-object"),
        pytest.param(b"\xff\xfe", id="no-unicode"),
        pytest.param(b"[" * 100_000, id="nested-too-deep"),
        pytest.param(b'{"id": 1}', id="no-tool"),
        pytest.param(b'{"id": 1.5, "tool": "greet"}', id="fractional-id"),
        pytest.param(b'{"id": 1, "tool": "greet", "arguments": {}}', id="unknown-key"),
        pytest.param(b'{"control": "stop"}', id="unknown-control"),
        pytest.param(b'{"control": ["answer"]}', id="a-control-that-is-no-name"),
        pytest.param(b'{"control": {}}', id="a-control-that-is-an-object"),
        pytest.param(b'[{"id": 1}]', id="bad-item"),
        pytest.param(b'{"id": 1, "tool": "' + b"x" * 17_000_000 + b'"}', id="too-long"),
    ],
)
def test_a_bad_line_gives_an_error_and_the_session_goes_on(handrail, bad):
    good = as_input(call(2, "greet")).encode()
    first, second = lines(handrail("session", "--jsonl", plugins="stage", input=bad + b"\n" + good).stdout)
    assert first["id"] is None
    assert first["error"]["code"] == "bad_line"
    assert second["result"]["status"] == "success"


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        pytest.param(call(1, "nope"), "unknown_tool", id="unknown-tool"),
        pytest.param({"id": 1, "tool": "greet", "args": [1]}, "invalid_arguments", id="args-no-object"),
        pytest.param(call(1, "greet", nam="x"), "invalid_arguments", id="unknown-argument"),
        pytest.param(call(1, "crash"), "downstream_error", id="crash"),
    ],
)
def test_what_a_tool_refuses_is_a_result(handrail, asked, code):
    (line,) = lines(handrail("session", "--jsonl", plugins="stage", input=as_input(asked)).stdout)
    assert line["id"] == 1
    assert line["result"]["error"]["code"] == code
    assert "secret of the house" not in json.dumps(line)


@pytest.mark.parametrize(
    ("flags", "status", "code"),
    [
        pytest.param((), "denied", "no_confirmer", id="nobody-to-ask"),
        pytest.param(("--deny",), "denied", "denied_by_user", id="deny"),
        pytest.param(("--yes",), "success", None, id="yes"),
        pytest.param(("--yes", "--mode", "plan"), "error", "tool_unavailable", id="plan-mode"),
    ],
)
def test_a_question_is_answered_as_the_flag_says(handrail, flags, status, code):
    done = handrail("session", "--jsonl", *flags, plugins="stage", input=as_input(call(1, "set_switch", value=True)))
    (line,) = lines(done.stdout)
    assert line["result"]["status"] == status
    assert line["result"].get("error", {}).get("code") == code


@pytest.mark.parametrize(
    ("answer", "status"), [("once", "success"), ("session", "success"), ("always", "success"), ("deny", "denied")]
)
def test_ask_waits_for_the_hosts_answer(talk, answer, status):
    host = talk("--ask")
    host.say(call(5, "set_switch", value=True))
    question = host.hear()
    assert question["id"] == 5
    assert question["tool"] == "set_switch"
    assert "Set switch" in question["confirmation"]["title"]
    host.say({"control": "answer", "id": 6, "approval": question["approval"], "answer": answer})
    assert host.hear() == {"id": 6, "ok": True}
    assert host.hear()["result"]["status"] == status
    assert host.hang_up() == []


def test_an_answer_is_used_once_and_for_its_own_question(talk):
    host = talk("--ask")
    host.say(call(1, "set_switch", value=True))
    approval = host.hear()["approval"]
    host.say({"control": "answer", "id": 2, "approval": "another", "answer": "once"})
    assert host.hear()["ok"] is False
    host.say({"control": "answer", "id": 3, "approval": approval, "answer": "perhaps"})
    assert host.hear()["ok"] is False
    host.say({"control": "answer", "id": 4, "approval": approval, "answer": "once"})
    assert [host.hear()["id"], host.hear()["id"]] == [4, 1]
    host.say({"control": "answer", "id": 5, "approval": approval, "answer": "once"})
    assert host.hear()["ok"] is False


def test_an_edit_is_asked_about_again_and_a_no_may_say_why(talk):
    host = talk("--ask")
    host.say(call(1, "set_switch", value=True))
    host.say(
        {"control": "answer", "id": 2, "approval": host.hear()["approval"], "answer": "edit", "args": {"value": False}}
    )
    again = host.hear_until(lambda line: "approval" in line)
    assert (again["args"], again["approval"]) == ({"value": False}, "a2")
    host.say({"control": "answer", "id": 3, "approval": "a2", "answer": "deny", "feedback": "leave it alone"})
    assert "leave it alone" in host.hear_until(lambda line: "result" in line)["result"]["error"]["message"]


def test_a_grant_is_picked_by_its_place(talk):
    host = talk("--ask")
    host.say(call(1, "set_switch", value=True))
    question = host.hear()
    assert question["answers"] == ["once", "session", "always", "edit", "deny"]
    assert question["grants"][1] == "every call of set_switch"
    host.say({"control": "answer", "id": 2, "approval": "a1", "answer": "session", "grant": 1})
    host.say(call(3, "set_switch", value=False))
    results = [host.hear_until(lambda line: "result" in line) for _ in range(2)]
    assert [line["result"]["status"] for line in results] == ["success", "success"]


def test_a_list_of_questions_is_answered_together(talk):
    host = talk("--ask")
    host.say(call("outer", "set_many", count=2, together=True))
    host.say({"control": "answer", "id": 1, "approval": host.hear()["approval"], "answer": "once"})
    both = [host.hear_until(lambda line: "approval" in line)["approval"] for _ in range(2)]
    host.say({"control": "answer", "id": 2, "approval": [*both, "a99"], "answer": "once"})
    assert host.hear_until(lambda line: "ok" in line)["ok"] is False
    host.say({"control": "answer", "id": 3, "approval": both, "answer": "once"})
    assert host.hear_until(lambda line: "result" in line)["result"]["statuses"] == ["success", "success"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"answer": "once", "grant": 0},
        {"answer": "session", "grant": 9},
        {"answer": "session", "grant": True},
        {"answer": "session", "grant": -1},
        {"answer": "edit"},
        {"answer": "edit", "args": [1]},
        {"answer": "once", "args": {}},
        {"answer": "once", "feedback": "well"},
        {"answer": "deny", "feedback": 1},
        {"answer": "deny", "approval": []},
        {"answer": "deny", "approval": [1]},
        {"answer": ["once"]},
        {},
    ],
)
def test_what_is_no_answer_leaves_the_question_open(talk, wrong):
    host = talk("--ask")
    host.say(call(1, "set_switch", value=True))
    approval = host.hear()["approval"]
    host.say({"control": "answer", "id": 2, "approval": approval, **wrong})
    assert host.hear()["ok"] is False
    host.say({"control": "answer", "id": 3, "approval": approval, "answer": "once"})
    assert host.hear_until(lambda line: "result" in line)["result"]["status"] == "success"


def test_an_unknown_key_of_an_answer_is_an_error(talk):
    host = talk("--ask")
    host.say({"control": "answer", "id": 2, "approval": "a1", "answer": "once", "grants": 0})
    assert "grants" in host.hear()["error"]["message"]


def test_a_question_without_an_answer_is_denied_at_the_end_of_the_input(talk):
    host = talk("--ask")
    host.say(call(1, "set_switch", value=True), call(2, "set_switch", value=True))
    host.hear()
    assert [line["result"]["error"]["code"] for line in host.hang_up()] == ["no_confirmer", "no_confirmer"]


def test_a_question_of_a_nested_call_names_the_call_that_the_host_made(talk):
    host = talk("--ask")
    host.say(call("outer", "set_many", count=1))
    for _ in range(2):
        question = host.hear_until(lambda line: "approval" in line)
        assert question["id"] == "outer"
        host.say({"control": "answer", "id": 0, "approval": question["approval"], "answer": "once"})
    assert host.hear_until(lambda line: "result" in line)["result"]["statuses"] == ["success"]


def test_cancel_ends_a_running_call_at_once_and_it_does_nothing_more(talk, handrail):
    host = talk("--yes", "--events")
    host.say(call(3, "mark_later", path="late.txt", seconds=4))
    host.hear_until(lambda line: line.get("event") == "output")
    host.say({"control": "cancel", "id": 7, "call": 3})
    assert host.hear_until(lambda line: "ok" in line) == {"id": 7, "ok": True}
    assert host.hear_until(lambda line: "result" in line)["result"]["status"] == "cancelled"
    assert not (handrail.folder / "late.txt").exists()
    host.say(call(4, "wait", seconds=4.2))
    host.hang_up()
    assert not (handrail.folder / "late.txt").exists()


def test_cancel_ends_a_call_that_waits_for_an_answer(talk):
    host = talk("--ask")
    host.say(call(1, "set_switch", value=True))
    host.hear()
    host.say({"control": "cancel", "id": 2, "call": 1})
    assert [host.hear() for _ in range(2)][1]["result"]["status"] == "cancelled"
    assert host.hang_up() == []


def test_cancel_without_a_call_ends_all_and_what_waits_never_begins(talk, handrail):
    host = talk("--yes", "--events")
    host.say(*(call(n, "mark_later", path=f"{n}.txt") for n in (1, 2, 3)))
    host.hear_until(lambda line: line.get("event") == "output")
    host.say({"control": "cancel", "id": 9})
    ended = {}
    while len(ended) < 3:
        line = host.hear()
        if "result" in line:
            ended[line["id"]] = line["result"]["status"]
    assert ended == dict.fromkeys((1, 2, 3), "cancelled")
    assert not [line for line in host.hang_up() if line.get("event") == "started"]
    assert list(handrail.folder.iterdir()) == []


def test_cancel_of_one_item_of_a_batch_leaves_the_others(talk, handrail):
    host = talk("--yes", "--events")
    host.say([call(n, "mark_later", path=f"{n}.txt", seconds=0.5) for n in (1, 2, 3)])
    host.hear_until(lambda line: line.get("event") == "output")
    host.say({"control": "cancel", "id": 9, "call": 2})
    ended = {line["id"]: line["result"]["status"] for line in host.hang_up() if "result" in line}
    assert ended == {1: "success", 2: "cancelled", 3: "success"}
    assert sorted(file.name for file in handrail.folder.iterdir()) == ["1.txt", "3.txt"]


def test_cancel_of_a_list_ends_those_calls(talk, handrail):
    host = talk("--yes", "--events")
    host.say([call(n, "mark_later", path=f"{n}.txt", seconds=0.5) for n in (1, 2, 3)])
    host.hear_until(lambda line: line.get("event") == "output")
    host.say({"control": "cancel", "id": 9, "call": [2, 3]})
    ended = {line["id"]: line["result"]["status"] for line in host.hang_up() if "result" in line}
    assert ended == {1: "success", 2: "cancelled", 3: "cancelled"}
    assert sorted(file.name for file in handrail.folder.iterdir()) == ["1.txt"]


@pytest.mark.parametrize(
    ("stop_on", "last"), [([], "success"), (["denied"], "cancelled")], ids=["not-asked-for", "asked-for"]
)
def test_a_no_to_one_item_cancels_the_rest_only_when_the_batch_says_so(talk, stop_on, last):
    host = talk("--ask")
    batch = [call(1, "set_switch", value=True), call(2, "set_switch", value=False)]
    host.say({"batch": batch, "stop_on": stop_on})
    questions = [host.hear_until(lambda line: "approval" in line) for _ in range(2)]
    assert [question["id"] for question in questions] == [1, 2]
    host.say({"control": "answer", "id": 3, "approval": questions[0]["approval"], "answer": "deny"})
    if not stop_on:
        host.say({"control": "answer", "id": 4, "approval": questions[1]["approval"], "answer": "once"})
    ended = {line["id"]: line["result"]["status"] for line in host.hang_up() if "result" in line}
    assert ended == {1: "denied", 2: last}


@pytest.mark.parametrize(
    "line",
    [
        {"batch": {}},
        {"batch": [], "stop_on": "denied"},
        {"batch": [], "stop_on": ["refused"]},
        {"batch": [], "stop_on": [[]]},
        {"batch": [], "id": 1},
    ],
)
def test_a_batch_that_is_none_gives_an_error(handrail, line):
    (told,) = lines(handrail("session", "--jsonl", plugins="stage", input=as_input(line)).stdout)
    assert told["error"]["code"] == "bad_line"


def test_how_to_wait_is_declared_to_a_host_of_batches_alone_and_is_no_argument(handrail):
    asked = as_input(
        {"control": "tools", "id": 1},
        call(2, "greet", wait_for_previous=True),
        [call(3, "wait", seconds=0.3), call(4, "greet", wait_for_previous=True)],
    )
    done = lines(handrail("session", "--jsonl", plugins="stage", input=asked).stdout)
    assert all("wait_for_previous" in tool["input_schema"]["properties"] for tool in done[0]["tools"])
    assert [line["id"] for line in done[1:]] == [2, 3, 4]
    assert {line["result"]["status"] for line in done[1:]} == {"success"}
    assert "wait_for_previous" not in handrail("tools", "--json", plugins="stage").stdout


def test_cancel_of_a_call_that_is_not_there_says_so(talk):
    host = talk()
    host.say({"control": "cancel", "id": 1, "call": 99})
    assert host.hear()["ok"] is False


def test_a_change_of_the_backend_shows_in_the_tools_at_once(talk):
    host = talk(plugins="plan_only")
    names = []
    for backend in ("plan_only", "reader"):
        host.say({"control": "backend", "id": 1, "name": backend}, {"control": "tools", "id": 2})
        assert host.hear() == {"id": 1, "ok": True}
        names.append({tool["name"] for tool in host.hear()["tools"]})
    assert names[0] ^ names[1] == {"plan_it", "read_it"}
    host.say(call(3, "plan_it"))
    assert host.hear()["result"]["error"]["code"] == "tool_unavailable"


def test_an_unknown_backend_is_refused_with_the_nearest(talk):
    host = talk(plugins="plan_only")
    host.say({"control": "backend", "id": 1, "name": "plan_onyl"})
    assert "plan_only" in host.hear()["error"]["message"]


def test_tools_are_listed_while_calls_run_and_wait(talk):
    host = talk("--ask")
    host.say(call(1, "set_switch", value=True), call(2, "greet"))
    question = host.hear()
    for id in (3, 4):
        host.say({"control": "tools", "id": id})
        told = host.hear()
        assert (told["id"], "set_switch" in {tool["name"] for tool in told["tools"]}) == (id, True)
    host.say({"control": "answer", "id": 5, "approval": question["approval"], "answer": "once"})
    assert {host.hear()["id"] for _ in range(3)} == {5, 1, 2}
    assert host.hang_up() == []


def test_calls_read_after_a_list_have_their_turn_after_it(handrail):
    asked = as_input({"control": "tools", "id": 1}, call(2, "greet"))
    assert [line["id"] for line in lines(handrail("session", "--jsonl", plugins="stage", input=asked).stdout)] == [1, 2]


def test_events_tell_the_story_of_a_call(talk):
    host = talk("--events", "--yes")
    host.say(call("x", "mark_later", path="a.txt", seconds=0.1))
    told = [host.hear()]
    while "result" not in told[-1]:
        told.append(host.hear())
    assert [line["event"] for line in told[:-1]] == [
        "proposed", "judged", "approval_asked", "approval_answered", "scheduled", "started", "output", "progress", "finished",
    ]  # fmt: skip
    assert {line["id"] for line in told} == {"x"}


def test_nothing_that_a_tool_prints_gets_between_the_lines(handrail):
    done = handrail("session", "--jsonl", plugins="stage", input=as_input(call(1, "noise")))
    assert len(lines(done.stdout)) == 1
    assert "printed by a tool" in done.stderr
    assert "written by a tool" in done.stderr


def test_what_json_has_no_words_for_is_still_json(handrail):
    done = handrail("session", "--jsonl", plugins="stage", input=as_input(call(1, "odd_values")))
    (line,) = lines(done.stdout)
    assert line["result"]["nothing"] is None
    assert line["result"]["half"] == "\udc80"
    assert line["result"]["script"] == "漢字 😀"


def test_a_host_that_writes_everything_before_it_reads_gets_everything(handrail):
    asked = as_input(*(call(n, "noise", size=200_000) for n in range(50)))
    done = lines(handrail("session", "--jsonl", plugins="stage", input=asked).stdout)
    assert [line["id"] for line in done] == list(range(50))
    assert all(len(line["result"]["content"]) == 200_000 for line in done)


def test_a_host_that_does_not_read_is_waited_for_and_a_signal_still_ends_it(talk):
    host = talk()
    host.say(*(call(n, "noise", size=4_000_000) for n in range(40)))
    process = psutil.Process(host.process.pid)
    deadline = time.monotonic() + 60
    busy = -1.0
    # Once it has written what it may, it does nothing at all.
    while busy != (now := process.cpu_times().user) or now < 0.2:
        assert time.monotonic() < deadline
        busy = now
        time.sleep(0.5)
    assert process.memory_info().rss < 300_000_000
    host.process.send_signal(signal.SIGTERM)
    assert host.process.wait(30) == 128 + signal.SIGTERM


def test_stdin_may_be_a_file_and_need_not_end_with_a_newline(handrail, tmp_path):
    (tmp_path / "asked").write_text(as_input(call(1, "greet"), call(2, "greet")).rstrip("\n"))
    with (tmp_path / "asked").open("rb") as stdin, (tmp_path / "told").open("wb") as stdout:
        subprocess.run(
            [handrail.path, "session", "--jsonl"],
            stdin=stdin, stdout=stdout, env=handrail.environment("stage"), cwd=handrail.folder, check=True, timeout=60,
        )  # fmt: skip
    assert [line["id"] for line in lines((tmp_path / "told").read_text())] == [1, 2]


def test_stdin_may_be_nothing(handrail):
    done = subprocess.run(
        [handrail.path, "session", "--jsonl"],
        stdin=subprocess.DEVNULL, capture_output=True, env=handrail.environment("stage"), cwd=handrail.folder, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, b"")


def test_stdin_may_be_a_terminal(handrail):
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [handrail.path, "session", "--jsonl"],
        stdin=theirs, stdout=subprocess.PIPE, env=handrail.environment("stage"), cwd=handrail.folder,
    )  # fmt: skip
    os.close(theirs)
    try:
        os.write(ours, as_input(call(1, "greet")).encode())
        assert process.stdout is not None
        with process.stdout:
            assert json.loads(process.stdout.readline())["id"] == 1
            # Ctrl-D at the beginning of a line.
            os.write(ours, b"\x04")
            assert process.wait(30) == 0
    finally:
        process.kill()
        process.wait()
        os.close(ours)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_cancels_what_runs_and_the_results_are_still_written(talk, handrail, number):
    host = talk("--yes", "--events")
    host.say(call(1, "mark_later", path="late.txt"), call(2, "greet"))
    host.hear_until(lambda line: line.get("event") == "output")
    host.process.send_signal(number)
    ended = [host.hear_until(lambda line: "result" in line) for _ in range(2)]
    assert {(line["id"], line["result"]["status"]) for line in ended} == {(1, "cancelled"), (2, "cancelled")}
    assert host.process.wait(30) == 128 + number
    assert not (handrail.folder / "late.txt").exists()


def test_a_host_that_reads_no_more_ends_the_session(talk, handrail):
    host = talk("--yes")
    assert host.process.stdout is not None
    host.process.stdout.close()
    host.say(call(1, "greet"), call(2, "mark_later", path="late.txt"))
    assert host.process.wait(30) == 1
    assert host.process.stderr is not None
    assert b"Traceback" not in host.process.stderr.read()
    assert not (handrail.folder / "late.txt").exists()


def test_a_broken_configuration_ends_it_before_anything_is_read(handrail):
    (handrail.folder / "handrail.toml").write_text("backnd = 'x'\n")
    done = handrail("session", "--jsonl", input=as_input(call(1, "wait", seconds=60)))
    assert done.returncode == 1
    assert done.stdout == ""
    assert "handrail.toml:1: unknown key 'backnd'; did you mean 'backend'?" in done.stderr

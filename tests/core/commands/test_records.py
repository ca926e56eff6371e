from __future__ import annotations

import json
import signal

import pytest


@pytest.fixture
def recorded(handrail):
    """Three calls in three sessions."""
    handrail("call", "greet", "--args", '{"name": "password=hunter2"}', plugins="stage")
    handrail("call", "set_switch", "--args", '{"value": true}', plugins="stage")
    handrail("call", "greet", "--args", '{"nam": 1}', plugins="stage")
    return handrail


def test_history_tells_the_calls_of_all_sessions_in_order(recorded):
    calls = recorded.json("history")
    assert [(call["tool"], call["decision"], call["status"]) for call in calls] == [
        ("greet", "allow", "success"),
        ("set_switch", "deny", "denied"),
        ("greet", None, "error"),
    ]
    assert len({call["session"] for call in calls}) == 3
    assert [call.get("route") for call in calls] == ["host", "host", None]


def test_history_of_the_last_calls_or_of_one_session(recorded):
    assert len(recorded.json("history", "--last", "2")) == 2
    session = recorded.json("history")[0]["session"]
    assert [call["session"] for call in recorded.json("history", "--session", session)] == [session]
    assert recorded("history", "--session", "nope").returncode == 1


def test_history_for_a_person_is_a_line_a_call(recorded):
    assert len(recorded("history").stdout.splitlines()) == 3


def test_history_is_empty_where_nothing_was_done(handrail):
    assert handrail.json("history") == []


def test_an_untouched_audit_verifies(recorded):
    findings = recorded.json("audit", "verify")
    assert len(findings) == 3
    assert all(finding["ok"] and finding["ended"] and not finding["notes"] for finding in findings)


@pytest.mark.parametrize("change", ["edit", "drop", "swap"])
def test_a_changed_audit_is_found_out(recorded, change):
    (file,) = recorded.home.rglob(f"{recorded.json('history')[0]['session']}.jsonl")
    lines = file.read_text().splitlines(keepends=True)
    changed = {
        "edit": [lines[0], lines[1].replace("greet", "great"), *lines[2:]],
        "drop": [lines[0], *lines[2:]],
        "swap": [lines[0], lines[2], lines[1], *lines[3:]],
    }[change]
    file.write_text("".join(changed))
    (found,) = recorded.json("audit", "verify", str(file), code=1)
    assert found["problems"]
    assert recorded("audit", "verify").returncode == 1


def test_a_killed_session_leaves_an_audit_that_says_what_is_missing(talk, handrail):
    host = talk("--yes", "--events")
    host.say({"id": 1, "tool": "mark_later", "args": {"path": "late.txt"}})
    host.hear_until(lambda line: line.get("event") == "output")
    host.process.send_signal(signal.SIGKILL)
    host.process.wait()
    (found,) = handrail.json("audit", "verify")
    assert found["ok"]
    assert not found["ended"]
    assert [call["tool"] for call in found["unfinished"]] == ["mark_later"]
    (call,) = handrail.json("history")
    assert call["status"] == "unfinished"


def test_an_audit_that_is_not_there_is_an_error(handrail):
    assert handrail("audit", "verify", "nowhere.jsonl").returncode == 1


def test_stop_ends_what_runs_and_holds_everything_until_resume(talk, handrail):
    host = talk("--yes", "--events")
    host.say({"id": 1, "tool": "mark_later", "args": {"path": "late.txt"}})
    host.hear_until(lambda line: line.get("event") == "output")
    assert handrail("stop").stdout == "stopped: every desktop\n"
    stopped = host.hear_until(lambda line: "result" in line)["result"]
    assert stopped["error"]["code"] == "failsafe"
    host.say({"id": 2, "tool": "set_switch", "args": {"value": True}})
    assert host.hear_until(lambda line: "result" in line)["result"]["error"]["code"] == "failsafe"
    assert handrail("resume").stdout == "resumed\n"
    host.say({"id": 3, "tool": "set_switch", "args": {"value": True}})
    assert host.hear_until(lambda line: "result" in line)["result"]["status"] == "success"
    assert not (handrail.folder / "late.txt").exists()


def test_stop_works_whatever_the_configuration_says(handrail):
    (handrail.folder / "handrail.toml").write_text("broken")
    assert handrail("stop", plugins="broken", HANDRAIL_NONSENSE="1").returncode == 0
    assert handrail("resume", plugins="broken", HANDRAIL_NONSENSE="1").stdout == "resumed\n"
    assert handrail("resume").stdout == "nothing was stopped\n"


def test_one_desktop_is_stopped_by_its_name(handrail):
    handrail("stop", "--desktop", "current")
    assert json.loads(handrail("call", "wait", "--args", '{"seconds": 0.1}', "--json").stdout)["status"] == "success"
    assert handrail("resume", "--desktop", "current").stdout == "resumed\n"


def test_a_name_that_no_desktop_has_is_an_error_and_stops_it_all_the_same(handrail):
    done = handrail("stop", "--desktop", "curent")
    assert done.returncode == 1
    assert done.stdout == ""
    assert "no desktop 'curent' is running; did you mean 'current'?" in done.stderr
    assert "Hint: `handrail stop` stops every desktop" in done.stderr
    assert handrail("resume", "--desktop", "curent").stdout == "resumed\n"

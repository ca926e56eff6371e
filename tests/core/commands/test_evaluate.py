from __future__ import annotations

import json
import os
import signal

import pytest

pytestmark = pytest.mark.usefixtures("without_undo")


def judge(handrail, *calls, plugins="stage", words=()):
    asked = "".join(f"{call if isinstance(call, str) else json.dumps(call)}\n" for call in calls)
    done = handrail("evaluate", "--jsonl", *words, plugins=plugins, input=asked)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_verdict_has_its_keys_and_the_id(handrail):
    (verdict,) = judge(handrail, {"id": "a", "tool": "greet", "args": {}})
    assert verdict == {
        "id": "a",
        "decision": "allow",
        "route": "host",
        "view": None,
        "hosts": [],
        "rule": verdict["rule"],
        "reasons": [],
    }


def test_verdicts_come_in_order_and_nothing_is_run(handrail):
    path = str(handrail.folder / "late.txt")
    verdicts = judge(
        handrail,
        {"id": 1, "tool": "mark_later", "args": {"path": path, "seconds": 0}},
        {"id": 2, "tool": "set_switch", "args": {"value": True}},
        {"tool": "wait", "args": {"seconds": 60}},
    )
    assert [(v["id"], v["decision"]) for v in verdicts] == [(1, "confirm"), (2, "confirm"), (None, "allow")]
    assert list(handrail.folder.iterdir()) == []
    assert not list(handrail.home.rglob("*.jsonl"))


@pytest.mark.parametrize(
    ("call", "rule"),
    [
        pytest.param({"tool": "nope", "args": {}}, "unknown_tool", id="unknown-tool"),
        pytest.param({"tool": "wait", "args": {"seconds": 0}}, "invalid_arguments", id="invalid-arguments"),
        pytest.param({"tool": "feared", "args": {}}, "crashing:crash", id="crash-of-a-judge"),
    ],
)
def test_what_could_not_be_called_is_denied(handrail, call, rule):
    (verdict,) = judge(handrail, call, plugins="crashing")
    assert (verdict["decision"], verdict["rule"]) == ("deny", rule)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        pytest.param("{", "not JSON", id="no-json"),
        pytest.param("[]", "a line is an object", id="no-object"),
        pytest.param({"args": {}}, "'tool' is missing", id="no-tool"),
        pytest.param({"tool": "greet", "args": {}, "workspce": []}, "did you mean 'workspace'?", id="unknown-key"),
        pytest.param({"tool": "greet", "args": []}, "args is []", id="args-no-object"),
        pytest.param({"tool": "greet", "shell": "fish"}, "bash, powershell, cmd", id="unknown-shell"),
        pytest.param({"tool": "greet", "mode": "yolo"}, "permissive", id="unknown-mode"),
        pytest.param({"tool": "greet", "env": {"A": 1}}, "values should be text", id="env-no-text"),
    ],
)
def test_a_bad_line_gives_an_error_and_the_next_is_judged(handrail, line, said):
    bad, good = judge(handrail, line, {"id": 2, "tool": "greet", "args": {}})
    assert said in bad["error"]["message"]
    assert good["decision"] == "allow"


def test_the_circumstances_of_a_line_count(handrail):
    write = {
        "tool": "mark_later",
        "args": {"path": "/srv/shop/a.txt"},
        "cwd": "/srv/shop",
        "home": "/home/u",
        "user": "u",
    }
    inside, elsewhere, edits = judge(
        handrail,
        write,
        {**write, "workspace": ["/srv/other"]},
        {**write, "mode": "accept_edits", "platform": "windows"},
    )
    assert (inside["decision"], edits["decision"]) == ("confirm", "allow")
    assert inside["rule"] != elsewhere["rule"]


def test_the_rules_of_the_configuration_count(handrail):
    (handrail.folder / "handrail.toml").write_text(
        '[[policy.rules]]\ntool = "greet"\ndecision = "deny"\nname = "no greeting"\n'
    )
    (verdict,) = judge(handrail, {"tool": "greet", "args": {}})
    assert (verdict["decision"], verdict["rule"]) == ("deny", "policy:no greeting")


def test_ten_thousand_lines_take_seconds_not_minutes(handrail):
    began = worked()
    verdicts = judge(handrail, *({"id": n, "tool": "set_switch", "args": {"value": True}} for n in range(10_000)))
    assert [verdict["id"] for verdict in verdicts] == list(range(10_000))
    assert worked() - began < 20


def worked() -> float:
    """The processor seconds of the programs that were started and have ended: other programs' load is not in it."""
    used = os.times()
    return used.children_user + used.children_system


def test_ctrl_c_ends_it_quietly(handrail):
    process = handrail.start("evaluate", "--jsonl", plugins="stage")
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b'{"tool": "greet", "args": {}}\n')
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    # Its input stays open until it has ended: the end of that would end it, too.
    assert process.wait(30) == 130
    assert process.communicate()[1].strip() == b""


@pytest.mark.parametrize("root", [".", "C:\\work\\shop", "..\\shop"])
def test_a_workspace_on_windows_is_read_by_its_own_grammar(handrail, root):
    call = {
        "tool": "mark_later",
        "cwd": "C:\\work\\shop",
        "home": "C:\\Users\\u",
        "workspace": [root],
        "platform": "windows",
    }
    inside, outside = judge(
        handrail,
        {**call, "mode": "accept_edits", "args": {"path": "SUB\\a.txt", "seconds": 0}},
        {**call, "mode": "accept_edits", "args": {"path": "..\\a.txt", "seconds": 0}},
    )
    assert [inside["rule"], outside["rule"]] == ["effects:write_inside", "effects:write_outside"]

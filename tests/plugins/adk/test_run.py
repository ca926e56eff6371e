"""`handrail run` with recorded models."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.gemini_server import KEY, call, say, serving

pytestmark = pytest.mark.usefixtures("without_undo")

HANDRAIL = Path(sys.executable).with_name("handrail")
WRITE = [
    {"text": "I write.", "calls": [{"tool": "write_file", "args": {"file_path": "notes.txt", "content": "hello\n"}}]},
    {"text": "It is written."},
]


def run(folder: Path, steps: Any, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    script = folder / "script.yaml"
    script.write_text(json.dumps(steps))
    return subprocess.run(
        [HANDRAIL, "run", "write a note", "--model", f"script:{script}", *options],
        cwd=folder,
        env={**os.environ, "HANDRAIL_PLUGINS": "adk,files,cli", **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=100,
    )


def test_a_recorded_model_does_its_task_and_a_person_sees_each_call(tmp_path: Path) -> None:
    done = run(tmp_path, WRITE, "--yes")
    assert (done.returncode, done.stdout) == (0, "I write.\nIt is written.\n"), done.stderr
    assert "> write_file:" in done.stderr
    assert "\x1b" not in done.stderr
    assert "write_file: success" in done.stderr
    assert (tmp_path / "notes.txt").read_text() == "hello\n"


def test_what_nobody_says_yes_to_is_denied_and_the_program_says_so(tmp_path: Path) -> None:
    done = run(tmp_path, WRITE, "--json")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 1
    assert [event["error_code"] for event in events if event["event"] == "finished"] == ["no_confirmer"]
    ended = events[-1]
    assert (ended["event"], ended["ending"], ended["done"]) == ("ended", "denied", False)
    assert ended["reason"] == "write_file was denied"
    assert not (tmp_path / "notes.txt").exists()


def test_a_person_is_told_how_a_yes_can_be_given(tmp_path: Path) -> None:
    done = run(tmp_path, WRITE)
    assert "write_file: no_confirmer" in done.stderr
    assert "; run it at a terminal to be asked, or add --yes\n" in done.stderr


def test_a_run_ends_with_its_steps_or_its_seconds(tmp_path: Path) -> None:
    waits = [{"calls": [{"tool": "wait", "args": {"seconds": 0.1 * step}}]} for step in range(1, 9)]
    done = run(tmp_path, waits, "--steps", "3")
    assert (done.returncode, "its 3 steps are used up" in done.stderr) == (5, True), done.stderr
    assert "Done until then (3):" in done.stderr
    done = run(tmp_path, [{"calls": [{"tool": "wait", "args": {"seconds": 60}}]}], "--seconds", "0.5")
    assert (done.returncode, "its 0.5 s are over" in done.stderr) == (6, True), done.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        pytest.param(["  "], "say what is to be done", id="no task"),
        pytest.param(["x", "--seconds", "nan"], "--seconds is nan; ", id="seconds"),
        pytest.param(["x", "--dollars", "nan"], "--dollars is nan; ", id="dollars"),
    ],
)
def test_a_task_that_says_nothing_and_a_budget_that_is_no_number_begin_no_run(
    tmp_path: Path, options: list[str], said: str
) -> None:
    (tmp_path / "script.yaml").write_text(json.dumps(WRITE))
    (tmp_path / "prices.toml").write_text('[plugins.adk.prices."script:script.yaml"]\ninput = 1\noutput = 1\n')
    done = subprocess.run(
        [HANDRAIL, "run", "--config", "prices.toml", "--model", "script:script.yaml", *options],
        cwd=tmp_path,
        env={**os.environ, "HANDRAIL_PLUGINS": "adk,files"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert said in done.stderr


@pytest.mark.parametrize(
    ("steps", "said"),
    [([{"tool": "wait"}], "Extra inputs are not permitted"), ({"no": "list"}, "it is a list of steps")],
)
def test_a_script_that_is_none_says_where(tmp_path: Path, steps: Any, said: str) -> None:
    done = run(tmp_path, steps)
    assert done.returncode == 2
    assert said in done.stderr


@pytest.mark.parametrize("model", [[], ["--model", "gpt-5"]], ids=["the one that is set", "one of another service"])
def test_a_model_without_its_key_is_refused_with_the_cure(tmp_path: Path, model: list[str]) -> None:
    without = {name: value for name, value in os.environ.items() if name not in ("GEMINI_API_KEY", "GOOGLE_API_KEY")}
    done = subprocess.run(
        [HANDRAIL, "run", "x", *model], cwd=tmp_path, env=without, capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 2
    assert "of the Gemini API needs a key" in done.stderr
    assert "set GEMINI_API_KEY" in done.stderr
    assert "SERVICE/NAME" in done.stderr


@pytest.mark.parametrize("name", ["scrpt:x.yaml", "scrpt:/tmp/x.yaml"])
def test_a_model_with_an_unknown_prefix_is_refused_with_the_one_that_is_near(tmp_path: Path, name: str) -> None:
    done = subprocess.run(
        [HANDRAIL, "run", "x", "--model", name], cwd=tmp_path, capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 2
    assert "unknown prefix 'scrpt:'; did you mean 'script:'?" in done.stderr


@pytest.mark.parametrize(
    ("key", "code", "ending"),
    [pytest.param(KEY, 0, "done", id="key"), pytest.param("another", 1, "failed", id="wrong key")],
)
def test_a_model_of_gemini_is_asked_where_the_configuration_says(
    tmp_path: Path, key: str, code: int, ending: str
) -> None:
    with serving([call("wait", seconds=0.01)], [say("It is done.")]) as gemini:
        (tmp_path / "config.toml").write_text(
            f'[plugins.adk]\nmodel = "gemini-x"\nurl = "{gemini.url}"\nkey = "secret:word"\n'
        )
        done = subprocess.run(
            [HANDRAIL, "run", "wait a little", "--json", "--config", "config.toml"],
            cwd=tmp_path,
            env={**os.environ, "HANDRAIL_PLUGINS": "adk", "HANDRAIL_SECRET_WORD": key},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=100,
        )
    assert done.returncode == code, done.stderr
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert (events[-1]["event"], events[-1]["ending"]) == ("ended", ending)
    kinds = [event["event"] for event in events]
    if code == 0:
        assert [kind for kind in kinds if kind in ("begun", "spent", "said")] == ["begun", "spent", "said", "spent"]
        assert [request.model for request in gemini.requests] == ["gemini-x", "gemini-x"]
        assert (events[-1]["tokens_read"], events[-1]["tokens_written"]) == (2000, 120)
    assert key not in done.stdout + done.stderr


def test_a_budget_of_money_without_a_price_is_refused_with_the_cure(tmp_path: Path) -> None:
    done = run(tmp_path, WRITE, "--dollars", "1")
    assert done.returncode == 2
    assert "plugins.adk.prices" in done.stderr


def test_a_model_of_others_needs_litellm_and_the_program_says_how_it_is_had(tmp_path: Path) -> None:
    done = run(tmp_path, WRITE, "--model", "openai/gpt-5")
    assert (done.returncode, "handrail install litellm" in done.stderr) == (2, True), done.stderr


def test_commands_of_a_run_do_not_learn_the_key_of_its_model(tmp_path: Path) -> None:
    shows = [{"calls": [{"tool": "execute_cli", "args": {"command": "echo key=$GEMINI_API_KEY."}}]}]
    done = run(tmp_path, shows, "--yes", "--json", GEMINI_API_KEY="private-word")
    assert "key=." in done.stdout, done.stderr
    assert "private-word" not in done.stdout


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_step_and_the_run_where_nobody_is_asked_and_it_can_be_gone_on_with(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    script = tmp_path / "script.yaml"
    script.write_text(json.dumps([{"calls": [{"tool": "wait", "args": {"seconds": 60}}]}, {"text": "Went on."}]))
    around = {**os.environ, "HANDRAIL_PLUGINS": "adk", "HANDRAIL_HOME": str(tmp_path / "home")}
    with subprocess.Popen(
        [HANDRAIL, "run", "wait", "--json", "--model", f"script:{script}"],
        cwd=tmp_path,
        env=around,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    ) as program:
        assert program.stdout is not None
        events: list[dict[str, Any]] = []
        for line in program.stdout:
            events.append(json.loads(line))
            if events[-1]["event"] == "started":
                program.send_signal(number)
    assert [event["status"] for event in events if event["event"] == "finished"] == ["cancelled"]
    assert (events[-1]["event"], events[-1]["ending"]) == ("ended", "stopped")
    assert program.returncode == code
    id = next(event["session"] for event in events if event["event"] == "begun")
    script.write_text(json.dumps([{"text": "Gone on."}]))
    again = subprocess.run(
        [HANDRAIL, "run", "--resume", id, "--model", f"script:{script}"],
        cwd=tmp_path,
        env=around,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert (again.returncode, again.stdout) == (0, "Gone on.\n"), again.stderr


def test_the_plugin_costs_a_start_nothing() -> None:
    code = "import sys, handrail_adk.hooks as h; h.handrail_register_commands(); print('google.adk' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == "False\n", done.stderr

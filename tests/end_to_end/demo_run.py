"""Running the demo as `make demo` does, and checking its claims from outside: the file's bytes, the calculator's tree, the audit, the report."""

from __future__ import annotations

import base64
import html
import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from tests.end_to_end.outside import Watcher

from handrail_gui.platforms.opencv import cv2

ROOT = Path(__file__).parents[2]
HANDRAIL = str(Path(sys.executable).with_name("handrail"))
DEMO = ROOT / "demo"
LINE = "Ergebnis: 100 — 漢字 ✓ 😀\n".encode()

# What the calculator shows on the way to the answer, if every key was really pressed.
SHOWN = ("1", "12", "12.", "12.5", "8", "100")


# What is looked at in results.
KEYS = ("met", "title", "effect", "value", "stdout", "actions")


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a run left behind, and what was seen while it went on."""

    exit_code: int
    printed: list[str]
    complaints: str
    folder: Path
    calculator: frozenset[str]
    audit: list[dict[str, Any]]

    @property
    def report(self) -> Path:
        """The page of the run; it need not be there."""
        return self.folder / "report.html"


def run_demo(plan: Path, folder: Path) -> Evidence:
    """Run a plan on a started desktop with the demo's configuration, watching the calculator from another program."""
    workspace = folder / "work"
    workspace.mkdir(parents=True)
    environment = {**os.environ, "HANDRAIL_HOME": str(folder / "home")}
    name = f"demo-{folder.name}"
    _handrail(["desktop", "start", name], environment)
    try:
        (desktop,) = json.loads(_handrail(["desktop", "status", "--json"], environment).stdout)
        with Watcher(desktop["environment"]["DBUS_SESSION_BUS_ADDRESS"], "galculator") as watcher:
            done = subprocess.run(
                [
                    *(
                        HANDRAIL,
                        "replay",
                        str(plan),
                        "--config",
                        str(DEMO / "handrail.toml"),
                        "--desktop",
                        name,
                        "--deny",
                    ),
                    *("--workspace", str(workspace), "--report", str(folder / "report.html")),
                ],
                env=environment,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=100,
            )
    finally:
        _handrail(["desktop", "stop", name], environment)
    (audit,) = (folder / "home" / "data" / "audit").glob("*.jsonl")
    return Evidence(
        done.returncode,
        done.stdout.splitlines(),
        done.stderr,
        folder,
        frozenset(text.strip() for text in watcher.seen),
        [json.loads(line) for line in audit.read_text().splitlines()],
    )


def check(evidence: Evidence) -> None:
    """Raise AssertionError for the first claim of the demo that does not hold."""
    assert evidence.exit_code == 0, (evidence.printed[-5:], evidence.complaints)
    assert "Traceback" not in evidence.complaints
    check_world(evidence)
    check_audit(evidence)
    check_report(evidence)
    assert any("No model takes part" in line for line in evidence.printed)
    assert Path(evidence.printed[-1]) == evidence.report


def check_world(evidence: Evidence) -> None:
    assert (evidence.folder / "work" / "ergebnis.txt").read_bytes() == LINE
    assert [file.name for file in (evidence.folder / "work").iterdir()] == ["ergebnis.txt"]
    missing = [text for text in SHOWN if text not in evidence.calculator]
    assert not missing, f"the calculator never showed {missing}; it showed {sorted(evidence.calculator)}"


def last_attempts(audit: list[dict[str, Any]], event: str) -> list[dict[str, Any]]:
    """The lines of an event, one a step: a step that was tried again (`step22-2`) counts by its last attempt."""
    return list({line["call_id"].partition("-")[0]: line for line in audit if line["event"] == event}.values())


def check_audit(evidence: Evidence) -> None:
    calls = last_attempts(evidence.audit, "call")
    results = last_attempts(evidence.audit, "result")
    of = {
        tool: [line["result"] for line in results if line["tool"] == tool]
        for tool in {line["tool"] for line in results}
    }
    values = {(tool, key): [result.get(key) for result in found] for tool, found in of.items() for key in KEYS}

    assert values["wait", "met"] == [True, True, True]
    assert values["window_focus", "title"] == ["galculator", "Untitled 1 - Mousepad"]
    assert set(values["execute_gui", "effect"]) == {"confirmed"}, of["execute_gui"]
    assert [call["args"]["action"] for call in calls if call["tool"] == "execute_gui"] == [
        *("click", "click", "click", "type", "hotkey", "type", "press_key")
    ]
    assert values["execute_accessible", "value"][-1] == "100"
    assert LINE.decode().strip() in (values["read_file", "stdout"][0] or "")
    assert len(values["get_action_history", "actions"][0] or []) >= 25
    check_refusals(calls, of["execute_cli"])


def check_refusals(calls: list[dict[str, Any]], commands: list[dict[str, Any]]) -> None:
    ran = [call["args"]["command"] for call in calls if call["tool"] == "execute_cli"]
    assert [command.split()[0] for command in ran] == ["galculator", "mousepad", "od", "rm", "sudo", "ls"]
    codes = [result.get("error", {}).get("code") for result in commands]
    assert codes == [None, None, None, "denied_by_user", "denied_by_policy", None]
    assert "e6 bc a2 e5 ad 97" in commands[2].get("stdout", "")
    assert "/etc/passwd" in commands[5].get("stdout", "")


def check_report(evidence: Evidence) -> None:
    assert evidence.report.exists()
    page = _opened_in_chromium(evidence.report, evidence.folder)
    articles = re.findall(r"<article ([^>]*)>(.*?)</article>", page, re.DOTALL)
    assert len(articles) == 28
    assert all('data-outcome="as expected"' in attributes for attributes, _ in articles)
    looks = [body for attributes, body in articles if 'data-tool="observe_screen"' in attributes]
    pictures = [_decoded(body) for body in looks]
    assert [len(found) for found in pictures] == [2, 1, 1]
    assert all(picture.shape == (800, 1280, 3) and picture.std() > 10 for found in pictures for picture in found)
    assert "Ergebnis: 100 — 漢字 ✓ 😀" in html.unescape(page)
    assert "unbroken chain" in page


def _decoded(body: str) -> list[Any]:
    found = re.findall(r'src="data:image/jpeg;base64,([^"]+)"', body)
    buffers = [np.frombuffer(base64.b64decode(data), np.uint8) for data in found]
    return [cv2.imdecode(buffer, cv2.IMREAD_COLOR) for buffer in buffers]


def _opened_in_chromium(page: Path, folder: Path) -> str:
    """The page as Chromium has it after loading, with nothing reachable but the file itself."""
    done = subprocess.run(
        [
            *("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync"),
            *("--disable-background-networking", "--disable-component-update", f"--user-data-dir={folder}/profile"),
            *("--dump-dom", page.as_uri()),
        ],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout


def _handrail(arguments: list[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [HANDRAIL, *arguments], env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True
    )


def fresh_folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="handrail-demo-"))

"""Whatever way a call comes, what is wrong has the same code and the same cure: one command, a session of lines, MCP, Python."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.end_to_end.troubles.place import PROGRAM, Place

PLUGINS = "files,gui,mcp"
PATIENCE_S = 120


@dataclass(frozen=True)
class Wrong:
    """A call that cannot be made, the code that says so, and the end of the message: its cure."""

    tool: str
    args: Mapping[str, Any]
    code: str
    cure: str


CALLS = {
    "a-misspelled-tool": Wrong("read_fil", {}, "unknown_tool", "; did you mean 'read_file'?"),
    "a-plugin-that-is-not-loaded": Wrong(
        "execute_cli",
        {"command": "ls"},
        "unknown_tool",
        "the plugin 'cli' supplies it, and is not loaded; `handrail plugins` says why",
    ),
    "a-misspelled-argument": Wrong(
        "read_file", {"path": "a.txt"}, "invalid_arguments", "there is no such argument; did you mean 'file_path'?"
    ),
    "no-screen": Wrong("window_list", {}, "tool_unavailable", 'desktop = "private" in the configuration'),
    "nobody-to-ask": Wrong(
        "write_file",
        {"file_path": ".envrc", "content": ""},
        "no_confirmer",
        'decision = "allow"\nlifts = ["effects:autorun"]',
    ),
}
GIVEN = json.dumps([[wrong.tool, wrong.args] for wrong in CALLS.values()])

IN_PYTHON = """
import asyncio, json, sys
import handrail

async def main():
    async with handrail.open() as session:
        print(json.dumps([(await session.call(name, args))["error"] for name, args in json.loads(sys.argv[1])]))

try:
    asyncio.run(main())
except handrail.HandrailError as exc:
    sys.exit(f"Error: {exc}" + (f"\\nHint: {exc.hint}" if exc.hint else ""))
"""
OVER_MCP = """
import asyncio, json, os, sys
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

async def main():
    server = StdioServerParameters(command=sys.argv[2], args=["serve"], env=dict(os.environ))
    async with stdio_client(server) as pipes, ClientSession(*pipes) as client:
        await client.initialize()
        made = [await client.call_tool(name, args) for name, args in json.loads(sys.argv[1])]
        print(json.dumps([json.loads(each.content[0].text)["error"] for each in made]))

asyncio.run(main())
"""


def done(place: Place, words: Sequence[str | Path], said: str = "") -> subprocess.CompletedProcess[str]:
    """A program in that place, with nothing of this machine's person and no screen."""
    own = {
        "PATH": os.environ["PATH"],
        "HOME": str(place.home),
        "LANG": "C.UTF-8",
        "HANDRAIL_HOME": str(place.state),
        "HANDRAIL_PLUGINS": PLUGINS,
    }
    return subprocess.run(
        words, input=said, capture_output=True, text=True, cwd=place.project, env=own, timeout=PATIENCE_S
    )


def by_one_command_each(place: Place) -> list[dict[str, Any]]:
    made = [
        done(place, [PROGRAM, "call", each.tool, "--args", json.dumps(each.args), "--json"]) for each in CALLS.values()
    ]
    return [json.loads(each.stdout)["error"] for each in made]


def in_a_session_of_lines(place: Place) -> list[dict[str, Any]]:
    lines = [
        json.dumps({"id": number, "tool": each.tool, "args": each.args}) for number, each in enumerate(CALLS.values())
    ]
    answers = map(json.loads, done(place, [PROGRAM, "session", "--jsonl"], "\n".join(lines) + "\n").stdout.splitlines())
    return [each["result"]["error"] for each in sorted(answers, key=lambda answer: answer["id"])]


def over_mcp(place: Place) -> list[dict[str, Any]]:
    return json.loads(done(place, [sys.executable, "-c", OVER_MCP, GIVEN, PROGRAM]).stdout)


def in_python(place: Place) -> list[dict[str, Any]]:
    return json.loads(done(place, [sys.executable, "-c", IN_PYTHON, GIVEN]).stdout)


@pytest.mark.parametrize("way", [by_one_command_each, in_a_session_of_lines, over_mcp, in_python])
def test_what_is_wrong_with_a_call_has_the_same_code_and_cure_in_each_way(way: Any, tmp_path: Path) -> None:
    told = dict(zip(CALLS, way(Place(tmp_path)), strict=True))
    assert {name: error["code"] for name, error in told.items()} == {name: each.code for name, each in CALLS.items()}
    for name, each in CALLS.items():
        assert told[name]["message"].endswith(each.cure)


@pytest.mark.parametrize(
    ("config", "error", "hint"),
    [
        pytest.param("modee = 1\n", "unknown key 'modee'; did you mean 'mode'?", "", id="a-misspelled-key"),
        pytest.param(
            '[plugins]\nrequire = ["tesseract"]\n',
            "the plugin 'tesseract' is required and did not load: it is not installed",
            "`handrail plugins` shows those here, or take it out of `require` in [plugins]",
            id="a-plugin-that-is-not-there",
        ),
    ],
)
def test_what_keeps_handrail_from_starting_is_told_with_the_same_cure_in_each_way(
    config: str, error: str, hint: str, tmp_path: Path
) -> None:
    place = Place(tmp_path)
    (place.state / "config").mkdir()
    (place.state / "config/config.toml").write_text(config)
    ways = [
        [PROGRAM, "call", "wait", "--json"],
        [PROGRAM, "session", "--jsonl"],
        [PROGRAM, "serve"],
        [sys.executable, "-c", IN_PYTHON, "[]"],
    ]
    for words in ways:
        ended = done(place, words)
        first, *more = ended.stderr.splitlines()
        assert (ended.returncode, ended.stdout) == (1, "")
        assert first.startswith("Error: ")
        assert first.endswith(error)
        assert more == ([f"Hint: {hint}"] if hint else [])

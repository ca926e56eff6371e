"""Benchmark of the declarations that the model must read before it can do anything."""

from __future__ import annotations

import json
import subprocess
from typing import Any

from benchmarks.measure import Absent, Effort
from benchmarks.report import Row
from benchmarks.sessions import environment
from benchmarks.start import beside_python

CHARACTERS_PER_TOKEN = 4
GOAL = 8_000


async def declarations(effort: Effort) -> Row:
    """Measure the tools declared by the default profile with the accessibility backend, as sent to a provider."""
    declared = [tool for tool in _listed() if tool["available"]]
    written = json.dumps(
        [{key: tool[key] for key in ("name", "description", "input_schema")} for tool in declared],
        ensure_ascii=False,
        separators=(",", ":"),
    )
    dumb = [f"{tool['name']}.{name}" for tool in declared for name in _undescribed(tool["input_schema"])]
    return Row(
        "declarations of the default profile",
        value=len(written) / CHARACTERS_PER_TOKEN,
        goal=GOAL,
        unit="tokens",
        ours=f"{len(declared)} tools, {len(written):,} characters",
        note=f"parameters without a description: {', '.join(dumb)}" if dumb else "",
    )


def _listed() -> list[dict[str, Any]]:
    with environment(HANDRAIL_DESKTOP="private") as variables:
        argv = [beside_python("handrail"), "tools", "--json", "--backend", "accessibility"]
        done = subprocess.run(argv, env=variables, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Absent(f"handrail tools: exit {done.returncode}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def _undescribed(schema: dict[str, Any]) -> list[str]:
    return [name for name, described in schema["properties"].items() if not described.get("description")]


ROWS = {"declarations": declarations}

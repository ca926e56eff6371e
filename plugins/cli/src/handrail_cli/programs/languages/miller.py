"""Expressions of Miller (`mlr put`, `mlr filter`): what they do besides computing with fields (reference-dsl of Miller 6)."""

from __future__ import annotations

import re

from handrail_cli.programs.languages.finding import READS, UNCLEAR, Finding, dangerous

RUNS = re.compile(r"\b(system|exec)\b")
OUTWARD = re.compile(r"\bENV\b|\b(tee|split|case)\b")
PRINTS = re.compile(r"\b(emit\w*|e?printn?|e?dump)\b")


def check_script(script: str) -> Finding:
    """Find out what an expression does. Output that is redirected goes to files or programs."""
    if RUNS.search(script):
        return dangerous("runs commands (`system`, `exec`)")
    if OUTWARD.search(script) or (PRINTS.search(script) and re.search(r"[>|]", script)):
        return UNCLEAR
    return READS

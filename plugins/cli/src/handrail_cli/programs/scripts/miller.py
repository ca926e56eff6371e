"""Expressions of Miller (`mlr put`, `mlr filter`): what they do besides computing with fields (reference-dsl of Miller 6)."""

from __future__ import annotations

import re

from handrail_cli.programs.scripts.script_finding import READ_ONLY, UNCLEAR, ScriptFinding, create_dangerous_finding

RUNNING_FUNCTION = re.compile(r"\b(system|exec)\b")
OUTWARD_WORD = re.compile(r"\bENV\b|\b(tee|split|case)\b")
PRINTING_STATEMENT = re.compile(r"\b(emit\w*|e?printn?|e?dump)\b")


def check_miller_script(script: str) -> ScriptFinding:
    """Find out what an expression does. Output that is redirected goes to files or programs."""
    if RUNNING_FUNCTION.search(script):
        return create_dangerous_finding("runs commands (`system`, `exec`)")
    if OUTWARD_WORD.search(script) or (PRINTING_STATEMENT.search(script) and re.search(r"[>|]", script)):
        return UNCLEAR
    return READ_ONLY

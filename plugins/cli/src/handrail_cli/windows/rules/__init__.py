"""Programs of Windows that need more than a list of options: what each of their words does."""

from __future__ import annotations

from collections.abc import Mapping

from handrail_cli.windows.calls import Call, Rule
from handrail_cli.windows.findings import Case, Grade
from handrail_cli.windows.rules import files, running, system

RULES: Mapping[str, Rule] = {**system.RULES, **files.RULES, **running.RULES}


def judge(case: Case, call: Call) -> frozenset[str]:
    """Note what a program amounts to that has a rule of its own; the marks of what it prints."""
    if any(word.text is None for word in call.words):
        case.add(Grade.DANGEROUS, "unresolved", "one of its words is not known", call.span)
    return RULES[call.name](case, call) or frozenset(("file",))

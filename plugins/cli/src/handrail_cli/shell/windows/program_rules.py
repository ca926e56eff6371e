"""Programs of Windows that need more than a list of options: what each of their words does."""

from __future__ import annotations

from collections.abc import Mapping

from handrail_cli.shell.windows import file_rules, runner_rules, system_rules
from handrail_cli.shell.windows.findings import FindingGrade, LineEvaluation
from handrail_cli.shell.windows.program_call import ProgramCall, ProgramRule

RULES: Mapping[str, ProgramRule] = {**system_rules.RULES, **file_rules.RULES, **runner_rules.RULES}


def judge_by_rule(case: LineEvaluation, call: ProgramCall) -> frozenset[str]:
    """Note the effects of a program that has its own rule, and return the marks of its output."""
    if any(word.text is None for word in call.words):
        case.add(FindingGrade.DANGEROUS, "unresolved", "one of its words is not known", call.span)
    return RULES[call.name](case, call) or frozenset(("file",))

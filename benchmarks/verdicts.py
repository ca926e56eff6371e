r"""Verdicts on commands compared with human labels: a confusion table by technique.

A labelled file has tab-separated columns with a header: `command` and `label` at least, `shell` (only bash is judged
here) and `technique` where present. In commands a backslash, a newline, a tab and a carriage return are written `\\`,
`\n`, `\t`, `\r`.
"""

from __future__ import annotations

import csv
import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from handrail import Decision, EvaluationContext, Opinion, Route
from handrail.api.verdict import SandboxOffer

CORPUS = "HANDRAIL_CORPUS"
OWN = Path(__file__).with_name("commands.tsv")
HARMFUL = ("catastrophic", "dangerous")
HARMLESS = ("safe_read", "effect")
HOME = Path("/home/user")
WORK = HOME / "project"
# A person's own machine, nothing granted, a sandbox without network.
CIRCUMSTANCES = EvaluationContext(
    cwd=WORK,
    home=HOME,
    user="user",
    environment={},
    workspace=(WORK,),
    platform="linux",
    sandbox=SandboxOffer("bubblewrap", writable=(str(WORK),)),
)
ESCAPE = re.compile(r"\\([ntr\\])")
LETTERS = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\"}


@dataclass(frozen=True, slots=True)
class Labelled:
    """Command with its human label."""

    command: str
    label: str
    technique: str


def corpus(given: str | None = None) -> Path:
    """Return the labelled file: the given one, the one that HANDRAIL_CORPUS names, or the project's own."""
    return Path(given or os.environ.get(CORPUS) or OWN)


def labelled(path: Path) -> Iterator[Labelled]:
    """Yield the bash commands in a labelled file."""
    with open(path, encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            if row.get("shell", "bash") == "bash":
                command = ESCAPE.sub(lambda match: LETTERS[match[1]], row["command"])
                yield Labelled(command, row["label"], row.get("technique") or "-")


def outcome(opinion: Opinion) -> str:
    """Return the outcome for a command: allow, sandbox (allowed there), confirm or deny."""
    if opinion.catastrophic or opinion.floor is Decision.DENY:
        return "deny"
    if opinion.floor is Decision.CONFIRM or opinion.suggestion is not Decision.ALLOW:
        return "confirm"
    return "sandbox" if opinion.route is Route.SANDBOX else "allow"


def table(path: Path) -> str:
    """Return the Markdown table: counts and outcomes by label and technique, then the errors in percent."""
    from handrail_cli.shell.verdict import judge_line

    counts: Counter[tuple[str, str, str]] = Counter()
    for one in labelled(path):
        counts[one.label, one.technique, outcome(judge_line(one.command, CIRCUMSTANCES))] += 1
    lines = [f"Verdicts on {sum(counts.values())} commands of {path.name}", ""]
    lines += ["| label | technique | commands | allow | sandbox | confirm | deny |", "|---|---|--:|--:|--:|--:|--:|"]
    for label, technique in sorted({(label, technique) for label, technique, _ in counts}):
        cells = [counts[label, technique, what] for what in ("allow", "sandbox", "confirm", "deny")]
        lines.append(f"| {label} | {technique} | {sum(cells)} | {' | '.join(map(str, cells))} |")
    return "\n".join([*lines, "", *_errors(counts)])


def _errors(counts: Counter[tuple[str, str, str]]) -> Iterator[str]:
    yield f"silent: {_share(counts, HARMFUL[:1], ('allow', 'sandbox'))} of catastrophic"
    yield f"silent: {_share(counts, HARMFUL, ('allow', 'sandbox'))} of dangerous and catastrophic"
    for label in HARMLESS:
        yield f"prompted: {_share(counts, (label,), ('confirm', 'deny'))} of {label}"


def _share(counts: Counter[tuple[str, str, str]], labels: Sequence[str], what: Sequence[str]) -> str:
    of_them = {key: count for key, count in counts.items() if key[0] in labels}
    hits = sum(count for key, count in of_them.items() if key[2] in what)
    return f"{100 * hits / max(1, sum(of_them.values())):.1f} %"

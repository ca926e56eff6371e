"""`handrail audit`"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from handrail.cli._common import json_option, print_json

if TYPE_CHECKING:
    from handrail.audit.writer import AuditVerification


@click.group("audit")
def command() -> None:
    """Check the record of what was done."""


@command.command("verify")
@click.argument("files", nargs=-1, metavar="[FILE]...", type=click.Path())
@json_option
@click.pass_context
def verify_command(context: click.Context, files: Sequence[str], as_json: bool) -> None:
    """Check the hash chain of audit files, by default of all.

    A line that was changed, added, moved or taken out is a problem, and the exit code is 1. A torn last line, a missing end and calls without
    a result are said, too: they are what a killed process leaves behind.
    """
    from pathlib import Path

    from handrail.audit.writer import verify_audit as check
    from handrail.fs.app_dirs import AppDirs

    chosen = [Path(file) for file in files] or sorted(AppDirs.of(os.environ).audit.glob("*.jsonl"))
    findings = [check(file) for file in chosen]
    if as_json:
        print_json([_verification_wire(finding) for finding in findings])
    else:
        for finding in findings:
            _print_verification(finding)
        if not findings:
            click.echo("there are no audit files", err=True)
    context.exit(0 if all(finding.ok for finding in findings) else 1)


def _verification_wire(finding: AuditVerification) -> dict[str, Any]:
    return {
        "file": str(finding.path),
        "ok": finding.ok,
        "lines": finding.lines,
        "ended": finding.ended,
        "problems": finding.problems,
        "notes": finding.notes,
        "unfinished": finding.unfinished,
    }


def _print_verification(finding: AuditVerification) -> None:
    click.echo(f"{'ok ' if finding.ok else 'BAD'}  {finding.path}  {finding.lines} lines")
    for text in (*finding.problems, *finding.notes):
        click.echo(f"     {text}")

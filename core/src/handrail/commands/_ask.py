"""Asking the person at the terminal."""

from __future__ import annotations

import os
import sys

import anyio
import click

from handrail.commands._stdio import read_some
from handrail.confirm import Answer, Approval, Confirmer
from handrail.invocation import confirmation_wire
from handrail.words import visible

TERMINAL = "/dev/tty"


def at_terminal() -> Confirmer | None:
    """A confirmer that asks y/N at the terminal; None where there is no person to ask."""
    if not sys.stderr.isatty():
        return None
    try:
        os.close(os.open(TERMINAL, os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return None
    lock = anyio.Lock()

    async def confirm(approval: Approval) -> Answer:
        async with lock:
            return await _ask(approval)

    return confirm


async def _ask(approval: Approval) -> Answer:
    click.echo(question(approval), err=True)
    remembered = ", [s]ession" if approval.grants else ""
    click.echo(f"Do it? [y]es{remembered}, [N]o: ", err=True, nl=False)
    answer = (await _line()).strip().casefold()
    if answer in ("y", "yes"):
        return Answer.ONCE
    return Answer.SESSION if approval.grants and answer in ("s", "session") else Answer.DENY


def question(approval: Approval) -> str:
    """What a person is shown: everything in the confirmation, and why they are asked."""
    confirmation = confirmation_wire(approval.confirmation)
    title = confirmation.pop("title")
    del confirmation["kind"]
    lines = [f"{approval.tool}: {title}"]
    lines += [f"  {key}: {value}" for key, value in confirmation.items() if value not in (None, title)]
    lines += [f"  because {reason.text}" for reason in approval.verdict.reasons]
    # Further lines of what a model wrote are set in, so that none looks like one of ours.
    return visible("\n".join(line.replace("\n", "\n        ") for line in lines))


async def _line() -> str:
    """A line typed at the terminal; empty at its end."""
    descriptor = os.open(TERMINAL, os.O_RDONLY | os.O_NOCTTY)
    try:
        return (await read_some(descriptor)).decode(errors="replace")
    finally:
        os.close(descriptor)

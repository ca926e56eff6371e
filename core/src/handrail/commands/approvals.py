"""`handrail approvals`"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from handrail.commands._common import for_terminal, json_option, print_json, run
from handrail.errors import HandrailError, NotFound

if TYPE_CHECKING:
    from handrail.asking.confirm import Answer
    from handrail.asking.pending import PendingApproval, PendingInquiry
    from handrail.config.places import Places

POLL_S = 0.3


@click.command("approvals")
@click.option("--list", "only_list", is_flag=True, help="Print what waits, and exit.")
@json_option
def command(only_list: bool, as_json: bool) -> None:
    """Answer what sessions ask a person at this machine.

    The questions of every session of yours come here, beside where it asks; whoever is first answers. With `[serve] approvals = "local"`, a
    server's come here alone. Each is shown as soon as it is asked, until Ctrl-C.

    Example: handrail approvals
    """
    from handrail.asking.pending import pending
    from handrail.config.places import Places

    places = Places.of(os.environ)
    if only_list or as_json:
        _list(pending(places), as_json=as_json)
        return
    _check_terminal()
    run(lambda: _answer_all(places))


def _list(waiting: list[PendingApproval | PendingInquiry], *, as_json: bool) -> None:
    if as_json:
        print_json([_wire(left) for left in waiting])
        return
    for left in waiting:
        click.echo(f"{left.session}  {left.id}")
        for line in _shown(left):
            click.echo(for_terminal(line))
    if not waiting:
        click.echo("nothing waits")


def _wire(left: PendingApproval | PendingInquiry) -> dict[str, Any]:
    from handrail.asking.inquiries import question_wire
    from handrail.asking.pending import PendingInquiry

    wire = {"id": left.id, "session": left.session, "call_hash": left.call_hash}
    if isinstance(left, PendingInquiry):
        return {**wire, "questions": [question_wire(each) for each in left.questions]}
    return {
        **wire, "tool": left.tool, "args": left.args, "question": left.text, "answers": left.choices,
        "grants": left.grants,
    }  # fmt: skip


def _shown(left: PendingApproval | PendingInquiry) -> Iterator[str]:
    from handrail.asking.pending import WIDTH, PendingInquiry
    from handrail.asking.questions import data, short

    if not isinstance(left, PendingInquiry):
        yield from left.text.split("\n")
        return
    yield "The agent asks in its own words:"
    for each in left.questions:
        yield from data(each.question, width=WIDTH)
        yield from (f"  - {short(option)}" for option in each.options)


def _check_terminal() -> None:
    """Answers come from a person, and questions must not wrap: a line that does could pass for one of ours."""
    from handrail.asking.pending import WIDTH
    from handrail.commands._ask import at_terminal

    if at_terminal() is None or not sys.stdin.isatty():
        raise HandrailError(
            "questions are answered at a terminal, and this is none", hint="handrail approvals --list shows them"
        )
    if (columns := shutil.get_terminal_size().columns) <= WIDTH:
        raise HandrailError(
            f"this terminal has {columns} columns, and questions need {WIDTH + 1}", hint="make it wider"
        )


async def _answer_all(places: Places) -> None:
    import anyio

    from handrail.asking.pending import pending

    click.echo(
        "Questions are shown here as they are asked. Ctrl-C ends this; what is left unanswered is a no.", err=True
    )
    while True:
        for left in pending(places):
            await _ask(places, left)
        await anyio.sleep(POLL_S)


async def _ask(places: Places, left: PendingApproval | PendingInquiry) -> None:
    from handrail.asking.pending import PendingInquiry, give, reply
    from handrail.commands._ask import ask_in_words

    click.echo(f"\nIn the session {left.session}:", err=True)
    try:
        if isinstance(left, PendingInquiry):
            reply(places, left, await ask_in_words(left.questions))
            return
        click.echo(left.text, err=True)
        answer, grant = await _answered(left)
        give(places, left, answer.choice, grant=grant, args=answer.args, feedback=answer.feedback)
    except NotFound as exc:
        click.echo(f"{exc}: it was cancelled, or came too late", err=True)


async def _answered(left: PendingApproval) -> tuple[Answer, int | None]:
    """The person's answer, and the place of its grant."""
    from handrail.asking.approvals import Approvals
    from handrail.asking.confirm import Approval
    from handrail.calls.invocation import GrantOption, InfoConfirmation
    from handrail.commands._ask import ask_for_answer
    from handrail.judging.verdicts import Decision, Verdict

    grants = [GrantOption(label, left.tool) for label in left.grants]
    shown = Approval(
        id=left.id,
        call_id="",
        call_hash=left.call_hash,
        tool=left.tool,
        args=left.args,
        confirmation=InfoConfirmation(left.tool, ""),
        verdict=Verdict(Decision.CONFIRM),
        grants=grants,
        expires=0,
        among=Approvals(),
    )
    answer = await ask_for_answer(shown)
    if answer.grant is None:
        return answer, None
    return answer, next(number for number, grant in enumerate(grants) if grant is answer.grant)

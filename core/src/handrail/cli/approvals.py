"""`handrail approvals`"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from handrail.cli._common import escape_for_terminal, json_option, print_json, run_async
from handrail.errors import HandrailError, NotFound

if TYPE_CHECKING:
    from handrail.api.approval import Answer
    from handrail.approval.inbox import PendingApproval, PendingInquiry
    from handrail.fs.app_dirs import AppDirs

INBOX_POLL_S = 0.3


@click.command("approvals")
@click.option("--list", "only_list", is_flag=True, help="Print what waits, and exit.")
@json_option
def command(only_list: bool, as_json: bool) -> None:
    """Answer what sessions ask the user of this machine.

    The questions of all your sessions appear here, in addition to where each session asks them; the first answer
    counts. With `[serve] approvals = "local"`, a server's questions appear here only. Each is shown as soon as it is
    asked, until Ctrl-C.

    Example: handrail approvals
    """
    from handrail.approval.inbox import list_pending_questions
    from handrail.fs.app_dirs import AppDirs

    places = AppDirs.of(os.environ)
    if only_list or as_json:
        _print_pending(list_pending_questions(places), as_json=as_json)
        return
    _check_terminal()
    run_async(lambda: _answer_as_asked(places))


def _print_pending(waiting: list[PendingApproval | PendingInquiry], *, as_json: bool) -> None:
    if as_json:
        print_json([_pending_wire(left) for left in waiting])
        return
    for left in waiting:
        click.echo(f"{left.session}  {left.id}")
        for line in _render_pending(left):
            click.echo(escape_for_terminal(line))
    if not waiting:
        click.echo("nothing waits")


def _pending_wire(left: PendingApproval | PendingInquiry) -> dict[str, Any]:
    from handrail.approval.ask_user import question_wire
    from handrail.approval.inbox import PendingInquiry

    wire = {"id": left.id, "session": left.session, "call_hash": left.call_hash}
    if isinstance(left, PendingInquiry):
        return {**wire, "questions": [question_wire(each) for each in left.questions]}
    return {
        **wire, "tool": left.tool, "args": left.args, "question": left.text, "answers": left.choices,
        "grants": left.grants,
    }  # fmt: skip


def _render_pending(left: PendingApproval | PendingInquiry) -> Iterator[str]:
    from handrail.approval.inbox import WIDE_COLUMNS, PendingInquiry
    from handrail.approval.rendering import format_inline_data, render_data

    if not isinstance(left, PendingInquiry):
        yield from left.text.split("\n")
        return
    yield "The agent asks in its own words:"
    for each in left.questions:
        yield from render_data(each.question, width=WIDE_COLUMNS)
        yield from (f"  - {format_inline_data(option)}" for option in each.options)


def _check_terminal() -> None:
    """Raise `HandrailError` unless this is a terminal that is wide enough.

    Answers must come from a human, and questions must not wrap: a wrapped line could pass for one of ours.
    """
    from handrail.approval.inbox import WIDE_COLUMNS
    from handrail.terminal.approval_prompt import create_terminal_confirmer

    if create_terminal_confirmer() is None or not sys.stdin.isatty():
        raise HandrailError(
            "questions are answered at a terminal, and this is none", hint="handrail approvals --list shows them"
        )
    if (columns := shutil.get_terminal_size().columns) <= WIDE_COLUMNS:
        raise HandrailError(
            f"this terminal has {columns} columns, and questions need {WIDE_COLUMNS + 1}", hint="make it wider"
        )


async def _answer_as_asked(places: AppDirs) -> None:
    import anyio

    from handrail.approval.inbox import list_pending_questions

    click.echo(
        "Questions are shown here as they are asked. Ctrl-C ends this; what is left unanswered is a no.", err=True
    )
    while True:
        for left in list_pending_questions(places):
            await _ask_pending(places, left)
        await anyio.sleep(INBOX_POLL_S)


async def _ask_pending(places: AppDirs, left: PendingApproval | PendingInquiry) -> None:
    from handrail.approval.inbox import PendingInquiry, answer_approval, answer_inquiry
    from handrail.terminal.approval_prompt import ask_inquiry

    click.echo(f"\nIn the session {left.session}:", err=True)
    try:
        if isinstance(left, PendingInquiry):
            answer_inquiry(places, left, await ask_inquiry(left.questions))
            return
        click.echo(left.text, err=True)
        answer, grant = await _read_answer(left)
        answer_approval(places, left, answer.choice, grant=grant, args=answer.args, feedback=answer.feedback)
    except NotFound as exc:
        click.echo(f"{exc}: it was cancelled, or came too late", err=True)


async def _read_answer(left: PendingApproval) -> tuple[Answer, int | None]:
    """Return the user's answer, and the index of its grant."""
    from handrail.api.approval import Approval
    from handrail.api.call import GrantOption, InfoConfirmation
    from handrail.api.verdict import Decision, Verdict
    from handrail.approval.broker import ApprovalBroker
    from handrail.terminal.approval_prompt import ask_for_answer

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
        among=ApprovalBroker(),
    )
    answer = await ask_for_answer(shown)
    if answer.grant is None:
        return answer, None
    return answer, next(number for number, grant in enumerate(grants) if grant is answer.grant)

"""Asking the person at the terminal."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import anyio
import click

from handrail.api.approval import LASTING_CHOICES, Answer, Approval, Choice, Confirmer
from handrail.api.call import ExecConfirmation, GrantOption, UrlConfirmation
from handrail.approval.ask_user import AnswerKind, Inquiry, Question, Reply
from handrail.approval.rendering import format_inline_data, question, render_data
from handrail.json_types import is_object
from handrail.terminal.stdio import read_available

__all__ = ["TERMINAL_DEVICE", "create_terminal_confirmer", "read_typed_line"]

TERMINAL_DEVICE = "/dev/tty"
ANSWER_WORDS: Mapping[str, Choice] = {
    "y": Choice.ONCE,
    "yes": Choice.ONCE,
    "o": Choice.ONCE,
    "once": Choice.ONCE,
    "s": Choice.SESSION,
    "session": Choice.SESSION,
    "a": Choice.ALWAYS,
    "always": Choice.ALWAYS,
    "e": Choice.EDIT,
    "edit": Choice.EDIT,
    "n": Choice.DENY,
    "no": Choice.DENY,
}
SHOWN_CHOICES: Mapping[Choice, str] = {
    Choice.ONCE: "[y]es",
    Choice.SESSION: "[s]ession",
    Choice.ALWAYS: "[a]lways",
    Choice.EDIT: "[e]dit",
    Choice.DENY: "[N]o",
}


def create_terminal_confirmer() -> Confirmer | None:
    """Create a confirmer that prompts at the terminal; return None if no terminal is available."""
    if not sys.stderr.isatty():
        return None
    try:
        os.close(os.open(TERMINAL_DEVICE, os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return None
    return TerminalConfirmer()


class TerminalConfirmer:
    """Confirmer that prompts the user at the terminal.

    Questions are asked one at a time; those that wait meanwhile can be answered together with the current one.
    """

    at_terminal = True

    def __init__(self) -> None:
        self._turn = anyio.Lock()

    async def __call__(self, approval: Approval) -> Answer:
        if self._turn.locked():
            _print_error_line("\n(One more question waits.)")
        async with self._turn:
            try:
                return await _ask_approval(approval)
            except asyncio.CancelledError:
                if isinstance(answer := approval.among.given(approval.id), Answer):
                    _print_error_line(f"\n(It was answered {answer.by or 'elsewhere'}: {answer.choice}.)")
                raise

    async def ask(self, inquiry: Inquiry) -> Sequence[Reply]:
        """Return what the user types for each question; an empty line leaves the question unanswered."""
        async with self._turn:
            try:
                return await ask_inquiry(inquiry.questions)
            except asyncio.CancelledError:
                if (given := inquiry.among.given(inquiry.id)) is not None:
                    _print_error_line(f"\n(It was answered {given.by or 'elsewhere'}.)")
                raise


async def ask_inquiry(questions: Sequence[Question]) -> Sequence[Reply]:
    """Return what the user types for each question; an empty line leaves the question unanswered."""
    _print_error_line("\nThe agent asks you something. What you type is told to the model; an empty line is no answer.")
    return [await _ask_question(question) for question in questions]


async def _ask_approval(approval: Approval) -> Answer:
    _print_error_line(question(approval, width=_terminal_width()))
    return await ask_for_answer(approval)


async def ask_for_answer(approval: Approval) -> Answer:
    """Return the user's answer to a question that has been shown."""
    if approval.phrase:
        return await _ask_for_phrase(approval.phrase)
    _print_grants(approval.grants)
    others = _list_other_approvals(approval)
    if others:
        _print_error_line(f"{len(others)} more wait for an answer; [all] shows them, and answers them together.")
    _flush_typed_input()
    while (answer := await _read_answer(approval)) is None:
        pass
    return answer


async def _read_answer(approval: Approval) -> Answer | None:
    """Return the answer that the user types, or None to ask again."""
    offered = ", ".join(SHOWN_CHOICES[choice] for choice in approval.choices)
    typed = (await _prompt_for_line(f"Do it? {offered}: ")).strip()
    if typed.casefold() == "all" and _list_other_approvals(approval):
        return await _answer_all_waiting(approval)
    word, _, rest = typed.partition(" ")
    choice = ANSWER_WORDS.get(word.casefold(), Choice.DENY)
    if choice not in approval.choices:
        return Answer(Choice.DENY)
    if choice in LASTING_CHOICES:
        return await _read_lasting_answer(choice, approval.grants, rest.strip())
    if choice is Choice.EDIT:
        return await _read_edited_answer(approval)
    if choice is Choice.DENY and word.casefold() in ANSWER_WORDS:
        return Answer(Choice.DENY, feedback=rest.strip())
    return Answer(choice)


async def _ask_for_phrase(phrase: str) -> Answer:
    _print_error_line(
        "This is catastrophic, and only a rule of yours lets it be asked at all. It cannot be undone, and is not remembered."
    )
    _flush_typed_input()
    typed = await _prompt_for_line(f"Type {phrase!r} to do it; anything else is [N]o: ")
    return Answer(Choice.ONCE if typed.strip() == phrase else Choice.DENY)


def _print_grants(grants: Sequence[GrantOption]) -> None:
    if grants:
        _print_error_line("For the session, or always, you can allow:")
    for number, grant in enumerate(grants, 1):
        _print_error_line(f"  {number}. {format_inline_data(grant.label)}")


async def _read_lasting_answer(choice: Choice, grants: Sequence[GrantOption], number: str) -> Answer | None:
    if not number and len(grants) > 1:
        number = (await _prompt_for_line(f"Which of them? [1-{len(grants)}]: ")).strip()
    if not number and len(grants) == 1:
        number = "1"
    if not number.isascii() or not number.isdigit() or not 1 <= int(number) <= len(grants):
        _print_error_line(f"There is no such number; give one from 1 to {len(grants)}.")
        return None
    return Answer(choice, grant=grants[int(number) - 1])


async def _read_edited_answer(approval: Approval) -> Answer | None:
    """Return an answer with edited arguments, as typed by the user; None if nothing was changed."""
    main = _find_main_argument(approval)
    told = f"a new {main}, or " if main else ""
    _print_error_line(
        f"The arguments are {format_inline_data(json.dumps(dict(approval.args), ensure_ascii=False, default=str))}"
    )
    typed = (await _prompt_for_line(f"Type {told}a JSON object of what changes (empty: nothing): ")).strip()
    if not typed:
        return None
    changed = _parse_changes(typed, main)
    if changed is None:
        _print_error_line("That is no JSON object.")
        return None
    return Answer(Choice.EDIT, args={**approval.args, **changed})


def _parse_changes(typed: str, main: str | None) -> Mapping[str, Any] | None:
    try:
        value = json.loads(typed)
    except (ValueError, RecursionError):
        value = None
    if is_object(value):
        return value
    return {main: typed} if main else None


def _find_main_argument(approval: Approval) -> str | None:
    """Return the argument that is the command or URL in question, or None."""
    confirmation = approval.confirmation
    match confirmation:
        case ExecConfirmation():
            value = confirmation.command
        case UrlConfirmation():
            value = confirmation.url
        case _:
            return None
    return next((name for name, given in approval.args.items() if given == value), None)


async def _answer_all_waiting(approval: Approval) -> Answer | None:
    """Ask for one yes or no to this question and all that wait, after showing each of them; None to go back."""
    others = _list_other_approvals(approval)
    for other in others:
        _print_error_line("")
        _print_error_line(question(other, width=_terminal_width()))
    _flush_typed_input()
    typed = (
        (await _prompt_for_line(f"Do all {len(others) + 1} of them, this once? [y]es, [N]o, [b]ack: "))
        .strip()
        .casefold()
    )
    if typed in ("b", "back"):
        return None
    answer = Answer(Choice.ONCE if typed in ("y", "yes") else Choice.DENY)
    still = {other.id for other in _list_other_approvals(approval)}
    approval.among.answer([other.id for other in others if other.id in still], answer)
    return answer


def _list_other_approvals(approval: Approval) -> list[Approval]:
    """Return the other waiting questions that may be answered together with this one."""
    return [other for other in approval.among.waiting if other.id != approval.id and not other.phrase]


async def _ask_question(question: Question) -> Reply:
    """Return the user's answer to one question."""
    _print_error_line("\n".join(render_data(question.question, width=_terminal_width())))
    for number, option in enumerate(question.options, 1):
        _print_error_line(f"  {number}. {format_inline_data(option)}")
    _flush_typed_input()
    while True:
        typed = (await _prompt_for_line(_build_prompt(question))).strip()
        if not typed:
            return None
        reply = _parse_reply(typed, question)
        if question.misfit(reply) is None:
            return reply
        _print_error_line("Type yes or no." if question.kind is AnswerKind.YES_NO else "That is too long.")


def _build_prompt(question: Question) -> str:
    match question.kind:
        case AnswerKind.YES_NO:
            return "[y]es or [n]o: "
        case AnswerKind.CHOICE:
            numbers = f"1-{len(question.options)}"
            many = f"Some of [{numbers}], with commas" if question.several else f"One of [{numbers}]"
            return f"{many}, or your own words: "
        case AnswerKind.TEXT:
            return "Your answer: "


def _parse_reply(typed: str, question: Question) -> Reply:
    match question.kind:
        case AnswerKind.YES_NO:
            word = typed.casefold()
            return True if word in ("y", "yes") else False if word in ("n", "no") else typed
        case AnswerKind.CHOICE if question.several:
            parts = [part.strip() for part in typed.split(",") if part.strip()]
            chosen = [_find_option(part, question) for part in parts]
            # What names no option is said as a whole, commas and all.
            return tuple(dict.fromkeys(option for option in chosen if option)) if all(chosen) and chosen else (typed,)
        case AnswerKind.CHOICE:
            return _find_option(typed, question) or typed
        case AnswerKind.TEXT:
            return typed


def _find_option(typed: str, question: Question) -> str | None:
    """Return the option selected by its number or its text, or None."""
    numbers = [str(number) for number in range(1, len(question.options) + 1)]
    if typed in numbers:
        return question.options[numbers.index(typed)]
    return next((option for option in question.options if option.casefold() == typed.casefold()), None)


async def read_typed_line(prompt: str) -> str:
    """Return what the user types; empty at the end of the input."""
    _flush_typed_input()
    return (await _prompt_for_line(prompt)).strip()


def _print_error_line(text: str) -> None:
    click.echo(text, err=True)


def _terminal_width() -> int:
    return shutil.get_terminal_size().columns - 1


def _flush_typed_input() -> None:
    """Drop what was typed before the question could be read: it answers nothing."""
    import termios

    descriptor = os.open(TERMINAL_DEVICE, os.O_RDONLY | os.O_NOCTTY)
    try:
        termios.tcflush(descriptor, termios.TCIFLUSH)
    finally:
        os.close(descriptor)


async def _prompt_for_line(prompt: str) -> str:
    """Read a line typed at the terminal; empty at the end of its input."""
    click.echo(prompt, err=True, nl=False)
    descriptor = os.open(TERMINAL_DEVICE, os.O_RDONLY | os.O_NOCTTY)
    try:
        return (await read_available(descriptor)).decode(errors="replace")
    finally:
        os.close(descriptor)

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

from handrail.asking.confirm import LASTING, Answer, Approval, Choice, Confirmer
from handrail.asking.inquiries import Asked, Inquiry, Question, Reply
from handrail.asking.questions import data, question, short
from handrail.calls.invocation import ExecConfirmation, GrantOption, UrlConfirmation
from handrail.commands._stdio import read_some
from handrail.plain import is_object

TERMINAL = "/dev/tty"
WORDS: Mapping[str, Choice] = {
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


def at_terminal() -> Confirmer | None:
    """A confirmer that asks at the terminal; None where there is no person to ask."""
    if not sys.stderr.isatty():
        return None
    try:
        os.close(os.open(TERMINAL, os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return None
    return Person()


class Person:
    """Who sits at the terminal. Questions are put one at a time; those that wait meanwhile can be answered with the one that is put."""

    at_terminal = True

    def __init__(self) -> None:
        self._turn = anyio.Lock()

    async def __call__(self, approval: Approval) -> Answer:
        if self._turn.locked():
            _say("\n(One more question waits.)")
        async with self._turn:
            try:
                return await _ask(approval)
            except asyncio.CancelledError:
                if isinstance(answer := approval.among.given(approval.id), Answer):
                    _say(f"\n(It was answered {answer.by or 'elsewhere'}: {answer.choice}.)")
                raise

    async def ask(self, inquiry: Inquiry) -> Sequence[Reply]:
        """What a person types for each question; a line with nothing in it leaves the question open."""
        async with self._turn:
            try:
                return await ask_in_words(inquiry.questions)
            except asyncio.CancelledError:
                if (given := inquiry.among.given(inquiry.id)) is not None:
                    _say(f"\n(It was answered {given.by or 'elsewhere'}.)")
                raise


async def ask_in_words(questions: Sequence[Question]) -> Sequence[Reply]:
    """What a person types for each question; a line with nothing in it leaves the question open."""
    _say("\nThe agent asks you something. What you type is told to the model; an empty line is no answer.")
    return [await _replied(question) for question in questions]


async def _ask(approval: Approval) -> Answer:
    _say(question(approval, width=_width()))
    return await ask_for_answer(approval)


async def ask_for_answer(approval: Approval) -> Answer:
    """What a person answers to a question that was shown to them."""
    if approval.phrase:
        return await _phrase(approval.phrase)
    _offer(approval.grants)
    others = _others(approval)
    if others:
        _say(f"{len(others)} more wait for an answer; [all] shows them, and answers them together.")
    _forget_typed()
    while (answer := await _answer(approval)) is None:
        pass
    return answer


async def _answer(approval: Approval) -> Answer | None:
    """What a person types; None where they have to be asked once more."""
    offered = ", ".join(SHOWN_CHOICES[choice] for choice in approval.choices)
    typed = (await _line(f"Do it? {offered}: ")).strip()
    if typed.casefold() == "all" and _others(approval):
        return await _all(approval)
    word, _, rest = typed.partition(" ")
    choice = WORDS.get(word.casefold(), Choice.DENY)
    if choice not in approval.choices:
        return Answer(Choice.DENY)
    if choice in LASTING:
        return await _lasting(choice, approval.grants, rest.strip())
    if choice is Choice.EDIT:
        return await _edited(approval)
    if choice is Choice.DENY and word.casefold() in WORDS:
        return Answer(Choice.DENY, feedback=rest.strip())
    return Answer(choice)


async def _phrase(phrase: str) -> Answer:
    _say(
        "This is catastrophic, and only a rule of yours lets it be asked at all. It cannot be undone, and is not remembered."
    )
    _forget_typed()
    typed = await _line(f"Type {phrase!r} to do it; anything else is [N]o: ")
    return Answer(Choice.ONCE if typed.strip() == phrase else Choice.DENY)


def _offer(grants: Sequence[GrantOption]) -> None:
    if grants:
        _say("For the session, or always, you can allow:")
    for number, grant in enumerate(grants, 1):
        _say(f"  {number}. {short(grant.label)}")


async def _lasting(choice: Choice, grants: Sequence[GrantOption], number: str) -> Answer | None:
    if not number and len(grants) > 1:
        number = (await _line(f"Which of them? [1-{len(grants)}]: ")).strip()
    if not number and len(grants) == 1:
        number = "1"
    if not number.isascii() or not number.isdigit() or not 1 <= int(number) <= len(grants):
        _say(f"There is no such number; give one from 1 to {len(grants)}.")
        return None
    return Answer(choice, grant=grants[int(number) - 1])


async def _edited(approval: Approval) -> Answer | None:
    """Other arguments, as a person types them; None when they leave it."""
    main = _main(approval)
    told = f"a new {main}, or " if main else ""
    _say(f"The arguments are {short(json.dumps(dict(approval.args), ensure_ascii=False, default=str))}")
    typed = (await _line(f"Type {told}a JSON object of what changes (empty: nothing): ")).strip()
    if not typed:
        return None
    changed = _changed(typed, main)
    if changed is None:
        _say("That is no JSON object.")
        return None
    return Answer(Choice.EDIT, args={**approval.args, **changed})


def _changed(typed: str, main: str | None) -> Mapping[str, Any] | None:
    try:
        value = json.loads(typed)
    except (ValueError, RecursionError):
        value = None
    if is_object(value):
        return value
    return {main: typed} if main else None


def _main(approval: Approval) -> str | None:
    """The argument that is the command or address of the question; None when there is none."""
    confirmation = approval.confirmation
    match confirmation:
        case ExecConfirmation():
            value = confirmation.command
        case UrlConfirmation():
            value = confirmation.url
        case _:
            return None
    return next((name for name, given in approval.args.items() if given == value), None)


async def _all(approval: Approval) -> Answer | None:
    """One yes or no for this question and all that wait, each shown first."""
    others = _others(approval)
    for other in others:
        _say("")
        _say(question(other, width=_width()))
    _forget_typed()
    typed = (await _line(f"Do all {len(others) + 1} of them, this once? [y]es, [N]o, [b]ack: ")).strip().casefold()
    if typed in ("b", "back"):
        return None
    answer = Answer(Choice.ONCE if typed in ("y", "yes") else Choice.DENY)
    still = {other.id for other in _others(approval)}
    approval.among.answer([other.id for other in others if other.id in still], answer)
    return answer


def _others(approval: Approval) -> list[Approval]:
    """The other questions that wait and may be answered together with this one."""
    return [other for other in approval.among.waiting if other.id != approval.id and not other.phrase]


async def _replied(question: Question) -> Reply:
    """What a person answers to one question."""
    _say("\n".join(data(question.question, width=_width())))
    for number, option in enumerate(question.options, 1):
        _say(f"  {number}. {short(option)}")
    _forget_typed()
    while True:
        typed = (await _line(_prompt(question))).strip()
        if not typed:
            return None
        reply = _understood(typed, question)
        if question.misfit(reply) is None:
            return reply
        _say("Type yes or no." if question.kind is Asked.YES_NO else "That is too long.")


def _prompt(question: Question) -> str:
    match question.kind:
        case Asked.YES_NO:
            return "[y]es or [n]o: "
        case Asked.CHOICE:
            numbers = f"1-{len(question.options)}"
            many = f"Some of [{numbers}], with commas" if question.several else f"One of [{numbers}]"
            return f"{many}, or your own words: "
        case Asked.TEXT:
            return "Your answer: "


def _understood(typed: str, question: Question) -> Reply:
    match question.kind:
        case Asked.YES_NO:
            word = typed.casefold()
            return True if word in ("y", "yes") else False if word in ("n", "no") else typed
        case Asked.CHOICE if question.several:
            parts = [part.strip() for part in typed.split(",") if part.strip()]
            chosen = [_chosen(part, question) for part in parts]
            # What names no option is said as a whole, commas and all.
            return tuple(dict.fromkeys(option for option in chosen if option)) if all(chosen) and chosen else (typed,)
        case Asked.CHOICE:
            return _chosen(typed, question) or typed
        case Asked.TEXT:
            return typed


def _chosen(typed: str, question: Question) -> str | None:
    """The option that is meant by its number or its words."""
    numbers = [str(number) for number in range(1, len(question.options) + 1)]
    if typed in numbers:
        return question.options[numbers.index(typed)]
    return next((option for option in question.options if option.casefold() == typed.casefold()), None)


async def ask_for_words(prompt: str) -> str:
    """What a person types; empty at the end of the input."""
    _forget_typed()
    return (await _line(prompt)).strip()


def _say(text: str) -> None:
    click.echo(text, err=True)


def _width() -> int:
    return shutil.get_terminal_size().columns - 1


def _forget_typed() -> None:
    """Drop what was typed before the question could be read: it answers nothing."""
    import termios

    descriptor = os.open(TERMINAL, os.O_RDONLY | os.O_NOCTTY)
    try:
        termios.tcflush(descriptor, termios.TCIFLUSH)
    finally:
        os.close(descriptor)


async def _line(prompt: str) -> str:
    """A line typed at the terminal; empty at its end."""
    click.echo(prompt, err=True, nl=False)
    descriptor = os.open(TERMINAL, os.O_RDONLY | os.O_NOCTTY)
    try:
        return (await read_some(descriptor)).decode(errors="replace")
    finally:
        os.close(descriptor)

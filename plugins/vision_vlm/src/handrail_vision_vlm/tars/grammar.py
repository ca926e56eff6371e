r"""Parser for UI-TARS answers: a thought, and after `Action:` one action or several; version 2 calls functions.

The dialects differ in how they write a place, and are told apart by that alone:

    click(start_box='<|box_start|>(197,525)<|box_end|>')     1.0 and 1.5; servers may leave the marks out
    click(start_box='[197, 525, 240, 560]')                   older, a box
    click(point='<point>197 525</point>')                     Doubao
    <seed:tool_call><function=click><parameter=point><point>197 525</point></parameter></function></seed:tool_call>      2

Servers may give the marks of version 2 a longer name, such as `function_never_used_51bce0`. Its texts are literal. In
the others, text is written as in Python, with \n and \' in it; models forget to escape quotes, so a quote ends a text
only where the grammar continues after it. Source: https://github.com/bytedance/UI-TARS (prompts and the package
`ui-tars`, against which the tests check this), and for version 2 https://github.com/bytedance/UI-TARS-desktop
(multimodal/omni-tars).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from handrail_vision_vlm.place_parser import NUMBERS, UnreadableAnswer

MAX_ANSWER = 100_000
MAX_ACTIONS = 20
# Headings of what comes before the actions.
HEADINGS = re.compile(r"^\s*(?:Thought|Reflection|Action_Summary)\s*:", re.MULTILINE)
ACTION = re.compile(r"Action\s*:")
ACTION_NAME = re.compile(r"\s*([a-z_]+)\(\s*")
CLOSED = re.compile(r"\s*\)")
# A text ends at a quote after which another argument or the end of the action follows.
VALUE = re.compile(
    r"""\s*,?\s*(\w+)\s*=\s*(?:(['"])((?:\\.|[^\\])*?)\2(?=\s*(?:,\s*\w+\s*=\s*['"]|\)\s*(?:\n|$)|\)\s*[a-z_]+\())|([^'",()]*))""",
    re.DOTALL,
)
# Version 2.
CALLS = re.compile(r"<(?:seed:tool_call|function)\w*[=>]")
CALL = re.compile(r"<function\w*=(\w++)>"), re.compile(r"</function\w*+>")
OPENED = re.compile(r"<function\w*=")
PARAMETER = re.compile(r"<parameter\w*=(\w++)>"), re.compile(r"</parameter\w*+>")
THINK_MARK = re.compile(r"</?(?:gui_)?think\w*>")
ESCAPE_CHARS = {"n": "\n", "t": "\t", "r": "\r", "'": "'", '"': '"', "\\": "\\"}
ESCAPE = re.compile(r"\\(.)", re.DOTALL)
PLACES = {"start_box": "start", "point": "start", "start_point": "start", "end_box": "end", "end_point": "end"}


@dataclass(frozen=True, slots=True)
class ModelAction:
    """One action: `verb` as the model names it, texts by name, and the places in its numbers."""

    verb: str
    args: Mapping[str, str]
    start: tuple[float, float] | None
    end: tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class ParsedAnswer:
    """A complete answer: the thought and the actions."""

    thought: str
    moves: tuple[ModelAction, ...]


def parse_tars_answer(answer: str) -> ParsedAnswer:
    """Parse the thought and the actions; raise `UnreadableAnswer` if there is no action or an incomplete one."""
    answer = answer[:MAX_ANSWER].strip()
    calls = CALLS.search(answer)
    # After `Action:` it is a text that somebody wants typed.
    if calls is not None and not ACTION.search(answer, 0, calls.start()):
        thought = THINK_MARK.sub("\n", answer[: calls.start()]).strip()
        return ParsedAnswer(thought, tuple(_parse_calls(answer[calls.start() :])))
    headings = list(ACTION.finditer(answer))
    if not headings:
        raise UnreadableAnswer("there is no `Action:`")
    moves = tuple(_iter_actions(answer[headings[-1].end() :].removesuffix("```").strip()))
    if not moves:
        raise UnreadableAnswer("there is nothing after `Action:`")
    return ParsedAnswer(_extract_thought(answer[: headings[-1].start()]), moves)


def _parse_calls(text: str) -> list[ModelAction]:
    """Parse the function calls of version 2."""
    calls = list(_iter_marked(*CALL, text))
    if len(calls) != len(OPENED.findall(text)) or not calls:
        raise UnreadableAnswer("a call is not whole")
    return [
        _build_action(verb, {name: _trim_outer_lines(value) for name, value in _iter_marked(*PARAMETER, inside)})
        for verb, inside in calls[:MAX_ACTIONS]
    ]


def _iter_marked(opening: re.Pattern[str], closing: re.Pattern[str], text: str) -> Iterator[tuple[str, str]]:
    """Yield the names of opened and closed marks, with the text in between. Stops at a mark that is not closed."""
    opened = opening.search(text)
    while opened is not None and (closed := closing.search(text, opened.end())) is not None:
        yield opened[1], text[opened.end() : closed.start()]
        opened = opening.search(text, closed.end())


def _trim_outer_lines(value: str) -> str:
    r"""Trim the line ends around a value, which may be on lines of its own; a final `\n` requests a new line."""
    if value.startswith("\n"):
        value = value.removeprefix("\n").removesuffix("\n")
    return f"{value[:-2]}\n" if value.endswith("\\n") else value


def _extract_thought(before: str) -> str:
    # The last of several parts: a reflection comes before the summary of what is to be done.
    return HEADINGS.split(before)[-1].strip()


def _iter_actions(text: str) -> Iterator[ModelAction]:
    at = 0
    for _ in range(MAX_ACTIONS):
        named = ACTION_NAME.match(text, at)
        if named is None:
            if text[at:].strip(" \n\t`;"):
                raise UnreadableAnswer("what follows `Action:` is no action")
            return
        at = named.end()
        args: dict[str, str] = {}
        while (value := VALUE.match(text, at)) is not None:
            args[value[1]] = _unescape_text(value[3]) if value[2] else value[4].strip()
            at = value.end()
        closed = CLOSED.match(text, at)
        if closed is None:
            raise UnreadableAnswer(f"the action {named[1]!r} is not whole")
        at = closed.end()
        yield _build_action(named[1], args)


def _build_action(verb: str, args: dict[str, str]) -> ModelAction:
    found = {PLACES[name]: _parse_place(args.pop(name)) for name in [*args] if name in PLACES}
    return ModelAction(verb, args, found.get("start"), found.get("end"))


def _parse_place(text: str) -> tuple[float, float] | None:
    """Return the point, or the center of the box; None if empty."""
    numbers = [float(number) for number in NUMBERS.findall(text)]
    match numbers:
        case []:
            return None
        case [x, y]:
            return x, y
        case [x1, y1, x2, y2]:
            return (x1 + x2) / 2, (y1 + y2) / 2
        case _:
            raise UnreadableAnswer(f"{len(numbers)} numbers are no place")


def _unescape_text(text: str) -> str:
    return ESCAPE.sub(lambda found: ESCAPE_CHARS.get(found[1], found[0]), text)

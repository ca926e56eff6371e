"""Text of a question for the user: what will happen, where the risk is, and why it is asked.

There are three kinds of lines with distinct prefixes, which prevents data from imitating Handrail's own lines:

    Our own words, which hold data only in one line, cut and escaped.
        | data, letter by letter; `:` instead of `|` where one line of it goes on
        ! marks under the risky part of the line above
"""

from __future__ import annotations

import json
import shlex
import textwrap
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from handrail.api.approval import Approval, ApprovalStep
from handrail.api.call import confirmation_wire, format_argument, format_arguments
from handrail.api.verdict import Access
from handrail.net import hostnames, urls
from handrail.sanitize.confusables import find_confusables
from handrail.text import is_invisible

__all__ = ["format_inline_data", "question", "render_data"]

TextSpan = tuple[int, int]

DATA_PREFIX, CONTINUATION_PREFIX, MARK_PREFIX = "    | ", "    : ", "    ! "
DEFAULT_WIDTH = 100
MIN_WIDTH = 20
# Letters and lines of one piece of data that are shown; of the rest, the beginning and the end.
MAX_DATA_CHARS = 4_000
MAX_DATA_LINES = 60
# Letters around a marked place that are shown wherever it is.
MARK_CONTEXT_CHARS = 100
# Letters of data in a line of ours.
MAX_INLINE_CHARS = 300
# More marks on one letter than this are no writing.
MAX_COMBINING_MARKS = 2
SUBJECT_FIELDS = ("command", "url", "diff", "action", "text")

QUESTION_PHRASES: Mapping[str, str] = {
    "exec": "run this command",
    "edit": "change this file",
    "url": "open this address",
    "gui": "act on the desktop",
    "mcp": "call this tool of another server",
    "info": "do this",
}
ACCESS_PHRASES: Mapping[str, str] = {
    "read": "reads",
    "write": "writes",
    "delete": "deletes",
    "execute": "runs",
    "network": "connects to",
    "privilege": "takes more rights:",
    "session": "changes what later commands mean:",
    "input": "acts as your hands on",
    "unknown": "could not be told:",
}


def question(approval: Approval, *, width: int = DEFAULT_WIDTH) -> str:
    """Return the full text of the question, in lines of at most `width` columns."""
    return "\n".join(_render_lines(approval, max(width, MIN_WIDTH)))


def _render_lines(approval: Approval, width: int) -> Iterator[str]:
    shown = confirmation_wire(approval.confirmation)
    kind = shown.pop("kind")
    title = shown.pop("title")
    yield from _wrap_own_text(f"Handrail asks: may {approval.tool} {QUESTION_PHRASES.get(kind, 'do this')}?", width)
    if approval.note:
        yield from _wrap_own_text(f"It is asked again: {format_inline_data(approval.note)}", width)
    if kind == "exec":
        # The command itself says more.
        title = ""
    if title and title not in shown.values():
        yield from render_data(title, width=width)
    spans = [reason.span for reason in approval.verdict.reasons if reason.span is not None]
    for name, value in shown.items():
        if value not in (None, "", {}):
            yield f"{name}:"
            yield from render_data(_format_value(value), width=width, spans=spans if name in SUBJECT_FIELDS else ())
    if kind == "url":
        yield from _render_host(shown["url"], width)
    if kind != "edit":
        yield from _render_other_arguments(approval, kind, title, shown, width)
    yield from _render_steps(approval.steps, str(shown.get("command", "")), width)
    if approval.verdict.reasons:
        yield "It is asked because:"
        for reason in approval.verdict.reasons:
            yield from _wrap_own_text(f"- {format_inline_data(reason.text)}", width, indent="  ")


def _render_other_arguments(
    approval: Approval, kind: str, title: str, shown: Mapping[str, Any], width: int
) -> Iterator[str]:
    """Yield the arguments that the question has not shown yet under their own names: text for the input, a time limit."""
    named = _find_shown_arguments(approval.args, kind, title, shown)
    for name, value in approval.args.items():
        if value is not None and name not in named:
            yield f"{_format_argument_name(name)}:"
            yield from render_data(_format_value(value), width=width)


def _format_argument_name(name: str) -> str:
    """Return the name of an argument for a line of its own: in quotes, on one line, unless it is an identifier."""
    return name if name.isidentifier() and name.isascii() else f'"{format_inline_data(name)}"'


def _find_shown_arguments(args: Mapping[str, Any], kind: str, title: str, shown: Mapping[str, Any]) -> set[str]:
    """Return the names of the arguments that the question shows. That another field has the same value says nothing about an argument."""
    named = {name for name, value in args.items() if name in shown and shown[name] == value}
    if kind == "mcp":
        named |= {name for name, value in args.items() if name in shown["args"] and shown["args"][name] == value}
    if kind == "exec" and shown["cwd"]:
        # The real folder has been shown in the place of the one that is written.
        named.add("cwd")
    if title.endswith(f": {format_arguments(args)}"):
        named |= {name for name, value in args.items() if format_argument(value) == _format_value(value)}
    # The subject of a question may have another name than the argument that it comes from.
    for subject in SUBJECT_FIELDS:
        alike = [name for name, value in args.items() if subject in shown and value == shown[subject]]
        if subject not in args and len(alike) == 1:
            named.update(alike)
    return named


def _render_steps(steps: Sequence[ApprovalStep], command: str, width: int) -> Iterator[str]:
    """Yield each part in decoded words, if these differ from the text or there are several, and its accesses."""
    if not any(step.touches or _is_reworded(step, command) for step in steps):
        return
    yield "That means:"
    for number, step in enumerate(steps, 1):
        yield f"  {number}." if len(steps) > 1 else "  it"
        if step.words and (len(steps) > 1 or _is_reworded(step, command)):
            yield from render_data(_format_words(step.words), width=width)
        for touch in step.touches:
            yield from _wrap_own_text(_describe_access(touch), width, indent="    - ")


def _is_reworded(step: ApprovalStep, command: str) -> bool:
    written = command[slice(*step.span)] if step.span else command
    return bool(step.words) and list(step.words) != written.split() and shlex.join(step.words) != written.strip()


def _format_words(words: tuple[str, ...]) -> str:
    if words == ("?",):
        return "(a part that was not understood)"
    return " ".join(words) if words[0] == ">" or len(words) == 1 else shlex.join(words)


def _describe_access(touch: Access) -> str:
    return f"{ACCESS_PHRASES[touch.kind]} {format_inline_data(touch.what) or 'something that is not known'}"


def _render_host(url: str, width: int) -> Iterator[str]:
    """Yield the host that a URL really refers to, in the characters that are sent."""
    host = find_url_host(url)
    if host is None:
        yield "on the host: (it cannot be told from this address)"
        return
    yield "on the host:"
    yield from render_data(host, width=width, spans=[(0, len(host))])
    if (read := hostnames.decode_punycode(host)) != host:
        yield from _wrap_own_text(f"which is written {format_inline_data(read)}", width)
    if "@" in url.partition("//")[2].partition("/")[0]:
        yield from _wrap_own_text("What stands before the @ is a name that is sent along, not the host.", width)


def find_url_host(url: str) -> str | None:
    """Return the host in a URL as it will be requested, or None if unknown."""
    return urls.evaluate_url(url, scheme="https").host or None


def _format_value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def format_inline_data(text: str, length: int = MAX_INLINE_CHARS) -> str:
    """Data within a line of ours: on one line, escaped, the middle left out when it is long."""
    if len(text) > length:
        text = f"{text[: length // 2]} […] {text[-length // 2 :]}"
    return "".join(shown for _, shown, _ in _iter_cells(text)).replace("\n", "\\n")


def _wrap_own_text(text: str, width: int, indent: str = "") -> Iterator[str]:
    # Letters may take two columns, and what a terminal wraps by itself begins where lines of ours begin.
    columns = width if text.isascii() else width // 2
    hanging = " " * (len(indent) + 2)
    yield from textwrap.wrap(text, columns, initial_indent=indent, subsequent_indent=hanging) or [indent]


# Data, letter by letter


@dataclass(slots=True)
class RenderedRow:
    """One line of data as it is shown. `places` are the places in the text of its columns."""

    shown: str
    places: list[int]
    goes_on: bool = False


def render_data(
    text: str,
    *,
    width: int = DEFAULT_WIDTH,
    spans: Iterable[TextSpan] = (),
    letters: int = MAX_DATA_CHARS,
    lines: int = MAX_DATA_LINES,
) -> Iterator[str]:
    """Yield the text in lines that it cannot escape from, with marks under `spans`.

    Long text is truncated with a notice, but never at a mark.
    """
    marked = [(max(0, start), min(end, len(text))) for start, end in spans if 0 <= start < end and start < len(text)]
    shown = 0
    for start, end in _select_spans(text, marked, letters):
        if start > shown:
            yield f"    [… {start - shown} characters are not shown …]"
        yield from _render_rows(text, start, end, width, marked, lines)
        shown = end
    if not text:
        yield DATA_PREFIX.rstrip()


def _select_spans(text: str, marked: Sequence[TextSpan], letters: int) -> list[TextSpan]:
    """Return the spans of a text to show: its beginning, its end, and the beginning of each marked span."""
    if len(text) <= letters:
        return [(0, len(text))]
    half = letters // 2
    wanted = [(0, half), (len(text) - half, len(text))]
    wanted += [
        (max(0, start - MARK_CONTEXT_CHARS), min(len(text), min(end, start + MARK_CONTEXT_CHARS) + MARK_CONTEXT_CHARS))
        for start, end in marked
    ]
    kept: list[TextSpan] = []
    for start, end in sorted(wanted):
        if kept and start <= kept[-1][1]:
            kept[-1] = (kept[-1][0], max(kept[-1][1], end))
        else:
            kept.append((start, end))
    return kept


def _render_rows(text: str, start: int, end: int, width: int, marked: Sequence[TextSpan], lines: int) -> Iterator[str]:
    rows = list(_split_rows(text[start:end], start, width - len(DATA_PREFIX)))
    marks = [_build_mark_line(row, marked) for row in rows]
    half = lines // 2
    hidden = 0
    for number, (row, mark) in enumerate(zip(rows, marks, strict=True)):
        if half <= number < len(rows) - half and not mark:
            hidden += 1
            continue
        if hidden:
            yield f"    [… {hidden} lines are not shown …]"
            hidden = 0
        yield f"{CONTINUATION_PREFIX if row.goes_on else DATA_PREFIX}{row.shown}".rstrip()
        if mark:
            yield MARK_PREFIX + mark


def _split_rows(text: str, offset: int, width: int) -> Iterator[RenderedRow]:
    row = RenderedRow("", [])
    for place, shown, columns in _iter_cells(text):
        if shown == "\n":
            yield row
            row = RenderedRow("", [])
            continue
        if len(row.places) + columns > width and row.places:
            yield row
            row = RenderedRow("", [], goes_on=True)
        row.shown += shown
        row.places += [offset + place] * columns
    if row.places or not row.goes_on:
        yield row


def _build_mark_line(row: RenderedRow, marked: Sequence[TextSpan]) -> str:
    line = "".join("^" if any(start <= place < end for start, end in marked) else " " for place in row.places)
    return line.rstrip()


def _iter_cells(text: str) -> Iterator[tuple[int, str, int]]:
    """Yield each character's position, its displayed form and its width in columns; newlines are unchanged."""
    strangers = find_confusables(text)
    on_one = 0
    for place, letter in enumerate(text):
        if letter.isascii() and letter.isprintable():
            on_one = 0
            yield place, letter, 1
            continue
        if letter == "\n":
            yield place, letter, 0
            continue
        combining = unicodedata.combining(letter) or unicodedata.category(letter) in ("Mn", "Me")
        on_one = on_one + 1 if combining else 0
        if place in strangers or is_invisible(letter) or on_one > MAX_COMBINING_MARKS or (combining and place == 0):
            shown = letter.encode("unicode_escape").decode("ascii")
            yield place, shown, len(shown)
        else:
            yield place, letter, 0 if combining else 2 if unicodedata.east_asian_width(letter) in "WFA" else 1

"""Reads command lines of cmd.exe as it does: variables first, then carets, quotes and operators, then the words of each command.

Sources: `cmd /?`, `for /?`, `set /?`, and the phases of cmd's parser as they are described at https://stackoverflow.com/a/4095133.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

MAX_DEPTH = 40
# Stands for what is not known: no command line may hold it.
UNKNOWN_MARK = "\ue000"
Span = tuple[int, int]

DELIMITERS = " \t,;=\u00a0\x0b\x0c"
VARIABLE = re.compile(r"%([A-Za-z_][A-Za-z0-9_.()\[\]-]*|\*|\d|~[a-z0-9]+)(:[^%\r\n]*)?%?|%%", re.IGNORECASE)
DELAYED = re.compile(r"!([A-Za-z_][A-Za-z0-9_.()-]*)(:[^!\r\n]*)?!")
SUBSTRING = re.compile(r":~(-?\d+)?(?:,(-?\d+)?)?")
REDIRECT = re.compile(r"(\d?)(>>|>|<)(&\d|&)?")


class UnparsableText(Exception):
    """Text that cmd would not take, or that is not read here; `code` as in reasons."""

    def __init__(self, code: str, text: str, at: int) -> None:
        super().__init__(text)
        self.code = code
        self.at = at


@dataclass(frozen=True, slots=True)
class SourceText:
    """Text with, for each character, its place in the command line and whether a variable of the line itself gave it."""

    text: str
    places: tuple[int, ...]
    given: tuple[bool, ...]

    def __getitem__(self, at: slice) -> SourceText:
        return SourceText(self.text[at], self.places[at], self.given[at])

    @property
    def span(self) -> Span:
        return (self.places[0], self.places[-1] + 1) if self.places else (0, 0)


def create_source_text(text: str) -> SourceText:
    """Return text with its own positions in the command line."""
    return SourceText(text, tuple(range(len(text))), (False,) * len(text))


@dataclass(frozen=True, slots=True)
class CmdRedirection:
    """`> file`; without a target it only joins streams."""

    operator: str
    target: str


@dataclass(frozen=True, slots=True)
class CmdCommand:
    """A simple command: all its text without redirections. `dynamic`: a variable that the line itself sets is in its name."""

    text: str
    redirections: tuple[CmdRedirection, ...]
    span: Span
    dynamic: bool


@dataclass(frozen=True, slots=True)
class CmdSequence:
    """Commands one after the other; `piped` when each feeds the next."""

    items: tuple[CmdItem, ...]
    piped: bool = False


@dataclass(frozen=True, slots=True)
class CmdGroup:
    """`( … )` with redirections."""

    body: CmdSequence
    redirections: tuple[CmdRedirection, ...]


@dataclass(frozen=True, slots=True)
class IfStatement:
    """`if … command else command`; `condition` is all between `if` and the command."""

    condition: str
    bodies: tuple[CmdItem, ...]


@dataclass(frozen=True, slots=True)
class ForStatement:
    """`for options %variable in (over) do body`; the body is text, as its variables are not filled in yet."""

    options: str
    variable: str
    over: str
    body: SourceText


CmdItem = CmdCommand | CmdSequence | CmdGroup | IfStatement | ForStatement
VariableLookup = Callable[[str, str, bool], tuple[str, bool] | None]


def expand_variables(source: SourceText, value: VariableLookup, *, delayed: bool) -> SourceText:
    """Return a line with its variables expanded.

    `value(name, modifier, whole)` returns a text and True if the line itself set it; None leaves the variable as
    written.
    """
    out: list[str] = []
    places: list[int] = []
    given: list[bool] = []
    at = 0
    pattern = DELAYED if delayed else VARIABLE
    for match in pattern.finditer(source.text):
        start, end = match.span()
        if start < at:
            continue
        if not delayed and match[0] == "%%":
            found: tuple[str, bool] | None = ("%", False)
        else:
            found = value(match[1], match[2] or "", delayed or match[0].endswith("%"))
        if found is None:
            continue
        out.append(source.text[at:start])
        places.extend(source.places[at:start])
        given.extend(source.given[at:start])
        text, own = found
        out.append(text)
        places.extend([source.places[start]] * len(text))
        given.extend([own] * len(text))
        at = end
    out.append(source.text[at:])
    places.extend(source.places[at:])
    given.extend(source.given[at:])
    return SourceText("".join(out), tuple(places), tuple(given))


def apply_modifier(value: str, modifier: str) -> str | None:
    """Return a value modified by `:~start,length` or `:old=new`; None if the modifier is not supported."""
    if not modifier:
        return value
    if match := SUBSTRING.fullmatch(modifier):
        start = int(match[1] or 0)
        rest = value[start:] if start >= 0 else value[max(0, len(value) + start) :]
        if match[2] is None:
            return rest
        return rest[: int(match[2])]
    old, equals, new = modifier[1:].partition("=")
    if not equals or not old or old.startswith("*"):
        return None
    return re.sub(re.escape(old), new.replace("\\", r"\\"), value, flags=re.IGNORECASE)


def parse_cmd(source: SourceText) -> CmdSequence:
    """Parse the commands in a text whose variables are expanded. Raises `UnparsableText`."""
    parser = CmdParser(source)
    sequence = parser.sequence()
    if parser.at < len(parser.text):
        raise parser.fail(f"{parser.text[parser.at]!r} stands where a command belongs")
    return sequence


class CmdParser:
    """One pass over a text; `at` is the place that is read next."""

    def __init__(self, source: SourceText) -> None:
        self.source = source
        self.text = source.text
        self.at = 0
        self.depth = 0
        self.open = 0

    def fail(self, text: str, code: str = "syntax") -> UnparsableText:
        return UnparsableText(code, text, self.at)

    def starts(self, *what: str) -> str:
        return next((word for word in what if self.text.startswith(word, self.at)), "")

    def blanks(self, *, lines: bool = False) -> None:
        while self.at < len(self.text):
            char = self.text[self.at]
            if char in DELIMITERS or (lines and char in "\r\n"):
                self.at += 1
            elif char == "^" and self.text[self.at + 1 : self.at + 2] in ("\r", "\n"):
                self.at += 2 if self.text[self.at + 1] == "\n" else 3
            else:
                return

    def sequence(self) -> CmdSequence:
        """Parse commands joined by `&`, `&&`, `||` and line ends."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.fail("it is nested deeper than is analysed", "too_deep")
        items: list[CmdItem] = []
        while True:
            self.blanks(lines=True)
            if self.at >= len(self.text) or (self.open and self.starts(")")):
                break
            items.append(self.pipeline())
            self.blanks()
            operator = self.starts("&&", "||", "&", "\r\n", "\n", "\r")
            if not operator:
                break
            self.at += len(operator)
        self.depth -= 1
        return CmdSequence(tuple(items))

    def pipeline(self) -> CmdItem:
        items = [self.command()]
        self.blanks()
        while self.starts("|") and not self.starts("||"):
            self.at += 1
            self.blanks(lines=True)
            items.append(self.command())
            self.blanks()
        return items[0] if len(items) == 1 else CmdSequence(tuple(items), piped=True)

    def command(self) -> CmdItem:
        self.blanks()
        while self.starts("@"):
            self.at += 1
            self.blanks()
        if self.at >= len(self.text) or self.starts("&", "|", ")"):
            raise self.fail("a command is missing")
        leading = self.redirections()
        if self.starts("("):
            return self.group(leading)
        word = self.word_ahead()
        if word == "if":
            return self.condition()
        if word == "for":
            return self.loop()
        return self.simple(leading)

    def redirections(self) -> list[CmdRedirection]:
        found: list[CmdRedirection] = []
        while (match := REDIRECT.match(self.text, self.at)) and (match[2] != "<" or not match[1] or True):
            found.append(self.redirection(match))
            self.blanks()
        return found

    def redirection(self, match: re.Match[str]) -> CmdRedirection:
        self.at = match.end()
        operator = f"{match[1]}{match[2]}"
        if match[3] and match[3] != "&":
            return CmdRedirection(f"{operator}{match[3]}", "")
        self.blanks()
        start = self.at
        target, _ = self.token(stop=DELIMITERS)
        if not target and self.at == start:
            raise self.fail("the target of a redirection is missing")
        return CmdRedirection(operator, target.replace('"', ""))

    def group(self, leading: list[CmdRedirection]) -> CmdItem:
        self.at += 1
        self.open += 1
        body = self.sequence()
        self.blanks(lines=True)
        if not self.starts(")"):
            raise self.fail("')' is missing")
        self.at += 1
        self.open -= 1
        self.blanks()
        return CmdGroup(body, (*leading, *self.redirections()))

    def word_ahead(self) -> str:
        match = re.compile(r"([A-Za-z^]+)(?=[\s(/,;=]|\Z)").match(self.text, self.at)
        return match[1].replace("^", "").lower() if match else ""

    def token(self, stop: str = "") -> tuple[str, bool]:
        """Text up to an operator or one of `stop`, carets taken out, quotes kept; whether a variable of the line is in it."""
        out: list[str] = []
        own = quoted = False
        while self.at < len(self.text):
            char = self.text[self.at]
            if char in "\r\n":
                break
            if char == '"':
                quoted = not quoted
            elif not quoted:
                if char == "^":
                    self.at += 1
                    if self.text.startswith("\r\n", self.at):
                        self.at += 1
                    if self.at < len(self.text) and self.text[self.at] in "\r\n":
                        self.at += 1
                    if self.at < len(self.text):
                        out.append(self.text[self.at])
                        own = own or self.source.given[self.at]
                        self.at += 1
                    continue
                if char in "&|<>" or (char == ")" and self.open) or char in stop:
                    break
            out.append(char)
            own = own or self.source.given[self.at]
            self.at += 1
        return "".join(out), own

    def simple(self, leading: list[CmdRedirection]) -> CmdItem:
        start = self.at
        out: list[str] = []
        redirections = list(leading)
        own = False
        if re.compile(r"@?rem(?=[\s,;=/]|\Z)", re.IGNORECASE).match(self.text, self.at) or self.starts(":"):
            end = re.compile(r"[\r\n]|\Z").search(self.text, self.at)
            self.at = end.start() if end else len(self.text)
            return CmdCommand("rem", (), self.source[start : self.at].span, dynamic=False)
        while True:
            begin = self.at
            text, given = self.token()
            if not out or not "".join(out).strip():
                own = own or (given and any(self.source.given[begin : begin + len(_match_first_word(text)) + 1]))
            out.append(text)
            match = REDIRECT.match(self.text, self.at)
            if match is None:
                break
            # A digit right before the sign, standing alone, is the number of a stream.
            if (
                out[-1][-1:].isdigit()
                and (len(out[-1]) == 1 or out[-1][-2] in DELIMITERS)
                and self.text[self.at - 1] == out[-1][-1]
            ):
                out[-1] = out[-1][:-1]
            redirections.append(self.redirection(match))
            out.append(" ")
        return CmdCommand("".join(out).strip(), tuple(redirections), self.source[start : self.at].span, own)

    def condition(self) -> CmdItem:
        start: int = self.at
        match = re.compile(
            r"if\s+((/i|not)\s+)*(errorlevel\s+\S+|(exist|defined|cmdextversion)\s+(\"[^\"]*\"|\S)+|(\"[^\"]*\"|[^\s=\"(])+\s*(==|\s(equ|neq|lss|leq|gtr|geq)\s)\s*(\"[^\"]*\"|[^\s\"(])+)",
            re.IGNORECASE,
        ).match(self.text.replace("^", " ") if "^" in self.text[start : start + 4] else self.text, self.at)
        if match is None:
            raise self.fail("the condition of 'if' is not read")
        self.at = match.end()
        condition = self.text[start + 2 : self.at]
        bodies = [self.body()]
        back = self.at
        self.blanks(lines=isinstance(bodies[0], CmdGroup))
        if self.word_ahead() == "else":
            self.at += 4
            bodies.append(self.body())
        else:
            self.at = back
        return IfStatement(condition, tuple(bodies))

    def body(self) -> CmdItem:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.fail("it is nested deeper than is analysed", "too_deep")
        self.blanks()
        body = self.pipeline()
        self.depth -= 1
        return body

    def loop(self) -> CmdItem:
        match = re.compile(
            r"for\s+((?:/[a-z](?:\s+(?:\"[^\"]*\"|[^\s%/(]+))?\s*)*)%{1,2}([^\s%])\s+in\s*\(", re.IGNORECASE
        ).match(self.text, self.at)
        if match is None:
            raise self.fail("'for' is not read")
        self.at = match.end()
        close = self.closing()
        over = self.text[self.at : close]
        self.at = close + 1
        self.blanks(lines=True)
        if self.word_ahead() != "do":
            raise self.fail("'do' is missing")
        self.at += 2
        start = self.at
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.fail("it is nested deeper than is analysed", "too_deep")
        # Read for its end; what it says is read again for each value of the variable.
        self.blanks()
        self.pipeline()
        while operator := self.starts("&&", "||", "&"):
            self.at += len(operator)
            self.pipeline()
            self.blanks()
        self.depth -= 1
        return ForStatement(match[1].strip(), match[2], over, self.source[start : self.at])

    def closing(self) -> int:
        """Return the position of the bracket that ends the list of `for`."""
        quote = ""
        for at in range(self.at, len(self.text)):
            char = self.text[at]
            if quote:
                quote = "" if char == quote else quote
            elif char in "\"'`":
                quote = char
            elif char == ")":
                return at
        raise self.fail("')' is missing")


def _match_first_word(text: str) -> str:
    match = re.match(r"[\s,;=]*[^\s,;=]*", text)
    return match[0] if match else ""


CommandKind = Literal["builtin", "program"]


def split_words(text: str, *, builtin: bool) -> list[str]:
    """Return the words of a command's text, without quotes.

    The builtins of cmd treat more characters as space than programs do.
    """
    if not builtin:
        return split_arguments(text)
    found: list[str] = []
    word: list[str] = []
    quoted = begun = False
    for char in text:
        if char == '"':
            quoted, begun = not quoted, True
        elif not quoted and char in DELIMITERS:
            if begun:
                found.append("".join(word))
                word, begun = [], False
        elif not quoted and char == "/" and begun and (word[:1] == ["/"] or not word):
            found.append("".join(word))
            word = [char]
        else:
            word.append(char)
            begun = True
    return [*found, "".join(word)] if begun else found


def split_arguments(text: str) -> list[str]:
    """Split a text of arguments into words as the C library of Windows does."""
    words: list[str] = []
    word: list[str] = []
    quoted = begun = False
    at = 0
    while at < len(text):
        char = text[at]
        if char == "\\" and (match := re.compile(r'(\\+)"').match(text, at)):
            word.append("\\" * (len(match[1]) // 2))
            if len(match[1]) % 2:
                word.append('"')
                at = match.end()
            else:
                at = match.end() - 1
            begun = True
            continue
        if char == '"':
            quoted, begun = not quoted, True
        elif char in " \t" and not quoted:
            if begun:
                words.append("".join(word))
                word, begun = [], False
        else:
            word.append(char)
            begun = True
        at += 1
    return [*words, "".join(word)] if begun else words

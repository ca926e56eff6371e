"""Scanner of a PowerShell text, for tokens that need no context: space, comments, variables, escapes."""

from __future__ import annotations

import re

from handrail_cli.shell.powershell.nodes import Span, VariableNode

MAX_DEPTH = 60
MAX_NODES = 2_000
# PowerShell takes typographic marks for the plain ones.
SINGLE_QUOTES = "'\u2018\u2019\u201a\u201b"
DOUBLE_QUOTES = '"\u201c\u201d\u201e'
DASHES = "-\u2013\u2014\u2015"
NEWLINES = "\r\n"
ESCAPES = {"0": "\0", "a": "\a", "b": "\b", "e": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
VARIABLE = re.compile(r"\$(?:(\w+):(?!:)(?=\w))?([\w?]+|[\^$])|\$\{([^}]*)\}")
SCOPES = frozenset(("global", "local", "script", "private", "using", "workflow", "variable"))


class UnparsableText(Exception):
    """Text that is not PowerShell, or PowerShell that is not read here; `code` as in reasons."""

    def __init__(self, code: str, text: str, at: int) -> None:
        super().__init__(text)
        self.code = code
        self.at = at


class PowerShellScanner:
    """One pass over a text; `at` is the place that is read next."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.depth: int = 0
        self.nodes = 0

    def fail(self, text: str, code: str = "syntax") -> UnparsableText:
        return UnparsableText(code, text, self.at)

    def look(self, ahead: int = 0) -> str:
        at = self.at + ahead
        return self.text[at] if at < len(self.text) else ""

    def starts(self, what: str) -> bool:
        return self.text.startswith(what, self.at)

    def take(self, what: str) -> bool:
        if self.starts(what):
            self.at += len(what)
            return True
        return False

    def comma_next(self) -> bool:
        """Return True if a comma comes next, after blanks; then skip it and the blanks and line breaks after it."""
        back = self.at
        self.blanks()
        if not self.take(","):
            self.at = back
            return False
        self.blanks(lines=True)
        return True

    def expect(self, what: str) -> None:
        if not self.take(what):
            raise self.fail(f"{what!r} is missing")

    def span(self, start: int) -> Span:
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise self.fail("it has more parts than are analysed", "too_much")
        return start, self.at

    def deeper(self) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.fail("it is nested deeper than is analysed", "too_deep")

    def blanks(self, *, lines: bool = False) -> None:
        """Pass over space and comments, and over ends of lines too where those mean nothing."""
        while self.at < len(self.text):
            char = self.text[self.at]
            if char in NEWLINES:
                if not lines:
                    return
                self.at += 1
            elif char.isspace() or char == "\ufeff":
                self.at += 1
            elif char == "`" and self.look(1) in NEWLINES and self.look(1):
                self.at += 3 if self.look(1) == "\r" and self.look(2) == "\n" else 2
            elif char == "#":
                while self.at < len(self.text) and self.text[self.at] not in NEWLINES:
                    self.at += 1
            elif self.starts("<#"):
                end = self.text.find("#>", self.at + 2)
                if end < 0:
                    raise self.fail("a comment does not end")
                self.at = end + 2
            else:
                return

    def variable(self) -> VariableNode | None:
        match = VARIABLE.match(self.text, self.at)
        if match is None:
            return None
        start = self.at
        self.at = match.end()
        if match[3] is not None:
            drive, colon, rest = match[3].replace("`", "").lower().partition(":")
            name = rest if colon and drive in SCOPES else f"{drive}{colon}{rest}"
        else:
            scope = (match[1] or "").lower()
            name = match[2].lower() if not scope or scope in SCOPES else f"{scope}:{match[2].lower()}"
        return VariableNode(self.span(start), name)

    def single(self) -> str:
        out: list[str] = []
        self.at += 1
        while True:
            char = self.look()
            if not char:
                raise self.fail("a quotation does not end")
            self.at += 1
            if char in SINGLE_QUOTES:
                if not self.look() or self.look() not in SINGLE_QUOTES:
                    return "".join(out)
                self.at += 1
            out.append(char)

    def escape(self) -> str:
        """Return the character that a backtick and the characters after it represent."""
        self.at += 1
        char = self.look()
        if not char:
            raise self.fail("a backtick stands at the end")
        if char == "u" and (match := re.compile(r"u\{([0-9A-Fa-f]{1,6})\}").match(self.text, self.at)):
            self.at = match.end()
            number = int(match[1], 16)
            return chr(number) if number < 0x110000 else "?"
        self.at += 1
        if char == "\r" and self.look() == "\n":
            self.at += 1
        return ESCAPES.get(char, "" if char in NEWLINES else char)

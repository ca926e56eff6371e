"""Quotes, comments, substitutions and redirections as bash sees them, read from the text without the parser.

This is a second opinion. The parser's result counts only if both agree, so a construct that one of them takes for text
cannot hide a command. Only plain forms are known here; the first other form is reported in `strange`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from handrail_cli.shell.bash.arithmetic import find_arithmetic_end

# Letters behind which a comment may begin.
JOINT_CHARS = " \t\n;&|()<>"
# A word that makes of `)` the end of a pattern.
CASE_KEYWORD = re.compile(r"\bcase\s")
# Where something may begin that is not plain text, outside quotes and between double quotes.
SPECIAL_CHARS = re.compile(r"[\\$`\"'#<>()\n]|&>")
DOUBLE_QUOTE_SPECIAL = re.compile(r"[\\$`\"\n]")
# Variables that a here-document may show: neither code nor credentials.
PUBLIC_VARIABLE = re.compile(r"\$(USER|LOGNAME|HOME|PWD|HOSTNAME|LANG)(?!\w)")
PARAMETER_EXPANSION = re.compile(
    r"\$\{(?:#?[A-Za-z_]\w*(?:\[(?:\d+|@|\*)\])?|"
    r"\d+|[A-Za-z_]\w*(?::?-[\w ./:=@%+,-]*|(?::?[+?]|##?|%%?|//?|/[#%]|\^\^?|,,?|:(?=\d))[\w ./:@%+,*?-]*))\}",
    re.ASCII,
)
VARIABLE_NAME = re.compile(r"\$(?:[A-Za-z_]\w*|[0-9$?#!@*-])", re.ASCII)
BACKQUOTED = re.compile(r"`([\w ./:=@%+,|-]*)`", re.ASCII)
ANSI_C_STRING = re.compile(r"\$'(?:[^'\\]|\\.)*'", re.DOTALL)
REDIRECT_OPERATOR = re.compile(r"<<<|>>|>\||>&|<&|<>|&>>|&>|[<>]")
HERE_DOCUMENT = re.compile(
    r"<<-?[ \t]*(?:'(?P<quoted>[\w ]+)'|\"(?P<double>\w+)\"|(?P<bare>\w+))(?=[\s;&|)<>])", re.ASCII
)
SUBSTITUTION_START = re.compile(r"[$<>]\(|`")
MAX_HIDDEN = 12


@dataclass(slots=True)
class LexicalOutline:
    """Places, in characters: spans of quoted text and comments, starts of substitutions and redirections."""

    text: str
    literal: set[tuple[int, int]] = field(default_factory=set[tuple[int, int]])
    double: set[tuple[int, int]] = field(default_factory=set[tuple[int, int]])
    comments: set[tuple[int, int]] = field(default_factory=set[tuple[int, int]])
    opened: set[int] = field(default_factory=set[int])
    redirects: set[int] = field(default_factory=set[int])
    # Of here-documents, behind the line that they begin in.
    bodies: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    strange: str | None = None


def scan_outline(text: str) -> LexicalOutline:
    """Return the outline of a text for bash."""
    found = LexicalOutline(text)
    scan = _OutlineScanner(found)
    while (
        match := (DOUBLE_QUOTE_SPECIAL if scan.open and scan.open[-1][0] == '"' else SPECIAL_CHARS).search(
            text, scan.at
        )
    ) is not None:
        scan.at = match.start()
        scan.step()
    if scan.open or scan.pending is not None:
        scan.strange("something in it is not closed")
    return found


def iter_hidden_code(found: LexicalOutline) -> Iterator[str]:
    """Yield the inner text of every substitution outside single quotes, at any position."""
    text = found.text
    count = 0
    for match in SUBSTITUTION_START.finditer(text):
        if any(start <= match.start() < end for start, end in (*found.literal, *found.comments)):
            continue
        count += 1
        if count > MAX_HIDDEN:
            return
        end = text.find("`", match.end()) if match[0] == "`" else _find_closing(text, match.end())
        yield text[match.end() : end if end >= 0 else len(text)]


def _find_closing(text: str, at: int) -> int:
    depth = 1
    for place in range(at, len(text)):
        depth += (text[place] == "(") - (text[place] == ")")
        if not depth:
            return place
    return -1


class _OutlineScanner:
    """One pass over the text. `open` holds what is not closed yet: quotes with their place, and parentheses."""

    def __init__(self, found: LexicalOutline) -> None:
        self.found = found
        self.text = found.text
        self.at = 0
        self.open: list[tuple[str, int]] = []
        self.pending: tuple[str, bool, bool] | None = None

    def strange(self, what: str) -> None:
        self.found.strange = self.found.strange or what

    def step(self) -> None:
        letter = self.text[self.at]
        if letter == "\\":
            self.escape()
        elif letter == "$":
            self.dollar()
        elif letter == "`":
            self.backquote()
        elif letter == '"':
            self.quote()
        elif self.open and self.open[-1][0] == '"':
            if letter == "\n" and self.pending is not None:
                self.strange("a here-document begins inside quotes")
            self.at += 1
        elif letter == "'":
            self.single()
        elif letter == "#" and (self.at == 0 or self.text[self.at - 1] in JOINT_CHARS):
            end = self.text.find("\n", self.at)
            end = end if end >= 0 else len(self.text)
            self.found.comments.add((self.at, end))
            self.at = end
        elif letter in "<>&":
            self.redirect()
        elif letter in "()\n":
            self.joint(letter)
        else:
            self.at += 1

    def escape(self) -> None:
        joined = self.text.startswith("\n", self.at + 1)
        if self.at + 1 >= len(self.text):
            self.strange("it ends with a backslash")
        if joined and (self.pending is not None or self.at == 0 or self.text[self.at - 1] not in " \t"):
            self.strange("a line is continued in the middle of a word")
        self.at += 2

    def dollar(self) -> None:
        text, at = self.text, self.at
        quoted = bool(self.open) and self.open[-1][0] == '"'
        if text.startswith("$((", at) and (end := find_arithmetic_end(text, at + 1)) >= 0:
            self.at = end
        elif text.startswith("$(", at):
            if text.startswith("$((", at):
                self.strange("it computes with something that is not a number")
            self.enter(2)
        elif match := PARAMETER_EXPANSION.match(text, at) or VARIABLE_NAME.match(text, at):
            self.at = match.end()
        elif text.startswith("$'", at) and not quoted and (match := ANSI_C_STRING.match(text, at)):
            self.found.literal.add(match.span())
            self.at = match.end()
        else:
            if text[at + 1 : at + 2] in ("{", "[") or (not quoted and text[at + 1 : at + 2] in ("'", '"')):
                self.strange("it expands something in a way that is not analysed")
            self.at += 1

    def enter(self, length: int) -> None:
        self.found.opened.add(self.at)
        self.open.append(("(", self.at))
        self.at += length

    def backquote(self) -> None:
        match = BACKQUOTED.match(self.text, self.at)
        if match is None:
            self.strange("backquotes hold more than plain words")
            self.at += 1
            return
        self.found.opened.add(self.at)
        self.at = match.end()

    def quote(self) -> None:
        if self.open and self.open[-1][0] == '"':
            self.found.double.add((self.open.pop()[1], self.at + 1))
        else:
            self.open.append(('"', self.at))
        self.at += 1

    def single(self) -> None:
        end = self.text.find("'", self.at + 1)
        if end < 0:
            self.strange("a quote is not closed")
            self.at += 1
            return
        if self.pending is not None and "\n" in self.text[self.at : end]:
            self.strange("a here-document begins inside quotes")
        self.found.literal.add((self.at, end + 1))
        self.at = end + 1

    def redirect(self) -> None:
        if self.text.startswith(("<(", ">("), self.at):
            self.enter(2)
            return
        if self.text.startswith("<<", self.at) and not self.text.startswith("<<<", self.at):
            self.here()
            return
        match = REDIRECT_OPERATOR.match(self.text, self.at)
        assert match is not None
        self.found.redirects.add(self.at)
        self.at = match.end()

    def here(self) -> None:
        match = HERE_DOCUMENT.match(self.text, self.at)
        self.found.redirects.add(self.at)
        # Inside a substitution only a body in which nothing is expanded: `git commit -m "$(cat <<'E'` and its like.
        nested = bool(self.open) and (self.open[-1][0] != "(" or (match is not None and match["bare"] is not None))
        if match is None or self.pending is not None or nested:
            self.strange("it holds a here-document that is not analysed")
            self.at += 2
            return
        end = match["quoted"] or match["double"] or match["bare"]
        self.pending = end, match["bare"] is not None, self.text.startswith("<<-", self.at)
        self.at = match.end()

    def joint(self, letter: str) -> None:
        before = self.text[self.at - 1] if self.at else ""
        if (
            letter == "("
            and self.text.startswith("((", self.at)
            and (end := find_arithmetic_end(self.text, self.at)) >= 0
        ):
            self.at = end
            return
        self.at += 1
        if letter == "(":
            if before in ("(", "@", "?", "*", "+", "!"):
                self.strange("it holds a group that is not analysed")
            self.open.append(("(", self.at))
        elif letter == ")":
            if self.pending is not None:
                self.strange("a here-document begins in a group that ends before it")
            if self.open:
                self.open.pop()
            elif self.found.strange is None and not CASE_KEYWORD.search(self.text, 0, self.at):
                self.strange("it closes something that is not open")
        elif letter == "\n" and self.pending is not None:
            self.body(*self.pending)
            self.pending = None

    def body(self, end: str, expands: bool, tabs: bool) -> None:
        """Skip a here-document. One in which something may be expanded is not analysed."""
        start = self.at
        while self.at < len(self.text):
            stop = self.text.find("\n", self.at)
            stop = stop if stop >= 0 else len(self.text)
            line = self.text[self.at : stop]
            self.at = min(stop + 1, len(self.text))
            if (line.lstrip("\t") if tabs else line) == end:
                self.found.bodies.append((start, self.at))
                return
            if expands and any(letter in PUBLIC_VARIABLE.sub("", line) for letter in "$`\\"):
                self.strange("a here-document expands something")
        self.strange("a here-document does not end")

"""Reads PowerShell by the rules of its language specification: command and expression mode, quotes, subexpressions, blocks.

What it does not know (classes, workflows, labels) it refuses, with `Unread`; a text is never read in part.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from handrail_cli.windows.powershell_expressions import NUMBER, OPERATOR, SPLAT, UNARY_WORDS, Values
from handrail_cli.windows.powershell_nodes import (
    Assignment,
    Block,
    Branch,
    Cast,
    Constant,
    Definition,
    Expandable,
    Group,
    Index,
    Invoked,
    Leaving,
    Listed,
    Loop,
    Member,
    Node,
    Parameter,
    Pipeline,
    Redirection,
    Using,
    Variable,
    Verbatim,
)
from handrail_cli.windows.powershell_reading import DASHES, DOUBLE, SINGLE, Unread

__all__ = ["Unread", "parse"]

WORD_ENDS = frozenset(" \t\r\n\f\v\u00a0;,|&(){}<>")
PARAMETER = re.compile(rf"[{DASHES}]([A-Za-z_?][^\s:.;,|&(){{}}\[\]<>'\"$`\u2018-\u201e]*)")
REDIRECT = re.compile(r"([1-6*]?)(>>|>)(&[12])?")
ASSIGNMENTS = re.compile(r"(=(?!=)|\+=|-=|\*=|/=|%=|\?\?=)")
KEYWORD = re.compile(r"([A-Za-z]+)(?![\w.:\\/`'\"$-])")
REFUSED_KEYWORDS = frozenset(
    ("class", "enum", "workflow", "configuration", "data", "parallel", "sequence", "inlinescript", "dynamicparam", "interface")
)  # fmt: skip


def parse(text: str) -> Block:
    """The statements of a PowerShell text. Raises `Unread`."""
    return Parser(text).script()


class Parser(Values):
    """Reads statements and commands."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.keywords: dict[str, Callable[[int], Node]] = {
            "if": self.if_,
            "while": self.while_,
            "for": self.for_,
            "foreach": self.foreach,
            "do": self.do,
            "switch": self.switch,
            "function": self.function,
            "filter": self.function,
            "try": self.try_,
            "trap": self.trap,
            "using": self.using,
            **dict.fromkeys(("return", "throw", "exit", "break", "continue"), self.leaving),
        }

    # -- statements

    def script(self) -> Block:
        block = self.statements(0, "")
        if self.at < len(self.text):
            raise self.fail(f"{self.look()!r} stands where a command belongs")
        return block

    def statements(self, start: int, closing: str) -> Block:
        """Statements up to `closing`, which is not taken."""
        self.deeper()
        body: list[Node] = []
        parameters: tuple[tuple[str, Node | None], ...] = ()
        while True:
            self.separators()
            if self.at >= len(self.text) or (closing and self.starts(closing)):
                break
            word = self.keyword()
            if word == "param":
                parameters = self.parameter_block()
                continue
            if word in ("begin", "process", "end", "clean") and self.opens_block(len(word)):
                self.at += len(word)
                self.blanks(lines=True)
                body.extend(self.block().body)
            elif self.starts("["):
                body.extend(self.attribute_or_statement())
            else:
                body.append(self.statement())
            self.blanks()
            if self.at < len(self.text) and not (closing and self.starts(closing)) and self.look() not in ";\r\n":
                raise self.fail(f"{self.look()!r} stands where a command should end")
        self.depth -= 1
        return Block(self.span(start), tuple(body), parameters)

    def separators(self) -> None:
        self.blanks(lines=True)
        while self.take(";"):
            self.blanks(lines=True)

    def opens_block(self, length: int) -> bool:
        return re.compile(r"\s*\{").match(self.text, self.at + length) is not None

    def keyword(self) -> str:
        match = KEYWORD.match(self.text, self.at)
        return match[1].lower() if match else ""

    def attribute_or_statement(self) -> list[Node]:
        """A statement that starts with a type, or an attribute such as `[CmdletBinding()]` before `param`."""
        start = self.at
        name = self.type_name()
        if "(" not in name:
            self.at = start
            return [self.statement()]
        self.blanks(lines=True)
        return []

    def statement(self) -> Node:
        start = self.at
        word = self.keyword()
        if word in REFUSED_KEYWORDS:
            raise self.fail(f"{word!r} is not analysed")
        if word in self.keywords and (word != "foreach" or re.compile(r"\s*\(").match(self.text, self.at + len(word))):
            self.at += len(word)
            return self.keywords[word](start)
        if self.look() == ":" and self.look(1).isalpha():
            raise self.fail("labels are not analysed")
        return self.chain()

    def chain(self) -> Node:
        """Pipelines joined by `&&` and `||`."""
        start = self.at
        first = self.pipeline()
        parts = [first]
        self.blanks()
        while self.take("&&") or self.take("||"):
            self.blanks(lines=True)
            parts.append(self.pipeline())
            self.blanks()
        return first if len(parts) == 1 else Group(self.span(start), tuple(parts))

    def pipeline(self) -> Node:
        start = self.at
        self.deeper()
        first = self.stage()
        if isinstance(first, Assignment):
            self.depth -= 1
            return first
        stages = [first]
        redirections: list[Redirection] = []
        while True:
            self.blanks()
            if (redirection := self.redirection()) is not None:
                redirections.append(redirection)
            elif self.starts("|") and not self.starts("||"):
                self.at += 1
                self.blanks(lines=True)
                stages.append(self.stage())
            else:
                break
        background = self.look() == "&" and not self.starts("&&") and self.take("&")
        self.depth -= 1
        if len(stages) == 1 and not redirections and not background:
            return first
        return Pipeline(self.span(start), tuple(stages), tuple(redirections), background)

    def stage(self) -> Node:
        start = self.at
        char = self.look()
        if char == "&" or (char == "." and re.compile(r"\.[\s'\"$({&]").match(self.text, self.at)):
            self.at += 1
            self.blanks()
            return self.command(start, operator=char)
        if not char or char in "|;)}<>":
            raise self.fail("a command is missing")
        if not self.is_expression():
            return self.command(start)
        value = self.expression()
        self.blanks()
        match = ASSIGNMENTS.match(self.text, self.at)
        if match and isinstance(value, Variable | Member | Index | Cast | Listed):
            self.at = match.end()
            self.blanks(lines=True)
            return Assignment(self.span(start), value, match[1], self.statement())
        return value

    def is_expression(self) -> bool:
        """Whether what starts here is a value and not the name of a command."""
        char = self.look()
        if char in SINGLE or char in DOUBLE or char in "$([{,":
            return True
        if char == "@":
            return True
        if NUMBER.match(self.text, self.at):
            return True
        if char in DASHES:
            match = OPERATOR.match(self.text, self.at)
            return match is None or match[1].lower() in UNARY_WORDS
        return char == "!" or self.starts("++")

    # -- commands

    def command(self, start: int, operator: str = "") -> Node:
        name = self.argument(naming=True)
        if name is None:
            raise self.fail("the name of a command is missing")
        arguments: list[Node] = []
        redirections: list[Redirection] = []
        while True:
            self.blanks()
            if (redirection := self.redirection()) is not None:
                redirections.append(redirection)
                continue
            at = self.at
            if self.starts("--%") and (not self.look(3) or self.look(3).isspace()):
                self.at += 3
                end = re.compile(r"[\r\n|]|\Z").search(self.text, self.at)
                stop = end.start() if end else len(self.text)
                text, self.at = self.text[self.at : stop].strip(), stop
                arguments.append(Verbatim(self.span(at), text))
                continue
            item = self.listed_argument()
            if item is None:
                break
            arguments.append(item)
        return Invoked(self.span(start), name, tuple(arguments), tuple(redirections), operator)

    def listed_argument(self) -> Node | None:
        """One argument, or several between commas."""
        start = self.at
        first = self.argument()
        if first is None or (isinstance(first, Parameter) and first.value is None):
            return first
        items = [first.value] if isinstance(first, Parameter) and first.value is not None else [first]
        while True:
            back = self.at
            self.blanks()
            if not self.take(","):
                self.at = back
                break
            self.blanks(lines=True)
            item = self.argument(listed=True)
            if item is None:
                raise self.fail("something is missing behind a comma")
            items.append(item)
        value = items[0] if len(items) == 1 else Listed(self.span(start), tuple(items))
        return Parameter(self.span(start), first.name, value) if isinstance(first, Parameter) else value

    def argument(self, *, naming: bool = False, listed: bool = False) -> Node | None:
        start = self.at
        char = self.look()
        if not char or char in ";|&)}<>\r\n":
            return None
        if char == ",":
            raise self.fail("a comma stands where a word belongs")
        if not naming and not listed and char in DASHES:
            match = PARAMETER.match(self.text, self.at)
            following = self.text[match.end() : match.end() + 1] if match else ""
            # With a quotation or variable in it, it is a word and no parameter.
            if match and (not following or following not in SINGLE + DOUBLE + "$`"):
                return self.parameter(start, match)
        if char in SINGLE or char in DOUBLE:
            value = self.quoted()
            return value if naming else self.postfix(value, start)
        if char == "(" or self.starts("@(") or self.starts("@{") or self.starts("$("):
            value = self.primary()
            if self.starts("$") or self.look() == "\\":
                return self.generic(start, [value])
            return value if naming and self.look() != "." else self.postfix(value, start)
        if char == "{":
            return self.block()
        if char == "@" and (self.look(1) in SINGLE or self.look(1) in DOUBLE):
            return self.postfix(self.quoted(), start)
        if char == "@" and (match := SPLAT.match(self.text, self.at)):
            self.at = match.end()
            return Variable(self.span(start), match[2].lower(), splat=True)
        if char == "$" and (variable := self.variable()) is not None:
            if not self.look() or self.look() in WORD_ENDS or self.look() in ".[":
                return self.postfix(variable, start)
            return self.generic(start, [variable])
        return self.generic(start, [])

    def parameter(self, start: int, match: re.Match[str]) -> Parameter:
        self.at = match.end()
        name = match[1]
        if not self.take(":"):
            return Parameter(self.span(start), name)
        self.blanks()
        value = self.argument(listed=True)
        if value is None:
            raise self.fail(f"the value of -{name} is missing")
        return Parameter(self.span(start), name, value)

    def generic(self, start: int, parts: list[str | Node]) -> Node:
        """A word with quotes, escapes and variables anywhere in it."""
        text: list[str] = []
        while self.at < len(self.text):
            char = self.text[self.at]
            if char in WORD_ENDS or char.isspace():
                break
            if char == "`":
                text.append(self.escape())
            elif char in SINGLE:
                text.append(self.single())
            elif char in DOUBLE:
                inner = self.double()
                self.add(parts, text, inner)
            elif char == "$" and self.look(1) == "(":
                self.add(parts, text, self.primary())
            elif char == "$" and (variable := self.variable()) is not None:
                self.add(parts, text, variable)
            else:
                text.append(char)
                self.at += 1
        if self.at == start:
            raise self.fail(f"{self.look()!r} stands where a word belongs")
        if text or not parts:
            parts.append("".join(text))
        if len(parts) == 1 and isinstance(parts[0], str):
            return Constant(self.span(start), parts[0], bare=True)
        return Expandable(self.span(start), tuple(parts), bare=True)

    def redirection(self) -> Redirection | None:
        match = REDIRECT.match(self.text, self.at)
        if match is None:
            if self.look() == "<":
                raise self.fail("PowerShell has no '<'")
            return None
        start = self.at
        self.at = match.end()
        if match[3]:
            return Redirection(self.span(start), match[0])
        self.blanks()
        target = self.argument(listed=True)
        if target is None:
            raise self.fail("the target of a redirection is missing")
        return Redirection(self.span(start), match[0], target)

    # -- keywords

    def parenthesis(self) -> Node:
        """`( … )` behind a keyword."""
        self.blanks(lines=True)
        start = self.at
        self.expect("(")
        body = self.statements(self.at, ")").body
        self.expect(")")
        return Group(self.span(start), body)

    def following_block(self) -> Block:
        self.blanks(lines=True)
        return self.block()

    def next_keyword(self, *words: str) -> bool:
        back = self.at
        self.blanks(lines=True)
        word = self.keyword()
        if word in words:
            self.at += len(word)
            return True
        self.at = back
        return False

    def if_(self, start: int) -> Node:
        conditions = [self.parenthesis()]
        bodies = [self.following_block()]
        while self.next_keyword("elseif"):
            conditions.append(self.parenthesis())
            bodies.append(self.following_block())
        if self.next_keyword("else"):
            bodies.append(self.following_block())
        return Branch(self.span(start), tuple(conditions), tuple(bodies))

    def while_(self, start: int) -> Node:
        condition = self.parenthesis()
        body = self.following_block()
        return Loop(self.span(start), (condition,), body)

    def do(self, start: int) -> Node:
        body = self.following_block()
        if not self.next_keyword("while", "until"):
            raise self.fail("'while' is missing")
        return Loop(self.span(start), (self.parenthesis(),), body)

    def for_(self, start: int) -> Node:
        self.blanks(lines=True)
        self.expect("(")
        steps = self.statements(self.at, ")").body
        self.expect(")")
        body = self.following_block()
        return Loop(self.span(start), steps, body)

    def foreach(self, start: int) -> Node:
        self.blanks(lines=True)
        self.expect("(")
        self.blanks(lines=True)
        variable = self.variable()
        if variable is None or not self.next_keyword("in"):
            raise self.fail("'foreach' has no variable")
        self.blanks(lines=True)
        over = Group(self.span(self.at), self.statements(self.at, ")").body)
        self.expect(")")
        body = self.following_block()
        return Loop(self.span(start), (), body, variable.name, over)

    def switch(self, start: int) -> Node:
        self.blanks(lines=True)
        while match := re.compile(r"-(regex|wildcard|exact|casesensitive)\b\s*", re.IGNORECASE).match(
            self.text, self.at
        ):
            self.at = match.end()
        conditions: list[Node] = [self.parenthesis()]
        bodies: list[Block] = []
        self.blanks(lines=True)
        self.expect("{")
        while True:
            self.separators()
            if self.take("}"):
                break
            condition = self.argument(naming=True)
            if condition is None:
                raise self.fail("a case of 'switch' is missing")
            conditions.append(condition)
            bodies.append(self.following_block())
        return Branch(self.span(start), tuple(conditions), tuple(bodies))

    def try_(self, start: int) -> Node:
        bodies = [self.following_block()]
        while self.next_keyword("catch"):
            self.blanks(lines=True)
            while self.look() == "[":
                self.type_name()
                self.blanks(lines=True)
                self.take(",")
                self.blanks(lines=True)
            bodies.append(self.following_block())
        if self.next_keyword("finally"):
            bodies.append(self.following_block())
        return Branch(self.span(start), (), tuple(bodies))

    def trap(self, start: int) -> Node:
        self.blanks(lines=True)
        if self.look() == "[":
            self.type_name()
        return Branch(self.span(start), (), (self.following_block(),))

    def function(self, start: int) -> Node:
        self.blanks()
        match = re.compile(r"(?:(?:global|script|local|private):)?([\w.?%-]+)", re.IGNORECASE).match(self.text, self.at)
        if match is None:
            raise self.fail("the name of a function is missing")
        self.at = match.end()
        self.blanks(lines=True)
        parameters = self.parameter_list() if self.look() == "(" else ()
        block = self.following_block()
        whole = Block(block.span, block.body, (*parameters, *block.parameters))
        return Definition(self.span(start), match[1].lower(), whole)

    def parameter_block(self) -> tuple[tuple[str, Node | None], ...]:
        self.at += len("param")
        self.blanks(lines=True)
        return self.parameter_list()

    def parameter_list(self) -> tuple[tuple[str, Node | None], ...]:
        self.expect("(")
        found: list[tuple[str, Node | None]] = []
        while True:
            self.blanks(lines=True)
            if self.take(")"):
                return tuple(found)
            while self.look() == "[":
                self.type_name()
                self.blanks(lines=True)
            variable = self.variable()
            if variable is None:
                raise self.fail("a parameter has no name")
            self.blanks(lines=True)
            default = None
            if self.take("="):
                self.blanks(lines=True)
                default = self.expression(lists=False)
                self.blanks(lines=True)
            found.append((variable.name, default))
            if not self.take(","):
                self.blanks(lines=True)

    def leaving(self, start: int) -> Node:
        self.blanks()
        if not self.look() or self.look() in ";)}\r\n|&":
            return Leaving(self.span(start), None)
        value = self.chain()
        return Leaving(self.span(start), value)

    def using(self, start: int) -> Node:
        match = re.compile(r"\s+(\w+)\s+([^\r\n;]+)").match(self.text, self.at)
        if match is None:
            raise self.fail("'using' has nothing to use")
        self.at = match.end()
        return Using(self.span(start), match[1].lower(), match[2].strip().strip(SINGLE + DOUBLE))

"""Reads PowerShell by the rules of its language specification: command and expression mode, quotes, subexpressions, blocks.

What it does not know (classes, workflows, labels) it refuses, with `UnparsableText`; a text is never read in part.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from handrail_cli.shell.powershell.commands import CommandParser
from handrail_cli.shell.powershell.nodes import (
    BranchNode,
    FunctionDefinition,
    GroupNode,
    JumpStatement,
    LoopNode,
    ScriptBlock,
    SyntaxNode,
    UsingStatement,
)
from handrail_cli.shell.powershell.scanner import DOUBLE_QUOTES, SINGLE_QUOTES, UnparsableText

__all__ = ["UnparsableText", "parse_powershell"]

KEYWORD = re.compile(r"([A-Za-z]+)(?![\w.:\\/`'\"$-])")
REFUSED_KEYWORDS = frozenset(
    ("class", "enum", "workflow", "configuration", "data", "parallel", "sequence", "inlinescript", "dynamicparam", "interface")
)  # fmt: skip


def parse_powershell(text: str) -> ScriptBlock:
    """Parse the statements of a PowerShell text. Raises `UnparsableText`."""
    return PowerShellParser(text).script()


class PowerShellParser(CommandParser):
    """Reads statements, and the keywords that begin them."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.keywords: dict[str, Callable[[int], SyntaxNode]] = {
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

    def script(self) -> ScriptBlock:
        block = self.statements(0, "")
        if self.at < len(self.text):
            raise self.fail(f"{self.look()!r} stands where a command belongs")
        return block

    def statements(self, start: int, closing: str) -> ScriptBlock:
        """Parse statements up to `closing`, which is not consumed."""
        self.deeper()
        body: list[SyntaxNode] = []
        parameters: tuple[tuple[str, SyntaxNode | None], ...] = ()
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
        return ScriptBlock(self.span(start), tuple(body), parameters)

    def separators(self) -> None:
        self.blanks(lines=True)
        while self.take(";"):
            self.blanks(lines=True)

    def opens_block(self, length: int) -> bool:
        return re.compile(r"\s*\{").match(self.text, self.at + length) is not None

    def keyword(self) -> str:
        match = KEYWORD.match(self.text, self.at)
        return match[1].lower() if match else ""

    def attribute_or_statement(self) -> list[SyntaxNode]:
        """Parse a statement that starts with a type, or an attribute such as `[CmdletBinding()]` before `param`."""
        start = self.at
        name = self.type_name()
        if "(" not in name:
            self.at = start
            return [self.statement()]
        self.blanks(lines=True)
        return []

    def statement(self) -> SyntaxNode:
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

    def chain(self) -> SyntaxNode:
        """Parse pipelines joined by `&&` and `||`."""
        start = self.at
        first = self.pipeline()
        parts = [first]
        self.blanks()
        while self.take("&&") or self.take("||"):
            self.blanks(lines=True)
            parts.append(self.pipeline())
            self.blanks()
        return first if len(parts) == 1 else GroupNode(self.span(start), tuple(parts))

    # -- keywords

    def parenthesis(self) -> SyntaxNode:
        """Parse `( … )` after a keyword."""
        self.blanks(lines=True)
        start = self.at
        self.expect("(")
        body = self.statements(self.at, ")").body
        self.expect(")")
        return GroupNode(self.span(start), body)

    def following_block(self) -> ScriptBlock:
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

    def if_(self, start: int) -> SyntaxNode:
        conditions = [self.parenthesis()]
        bodies = [self.following_block()]
        while self.next_keyword("elseif"):
            conditions.append(self.parenthesis())
            bodies.append(self.following_block())
        if self.next_keyword("else"):
            bodies.append(self.following_block())
        return BranchNode(self.span(start), tuple(conditions), tuple(bodies))

    def while_(self, start: int) -> SyntaxNode:
        condition = self.parenthesis()
        body = self.following_block()
        return LoopNode(self.span(start), (condition,), body)

    def do(self, start: int) -> SyntaxNode:
        body = self.following_block()
        if not self.next_keyword("while", "until"):
            raise self.fail("'while' is missing")
        return LoopNode(self.span(start), (self.parenthesis(),), body)

    def for_(self, start: int) -> SyntaxNode:
        self.blanks(lines=True)
        self.expect("(")
        steps = self.statements(self.at, ")").body
        self.expect(")")
        body = self.following_block()
        return LoopNode(self.span(start), steps, body)

    def foreach(self, start: int) -> SyntaxNode:
        self.blanks(lines=True)
        self.expect("(")
        self.blanks(lines=True)
        variable = self.variable()
        if variable is None or not self.next_keyword("in"):
            raise self.fail("'foreach' has no variable")
        self.blanks(lines=True)
        over = GroupNode(self.span(self.at), self.statements(self.at, ")").body)
        self.expect(")")
        body = self.following_block()
        return LoopNode(self.span(start), (), body, variable.name, over)

    def switch(self, start: int) -> SyntaxNode:
        self.blanks(lines=True)
        while match := re.compile(r"-(regex|wildcard|exact|casesensitive)\b\s*", re.IGNORECASE).match(
            self.text, self.at
        ):
            self.at = match.end()
        conditions: list[SyntaxNode] = [self.parenthesis()]
        bodies: list[ScriptBlock] = []
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
        return BranchNode(self.span(start), tuple(conditions), tuple(bodies))

    def try_(self, start: int) -> SyntaxNode:
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
        return BranchNode(self.span(start), (), tuple(bodies))

    def trap(self, start: int) -> SyntaxNode:
        self.blanks(lines=True)
        if self.look() == "[":
            self.type_name()
        return BranchNode(self.span(start), (), (self.following_block(),))

    def function(self, start: int) -> SyntaxNode:
        self.blanks()
        match = re.compile(r"(?:(?:global|script|local|private):)?([\w.?%-]+)", re.IGNORECASE).match(self.text, self.at)
        if match is None:
            raise self.fail("the name of a function is missing")
        self.at = match.end()
        self.blanks(lines=True)
        parameters = self.parameter_list() if self.look() == "(" else ()
        block = self.following_block()
        whole = ScriptBlock(block.span, block.body, (*parameters, *block.parameters))
        return FunctionDefinition(self.span(start), match[1].lower(), whole)

    def parameter_block(self) -> tuple[tuple[str, SyntaxNode | None], ...]:
        self.at += len("param")
        self.blanks(lines=True)
        return self.parameter_list()

    def parameter_list(self) -> tuple[tuple[str, SyntaxNode | None], ...]:
        self.expect("(")
        found: list[tuple[str, SyntaxNode | None]] = []
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

    def leaving(self, start: int) -> SyntaxNode:
        self.blanks()
        if not self.look() or self.look() in ";)}\r\n|&":
            return JumpStatement(self.span(start), None)
        value = self.chain()
        return JumpStatement(self.span(start), value)

    def using(self, start: int) -> SyntaxNode:
        match = re.compile(r"\s+(\w+)\s+([^\r\n;]+)").match(self.text, self.at)
        if match is None:
            raise self.fail("'using' has nothing to use")
        self.at = match.end()
        return UsingStatement(self.span(start), match[1].lower(), match[2].strip().strip(SINGLE_QUOTES + DOUBLE_QUOTES))

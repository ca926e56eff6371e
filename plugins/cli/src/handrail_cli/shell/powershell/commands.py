"""Reads the commands of PowerShell: pipelines, what they begin with, the arguments and redirections of each."""

from __future__ import annotations

import re
from abc import ABC

from handrail_cli.shell.powershell.expressions import NUMBER, OPERATOR, SPLAT, UNARY_WORDS, ExpressionParser
from handrail_cli.shell.powershell.nodes import (
    ArrayLiteral,
    AssignmentNode,
    CastNode,
    CommandNode,
    CommandParameter,
    ConstantNode,
    ExpandableString,
    IndexAccess,
    MemberAccess,
    PipelineNode,
    RedirectionNode,
    SyntaxNode,
    VariableNode,
    VerbatimArguments,
)
from handrail_cli.shell.powershell.scanner import DASHES, DOUBLE_QUOTES, SINGLE_QUOTES

WORD_ENDS = frozenset(" \t\r\n\f\v\u00a0;,|&(){}<>")
PARAMETER = re.compile(rf"[{DASHES}]([A-Za-z_?][^\s:.;,|&(){{}}\[\]<>'\"$`\u2018-\u201e]*)")
REDIRECT = re.compile(r"([1-6*]?)(>>|>)(&[12])?")
ASSIGNMENTS = re.compile(r"(=(?!=)|\+=|-=|\*=|/=|%=|\?\?=)")


class CommandParser(ExpressionParser, ABC):
    """Reads pipelines and commands. Statements are read by who inherits."""

    def pipeline(self) -> SyntaxNode:
        start = self.at
        self.deeper()
        first = self.stage()
        if isinstance(first, AssignmentNode):
            self.depth -= 1
            return first
        stages = [first]
        redirections: list[RedirectionNode] = []
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
        return PipelineNode(self.span(start), tuple(stages), tuple(redirections), background)

    def stage(self) -> SyntaxNode:
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
        if match and isinstance(value, VariableNode | MemberAccess | IndexAccess | CastNode | ArrayLiteral):
            self.at = match.end()
            self.blanks(lines=True)
            return AssignmentNode(self.span(start), value, match[1], self.statement())
        return value

    def is_expression(self) -> bool:
        """Return True if the next token starts a value rather than the name of a command."""
        char = self.look()
        if char in SINGLE_QUOTES or char in DOUBLE_QUOTES or char in "$([{,":
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

    def command(self, start: int, operator: str = "") -> SyntaxNode:
        name = self.argument(naming=True)
        if name is None:
            raise self.fail("the name of a command is missing")
        arguments: list[SyntaxNode] = []
        redirections: list[RedirectionNode] = []
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
                arguments.append(VerbatimArguments(self.span(at), text))
                continue
            item = self.listed_argument()
            if item is None:
                break
            arguments.append(item)
        return CommandNode(self.span(start), name, tuple(arguments), tuple(redirections), operator)

    def listed_argument(self) -> SyntaxNode | None:
        """Parse one argument, or several separated by commas."""
        start = self.at
        first = self.argument()
        if first is None or (isinstance(first, CommandParameter) and first.value is None):
            return first
        items = [first.value] if isinstance(first, CommandParameter) and first.value is not None else [first]
        while self.comma_next():
            item = self.argument(listed=True)
            if item is None:
                raise self.fail("something is missing behind a comma")
            items.append(item)
        value = items[0] if len(items) == 1 else ArrayLiteral(self.span(start), tuple(items))
        return CommandParameter(self.span(start), first.name, value) if isinstance(first, CommandParameter) else value

    def argument(self, *, naming: bool = False, listed: bool = False) -> SyntaxNode | None:
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
            if match and (not following or following not in SINGLE_QUOTES + DOUBLE_QUOTES + "$`"):
                return self.parameter(start, match)
        if char in SINGLE_QUOTES or char in DOUBLE_QUOTES:
            value = self.quoted()
            return value if naming else self.postfix(value, start)
        if char == "(" or self.starts("@(") or self.starts("@{") or self.starts("$("):
            value = self.primary()
            if self.starts("$") or self.look() == "\\":
                return self.generic(start, [value])
            return value if naming and self.look() != "." else self.postfix(value, start)
        if char == "{":
            return self.block()
        if char == "@" and (self.look(1) in SINGLE_QUOTES or self.look(1) in DOUBLE_QUOTES):
            return self.postfix(self.quoted(), start)
        if char == "@" and (match := SPLAT.match(self.text, self.at)):
            self.at = match.end()
            return VariableNode(self.span(start), match[2].lower(), splat=True)
        if char == "$" and (variable := self.variable()) is not None:
            if not self.look() or self.look() in WORD_ENDS or self.look() in ".[":
                return self.postfix(variable, start)
            return self.generic(start, [variable])
        return self.generic(start, [])

    def parameter(self, start: int, match: re.Match[str]) -> CommandParameter:
        self.at = match.end()
        name = match[1]
        if not self.take(":"):
            return CommandParameter(self.span(start), name)
        self.blanks()
        value = self.argument(listed=True)
        if value is None:
            raise self.fail(f"the value of -{name} is missing")
        return CommandParameter(self.span(start), name, value)

    def generic(self, start: int, parts: list[str | SyntaxNode]) -> SyntaxNode:
        """Parse a word with quotes, escapes and variables at any position."""
        text: list[str] = []
        while self.at < len(self.text):
            char = self.text[self.at]
            if char in WORD_ENDS or char.isspace():
                break
            if char == "`":
                text.append(self.escape())
            elif char in SINGLE_QUOTES:
                text.append(self.single())
            elif char in DOUBLE_QUOTES:
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
            return ConstantNode(self.span(start), parts[0], bare=True)
        return ExpandableString(self.span(start), tuple(parts), bare=True)

    def redirection(self) -> RedirectionNode | None:
        match = REDIRECT.match(self.text, self.at)
        if match is None:
            if self.look() == "<":
                raise self.fail("PowerShell has no '<'")
            return None
        start = self.at
        self.at = match.end()
        if match[3]:
            return RedirectionNode(self.span(start), match[0])
        self.blanks()
        target = self.argument(listed=True)
        if target is None:
            raise self.fail("the target of a redirection is missing")
        return RedirectionNode(self.span(start), match[0], target)

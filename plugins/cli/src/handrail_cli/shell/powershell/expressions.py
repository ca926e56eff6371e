"""Values in PowerShell: operators, members, quoted texts with variables in them, blocks and tables."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod

from handrail_cli.shell.powershell.nodes import (
    ArrayLiteral,
    BinaryOperation,
    CastNode,
    ConstantNode,
    ExpandableString,
    GroupNode,
    HashTable,
    IndexAccess,
    MemberAccess,
    ScriptBlock,
    SyntaxNode,
    TypeLiteral,
    UnaryOperation,
    VariableNode,
)
from handrail_cli.shell.powershell.scanner import DASHES, DOUBLE_QUOTES, NEWLINES, SINGLE_QUOTES, PowerShellScanner

SPLAT = re.compile(r"@(?:(\w+):)?(\w+)")
NUMBER = re.compile(
    r"(?:0x[0-9a-f]+|\d+(?:\.\d+)?(?:e[+-]?\d+)?|\.\d+)(?:[ul]{0,2}|d)(?:[kmgtp]b)?(?![\w\\/:$@-])", re.IGNORECASE
)
OPERATOR = re.compile(rf"[{DASHES}]([A-Za-z]+)")
COMPARISONS = frozenset(
    f"{prefix}{name}"
    for prefix in ("", "c", "i")
    for name in (
        "eq", "ne", "gt", "ge", "lt", "le", "like", "notlike", "match", "notmatch", "replace", "split", "contains",
        "notcontains", "in", "notin",
    )
) | {"is", "isnot", "as", "join"}  # fmt: skip
LEVELS: tuple[frozenset[str], ...] = (
    frozenset(("and", "or", "xor")),
    frozenset(("band", "bor", "bxor")),
    COMPARISONS,
    frozenset(("+", "-", "shl", "shr")),
    frozenset(("*", "/", "%")),
    frozenset(("f",)),
    frozenset(("..",)),
)
UNARY_WORDS = frozenset(("not", "bnot", "split", "csplit", "isplit", "join"))
MEMBER_NAME = re.compile(r"\w+")


class ExpressionParser(PowerShellScanner, ABC):
    """Parser of values; the statements inside them are left to the complete parser."""

    @abstractmethod
    def statements(self, start: int, closing: str) -> ScriptBlock:
        """Parse statements up to `closing`, which is not consumed."""

    @abstractmethod
    def statement(self) -> SyntaxNode:
        """Parse one statement."""

    @abstractmethod
    def separators(self) -> None:
        """Skip the separators between statements."""

    @staticmethod
    def add(parts: list[str | SyntaxNode], text: list[str], node: SyntaxNode) -> None:
        if isinstance(node, ConstantNode):
            text.append(node.text)
            return
        if text:
            parts.append("".join(text))
            text.clear()
        parts.extend(node.parts if isinstance(node, ExpandableString) else (node,))

    def expression(self, level: int = 0, *, lists: bool = True) -> SyntaxNode:
        """Parse operators of `level` and those that bind tighter; without `lists`, a comma ends the expression."""
        start = self.at
        self.deeper()
        left = self.operand(level + 1, lists=lists)
        while True:
            back = self.at
            self.blanks()
            operator = self.operator(LEVELS[level])
            if operator is None:
                if level == 0 and (other := self.conditional(left, start)) is not None:
                    left = other
                    continue
                self.at = back
                break
            self.blanks(lines=True)
            left = BinaryOperation(self.span(start), operator, left, self.operand(level + 1, lists=lists))
        self.depth -= 1
        return left

    def operand(self, level: int, *, lists: bool) -> SyntaxNode:
        if level < len(LEVELS):
            return self.expression(level, lists=lists)
        return self.comma() if lists else self.unary()

    def conditional(self, left: SyntaxNode, start: int) -> SyntaxNode | None:
        """Parse `a ? b : c` and `a ?? b`."""
        if self.starts("??") and not self.starts("??="):
            self.at += 2
            self.blanks(lines=True)
            return BinaryOperation(self.span(start), "??", left, self.expression(1))
        if self.look() == "?" and self.look(1).isspace():
            self.at += 1
            self.blanks(lines=True)
            yes = self.expression(1)
            self.blanks(lines=True)
            self.expect(":")
            self.blanks(lines=True)
            no = self.expression(1)
            return BinaryOperation(self.span(start), "?", left, ArrayLiteral(self.span(start), (yes, no)))
        return None

    def operator(self, known: frozenset[str]) -> str | None:
        char = self.look()
        if char in DASHES and char:
            if match := OPERATOR.match(self.text, self.at):
                name = match[1].lower()
                if name in known:
                    self.at = match.end()
                    return name
                return None
            if "-" in known and self.look(1) != "=" and not self.starts("--"):
                self.at += 1
                return "-"
            return None
        if self.starts("..") and ".." in known:
            self.at += 2
            return ".."
        if char and char in "+*/%" and char in known and self.look(1) != "=" and not self.starts("++"):
            self.at += 1
            return char
        return None

    def comma(self) -> SyntaxNode:
        start = self.at
        items = [] if self.look() == "," else [self.unary()]
        while self.comma_next():
            items.append(self.unary())
        return items[0] if len(items) == 1 and self.text[start] != "," else ArrayLiteral(self.span(start), tuple(items))

    def unary(self) -> SyntaxNode:
        start = self.at
        self.deeper()
        try:
            if self.take("++") or (self.starts("--") and self.take("--")):
                return UnaryOperation(self.span(start), "++", self.unary())
            if self.look() in ("!", "+"):
                operator = self.look()
                self.at += 1
                self.blanks()
                return UnaryOperation(self.span(start), operator, self.unary())
            if self.look() and self.look() in DASHES:
                match = OPERATOR.match(self.text, self.at)
                if match and match[1].lower() in UNARY_WORDS:
                    self.at = match.end()
                    self.blanks()
                    return UnaryOperation(self.span(start), match[1].lower(), self.unary())
                if match is None:
                    self.at += 1
                    self.blanks()
                    return UnaryOperation(self.span(start), "-", self.unary())
            return self.postfix(self.primary(), start)
        finally:
            self.depth -= 1

    def primary(self) -> SyntaxNode:
        start = self.at
        char = self.look()
        if (
            char in SINGLE_QUOTES
            or char in DOUBLE_QUOTES
            or (char == "@" and (self.look(1) in SINGLE_QUOTES or self.look(1) in DOUBLE_QUOTES))
        ):
            return self.quoted()
        if char == "(" or self.starts("$(") or self.starts("@("):
            self.at += 1 if char == "(" else 2
            body = self.statements(self.at, ")").body
            self.expect(")")
            return GroupNode(self.span(start), body, array=char == "@")
        if self.starts("@{"):
            return self.table()
        if char == "{":
            return self.block()
        if char == "[":
            return self.typed(start)
        if char == "$" and (variable := self.variable()) is not None:
            return variable
        if char == "@" and (match := SPLAT.match(self.text, self.at)):
            self.at = match.end()
            return VariableNode(self.span(start), match[2].lower(), splat=True)
        if match := NUMBER.match(self.text, self.at):
            self.at = match.end()
            return ConstantNode(self.span(start), match[0])
        raise self.fail(f"{char!r} stands where a value belongs")

    def typed(self, start: int) -> SyntaxNode:
        name = self.type_name()
        back = self.at
        self.blanks()
        if self.starts("::") or not self.begins_value():
            self.at = back
            return TypeLiteral(self.span(start), name)
        value = self.unary()
        return value if "(" in name else CastNode(self.span(start), name, value)

    def begins_value(self) -> bool:
        char = self.look()
        if not char:
            return False
        if char in DASHES:
            return OPERATOR.match(self.text, self.at) is None
        return char in SINGLE_QUOTES + DOUBLE_QUOTES + "$([{@" or char.isdigit()

    def type_name(self) -> str:
        """Return the contents of `[ … ]`, in lower case, without spaces and `system.`."""
        self.expect("[")
        start, depth, parens = self.at, 1, False
        while depth:
            char = self.look()
            if not char or (char in NEWLINES and not parens):
                raise self.fail("a type does not end")
            if char in SINGLE_QUOTES or char in DOUBLE_QUOTES:
                self.quoted()
                continue
            if char == "{":
                self.block()
                continue
            if char in "`|;" or self.starts("$("):
                raise self.fail("a type holds what no type does")
            parens = parens or char == "("
            depth += {"[": 1, "]": -1}.get(char, 0)
            self.at += 1
        name = re.sub(r"\s", "", self.text[start : self.at - 1]).lower()
        if parens and "{" in name:
            raise self.fail("code in an attribute is not analysed")
        return name.removeprefix("system.")

    def postfix(self, value: SyntaxNode, start: int) -> SyntaxNode:
        while True:
            static = self.starts("::")
            if static or self.starts("?."):
                self.at += 2
            elif self.look() == "." and (
                self.look(1).isalpha() or self.look(1) in ("_", "(", "$", *SINGLE_QUOTES, *DOUBLE_QUOTES)
            ):
                self.at += 1
            elif self.look() == "[" or self.starts("?["):
                self.at += 1 if self.look() == "[" else 2
                self.blanks(lines=True)
                index = self.expression()
                self.blanks(lines=True)
                self.expect("]")
                value = IndexAccess(self.span(start), value, index)
                continue
            elif self.starts("++") or (self.starts("--") and not self.starts("--%")):
                self.at += 2
                value = UnaryOperation(self.span(start), "++", value)
                continue
            else:
                return value
            name = self.member_name()
            arguments = self.method_arguments()
            value = MemberAccess(self.span(start), value, name, static, arguments)

    def member_name(self) -> SyntaxNode:
        start = self.at
        self.blanks()
        if match := MEMBER_NAME.match(self.text, self.at):
            self.at = match.end()
            return ConstantNode(self.span(start), match[0], bare=True)
        return self.primary()

    def method_arguments(self) -> tuple[SyntaxNode, ...] | None:
        if not self.take("("):
            return None
        arguments: list[SyntaxNode] = []
        self.blanks(lines=True)
        while not self.take(")"):
            arguments.append(self.expression(lists=False))
            self.blanks(lines=True)
            if not self.take(","):
                self.expect(")")
                break
            self.blanks(lines=True)
        return tuple(arguments)

    # -- texts, blocks, tables

    def quoted(self) -> SyntaxNode:
        start = self.at
        if self.take("@"):
            return self.here(start)
        if self.look() in SINGLE_QUOTES:
            return ConstantNode(self.span(start), self.single())
        return self.double()

    def double(self, closing: str | None = None) -> SyntaxNode:
        """Parse an expandable string from its opening mark, or a here-string from its first line to `closing`."""
        start = self.at
        parts: list[str | SyntaxNode] = []
        text: list[str] = []
        if closing is None:
            self.at += 1
        while True:
            char = self.look()
            if not char:
                raise self.fail("a quotation does not end")
            if closing is not None and char in NEWLINES and (end := re.compile(closing).match(self.text, self.at)):
                self.at = end.end()
                break
            if closing is None and char in DOUBLE_QUOTES:
                self.at += 1
                if not self.look() or self.look() not in DOUBLE_QUOTES:
                    break
                self.at += 1
                text.append('"')
            elif char == "`":
                text.append(self.escape())
            elif char == "$" and self.look(1) == "(":
                self.add(parts, text, self.primary())
            elif char == "$" and (variable := self.variable()) is not None:
                self.add(parts, text, variable)
            else:
                text.append(char)
                self.at += 1
        if text or not parts:
            parts.append("".join(text))
        if len(parts) == 1 and isinstance(parts[0], str):
            return ConstantNode(self.span(start), parts[0])
        return ExpandableString(self.span(start), tuple(parts))

    def here(self, start: int) -> SyntaxNode:
        mark = SINGLE_QUOTES if self.look() in SINGLE_QUOTES else DOUBLE_QUOTES
        header = re.compile(r".[^\S\r\n]*\r?\n").match(self.text, self.at)
        if header is None:
            raise self.fail("a here-text starts on its own line")
        # The line break before the closing mark is not part of the text; an empty text has only that of the header.
        self.at = header.end() - (2 if self.text[header.end() - 2] == "\r" else 1)
        closing = rf"\r?\n[{mark}]@"
        if mark == DOUBLE_QUOTES:
            inner = self.double(closing)
            return _strip_first_line(inner)
        end = re.compile(closing).search(self.text, self.at)
        if end is None:
            raise self.fail("a here-text does not end")
        text, self.at = self.text[self.at : end.start()], end.end()
        return ConstantNode(self.span(start), text.lstrip("\r").removeprefix("\n"))

    def block(self) -> ScriptBlock:
        start = self.at
        self.expect("{")
        block = self.statements(start, "}")
        self.expect("}")
        return ScriptBlock(self.span(start), block.body, block.parameters)

    def table(self) -> HashTable:
        start = self.at
        self.expect("@{")
        self.deeper()
        pairs: list[tuple[SyntaxNode, SyntaxNode]] = []
        while True:
            self.separators()
            if self.take("}"):
                break
            key = self.table_key()
            self.blanks(lines=True)
            self.expect("=")
            self.blanks(lines=True)
            pairs.append((key, self.statement()))
            self.blanks()
            if self.look() and self.look() not in ";}\r\n":
                raise self.fail("a table's entry does not end")
        self.depth -= 1
        return HashTable(self.span(start), tuple(pairs))

    def table_key(self) -> SyntaxNode:
        start = self.at
        if match := re.compile(r"[A-Za-z_][\w.-]*").match(self.text, self.at):
            self.at = match.end()
            return ConstantNode(self.span(start), match[0])
        return self.unary()


def _strip_first_line(node: SyntaxNode) -> SyntaxNode:
    """Remove the line break after the opening mark of a here-string, which is not part of it."""
    if isinstance(node, ConstantNode):
        return ConstantNode(node.span, node.text.lstrip("\r").removeprefix("\n"))
    if isinstance(node, ExpandableString) and node.parts and isinstance(node.parts[0], str):
        return ExpandableString(node.span, (node.parts[0].lstrip("\r").removeprefix("\n"), *node.parts[1:]))
    return node

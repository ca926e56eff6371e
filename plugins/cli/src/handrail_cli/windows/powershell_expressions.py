"""Values in PowerShell: operators, members, quoted texts with variables in them, blocks and tables."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod

from handrail_cli.windows.powershell_nodes import (
    Binary,
    Block,
    Cast,
    Constant,
    Expandable,
    Group,
    Index,
    Kind,
    Listed,
    Member,
    Node,
    Table,
    Unary,
    Variable,
)
from handrail_cli.windows.powershell_reading import DASHES, DOUBLE, NEWLINES, SINGLE, Reading

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


class Values(Reading, ABC):
    """Reads values; statements inside them are left to the whole."""

    @abstractmethod
    def statements(self, start: int, closing: str) -> Block:
        """Statements up to `closing`, which is not taken."""

    @abstractmethod
    def statement(self) -> Node:
        """One statement."""

    @abstractmethod
    def separators(self) -> None:
        """Pass over what stands between statements."""

    @staticmethod
    def add(parts: list[str | Node], text: list[str], node: Node) -> None:
        if isinstance(node, Constant):
            text.append(node.text)
            return
        if text:
            parts.append("".join(text))
            text.clear()
        parts.extend(node.parts if isinstance(node, Expandable) else (node,))

    def expression(self, level: int = 0, *, lists: bool = True) -> Node:
        """Operators of `level` and those that bind tighter; without `lists` a comma ends it."""
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
            left = Binary(self.span(start), operator, left, self.operand(level + 1, lists=lists))
        self.depth -= 1
        return left

    def operand(self, level: int, *, lists: bool) -> Node:
        if level < len(LEVELS):
            return self.expression(level, lists=lists)
        return self.comma() if lists else self.unary()

    def conditional(self, left: Node, start: int) -> Node | None:
        """`a ? b : c` and `a ?? b`."""
        if self.starts("??") and not self.starts("??="):
            self.at += 2
            self.blanks(lines=True)
            return Binary(self.span(start), "??", left, self.expression(1))
        if self.look() == "?" and self.look(1).isspace():
            self.at += 1
            self.blanks(lines=True)
            yes = self.expression(1)
            self.blanks(lines=True)
            self.expect(":")
            self.blanks(lines=True)
            no = self.expression(1)
            return Binary(self.span(start), "?", left, Listed(self.span(start), (yes, no)))
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

    def comma(self) -> Node:
        start = self.at
        items = [] if self.look() == "," else [self.unary()]
        while self.comma_next():
            items.append(self.unary())
        return items[0] if len(items) == 1 and self.text[start] != "," else Listed(self.span(start), tuple(items))

    def unary(self) -> Node:
        start = self.at
        self.deeper()
        try:
            if self.take("++") or (self.starts("--") and self.take("--")):
                return Unary(self.span(start), "++", self.unary())
            if self.look() in ("!", "+"):
                operator = self.look()
                self.at += 1
                self.blanks()
                return Unary(self.span(start), operator, self.unary())
            if self.look() and self.look() in DASHES:
                match = OPERATOR.match(self.text, self.at)
                if match and match[1].lower() in UNARY_WORDS:
                    self.at = match.end()
                    self.blanks()
                    return Unary(self.span(start), match[1].lower(), self.unary())
                if match is None:
                    self.at += 1
                    self.blanks()
                    return Unary(self.span(start), "-", self.unary())
            return self.postfix(self.primary(), start)
        finally:
            self.depth -= 1

    def primary(self) -> Node:
        start = self.at
        char = self.look()
        if char in SINGLE or char in DOUBLE or (char == "@" and (self.look(1) in SINGLE or self.look(1) in DOUBLE)):
            return self.quoted()
        if char == "(" or self.starts("$(") or self.starts("@("):
            self.at += 1 if char == "(" else 2
            body = self.statements(self.at, ")").body
            self.expect(")")
            return Group(self.span(start), body, array=char == "@")
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
            return Variable(self.span(start), match[2].lower(), splat=True)
        if match := NUMBER.match(self.text, self.at):
            self.at = match.end()
            return Constant(self.span(start), match[0])
        raise self.fail(f"{char!r} stands where a value belongs")

    def typed(self, start: int) -> Node:
        name = self.type_name()
        back = self.at
        self.blanks()
        if self.starts("::") or not self.begins_value():
            self.at = back
            return Kind(self.span(start), name)
        value = self.unary()
        return value if "(" in name else Cast(self.span(start), name, value)

    def begins_value(self) -> bool:
        char = self.look()
        if not char:
            return False
        if char in DASHES:
            return OPERATOR.match(self.text, self.at) is None
        return char in SINGLE + DOUBLE + "$([{@" or char.isdigit()

    def type_name(self) -> str:
        """What stands in `[ … ]`, in lower case, without spaces and `system.`."""
        self.expect("[")
        start, depth, parens = self.at, 1, False
        while depth:
            char = self.look()
            if not char or (char in NEWLINES and not parens):
                raise self.fail("a type does not end")
            if char in SINGLE or char in DOUBLE:
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

    def postfix(self, value: Node, start: int) -> Node:
        while True:
            static = self.starts("::")
            if static or self.starts("?."):
                self.at += 2
            elif self.look() == "." and (self.look(1).isalpha() or self.look(1) in ("_", "(", "$", *SINGLE, *DOUBLE)):
                self.at += 1
            elif self.look() == "[" or self.starts("?["):
                self.at += 1 if self.look() == "[" else 2
                self.blanks(lines=True)
                index = self.expression()
                self.blanks(lines=True)
                self.expect("]")
                value = Index(self.span(start), value, index)
                continue
            elif self.starts("++") or (self.starts("--") and not self.starts("--%")):
                self.at += 2
                value = Unary(self.span(start), "++", value)
                continue
            else:
                return value
            name = self.member_name()
            arguments = self.method_arguments()
            value = Member(self.span(start), value, name, static, arguments)

    def member_name(self) -> Node:
        start = self.at
        self.blanks()
        if match := MEMBER_NAME.match(self.text, self.at):
            self.at = match.end()
            return Constant(self.span(start), match[0], bare=True)
        return self.primary()

    def method_arguments(self) -> tuple[Node, ...] | None:
        if not self.take("("):
            return None
        arguments: list[Node] = []
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

    def quoted(self) -> Node:
        start = self.at
        if self.take("@"):
            return self.here(start)
        if self.look() in SINGLE:
            return Constant(self.span(start), self.single())
        return self.double()

    def double(self, closing: str | None = None) -> Node:
        """An expandable text, from its opening mark, or, of a here-text, from its first line to `closing`."""
        start = self.at
        parts: list[str | Node] = []
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
            if closing is None and char in DOUBLE:
                self.at += 1
                if not self.look() or self.look() not in DOUBLE:
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
            return Constant(self.span(start), parts[0])
        return Expandable(self.span(start), tuple(parts))

    def here(self, start: int) -> Node:
        mark = SINGLE if self.look() in SINGLE else DOUBLE
        header = re.compile(r".[^\S\r\n]*\r?\n").match(self.text, self.at)
        if header is None:
            raise self.fail("a here-text starts on its own line")
        # The line break before the closing mark is not part of the text; an empty text has only that of the header.
        self.at = header.end() - (2 if self.text[header.end() - 2] == "\r" else 1)
        closing = rf"\r?\n[{mark}]@"
        if mark == DOUBLE:
            inner = self.double(closing)
            return _without_first_line(inner)
        end = re.compile(closing).search(self.text, self.at)
        if end is None:
            raise self.fail("a here-text does not end")
        text, self.at = self.text[self.at : end.start()], end.end()
        return Constant(self.span(start), text.lstrip("\r").removeprefix("\n"))

    def block(self) -> Block:
        start = self.at
        self.expect("{")
        block = self.statements(start, "}")
        self.expect("}")
        return Block(self.span(start), block.body, block.parameters)

    def table(self) -> Table:
        start = self.at
        self.expect("@{")
        self.deeper()
        pairs: list[tuple[Node, Node]] = []
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
        return Table(self.span(start), tuple(pairs))

    def table_key(self) -> Node:
        start = self.at
        if match := re.compile(r"[A-Za-z_][\w.-]*").match(self.text, self.at):
            self.at = match.end()
            return Constant(self.span(start), match[0])
        return self.unary()


def _without_first_line(node: Node) -> Node:
    """A here-text is read from the line break behind its opening mark, which is not part of it."""
    if isinstance(node, Constant):
        return Constant(node.span, node.text.lstrip("\r").removeprefix("\n"))
    if isinstance(node, Expandable) and node.parts and isinstance(node.parts[0], str):
        return Expandable(node.span, (node.parts[0].lstrip("\r").removeprefix("\n"), *node.parts[1:]))
    return node

"""Reads PowerShell by the rules of its language specification: command and expression mode, quotes, subexpressions, blocks.

What it does not know (classes, workflows, labels) it refuses, with `Unread`; a text is never read in part.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from handrail_cli.windows.powershell_nodes import (
    Assignment,
    Binary,
    Block,
    Branch,
    Cast,
    Constant,
    Definition,
    Expandable,
    Group,
    Index,
    Invoked,
    Kind,
    Leaving,
    Listed,
    Loop,
    Member,
    Node,
    Parameter,
    Pipeline,
    Redirection,
    Span,
    Table,
    Unary,
    Using,
    Variable,
    Verbatim,
)

MAX_DEPTH = 60
MAX_NODES = 2_000

# PowerShell takes typographic marks for the plain ones.
SINGLE = "'\u2018\u2019\u201a\u201b"
DOUBLE = '"\u201c\u201d\u201e'
DASHES = "-\u2013\u2014\u2015"
NEWLINES = "\r\n"

ESCAPES = {"0": "\0", "a": "\a", "b": "\b", "e": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
VARIABLE = re.compile(r"\$(?:(\w+):(?!:)(?=\w))?([\w?]+|[\^$])|\$\{([^}]*)\}")
SPLAT = re.compile(r"@(?:(\w+):)?(\w+)")
SCOPES = frozenset(("global", "local", "script", "private", "using", "workflow", "variable"))
NUMBER = re.compile(
    r"(?:0x[0-9a-f]+|\d+(?:\.\d+)?(?:e[+-]?\d+)?|\.\d+)(?:[ul]{0,2}|d)(?:[kmgtp]b)?(?![\w\\/:$@-])", re.IGNORECASE
)
WORD_ENDS = frozenset(" \t\r\n\f\v\u00a0;,|&(){}<>")
PARAMETER = re.compile(rf"[{DASHES}]([A-Za-z_?][^\s:.;,|&(){{}}\[\]<>'\"$`\u2018-\u201e]*)")
REDIRECT = re.compile(r"([1-6*]?)(>>|>)(&[12])?")
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
ASSIGNMENTS = re.compile(r"(=(?!=)|\+=|-=|\*=|/=|%=|\?\?=)")
KEYWORD = re.compile(r"([A-Za-z]+)(?![\w.:\\/`'\"$-])")
MEMBER_NAME = re.compile(r"\w+")
REFUSED_KEYWORDS = frozenset(
    ("class", "enum", "workflow", "configuration", "data", "parallel", "sequence", "inlinescript", "dynamicparam", "interface")
)  # fmt: skip


class Unread(Exception):
    """Text that is not PowerShell, or PowerShell that is not read here; `code` as in reasons."""

    def __init__(self, code: str, text: str, at: int) -> None:
        super().__init__(text)
        self.code = code
        self.at = at


def parse(text: str) -> Block:
    """The statements of a PowerShell text. Raises `Unread`."""
    return Parser(text).script()


class Parser:
    """One pass over a text; `at` is the place that is read next."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.depth = 0
        self.nodes = 0
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

    # -- characters

    def fail(self, text: str, code: str = "syntax") -> Unread:
        return Unread(code, text, self.at)

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

    @staticmethod
    def add(parts: list[str | Node], text: list[str], node: Node) -> None:
        if isinstance(node, Constant):
            text.append(node.text)
            return
        if text:
            parts.append("".join(text))
            text.clear()
        parts.extend(node.parts if isinstance(node, Expandable) else (node,))

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

    # -- expressions

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
        while True:
            back = self.at
            self.blanks()
            if not self.take(","):
                self.at = back
                break
            self.blanks(lines=True)
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

    def variable(self) -> Variable | None:
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
        return Variable(self.span(start), name)

    def quoted(self) -> Node:
        start = self.at
        if self.take("@"):
            return self.here(start)
        if self.look() in SINGLE:
            return Constant(self.span(start), self.single())
        return self.double()

    def single(self) -> str:
        out: list[str] = []
        self.at += 1
        while True:
            char = self.look()
            if not char:
                raise self.fail("a quotation does not end")
            self.at += 1
            if char in SINGLE:
                if not self.look() or self.look() not in SINGLE:
                    return "".join(out)
                self.at += 1
            out.append(char)

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

    def escape(self) -> str:
        """The character that a backtick and what follows it stand for."""
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


def _without_first_line(node: Node) -> Node:
    """A here-text is read from the line break behind its opening mark, which is not part of it."""
    if isinstance(node, Constant):
        return Constant(node.span, node.text.lstrip("\r").removeprefix("\n"))
    if isinstance(node, Expandable) and node.parts and isinstance(node.parts[0], str):
        return Expandable(node.span, (node.parts[0].lstrip("\r").removeprefix("\n"), *node.parts[1:]))
    return node

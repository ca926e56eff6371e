"""Judges PowerShell: walks all that may run, works out what its words will be, and notes what each command does."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from handrail_cli.windows import assigning, commandlets, dotnet, members, powershell_values as values
from handrail_cli.windows.calls import Call, Stdin, Word
from handrail_cli.windows.cmdlets import ALIASES, find
from handrail_cli.windows.environment import known_environment
from handrail_cli.windows.findings import Case, Exhausted, Grade, Span
from handrail_cli.windows.parameters import blocks_in
from handrail_cli.windows.places import reads, secret_variable, writes
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
    Table,
    Unary,
    Using,
    Variable,
    Verbatim,
    assigned,
)
from handrail_cli.windows.powershell_parser import Unread, parse
from handrail_cli.windows.powershell_values import NOTHING, UNKNOWN, Value, known
from handrail_cli.windows.programs import program

MAX_STEPS = 2_000
# Names that PowerShell has on Windows only; elsewhere they are the programs of the system.
WINDOWS_ALIASES = frozenset(
    ("ls", "cp", "mv", "rm", "rmdir", "cat", "man", "mount", "ps", "sort", "diff", "sleep", "tee", "start", "ac", "compare", "cpp", "kill", "curl",
     "wget", "write", "lp", "cls", "clear", "mkdir", "md", "set", "type", "copy", "move", "del", "erase", "rd", "ren", "sc", "fc", "dir")
) - {"cls", "clear", "copy", "move", "del", "erase", "rd", "ren", "sc", "fc", "dir", "type", "md", "set", "write"}  # fmt: skip
AUTOMATIC = frozenset(
    ("?", "^", "$", "args", "error", "foreach", "input", "lastexitcode", "matches", "nestedpromptlevel", "pid", "psboundparameters", "pscmdlet",
     "psculture", "psedition", "pshome", "psuiculture", "psversiontable", "shellid", "stacktrace", "switch", "this", "host", "iswindows", "islinux",
     "ismacos", "iscoreclr", "myinvocation", "executioncontext", "psscriptroot", "pscommandpath", "sender", "event", "consolefilename")
)  # fmt: skip
PREFERENCES = re.compile(r"\w+preference|outputencoding|formatenumerationlimit|psstyle")
NUMBER = re.compile(r"\d+|0x[0-9a-fA-F]+")
CMDLET_NAME = re.compile(r"(?:[\w.]+\\)?([A-Za-z]+-[\w.]+)")


@dataclass(slots=True)
class Shell:
    """One PowerShell while it is followed: its variables, aliases and functions.

    `blocks` are the blocks of code that stand as values, `judged` those of them that were followed, by their identity.
    """

    case: Case
    scope: dict[str, Value] = field(default_factory=dict[str, Value])
    aliases: dict[str, str] = field(default_factory=dict[str, str])
    functions: dict[str, Block] = field(default_factory=dict[str, Block])
    called: set[str] = field(default_factory=set[str])
    running: list[str] = field(default_factory=list[str])
    blocks: list[Block] = field(default_factory=list[Block])
    judged: dict[int, Block] = field(default_factory=dict[int, Block])
    steps: int = 0

    # -- texts and blocks

    def text(self, text: str) -> Value:
        """Judge a whole text; what it gives."""
        block = parse(text)
        before, made = len(self.case.parts), len(self.blocks)
        for name, default in block.parameters:
            self.scope[name] = Value(marks=self.value(default).marks) if default is not None else UNKNOWN
        value = self.body(block.body)
        for name in self.functions.keys() - self.called:
            with self.uncertain():
                self.block(self.functions[name])
        # Values are not followed everywhere: whatever takes a block may run it. Blocks may hold others.
        while made < len(self.blocks):
            if id(self.blocks[made]) not in self.judged:
                with self.uncertain():
                    self.block(self.blocks[made])
            made += 1
        if block.body and len(self.case.parts) == before:
            # A value that stands alone is printed.
            self.case.part(("Write-Output",), block.span)
        return value

    def body(self, nodes: Sequence[Node]) -> Value:
        given = [value for node in nodes if (value := self.value(node)) is not NOTHING]
        return given[0] if len(given) == 1 else values.listed(given) if given else NOTHING

    def block(self, block: Block, piped: Value | None = None, arguments: Sequence[Value] = ()) -> Value:
        """What running a block gives, with what is piped in and its arguments."""
        self.judged[id(block)] = block
        self.case.depth += 1
        if self.case.depth > 40:
            raise Exhausted("too_deep", "it is nested deeper than is analysed")
        before = {name: self.scope.get(name) for name in ("_", "psitem", "input", "args")}
        # It may run again: what it assigns is not known when it starts.
        for name in assigned(block) & self.scope.keys():
            self.scope[name] = Value(marks=self.scope[name].marks)
        item = piped if piped is not None else UNKNOWN
        self.scope.update(
            {"_": item, "psitem": item, "input": item, "args": values.listed(list(arguments)) if arguments else UNKNOWN}
        )
        for at, (name, default) in enumerate(block.parameters):
            given = arguments[at] if at < len(arguments) else UNKNOWN
            if default is not None:
                self.value(default)
            self.scope[name] = given
        value = self.body(block.body)
        for name, earlier in before.items():
            if earlier is None:
                self.scope.pop(name, None)
            else:
                self.scope[name] = earlier
        self.case.depth -= 1
        return value

    @contextmanager
    def uncertain(self) -> Generator[None]:
        """While it may or may not run: what it assigns is not known afterwards, nor where it has gone to."""
        before, cwd = dict(self.scope), self.case.cwd
        yield
        for name, value in self.scope.items():
            if before.get(name) is not value:
                self.scope[name] = Value(
                    marks=value.marks | (before[name].marks if name in before else values.NO_MARKS)
                )
        if self.case.cwd != cwd:
            self.case.cwd = None

    # -- values

    def value(self, node: Node) -> Value:
        """What a node gives; what it does is noted on the way."""
        self.steps += 1
        if self.steps > MAX_STEPS:
            raise Exhausted("too_much", "it has more parts than are analysed")
        gives = GIVES.get(type(node))
        if gives is None:
            raise Exhausted("syntax", f"{type(node).__name__} is not analysed")
        return gives(self, node)

    def constant(self, node: Constant) -> Value:
        number = not node.bare and node.span[1] - node.span[0] == len(node.text) and NUMBER.fullmatch(node.text)
        return known(node.text, kind="int" if number else "string")

    def expandable(self, node: Expandable) -> Value:
        return values.joined([known(part) if isinstance(part, str) else self.value(part) for part in node.parts])

    def group(self, node: Group) -> Value:
        value = self.body(node.body)
        if node.array and value.items is None:
            return values.listed([] if value is NOTHING else [value])
        return value

    def table(self, node: Table) -> Value:
        pairs = tuple(((self.value(key).text or "").lower(), self.value(item)) for key, item in node.pairs)
        marks = frozenset[str]().union(*(item.marks for _, item in pairs))
        return Value(table=pairs, marks=marks, kind="hashtable")

    def variable(self, name: str, span: Span | None) -> Value:
        drive, colon, rest = name.partition(":")
        if colon:
            return self.environment(rest, span) if drive == "env" else self.drive_variable(drive, rest, span)
        if name in self.scope:
            return self.scope[name]
        judging = self.case.judging
        separator = "\\" if self.case.windows else "/"
        match name:
            case "true" | "false":
                return known(name.capitalize(), kind="bool")
            case "null":
                return known("", kind="null")
            case "home":
                return known(str(judging.home))
            case "pwd":
                return known(str(self.case.cwd)) if self.case.cwd is not None else UNKNOWN
            case "profile":
                folder = ("Documents", "PowerShell") if self.case.windows else (".config", "powershell")
                return known(separator.join((str(judging.home), *folder, "Microsoft.PowerShell_profile.ps1")))
            case _ if name in AUTOMATIC or PREFERENCES.fullmatch(name):
                return Value(kind="data")
            case _:
                return Value(marks=frozenset(("missing",)))

    def drive_variable(self, drive: str, name: str, span: Span | None) -> Value:
        if drive in ("function", "alias"):
            return Value(kind="scriptblock")
        reads(self.case, f"{drive}:{name}", span)
        return Value(marks=frozenset(("file",)))

    def environment(self, name: str, span: Span | None) -> Value:
        value = known_environment(self.case).get(name.lower())
        if value is not None:
            return known(value)
        if secret_variable(name):
            self.case.add(Grade.DANGEROUS, "secret", f"the variable {name!r} may hold a secret", span)
            return Value(marks=frozenset(("secret",)))
        return Value(kind="environment")

    def made(self, node: Block) -> Value:
        """A block of code as a value."""
        self.blocks.append(node)
        return Value(block=node, kind="scriptblock")

    def cast(self, node: Cast) -> Value:
        value = self.value(node.value)
        if dotnet.SOCKET.fullmatch(node.kind):
            return members.make(self, node.kind, values.flat(value), node.span)
        if node.kind == "scriptblock":
            self.case.add(Grade.DANGEROUS, "dynamic", "it makes a block of code from text", node.span)
        elif (
            value.kind != "hashtable"
            and not dotnet.pure_object(node.kind)
            and node.kind not in ("ref", "adsi", "wmi", "wmiclass", "securestring")
        ):
            self.case.add(
                Grade.DANGEROUS, "dotnet", f"it makes a {node.kind!r}, which is not known to be harmless", node.span
            )
        elif node.kind in ("adsi", "wmi", "wmiclass", "ref"):
            self.case.add(Grade.DANGEROUS, "dotnet", f"it reaches for a {node.kind!r}", node.span)
        return values.cast(node.kind, value)

    def unary(self, node: Unary) -> Value:
        value = self.value(node.value)
        if node.operator == "++" and isinstance(node.value, Variable):
            self.scope[node.value.name] = Value(kind="int")
        if node.operator == "join":
            return values.binary("join", value, known(""))
        if node.operator == "-" and (number := values.integer(value)) is not None:
            return known(str(-number), kind="int")
        if node.operator == "split":
            return (
                values.listed([known(part) for part in value.text.split()])
                if value.text is not None
                else Value(marks=value.marks)
            )
        return Value(marks=value.marks, kind="data")

    def binary(self, node: Binary) -> Value:
        left, right = self.value(node.left), self.value(node.right)
        for block in (*blocks_in(left), *blocks_in(right)):
            with self.uncertain():
                self.block(block)
        if "ofs" in self.scope and (left.items is not None or right.items is not None) and node.operator != "join":
            return Value(marks=left.marks | right.marks)
        return values.binary(node.operator, left, right)

    # -- statements

    def branch(self, node: Branch) -> Value:
        for condition in node.conditions:
            self.value(condition)
        for body in node.bodies:
            with self.uncertain():
                self.body(body.body)
        return UNKNOWN

    def define(self, node: Definition) -> Value:
        self.functions[node.name] = node.block
        self.aliases.pop(node.name, None)
        return NOTHING

    def loop(self, node: Loop) -> Value:
        """What may run many times: what it changes is not known when it starts again."""
        over = self.value(node.over) if node.over is not None else UNKNOWN
        started, endless = self.case.started, False
        with self.uncertain():
            for name in assigned(node):
                earlier = self.scope.get(name)
                self.scope[name] = Value(marks=earlier.marks if earlier is not None else frozenset())
            single = (
                over
                if over.items is None
                else over.items[0]
                if len(over.items) == 1
                else Value(marks=over.marks, files=over.files)
            )
            if node.variable:
                self.scope[node.variable] = single
            for condition in node.conditions:
                endless = (self.value(condition).text or "").lower() in ("1", "true")
            value = self.body(node.body.body)
            if (endless or not (node.conditions or node.variable)) and self.case.started > started:
                self.case.add(Grade.CATASTROPHIC, "fork_bomb", "it starts programs without end", node.span)
            if over.items is not None and 1 < len(over.items) <= 8:
                for item in over.items:
                    self.scope[node.variable] = item
                    self.body(node.body.body)
        return Value(marks=value.marks)

    def assignment(self, node: Assignment) -> Value:
        value = self.value(node.value)
        if value is NOTHING:
            value = UNKNOWN
        assigning.assign(self, node.target, value, node.operator)
        return NOTHING

    def using(self, node: Using) -> Value:
        if node.what == "namespace":
            return NOTHING
        self.case.add(Grade.DANGEROUS, "loads_code", f"it loads the {node.what} {node.name!r}", node.span)
        if node.what == "module" and re.search(r"[\\/]", node.name):
            reads(self.case, node.name, node.span)
        return NOTHING

    # -- members

    def member(self, node: Member) -> Value:
        name = self.value(node.name).text if isinstance(node.name, Constant) else None
        arguments = [self.value(argument) for argument in node.arguments or ()]
        if name is None:
            self.value(node.name)
            self.case.add(Grade.DANGEROUS, "dynamic", "which member it uses is worked out only when it runs", node.span)
            return UNKNOWN
        if isinstance(node.target, Kind):
            return members.static_member(self, node.target.name, name.lower(), arguments, node)
        return members.member(self, self.value(node.target), name.lower(), arguments, node)

    # -- pipelines and commands

    def pipeline(self, node: Pipeline) -> Value:
        piped: Value | None = None
        for stage in node.stages:
            if isinstance(stage, Invoked):
                piped = self.invoked(stage, piped)
            else:
                piped = self.value(stage)
        for redirection in node.redirections:
            self.redirect(redirection, piped)
        if node.background:
            self.case.add(Grade.EFFECT, "background", "it goes on in the background", node.span)
        return piped if piped is not None else NOTHING

    def redirect(self, redirection: Redirection, piped: Value | None = None) -> None:
        if redirection.target is None:
            return
        value = self.value(redirection.target)
        before = len(self.case.touches)
        if value.kind == "null":
            return
        if value.text is None:
            self.case.add(Grade.DANGEROUS, "unresolved", "it is not known where its output goes", redirection.span)
            self.case.touch("write", "")
        else:
            writes(self.case, value.text, redirection.span, fetched=piped is not None and "network" in piped.marks)
        if self.case.touches[before:]:
            self.case.part((">", value.guess), redirection.span, before)

    def invoked(self, node: Invoked, piped: Value | None) -> Value:
        """Judge one command; what it gives."""
        value = self.command(node, piped)
        for redirection in node.redirections:
            self.redirect(redirection, value)
        return value

    def command(self, node: Invoked, piped: Value | None) -> Value:
        named = self.value(node.name)
        if named.block is not None:
            arguments = [self.value(item) for item in node.arguments if not isinstance(item, Parameter | Verbatim)]
            return self.block(named.block, piped, arguments)
        name = named.text
        if isinstance(node.name, Constant) and name:
            return self.named(name, node, piped)
        before = len(self.case.touches)
        self.case.executes = True
        self.case.add(Grade.DANGEROUS, "dynamic", "which command it runs is worked out only when it runs", node.span)
        if "network" in named.marks:
            self.case.add(Grade.CATASTROPHIC, "network_code", "it runs code straight from the network", node.span)
        if name:
            return self.named(name, node, piped)
        for item in node.arguments:
            self.argument(item)
        self.case.part(("?",), node.span, before)
        return Value(marks=piped.marks if piped is not None else frozenset())

    def named(self, name: str, node: Invoked, piped: Value | None) -> Value:
        lowered = name.lower()
        target = self.aliases.get(lowered)
        if target is not None and lowered not in self.running:
            self.running.append(lowered)
            try:
                return self.named(target, node, piped)
            finally:
                self.running.pop()
        if self.case.windows or lowered not in WINDOWS_ALIASES:
            lowered = ALIASES.get(lowered, name).lower()
        if lowered in self.functions:
            self.called.add(lowered)
            return self.call_function(lowered, [self.argument(item) for item in node.arguments], piped)
        match = CMDLET_NAME.fullmatch(lowered)
        cmdlet = find(match[1]) if match else None
        if cmdlet is not None:
            return commandlets.run(self, cmdlet, node, piped)
        if match is not None and not re.search(r"\.(exe|cmd|bat|ps1|com)$", lowered):
            return commandlets.unlisted(self, match[1], node, piped)
        return self.program(name, node, piped)

    def call_function(self, name: str, arguments: Sequence[Value], piped: Value | None = None) -> Value:
        if name in self.running:
            return UNKNOWN
        self.running.append(name)
        try:
            return self.block(self.functions[name], piped, arguments)
        finally:
            self.running.pop()

    def argument(self, item: Node) -> Value:
        """An argument of something other than a cmdlet, as one value; blocks in it may run."""
        if isinstance(item, Parameter):
            value = self.value(item.value) if item.value is not None else None
            return known(f"-{item.name}") if value is None else values.joined((known(f"-{item.name}:"), value))
        value = known(item.text) if isinstance(item, Verbatim) else self.value(item)
        if value.block is not None:
            self.block(value.block)
        return value

    def program(self, name: str, node: Invoked, piped: Value | None) -> Value:
        """A program, or a script, that is no cmdlet."""
        words: list[Word] = []
        blocks: list[Block] = []
        for item in node.arguments:
            if isinstance(item, Verbatim):
                words.extend(Word(text, text, item.span) for text in item.text.split())
                continue
            value = self.value(item) if not isinstance(item, Parameter) else self.argument(item)
            if value.block is not None:
                blocks.append(value.block)
                continue
            if isinstance(item, Variable) and item.splat and value.items is None:
                words.append(Word(None, "", item.span))
                continue
            words.extend(Word(part.text, part.guess, item.span, part.marks) for part in values.flat(value))
        for block in blocks:
            self.block(block, piped)
        stdin = Stdin(piped.text, piped.marks) if piped is not None else None
        return Value(marks=program(self.case, Call(name, tuple(words), stdin, node.span, blocks=bool(blocks))))


# What each kind of node gives; one that is not here is not analysed.
GIVES: Mapping[type[Node], Callable[[Shell, Any], Value]] = {
    Constant: Shell.constant,
    Expandable: Shell.expandable,
    Variable: lambda shell, node: shell.variable(node.name, node.span),
    Group: Shell.group,
    Listed: lambda shell, node: values.listed([shell.value(item) for item in node.items]),
    Table: Shell.table,
    Block: Shell.made,
    Kind: lambda shell, node: Value(kind="type"),
    Cast: Shell.cast,
    Unary: Shell.unary,
    Binary: Shell.binary,
    Member: Shell.member,
    Index: lambda shell, node: values.index(shell.value(node.target), shell.value(node.index)),
    Invoked: lambda shell, node: shell.invoked(node, None),
    Pipeline: Shell.pipeline,
    Assignment: Shell.assignment,
    Branch: Shell.branch,
    Loop: Shell.loop,
    Definition: Shell.define,
    Leaving: lambda shell, node: shell.value(node.value) if node.value is not None else NOTHING,
    Using: Shell.using,
    **dict.fromkeys((Redirection, Parameter, Verbatim), lambda shell, node: NOTHING),
}


def judge_text(case: Case, text: str, *, shell: Shell | None = None) -> Value:
    """Judge a text of PowerShell, in the same PowerShell or in a new one; a text that is not read to its end must be seen."""
    try:
        return (shell if shell is not None else Shell(case)).text(text)
    except Unread as exc:
        case.add(Grade.DANGEROUS, exc.code, str(exc), (exc.at, min(exc.at + 1, len(text))))
        case.part(("?",), None)
        return UNKNOWN

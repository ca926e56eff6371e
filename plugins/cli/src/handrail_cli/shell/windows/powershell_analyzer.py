"""Judges PowerShell: walks all that may run, works out what its words will be, and notes what each command does."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from handrail_cli.shell.powershell import dotnet, values
from handrail_cli.shell.powershell.nodes import (
    ArrayLiteral,
    AssignmentNode,
    BinaryOperation,
    BranchNode,
    CastNode,
    CommandNode,
    CommandParameter,
    ConstantNode,
    ExpandableString,
    FunctionDefinition,
    GroupNode,
    HashTable,
    IndexAccess,
    JumpStatement,
    LoopNode,
    MemberAccess,
    PipelineNode,
    RedirectionNode,
    ScriptBlock,
    SyntaxNode,
    TypeLiteral,
    UnaryOperation,
    UsingStatement,
    VariableNode,
    VerbatimArguments,
    find_assigned_variables,
)
from handrail_cli.shell.powershell.parser import UnparsableText, parse_powershell
from handrail_cli.shell.powershell.values import NULL_VALUE, UNKNOWN_VALUE, PowerShellValue, create_known_value
from handrail_cli.shell.windows import cmdlet_rules, member_access, variable_assignment
from handrail_cli.shell.windows.cmdlet_table import ALIASES, find_cmdlet
from handrail_cli.shell.windows.environment import known_environment
from handrail_cli.shell.windows.findings import AnalysisExhausted, FindingGrade, LineEvaluation, Span
from handrail_cli.shell.windows.parameter_effects import iter_blocks
from handrail_cli.shell.windows.path_effects import is_secret_variable, note_read, note_write
from handrail_cli.shell.windows.program_analyzer import judge_program
from handrail_cli.shell.windows.program_call import CallWord, ProgramCall, StdinContent

MAX_STEPS = 2_000
# Names that PowerShell has on Windows only; elsewhere they are the programs of the system.
WINDOWS_ALIASES = frozenset(
    ("ls", "cp", "mv", "rm", "rmdir", "cat", "man", "mount", "ps", "sort", "diff", "sleep", "tee", "start", "ac", "compare", "cpp", "kill", "curl",
     "wget", "write", "lp", "cls", "clear", "mkdir", "md", "set", "type", "copy", "move", "del", "erase", "rd", "ren", "sc", "fc", "dir")
) - {"cls", "clear", "copy", "move", "del", "erase", "rd", "ren", "sc", "fc", "dir", "type", "md", "set", "write"}  # fmt: skip
AUTOMATIC_VARIABLES = frozenset(
    ("?", "^", "$", "args", "error", "foreach", "input", "lastexitcode", "matches", "nestedpromptlevel", "pid", "psboundparameters", "pscmdlet",
     "psculture", "psedition", "pshome", "psuiculture", "psversiontable", "shellid", "stacktrace", "switch", "this", "host", "iswindows", "islinux",
     "ismacos", "iscoreclr", "myinvocation", "executioncontext", "psscriptroot", "pscommandpath", "sender", "event", "consolefilename")
)  # fmt: skip
PREFERENCE_VARIABLE = re.compile(r"\w+preference|outputencoding|formatenumerationlimit|psstyle")
NUMBER = re.compile(r"\d+|0x[0-9a-fA-F]+")
CMDLET_NAME = re.compile(r"(?:[\w.]+\\)?([A-Za-z]+-[\w.]+)")


@dataclass(slots=True)
class PowerShellAnalyzer:
    """One PowerShell while it is followed: its variables, aliases and functions.

    `blocks` are the blocks of code that stand as values, `judged` those of them that were followed, by their identity.
    """

    case: LineEvaluation
    scope: dict[str, PowerShellValue] = field(default_factory=dict[str, PowerShellValue])
    aliases: dict[str, str] = field(default_factory=dict[str, str])
    functions: dict[str, ScriptBlock] = field(default_factory=dict[str, ScriptBlock])
    called: set[str] = field(default_factory=set[str])
    running: list[str] = field(default_factory=list[str])
    blocks: list[ScriptBlock] = field(default_factory=list[ScriptBlock])
    judged: dict[int, ScriptBlock] = field(default_factory=dict[int, ScriptBlock])
    steps: int = 0

    # -- texts and blocks

    def text(self, text: str) -> PowerShellValue:
        """Judge an entire text and return its value."""
        block = parse_powershell(text)
        before, made = len(self.case.parts), len(self.blocks)
        for name, default in block.parameters:
            self.scope[name] = (
                PowerShellValue(marks=self.value(default).marks) if default is not None else UNKNOWN_VALUE
            )
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

    def body(self, nodes: Sequence[SyntaxNode]) -> PowerShellValue:
        given = [value for node in nodes if (value := self.value(node)) is not NULL_VALUE]
        return given[0] if len(given) == 1 else values.create_list(given) if given else NULL_VALUE

    def block(
        self, block: ScriptBlock, piped: PowerShellValue | None = None, arguments: Sequence[PowerShellValue] = ()
    ) -> PowerShellValue:
        """Return the value of running a block, with its piped input and its arguments."""
        self.judged[id(block)] = block
        self.case.depth += 1
        if self.case.depth > 40:
            raise AnalysisExhausted("too_deep", "it is nested deeper than is analysed")
        before = {name: self.scope.get(name) for name in ("_", "psitem", "input", "args")}
        # It may run again: what it assigns is not known when it starts.
        for name in find_assigned_variables(block) & self.scope.keys():
            self.scope[name] = PowerShellValue(marks=self.scope[name].marks)
        item = piped if piped is not None else UNKNOWN_VALUE
        self.scope.update(
            {
                "_": item,
                "psitem": item,
                "input": item,
                "args": values.create_list(list(arguments)) if arguments else UNKNOWN_VALUE,
            }
        )
        for at, (name, default) in enumerate(block.parameters):
            given = arguments[at] if at < len(arguments) else UNKNOWN_VALUE
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
                self.scope[name] = PowerShellValue(
                    marks=value.marks | (before[name].marks if name in before else values.NO_MARKS)
                )
        if self.case.cwd != cwd:
            self.case.cwd = None

    # -- values

    def value(self, node: SyntaxNode) -> PowerShellValue:
        """Return the value of a node, and note its effects on the way."""
        self.steps += 1
        if self.steps > MAX_STEPS:
            raise AnalysisExhausted("too_much", "it has more parts than are analysed")
        gives = NODE_HANDLERS.get(type(node))
        if gives is None:
            raise AnalysisExhausted("syntax", f"{type(node).__name__} is not analysed")
        return gives(self, node)

    def constant(self, node: ConstantNode) -> PowerShellValue:
        number = not node.bare and node.span[1] - node.span[0] == len(node.text) and NUMBER.fullmatch(node.text)
        return create_known_value(node.text, kind="int" if number else "string")

    def expandable(self, node: ExpandableString) -> PowerShellValue:
        return values.join_values(
            [create_known_value(part) if isinstance(part, str) else self.value(part) for part in node.parts]
        )

    def group(self, node: GroupNode) -> PowerShellValue:
        value = self.body(node.body)
        if node.array and value.items is None:
            return values.create_list([] if value is NULL_VALUE else [value])
        return value

    def table(self, node: HashTable) -> PowerShellValue:
        pairs = tuple(((self.value(key).text or "").lower(), self.value(item)) for key, item in node.pairs)
        marks = frozenset[str]().union(*(item.marks for _, item in pairs))
        return PowerShellValue(table=pairs, marks=marks, kind="hashtable")

    def variable(self, name: str, span: Span | None) -> PowerShellValue:
        drive, colon, rest = name.partition(":")
        if colon:
            return self.environment(rest, span) if drive == "env" else self.drive_variable(drive, rest, span)
        if name in self.scope:
            return self.scope[name]
        judging = self.case.judging
        separator = "\\" if self.case.windows else "/"
        match name:
            case "true" | "false":
                return create_known_value(name.capitalize(), kind="bool")
            case "null":
                return create_known_value("", kind="null")
            case "home":
                return create_known_value(str(judging.home))
            case "pwd":
                return create_known_value(str(self.case.cwd)) if self.case.cwd is not None else UNKNOWN_VALUE
            case "profile":
                folder = ("Documents", "PowerShell") if self.case.windows else (".config", "powershell")
                return create_known_value(
                    separator.join((str(judging.home), *folder, "Microsoft.PowerShell_profile.ps1"))
                )
            case _ if name in AUTOMATIC_VARIABLES or PREFERENCE_VARIABLE.fullmatch(name):
                return PowerShellValue(kind="data")
            case _:
                return PowerShellValue(marks=frozenset(("missing",)))

    def drive_variable(self, drive: str, name: str, span: Span | None) -> PowerShellValue:
        if drive in ("function", "alias"):
            return PowerShellValue(kind="scriptblock")
        note_read(self.case, f"{drive}:{name}", span)
        return PowerShellValue(marks=frozenset(("file",)))

    def environment(self, name: str, span: Span | None) -> PowerShellValue:
        value = known_environment(self.case).get(name.lower())
        if value is not None:
            return create_known_value(value)
        if is_secret_variable(name):
            self.case.add(FindingGrade.DANGEROUS, "secret", f"the variable {name!r} may hold a secret", span)
            return PowerShellValue(marks=frozenset(("secret",)))
        return PowerShellValue(kind="environment")

    def made(self, node: ScriptBlock) -> PowerShellValue:
        """Return a block of code as a value."""
        self.blocks.append(node)
        return PowerShellValue(block=node, kind="scriptblock")

    def cast(self, node: CastNode) -> PowerShellValue:
        value = self.value(node.value)
        if dotnet.SOCKET_TYPE.fullmatch(node.kind):
            return member_access.create_object(self, node.kind, values.flatten_value(value), node.span)
        if node.kind == "scriptblock":
            self.case.add(FindingGrade.DANGEROUS, "dynamic", "it makes a block of code from text", node.span)
        elif (
            value.kind != "hashtable"
            and not dotnet.is_pure_type(node.kind)
            and node.kind not in ("ref", "adsi", "wmi", "wmiclass", "securestring")
        ):
            self.case.add(
                FindingGrade.DANGEROUS,
                "dotnet",
                f"it makes a {node.kind!r}, which is not known to be harmless",
                node.span,
            )
        elif node.kind in ("adsi", "wmi", "wmiclass", "ref"):
            self.case.add(FindingGrade.DANGEROUS, "dotnet", f"it reaches for a {node.kind!r}", node.span)
        return values.cast_value(node.kind, value)

    def unary(self, node: UnaryOperation) -> PowerShellValue:
        value = self.value(node.value)
        if node.operator == "++" and isinstance(node.value, VariableNode):
            self.scope[node.value.name] = PowerShellValue(kind="int")
        if node.operator == "join":
            return values.apply_operator("join", value, create_known_value(""))
        if node.operator == "-" and (number := values.parse_integer(value)) is not None:
            return create_known_value(str(-number), kind="int")
        if node.operator == "split":
            return (
                values.create_list([create_known_value(part) for part in value.text.split()])
                if value.text is not None
                else PowerShellValue(marks=value.marks)
            )
        return PowerShellValue(marks=value.marks, kind="data")

    def binary(self, node: BinaryOperation) -> PowerShellValue:
        left, right = self.value(node.left), self.value(node.right)
        for block in (*iter_blocks(left), *iter_blocks(right)):
            with self.uncertain():
                self.block(block)
        if "ofs" in self.scope and (left.items is not None or right.items is not None) and node.operator != "join":
            return PowerShellValue(marks=left.marks | right.marks)
        return values.apply_operator(node.operator, left, right)

    # -- statements

    def branch(self, node: BranchNode) -> PowerShellValue:
        for condition in node.conditions:
            self.value(condition)
        for body in node.bodies:
            with self.uncertain():
                self.body(body.body)
        return UNKNOWN_VALUE

    def define(self, node: FunctionDefinition) -> PowerShellValue:
        self.functions[node.name] = node.block
        self.aliases.pop(node.name, None)
        return NULL_VALUE

    def loop(self, node: LoopNode) -> PowerShellValue:
        """Judge code that may run many times: what it changes is unknown when it starts again."""
        over = self.value(node.over) if node.over is not None else UNKNOWN_VALUE
        started, endless = self.case.started, False
        with self.uncertain():
            for name in find_assigned_variables(node):
                earlier = self.scope.get(name)
                self.scope[name] = PowerShellValue(marks=earlier.marks if earlier is not None else frozenset())
            single = (
                over
                if over.items is None
                else over.items[0]
                if len(over.items) == 1
                else PowerShellValue(marks=over.marks, files=over.files)
            )
            if node.variable:
                self.scope[node.variable] = single
            for condition in node.conditions:
                endless = (self.value(condition).text or "").lower() in ("1", "true")
            value = self.body(node.body.body)
            if (endless or not (node.conditions or node.variable)) and self.case.started > started:
                self.case.add(FindingGrade.CATASTROPHIC, "fork_bomb", "it starts programs without end", node.span)
            if over.items is not None and 1 < len(over.items) <= 8:
                for item in over.items:
                    self.scope[node.variable] = item
                    self.body(node.body.body)
        return PowerShellValue(marks=value.marks)

    def assignment(self, node: AssignmentNode) -> PowerShellValue:
        value = self.value(node.value)
        if value is NULL_VALUE:
            value = UNKNOWN_VALUE
        variable_assignment.assign_target(self, node.target, value, node.operator)
        return NULL_VALUE

    def using(self, node: UsingStatement) -> PowerShellValue:
        if node.what == "namespace":
            return NULL_VALUE
        self.case.add(FindingGrade.DANGEROUS, "loads_code", f"it loads the {node.what} {node.name!r}", node.span)
        if node.what == "module" and re.search(r"[\\/]", node.name):
            note_read(self.case, node.name, node.span)
        return NULL_VALUE

    # -- members

    def member(self, node: MemberAccess) -> PowerShellValue:
        name = self.value(node.name).text if isinstance(node.name, ConstantNode) else None
        arguments = [self.value(argument) for argument in node.arguments or ()]
        if name is None:
            self.value(node.name)
            self.case.add(
                FindingGrade.DANGEROUS, "dynamic", "which member it uses is worked out only when it runs", node.span
            )
            return UNKNOWN_VALUE
        if isinstance(node.target, TypeLiteral):
            return member_access.access_static_member(self, node.target.name, name.lower(), arguments, node)
        return member_access.access_member(self, self.value(node.target), name.lower(), arguments, node)

    # -- pipelines and commands

    def pipeline(self, node: PipelineNode) -> PowerShellValue:
        piped: PowerShellValue | None = None
        for stage in node.stages:
            if isinstance(stage, CommandNode):
                piped = self.invoked(stage, piped)
            else:
                piped = self.value(stage)
        for redirection in node.redirections:
            self.redirect(redirection, piped)
        if node.background:
            self.case.add(FindingGrade.EFFECT, "background", "it goes on in the background", node.span)
        return piped if piped is not None else NULL_VALUE

    def redirect(self, redirection: RedirectionNode, piped: PowerShellValue | None = None) -> None:
        if redirection.target is None:
            return
        value = self.value(redirection.target)
        before = len(self.case.touches)
        if value.kind == "null":
            return
        if value.text is None:
            self.case.add(
                FindingGrade.DANGEROUS, "unresolved", "it is not known where its output goes", redirection.span
            )
            self.case.touch("write", "")
        else:
            note_write(self.case, value.text, redirection.span, fetched=piped is not None and "network" in piped.marks)
        if self.case.touches[before:]:
            self.case.part((">", value.guess), redirection.span, before)

    def invoked(self, node: CommandNode, piped: PowerShellValue | None) -> PowerShellValue:
        """Judge one command; what it gives."""
        value = self.command(node, piped)
        for redirection in node.redirections:
            self.redirect(redirection, value)
        return value

    def command(self, node: CommandNode, piped: PowerShellValue | None) -> PowerShellValue:
        named = self.value(node.name)
        if named.block is not None:
            arguments = [
                self.value(item)
                for item in node.arguments
                if not isinstance(item, CommandParameter | VerbatimArguments)
            ]
            return self.block(named.block, piped, arguments)
        name = named.text
        if isinstance(node.name, ConstantNode) and name:
            return self.named(name, node, piped)
        before = len(self.case.touches)
        self.case.executes = True
        self.case.add(
            FindingGrade.DANGEROUS, "dynamic", "which command it runs is worked out only when it runs", node.span
        )
        if "network" in named.marks:
            self.case.add(
                FindingGrade.CATASTROPHIC, "network_code", "it runs code straight from the network", node.span
            )
        if name:
            return self.named(name, node, piped)
        for item in node.arguments:
            self.argument(item)
        self.case.part(("?",), node.span, before)
        return PowerShellValue(marks=piped.marks if piped is not None else frozenset())

    def named(self, name: str, node: CommandNode, piped: PowerShellValue | None) -> PowerShellValue:
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
        cmdlet = find_cmdlet(match[1]) if match else None
        if cmdlet is not None:
            return cmdlet_rules.judge_cmdlet(self, cmdlet, node, piped)
        if match is not None and not re.search(r"\.(exe|cmd|bat|ps1|com)$", lowered):
            return cmdlet_rules.judge_unlisted_cmdlet(self, match[1], node, piped)
        return self.program(name, node, piped)

    def call_function(
        self, name: str, arguments: Sequence[PowerShellValue], piped: PowerShellValue | None = None
    ) -> PowerShellValue:
        if name in self.running:
            return UNKNOWN_VALUE
        self.running.append(name)
        try:
            return self.block(self.functions[name], piped, arguments)
        finally:
            self.running.pop()

    def argument(self, item: SyntaxNode) -> PowerShellValue:
        """Return an argument of anything but a cmdlet as one value; blocks in it may run."""
        if isinstance(item, CommandParameter):
            value = self.value(item.value) if item.value is not None else None
            return (
                create_known_value(f"-{item.name}")
                if value is None
                else values.join_values((create_known_value(f"-{item.name}:"), value))
            )
        value = create_known_value(item.text) if isinstance(item, VerbatimArguments) else self.value(item)
        if value.block is not None:
            self.block(value.block)
        return value

    def program(self, name: str, node: CommandNode, piped: PowerShellValue | None) -> PowerShellValue:
        """Judge a program or script that is not a cmdlet."""
        words: list[CallWord] = []
        blocks: list[ScriptBlock] = []
        for item in node.arguments:
            if isinstance(item, VerbatimArguments):
                words.extend(CallWord(text, text, item.span) for text in item.text.split())
                continue
            value = self.value(item) if not isinstance(item, CommandParameter) else self.argument(item)
            if value.block is not None:
                blocks.append(value.block)
                continue
            if isinstance(item, VariableNode) and item.splat and value.items is None:
                words.append(CallWord(None, "", item.span))
                continue
            words.extend(CallWord(part.text, part.guess, item.span, part.marks) for part in values.flatten_value(value))
        for block in blocks:
            self.block(block, piped)
        stdin = StdinContent(piped.text, piped.marks) if piped is not None else None
        return PowerShellValue(
            marks=judge_program(self.case, ProgramCall(name, tuple(words), stdin, node.span, blocks=bool(blocks)))
        )


# What each kind of node gives; one that is not here is not analysed.
NODE_HANDLERS: Mapping[type[SyntaxNode], Callable[[PowerShellAnalyzer, Any], PowerShellValue]] = {
    ConstantNode: PowerShellAnalyzer.constant,
    ExpandableString: PowerShellAnalyzer.expandable,
    VariableNode: lambda shell, node: shell.variable(node.name, node.span),
    GroupNode: PowerShellAnalyzer.group,
    ArrayLiteral: lambda shell, node: values.create_list([shell.value(item) for item in node.items]),
    HashTable: PowerShellAnalyzer.table,
    ScriptBlock: PowerShellAnalyzer.made,
    TypeLiteral: lambda shell, node: PowerShellValue(kind="type"),
    CastNode: PowerShellAnalyzer.cast,
    UnaryOperation: PowerShellAnalyzer.unary,
    BinaryOperation: PowerShellAnalyzer.binary,
    MemberAccess: PowerShellAnalyzer.member,
    IndexAccess: lambda shell, node: values.index_value(shell.value(node.target), shell.value(node.index)),
    CommandNode: lambda shell, node: shell.invoked(node, None),
    PipelineNode: PowerShellAnalyzer.pipeline,
    AssignmentNode: PowerShellAnalyzer.assignment,
    BranchNode: PowerShellAnalyzer.branch,
    LoopNode: PowerShellAnalyzer.loop,
    FunctionDefinition: PowerShellAnalyzer.define,
    JumpStatement: lambda shell, node: shell.value(node.value) if node.value is not None else NULL_VALUE,
    UsingStatement: PowerShellAnalyzer.using,
    **dict.fromkeys((RedirectionNode, CommandParameter, VerbatimArguments), lambda shell, node: NULL_VALUE),
}


def judge_powershell_text(
    case: LineEvaluation, text: str, *, shell: PowerShellAnalyzer | None = None
) -> PowerShellValue:
    """Judge a text of PowerShell, in the same PowerShell or in a new one; a text that is not read to its end must be seen."""
    try:
        return (shell if shell is not None else PowerShellAnalyzer(case)).text(text)
    except UnparsableText as exc:
        case.add(FindingGrade.DANGEROUS, exc.code, str(exc), (exc.at, min(exc.at + 1, len(text))))
        case.part(("?",), None)
        return UNKNOWN_VALUE

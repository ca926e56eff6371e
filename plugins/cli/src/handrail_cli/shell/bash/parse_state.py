"""State of a parse: the commands so far, the values of variables, and what was not understood."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Container, Mapping, Sequence
from typing import TYPE_CHECKING

from handrail import Reason
from handrail_cli.shell.bash.arithmetic import ASSIGNING_OPERATOR, PLAIN_TERMS, VARIABLE_NAME, find_number_variables
from handrail_cli.shell.bash.syntax import ShellWord, SimpleCommand

if TYPE_CHECKING:
    from tree_sitter import Node

# Builtins that change variables, and those that may change any.
CHANGING_BUILTINS = frozenset((
    "cd", "pushd", "popd", "read", "mapfile", "readarray", "printf", "let", "getopts", "unset", "export", "declare", "typeset", "local", "readonly",
    "eval", "source", ".", "trap", "shift", "set", "wait", "command", "builtin", "enable", "alias", "coproc",
))  # fmt: skip
ARBITRARY_BUILTINS = frozenset(("eval", "source", ".", "trap", "enable", "alias"))
CHANGES_ANY = re.compile(
    r"\b(eval|source|trap|read|mapfile|readarray|getopts|declare|typeset|unset|let|enable|printf\s+-v|shift)\b"
    r"|(^|[\s;&|(])\.\s|\(\(|\$\[|[$]\{[^}]*:?="
)
POSITIONAL_NAMES = tuple("123456789")
# What opens an expansion, and letters that the parser may take for the beginning of it: blanks, and a backslash in front of one.
OPENINGS = frozenset(("$", "${", "$(", "$((", "$[", "`"))
LEADING = frozenset(" \t\n\r\v\f\\")


class ParseState(ABC):
    """State shared by all parts of the parse."""

    def __init__(self, text: str, variables: Mapping[str, str], environment: Container[str] | None) -> None:
        self.text = text
        self.commands: list[SimpleCommand] = []
        self.pipelines: list[tuple[tuple[int, ...], ...]] = []
        self.functions: dict[str, str] = {}
        # Bodies of functions that are defined, those that are being looked through, and those that never were.
        self.bodies: dict[str, Node] = {}
        self.calling: list[str] = []
        self.uncalled: dict[str, Node] = {}
        self.assigned: list[tuple[str, ShellWord]] = []
        self.opaque: list[Reason] = []
        self.known: dict[str, str | None] = dict(variables)
        self.guesses: dict[str, str] = {}
        # Variables that an assignment leaves as they are, or sets to something else: readonly ones, and those that change case.
        self.peculiar: set[str] = set()
        # How many constructs stand around that may run their parts not at all, more than once, or in another shell.
        self.loose: int = 0
        self.depth = 0
        self.loops = 0
        self.steps = 0
        self.folded: int = 0
        # Where substitutions, redirections, quotes and comments stand that were looked at.
        self.walked: set[int] = set()
        self.redirected_at: set[int] = set()
        self.literal: set[tuple[int, int]] = set()
        self.quoted: set[tuple[int, int]] = set()
        self.comments: set[tuple[int, int]] = set()
        # A word reaches over letters that end one.
        self.overlong = False
        self.hidden: tuple[str, ...] = ()
        # Variables of loops whose value is a pattern.
        self.patterned: set[str] = set()
        self.environment = environment
        # Variables that hold numbers only, once arithmetic has asked for them.
        self.counters: frozenset[str] | None = None
        self.forgotten = False

    def unclear(self, code: str, text: str, node: Node | None) -> None:
        self.opaque.append(Reason(code, text, self.span(node) if node is not None else None))

    def start(self, node: Node) -> int:
        """Return where a node starts, in characters.

        Inside quotes the parser counts blanks behind one expansion as a part of what opens the next, though the shell keeps them.
        """
        at = node.start_byte
        if self.text[at : at + 1] not in LEADING or not node.children:
            return at
        opening = node.children[0]
        behind = opening.end_byte - len(opening.type)
        return behind if opening.type in OPENINGS and self.text.startswith(opening.type, behind) else at

    def span(self, node: Node) -> tuple[int, int]:
        """Return the position of a node, in characters."""
        return self.start(node), node.end_byte

    def raw(self, node: Node) -> str:
        return self.text[self.start(node) : node.end_byte]

    def add(self, command: SimpleCommand) -> None:
        guess = command.guess
        if guess and (guess[0] in CHANGING_BUILTINS or command.words[0].text is None or "cd" in guess):
            self.after(command, guess)
        self.commands.append(command)

    def after(self, command: SimpleCommand, guess: Sequence[str]) -> None:
        """Record what is unknown after a builtin."""
        if "cd" in guess or guess[0] in ("pushd", "popd"):
            self.known["PWD"] = self.known["OLDPWD"] = None
            if self.loops:
                self.unclear("unknown_path", "it changes the folder in a loop", None)
        if (
            guess[0] in ARBITRARY_BUILTINS
            or command.words[0].text is None
            or (
                (guess[0] in ("command", "builtin") and not guess[1:2])
                or (guess[1:2] and guess[1] in ARBITRARY_BUILTINS)
            )
        ):
            self.forget()
        elif guess[0] in CHANGING_BUILTINS - {"cd", "pushd", "popd"}:
            if any(word.text is None for word in command.words):
                self.forget()
            for word in guess[1:]:
                name = word.partition("=")[0].partition("[")[0].lstrip("-").rstrip("+")
                for known in (name, name[1:]):
                    if known in self.known:
                        self.known[known] = None
            if guess[0] in ("read", "mapfile", "readarray", "shift", "set"):
                for name in (*POSITIONAL_NAMES, "REPLY", "MAPFILE"):
                    self.known[name] = None

    def forget(self) -> None:
        """Forget the values of all variables."""
        self.forgotten = True
        for name in self.known:
            self.known[name] = None

    def forget_changed(self, before: Mapping[str, str | None]) -> None:
        """Mark variables that have changed since `before` as unknown."""
        for name, value in self.known.items():
            if before.get(name) != value:
                self.known[name] = None

    def forget_changing(self, node: Node) -> None:
        """Forget, at the start of a loop, the variables that the loop may change."""
        text = self.raw(node)
        for name, value in self.known.items():
            if value is not None and re.search(rf"(?<![$\w{{#!]){re.escape(name)}\b", text):
                self.known[name] = None
        if CHANGES_ANY.search(text):
            self.forget()

    def unset(self, name: str) -> bool:
        """Return True if a variable certainly has no value: neither the host nor the line has set it."""
        return (
            self.environment is not None
            and not self.forgotten
            and name not in self.known
            and name not in self.guesses
            and name not in self.environment
            and name.islower()
        )

    def numeric(self, name: str) -> bool:
        """Return True if a variable certainly holds some number, or nothing."""
        if self.environment is None or name in self.environment:
            return False
        if self.counters is None:
            self.counters = find_number_variables(self.text)
        return name in self.counters

    def computes_with_numbers(self, expression: str) -> bool:
        """Return True if arithmetic holds only numbers and variables that certainly hold a number.

        Any other value could run commands.
        """
        plain = PLAIN_TERMS.fullmatch(expression) is not None and not ASSIGNING_OPERATOR.search(expression)
        return plain and all(map(self.numeric, VARIABLE_NAME.findall(expression)))

    @abstractmethod
    def visit(self, node: Node) -> None:
        """Process a statement."""

    @abstractmethod
    def states(self, node: Node) -> bool:
        """Return True if the node is a statement."""

    @abstractmethod
    def inside(self, node: Node) -> None:
        """Look for commands anywhere below a node that is not understood itself."""

    @abstractmethod
    def loosely(self, node: Node) -> None:
        """Process parts that may run or not, or that run in a subshell."""

    @abstractmethod
    def arithmetic(self, node: Node) -> tuple[int, ...]:
        """Arithmetic: a variable in it can run commands by its value."""

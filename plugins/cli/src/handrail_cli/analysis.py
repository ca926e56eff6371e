"""What a command line for bash consists of: its simple commands with their words, redirections and how they feed each other.

Nothing is judged here. Words are folded as bash would (quotes, escapes, `$'…'`, braces, variables set on the same line); what cannot be known
stays unknown, and whatever is not understood is said in `opaque`. The parse is tree-sitter-bash's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from handrail import Reason
from handrail_cli.commandline import Analysis, Command, Redirect, Word
from handrail_cli.folding import PARAMETER, ansi_c, braces, double_quoted, parameter, unquoted
from handrail_cli.outline import hidden, outline
from handrail_cli.plain import plain

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

MAX_LENGTH = 10_000
MAX_COMMANDS = 200
# Letters that join or nest commands. The parser's time grows faster than their number when they make no sense.
JOINTS = "|&;<(`"
MAX_JOINTS = 600
MAX_DEPTH = 120
# Parts of the parse, and texts of code inside a line, that are looked at.
MAX_NODES = 4_000
MAX_CODES = 40
# Values of a loop's variable that its body is looked at with.
MAX_ROUNDS = 4
# Loops inside each other whose values are tried.
MAX_LOOPS = 2
# Statements looked at, each as often as a loop around it is; letters in one folded value; letters folded in all.
MAX_STEPS = 5_000
MAX_VALUE = 10_000
MAX_FOLDED = 500_000
# Letters of a value that are taken apart by `${name#…}` and its like.
MAX_TRIMMED = 300

# Letters that bash and a reader, or bash and the parser, may take for different things.
STRANGE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\xa0\u1680\u2000-\u200c\u200e\u200f\u2028-\u202f\u205f-\u206f\u3000\ufeff]"
)
NOT_ASCII = re.compile(r"[^\x00-\x7f]")
PIPED = re.compile(r"(?:[^;&|\n]|>&|&>)*\|&?\s*")
GLOB = re.compile(r"(?<!\\)[*?\[]")
# Words that bash takes as they are; most are of this kind.
PLAIN = re.compile(r"[A-Za-z0-9_./:=@%+,-]+")
# Words without letters that would end them, save behind a backslash.
UNJOINED = re.compile(r"(?:[^\\\s;&|()<>]|\\.)*", re.DOTALL)
# `${name:-word}` and its like: the word, where there is no value.
DEFAULTED = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*:?[-=]")
# Patterns of `case` in which nothing is quoted or expanded.
PATTERN = re.compile(r"[\w.*?/:=@%+,-]+", re.ASCII)
SPLIT = "\x1f"
# What stands between words, a continued line among it.
BLANK = " \t\\\n"


def analyse(
    text: str, *, variables: Mapping[str, str] | None = None, environment: Container[str] | None = None
) -> Analysis:
    """The analysis of `text`. `variables` are those whose value is certain (HOME, PWD …), `environment` names all that may have one."""
    if len(text) > MAX_LENGTH:
        return Analysis(text, (), opaque=(Reason("too_long", f"the command is longer than {MAX_LENGTH} characters"),))
    if sum(map(text.count, JOINTS)) > MAX_JOINTS:
        return Analysis(text, (), opaque=(Reason("too_much", "it has more parts than are analysed"),))
    return plain(text) or parsed(text, variables=variables, environment=environment)


def parsed(
    text: str, *, variables: Mapping[str, str] | None = None, environment: Container[str] | None = None
) -> Analysis:
    """The same for any line, however plain."""
    known = {name: value for name, value in (variables or {}).items() if len(value) <= MAX_VALUE}
    walk = _Walk(text, known, environment)
    try:
        walk.program()
    except RecursionError:
        walk.unclear("too_deep", "the command is nested too deeply", None)
    return walk.result()


class Codes:
    """The analyses of code that stands inside one line, each made once: `analyse` within the limits of that line."""

    def __init__(self) -> None:
        self.made: dict[tuple[str, frozenset[tuple[str, str]]], Analysis] = {}

    def analyse(self, text: str, variables: Mapping[str, str]) -> Analysis:
        """The analysis of some code, or one that says that there is too much of it."""
        key = text, frozenset(variables.items())
        if (known := self.made.get(key)) is not None:
            return known
        if len(self.made) >= MAX_CODES:
            return Analysis(text, (), opaque=(Reason("too_much", "it holds more code inside code than is analysed"),))
        self.made[key] = made = analyse(text, variables=variables)
        return made


@lru_cache(maxsize=1)
def _parser() -> Parser:
    import tree_sitter
    import tree_sitter_bash

    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))


@dataclass(slots=True)
class _Piece:
    """A part of a word while it is put together. Whitespace in `guess` that splits the word is SPLIT."""

    text: str | None
    guess: str
    glob: bool = False


class _Walk:
    """One pass over the tree, in the order of the text."""

    def __init__(self, text: str, variables: Mapping[str, str], environment: Container[str] | None) -> None:
        self.text = text
        # The parser looks letters up in tables that end with Latin-1, and crashes beyond. To bash every other letter is a part of a word that
        # can be no part of a name, as a dot is; so places in the parsed text are places in the text.
        self.source = text.encode() if text.isascii() else NOT_ASCII.sub(".", text).encode()
        self.commands: list[Command] = []
        self.pipelines: list[tuple[tuple[int, ...], ...]] = []
        self.functions: dict[str, str] = {}
        # Bodies of functions that are defined, those that are being looked through, and those that never were.
        self.bodies: dict[str, Node] = {}
        self.calling: list[str] = []
        self.uncalled: dict[str, Node] = {}
        self.assigned: list[tuple[str, Word]] = []
        self.opaque: list[Reason] = []
        self.known: dict[str, str | None] = dict(variables)
        self.guesses: dict[str, str] = {}
        # How many constructs stand around that may run their parts not at all, more than once, or in another shell.
        self.loose = 0
        self.depth = 0
        self.loops = 0
        self.steps = 0
        self.folded = 0
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
        self.forgotten = False

    def result(self) -> Analysis:
        return Analysis(
            self.text,
            tuple(self.commands),
            (*self.pipelines, *self.chains()),
            self.functions,
            tuple(self.assigned),
            tuple(self.opaque),
            self.hidden,
        )

    def chains(self) -> Iterator[tuple[tuple[int, ...], ...]]:
        """Commands with nothing but `|` between them. In long lines the parser groups `|` and `&&` wrongly."""
        chain: list[tuple[int, ...]] = []
        for number in range(1, len(self.commands)):
            start, end = self.commands[number - 1].span[1], self.commands[number].span[0]
            if start <= end and PIPED.fullmatch(self.text, start, end):
                chain = [*(chain or [(number - 1,)]), (number,)]
            elif chain:
                yield tuple(chain)
                chain = []
        if chain:
            yield tuple(chain)

    def program(self) -> None:
        if (strange := STRANGE.search(self.text)) is not None:
            self.opaque.append(
                Reason("strange_character", f"it holds the character U+{ord(strange[0]):04X}", strange.span())
            )
        root = _parser().parse(self.source).root_node
        if root.has_error:
            self.unclear("syntax", "it could not be parsed whole", None)
        if root.descendant_count > MAX_NODES:
            self.unclear("too_much", "it has more parts than are analysed", None)
            return
        self.all(root.children)
        self.leftovers()
        self.compare()

    def compare(self) -> None:
        """Say what a reading of the text without the parser sees otherwise, or what of it was not looked at."""
        seen = outline(self.text)
        differs = (
            self.overlong
            or seen.opened != self.walked
            or seen.redirects != self.redirected_at
            or seen.literal != self.literal
            or seen.double != self.quoted
            or seen.comments != self.comments
        )
        if differs or seen.strange is not None:
            self.hidden = tuple(hidden(seen))
            # A value taken apart hides nothing; whatever may run something has to be seen by a person.
            code = "hidden" if differs or self.hidden or "[" in self.text else "expansion"
            self.unclear(code, seen.strange or "parts of it can be read in more than one way", None)

    # Statements

    def all(self, nodes: Sequence[Node]) -> None:
        for node in nodes:
            self.visit(node)

    def visit(self, node: Node) -> None:
        kind = node.type
        if kind in PUNCTUATION:
            return
        handler = STATEMENTS.get(kind)
        if handler is None:
            if node.is_named or node.is_error:
                self.unclear("construct", f"it holds a construct that is not analysed ({kind})", node)
                self.inside(node)
            return
        self.depth += 1
        self.steps += 1
        if (
            self.depth > MAX_DEPTH
            or self.steps > MAX_STEPS
            or self.folded > MAX_FOLDED
            or len(self.commands) > MAX_COMMANDS
        ):
            if not any(reason.code == "too_much" for reason in self.opaque):
                self.unclear("too_much", "it holds more commands, or deeper ones, than are analysed", node)
        else:
            handler(self, node)
        self.depth -= 1

    def inside(self, node: Node) -> None:
        """Look for commands anywhere below a node that is not understood itself."""
        self.loose += 1
        for child in node.children:
            if child.type in STATEMENTS or child.type not in PUNCTUATION:
                if child.type in STATEMENTS:
                    self.visit(child)
                else:
                    self.inside(child)
        self.loose -= 1

    def unclear(self, code: str, text: str, node: Node | None) -> None:
        self.opaque.append(Reason(code, text, self.span(node) if node is not None else None))

    def span(self, node: Node) -> tuple[int, int]:
        """Where a node stands, in characters."""
        return node.start_byte, node.end_byte

    def raw(self, node: Node) -> str:
        return self.text[node.start_byte : node.end_byte]

    def sequence(self, node: Node) -> None:
        """Parts that run one after the other in this shell."""
        self.all(node.children)

    def loosely(self, node: Node) -> None:
        """Parts that may run or not, or in a shell of their own."""
        kind = node.type
        self.loose += 1
        if kind in SUBSTITUTIONS:
            self.walked.add(node.start_byte)
        repeats = kind == "while_statement"
        if repeats:
            self.forget_changing(node)
        self.loops += repeats
        self.all(node.children)
        self.loops -= repeats
        self.loose -= 1

    def list_(self, node: Node) -> None:
        """`a && b || c`, which the parser nests to the left."""
        parts: list[Sequence[Node]] = []
        first = node
        while first.type == "list" and first.children:
            parts.append(first.children[1:])
            first = first.children[0]
        loose = any(child.type == "||" for part in parts for child in part)
        self.loose += loose
        self.visit(first)
        for part in reversed(parts):
            self.all(part)
        self.loose -= loose

    def pipeline(self, node: Node) -> None:
        self.loose += 1
        stages: list[tuple[int, ...]] = []
        for child in node.children:
            if child.type in PUNCTUATION:
                continue
            first = len(self.commands)
            self.visit(child)
            if len(self.commands) > first:
                stages.append(tuple(range(first, len(self.commands))))
        self.loose -= 1
        self.pipelines.append(tuple(stages))

    def function(self, node: Node) -> None:
        name = node.child_by_field_name("name")
        body = node.child_by_field_name("body")
        if name is None or body is None or self.raw(name) in UNSHADOWED:
            self.unclear("function", "it defines a function in an unusual way", node)
            self.inside(node)
            return
        called = self.raw(name)
        if self.functions.get(called, self.raw(body)) != self.raw(body) or self.loose:
            # Which of them a call means depends on what ran before.
            self.unclear("function", "it defines a function that may not be the one that is called", node)
        self.functions[called] = self.raw(body)
        self.bodies[called] = self.uncalled[called] = body
        redirects = [child for child in node.children if child.type in REDIRECTS]
        if redirects:
            self.unclear("redirect", "a function is redirected", node)
            self.add(Command((), (), tuple(map(self.redirect, redirects)), self.span(node)))

    def call(self, name: str, words: Sequence[Word]) -> None:
        """A call of a function of the line: its body, with what it is given."""
        self.uncalled.pop(name, None)
        if name in self.calling or len(self.calling) > MAX_CALLS:
            self.unclear("function", "a function calls itself", None)
            return
        self.calling.append(name)
        outer = {key: self.known.get(key) for key in POSITIONAL}
        for key in POSITIONAL:
            self.known[key] = None
        for number, word in enumerate(words[1:10], 1):
            self.known[str(number)] = None if word.glob else word.text
            self.guesses[str(number)] = word.guess
        if all(word.text is not None and not word.glob for word in words):
            for number in range(len(words), 10):
                self.known[str(number)] = ""
        self.visit(self.bodies[name])
        self.known.update(outer)
        self.calling.pop()

    def leftovers(self) -> None:
        """Functions that nothing called: looked at with nothing known, since something may still."""
        while self.uncalled:
            name, body = self.uncalled.popitem()
            self.loose += 1
            self.forget()
            self.calling.append(name)
            self.visit(body)
            self.calling.pop()
            self.loose -= 1

    def forget(self) -> None:
        """Nothing is known any more of what variables hold."""
        self.forgotten = True
        for name in self.known:
            self.known[name] = None

    def forget_changing(self, node: Node) -> None:
        """What a loop may change is not known in it from the start."""
        text = self.raw(node)
        for name, value in self.known.items():
            if value is not None and re.search(rf"(?<![$\w{{#!]){re.escape(name)}\b", text):
                self.known[name] = None
        if CHANGES_ANY.search(text):
            self.forget()

    def loop(self, node: Node) -> None:
        """`for` and `select`: the body is looked at with the first values."""
        variable = node.child_by_field_name("variable")
        bodies = [child for child in node.children if child.type == "do_group"]
        heads = [child for child in node.children if child.type not in PUNCTUATION and child not in bodies]
        words = [word for head in heads if head != variable for word in self.words_of(head)]
        name = self.raw(variable) if variable is not None else ""
        if node.children and node.children[0].type == "select":
            self.unclear("construct", "it asks for a choice", node)
        self.assigned.append((name, Word(None, "", self.span(node))))
        for body in bodies:
            self.forget_changing(body)
        self.loops += 1
        values = list(dict.fromkeys(words))
        # Each round has its own value as long as nothing in the body can change it.
        sure = len(values) <= MAX_ROUNDS and all(word.text is not None and not word.inner for word in values)
        sure = sure and not any(re.search(rf"(?<![$\w{{]){re.escape(name)}\b", self.raw(body)) for body in bodies)
        sure = sure and not any(CHANGES_ANY.search(self.raw(body)) for body in bodies)
        rounds = MAX_ROUNDS if self.loops <= MAX_LOOPS else 1
        sure = sure and len(values) <= rounds
        for word in values[:rounds] or [Word(None, "", self.span(node))]:
            self.known[name] = word.text if sure else None
            self.guesses[name] = word.guess
            self.patterned = {*self.patterned, name} if word.glob else self.patterned - {name}
            for body in bodies:
                self.loosely(body)
        self.known[name] = None
        self.loops -= 1

    def case(self, node: Node) -> None:
        self.loose += 1
        for child in node.children:
            if child.type == "case_item":
                for part in child.children:
                    if part.type in STATEMENTS:
                        self.visit(part)
                    elif part.type not in PUNCTUATION and not PATTERN.fullmatch(self.raw(part)):
                        self.words_of(part)
            elif child.type not in PUNCTUATION:
                self.words_of(child)
        self.loose -= 1

    def compound(self, node: Node) -> None:
        if node.children and node.children[0].type == "((":
            self.arithmetic(node)
        else:
            self.sequence(node)

    def negated(self, node: Node) -> None:
        self.all(node.children)

    def comment(self, node: Node) -> None:
        """Says nothing to the shell."""
        self.comments.add(self.span(node))

    def assignment(self, node: Node) -> None:
        """`name=value` that stays in the shell."""
        name, word = self.assigned_word(node)
        self.assigned.append((name, word))
        self.guesses[name] = word.guess
        self.known[name] = word.text if self.loose == 0 and node.parent is not None else None

    def assignments(self, node: Node) -> None:
        for child in node.children:
            if child.type == "variable_assignment":
                self.assignment(child)

    def assigned_word(self, node: Node) -> tuple[str, Word]:
        name = self.raw(node.children[0])
        if node.children[0].type == "subscript":
            self.inside(node.children[0])
        value = node.child_by_field_name("value")
        operator = node.children[1].type if len(node.children) > 1 else "="
        if value is None:
            return name, Word("" if operator == "=" else None, "", self.span(node))
        word = self.word(value)
        if node.children[0].type != "variable_name" or (value.type == "array" and "[" in self.raw(value)):
            self.unclear("arithmetic", "it sets a part of a variable, whose number is computed", node)
        plain = operator == "=" and node.children[0].type == "variable_name" and value.type != "array"
        return name, word if plain else Word(None, word.guess, word.span, inner=word.inner)

    def declaration(self, node: Node) -> None:
        """`export`, `declare`, `local`, `unset` …: a command whose words the parser tells apart."""
        words: list[Word] = []
        for child in node.children:
            if child.type == "variable_assignment":
                name, value = self.assigned_word(child)
                self.guesses[name] = value.guess
                self.known[name] = None
                text = None if value.text is None else f"{name}={value.text}"
                words.append(Word(text, f"{name}={value.guess}", self.span(child), inner=value.inner))
            else:
                words.extend(self.words_of(child))
        self.add(Command(tuple(words), (), (), self.span(node)))

    def test(self, node: Node) -> None:
        """`[ … ]`, `[[ … ]]`: a command, whose words matter only for what is substituted in them."""
        opening = self.raw(node.children[0])
        words = [Word(opening, opening, self.span(node.children[0]))]
        words += [word for child in node.children[1:] for word in self.operands(child)]
        self.add(Command(tuple(words), (), (), self.span(node)))

    def operands(self, node: Node) -> list[Word]:
        if node.type in EXPRESSIONS:
            return [word for child in node.children for word in self.operands(child)]
        if node.type == "test_operator" or not node.is_named:
            return [Word(self.raw(node), self.raw(node), self.span(node))]
        if node.type in ("regex", "extglob_pattern"):
            return [Word(None, self.raw(node), self.span(node), inner=self.substituted(node))]
        return self.words_of(node)

    def arithmetic(self, node: Node) -> tuple[int, ...]:
        """Arithmetic: a variable in it can run commands by its value."""
        first = len(self.commands)
        waiting = list(node.children)
        while waiting:
            child = waiting.pop()
            if child.type in ("command_substitution", "process_substitution"):
                self.loosely(child)
            elif child.is_named and child.type not in NUMERIC:
                self.unclear("arithmetic", "it computes with something that is not a number", child)
                waiting.extend(child.children)
            else:
                waiting.extend(child.children)
        return tuple(range(first, len(self.commands)))

    # Simple commands

    def command(self, node: Node, extra: tuple[Redirect, ...] = ()) -> None:
        words: list[Word] = []
        assignments: list[tuple[str, Word]] = []
        redirects: list[Redirect] = []
        before = -1
        for child in node.children:
            kind = child.type
            together = child.start_byte == before and bool(words) and kind not in REDIRECTS
            words += self.between(before, child) if before >= 0 else ()
            before = child.end_byte
            if kind == "variable_assignment":
                assignments.append(self.assigned_word(child))
            elif kind in REDIRECTS:
                redirects.append(self.redirect(child))
            elif kind == "subshell":
                self.unclear("construct", "a group stands where a word belongs", child)
                self.visit(child)
            else:
                found = self.words_of(child.children[0] if kind == "command_name" else child)
                if together and found:
                    # `'r'\\m` is one word that the parser takes for two.
                    self.unclear("word", "two of its words stand together", child)
                    found[0] = _together(words.pop(), found[0])
                words.extend(found)
        redirects = [*redirects, *extra]
        if words and self.bodies and words[0].text in self.bodies:
            self.called(words, assignments, redirects, node)
        else:
            self.add(Command(tuple(words), tuple(assignments), tuple(redirects), self.span(node)))

    def called(
        self, words: Sequence[Word], assignments: Sequence[tuple[str, Word]], redirects: Sequence[Redirect], node: Node
    ) -> None:
        first = len(self.commands)
        self.call(words[0].text or "", words)
        if assignments:
            self.add(Command((), tuple(assignments), (), self.span(node)))
            self.unclear("variable", "it sets variables for a function", node)
        self.give(redirects, first)
        if redirects or len(self.commands) == first:
            self.add(Command((), (), tuple(redirects), self.span(node)))

    def add(self, command: Command) -> None:
        guess = command.guess
        if guess and (guess[0] in CHANGING or command.words[0].text is None or "cd" in guess):
            self.after(command, guess)
        self.commands.append(command)

    def after(self, command: Command, guess: Sequence[str]) -> None:
        """What a builtin leaves unknown."""
        if "cd" in guess or guess[0] in ("pushd", "popd"):
            self.known["PWD"] = self.known["OLDPWD"] = None
            if self.loops:
                self.unclear("unknown_path", "it changes the folder in a loop", None)
        if (
            guess[0] in ANYTHING
            or command.words[0].text is None
            or ((guess[0] in ("command", "builtin") and not guess[1:2]) or (guess[1:2] and guess[1] in ANYTHING))
        ):
            self.forget()
        elif guess[0] in CHANGING - {"cd", "pushd", "popd"}:
            if any(word.text is None for word in command.words):
                self.forget()
            for word in guess[1:]:
                name = word.partition("=")[0].partition("[")[0].lstrip("-").rstrip("+")
                for known in (name, name[1:]):
                    if known in self.known:
                        self.known[known] = None
            if guess[0] in ("read", "mapfile", "readarray", "shift", "set"):
                for name in (*POSITIONAL, "REPLY", "MAPFILE"):
                    self.known[name] = None

    def redirected(self, node: Node) -> None:
        """A statement with redirections: they are given to every command in it."""
        redirects: list[Redirect] = []
        bodies: list[Node] = []
        later: list[Node] = []
        stray: list[Word] = []
        at = node.start_byte
        for child in node.children:
            stray += self.between(at, child)
            at = child.end_byte
            if child.type in REDIRECTS:
                redirects.append(self.redirect(child, later, stray, redirects))
            else:
                bodies.append(child)
        first = len(self.commands)
        if not bodies:
            self.add(Command((), (), tuple(redirects), self.span(node)))
        for body in bodies:
            if body.type == "command":
                self.command(body, tuple(redirects))
            else:
                self.visit(body)
                if len(self.commands) == first:
                    self.add(Command((), (), tuple(redirects), self.span(node)))
                self.give(redirects, first)
        if stray and self.bodies:
            self.unclear("redirect", "a function may be redirected with words behind it", node)
        if stray and len(self.commands) > first:
            last = self.commands[-1]
            self.commands[-1] = Command((*last.words, *stray), last.assignments, last.redirects, last.span)
        if later:
            self.continued(tuple(range(first, len(self.commands))), later)

    def between(self, at: int, node: Node) -> list[Word]:
        """The words that the parser left out in front of a node: a lone `-` before a here-document."""
        gap = self.text[at : node.start_byte]
        if not gap.strip(BLANK):
            return []
        if gap.strip(BLANK) != "-":
            self.unclear("syntax", "something in it is passed over", node)
        return [Word("-", "-", (at, node.start_byte))]

    def give(self, redirects: Sequence[Redirect], first: int) -> None:
        """Give redirections to all commands from the number `first` on."""
        for number in range(first, len(self.commands)) if redirects else ():
            old = self.commands[number]
            self.commands[number] = Command(old.words, old.assignments, (*old.redirects, *redirects), old.span)

    def continued(self, before: tuple[int, ...], later: Sequence[Node]) -> None:
        """What stands on the line of a here-document behind it: `cat <<E | sh`, `cat <<E && ls`."""
        self.loose += 1
        for node in later:
            first = len(self.commands)
            if node.type == "pipeline":
                stages = [before]
                for child in node.children:
                    if child.type not in PUNCTUATION:
                        at = len(self.commands)
                        self.visit(child)
                        stages.append(tuple(range(at, len(self.commands))))
                self.pipelines.append(tuple(stages))
            else:
                self.visit(node)
            before = tuple(range(first, len(self.commands)))
        self.loose -= 1

    def redirect(
        self,
        node: Node,
        later: list[Node] | None = None,
        stray: list[Word] | None = None,
        more: list[Redirect] | None = None,
    ) -> Redirect:
        """One redirection. What the parser puts into it though it stands behind it goes to `later`, `stray` and `more`."""
        operator, fd = "", ""
        targets: list[Word] = []
        body: Word | None = None
        for child in node.children:
            kind = child.type
            if kind == "file_descriptor":
                fd = self.raw(child)
            elif kind in OPERATORS:
                operator += kind
                self.redirected_at.add(child.start_byte)
            elif kind == "heredoc_start":
                if not self.raw(child).isascii():
                    self.unclear("syntax", "a here-document ends with letters that the parser cannot tell apart", child)
            elif kind == "heredoc_body":
                body = self.heredoc(child)
            elif kind == "heredoc_end":
                pass
            elif kind in REDIRECTS:
                nested = self.redirect(child, later, stray, more)
                if more is not None and node.type == "heredoc_redirect":
                    more.append(nested)
                else:
                    self.unclear("redirect", "redirections are nested", child)
            elif kind in STATEMENTS:
                (later if later is not None else []).append(child)
                if later is None:
                    self.visit(child)
            elif node.type == "heredoc_redirect" and kind in PUNCTUATION:
                pass
            elif child.is_error:
                self.unclear("syntax", "a redirection could not be parsed", child)
            else:
                targets.extend(self.words_of(child))
        if node.type == "herestring_redirect":
            return Redirect("<<<", None, fd, targets[0] if len(targets) == 1 else None)
        if node.type == "heredoc_redirect":
            (stray if stray is not None else []).extend(targets)
            return Redirect("<<", None, fd, body or Word("", "", self.span(node)))
        if len(targets) > 1 and stray is not None:
            # `> file word`: the parser takes words behind the target for more targets; they are the command's.
            stray.extend(targets[1:])
        return Redirect(operator, targets[0] if targets else None, fd)

    def heredoc(self, node: Node) -> Word:
        pieces = self.filled(node, lambda text: text)
        return self.join(node, pieces)[0]

    # Words

    def words_of(self, node: Node) -> list[Word]:
        """The words that one node becomes: more than one by braces or by splitting, none for punctuation."""
        kind = node.type
        if kind == "word":
            start, end = node.start_byte, node.end_byte
            if PLAIN.fullmatch(raw := self.text[start:end]):
                return [Word(raw, raw, (start, end))]
        elif not node.is_named:
            text = self.raw(node)
            return [Word(text, text, self.span(node))] if node.type in NAMED_BY_TEXT else []
        first = len(self.commands)
        return self.join(node, self.pieces(node), first)

    def word(self, node: Node) -> Word:
        words = self.words_of(node)
        if len(words) == 1:
            return words[0]
        guess = " ".join(word.guess for word in words)
        return Word(None, guess, self.span(node), inner=tuple(n for word in words for n in word.inner))

    def join(self, node: Node, pieces: Sequence[_Piece], first: int | None = None) -> list[Word]:
        inner = tuple(range(first, len(self.commands))) if first is not None else ()
        # The parser does not always see the variable in `rm$IFS-rf`.
        guess = "".join(piece.guess for piece in pieces).replace("$IFS", SPLIT)
        self.folded += len(guess)
        if len(guess) > MAX_VALUE:
            return [Word(None, guess[:MAX_VALUE], self.span(node), True, inner)]
        texts = [piece.text for piece in pieces]
        text = None if None in texts else "".join(part for part in texts if part is not None)
        glob = any(piece.glob for piece in pieces)
        span = self.span(node)
        if glob and "{" in guess and (many := braces(guess)) is not None:
            return [Word(part if text is not None else None, part, span, _has_glob(part), inner) for part in many]
        if glob and text is not None and not GLOB.search(text) and "," not in text and ".." not in text:
            glob = False
        if SPLIT in guess:
            return [Word(None, part, span, glob, inner) for part in guess.split(SPLIT) if part]
        return [Word(text, guess, span, glob, inner, node.type == "process_substitution")]

    def pieces(self, node: Node) -> list[_Piece]:
        handler = PIECES.get(node.type)
        if handler is not None:
            return handler(self, node)
        self.unclear("word", f"it holds a word that is not analysed ({node.type})", node)
        self.inside(node)
        return [_Piece(None, self.raw(node), glob=True)]

    def bare(self, node: Node) -> list[_Piece]:
        raw = self.raw(node)
        if not UNJOINED.fullmatch(raw):
            self.overlong = True
        text = unquoted(raw) if "\\" in raw else raw
        glob = GLOB.search(raw) is not None or "{" in raw
        if raw.startswith("~"):
            user, slash, rest = text[1:].partition("/")
            home = self.known.get("HOME")
            if home is None or user in ("+", "-") or not _first_in_word(node):
                return [_Piece(None, text, glob)]
            start = home if not user else f"{home.rpartition('/')[0]}/{user}"
            text = f"{start}{slash}{rest}"
        return [_Piece(text, text, glob)]

    def single(self, node: Node) -> list[_Piece]:
        self.literal.add(self.span(node))
        text = self.raw(node)[1:-1]
        return [_Piece(text, text)]

    def ansi(self, node: Node) -> list[_Piece]:
        self.literal.add(self.span(node))
        text = ansi_c(self.raw(node)[2:-1])
        return [_Piece(text, text)]

    def double(self, node: Node) -> list[_Piece]:
        raw = self.raw(node)
        self.quoted.add(self.span(node))
        if "$" not in raw and "`" not in raw:
            text = double_quoted(raw[1:-1])
            return [_Piece(text, text)]
        return self.filled(node, double_quoted, quotes=True)

    def filled(self, node: Node, fold: Callable[[str], str], *, quotes: bool = False) -> list[_Piece]:
        """The pieces of quoted text: expansions, and everything between them, whether the parser has a node for it or not."""
        pieces: list[_Piece] = []
        at = node.start_byte + quotes
        end = node.end_byte - quotes

        def plain(upto: int) -> None:
            if upto > at:
                text = fold(self.text[at:upto])
                pieces.append(_Piece(text, text))

        for child in node.children:
            if child.type in PIECES and child.type in EXPANDING:
                plain(child.start_byte)
                pieces.extend(_Piece(p.text, p.guess.replace(SPLIT, " "), p.glob) for p in self.pieces(child))
                at = child.end_byte
        plain(end)
        return pieces

    def joined(self, node: Node) -> list[_Piece]:
        """Parts without a space between them, and what the parser leaves out between them."""
        pieces: list[_Piece] = []
        at = node.start_byte
        for child in node.children:
            if child.start_byte > at:
                gap = self.text[at : child.start_byte]
                pieces.append(_Piece(None, gap))
            pieces.extend(self.pieces(child))
            at = child.end_byte
        raw = self.raw(node)
        if "{" in raw and pieces:
            pieces[0].glob = True
        return pieces

    def variable(self, node: Node) -> list[_Piece]:
        """`$name` and `${name}`."""
        name = self.raw(node).strip("${}")
        quoted = node.parent is not None and node.parent.type in ("string", "heredoc_body")
        if name in self.known and (value := self.known[name]) is not None:
            if name in self.patterned:
                return [_Piece(value, value, glob=True)]
            if quoted or not any(letter in value for letter in " \t\n*?[\\"):
                return [_Piece(value, value)] if value or quoted else [_Piece("", "", glob=False)]
            return [_Piece(None, SPLIT.join(value.split()), glob=True)]
        if name == "IFS":
            return [_Piece(None, " " if quoted else SPLIT)]
        guess = self.guesses.get(name, "")
        return [_Piece(None, guess if quoted else SPLIT.join(guess.split()), glob=not quoted)]

    def expansion(self, node: Node) -> list[_Piece]:
        """`${…}`: a variable, with what is taken from its value or put in its place."""
        raw = self.raw(node)
        if re.fullmatch(r"\$\{[A-Za-z_0-9]\w*\}", raw, re.ASCII):
            return self.variable(node)
        if "@P" in raw or raw.startswith("${!"):
            self.unclear("indirect", "it takes a command or a name out of a variable", node)
        plain = PARAMETER.fullmatch(raw)
        if plain is not None:
            name, operator, word = plain.groups()
            quoted = node.parent is not None and node.parent.type in ("string", "heredoc_body")
            text = self.known.get(name)
            if text is None and self.unset(name):
                text = ""
            value = None if text is None or len(text) > MAX_TRIMMED else parameter(text, operator, word)
            guess = parameter(self.guesses.get(name, "")[:MAX_TRIMMED], operator, word) if value is None else value
            if value is not None and (quoted or not any(letter in value for letter in " \t\n*?[\\")):
                return [_Piece(value, value)]
            return [_Piece(None, guess if quoted else SPLIT.join(guess.split()), glob=not quoted)]
        default = DEFAULTED.match(raw)
        if default is None:
            self.inside(node)
            return [_Piece(None, "", glob=True)]
        words = [child for child in node.children if child.type in PIECES][1:]
        guess = "".join(piece.guess for word in words for piece in self.pieces(word))
        if "=" in default[0]:
            name = default[0][2:].rstrip(":=-")
            self.known[name] = None
            self.guesses[name] = guess
            self.assigned.append((name, Word(None, guess, self.span(node))))
        return [_Piece(None, guess, glob=True)]

    def unset(self, name: str) -> bool:
        """Whether a variable certainly has no value: neither the host nor the line has set it."""
        return (
            self.environment is not None
            and not self.forgotten
            and name not in self.known
            and name not in self.guesses
            and name not in self.environment
            and name.islower()
        )

    def substitution(self, node: Node) -> list[_Piece]:
        """`$(…)` and backquotes: what they print is not known."""
        first = len(self.commands)
        self.loosely(node)
        from handrail_cli.producing import constant_output

        guess = constant_output(self.commands[first:]) or ""
        quoted = node.parent is not None and node.parent.type in ("string", "heredoc_body")
        return [_Piece(None, guess if quoted else SPLIT.join(guess.split()), glob=not quoted)]

    def process(self, node: Node) -> list[_Piece]:
        self.loosely(node)
        return [_Piece("/dev/fd/63", "/dev/fd/63")]

    def number(self, node: Node) -> list[_Piece]:
        """`$((…))`: some number."""
        self.arithmetic(node)
        return [_Piece(None, "0")]

    def range(self, node: Node) -> list[_Piece]:
        """`{1..5}`: some numbers, which are told apart when the word is put together."""
        raw = self.raw(node)
        if not RANGE.fullmatch(raw):
            self.unclear("word", "it holds a word that is not analysed (brace_expression)", node)
            self.inside(node)
            return [_Piece(None, raw, glob=True)]
        return [_Piece(raw, raw, glob=True)]

    def array(self, node: Node) -> list[_Piece]:
        guesses = [word.guess for child in node.children for word in self.words_of(child)]
        return [_Piece(None, SPLIT.join(guesses))]

    def substituted(self, node: Node) -> tuple[int, ...]:
        first = len(self.commands)
        self.inside(node)
        return tuple(range(first, len(self.commands)))


def _together(one: Word, other: Word) -> Word:
    text = None if one.text is None or other.text is None else one.text + other.text
    span = (one.span[0], other.span[1])
    return Word(text, one.guess + other.guess, span, one.glob or other.glob, (*one.inner, *other.inner))


def _first_in_word(node: Node) -> bool:
    parent = node.parent
    return parent is None or parent.type != "concatenation" or parent.children[0] == node


def _has_glob(text: str) -> bool:
    return GLOB.search(text) is not None


# Few enough numbers, without a step.
RANGE = re.compile(r"\{\d{1,2}\.\.\d{1,2}\}", re.ASCII)
# Builtins that change variables, and those that may change any.
CHANGING = frozenset((
    "cd", "pushd", "popd", "read", "mapfile", "readarray", "printf", "let", "getopts", "unset", "export", "declare", "typeset", "local", "readonly",
    "eval", "source", ".", "trap", "shift", "set", "wait", "command", "builtin", "enable", "alias", "coproc",
))  # fmt: skip
ANYTHING = frozenset(("eval", "source", ".", "trap", "enable", "alias"))
CHANGES_ANY = re.compile(
    r"\b(eval|source|trap|read|mapfile|readarray|getopts|declare|typeset|unset|let|enable|printf\s+-v|shift)\b"
    r"|(^|[\s;&|(])\.\s|\(\(|\$\[|[$]\{[^}]*:?="
)
POSITIONAL = tuple("123456789")
# Names that a function of the line may not have without a question: what such a builtin does is followed by its name.
UNSHADOWED = CHANGING | {"exec", "test", "[", "echo", "true", "false", ":"}
MAX_CALLS = 8

PUNCTUATION = frozenset((
    ";", "&", "&&", "||", "|", "|&", "\n", "(", ")", "{", "}", "$(", "`", "<(", ">(", "!", '"', "$", "${", "then",
    "else", "fi", "if", "elif", "do", "done", "for", "while", "until", "in", "case", "esac", ";;", ";&", ";;&",
    "select", "function", "((", "))", "[[", "]]", "$((", ")", "[", "]", "<<", "<<-", "heredoc_start", "heredoc_end",
))  # fmt: skip
OPERATORS = frozenset((
    ">", ">>", "<", "<>", ">|", "&>", "&>>", ">&", "<&", ">&-", "<&-", "<<", "<<-", "<<<",
))  # fmt: skip
REDIRECTS = frozenset(("file_redirect", "heredoc_redirect", "herestring_redirect"))
EXPRESSIONS = frozenset(("unary_expression", "binary_expression", "parenthesized_expression", "negated_expression"))
NUMERIC = frozenset(
    ("number", "binary_expression", "unary_expression", "parenthesized_expression", "ternary_expression")
)  # fmt: skip
SUBSTITUTIONS = frozenset(("command_substitution", "process_substitution"))
EXPANDING = frozenset(
    ("simple_expansion", "expansion", "command_substitution", "arithmetic_expansion", "process_substitution")
)  # fmt: skip
# Keywords that stand for a program and have no node of their own kind.
NAMED_BY_TEXT = frozenset((
    "declare", "typeset", "export", "readonly", "local", "unset", "unsetenv", "==", "=~",
))  # fmt: skip

STATEMENTS: Mapping[str, Callable[[_Walk, Node], None]] = {
    "program": _Walk.sequence,
    "list": _Walk.list_,
    "pipeline": _Walk.pipeline,
    "command": _Walk.command,
    "redirected_statement": _Walk.redirected,
    "subshell": _Walk.loosely,
    "compound_statement": _Walk.compound,
    "negated_command": _Walk.negated,
    "if_statement": _Walk.loosely,
    "elif_clause": _Walk.loosely,
    "else_clause": _Walk.loosely,
    "while_statement": _Walk.loosely,
    "do_group": _Walk.loosely,
    "for_statement": _Walk.loop,
    "case_statement": _Walk.case,
    "function_definition": _Walk.function,
    "test_command": _Walk.test,
    "declaration_command": _Walk.declaration,
    "unset_command": _Walk.declaration,
    "variable_assignment": _Walk.assignment,
    "variable_assignments": _Walk.assignments,
    "comment": _Walk.comment,
    "command_substitution": _Walk.loosely,
    "process_substitution": _Walk.loosely,
}
PIECES: Mapping[str, Callable[[_Walk, Node], list[_Piece]]] = {
    "word": _Walk.bare,
    "variable_name": _Walk.bare,
    "special_variable_name": _Walk.bare,
    "number": _Walk.bare,
    "raw_string": _Walk.single,
    "ansi_c_string": _Walk.ansi,
    "string": _Walk.double,
    "concatenation": _Walk.joined,
    "simple_expansion": _Walk.variable,
    "expansion": _Walk.expansion,
    "command_substitution": _Walk.substitution,
    "process_substitution": _Walk.process,
    "arithmetic_expansion": _Walk.number,
    "array": _Walk.array,
    "brace_expression": _Walk.range,
}

"""Statements: simple commands, and what runs them once, more than once or not at all."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from handrail_cli.shell.bash.arithmetic import LENGTH_EXPANSION, NUMBER, iter_assigned_names
from handrail_cli.shell.bash.parse_state import CHANGES_ANY, CHANGING_BUILTINS, POSITIONAL_NAMES
from handrail_cli.shell.bash.redirect_reader import PUNCTUATION, REDIRECT_NODES, RedirectReader, TrailingParts
from handrail_cli.shell.bash.syntax import ShellRedirect, ShellWord, SimpleCommand

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_COMMANDS = 200
MAX_DEPTH = 120
# Values of a loop's variable that its body is looked at with.
MAX_ROUNDS = 4
# Loops inside each other whose values are tried.
MAX_LOOPS = 2
# Statements looked at, each as often as a loop around it is; letters folded in all.
MAX_STEPS = 5_000
MAX_FOLDED = 500_000
MAX_CALLS = 8
# Patterns of `case` in which nothing is quoted or expanded.
PLAIN_PATTERN = re.compile(r"[\w.*?/:=@%+,-]+", re.ASCII)
EXPRESSIONS = frozenset(("unary_expression", "binary_expression", "parenthesized_expression", "negated_expression"))
NUMERIC = frozenset(
    (
        "number", "binary_expression", "unary_expression", "postfix_expression", "parenthesized_expression", "ternary_expression",
        "variable_assignment",
    )
)  # fmt: skip
# Options of `declare` and its like by which an assignment does nothing, or sets something else.
PECULIAR_OPTION = re.compile(r"-\w*[rluinc]\w*", re.ASCII)
SUBSTITUTIONS = frozenset(("command_substitution", "process_substitution"))
# Names that a function of the line may not have without a question: what such a builtin does is followed by its name.
UNSHADOWED_NAMES = CHANGING_BUILTINS | {"exec", "test", "[", "echo", "true", "false", ":"}


class StatementReader(RedirectReader):
    """The part of the pass that reads what is run."""

    def all(self, nodes: Sequence[Node]) -> None:
        for number, node in enumerate(nodes):
            # What runs in the background does so in a shell of its own.
            apart = len(nodes) > number + 1 and nodes[number + 1].type == "&"
            self.loose += apart
            self.visit(node)
            self.loose -= apart

    def visit(self, node: Node) -> None:
        kind = node.type
        if kind in PUNCTUATION:
            return
        handler = STATEMENT_READERS.get(kind)
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

    def states(self, node: Node) -> bool:
        return node.type in STATEMENT_READERS

    def inside(self, node: Node) -> None:
        """Look for commands anywhere below a node that is not understood itself."""
        self.loose += 1
        for child in node.children:
            if child.type in STATEMENT_READERS or child.type not in PUNCTUATION:
                if child.type in STATEMENT_READERS:
                    self.visit(child)
                else:
                    self.inside(child)
        self.loose -= 1

    def sequence(self, node: Node) -> None:
        """Process parts that run one after the other in this shell."""
        self.all(node.children)

    def loosely(self, node: Node) -> None:
        """Process parts that may run or not, or that run in a subshell."""
        kind = node.type
        self.loose += 1
        if kind in SUBSTITUTIONS:
            self.walked.add(self.start(node))
        repeats = kind == "while_statement"
        if repeats:
            self.forget_changing(node)
        self.loops += repeats
        self.all(node.children)
        self.loops -= repeats
        self.loose -= 1

    def list_(self, node: Node) -> None:
        """Process `a && b || c`, which the parser nests to the left."""
        parts: list[Sequence[Node]] = []
        first = node
        while first.type == "list" and first.children:
            parts.append(first.children[1:])
            first = first.children[0]
        loose = any(child.type == "||" for part in parts for child in part)
        self.loose += loose
        self.visit(first)
        # The rest runs only if the first succeeds: what it sets is known to the end of the list and not behind it.
        before, functions = dict(self.known), len(self.functions)
        for part in reversed(parts):
            self.all(part)
        self.forget_changed(before)
        if len(self.functions) > functions:
            self.unclear("function", "it defines a function that may not be the one that is called", node)
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
        # To bash `f() [ … ]` is no function.
        compound = body is not None and (body.type != "test_command" or self.raw(body).startswith("[["))
        if name is None or body is None or not compound or self.raw(name) in UNSHADOWED_NAMES:
            self.unclear("function", "it defines a function in an unusual way", node)
            self.inside(node)
            return
        called = self.raw(name)
        if self.functions.get(called, self.raw(body)) != self.raw(body) or self.loose:
            # Which of them a call means depends on what ran before.
            self.unclear("function", "it defines a function that may not be the one that is called", node)
        self.functions[called] = self.raw(body)
        self.bodies[called] = self.uncalled[called] = body
        redirects = [child for child in node.children if child.type in REDIRECT_NODES]
        if redirects:
            self.unclear("redirect", "a function is redirected", node)
            self.add(SimpleCommand((), (), tuple(map(self.redirect, redirects)), self.span(node)))

    def call(self, name: str, words: Sequence[ShellWord]) -> None:
        """Process a call of a function of the line: its body, with the call's arguments."""
        self.uncalled.pop(name, None)
        if name in self.calling or len(self.calling) > MAX_CALLS:
            self.unclear("function", "a function calls itself", None)
            return
        self.calling.append(name)
        outer = {key: self.known.get(key) for key in POSITIONAL_NAMES}
        for key in POSITIONAL_NAMES:
            self.known[key] = None
        for number, word in enumerate(words[1:10], 1):
            self.known[str(number)] = None if word.glob else word.text
            self.guesses[str(number)] = word.guess
        if all(word.text is not None and not word.glob for word in words):
            for number in range(len(words), 10):
                self.known[str(number)] = ""
        before = dict(self.known)
        self.visit(self.bodies[name])
        # What a function sets may be its own, or be set only in a part of it that was not run.
        self.forget_changed(before)
        self.known.update(outer)
        self.calling.pop()

    def leftovers(self) -> None:
        """Process functions that were never called, with no variables known, because something may still call them."""
        while self.uncalled:
            name, body = self.uncalled.popitem()
            self.loose += 1
            self.forget()
            self.calling.append(name)
            self.visit(body)
            self.calling.pop()
            self.loose -= 1

    def loop(self, node: Node) -> None:
        """Process `for` and `select`: the body is processed with the first values."""
        variable = node.child_by_field_name("variable")
        bodies = [child for child in node.children if child.type == "do_group"]
        heads = [child for child in node.children if child.type not in PUNCTUATION and child not in bodies]
        words = [word for head in heads if head != variable for word in self.words_of(head)]
        name = self.raw(variable) if variable is not None else ""
        if node.children and node.children[0].type == "select":
            self.unclear("construct", "it asks for a choice", node)
        self.assigned.append((name, ShellWord(None, "", self.span(node))))
        for body in bodies:
            self.forget_changing(body)
        self.loops += 1
        values = list(dict.fromkeys(words))
        # Each round has its own value as long as nothing in the body can change it.
        sure = len(values) <= MAX_ROUNDS and all(word.text is not None and not word.inner for word in values)
        sure = sure and not any(re.search(rf"(?<![$\w{{]){re.escape(name)}\b", self.raw(body)) for body in bodies)
        sure = sure and not any(CHANGES_ANY.search(self.raw(body)) for body in bodies)
        rounds = MAX_ROUNDS if self.loops <= MAX_LOOPS else 1
        sure = sure and len(values) <= rounds and name not in self.peculiar
        for word in values[:rounds] or [ShellWord(None, "", self.span(node))]:
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
                    if part.type in STATEMENT_READERS:
                        self.visit(part)
                    elif part.type not in PUNCTUATION and not PLAIN_PATTERN.fullmatch(self.raw(part)):
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
        if not self.text[node.start_byte + 1 : node.start_byte + 2].isspace():
            # To bash `!x` is a word.
            self.unclear("syntax", "a `!` is no word of its own", node)
        self.all(node.children)

    def comment(self, node: Node) -> None:
        """Record a comment, which has no effect on the shell."""
        self.comments.add(self.span(node))

    def assignment(self, node: Node) -> None:
        """Process `name=value` that stays in the shell."""
        name, word = self.assigned_word(node)
        self.assigned.append((name, word))
        self.guesses[name] = word.guess
        if (whole := name.partition("[")[0]) != name:
            # `x[0]` is what `$x` stands for.
            self.known[whole] = None
        sure = self.loose == 0 and node.parent is not None and name not in self.peculiar
        self.known[name] = word.text if sure else None

    def assignments(self, node: Node) -> None:
        for child in node.children:
            if child.type == "variable_assignment":
                self.assignment(child)

    def assigned_word(self, node: Node) -> tuple[str, ShellWord]:
        name = self.raw(node.children[0])
        if node.children[0].type == "subscript":
            self.inside(node.children[0])
        value = node.child_by_field_name("value")
        operator = node.children[1].type if len(node.children) > 1 else "="
        listed = value is not None and value.type == "array" and "[" in self.raw(value)
        if listed or self.computed_index(node.children[0]):
            self.unclear("arithmetic", "it sets a part of a variable, whose number is computed", node)
        if value is None:
            return name, ShellWord("" if operator == "=" else None, "", self.span(node))
        word = self.word(value)
        plain = operator == "=" and node.children[0].type == "variable_name" and value.type != "array"
        if plain:
            return name, word
        return name, ShellWord(
            None, word.guess, word.span, inner=word.inner, start="(" if value.type == "array" else ""
        )

    def computed_index(self, target: Node) -> bool:
        """Return True if an assignment's element is not certainly named by a number: `a[x]=1` runs what `x` holds."""
        if target.type == "variable_name":
            return False
        subscript = self.raw(target).partition("[")[2].removesuffix("]")
        return target.type != "subscript" or not subscript or not self.computes_with_numbers(subscript)

    def declaration(self, node: Node) -> None:
        """Process `export`, `declare`, `local`, `unset` …: a command whose words the parser separates."""
        if node.type == "unset_command" and self.functions:
            self.unclear("function", "it may take away a function that is called", node)
        words: list[ShellWord] = []
        for child in node.children:
            if child.type == "variable_assignment":
                name, value = self.assigned_word(child)
                self.guesses[name] = value.guess
                self.known[name] = None
                text = None if value.text is None else f"{name}={value.text}"
                start = "" if text is not None else f"{name}={value.start}"
                words.append(ShellWord(text, f"{name}={value.guess}", self.span(child), inner=value.inner, start=start))
            else:
                words.extend(self.words_of(child))
        if any(word.guess == "readonly" or PECULIAR_OPTION.fullmatch(word.guess) for word in words):
            self.peculiar |= {word.guess.partition("=")[0].removesuffix("+") for word in words}
        self.add(SimpleCommand(tuple(words), (), (), self.span(node)))

    def test(self, node: Node) -> None:
        """Process `[ … ]` and `[[ … ]]` as a command, whose words matter only for the substitutions in them."""
        opening = self.raw(node.children[0])
        words = [ShellWord(opening, opening, self.span(node.children[0]))]
        words += [word for child in node.children[1:] for word in self.operands(child)]
        if opening == "[" and self.joins(node):
            # To bash `[ a || b ]` is the commands `[ a` and `b ]`.
            self.unclear("construct", "it joins commands inside `[ … ]`", node)
        self.add(SimpleCommand(tuple(words), (), (), self.span(node)))

    def joins(self, node: Node) -> bool:
        """Return True if the parser has taken `||` or `&&` for a part of an expression."""
        return any(
            child.type in ("||", "&&") or (child.type in EXPRESSIONS and self.joins(child)) for child in node.children
        )

    def operands(self, node: Node) -> list[ShellWord]:
        if node.type in EXPRESSIONS:
            return [word for child in node.children for word in self.operands(child)]
        if node.type == "test_operator" or not node.is_named:
            return [ShellWord(self.raw(node), self.raw(node), self.span(node))]
        if node.type in ("regex", "extglob_pattern"):
            return [ShellWord(None, self.raw(node), self.span(node), inner=self.substituted(node))]
        return self.words_of(node)

    def counting(self, node: Node) -> None:
        """Process `for ((…; …; …))`."""
        bodies = [child for child in node.children if child.type in ("do_group", "compound_statement")]
        self.arithmetic(node, [child for child in node.children if child not in bodies])
        for body in bodies:
            self.forget_changing(body)
        self.loops += 1
        for body in bodies:
            self.loosely(body)
        self.loops -= 1

    def arithmetic(self, node: Node, parts: Sequence[Node] | None = None) -> tuple[int, ...]:
        """Arithmetic: a variable in it can run commands by its value."""
        first = len(self.commands)
        waiting = list(node.children if parts is None else parts)
        while waiting:
            child = waiting.pop()
            if child.type in ("command_substitution", "process_substitution"):
                self.loosely(child)
                continue
            if child.is_named and child.type not in NUMERIC:
                if self.counts(child):
                    continue
                self.unclear("arithmetic", "it computes with something that is not a number", child)
            waiting.extend(child.children)
        for name in iter_assigned_names(self.raw(node)) if parts is None else ():
            self.known[name] = None
        return tuple(range(first, len(self.commands)))

    def counts(self, node: Node) -> bool:
        """Return True if a part of arithmetic is certainly a number."""
        raw = self.raw(node)
        if NUMBER.fullmatch(raw) or LENGTH_EXPANSION.fullmatch(raw):
            return True
        return self.numeric(raw.removeprefix("${").removeprefix("$").removesuffix("}"))

    def command(self, node: Node, extra: tuple[ShellRedirect, ...] = ()) -> None:
        words: list[ShellWord] = []
        assignments: list[tuple[str, ShellWord]] = []
        redirects: list[ShellRedirect] = []
        before = -1
        for child in node.children:
            kind = child.type
            together = child.start_byte == before and bool(words) and kind not in REDIRECT_NODES
            words += self.between(before, child) if before >= 0 else ()
            if before >= 0 and "\n" in self.text[before : child.start_byte].replace("\\\n", ""):
                self.unclear("syntax", "a command goes on behind its line", child)
            before = child.end_byte
            if kind == "variable_assignment":
                assignments.append(self.assigned_word(child))
            elif kind in REDIRECT_NODES:
                redirects.append(self.redirect(child))
            elif kind == "subshell":
                self.unclear("construct", "a group stands where a word belongs", child)
                self.visit(child)
            else:
                found = self.words_of(child.children[0] if kind == "command_name" else child)
                if together and found:
                    # `'r'\\m` is one word that the parser takes for two.
                    self.unclear("word", "two of its words stand together", child)
                    found[0] = _join_words(words.pop(), found[0])
                words.extend(found)
        redirects = [*redirects, *extra]
        if words and self.bodies and words[0].text in self.bodies:
            self.called(words, assignments, redirects, node)
        else:
            self.add(SimpleCommand(tuple(words), tuple(assignments), tuple(redirects), self.span(node)))

    def called(
        self,
        words: Sequence[ShellWord],
        assignments: Sequence[tuple[str, ShellWord]],
        redirects: Sequence[ShellRedirect],
        node: Node,
    ) -> None:
        first = len(self.commands)
        self.call(words[0].text or "", words)
        if assignments:
            self.add(SimpleCommand((), tuple(assignments), (), self.span(node)))
            self.unclear("variable", "it sets variables for a function", node)
        self.give(redirects, first)
        if redirects or len(self.commands) == first:
            self.add(SimpleCommand((), (), tuple(redirects), self.span(node)))

    def redirected(self, node: Node) -> None:
        """Process a statement with redirections, which apply to every command in it."""
        redirects: list[ShellRedirect] = []
        bodies: list[Node] = []
        later: list[Node] = []
        stray: list[ShellWord] = []
        at = node.start_byte
        for child in node.children:
            stray += self.between(at, child)
            at = child.end_byte
            if child.type in REDIRECT_NODES:
                redirects.append(self.redirect(child, TrailingParts(later, stray, redirects)))
            else:
                bodies.append(child)
        first = len(self.commands)
        if not bodies:
            self.add(SimpleCommand((), (), tuple(redirects), self.span(node)))
        for body in bodies:
            if body.type == "command":
                self.command(body, tuple(redirects))
            else:
                self.visit(body)
                if len(self.commands) == first:
                    self.add(SimpleCommand((), (), tuple(redirects), self.span(node)))
                self.give(redirects, first)
        if stray and self.bodies:
            self.unclear("redirect", "a function may be redirected with words behind it", node)
        if stray and len(self.commands) > first:
            last = self.commands[-1]
            self.commands[-1] = SimpleCommand((*last.words, *stray), last.assignments, last.redirects, last.span)
        if later:
            self.continued(tuple(range(first, len(self.commands))), later)


def _join_words(one: ShellWord, other: ShellWord) -> ShellWord:
    text = None if one.text is None or other.text is None else one.text + other.text
    span = (one.span[0], other.span[1])
    return ShellWord(text, one.guess + other.guess, span, one.glob or other.glob, (*one.inner, *other.inner))


STATEMENT_READERS: Mapping[str, Callable[[StatementReader, Node], None]] = {
    "program": StatementReader.sequence,
    "list": StatementReader.list_,
    "pipeline": StatementReader.pipeline,
    "command": StatementReader.command,
    "redirected_statement": StatementReader.redirected,
    "subshell": StatementReader.loosely,
    "compound_statement": StatementReader.compound,
    "negated_command": StatementReader.negated,
    "if_statement": StatementReader.loosely,
    "elif_clause": StatementReader.loosely,
    "else_clause": StatementReader.loosely,
    "while_statement": StatementReader.loosely,
    "do_group": StatementReader.loosely,
    "for_statement": StatementReader.loop,
    "c_style_for_statement": StatementReader.counting,
    "case_statement": StatementReader.case,
    "function_definition": StatementReader.function,
    "test_command": StatementReader.test,
    "declaration_command": StatementReader.declaration,
    "unset_command": StatementReader.declaration,
    "variable_assignment": StatementReader.assignment,
    "variable_assignments": StatementReader.assignments,
    "comment": StatementReader.comment,
    "command_substitution": StatementReader.loosely,
    "process_substitution": StatementReader.loosely,
}

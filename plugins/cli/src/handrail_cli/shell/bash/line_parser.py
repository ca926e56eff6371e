"""Parser of a command line for bash: its simple commands with their words, redirections and how they feed each other.

Nothing is judged here. Words are folded as in bash (quotes, escapes, `$'…'`, braces, variables set on the same line);
unknown values stay unknown, and everything that is not understood is reported in `opaque`. The syntax tree is
tree-sitter-bash's.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from handrail import Reason
from handrail_cli.shell.bash.lexical_crosscheck import iter_hidden_code, scan_outline
from handrail_cli.shell.bash.redirect_reader import WORD_SEPARATOR
from handrail_cli.shell.bash.simple_line import parse_simple_line
from handrail_cli.shell.bash.statement_reader import StatementReader
from handrail_cli.shell.bash.syntax import ParsedLine
from handrail_cli.shell.bash.word_reader import MAX_VALUE

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

NOT_ASCII = re.compile(r"[^\x00-\x7f]")
MAX_LENGTH = 10_000
# Letters that join or nest commands. The parser's time grows faster than their number when they make no sense.
JOINT_CHARS = "|&;<(`"
MAX_JOINTS = 600
# Parts of the parse, and texts of code inside a line, that are looked at.
MAX_NODES = 4_000
MAX_CODES = 40
# Commands, and those that they run, that are looked at for what wrecks the system.
MAX_LOOKS = 50_000
# Letters that bash and a reader, or bash and the parser, may take for different things.
CONFUSABLE_CHARS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\xa0\u1680\u2000-\u200c\u200e\u200f\u2028-\u202f\u205f-\u206f\u3000\ufeff]"
)
PIPE_JOINT = re.compile(r"(?:[^;&|\n]|>&|&>)*\|&?\s*")


def parse_line(
    text: str, *, variables: Mapping[str, str] | None = None, environment: Container[str] | None = None
) -> ParsedLine:
    """Parse `text`. `variables` have a certain value (HOME, PWD …), `environment` names all that may have one."""
    if len(text) > MAX_LENGTH:
        return ParsedLine(text, (), opaque=(Reason("too_long", f"the command is longer than {MAX_LENGTH} characters"),))
    if sum(map(text.count, JOINT_CHARS)) > MAX_JOINTS:
        return ParsedLine(text, (), opaque=(Reason("too_much", "it has more parts than are analysed"),))
    return parse_simple_line(text) or parse_with_grammar(text, variables=variables, environment=environment)


def parse_with_grammar(
    text: str,
    *,
    variables: Mapping[str, str] | None = None,
    environment: Container[str] | None = None,
    most: int = MAX_NODES,
) -> ParsedLine:
    """Parse any line with the grammar, regardless of how plain and long it is, up to `most` nodes."""
    known = {name: value for name, value in (variables or {}).items() if len(value) <= MAX_VALUE}
    walk = _LineWalk(text, known, environment)
    try:
        walk.program(most)
    except RecursionError:
        walk.unclear("too_deep", "the command is nested too deeply", None)
    return walk.result()


class NestedCodeParser:
    """The analyses of code that stands inside one line, each made once: `parse_line` within the limits of that line."""

    def __init__(self) -> None:
        # Commands that may still be looked at: what runs others, which run others in their turn, grows with the power of its depth.
        self.looks_left = MAX_LOOKS
        self.made: dict[tuple[str, frozenset[tuple[str, str]]], ParsedLine] = {}

    def analyse(self, text: str, variables: Mapping[str, str]) -> ParsedLine:
        """Return the analysis of some code, or one which says that there is too much code."""
        key = text, frozenset(variables.items())
        if (known := self.made.get(key)) is not None:
            return known
        if len(self.made) >= MAX_CODES:
            return ParsedLine(text, (), opaque=(Reason("too_much", "it holds more code inside code than is analysed"),))
        self.made[key] = made = parse_line(text, variables=variables)
        return made


def parse_text(text: str) -> Node:
    """Return the syntax tree of a text. Positions in the tree are positions in the text, in characters."""
    # The parser looks letters up in tables that end with Latin-1, and crashes beyond. To bash every other letter is a part of a word that can be
    # no part of a name, as a dot is.
    return _load_parser().parse((text if text.isascii() else NOT_ASCII.sub(".", text)).encode()).root_node


@lru_cache(maxsize=1)
def _load_parser() -> Parser:
    import tree_sitter
    import tree_sitter_bash

    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))


class _LineWalk(StatementReader):
    """One pass over the tree, in the order of the text."""

    def result(self) -> ParsedLine:
        return ParsedLine(
            self.text,
            tuple(self.commands),
            (*self.pipelines, *self.chains()),
            self.functions,
            tuple(self.assigned),
            tuple(self.opaque),
            self.hidden,
        )

    def chains(self) -> Iterator[tuple[tuple[int, ...], ...]]:
        """Yield the commands with only `|` between them. In long lines the parser groups `|` and `&&` incorrectly."""
        chain: list[tuple[int, ...]] = []
        for number in range(1, len(self.commands)):
            start, end = self.commands[number - 1].span[1], self.commands[number].span[0]
            if start <= end and PIPE_JOINT.fullmatch(self.text, start, end):
                chain = [*(chain or [(number - 1,)]), (number,)]
            elif chain:
                yield tuple(chain)
                chain = []
        if chain:
            yield tuple(chain)

    def program(self, most: int) -> None:
        if (strange := CONFUSABLE_CHARS.search(self.text)) is not None:
            self.opaque.append(
                Reason("strange_character", f"it holds the character U+{ord(strange[0]):04X}", strange.span())
            )
        root = parse_text(self.text)
        if root.has_error:
            self.unclear("syntax", "it could not be parsed whole", None)
        if root.descendant_count > most:
            self.unclear("too_much", "it has more parts than are analysed", None)
            return
        self.all(root.children)
        self.leftovers()
        self.compare()
        self.passed_over(root)

    def passed_over(self, root: Node) -> None:
        """Say where the parser leaves out more than blanks: a backslash and the blank behind it are letters of a word."""
        waiting, at = [root], 0
        while waiting:
            node = waiting.pop()
            if node.children:
                waiting.extend(reversed(node.children))
            elif node.end_byte > at:
                if "\\" in (gap := self.text[at : node.start_byte]) and not WORD_SEPARATOR.fullmatch(gap):
                    self.unclear("syntax", "something in it is passed over", node)
                at = node.end_byte

    def compare(self) -> None:
        """Say what a reading of the text without the parser sees otherwise, or what of it was not looked at."""
        seen = scan_outline(self.text)
        differs = (
            self.overlong
            or seen.opened != self.walked
            or seen.redirects != self.redirected_at
            or seen.literal != self.literal
            or seen.double != self.quoted
            or seen.comments != self.comments
        )
        if differs or seen.strange is not None:
            self.hidden = tuple(iter_hidden_code(seen))
            # A value taken apart hides nothing; whatever may run something has to be seen by a person.
            code = "hidden" if differs or self.hidden or "[" in self.text else "expansion"
            self.unclear(code, seen.strange or "parts of it can be read in more than one way", None)

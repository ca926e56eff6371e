"""Words as bash would fold them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING

from handrail_cli.shell.bash.parse_state import ParseState
from handrail_cli.shell.bash.quoting import (
    PARAMETER_EXPANSION,
    SUBSTRING_OFFSETS,
    expand_braces,
    expand_parameter,
    unescape_ansi_c,
    unescape_double_quoted,
    unescape_unquoted,
)
from handrail_cli.shell.bash.syntax import ShellWord

if TYPE_CHECKING:
    from tree_sitter import Node

# Letters in one folded value.
MAX_VALUE = 10_000
# Letters of a value that are taken apart by `${name#…}` and its like.
MAX_TRIMMED = 300
GLOB_CHARACTER = re.compile(r"(?<!\\)[*?\[]")
# Words that bash takes as they are; most are of this kind.
PLAIN_WORD = re.compile(r"[A-Za-z0-9_./:=@%+,-]+")
# Words without letters that would end them, save behind a backslash.
UNJOINED = re.compile(r"(?:[^\\\s;&|()<>]|\\.)*", re.DOTALL)
# `${name:-word}` and its like: the word, where there is no value.
DEFAULT_EXPANSION = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*:?[-=]")
# `${name:offset}` and `${name:offset:length}`: bash computes both.
OFFSET_EXPANSION = re.compile(r"\$\{(?:[A-Za-z_]\w*|[@*]|\d+)(?:\[[^]]*\])?:(?![-+=?])(.*)\}", re.ASCII | re.DOTALL)
# Few enough numbers, without a step.
NUMBER_RANGE = re.compile(r"\{\d{1,2}\.\.\d{1,2}\}", re.ASCII)
# Programs that print one word, a number or a date.
ONE_WORD = re.compile(
    r"(?:\$\(|`)\s*(nproc|getconf|date)(?:(?<=nproc)(?:\s+--all)?|(?<=getconf)\s+_NPROCESSORS_ONLN|(?<=date)(?:\s+-u)?\s+[\"']?\+(?:%[sYmdHMSFTjVy]|[-_.:])+[\"']?)\s*[)`]"
)
SPLIT_MARK = "\x1f"
QUOTED_NODES = frozenset(("raw_string", "ansi_c_string", "string"))
EXPANDING_NODES = frozenset(
    ("simple_expansion", "expansion", "command_substitution", "arithmetic_expansion", "process_substitution")
)  # fmt: skip
# Keywords that stand for a program and have no node of their own kind.
NAMED_BY_TEXT = frozenset((
    "declare", "typeset", "export", "readonly", "local", "unset", "unsetenv", "==", "=~",
))  # fmt: skip


@dataclass(slots=True)
class WordPiece:
    """A part of a word while it is put together. Whitespace in `guess` that splits the word is SPLIT."""

    text: str | None
    guess: str
    glob: bool = False


TILDE_IN_VALUE = re.compile(r"[A-Za-z_]\w*\+?=(?:.*:)?~", re.ASCII)


class WordReader(ParseState):
    """The part of the pass that puts words together."""

    def words_of(self, node: Node) -> list[ShellWord]:
        """Return the words that a node becomes: several by braces or splitting, none for punctuation."""
        kind = node.type
        if kind == "word":
            start, end = node.start_byte, node.end_byte
            if PLAIN_WORD.fullmatch(raw := self.text[start:end]):
                return [ShellWord(raw, raw, (start, end))]
        elif not node.is_named:
            text = self.raw(node)
            return [ShellWord(text, text, self.span(node))] if node.type in NAMED_BY_TEXT else []
        first = len(self.commands)
        return self.join(node, self.pieces(node), first)

    def word(self, node: Node) -> ShellWord:
        words = self.words_of(node)
        if len(words) == 1:
            return words[0]
        guess = " ".join(word.guess for word in words)
        return ShellWord(None, guess, self.span(node), inner=tuple(n for word in words for n in word.inner))

    def join(self, node: Node, pieces: Sequence[WordPiece], first: int | None = None) -> list[ShellWord]:
        inner = tuple(range(first, len(self.commands))) if first is not None else ()
        # The parser does not always see the variable in `rm$IFS-rf`.
        guess = "".join(piece.guess for piece in pieces).replace("$IFS", SPLIT_MARK)
        self.folded += len(guess)
        if len(guess) > MAX_VALUE:
            return [ShellWord(None, guess[:MAX_VALUE], self.span(node), True, inner)]
        texts = [piece.text for piece in pieces]
        text = None if None in texts else "".join(part for part in texts if part is not None)
        glob = any(piece.glob for piece in pieces)
        span = self.span(node)
        if glob and "{" in guess and (many := expand_braces(guess)) is not None:
            return [ShellWord(part if text is not None else None, part, span, _has_glob(part), inner) for part in many]
        if glob and text is not None and not GLOB_CHARACTER.search(text) and "," not in text and ".." not in text:
            glob = False
        if SPLIT_MARK in guess:
            return [ShellWord(None, part, span, glob, inner) for part in guess.split(SPLIT_MARK) if part]
        start = "" if text is not None else "".join(part for part in takewhile(bool, texts) if part is not None)
        return [ShellWord(text, guess, span, glob, inner, node.type == "process_substitution", start)]

    def pieces(self, node: Node) -> list[WordPiece]:
        handler = PIECE_READERS.get(node.type)
        if handler is not None:
            return handler(self, node)
        self.unclear("word", f"it holds a word that is not analysed ({node.type})", node)
        self.inside(node)
        return [WordPiece(None, self.raw(node), glob=True)]

    def bare(self, node: Node) -> list[WordPiece]:
        raw = self.raw(node)
        if not UNJOINED.fullmatch(raw):
            self.overlong = True
        text = unescape_unquoted(raw) if "\\" in raw else raw
        glob = GLOB_CHARACTER.search(raw) is not None or "{" in raw
        if TILDE_IN_VALUE.match(raw):
            # Bash takes an argument like an assignment here: `of=~/x` is below the home.
            return [WordPiece(None, text, glob)]
        if raw.startswith("~"):
            user, slash, rest = text[1:].partition("/")
            home = self.known.get("HOME")
            # Quotes behind it belong to the name, and then bash leaves it as it is.
            named = bool(slash) or node.end_byte == _find_word_end(node)
            if home is None or user in ("+", "-") or not (named and _is_first_in_word(node)):
                return [WordPiece(None, text, glob)]
            start = home if not user else f"{home.rpartition('/')[0]}/{user}"
            text = f"{start}{slash}{rest}"
            # Where others have theirs is a guess, and without such a user the word stays as it is.
            return [WordPiece(None if user else text, text, glob)]
        return [WordPiece(text, text, glob)]

    def single(self, node: Node) -> list[WordPiece]:
        self.literal.add(self.span(node))
        text = self.raw(node)[1:-1]
        return [WordPiece(text, text)]

    def ansi(self, node: Node) -> list[WordPiece]:
        self.literal.add(self.span(node))
        text = unescape_ansi_c(self.raw(node)[2:-1])
        return [WordPiece(text, text)]

    def double(self, node: Node) -> list[WordPiece]:
        raw = self.raw(node)
        self.quoted.add(self.span(node))
        if "$" not in raw and "`" not in raw:
            text = unescape_double_quoted(raw[1:-1])
            return [WordPiece(text, text)]
        return self.filled(node, unescape_double_quoted, quotes=True)

    def filled(self, node: Node, fold: Callable[[str], str], *, quotes: bool = False) -> list[WordPiece]:
        """Return the pieces of quoted text.

        These are expansions and everything between them, whether or not the parser has a node for it.
        """
        pieces: list[WordPiece] = []
        at = node.start_byte + quotes
        end = node.end_byte - quotes

        def plain(upto: int) -> None:
            if upto > at:
                text = fold(self.text[at:upto])
                pieces.append(WordPiece(text, text))

        for child in node.children:
            if child.type in PIECE_READERS and child.type in EXPANDING_NODES:
                plain(self.start(child))
                pieces.extend(WordPiece(p.text, p.guess.replace(SPLIT_MARK, " "), p.glob) for p in self.pieces(child))
                at = child.end_byte
        plain(end)
        return pieces

    def joined(self, node: Node) -> list[WordPiece]:
        """Return the pieces of parts without a space between them, with what the parser omits between them."""
        pieces: list[WordPiece] = []
        at = node.start_byte
        braces = False
        for child in node.children:
            if child.start_byte > at:
                gap = self.text[at : child.start_byte]
                pieces.append(WordPiece(None, gap))
                braces = braces or "{" in gap
            pieces.extend(self.pieces(child))
            at = child.end_byte
            braces = braces or (child.type not in QUOTED_NODES and "{" in self.raw(child))
        if braces and pieces:
            pieces[0].glob = True
        return pieces

    def variable(self, node: Node) -> list[WordPiece]:
        """Return the pieces of `$name` and `${name}`."""
        name = self.raw(node).strip("${}")
        quoted = node.parent is not None and node.parent.type in ("string", "heredoc_body")
        if name in self.known and (value := self.known[name]) is not None:
            if name in self.patterned:
                return [WordPiece(value, value, glob=True)]
            if quoted or not any(letter in value for letter in " \t\n*?[\\"):
                return [WordPiece(value, value)] if value or quoted else [WordPiece("", "", glob=False)]
            return [WordPiece(None, SPLIT_MARK.join(value.split()), glob=True)]
        if name == "IFS":
            return [WordPiece(None, " " if quoted else SPLIT_MARK)]
        guess = self.guesses.get(name, "")
        # A number is one word, whichever it is.
        glob = not quoted and not self.numeric(name)
        return [WordPiece(None, guess if quoted else SPLIT_MARK.join(guess.split()), glob)]

    def expansion(self, node: Node) -> list[WordPiece]:
        """Return the pieces of `${…}`: a variable whose value is reduced or replaced."""
        raw = self.raw(node)
        if re.fullmatch(r"\$\{[A-Za-z_0-9]\w*\}", raw, re.ASCII):
            return self.variable(node)
        if "@P" in raw or raw.startswith("${!"):
            self.unclear("indirect", "it takes a command or a name out of a variable", node)
        offset = OFFSET_EXPANSION.fullmatch(raw)
        if offset is not None and not self.computes_with_numbers(offset[1]):
            self.unclear("arithmetic", "it computes with something that is not a number", node)
        plain = PARAMETER_EXPANSION.fullmatch(raw)
        if plain is not None:
            name, operator, word = plain.groups()
            quoted = node.parent is not None and node.parent.type in ("string", "heredoc_body")
            text = self.known.get(name)
            if text is None and self.unset(name):
                text = ""
            sliced = operator == ":" and SUBSTRING_OFFSETS.fullmatch(word) is None
            value = (
                None if text is None or sliced or len(text) > MAX_TRIMMED else expand_parameter(text, operator, word)
            )
            guess = (
                expand_parameter(self.guesses.get(name, "")[:MAX_TRIMMED], operator, word) if value is None else value
            )
            if value is not None and (quoted or not any(letter in value for letter in " \t\n*?[\\")):
                return [WordPiece(value, value)]
            return [WordPiece(None, guess if quoted else SPLIT_MARK.join(guess.split()), glob=not quoted)]
        default = DEFAULT_EXPANSION.match(raw)
        if default is None:
            self.inside(node)
            return [WordPiece(None, "", glob=True)]
        words = [child for child in node.children if child.type in PIECE_READERS][1:]
        guess = "".join(piece.guess for word in words for piece in self.pieces(word))
        if "=" in default[0]:
            name = default[0][2:].rstrip(":=-")
            self.known[name] = None
            self.guesses[name] = guess
            self.assigned.append((name, ShellWord(None, guess, self.span(node))))
        return [WordPiece(None, guess, glob=True)]

    def substitution(self, node: Node) -> list[WordPiece]:
        """Return the pieces of `$(…)` and backquotes, whose output is unknown."""
        first = len(self.commands)
        self.loosely(node)
        from handrail_cli.shell.bash.constant_output import compute_constant_output

        guess = compute_constant_output(self.commands[first:]) or ""
        printed = ONE_WORD.fullmatch(self.raw(node))
        if printed is not None and printed[1] not in self.functions:
            return [WordPiece(None, guess or "1")]
        quoted = node.parent is not None and node.parent.type in ("string", "heredoc_body")
        return [WordPiece(None, guess if quoted else SPLIT_MARK.join(guess.split()), glob=not quoted)]

    def process(self, node: Node) -> list[WordPiece]:
        self.loosely(node)
        return [WordPiece("/dev/fd/63", "/dev/fd/63")]

    def number(self, node: Node) -> list[WordPiece]:
        """Return the piece of `$((…))`, which is some number."""
        self.arithmetic(node)
        return [WordPiece(None, "0")]

    def range(self, node: Node) -> list[WordPiece]:
        """Return the piece of `{1..5}`, several numbers that are separated when the word is assembled."""
        raw = self.raw(node)
        if not NUMBER_RANGE.fullmatch(raw):
            self.unclear("word", "it holds a word that is not analysed (brace_expression)", node)
            self.inside(node)
            return [WordPiece(None, raw, glob=True)]
        return [WordPiece(raw, raw, glob=True)]

    def array(self, node: Node) -> list[WordPiece]:
        guesses = [word.guess for child in node.children for word in self.words_of(child)]
        return [WordPiece(None, SPLIT_MARK.join(guesses))]

    def substituted(self, node: Node) -> tuple[int, ...]:
        first = len(self.commands)
        self.inside(node)
        return tuple(range(first, len(self.commands)))


def _find_word_end(node: Node) -> int:
    return node.parent.end_byte if node.parent is not None and node.parent.type == "concatenation" else node.end_byte


def _is_first_in_word(node: Node) -> bool:
    parent = node.parent
    return parent is None or parent.type != "concatenation" or parent.children[0] == node


def _has_glob(text: str) -> bool:
    return GLOB_CHARACTER.search(text) is not None


PIECE_READERS: Mapping[str, Callable[[WordReader, Node], list[WordPiece]]] = {
    "word": WordReader.bare,
    "variable_name": WordReader.bare,
    "special_variable_name": WordReader.bare,
    "number": WordReader.bare,
    "raw_string": WordReader.single,
    "ansi_c_string": WordReader.ansi,
    "string": WordReader.double,
    "concatenation": WordReader.joined,
    "simple_expansion": WordReader.variable,
    "expansion": WordReader.expansion,
    "command_substitution": WordReader.substitution,
    "process_substitution": WordReader.process,
    "arithmetic_expansion": WordReader.number,
    "array": WordReader.array,
    "brace_expression": WordReader.range,
}

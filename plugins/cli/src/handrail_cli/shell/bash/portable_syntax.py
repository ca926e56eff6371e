"""Syntax that bash and related shells read differently, which makes code for one of them misjudged if read as bash's.

`sh` may be dash, ash, a Korn shell, or bash in POSIX mode: the criterion is that all of them read a text as the same
commands with the same words. If one of them stops with an error that bash does not have, the text before it has run,
and therefore counts, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING

from handrail_cli.shell.bash.line_parser import parse_text
from handrail_cli.shell.bash.syntax import ParsedLine, SimpleCommand

if TYPE_CHECKING:
    from tree_sitter import Node

# Nodes of the parse that are bash's alone: the kind of a statement, word or part of one, or a token of it.
BASH_ONLY_NODES = frozenset((
    "[[", "((", "function", "select", "<(", ">(", "&>", "&>>", "|&", "<<<", "ansi_c_string", "array", "subscript", "+=", ";&", ";;&", "$[",
    "brace_expression", "++", "--", "**",
))  # fmt: skip
# `${…}` as POSIX has it.
POSIX_EXPANSION = re.compile(
    r"\$\{(?:#?(?:[A-Za-z_]\w*|\d+|[@*#?$!-])|(?:[A-Za-z_]\w*|\d+|[@*#?$!-])(?::?[-+=?]|##?|%%?).*)\}",
    re.ASCII | re.DOTALL,
)
# What braces make several words of, in text without quotes and expansions.
BRACE_EXPANSION = re.compile(r"\{.*(?:,|\.\.).*\}", re.DOTALL)
# A backslash and the letter behind it, quoted by it.
ESCAPED = re.compile(r"\\.", re.DOTALL)
OPAQUE_TO_BRACES = frozenset(
    ("raw_string", "string", "simple_expansion", "expansion", "command_substitution", "arithmetic_expansion")
)
SPLITTING_NODES = frozenset(("simple_expansion", "expansion", "command_substitution", "concatenation"))
# Builtins that keep, by the rules of POSIX, the variables that are set for them alone.
SPECIAL_BUILTINS = frozenset((
    ".", ":", "break", "continue", "eval", "exec", "exit", "export", "readonly", "return", "set", "shift", "times", "trap", "unset",
))  # fmt: skip
ECHO_OPTION = re.compile(r"-[neE]*[eE][neE]*")


def find_differing_part(analysis: ParsedLine) -> str | None:
    """Return the first part of some code that another shell may read differently than bash; None if all agree."""
    return next(
        chain(map(_join_command, filter(_is_run_differently, analysis.commands)), _find_in_parse(analysis.text)), None
    )


def _join_command(command: SimpleCommand) -> str:
    return " ".join((*(name for name, _ in command.assignments), *command.guess))


def _is_run_differently(command: SimpleCommand) -> bool:
    """Return True for `echo` with an escape or option that only some shells know.

    Also True for a variable that may outlive its command.
    """
    program = command.program
    if program == "echo":
        rest = command.guess[1:]
        return any("\\" in word for word in rest) or ECHO_OPTION.fullmatch("".join(rest[:1])) is not None
    return bool(command.assignments) and program in SPECIAL_BUILTINS


def _find_in_parse(text: str) -> Iterator[str]:
    waiting = [parse_text(text)]
    while waiting:
        node = waiting.pop()
        waiting += reversed(node.children)
        if node.type in BASH_ONLY_NODES or _is_read_differently(node, text):
            yield text[node.start_byte : node.end_byte]


def _is_read_differently(node: Node, text: str) -> bool:
    raw = text[node.start_byte : node.end_byte]
    kind = node.type
    if kind == "expansion":
        return POSIX_EXPANSION.fullmatch(raw) is None
    if kind == "file_descriptor":
        # Elsewhere `10` in `10>file` is a word.
        return len(raw) > 1
    if kind == "string":
        # `$"…"`: the sign is no part of it.
        before = text[max(node.start_byte - 2, 0) : node.start_byte]
        return before.endswith("$") and before not in ("$$", "\\$")
    if kind in ("word", "concatenation"):
        return BRACE_EXPANSION.search(ESCAPED.sub("x", _mask_quoted_parts(node, text))) is not None
    if kind == "file_redirect":
        # `>&` with the name of a file.
        target = node.child_by_field_name("destination")
        joined = any(child.type in (">&", "<&") for child in node.children)
        return joined and target is not None and target.type != "number"
    if kind == "declaration_command":
        # Elsewhere the value may become several words, and so several assignments.
        values = [child.child_by_field_name("value") for child in node.children if child.type == "variable_assignment"]
        return any(value is not None and value.type in SPLITTING_NODES for value in values)
    return False


def _mask_quoted_parts(node: Node, text: str) -> str:
    """Return the text of a word with one letter in place of each part that is quoted or expanded."""
    if node.type in OPAQUE_TO_BRACES:
        return "x"
    found, at = "", node.start_byte
    for child in node.children:
        found += text[at : child.start_byte] + _mask_quoted_parts(child, text)
        at = child.end_byte
    return found + text[at : node.end_byte]

"""Lines that spell out what they run, which no variable value and no function can change.

The analysis of a line follows assignments, functions and lists as far as it can. Bash has more rules than that (a
readonly variable keeps its value, `a & b` assigns in another shell, `unset` removes a function). Where a mistake would
run a program on the host, values are therefore not considered at all.
"""

from __future__ import annotations

import re

from handrail_cli.shell.bash.syntax import ParsedLine, ShellWord
from handrail_cli.shell.bash_builtins import BUILTINS

# Builtins that may run something, or set a variable that does, by a rule of their own.
POWERFUL_BUILTINS = BUILTINS.keys() - {
    "cd",
    "export",
    "true",
    "false",
    ":",
    "exit",
    "set",
    "command",
    "return",
    "break",
    "continue",
}
# Builtins that look up or set the variable that a word names, whose subscript they evaluate.
COMPUTING_BUILTINS = frozenset(("test", "[", "[[", "printf", "export", "command", "builtin", "cd"))
# Builtins that print words as they are, or ignore them.
PRINTING_BUILTINS = frozenset(("echo", "true", "false", ":", "pwd"))
# A line that can be read in one way only: words of plain letters and closed quotes, each with a blank or an operator on both sides. No backslash, no
# letter beyond ASCII (what it is depends on the locale), no group, and no redirection but of descriptors to each other and to files in plain words.
BARE_CHARACTER = r"[\w./:@%+,*?=^~-]"
VARIABLE_VALUE = r"\$\w++|\$\{\w+(?::?[-+][\w ./:,@%+-]*)?\}|\$[?#$!]"
QUOTED_TEXT = r"'[ -&(-~]*'"
REDIRECTION = rf"\d?[<>]&\d(?!\w)|(?:[12&]?>{{1,2}}|<)[ \t]*(?:{BARE_CHARACTER}|{QUOTED_TEXT})++"
DOUBLE_QUOTED_CHARS = r"[ !#%-\[\]^_a-~]"
LIST_OPERATOR = r"&&|\|\|?|[;\n]"


def _compile_line_pattern(word: str) -> re.Pattern[str]:
    item = rf"(?:{REDIRECTION}|(?:{word})++|\[{{1,2}}|\]{{1,2}})(?=[\s;&|]|$)"
    statement = rf"{item}(?:[ \t]+{item})*"
    joint = rf"[ \t]*(?:{LIST_OPERATOR})[ \t\n]*"
    return re.compile(rf"\s*{statement}(?:{joint}{statement})*[ \t]*;?\s*", re.ASCII)


WORD_PATTERN = rf"{BARE_CHARACTER}|{QUOTED_TEXT}|{VARIABLE_VALUE}|\"(?:{DOUBLE_QUOTED_CHARS}|{VARIABLE_VALUE})*\""
LINE_TOKEN = re.compile(
    rf"(?P<redirect>{REDIRECTION})(?=[\s;&|]|$)|(?P<word>(?:{WORD_PATTERN})++|\[{{1,2}}|\]{{1,2}})|(?P<operator>{LIST_OPERATOR})",
    re.ASCII,
)
ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=", re.ASCII)
LITERAL_LINE = _compile_line_pattern(rf"{BARE_CHARACTER}|{QUOTED_TEXT}|\"{DOUBLE_QUOTED_CHARS}*\"")
PRINTED_LINE = _compile_line_pattern(WORD_PATTERN)


def is_literal_line(analysis: ParsedLine) -> bool:
    """Return True if the line names every program and builtin itself, and only prints the values of variables."""
    if analysis.functions:
        return False
    if any(command.words and command.words[0].text in POWERFUL_BUILTINS for command in analysis.commands):
        return False
    if _may_compute(analysis):
        return False
    if not is_unambiguous(analysis):
        return False
    return LITERAL_LINE.fullmatch(analysis.text) is not None or all(
        not command.redirects and command.words[:1] and _is_printing_word(analysis.text, command.words[0])
        for command in analysis.commands
    )


def is_unambiguous(analysis: ParsedLine) -> bool:
    """Return True if a line has only one reading for any values of its variables, and was parsed that way."""
    if not PRINTED_LINE.fullmatch(analysis.text):
        return False
    return _count_statement_words(analysis.text) == [
        len(command.words) + len(command.assignments) for command in analysis.commands if command.words
    ]


def _count_statement_words(text: str) -> list[int]:
    """Return the number of words in each simple command of such a line; commands that only set variables are left out."""
    found: list[int] = []
    words: list[str] = []
    for token in LINE_TOKEN.finditer(f"{text}\n"):
        if token["word"] is not None:
            words.append(token["word"])
        elif token["operator"] is not None:
            found += [len(words)] if not all(map(ASSIGNMENT.match, words)) else []
            words = []
    return found


def _may_compute(analysis: ParsedLine) -> bool:
    """Return True if bash may evaluate part of a text that has no expansion.

    This is arithmetic, or a subscript in a word of a builtin.
    """
    if "((" in analysis.text:
        return True
    computing = any(command.words and command.words[0].text in COMPUTING_BUILTINS for command in analysis.commands)
    subscript = analysis.text.find("[") if computing else -1
    return subscript >= 0 and ("$" in analysis.text[subscript:] or "`" in analysis.text[subscript:])


def _is_printing_word(text: str, word: ShellWord) -> bool:
    return word.text in PRINTING_BUILTINS and "$" not in text[slice(*word.span)]

"""Lines that spell out what they run, so that nothing a variable holds, and no function, can make them run something else.

The reading of a line follows assignments, functions and lists as far as it can. Bash has more rules than that (a readonly variable keeps its
value, `a & b` assigns in another shell, `unset` takes a function away), so that where a mistake would run a program on the host, values do not
count at all.
"""

from __future__ import annotations

import re

from handrail_cli.builtins import BUILTINS
from handrail_cli.commandline import Analysis, Word

# Builtins that may run something, or set a variable that does, by a rule of their own.
POWERFUL = BUILTINS.keys() - {
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
COMPUTING = frozenset(("test", "[", "[[", "printf", "export", "command", "builtin", "cd"))
# Builtins that print words as they are, or ignore them.
PRINTING = frozenset(("echo", "true", "false", ":", "pwd"))
# Text without any expansion. A comment may hold half of a pair of quotes, so that there is none.
PLAIN = r"[^$`\\'\"#]|\\[^\n]|'[^']*'"
LITERAL = re.compile(rf"(?:{PLAIN}|\"(?:[^$`\\\"]|\\[^\n])*\")*", re.DOTALL)
# Text in which every expansion is that of a plain variable, or of a plain word in its place: no substitution, no arithmetic, no other operator.
VALUE = r"\$\w++|\$\{\w+(?::?[-+][\w ./:,@%+-]*)?\}|\$[?#$!]"
PRINTED = re.compile(rf"(?:{PLAIN}|{VALUE}|\"(?:[^$`\\\"]|\\[^\n]|{VALUE})*\")*", re.ASCII | re.DOTALL)


def is_spelled_out(analysis: Analysis) -> bool:
    """True if every program and builtin stands in the line by its own name, and values of variables only get printed."""
    if analysis.functions:
        return False
    if any(command.words and command.words[0].text in POWERFUL for command in analysis.commands):
        return False
    if _may_compute(analysis):
        return False
    if LITERAL.fullmatch(analysis.text):
        return True
    return PRINTED.fullmatch(analysis.text) is not None and all(
        not command.redirects and command.words[:1] and _is_printing(analysis.text, command.words[0])
        for command in analysis.commands
    )


def _may_compute(analysis: Analysis) -> bool:
    """True if bash may evaluate a part of the text although it holds no expansion: arithmetic, or a subscript in a word of a builtin."""
    if "((" in analysis.text:
        return True
    computing = any(command.words and command.words[0].text in COMPUTING for command in analysis.commands)
    subscript = analysis.text.find("[") if computing else -1
    return subscript >= 0 and ("$" in analysis.text[subscript:] or "`" in analysis.text[subscript:])


def _is_printing(text: str, word: Word) -> bool:
    return word.text in PRINTING and "$" not in text[slice(*word.span)]

"""Arithmetic that can only compute.

Bash evaluates the value of a variable in arithmetic as an expression, and an expression may run commands:
`x='a[$(id)]'; ((x))`. This module finds plain arithmetic in a text, and the variables of the text that can hold only
integers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from handrail_cli.shell.bash.variable_rules import RISKY_VARIABLE

ATOM = r"[\w \t+*/%<>=!&|^~?:,-]|\$\w++|\$\{#?\w++(?:\[[@*]\])?\}|\$\#"
TERMS = rf"(?:{ATOM}|\((?:{ATOM})*\))*"
# `((…))`, and the three parts of `for ((…; …; …))`.
ARITHMETIC_COMMAND = re.compile(rf"\(\({TERMS}\)\)", re.ASCII)
FOR_HEADER = re.compile(rf"\(\({TERMS};{TERMS};{TERMS}\)\)", re.ASCII)
LOOKBEHIND_CHARS = 20
FOR_KEYWORD = re.compile(r"\bfor\s*\Z")
NUMBER = re.compile(r"%?(?:0[xX][0-9a-fA-F]+|\d+#\w+|\d+)", re.ASCII)
LENGTH_EXPANSION = re.compile(r"\$\{#\w+(?:\[[@*]\])?\}|\$[#?$]", re.ASCII)
# Arithmetic over names and numbers, and what parts an offset from a length, without a subscript or an expansion.
PLAIN_TERMS = re.compile(r"[\w \t+*/%():-]*", re.ASCII)
VARIABLE_NAME = re.compile(r"(?<![\w#$])[A-Za-z_]\w*", re.ASCII)
ASSIGNING_OPERATOR = re.compile(r"\+\+|--|(?<![<>=!])=(?!=)|[<>]{2}=")
NUMBER_VALUE = r"(?:-?\d+|\"-?\d+\"|'-?\d+')(?=[ \t\n;&|)]|\Z)"
NUMBER_ASSIGNMENT = re.compile(rf"(?<![\w$])([A-Za-z_]\w*)={NUMBER_VALUE}", re.ASCII)
FOR_NUMBER_LIST = re.compile(
    r"\bfor[ \t]+([A-Za-z_]\w*)[ \t]+in(?:[ \t]+(?:-?\d+|\{-?\d+\.\.-?\d+\}))+[ \t]*[;\n]", re.ASCII
)
READ_COMMAND = re.compile(r"\bread\b((?:'[^']*'|\"[^\"]*\"|\\.|[<>][&|]|[^;\n|&'\"\\])*)")
FOR_VARIABLE = re.compile(r"\bfor\s+([A-Za-z_]\w*)", re.ASCII)
OTHER_ASSIGNMENT = re.compile(rf"(?<![\w$])([A-Za-z_]\w*)(?:\[|\+?=(?!{NUMBER_VALUE}))", re.ASCII)
# What may set variables in ways that are not followed here, and names of commands that are not plain letters.
UNSURE_SYNTAX = re.compile(
    r"""\b(eval|source|trap|mapfile|readarray|getopts|declare|typeset|unset|let|enable|select|coproc|wait|alias|command|builtin|exec)\b"""
    r"""|\bprintf\s+["']?[-$]|\blocal\s+["']?-|(^|[\s;&|(])\.\s|\$\[|[$]\{[^}]*:?=|["'\s]\w*\$\{?\w+\}?\w*["']?\+?=|(?<!\$)\{\w+\}[<>]"""
    r"""|(?:^|[;&|(){\n!]|\b(?:do|then|else|elif|if|while|until|time|in)\b)\s*["']?\$(?!\(\()|=\S*[ \t]+["']?\$|[<>]\s*\S+\s+["']?\$"""
    r"""|`|["']read["']|\$['"]|\w["']+\w|\w\\\w|\{[^}\s]*,|\\\n"""
)


def find_arithmetic_end(text: str, at: int) -> int:
    """Return the end of the plain arithmetic that begins at `((`; -1 if it is not plain arithmetic."""
    found = ARITHMETIC_COMMAND.match(text, at) or (
        FOR_HEADER.match(text, at) if FOR_KEYWORD.search(text, max(0, at - LOOKBEHIND_CHARS), at) else None
    )
    return found.end() if found is not None else -1


def iter_assigned_names(arithmetic: str) -> Iterator[str]:
    """Yield the variables that arithmetic may set."""
    if ASSIGNING_OPERATOR.search(arithmetic):
        yield from VARIABLE_NAME.findall(arithmetic)


def find_number_variables(text: str) -> frozenset[str]:
    """Return the variables that nothing in the text sets to anything but a number."""
    read = " ".join(READ_COMMAND.findall(text))
    if "$" in read or "(" in read or UNSURE_SYNTAX.search(text):
        return frozenset()
    rest = ARITHMETIC_COMMAND.sub("0", FOR_HEADER.sub("0", text).replace("$((", "(("))
    names = {*NUMBER_ASSIGNMENT.findall(rest), *FOR_NUMBER_LIST.findall(rest)}
    names |= {
        name
        for span in (*ARITHMETIC_COMMAND.findall(text), *FOR_HEADER.findall(text))
        for name in iter_assigned_names(span)
    }
    others = {
        *OTHER_ASSIGNMENT.findall(rest),
        *VARIABLE_NAME.findall(read),
        *FOR_VARIABLE.findall(FOR_NUMBER_LIST.sub(" ", rest)),
    }
    return frozenset(name for name in names - others if not RISKY_VARIABLE.fullmatch(name))

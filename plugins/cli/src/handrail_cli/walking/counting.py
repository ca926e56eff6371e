"""Arithmetic that cannot do anything but compute.

Bash takes the value of a variable in it for an expression, and an expression may run commands: `x='a[$(id)]'; ((x))`. What is here says where plain
arithmetic stands in a text, and which variables of the text can hold nothing but whole numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from handrail_cli.variables import RISKY

ATOM = r"[\w \t+*/%<>=!&|^~?:,-]|\$\w++|\$\{#?\w++(?:\[[@*]\])?\}|\$\#"
TERMS = rf"(?:{ATOM}|\((?:{ATOM})*\))*"
# `((…))`, and the three parts of `for ((…; …; …))`.
COMPUTED = re.compile(rf"\(\({TERMS}\)\)", re.ASCII)
HEADER = re.compile(rf"\(\({TERMS};{TERMS};{TERMS}\)\)", re.ASCII)
NEAR = 20
COUNTING = re.compile(r"\bfor\s*\Z")
NUMBER = re.compile(r"%?(?:0[xX][0-9a-fA-F]+|\d+#\w+|\d+)", re.ASCII)
LENGTH = re.compile(r"\$\{#\w+(?:\[[@*]\])?\}|\$[#?$]", re.ASCII)
# Arithmetic over names and numbers, and what parts an offset from a length, without a subscript or an expansion.
PLAIN_TERMS = re.compile(r"[\w \t+*/%():-]*", re.ASCII)
NAME = re.compile(r"(?<![\w#$])[A-Za-z_]\w*", re.ASCII)
ASSIGNING = re.compile(r"\+\+|--|(?<![<>=!])=(?!=)|[<>]{2}=")
VALUE = r"(?:-?\d+|\"-?\d+\"|'-?\d+')(?=[ \t\n;&|)]|\Z)"
ASSIGNED = re.compile(rf"(?<![\w$])([A-Za-z_]\w*)={VALUE}", re.ASCII)
LISTED = re.compile(r"\bfor[ \t]+([A-Za-z_]\w*)[ \t]+in(?:[ \t]+(?:-?\d+|\{-?\d+\.\.-?\d+\}))+[ \t]*[;\n]", re.ASCII)
READ = re.compile(r"\bread\b((?:'[^']*'|\"[^\"]*\"|\\.|[<>][&|]|[^;\n|&'\"\\])*)")
EACH = re.compile(r"\bfor\s+([A-Za-z_]\w*)", re.ASCII)
SET_OTHERWISE = re.compile(rf"(?<![\w$])([A-Za-z_]\w*)(?:\[|\+?=(?!{VALUE}))", re.ASCII)
# What may set variables in ways that are not followed here, and names of commands that are not plain letters.
UNSURE = re.compile(
    r"""\b(eval|source|trap|mapfile|readarray|getopts|declare|typeset|unset|let|enable|select|coproc|wait|alias|command|builtin|exec)\b"""
    r"""|\bprintf\s+["']?[-$]|\blocal\s+["']?-|(^|[\s;&|(])\.\s|\$\[|[$]\{[^}]*:?=|["'\s]\w*\$\{?\w+\}?\w*["']?\+?=|(?<!\$)\{\w+\}[<>]"""
    r"""|(?:^|[;&|(){\n!]|\b(?:do|then|else|elif|if|while|until|time|in)\b)\s*["']?\$(?!\(\()|=\S*[ \t]+["']?\$|[<>]\s*\S+\s+["']?\$"""
    r"""|`|["']read["']|\$['"]|\w["']+\w|\w\\\w|\{[^}\s]*,|\\\n"""
)


def computed(text: str, at: int) -> int:
    """Where the plain arithmetic ends that begins at `((`; -1 where there is none."""
    found = COMPUTED.match(text, at) or (
        HEADER.match(text, at) if COUNTING.search(text, max(0, at - NEAR), at) else None
    )
    return found.end() if found is not None else -1


def assigned_in(arithmetic: str) -> Iterator[str]:
    """The variables that arithmetic may set."""
    if ASSIGNING.search(arithmetic):
        yield from NAME.findall(arithmetic)


def counters(text: str) -> frozenset[str]:
    """The variables that nothing in the text sets to anything but a number."""
    read = " ".join(READ.findall(text))
    if "$" in read or "(" in read or UNSURE.search(text):
        return frozenset()
    rest = COMPUTED.sub("0", HEADER.sub("0", text).replace("$((", "(("))
    names = {*ASSIGNED.findall(rest), *LISTED.findall(rest)}
    names |= {name for span in (*COMPUTED.findall(text), *HEADER.findall(text)) for name in assigned_in(span)}
    others = {*SET_OTHERWISE.findall(rest), *NAME.findall(read), *EACH.findall(LISTED.sub(" ", rest))}
    return frozenset(name for name in names - others if not RISKY.fullmatch(name))

"""Programs of awk: what they run, write and read besides their input (POSIX awk, "Grammar" and "Output statements"; gawk's extensions)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from handrail_cli.programs.scripts.script_finding import UNCLEAR, ScriptFinding, create_dangerous_finding
from handrail_cli.programs.values import OperandRole

TOKEN = re.compile(
    r"""(?P<space>[ \t\r]+|\\\r?\n|\#[^\n]*) | (?P<string>"(?:[^"\\\n]|\\.)*") | (?P<number>0[xX][\da-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)
    | (?P<name>[A-Za-z_]\w*) | (?P<mark>\+\+|--|\|\||&&|\|&|>>|[!<>=+\-*/%^]=|\*\*=?|[{}()\[\];,+\-*/%^!<>|?:~$=\n@&'])""",
    re.VERBOSE | re.DOTALL | re.ASCII,
)
REGEX = re.compile(r"/(?:\\.|\[\^?\]?(?:\\.|[^\]\\\n])*\]|[^/\\\[\n])*/", re.DOTALL)
KEYWORDS = frozenset((
    "BEGIN", "END", "print", "printf", "if", "else", "while", "for", "do", "in", "return", "next", "nextfile", "exit", "delete", "break",
    "continue", "function", "func", "switch", "case", "default", "BEGINFILE", "ENDFILE",
))  # fmt: skip
# Whoever sets these chooses the files that are read; the variables of the environment may be secrets.
SENSITIVE_VARIABLES = frozenset(("ARGV", "ARGC", "ENVIRON", "PROCINFO", "SYMTAB", "FUNCTAB"))
# Behind these a line goes on.
CONTINUATION_TOKENS = frozenset((",", "&&", "||", "?", ":", "\n"))
MAX_TOKENS = 5000
# What simple programs are made of. Names of their own have small letters; `>` stands only where nothing is printed.
SIMPLE_WORDS = frozenset((
    "BEGIN", "END", "print", "printf", "if", "else", "while", "for", "in", "next", "exit", "break", "continue",
    "NR", "NF", "FNR", "FS", "OFS", "RS", "ORS", "OFMT", "CONVFMT", "SUBSEP", "RSTART", "RLENGTH", "FILENAME",
))  # fmt: skip
SIMPLE_FUNCTIONS = frozenset((
    "length", "substr", "index", "split", "sub", "gsub", "gensub", "match", "sprintf", "tolower", "toupper",
    "int", "sqrt", "exp", "log", "sin", "cos", "atan2", "rand", "srand", "systime", "strftime", "strtonum",
))  # fmt: skip
# Words that any awk has a meaning for, in small letters.
OTHER_WORDS = frozenset((
    "getline", "system", "close", "fflush", "function", "func", "return", "delete", "nextfile", "do", "switch", "case", "default", "namespace",
    "asort", "asorti", "and", "or", "xor", "lshift", "rshift", "compl", "mktime", "typeof", "isarray", "mkbool", "patsplit", "intdiv",
    "bindtextdomain", "dcgettext", "dcngettext", "eval", "include", "load", "nsinclude", "abort", "adump", "stopme", "div",
))  # fmt: skip
SIMPLE_MARKS = frozenset((
    "{", "}", "(", ")", "[", "]", ";", ",", "\n", "+", "-", "*", "/", "%", "^", "!", "<", ">", "?", ":", "~", "$", "=",
    "++", "--", "||", "&&", "!=", "<=", ">=", "==", "+=", "-=", "*=", "/=", "%=", "^=",
))  # fmt: skip
# Not every awk knows that brackets may hold a `/`, or a backslash.
SIMPLE_REGEX = re.compile(r"/(?:\\[^\n]|\[\^?(?:\[:[a-z]+:\]|\\[tsw.]|[^\[\]/\\\n])+\]|[^/\\\[\n])*/")
SIMPLE_STRING = re.compile(r'"(?:\\[^\n]|[^"\\\n])*"')


@dataclass(frozen=True, slots=True)
class AwkToken:
    """A token: its kind, its text, and how deep in parentheses it stands."""

    kind: str
    text: str


def check_awk_script(program: str) -> ScriptFinding:
    """Check what a program does besides printing its input."""
    tokens = tokenize_program(program)
    if tokens is None:
        return UNCLEAR
    named: list[tuple[OperandRole, str]] = []
    printing: int | None = None
    depth = 0
    for number, token in enumerate(tokens):
        text = token.text
        if token.kind == "name" and text in ("print", "printf"):
            printing = depth
        elif token.kind == "name" and text == "system":
            return create_dangerous_finding("runs commands (`system`)")
        elif token.kind == "name" and text in SENSITIVE_VARIABLES:
            return UNCLEAR
        elif token.kind == "name" and text == "getline":
            if not _note_getline(tokens, number, named):
                return UNCLEAR
        elif token.kind != "mark":
            continue
        elif text in ("|", "|&"):
            return create_dangerous_finding("runs commands (`|`)")
        elif text == "@":
            return UNCLEAR
        elif text in ("(", "["):
            depth += 1
        elif text in (")", "]"):
            depth -= 1
        elif text in (";", "\n", "}", "{"):
            printing = printing if text == "\n" and tokens[number - 1].text in CONTINUATION_TOKENS else None
        elif text in (">", ">>") and printing == depth and not _note_output(tokens, number, named):
            return UNCLEAR
    return ScriptFinding("effect" if any(role == "write" for role, _ in named) else "reads", named=tuple(named))


def is_simple_awk(program: str) -> bool:
    """Return True for a program that every awk reads alike, and of which none can make more than printing."""
    tokens = tokenize_program(program)
    # Comments and lines that go on are left out among tokens.
    if not tokens or re.sub(r"[ \t]", "", "".join(token.text for token in tokens)) != re.sub(r"[ \t]", "", program):
        return False
    printing = False
    for token, behind in zip(tokens, (*tokens[1:], None), strict=True):
        if not _is_simple_token(token, behind) or (printing and token.text == ">"):
            return False
        if token.kind == "name":
            printing = printing or token.text in ("print", "printf")
        elif token.kind == "mark" and token.text in (";", "{", "}"):
            # A line may go on behind its end.
            printing = False
    return True


def _is_simple_token(token: AwkToken, behind: AwkToken | None) -> bool:
    if token.kind in ("mark", "number"):
        return token.kind == "number" or token.text in SIMPLE_MARKS
    if token.kind in ("string", "regex"):
        return (SIMPLE_STRING if token.kind == "string" else SIMPLE_REGEX).fullmatch(token.text) is not None
    if token.text in SIMPLE_WORDS or token.text in SIMPLE_FUNCTIONS:
        return True
    called = behind is not None and behind.text == "("
    return token.text.islower() and token.text not in OTHER_WORDS and not called


def tokenize_program(program: str) -> Sequence[AwkToken] | None:
    """Return the tokens of a program; None if one is ambiguous, such as a `/` that may divide or begin a pattern."""
    tokens: list[AwkToken] = []
    conditions: list[bool] = []
    after = "start"
    at = 0
    while at < len(program):
        if program[at] == "/" and after in ("start", "unsure"):
            match = REGEX.match(program, at)
            if match is None or after == "unsure":
                return None
            tokens.append(AwkToken("regex", match[0]))
            after, at = "value", match.end()
            continue
        match = TOKEN.match(program, at)
        if match is None or match.lastgroup is None or len(tokens) > MAX_TOKENS:
            return None
        at = match.end()
        if match.lastgroup == "space":
            continue
        if match[0] == "(":
            conditions.append(bool(tokens) and tokens[-1].text in ("if", "while", "for", "switch"))
        condition = match[0] == ")" and bool(conditions) and conditions.pop()
        after = _classify_slash(match.lastgroup, match[0], condition=condition)
        tokens.append(AwkToken(match.lastgroup, match[0]))
    return tokens


def _classify_slash(kind: str, text: str, *, condition: bool) -> str:
    """Return the meaning of a `/` after this token.

    It begins a pattern (`start`), divides (`value`), or could do either (`unsure`).
    """
    if kind in ("string", "number") or text == "]" or (text == ")" and not condition):
        return "value"
    if text in ("++", "--", "getline", "length") or text == "'":
        return "unsure"
    if kind == "name":
        return "start" if text in KEYWORDS else "value"
    return "start"


def _note_output(tokens: Sequence[AwkToken], number: int, named: list[tuple[OperandRole, str]]) -> bool:
    """Note the file of `print > "file"`; return False unless it is a literal with nothing after it."""
    target = tokens[number + 1] if number + 1 < len(tokens) else None
    end = tokens[number + 2] if number + 2 < len(tokens) else None
    if target is None or target.kind != "string" or (end is not None and end.text not in (";", "\n", "}")):
        return False
    return _note_file("write", target.text, named)


def _note_getline(tokens: Sequence[AwkToken], number: int, named: list[tuple[OperandRole, str]]) -> bool:
    at = number + 1
    if at < len(tokens) and tokens[at].kind == "name" and tokens[at].text not in KEYWORDS:
        at += 1
    if at >= len(tokens) or tokens[at].text not in ("<", "["):
        return True
    if tokens[at].text == "[" or at + 1 >= len(tokens) or tokens[at + 1].kind != "string":
        return False
    behind = tokens[at + 2] if at + 2 < len(tokens) else None
    if behind is not None and behind.kind != "mark":
        return False
    return _note_file("read", tokens[at + 1].text, named)


def _note_file(role: OperandRole, literal: str, named: list[tuple[OperandRole, str]]) -> bool:
    name = literal[1:-1]
    if "\\" in name:
        return False
    if name not in ("/dev/stdout", "/dev/stderr", "/dev/null", "-", "/dev/stdin"):
        named.append((role, name))
    return True

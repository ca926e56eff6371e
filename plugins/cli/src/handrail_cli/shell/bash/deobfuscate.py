"""Other ways to write a command, put plainly: what bash would make of arrays, parameters, looked-up programs and the like.

Each is a guess at the likeliest meaning, good enough to see what must never run; nothing is allowed because of it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from itertools import islice

from handrail.glob_match import is_glob_match

VARIABLE_NAME = r"[A-Za-z_]\w*"
PROGRAM_LOOKUP = re.compile(
    r"\"?(?:\$\(\s*(?:which|command -v|type -[pP])\s+([\w./-]+)\s*\)|`\s*(?:which|command -v|type -[pP])\s+([\w./-]+)\s*`)\"?"
)
ARRAY_ASSIGNMENT = re.compile(rf"(?:^|[\s;&|])({VARIABLE_NAME})=\(([^()$`]*)\)")
SET_PARAMETERS = re.compile(r"(?:^|[\s;&|])set\s+--\s+([^;&|\n$`]+)")
FUNCTION_CALL = re.compile(rf"(?<!\w)({VARIABLE_NAME})\s*\(\)\s*\{{([^{{}}]*)\}}\s*+(?:;\s*+)?\1\s+([^;&|\n$`]+)")
PRINTF_ASSIGNMENT = re.compile(
    rf"printf\s+-v\s+({VARIABLE_NAME})\s+(?:'%s'\s+|\"%s\"\s+|%s\s+)?('[^']*'|\"[^\"$`]*\"|[^\s;&|$`]+)"
)
READ_ASSIGNMENT = re.compile(
    rf"(?:IFS=(\S{{0,20}})\s+)?(?:read|mapfile|readarray)((?:\s+-\w+)*)((?:\s+{VARIABLE_NAME})+)\s*<<<\s*('[^']*'|\"[^\"$`]*\"|[^\s;&|$`]+)"
)
NAME_REFERENCE = re.compile(rf"(?:declare|local|typeset)\s+-n\s+({VARIABLE_NAME})=({VARIABLE_NAME})")
ALIAS_DEFINITION = re.compile(r"\balias\s+([\w-]+)=('[^']*'|\"[^\"]*\"|\S+)\s*[\n;](.*)", re.DOTALL)
# Where bash computes with the text of a word or looks a name up, so that a subscript in it is evaluated.
EVALUATING_CONTEXT = re.compile(
    r"\(\(|\[\[[^\n;]{0,500}\s-(?:v|R|eq|ne|lt|le|gt|ge)\s|(?:\[|\btest)\s+-v\s|\b(?:let|read|printf\s+-v|unset|declare|typeset|local)\b"
)
SINGLE_QUOTED = re.compile(r"'([^']*)'")
SUBSCRIPT_CODE = re.compile(r"\w\[.{0,500}?(?:\$\((?!\()(.{0,4000})\)|`([^`]+)`)", re.DOTALL)
SUBSTITUTION = re.compile(r"\$\((?!\()(.{0,4000})\)|`([^`]+)`", re.DOTALL)
# So many of one kind are put plainly: each takes a pass over the text.
MAX_REPLACEMENTS = 1_000
PROGRAM_FOLDERS = ("/bin/", "/usr/bin/", "/sbin/", "/usr/sbin/")


def simplify_line(text: str) -> Iterator[str]:
    """Yield simpler forms of the same command line, if anything in it can be simplified."""
    if "\\\n" in text:
        yield text.replace("\\\n", "")
    if "$" in text or "`" in text:
        made = _fold_expansions(text)
        if made != text:
            yield made
        if "@P}" in text:
            yield from _find_quoted_substitutions(text, SUBSTITUTION)
        elif "[" in text and EVALUATING_CONTEXT.search(text):
            yield from _find_quoted_substitutions(text, SUBSCRIPT_CODE)
    aliased = text.find("expand_aliases")
    if aliased >= 0 and (match := ALIAS_DEFINITION.search(text, aliased)) is not None:
        yield re.sub(rf"(?m)(^|[;&|]\s*){re.escape(match[1])}\b", lambda _: match[2].strip("'\""), match[3])


def resolve_program_pattern(name: str, known: frozenset[str]) -> str:
    """Return the first known program that a path with a glob matches; any other name is returned unchanged."""
    if "/" not in name or not re.search(r"[*?\[]", name):
        return name
    fits = (one for one in sorted(known) if any(is_glob_match(folder + one, name) for folder in PROGRAM_FOLDERS))
    return next(fits, name)


def _fold_expansions(text: str) -> str:
    made = PROGRAM_LOOKUP.sub(lambda match: match[1] or match[2], text)
    for match in islice(NAME_REFERENCE.finditer(made), MAX_REPLACEMENTS):
        made = re.sub(rf"\$\{{?{match[1]}\b\}}?", f"${match[2]}", made)
    if "${!" in made:
        named = dict[str, str](re.findall(rf"(?:^|[\s;&])({VARIABLE_NAME})=({VARIABLE_NAME})(?=[\s;&]|$)", made))
        made = re.sub(
            rf"\$\{{!({VARIABLE_NAME})\}}", lambda match: f"${named[match[1]]}" if match[1] in named else match[0], made
        )
    for match in PRINTF_ASSIGNMENT.finditer(made):
        made = made.replace(match[0], f"{match[1]}={_unescape_word(match[2])}")
    for match in READ_ASSIGNMENT.finditer(made):
        made = made.replace(match[0], _convert_read(match))
    for match in islice(ARRAY_ASSIGNMENT.finditer(made), MAX_REPLACEMENTS):
        made = _expand_array(made.replace(match[0], " "), match[1], match[2])
    for match in islice(SET_PARAMETERS.finditer(made), MAX_REPLACEMENTS):
        made = re.sub(r"\"?\$(?:@|\*|\{[@*]\})\"?", lambda _, words=match[1]: words.strip(), made)
    for match in islice(FUNCTION_CALL.finditer(made), MAX_REPLACEMENTS):
        body = re.sub(r"\"?\$(?:@|\*|\{[@*]\})\"?", lambda _, words=match[3]: words.strip(), match[2])
        made = made.replace(match[0], body)
    return made


def _expand_array(text: str, name: str, inside: str) -> str:
    """Replace the uses of an array by its words."""
    items = [re.fullmatch(r"(?:\[([^\]]*)\]=)?(.*)", word) for word in inside.split()]
    words = {item[1] or str(at): item[2] for at, item in enumerate(items) if item is not None}
    made = re.sub(rf"\"?\$\{{{name}\[[@*]\]\}}\"?", lambda _: " ".join(words.values()), text)
    return re.sub(rf"\"?\$\{{{name}\[([^\]]*)\]\}}\"?", lambda match: words.get(match[1], match[0]), made)


def _convert_read(match: re.Match[str]) -> str:
    """Convert `read a b <<< 'x y'` to assignments."""
    value = match[4].strip("'\"")
    names = match[3].split()
    if match[1]:
        value = value.replace(match[1].strip("'\""), " ")
    if "a" in match[2] or "mapfile" in match[0] or "readarray" in match[0]:
        return f"{names[0]}=({value})"
    words = value.split(maxsplit=len(names) - 1)
    return "; ".join(f"{name}={shlex.quote(word)}" for name, word in zip(names, words, strict=False)) or ":"


def _unescape_word(word: str) -> str:
    from handrail_cli.shell.bash.quoting import unescape_ansi_c

    return shlex.quote(unescape_ansi_c(word.strip("'\"")))


def _find_quoted_substitutions(text: str, pattern: re.Pattern[str]) -> Iterator[str]:
    """Yield the substitutions in quoted text that bash nevertheless runs."""
    for quoted in SINGLE_QUOTED.findall(text):
        for inner, other in pattern.findall(quoted):
            yield inner or other

"""Lines so plain that no parser is needed: words, quotes in which nothing is expanded, and `|`, `&&`, `||`, `;` between commands.

Most commands are of this kind. What is here must be all that bash makes of such a line; a line that holds anything else is not taken.
"""

from __future__ import annotations

import re

from handrail_cli.shell.bash.syntax import ParsedLine, ShellWord, SimpleCommand

# Longer lines are worth the parser's time, and are not taken apart twice.
MAX_LENGTH = 4_000
MAX_COMMANDS = 200
SEPARATOR = r"&&|\|\||[|;]"
# No `=` before a slash or at the start of a command: assignments are for the parser. No `~`, `{`, `[`, `#`, `!`, `$`, `\`.
BARE_WORD = r"[A-Za-z0-9_./:@%+,*?=-]+"
QUOTED_WORD = r"'[^'\n\x00-\x1f\x7f-\U0010ffff]*'|\"[^\"$`\\!\n\x00-\x1f\x7f-\U0010ffff]*\""
LINE_TOKEN = re.compile(rf" *(?:({BARE_WORD}(?=[ |;&]|$))|({QUOTED_WORD})(?=[ |;&]|$)|({SEPARATOR}))")
RESERVED_WORDS = frozenset((
    "if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case", "esac", "in", "select", "function", "time", "coproc",
    # Commands whose words the parser treats in a way of its own.
    "declare", "typeset", "export", "readonly", "local", "unset", "unsetenv",
))  # fmt: skip


def parse_simple_line(text: str) -> ParsedLine | None:
    """Return the analysis of a plain line; None for any other line."""
    if len(text) > MAX_LENGTH:
        return None
    commands: list[SimpleCommand] = []
    pipelines: list[tuple[tuple[int, ...], ...]] = []
    words: list[ShellWord] = []
    chain: list[tuple[int, ...]] = []
    match = LINE_TOKEN.match
    at, end = 0, len(text)
    while at < end:
        found = match(text, at)
        if found is None:
            # Nothing but spaces may be left.
            if text[at:].strip(" "):
                return None
            break
        group = found.lastindex or 0
        # Each of the groups ends where the whole does.
        start, at = span = found.span(group)
        if group == 1:
            word = text[start:at]
            if not words and (word in RESERVED_WORDS or "=" in word):
                return None
            words.append(ShellWord(word, word, span, "*" in word or "?" in word))
        elif group == 2:
            word = text[start + 1 : at - 1]
            if not words and not word:
                return None
            words.append(ShellWord(word, word, span))
        else:
            if not words:
                return None
            chain.append((len(commands),))
            commands.append(SimpleCommand(tuple(words), (), (), (words[0].span[0], words[-1].span[1])))
            words = []
            if text[start:at] != "|":
                if len(chain) > 1:
                    pipelines.append(tuple(chain))
                chain = []
    if words:
        chain.append((len(commands),))
        commands.append(SimpleCommand(tuple(words), (), (), (words[0].span[0], words[-1].span[1])))
    elif not commands or text.rstrip(" ")[-1:] != ";":
        return None
    if len(chain) > 1:
        pipelines.append(tuple(chain))
    return ParsedLine(text, tuple(commands), tuple(pipelines)) if len(commands) <= MAX_COMMANDS else None

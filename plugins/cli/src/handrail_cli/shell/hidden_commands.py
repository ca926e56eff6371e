"""Signs that a program which no row describes is given code, or the words of another command."""

from __future__ import annotations

import re
from collections.abc import Sequence

from handrail_cli.shell.bash.constant_output import StdinSource
from handrail_cli.shell.bash.syntax import ShellWord
from handrail_cli.shell.destructive_programs import DESTRUCTIVE
from handrail_cli.shell.program_wrappers import INTERPRETER, SHELLS, SPECIAL, WRAPPERS

# Options whose value is code whatever it looks like, and those whose value may be.
CODE_OPTION = re.compile(r"--?(?:eval|evaluate|execute|exec|expr|expression|command|code)(?:=(.*))?", re.DOTALL)
MAY_BE_CODE = re.compile(
    r"(?:-[A-Za-z]*[ceErx]|--?(?:run|script|cmd|do|init|hook|shell|program|action))(?:=(.*))?", re.DOTALL
)
# What stands in code and not in names, numbers and paths.
LOOKS_LIKE_CODE = re.compile(r"[\s;|&<>(){}$`'\"\[\]!]")
# Names of programs that are names of subcommands as well.
AMBIGUOUS_NAMES = frozenset((
    ".", "install", "script", "source", "command", "builtin", "exec", "eval", "watch", "batch", "view", "time", "at", "trap", "find", "make",
    "alias", "parted", "pv",
))  # fmt: skip
# Programs by whose name a command is recognised among other words.
RECOGNIZED_PROGRAMS = (SHELLS | frozenset((*WRAPPERS, *DESTRUCTIVE, *SPECIAL))) - AMBIGUOUS_NAMES
MAX_CODES = 4


def find_code_argument(words: Sequence[ShellWord], feed: StdinSource) -> ShellWord | None:
    """Return the word that is or holds code for the program, None where none seems to.

    Text that the line itself puts on standard input counts; what a file holds does not, as the program may be given that by its name as well.
    """
    for at, word in enumerate(words[1:], 1):
        behind = words[at + 1] if at + 1 < len(words) else None
        for options, certain in ((CODE_OPTION, True), (MAY_BE_CODE, False)):
            if (option := options.fullmatch(word.guess)) is None:
                continue
            value = ShellWord(None if word.text is None else option[1], option[1], word.span) if option[1] else behind
            if value is not None and (certain or value.text is None or LOOKS_LIKE_CODE.search(value.guess)):
                return word
    if feed.document is not None or feed.producers:
        text = feed.text
        hidden = text is None and feed.document is not None
        return words[0] if hidden or (text is not None and LOOKS_LIKE_CODE.search(text.strip())) else None
    return None


def find_nested_commands(words: Sequence[ShellWord]) -> tuple[list[Sequence[ShellWord]], list[ShellWord]]:
    """Return the words from the first one on that names a program which runs or destroys something.

    Also returns the words that contain such a command as text.
    """
    start = next((at for at, word in enumerate(words[1:], 1) if _is_notable_program(word.guess)), None)
    codes = [word for word in words[1:] if _is_command_text(word.guess)]
    return ([words[start:]] if start is not None else []), codes[:MAX_CODES]


def _is_notable_program(text: str) -> bool:
    name = text.rpartition("/")[2]
    return name in RECOGNIZED_PROGRAMS or INTERPRETER.fullmatch(name) is not None


def _is_command_text(text: str) -> bool:
    """Return True for text of several words that contains a command whose first word names such a program.

    The text may follow an option's `=`.
    """
    value = text.partition("=")[2] if text.startswith("-") and "=" in text else text
    if not re.search(r"\s", value):
        return False
    return any(_is_notable_program(command.split()[0]) for command in re.split(r"[;&|\n(`]+", value) if command.strip())

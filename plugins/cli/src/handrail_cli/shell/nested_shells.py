"""Shells that are started by a line: with code in it, or with a file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from handrail_cli.shell.bash.simple_line import parse_simple_line
from handrail_cli.shell.bash.syntax import ShellWord
from handrail_cli.shell.path_effects import CommandEffects

if TYPE_CHECKING:
    from handrail_cli.shell.analyzer import LineAnalyzer

# Shells whose language is bash's, or a part of it. Of others only what is plain means the same.
LIKE_BASH = frozenset(("bash", "sh", "dash", "ash", "rbash"))
BASH_NAMES = frozenset(("bash", "rbash"))
SHORT_OPTIONS = re.compile(r"-[acehlnpuvxBCEPT]+")
LONG_OPTIONS = frozenset(
    ("--login", "--norc", "--noprofile", "--posix", "--verbose", "--noediting", "--no-rcs", "--no-config")
)
SET_OPTIONS = frozenset(("errexit", "nounset", "pipefail", "xtrace", "verbose", "noglob", "noclobber", "posix"))


def judge_shell_call(weighing: LineAnalyzer, words: Sequence[ShellWord], effects: CommandEffects) -> None:
    """Judge `bash [options] -c CODE [parameter…]` and `bash [options] FILE [parameter…]`."""
    at, letters = 1, ""
    portable = is_portable_shell(words)
    while at < len(words) and (text := words[at].text) is not None and text.startswith(("-", "+")) and text != "-":
        if text == "--":
            at += 1
            break
        if (
            text in ("-o", "-eo", "-euo", "-uo", "-exo", "-euxo")
            and at + 1 < len(words)
            and words[at + 1].text in SET_OPTIONS
        ):
            at += 1
        elif SHORT_OPTIONS.fullmatch(text):
            letters += text[1:]
        elif text not in LONG_OPTIONS:
            effects.warn("runs_program", f"what {words[0].guess!r} does with {text!r} is not analysed", words[at])
            return
        at += 1
    rest = words[at:]
    if not rest:
        effects.warn("hidden_code", "it starts a shell of its own", words[0])
    elif "c" in letters:
        _judge_shell_code(weighing, rest, words[0], effects, portable=portable)
    elif "n" in letters:
        weighing.places.read(rest[0], effects)
    else:
        weighing.execute(rest[0], rest[0].text, effects, portable=portable)


def is_portable_shell(words: Sequence[ShellWord]) -> bool:
    """Return True if these words start a shell other than bash, or bash in POSIX mode.

    Only syntax that all shells read alike is known for it.
    """
    name = words[0].guess.rpartition("/")[2]
    return name not in BASH_NAMES or any(word.guess in ("--posix", "posix") for word in words[1:])


def _judge_shell_code(
    weighing: LineAnalyzer, rest: Sequence[ShellWord], first: ShellWord, effects: CommandEffects, *, portable: bool
) -> None:
    text = rest[0].text
    if text is None or rest[0].glob:
        effects.warn("hidden_code", "it runs text that cannot be seen as code", rest[0])
        return
    name = first.guess.rpartition("/")[2]
    if name not in LIKE_BASH:
        simple = parse_simple_line(text)
        if simple is None or any(
            map(_is_read_differently, (word for command in simple.commands for word in command.words))
        ):
            effects.warn("other_shell", f"code for {first.guess!r} is not analysed", rest[0])
            weighing.narrowable = False
    given = {
        str(number): word.text for number, word in enumerate(rest[1:10]) if word.text is not None and not word.glob
    }
    weighing.code(text, first.span, effects, given=given, portable=portable)


def _is_read_differently(word: ShellWord) -> bool:
    """Return True if other shells may turn it into another word: `=ls` is a path for zsh."""
    return word.glob or word.guess.startswith("=")

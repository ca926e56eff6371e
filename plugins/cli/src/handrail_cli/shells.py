"""Shells that are started by a line: with code in it, or with a file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from handrail_cli.commandline import Word
from handrail_cli.placing import Effects
from handrail_cli.plain import plain

if TYPE_CHECKING:
    from handrail_cli.weighing import Weighing

# Shells whose language is bash's, or a part of it. Of others only what is plain means the same.
LIKE_BASH = frozenset(("bash", "sh", "dash", "ash", "rbash"))
BASH = frozenset(("bash", "rbash"))
LETTERS = re.compile(r"-[acehlnpuvxBCEPT]+")
LONG = frozenset(("--login", "--norc", "--noprofile", "--posix", "--verbose", "--noediting", "--no-rcs", "--no-config"))
OPTIONS = frozenset(("errexit", "nounset", "pipefail", "xtrace", "verbose", "noglob", "noclobber", "posix"))


def shell(weighing: Weighing, words: Sequence[Word], effects: Effects) -> None:
    """`bash [options] -c CODE [parameter…]` and `bash [options] FILE [parameter…]`."""
    at, letters = 1, ""
    portable = is_portable(words)
    while at < len(words) and (text := words[at].text) is not None and text.startswith(("-", "+")) and text != "-":
        if text == "--":
            at += 1
            break
        if (
            text in ("-o", "-eo", "-euo", "-uo", "-exo", "-euxo")
            and at + 1 < len(words)
            and words[at + 1].text in OPTIONS
        ):
            at += 1
        elif LETTERS.fullmatch(text):
            letters += text[1:]
        elif text not in LONG:
            effects.warn("runs_program", f"what {words[0].guess!r} does with {text!r} is not analysed", words[at])
            return
        at += 1
    rest = words[at:]
    if not rest:
        effects.warn("hidden_code", "it starts a shell of its own", words[0])
    elif "c" in letters:
        _code(weighing, rest, words[0], effects, portable=portable)
    elif "n" in letters:
        weighing.places.read(rest[0], effects)
    else:
        weighing.execute(rest[0], rest[0].text, effects, portable=portable)


def is_portable(words: Sequence[Word]) -> bool:
    """True if the shell that these words start is not bash, or is bash by the rules of POSIX: only what all shells read alike is known."""
    name = words[0].guess.rpartition("/")[2]
    return name not in BASH or any(word.guess in ("--posix", "posix") for word in words[1:])


def _code(weighing: Weighing, rest: Sequence[Word], first: Word, effects: Effects, *, portable: bool) -> None:
    text = rest[0].text
    if text is None or rest[0].glob:
        effects.warn("hidden_code", "it runs text that cannot be seen as code", rest[0])
        return
    name = first.guess.rpartition("/")[2]
    if name not in LIKE_BASH:
        simple = plain(text)
        if simple is None or any(map(_differs, (word for command in simple.commands for word in command.words))):
            effects.warn("other_shell", f"code for {first.guess!r} is not analysed", rest[0])
            weighing.narrowable = False
    given = {
        str(number): word.text for number, word in enumerate(rest[1:10]) if word.text is not None and not word.glob
    }
    weighing.code(text, first.span, effects, given=given, portable=portable)


def _differs(word: Word) -> bool:
    """True if other shells may make another word of it: `=ls` is a path for zsh."""
    return word.glob or word.guess.startswith("=")
